"""The rows of a task in SEA-HELM's form, and its examples: files of its folder, or data sets of the
hub, by the table `loaders.toml`.

Files are read inside the folder only. A data set of the hub comes without a revision in the files:
the one that is found at the first fetch is used from then on. Rows stay on disk, and are made and
checked one by one. Options are shuffled with the published seeds, by Python's own generator and
numpy's, so that every letter is the published one.
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
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from evalwright.compat.sea_helm.folder_files import assigned, local_file
from evalwright.compat.sea_helm.placeholders import pieces
from evalwright.compat.sea_helm.sea_task import Class, Row, SeaTask, parsed_json
from evalwright.extend import (
    DatasetError,
    DatasetRows,
    MissingExtra,
    OutOfReach,
    TaskError,
    hub_file,
    open_dataset,
    template_value,
)

Raw = Mapping[str, Any]
Fetch = Callable[[str], Path]
"""A single file of the task's data set, here."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SHUFFLED = 976843
CUISINE = 3722236
"""The seeds of options: of GPQA and Global-MMLU, and of World Cuisine."""
_LONGEST_LITERAL = 200_000
_MOST_TURNS = 100
_ABSENT = object()


class Loader(SimpleNamespace):
    """An entry of the table, as its first lines explain, with what they say where it says
    nothing.
    """

    def facts(self, task: SeaTask) -> dict[str, Any]:
        """What templates know of a task; part: what its name says of the part of the data."""
        name = task.plain_name
        part = task.plain_name.removeprefix(self.prefix)
        words = {"named": self.named, "labels": self.labels}
        return {
            "part": part,
            "language": task.language,
            "name": name,
            "published": task.published,
            **words,
        }

    def maker(
        self, task: SeaTask, raws: Sequence[Raw], fetch: Fetch
    ) -> Callable[[Raw, int], Row]:
        """What makes a row of a raw row and its place. raws: all of them, for what is shuffled;
        fetch: a file of the data set.
        """
        if not self.id:
            names = {self.renamed: "label"}
            return lambda raw, index: {
                names.get(key, key): column
                for key, column in raw.items()
                if key != "place"
            }
        facts = self.facts(task)
        added = [_options(self, len(raws))] if self.shuffled else []
        added += [_ADDED[self.adds](task, raws, fetch)] if self.adds else []

        def make(raw: Raw, index: int) -> Row:
            full_row = {**raw, **{name: _literal(raw[name]) for name in self.literals}}
            for more in added:
                full_row |= more(raw, index)
            return self._row(full_row, {**facts, "index": index})

        return make

    def _row(self, raw: Raw, facts: Mapping[str, Any]) -> dict[str, Any]:
        context = {**raw, **facts}

        def cell(text: str, otherwise: Any = _ABSENT) -> Any:
            """otherwise: what a column is that is not there; without it there is none only where
            the cell says that it may be so.
            """
            if "{{" in text or "{%" in text:
                rendered = template_value(text)(context)
                return _ABSENT if rendered is None else rendered
            column = text.removeprefix("?")
            return (
                raw[text]
                if column == text and otherwise is _ABSENT
                else raw.get(column, otherwise)
            )

        def filled(
            cells: Mapping[str, str], otherwise: Any = _ABSENT
        ) -> dict[str, Any]:
            rendered_cells = (
                (name, cell(text, otherwise)) for name, text in cells.items()
            )
            return {
                name: value for name, value in rendered_cells if value is not _ABSENT
            }

        about = (
            self.metadata
            if isinstance(self.metadata, Mapping)
            else {column: column for column in self.metadata}
        )
        row: dict[str, Any] = {
            **filled({"id": self.id}),
            "prompts": [filled(self.prompt)],
            "metadata": {"language": facts["language"], **filled(about, None)},
            **filled(self.also),
            **filled({"label": self.label} if self.label else {}),
        }
        if self.images:
            row["images"] = [
                image
                for name in self.images
                for image in _images(cell(name, None), name[0] == "?")
            ]
        return row


def _literal(text: Any) -> Any:
    """A list that is written as Python."""
    if not isinstance(text, str) or len(text) > _LONGEST_LITERAL:
        raise ValueError("a column is not the text of a list, or too long")
    try:
        return ast.literal_eval(text)
    except (MemoryError, RecursionError):
        raise ValueError("a column is nested too deeply") from None


def _images(value: Any, optional: bool) -> list[str]:
    """The images of a column, as base64; one that has to be there and is not is a text that is no
    image.
    """
    if isinstance(value, list):
        return [image for element in value for image in _images(element, optional)]
    data = value.get("bytes") if isinstance(value, Mapping) else None
    text = (
        base64.b64encode(data).decode() if isinstance(data, bytes) else str(data or "")
    )
    return [] if optional and not text else [text]


# What cells of the table may name beside the columns of the data, by `adds`

Added = Callable[[Raw, int], Mapping[str, Any]]


def _options(loader: Loader, count: int) -> Added:
    """`placed`: the right option at the `letter` of a list that is shuffled, and the wrong ones
    around it by a seed for each row.
    """
    letters = list("ABCD" * (count // 4 + 1 if loader.one_more else -(-count // 4)))
    seeds = random.Random(SHUFFLED).sample(range(2**31 - 1), count)
    random.Random(SHUFFLED).shuffle(letters)

    def added(raw: Raw, index: int) -> Mapping[str, Any]:
        options = [str(raw[column]).strip() for column in loader.shuffled]
        right = options.pop(LETTERS.index(raw[loader.answer]) if loader.answer else 0)
        random.Random(seeds[index]).shuffle(options)
        options.insert(LETTERS.index(letters[index]), right)
        return {"placed": options, "letter": letters[index]}

    return added


def _world_cuisine(task: SeaTask, raws: Sequence[Raw], fetch: Fetch) -> Added:
    """`placed`: the right option at the `letter` of a list that is shuffled for each kind of
    prompt, which the raw rows are sorted by.
    """
    import numpy as np

    generator = np.random.default_rng(seed=CUISINE)
    kinds = [raw["prompt_type"] for raw in raws]
    places: list[int] = []
    for kind in dict.fromkeys(kinds):
        kind_places = [0, 1, 2, 3, 4] * (kinds.count(kind) // 5)
        generator.shuffle(kind_places)
        places += kind_places

    def added(raw: Raw, index: int) -> Mapping[str, Any]:
        options = list(raw["options"])
        options.insert(places[index], options.pop(raw["mcq_answer_index"]))
        return {"placed": options, "letter": LETTERS[places[index]]}

    return added


def _livecodebench(task: SeaTask, raws: Sequence[Raw], fetch: Fetch) -> Added:
    """What the tree's own loader asks for where a program reads its input, and where it has starter
    code (NUL stands for the code).
    """
    forms = []
    for value in assigned(task, str(task.config["dataloader_file"]), "format_prompt"):
        parts = value.values if isinstance(value, ast.JoinedStr) else [value]
        forms.append(
            "".join(
                str(part.value) if isinstance(part, ast.Constant) else "\0"
                for part in parts
            )
        )
    if len(forms) != 2:
        raise DatasetError(
            f"The two forms of '{task.name}' are not in"
            f" '{task.config['dataloader_file']}'."
        )

    def added(raw: Raw, index: int) -> Mapping[str, Any]:
        code = raw.get("starter_code", "")
        tests = parsed_json(raw["public_test_cases"])
        return {
            "format_prompt": forms[1].replace("\0", code) if code else forms[0],
            "func_name": parsed_json(raw["metadata"]).get("func_name"),
            "test_cases": {"public": tests, "private": raw["private_test_cases"]},
        }

    return added


def _aa_lcr(task: SeaTask, raws: Sequence[Raw], fetch: Fetch) -> Added:
    """Documents are read out of the archive; nothing is unpacked."""
    archive = zipfile.ZipFile(
        fetch("extracted_text/AA-LCR_extracted-text.zip"), metadata_encoding="utf-8"
    )
    parts = {
        unicodedata.normalize("NFC", entry.filename): entry
        for entry in archive.infolist()
    }

    def added(raw: Raw, index: int) -> Mapping[str, Any]:
        texts: list[str] = []
        for number, name in enumerate(raw["data_source_filenames"].split(";"), 1):
            inside = f"lcr/{raw['document_category']}/{raw['document_set_id']}/{name}"
            part = parts.get(unicodedata.normalize("NFC", inside))
            if part is None or part.file_size > 1 << 24:
                raise DatasetError(
                    f"The document '{inside}' of '{task.name}' is not in its archive,"
                    " or too large."
                )
            texts.append(
                f"BEGIN DOCUMENT {number}:\n{archive.read(part).decode()}\nEND DOCUMENT"
                f" {number}"
            )
        return {"documents_text": "\n\n".join(texts)}

    return added


def _erqa(raw: Raw, index: int) -> Mapping[str, Any]:
    instruction = (
        " Please answer directly with only the letter of the correct option and nothing"
        " else."
    )
    text = raw["question"].removesuffix(instruction).replace(" Choices:", "\nChoices:")
    return {"lines": re.sub(" (A|B|C|D). ", r"\n\1.  ", text)}


def _marvl(task: SeaTask, raws: Sequence[Raw], fetch: Fetch) -> Added:
    """Chinese in simplified characters."""
    if task.language != "zh":
        return lambda raw, index: {}
    try:
        from opencc import OpenCC  # type: ignore[import-not-found]
    except ImportError:
        raise MissingExtra("Simplified characters of MARVL", "hub", "opencc") from None
    simplified = OpenCC("t2s.json").convert
    return lambda raw, index: {"hypothesis": simplified(raw["hypothesis"])}


_ADDED: Mapping[str, Callable[[SeaTask, Sequence[Raw], Fetch], Added]] = {
    "world_cuisine": _world_cuisine,
    "livecodebench": _livecodebench,
    "aa_lcr": _aa_lcr,
    "erqa": lambda *_: _erqa,
    "marvl": _marvl,
}

_TABLE = tomllib.loads(
    Path(__file__).with_name("loaders.toml").read_text(encoding="utf-8")
)
_DEFAULTS = _TABLE.pop("defaults")
LOADERS: Mapping[Class, Loader] = {
    (file, name): Loader(**_DEFAULTS | entry)
    for (file, _, name), entry in (
        (key.rpartition(":"), entry) for key, entry in _TABLE.items()
    )
}
LOCAL = Loader(**_DEFAULTS | {"local": True})
FOREIGN = Loader(**_DEFAULTS | {"foreign": True})
"""A file of rows in SEA-HELM's own form, and a class of the folder."""
ROLES = ("system", "user", "assistant")
_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*")


class Table(Sequence[Any]):
    """Rows of files that are read, made and checked when they are asked for; without `make`, raw
    rows with their `place`.

    order: which of the rows in which order.
    """

    make: Callable[[Raw, int], Row] | None = None

    def __init__(self, task: SeaTask, rows: DatasetRows) -> None:
        self._task = task
        self._rows = rows
        self.order: Sequence[int] = range(len(rows))

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        row_index = self.order[place]
        raw = {**self._rows[row_index], "place": self._rows.place(row_index)}
        if self.make is None:
            return raw
        try:
            row = self.make(raw, place)
            wrong = wrong_with(self._task, row)
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            SyntaxError,
        ) as error:
            wrong = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        if wrong:
            subject = (
                f"the row of '{self._task.name}' ({self._task.language}) cannot be used"
            )
            raise DatasetError(f"{self._rows.where(row_index)}: {subject}: {wrong}.")
        return row


def wrong_with(task: SeaTask, row: Row) -> str:
    """Why a row cannot be asked, "" where it can. Raises TaskError for the task's template."""
    conversations = row.get("conversations")
    if not (turns := _turns(row)):
        return "it has no list of mappings at `prompts`"
    if not isinstance(row.get("metadata") or {}, Mapping):
        return f"it has {_kind_of(row['metadata'])} at `metadata`, not a mapping"
    if isinstance(conversations, list):
        messages = [
            message
            for message in conversations
            if isinstance(message, Mapping) and message.get("content") is not None
        ]
        if len(messages) < len(conversations) or not any(
            message.get("role") in ROLES for message in messages
        ):
            return "it has no messages with a `role` and a `content` at `conversations`"
        return ""
    if len(turns) > _MOST_TURNS:
        return (
            f"it has {len(turns):,} turns, more than the {_MOST_TURNS} that are asked"
        )
    missing = [
        name for turn in turns for name in _placeholders(task) if name not in turn
    ]
    return (
        f"it has no '{missing[0]}', which the task's `task_template` asks for"
        if missing
        else ""
    )


_KINDS = (
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a number"),
    (str, "text"),
    (list, "a list"),
)


def _kind_of(value: Any) -> str:
    return next(words for kind, words in _KINDS if isinstance(value, kind))


def _placeholders(task: SeaTask) -> Sequence[str]:
    """What a `task_template` asks of a row. Raises TaskError."""
    subject = f"The `task_template` of the task '{task.name}' ({task.language})"
    names = {
        name for _, name in pieces(task.template.get("task_template") or "", subject)
    }
    return sorted(name for name in names if name not in (None, "answer_tag"))


def unset(task: SeaTask, row: Row) -> str:
    """The placeholder for which a row of a file has null, so that it cannot be asked; "" where
    there is none. As published "None" is sent.
    """
    if (
        task.published
        or "conversations" in row
        or not (loader_of(task).local or loader_of(task).foreign)
    ):
        return ""
    return next(
        (
            name
            for turn in _turns(row)
            for name in _placeholders(task)
            if turn.get(name) is None
        ),
        "",
    )


def loader_of(task: SeaTask) -> Loader:
    """What reads a task's rows: an entry of the table, the form of local files, or a class of the
    folder.
    """
    return LOADERS.get(task.loaded_by, FOREIGN) if task.loaded_by else LOCAL


def load_rows(task: SeaTask, *, tokenizer: str = "") -> Sequence[Row]:
    """All rows of a task. tokenizer: for the tasks whose texts are made to a length.

    Raises UsageError.
    """
    loader = loader_of(task)
    if loader.generated:
        from evalwright.compat.sea_helm.oneruler import oneruler_rows

        return oneruler_rows(task, tokenizer)
    rows = _table(task, loader, "filepath")
    if not len(rows):
        raise DatasetError(f"The task '{task.name}' ({task.language}) has no rows.")
    return rows


def load_examples(task: SeaTask, count: int) -> Sequence[Row]:
    """The rows that `count` shots of a task are taken from, in their order; none where the task has
    none.
    """
    loader = loader_of(task)
    has_some = loader.examples and not loader.generated and not loader.files
    if not (count and has_some and task.language_settings.get("example_filepath")):
        return ()
    return _table(task, loader, "example_filepath", count)


def _table(task: SeaTask, loader: Loader, key: str, count: int = 0) -> Table:
    """count: how many examples are asked for."""
    first = count if loader.limited_early and task.published and count else None
    if loader.foreign:
        from evalwright.compat.sea_helm.foreign import foreign_rows

        label = f"What the loader of '{task.name}' gives"
        rows = foreign_rows(task, count, LOADERS)
        table = Table(task, open_dataset({"rows": rows}, label=label))
        table.make = loader.maker(task, (), Path)
        return table
    named = task.language_settings.get(key)
    if not isinstance(named, str) or not named:
        raise TaskError(
            f"The task '{task.name}' ({task.language}) names no data (`{key}`)."
        )
    fetch = partial(file_of_hub, named)
    examples = key != "filepath"
    if loader.local or (examples and loader.local_examples):
        table = Table(task, rows_of(local_file(task, named), first))
        make = (LOCAL if loader.local_examples else loader).maker(task, (), fetch)
        table.make = _with_all_placeholders(table, make) if task.published else make
        return table
    facts = loader.facts(task)
    condition = template_value(f"{{{{ {loader.keep or 'true'} }}}}")
    keep = (lambda row: bool(condition({**row, **facts}))) if loader.keep else None
    table = Table(task, _fetched(task, loader, named, examples, keep, first))
    if examples and loader.chosen:
        table.order = [
            row_index
            for row_index in loader.chosen.get(facts["part"], ())
            if row_index < len(table)
        ]
    elif loader.kinds:
        kinds = [raw.get("prompt_type") for raw in table]
        table.order = [
            row_index
            for kind in loader.kinds[facts["part"]]
            for row_index, row_kind in enumerate(kinds)
            if row_kind == kind
        ]
    table.make = loader.maker(task, table, fetch)
    return table


def _fetched(
    task: SeaTask,
    loader: Loader,
    named: str,
    examples: bool,
    keep: Callable[[Raw], bool] | None,
    first: int | None,
) -> DatasetRows:
    """The rows of a data set of the hub. Raises OutOfReach, TaskError."""
    try:
        if loader.files:
            file_names = loader.files.get(task.name, ())
            paths = [file_of_hub(named, name) for name in file_names]
            labels = [f"{named} ({name})" for name in file_names]
            return open_dataset({"path": paths}, label=labels, keep=keep, first=first)
        facts = loader.facts(task)
        config, split = (
            str(template_value(template)(facts))
            for template in (
                loader.config,
                loader.examples if examples else loader.split,
            )
        )
        dataset = {"hub": hub_id(named), "config": config, "split": split}
        return open_dataset(dataset, keep=keep, first=first)
    except (DatasetError, MissingExtra) as error:
        raise OutOfReach(str(error)) from None


def _with_all_placeholders(
    table: Table, make: Callable[[Raw, int], Row]
) -> Callable[[Raw, int], Row]:
    """As published, a placeholder that only other rows of the file have is null: SEA-HELM makes a
    table of it, and sends "None".
    """
    empty = {name: None for raw in table for turn in _turns(raw) for name in turn}

    def make_full(raw: Raw, index: int) -> Row:
        row = make(raw, index)
        return {**row, "prompts": [{**empty, **turn} for turn in _turns(row)]}

    return make_full


def _turns(row: Row) -> list[Mapping[str, Any]]:
    """The prompts of a row; none where it has no list of mappings."""
    turns = row.get("prompts")
    return (
        turns
        if isinstance(turns, list) and all(isinstance(turn, Mapping) for turn in turns)
        else []
    )


def rows_of(path: Path, first: int | None = None) -> DatasetRows:
    """The rows of a file: a list of JSON, or lines. first: look at so many alone."""
    with path.open("rb") as file:
        start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    is_list = start.startswith(b"[")
    return open_dataset(
        {"path": path, "format": "json" if is_list else "jsonl"}, first=first
    )


def hub_id(repository: str) -> str:
    """The name of a data set of the hub. Raises TaskError for what is none."""
    if not _HUB_ID.fullmatch(repository) or ".." in repository:
        raise TaskError(
            f"'{repository[:200]}' is no data set of the hub (OWNER/NAME), and nothing"
            " else is opened here."
        )
    return repository


def file_of_hub(repository: str, name: str) -> Path:
    """A single file of a data set of the hub, at its revision. Raises OutOfReach, TaskError."""
    try:
        return hub_file(hub_id(repository), name)
    except (DatasetError, MissingExtra) as error:
        raise OutOfReach(str(error)) from None
