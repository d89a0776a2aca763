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
from pathlib import Path
from typing import Any

from evalwright.bounded import from_json
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.errors import DatasetError, MissingExtra
from evalwright.tasks import templates

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

    renamed: the column that is the label. by_subject: a row has the examples of its own subject. chosen: which examples, by part.
    limited_early: the published loader counts examples before it keeps those of the part. files: single files of the data set,
    by task. labels: by language, for what is false and true. generated: texts are made to a length. foreign: a class of the folder.
    """

    config: str = "{{ language }}"
    split: str = "eval"
    examples: str = "examples"
    prefix: str = ""
    named: Mapping[str, str] = field(default_factory=dict)
    keep: str = ""
    local: bool = False
    local_examples: bool = False
    renamed: str = ""
    by_subject: bool = False
    limited_early: bool = False
    chosen: Mapping[str, Sequence[int]] = field(default_factory=dict)
    id: str = ""
    label: str = ""
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    prompt: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] | Sequence[str] = ()
    also: Mapping[str, str] = field(default_factory=dict)
    literals: Sequence[str] = ()
    images: Sequence[str] = ()
    image_file: str = ""
    shuffled: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""
    one_more: bool = False
    change: str = ""
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    generated: bool = False
    foreign: bool = False

    def facts(self, task: SeaTask) -> dict[str, Any]:
        """What templates know of a task; part: what its name says of the part of the data."""
        name = plain_name(task)
        part = name.removeprefix(self.prefix)
        return {"part": part, "language": task.language, "name": name, "named": self.named}

    def filled(self, text: str, task: SeaTask) -> str:
        """A configuration or a split of a task."""
        return templates.text(text)(self.facts(task))

    def kept(self, task: SeaTask) -> Callable[[Raw], bool] | None:
        """Which rows are the task's; None for all."""
        if not self.keep:
            return None
        facts, wanted = self.facts(task), templates.condition(self.keep)
        return lambda row: wanted({**row, **facts})

    def maker(self, task: SeaTask, raws: Sequence[Raw], fetch: Fetch) -> Callable[[Raw, int], Row]:
        """What makes a row of a raw row and its place. raws: all of them, for what is shuffled; fetch: a file of the data set."""
        if not self.id:
            names = {self.renamed: "label"}
            return lambda raw, index: {names.get(key, key): one for key, one in raw.items() if key != "place"}
        facts = self.facts(task)
        change = _OF_ALL[self.change](task, raws, fetch) if self.change in _OF_ALL else None
        letters, seeds = _places(len(raws), self.one_more) if self.shuffled else ([], [])

        def make(raw: Raw, index: int) -> Row:
            row = self._row(raw, {**facts, "index": index})
            if self.shuffled:
                row["label"] = letters[index]
                row["prompts"][0] |= self._options(raw, letters[index], seeds[index])
            if change is not None:
                change(row, raw, index)
            _change(self.change, row, raw, task)
            return row

        return make

    def _row(self, raw: Raw, facts: Mapping[str, Any]) -> dict[str, Any]:
        known = {**raw, **{name: _literal(raw[name]) for name in self.literals}, **facts}

        def filled(cells: Mapping[str, str], *, nulls: bool = False) -> dict[str, Any]:
            """nulls: a column that is not there is null."""
            found: dict[str, Any] = {}
            for name, cell in cells.items():
                column = cell.removeprefix("?")
                if templates.is_template(cell):
                    if (value := templates.native(cell)(known)) is not None:
                        found[name] = value
                elif nulls:
                    found[name] = raw.get(column)
                elif column in raw or column == cell:
                    found[name] = raw[column]
            return found

        about = self.metadata if isinstance(self.metadata, Mapping) else {one: one for one in self.metadata}
        language: str = facts["language"]
        row: dict[str, Any] = {
            **filled({"id": self.id}),
            "prompts": [filled(self.prompt)],
            "metadata": {"language": language, **filled(about, nulls=True)},
            **filled(self.also),
            **filled({"label": self.label} if self.label else {}),
        }
        if self.labels:
            row["label"] = self.labels[language][bool(raw["label"])]
        if self.images:
            row["images"] = [one for name in self.images for one in _images(raw.get(name))]
        if self.image_file:
            row["image_files"] = [raw[self.image_file]]
        return row

    def _options(self, raw: Raw, letter: str, seed: int) -> dict[str, str]:
        wrong = [str(raw[column]).strip() for column in self.shuffled.values()]
        right = wrong.pop(LETTERS.index(raw[self.answer]) if self.answer else 0)
        random.Random(seed).shuffle(wrong)
        wrong.insert(LETTERS.index(letter), right)
        return dict(zip(self.shuffled, wrong, strict=True))


def plain_name(task: SeaTask) -> str:
    """The name without what marks a twin."""
    return task.name.removesuffix("-logprobs")


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


def _places(count: int, one_more: bool) -> tuple[list[str], list[int]]:
    """The letter of each row's right answer, and the seed that shuffles its wrong ones."""
    letters = list("ABCD" * (count // 4 + 1 if one_more else -(-count // 4)))
    seeds = random.Random(SHUFFLED).sample(range(2**31 - 1), count)
    random.Random(SHUFFLED).shuffle(letters)
    return letters, seeds


# What changes a row that the table made, by `change`

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


def _change(kind: str, row: dict[str, Any], raw: Raw, task: SeaTask) -> None:
    """What else becomes of a row by itself."""
    match kind:
        case "ifeval":
            row["kwargs"] = [dict(one) for one in raw["kwargs"]]
            if raw["key"] == 1174:  # the data lack this setting of the instruction
                row["kwargs"][0]["let_relation"] = "at least"
        case "hallusionbench" if not task.name.endswith("_image"):
            row["images"] = []
        case "erqa":
            asked = " Please answer directly with only the letter of the correct option and nothing else."
            text = raw["question"].removesuffix(asked).replace(" Choices:", "\nChoices:")
            row["prompts"] = [{"question": re.sub(" (A|B|C|D). ", r"\n\1.  ", text)}]
        case "marvl" if task.language == "zh":
            try:
                from opencc import OpenCC  # type: ignore[import-not-found]
            except ImportError:
                raise MissingExtra("Simplified characters of MARVL", "hub", "opencc") from None
            row["prompts"][0]["hypothesis"] = OpenCC("t2s.json").convert(raw["hypothesis"])
        case "mathvista":
            row["metadata"] |= raw["metadata"]


_OF_ALL: Mapping[str, Callable[[SeaTask, Sequence[Raw], Fetch], Change]] = {
    "world_cuisine": _world_cuisine, "livecodebench": _livecodebench, "aa_lcr": _aa_lcr,
}  # fmt: skip
"""Changes that need more than the row."""

LOADERS: Mapping[tuple[str, str], Loader] = {
    (name.rpartition(":")[0], name.rpartition(":")[2]): Loader(**entry)
    for name, entry in tomllib.loads(
        files(__package__).joinpath("loaders.toml").read_text(encoding="utf-8")
    ).items()
}
LOCAL = Loader(local=True)
"""A file of rows in SEA-HELM's own form."""
FOREIGN = Loader(foreign=True)
