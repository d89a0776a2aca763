"""What SEA-HELM's loader classes make of their data: the table `loaders.toml`, and what cannot be said in a table.

Options are shuffled with the published seeds, by Python's own generator and numpy's, so that every letter is the published one.
"""

from __future__ import annotations

import ast
import base64
import random
import re
import tomllib
import unicodedata
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from evalwright.bounded import from_json
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.errors import DatasetError, MissingExtra

Raw = Mapping[str, Any]
Fetch = Callable[[str], Path]
"""A single file of the task's data set, here."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SHUFFLED, CUISINE = 976843, 3722236
"""The seeds of options: of GPQA and Global-MMLU, and of World Cuisine."""
_LONGEST_LITERAL = 200_000


@dataclass(frozen=True, slots=True)
class Loader:
    """An entry of the table, as its first lines explain.

    renamed: the column that is the label. by_subject: a row has the examples of its own subject. chosen: which examples, by category.
    limited_early: the published loader counts examples before it keeps those of the category. files: single files of the data set,
    by task. generated: texts are made to a length.
    """

    config: str = "{language}"
    split: str = "eval"
    examples: str = "examples"
    prefix: str = ""
    named: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, Any] = field(default_factory=dict)
    local: bool = False
    local_examples: bool = False
    renamed: str = ""
    by_subject: bool = False
    limited_early: bool = False
    chosen: Mapping[str, Sequence[int]] = field(default_factory=dict)
    id: Any = None
    label: Any = None
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    prompt: Mapping[str, Any] = field(default_factory=dict)
    metadata: Any = ()
    also: Mapping[str, str] = field(default_factory=dict)
    images: Sequence[str] = ()
    image_file: str = ""
    shuffled: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""
    one_more: bool = False
    make: str = ""
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    generated: bool = False

    def category(self, task: SeaTask) -> str:
        """The part of the data that a task's name says."""
        return plain_name(task).removeprefix(self.prefix)

    def filled(self, text: str, task: SeaTask) -> str:
        """A configuration or a split of a task."""
        category, language = self.category(task), task.language
        if text == "{pair}":  # en-xx: from English to the language of the task
            text = "_to_".join(category.split("-")).replace("xx", "{language}")
        for name, value in (("category", category), ("language", language), ("name", plain_name(task))):
            text = text.replace(f"{{{name}}}", self.named.get(value, value))
        return text

    def kept(self, task: SeaTask) -> Callable[[Raw], bool] | None:
        """Which rows are the task's; None for all."""
        if self.make == "mmlu_redux":
            return lambda row: row["error_type"] == "ok" or _corrected(row) >= 0
        if not self.keep:
            return None
        own = task.language if self.keep.get("by") == "language" else self.category(task)
        wanted = self.named.get(own, own).replace(*self.keep.get("change", ("", ""))).lower()
        return lambda row: bool(str(row[self.keep["column"]]).lower() == wanted)

    def maker(self, task: SeaTask, raws: Sequence[Raw], fetch: Fetch) -> Callable[[Raw, int], Row]:
        """What makes a row of a raw row and its place. raws: all of them, where options are shuffled; fetch: a file of the data set."""
        if self.id is None:
            names = {self.renamed: "label"}
            return lambda raw, index: {names.get(key, key): one for key, one in raw.items() if key != "place"}
        change = _CHANGES[self.make](task, raws, fetch) if self.make else None
        letters, seeds = _places(len(raws), self.one_more) if self.shuffled else ([], [])

        def make(raw: Raw, index: int) -> Row:
            row = self._row(task, raw, index)
            if self.shuffled:
                row["label"] = letters[index]
                row["prompts"][0] |= self._options(raw, letters[index], seeds[index])
            if change is not None:
                change(row, raw, index)
            return row

        return make

    def _row(self, task: SeaTask, raw: Raw, index: int) -> dict[str, Any]:
        named = (
            dict(self.metadata) if isinstance(self.metadata, Mapping) else {one: one for one in self.metadata}
        )
        prompt = {name: _value(said, raw, index) for name, said in self.prompt.items() if _there(said, raw)}
        row = {"id": _value(self.id, raw, index), "prompts": [prompt]}
        row["metadata"] = {"language": task.language, **{name: raw.get(one) for name, one in named.items()}}
        row |= {name: raw[one] for name, one in self.also.items()}
        if self.labels:
            row["label"] = self.labels[task.language][bool(raw["label"])]
        elif self.label is not None:
            row["label"] = _value(self.label, raw, index)
        if self.images:
            row["images"] = list(
                chain.from_iterable(_images(raw.get(name.lstrip("?"))) for name in self.images)
            )
        return row | ({"image_files": [raw[self.image_file]]} if self.image_file else {})

    def _options(self, raw: Raw, letter: str, seed: int) -> dict[str, str]:
        wrong = [str(raw[column]).strip() for column in self.shuffled.values()]
        right = wrong.pop(LETTERS.index(raw[self.answer]) if self.answer else 0)
        random.Random(seed).shuffle(wrong)
        wrong.insert(LETTERS.index(letter), right)
        return dict(zip(self.shuffled, wrong, strict=True))


def plain_name(task: SeaTask) -> str:
    """The name without what marks a twin."""
    return task.name.removesuffix("-logprobs")


def _there(said: Any, raw: Raw) -> bool:
    return not (isinstance(said, str) and said[0] == "?") or said[1:] in raw


def _value(said: Any, raw: Raw, index: int) -> Any:
    """What an entry says of a row."""
    if isinstance(said, str):
        return index if said == "#" else raw.get(said[1:]) if said[0] == "?" else raw[said]
    value = raw[said["of"]]
    if "choose" in said:
        return said["choose"][int(value)]
    if "letters" in said:
        return lettered(value, said["letters"], said.get("between", "\n"))
    if "at" in said:
        return value[said["at"]]
    return str(value).upper() if said.get("upper") else str(value)


def lettered(options: Sequence[Any] | None, form: str, between: str = "\n", most: int = 10) -> str:
    """Options with their letters."""
    pairs = zip(LETTERS[:most], options or (), strict=False)
    return between.join(
        form.replace("{letter}", letter).replace("{option}", str(one).strip()) for letter, one in pairs
    )


def _literal(text: Any) -> Any:
    """A list that is written as Python."""
    if not isinstance(text, str) or len(text) > _LONGEST_LITERAL:
        raise ValueError("a column is not the text of a list, or too long")
    try:
        return ast.literal_eval(text)
    except (MemoryError, RecursionError):
        raise ValueError("a column is nested too deeply") from None


def _images(value: Any) -> list[str]:
    """The images of a column, as base64."""
    if isinstance(value, list):
        return [one for each in value for one in _images(each)]
    data = value.get("bytes") if isinstance(value, Mapping) else None
    return [] if data is None else [base64.b64encode(data).decode() if isinstance(data, bytes) else str(data)]


def _corrected(row: Raw) -> int:
    """A corrected answer of MMLU-Redux; -1 where there is none."""
    right = row["correct_answer"] if row["error_type"] == "wrong_groundtruth" else None
    return right if right in (0, 1, 2, 3) else -1


def _places(count: int, one_more: bool) -> tuple[list[str], list[int]]:
    """The letter of each row's right answer, and the seed that shuffles its wrong ones."""
    letters = list("ABCD" * (count // 4 + 1 if one_more else -(-count // 4)))
    seeds = random.Random(SHUFFLED).sample(range(2**31 - 1), count)
    random.Random(SHUFFLED).shuffle(letters)
    return letters, seeds


# What changes a row that the table made, by `make`

Change = Callable[[dict[str, Any], Raw, int], None]


def _world_cuisine(task: SeaTask, raws: Sequence[Raw], fetch: Fetch) -> Change:
    """The right option goes to a place of a list that is shuffled for each kind of prompt, which the raw rows are sorted by."""
    import numpy as np

    generator = np.random.default_rng(seed=CUISINE)
    kinds = [raw["prompt_type"] for raw in raws]
    places: list[int] = []
    for kind in dict.fromkeys(kinds):
        own = [0, 1, 2, 3, 4] * (kinds.count(kind) // 5)
        generator.shuffle(own)
        places += own

    def change(row: dict[str, Any], raw: Raw, index: int) -> None:
        options = list(raw["options"])
        options.insert(places[index], options.pop(raw["mcq_answer_index"]))
        row["prompts"][0] |= {f"option_{letter}": each for letter, each in zip("abcde", options, strict=True)}
        row["label"] = LETTERS[places[index]]

    return change


def _livecodebench(task: SeaTask, raws: Sequence[Raw], fetch: Fetch) -> Change:
    by_input, by_starter = _forms(task)

    def change(row: dict[str, Any], raw: Raw, index: int) -> None:
        code = raw.get("starter_code", "")
        row["prompts"][0]["format_prompt"] = by_starter.replace("\0", code) if code else by_input
        row["metadata"]["func_name"] = from_json(raw["metadata"]).get("func_name")
        row["test_cases"] = {
            "public": from_json(raw["public_test_cases"]),
            "private": raw["private_test_cases"],
        }

    return change


def _forms(task: SeaTask) -> tuple[str, str]:
    """What the tree's own loader asks for where a program reads its input, and where it has starter code (NUL stands for the code). It
    is read out of the file, which is not run."""
    assert task.root is not None
    found: list[str] = []
    try:
        tree = ast.parse((task.root / str(task.config["dataloader_file"])).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        tree = ast.Module([], [])
    for node in ast.walk(tree):
        match node:
            case ast.Assign([ast.Name(id="format_prompt")], ast.Constant(value=str() as text)):
                found.append(text)
            case ast.Assign([ast.Name(id="format_prompt")], ast.JoinedStr(values=parts)):
                found.append(
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in parts)
                )
    if len(found) != 2:
        raise DatasetError(f"The two forms of '{task.name}' are not in '{task.config['dataloader_file']}'.")
    return found[0], found[1]


def _aa_lcr(task: SeaTask, raws: Sequence[Raw], fetch: Fetch) -> Change:
    """Documents are read out of the archive; nothing is unpacked."""
    archive = zipfile.ZipFile(fetch("extracted_text/AA-LCR_extracted-text.zip"), metadata_encoding="utf-8")
    parts = {unicodedata.normalize("NFC", one.filename): one for one in archive.infolist()}

    def change(row: dict[str, Any], raw: Raw, index: int) -> None:
        texts: list[str] = []
        for number, name in enumerate(raw["data_source_filenames"].split(";"), 1):
            inside = f"lcr/{raw['document_category']}/{raw['document_set_id']}/{name}"
            part = parts.get(unicodedata.normalize("NFC", inside))
            if part is None or part.file_size > 1 << 24:
                raise DatasetError(
                    f"The document '{inside}' of '{task.name}' is not in its archive, or too large."
                )
            texts.append(f"BEGIN DOCUMENT {number}:\n{archive.read(part).decode()}\nEND DOCUMENT {number}")
        row["prompts"][0]["documents_text"] = "\n\n".join(texts)

    return change


def _each(
    change: Callable[[dict[str, Any], Raw, SeaTask], None],
) -> Callable[[SeaTask, Sequence[Raw], Fetch], Change]:
    return lambda task, raws, fetch: lambda row, raw, index: change(row, raw, task)


def _ifeval(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    row["kwargs"] = [dict(one) for one in raw["kwargs"]]
    if raw["key"] == 1174:  # the data lack this setting of the instruction
        row["kwargs"][0]["let_relation"] = "at least"


def _math_arena(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    row["id"] = raw["problem_idx"] if "problem_idx" in raw else raw["id"]
    row["metadata"]["dataset"] = task.name


def _mmlu_redux(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    row["label"] = LETTERS[raw["answer"] if raw["error_type"] == "ok" else _corrected(raw)]


def _hallusionbench(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    if not task.name.endswith("_image"):
        row["images"] = []


def _musr(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    choices = (f"{place} - {each}" for place, each in enumerate(_literal(raw["choices"]), 1))
    row["prompts"][0]["choices"] = "\n".join(choices)
    row["label"] = str(raw["answer_index"] + 1)


def _mmmu_pro(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    if "question" in raw and "image" not in raw:
        options = lettered(_literal(raw["options"]), "{letter}: {option}")
        row["prompts"] = [{"question": raw["question"], "options": options}]
        row["metadata"] |= {"difficulty": raw["topic_difficulty"], "img_type": raw["img_type"]}


def _babyvision(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    choice = raw["ansType"] == "choice"
    row["prompts"][0]["choices"] = "\n" + _bare(raw["options"], "{letter}: ", 6) if choice else ""
    row["label"] = LETTERS[raw["choiceAns"]] if choice else raw["blankAns"]


def _bare(options: Sequence[Any], before: str, most: int) -> str:
    """Options with their letters, white space kept."""
    pairs = zip(LETTERS[:most], options, strict=False)
    return "\n".join(f"{before.replace('{letter}', letter)}{option}" for letter, option in pairs)


def _erqa(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    asked = " Please answer directly with only the letter of the correct option and nothing else."
    text = raw["question"].removesuffix(asked).replace(" Choices:", "\nChoices:")
    row["prompts"] = [{"question": re.sub(" (A|B|C|D). ", r"\n\1.  ", text)}]


def _marvl(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    text = raw["hypo_en" if task.language == "en" else "hypothesis"]
    if task.language == "zh":
        try:
            from opencc import OpenCC  # type: ignore[import-not-found]
        except ImportError:
            raise MissingExtra("Simplified characters of MARVL", "hub", "opencc") from None
        text = OpenCC("t2s.json").convert(text)
    row["prompts"] = [{"hypothesis": text}]


def _mathvision(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    row["prompts"][0]["options"] = "\n" + _bare(raw["options"], "({letter}) ", 5) if raw["options"] else ""


def _mathvista(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    row["metadata"] |= raw["metadata"]
    if raw["question_type"] == "free_form":
        row["prompts"][0]["question"] += f" (Unit: {raw['unit']})" if raw["unit"] else ""
    else:
        row["label"] = LETTERS[raw["choices"].index(raw["answer"])]
        row["prompts"][0]["choices_text"] = _bare(raw["choices"], "({letter}) ", 26)


_CHANGES: Mapping[str, Callable[[SeaTask, Sequence[Raw], Fetch], Change]] = {
    "world_cuisine": _world_cuisine, "livecodebench": _livecodebench, "aa_lcr": _aa_lcr, "ifeval": _each(_ifeval),
    "math_arena": _each(_math_arena), "mmlu_redux": _each(_mmlu_redux), "musr": _each(_musr), "hallusionbench": _each(_hallusionbench), "mmmu_pro": _each(_mmmu_pro),
    "babyvision": _each(_babyvision), "erqa": _each(_erqa), "marvl": _each(_marvl), "mathvision": _each(_mathvision),
    "mathvista": _each(_mathvista),
}  # fmt: skip

LOADERS: Mapping[tuple[str, str], Loader] = {
    (name.rpartition(":")[0], name.rpartition(":")[2]): Loader(**entry)
    for name, entry in tomllib.loads(
        files(__package__).joinpath("loaders.toml").read_text(encoding="utf-8")
    ).items()
}
LOCAL = Loader(local=True)
"""A file of rows in SEA-HELM's own form."""
