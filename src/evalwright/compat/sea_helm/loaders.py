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
from functools import partial
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from evalwright.bounded import from_json
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.errors import DatasetError, MissingExtra
from evalwright.tasks.datasets.rows import Rows, file_source

Raw = Mapping[str, Any]
Fetch = Callable[[str], Path]
"""A single file of the data set, here."""

LETTERS = "ABCDEFGHIJ"
SHUFFLED, CUISINE = 976843, 3722236
"""The seeds of options: of GPQA and Global-MMLU, and of World Cuisine."""
_LONGEST_LITERAL = 200_000


@dataclass(frozen=True, slots=True)
class Loader:
    """An entry of the table, as its first lines explain.

    renamed: the column that is the label. by_subject: a row has the examples of its own subject. chosen: which examples, by category.
    limited_early: the published loader counts examples before it keeps those of the category. files: the rows are made of single
    files. generated: texts are made to a length.
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
    also: Sequence[str] = ()
    images: Sequence[str] = ()
    make: str = ""
    files: str = ""
    generated: bool = False

    def category(self, task: SeaTask) -> str:
        """The part of the data that a task's name says."""
        return plain_name(task).removeprefix(self.prefix)

    def filled(self, text: str, task: SeaTask) -> str:
        """A configuration or a split of a task."""
        category = self.category(task)
        if text == "{pair}":  # en-xx: from English to the language of the task
            text = "_to_".join(category.split("-")).replace("xx", "{language}")
        language = task.language
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
        column = self.keep["column"]
        return lambda row: bool(str(row[column]).lower() == wanted)

    def maker(self, task: SeaTask, count: int) -> Callable[[Raw, int], Row]:
        """What makes a row of a raw row and its place. count: of all rows."""
        if self.make in _OF_ALL:
            return _OF_ALL[self.make](task, count)
        return partial(self._made, task)

    def _made(self, task: SeaTask, raw: Raw, index: int) -> Row:
        if self.id is None:
            return (
                {("label" if key == self.renamed else key): value for key, value in raw.items()}
                if self.renamed
                else raw
            )
        named = (
            {one: one for one in self.metadata} if isinstance(self.metadata, list) else dict(self.metadata)
        )
        row: dict[str, Any] = {
            "id": _value(self.id, raw, index),
            "prompts": [
                {
                    name: _value(one, raw, index)
                    for name, one in self.prompt.items()
                    if one[0] != "?" or one[1:] in raw
                }
            ],
            "metadata": {
                "language": task.language,
                **{name: raw.get(one) for name, one in (named or {}).items()},
            },
            **{name: raw[name] for name in self.also},
        }
        if self.labels:
            row["label"] = self.labels[task.language][bool(raw["label"])]
        elif self.label is not None:
            row["label"] = _value(self.label, raw, index)
        if self.images:
            row["images"] = list(
                chain.from_iterable(_images(raw.get(name.lstrip("?"))) for name in self.images)
            )
        if self.make:
            _CHANGES[self.make](row, raw, task)
        return row


def plain_name(task: SeaTask) -> str:
    """The name without what marks a twin."""
    return task.name.removesuffix("-logprobs")


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


def lettered(options: Sequence[Any], form: str, between: str = "\n") -> str:
    """Options with their letters, as many as there are letters."""
    pairs = zip(LETTERS, options, strict=False)
    return between.join(
        form.replace("{letter}", letter).replace("{option}", str(one).strip()) for letter, one in pairs
    )


def _literal(text: Any) -> Any:
    """A list that is written as Python."""
    if not isinstance(text, str) or len(text) > _LONGEST_LITERAL:
        raise ValueError("a column is no text of a list, or too long")
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


# Shuffled options


def _places(count: int, groups: int) -> tuple[list[str], list[int]]:
    """The letter of each row's right answer, and the seed that shuffles its wrong ones."""
    letters = list("ABCD" * groups)
    seeds = random.Random(SHUFFLED).sample(range(2**31 - 1), count)
    random.Random(SHUFFLED).shuffle(letters)
    return letters, seeds


def _shuffled(wrong: list[str], right: str, letter: str, seed: int) -> list[str]:
    random.Random(seed).shuffle(wrong)
    wrong.insert("ABCD".index(letter), right)
    return [one.strip() for one in wrong]


def _global_mmlu(task: SeaTask, count: int) -> Callable[[Raw, int], Row]:
    letters, seeds = _places(count, -(-count // 4))

    def make(raw: Raw, index: int) -> Row:
        wrong = [raw[f"option_{letter}"].strip() for letter in "abcd"]
        right = wrong.pop("ABCD".index(raw["answer"]))
        options = _shuffled(wrong, right, letters[index], seeds[index])
        named = {f"option_{letter}": each for letter, each in zip("abcd", options, strict=True)}
        left = {
            key: value for key, value in raw.items() if key not in ("sample_id", "answer", "question", *named)
        }
        prompts = [{"question": raw["question"], **named}]
        metadata = {"language": task.language, **left}
        return {"id": raw["sample_id"], "label": letters[index], "prompts": prompts, "metadata": metadata}

    return make


def _gpqa(task: SeaTask, count: int) -> Callable[[Raw, int], Row]:
    letters, seeds = _places(count, count // 4 + 1)

    def make(raw: Raw, index: int) -> Row:
        wrong = [raw[f"Incorrect Answer {place}"] for place in (1, 2, 3)]
        options = _shuffled(wrong, raw["Correct Answer"], letters[index], seeds[index])
        named = {f"choice{place}": each for place, each in enumerate(options, 1)}
        prompts = [{"question": raw["Question"], **named}]
        return {
            "id": index,
            "label": letters[index],
            "prompts": prompts,
            "metadata": {"language": task.language},
        }

    return make


_OF_ALL = {"global_mmlu": _global_mmlu, "gpqa": _gpqa}


def cuisine(task: SeaTask, raws: Sequence[Raw]) -> list[Row]:
    """World Cuisine: the rows of each kind of prompt, the right option at a place of a shuffled list."""
    import numpy as np

    generator = np.random.default_rng(seed=CUISINE)
    rows: list[Row] = []
    for kind in {"task1": (1, 3, 4), "task2": (2,)}[plain_name(task).removeprefix("world_cuisine_")]:
        own = [raw for raw in raws if raw["prompt_type"] == kind]
        places = [0, 1, 2, 3, 4] * (len(own) // 5)
        generator.shuffle(places)
        for raw, place in zip(own, places, strict=True):
            options = list(raw["options"])
            options.insert(place, options.pop(raw["mcq_answer_index"]))
            named = {f"option_{letter}": each for letter, each in zip("abcde", options, strict=True)}
            metadata = {
                "language": task.language,
                **{key: raw[key] for key in ("food_id", "prompt_id", "prompt_type", "task")},
            }
            prompts = [{"question": raw["question"], **named}]
            row = {"id": raw["qa_id"], "label": LETTERS[place], "prompts": prompts, "metadata": metadata}
            rows.append({**row, "image_files": [raw["image_path"]]})
    return rows


# What changes a row that the table made


def _ifeval(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    row["kwargs"] = [dict(one) for one in raw["kwargs"]]
    if raw["key"] == 1174:  # the data lack this setting of the instruction
        row["kwargs"][0]["let_relation"] = "at least"


def _math_arena(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    if "problem_idx" not in raw:
        row["id"] = raw["id"]
    row["metadata"]["dataset"] = task.name


def _mmlu_redux(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    row["label"] = LETTERS[raw["answer"] if raw["error_type"] == "ok" else _corrected(raw)]


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
    choices = "".join(
        f"\n{letter}: {each}" for letter, each in zip("ABCDEF", raw["options"] or (), strict=False)
    )
    row["prompts"][0]["choices"] = choices if choice else ""
    row["label"] = LETTERS[raw["choiceAns"]] if choice else raw["blankAns"]


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
    pairs = zip("ABCDE", raw["options"], strict=False)
    row["prompts"][0]["options"] = "".join(f"\n({letter}) {option}" for letter, option in pairs)


def _mathvista(row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    row["metadata"] |= raw["metadata"]
    if raw["question_type"] == "free_form":
        row["prompts"][0]["question"] += f" (Unit: {raw['unit']})" if raw["unit"] else ""
        return
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    row["label"] = letters[raw["choices"].index(raw["answer"])]
    row["prompts"][0]["choices_text"] = "\n".join(
        f"({letter}) {choice}" for letter, choice in zip(letters, raw["choices"], strict=False)
    )


_CHANGES: Mapping[str, Callable[[dict[str, Any], Raw, SeaTask], None]] = {
    "ifeval": _ifeval, "math_arena": _math_arena, "mmlu_redux": _mmlu_redux, "musr": _musr, "mmmu_pro": _mmmu_pro,
    "babyvision": _babyvision, "erqa": _erqa, "marvl": _marvl, "mathvision": _mathvision, "mathvista": _mathvista,
}  # fmt: skip


# Rows of single files


def _jsonl(paths: Sequence[Path]) -> list[dict[str, Any]]:
    return [row for path in paths for row, _, _, _ in Rows([file_source(path)]).scan()]


def _healthbench(task: SeaTask, fetch: Fetch, raws: Callable[[], Sequence[Raw]]) -> list[Row]:
    names = {
        "healthbench": "2025-05-07-06-14-12_oss_eval.jsonl",
        "healthbench_consensus": "consensus_2025-05-09-20-00-46.jsonl",
        "healthbench_hard": "hard_2025-05-08-21-00-10.jsonl",
    }
    return [
        {
            "id": index,
            "prompts": [{}],
            "metadata": {"language": task.language, "example_tags": row["example_tags"]},
            "conversations": row["prompt"],
            "criteria": row["rubrics"],
        }
        for index, row in enumerate(_jsonl([fetch(names[plain_name(task)])]))
    ]


def _livecodebench(task: SeaTask, fetch: Fetch, raws: Callable[[], Sequence[Raw]]) -> list[Row]:
    last = int(task.name.removeprefix("livecodebench_v"))
    by_input, by_starter = _forms(task)
    rows: list[Row] = []
    for raw in _jsonl([fetch(f"test{place if place > 1 else ''}.jsonl") for place in range(1, last + 1)]):
        code = raw.get("starter_code", "")
        form = by_starter.replace("\0", code) if code else by_input
        prompts = [{"question": raw["question_content"], "format_prompt": form}]
        metadata = {name: raw[name] for name in ("platform", "contest_date", "difficulty")}
        metadata |= {"language": task.language, "func_name": from_json(raw["metadata"]).get("func_name")}
        tests = {"public": from_json(raw["public_test_cases"]), "private": raw["private_test_cases"]}
        rows.append({"id": raw["question_id"], "prompts": prompts, "metadata": metadata, "test_cases": tests})
    return rows


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


def _aa_lcr(task: SeaTask, fetch: Fetch, raws: Callable[[], Sequence[Raw]]) -> list[Row]:
    """Questions over documents, which are read out of the archive; nothing is unpacked."""
    rows: list[Row] = []
    with zipfile.ZipFile(
        fetch("extracted_text/AA-LCR_extracted-text.zip"), metadata_encoding="utf-8"
    ) as archive:
        parts = {unicodedata.normalize("NFC", one.filename): one for one in archive.infolist()}
        for raw in raws():
            texts: list[str] = []
            for number, name in enumerate(raw["data_source_filenames"].split(";"), 1):
                inside = f"lcr/{raw['document_category']}/{raw['document_set_id']}/{name}"
                part = parts.get(unicodedata.normalize("NFC", inside))
                if part is None or part.file_size > 1 << 24:
                    raise DatasetError(
                        f"The document '{inside}' of '{task.name}' is not in its archive, or too large."
                    )
                texts.append(
                    f"BEGIN DOCUMENT {number}:\n{archive.read(part).decode()}\nEND DOCUMENT {number}"
                )
            prompts = [{"documents_text": "\n\n".join(texts), "question": raw["question"]}]
            kept = ("document_category", "document_set_id", "data_source_filenames", "input_tokens")
            metadata = {"language": task.language, **{name: raw.get(name) for name in kept}}
            rows.append(
                {"id": raw["question_id"], "label": raw["answer"], "prompts": prompts, "metadata": metadata}
            )
    return rows


OF_FILES = {"healthbench": _healthbench, "livecodebench": _livecodebench, "aa_lcr": _aa_lcr}

LOADERS: Mapping[tuple[str, str], Loader] = {
    (name.rpartition(":")[0], name.rpartition(":")[2]): Loader(**entry)
    for name, entry in tomllib.loads(
        files(__package__).joinpath("loaders.toml").read_text(encoding="utf-8")
    ).items()
}
LOCAL = Loader(local=True)
"""A file of rows in SEA-HELM's own form."""
