"""The rows of a task in SEA-HELM's form, and its examples: files of its folder, or data sets of the hub.

Files are read inside the folder only. A data set of the hub comes without a revision in the files: the one that is found at the first
fetch is used from then on. Rows stay on disk, and are made and checked one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evalwright.compat.sea_helm.loaders import FOREIGN, LOADERS, LOCAL, Loader, Raw
from evalwright.compat.sea_helm.task import Row, SeaTask, placeholders
from evalwright.core.errors import DatasetError, MissingExtra, TaskError
from evalwright.tasks.datasets.copies import copy_of_file, copy_of_hub, first_fetched
from evalwright.tasks.datasets.rows import FileSource, Rows, file_source
from evalwright.tasks.files import is_within
from evalwright.tasks.template_limits import TemplateError
from evalwright.tasks.yaml_files import kind_of, shown

ROLES = ("system", "user", "assistant")
_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*")
_KINDS = {"world_cuisine_task1": (1, 3, 4), "world_cuisine_task2": (2,)}
"""The prompts of World Cuisine, in the order of its rows."""


class OutOfReach(DatasetError):
    """Data of the hub that cannot be fetched now."""


class Table(Sequence[Any]):
    """Rows of files that are read, made and checked when they are asked for; without `make`, raw rows with their `place`.

    order: which of the kept rows these are. null_is_missing: a placeholder that is null is as one that is not there.
    """

    def __init__(
        self,
        task: SeaTask,
        sources: Sequence[FileSource],
        keep: Callable[[Raw], bool] | None = None,
        first: int | None = None,
    ) -> None:
        """keep: which rows these are; first: look at so many alone."""
        self._rows, self._places = Rows(sources), list[int]()
        for place, (row, _, where, use) in enumerate(self._rows.scan()):
            if place == first:
                break
            try:
                wanted = keep is None or keep(row)
            except TemplateError as error:
                raise DatasetError(f"{where}: {error}.") from None
            if wanted:
                use()
                self._places.append(place)
        self._task = task
        self.order: Sequence[int] = range(len(self._rows))
        self.make: Callable[[Raw, int], Row] | None = None
        self.null_is_missing = False

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        kept = self.order[place]
        raw = {**self._rows[kept], "place": self._places[kept]}
        if self.make is None:
            return raw
        try:
            row = self.make(raw, place)
            if wrong := _wrong(self._task, row, self.null_is_missing):
                raise ValueError(wrong)
        except (LookupError, TypeError, ValueError, AttributeError, SyntaxError, TemplateError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            what = f"the row of '{self._task.name}' ({self._task.language}) cannot be used"
            raise DatasetError(f"{self._rows.where(kept)}: {what}: {reason}.") from None
        return row


def _wrong(task: SeaTask, row: Row, null_is_missing: bool) -> str:
    """Why a row cannot be asked, "" where it can. Raises TaskError for the task's template."""
    told = row.get("conversations")
    if not (turns := _turns(row)):
        return "it has no list of mappings at `prompts`"
    if not isinstance(row.get("metadata") or {}, Mapping):
        return f"it has {kind_of(row['metadata'])} at `metadata`, not a mapping"
    if isinstance(told, list):
        whole = [one for one in told if isinstance(one, Mapping) and one.get("content") is not None]
        if len(whole) < len(told) or not any(one.get("role") in ROLES for one in whole):
            return "it has no messages with a `role` and a `content` at `conversations`"
        return ""
    wanted = placeholders(task, "task_template") - {"answer_tag"}
    for turn in turns:
        there = {name for name, value in turn.items() if value is not None or not null_is_missing}
        if missing := sorted(wanted - there):
            return f"it has no '{missing[0]}', which the task's `task_template` asks for"
    return ""


def loader_of(task: SeaTask) -> Loader:
    """What reads a task's rows: an entry of the table, the form of local files, or a class of the folder."""
    return LOADERS.get(task.loaded_by, FOREIGN) if task.loaded_by else LOCAL


def load_rows(task: SeaTask, *, tokenizer: str = "") -> Sequence[Row]:
    """All rows of a task. tokenizer: for the tasks whose texts are made to a length. Raises UsageError."""
    loader = loader_of(task)
    if loader.generated:
        from evalwright.compat.sea_helm.oneruler import oneruler_rows

        return oneruler_rows(task, tokenizer)
    rows = _foreign(task) if loader.foreign else _table(task, loader, "filepath")
    if not len(rows):
        raise DatasetError(f"The task '{task.name}' ({task.language}) has no rows.")
    return rows


def load_examples(task: SeaTask, count: int) -> Sequence[Row]:
    """The rows that `count` shots of a task are taken from, in their order; none where the task has none."""
    loader = loader_of(task)
    has_some = loader.examples and not loader.generated and not loader.files
    if not (count and has_some and task.here.get("example_filepath")):
        return ()
    if loader.foreign:
        return _foreign(task, count)
    first = count if loader.limited_early and task.published else None
    return _table(task, loader, "example_filepath", first)


def _foreign(task: SeaTask, examples: int = 0) -> Sequence[Row]:
    from evalwright.compat.sea_helm.foreign import foreign_rows

    rows = foreign_rows(task, examples)
    for place, row in enumerate(rows):
        if wrong := _wrong(task, row, not task.published):
            raise DatasetError(
                f"Row {place} of '{task.name}' ({task.language}), as its own class loads it, cannot be used: {wrong}."
            )
    return rows


def _table(task: SeaTask, loader: Loader, key: str, first: int | None = None) -> Table:
    named = task.here.get(key)
    if not isinstance(named, str) or not named:
        raise TaskError(f"The task '{task.name}' ({task.language}) names no data (`{key}`).")
    fetch, examples = partial(hub_file, named), key != "filepath"
    if loader.local or (examples and loader.local_examples):
        table = Table(task, [file_source(local_file(task, named))], first=first)
        make = (LOCAL if loader.local_examples else loader).maker(task, (), fetch)
        table.make = _whole(table, make) if task.published else make
        table.null_is_missing = not task.published
        return table
    table = Table(task, _fetched(task, loader, named, examples), loader.kept(task), first)
    if examples and loader.chosen:
        chosen = loader.chosen.get(loader.facts(task)["part"], ())
        table.order = [one for one in chosen if one < len(table)]
    elif loader.change == "world_cuisine":
        kinds = [raw.get("prompt_type") for raw in table]
        table.order = [one for kind in _KINDS[task.name] for one, own in enumerate(kinds) if own == kind]
    table.make = loader.maker(task, table, fetch)
    return table


def _fetched(task: SeaTask, loader: Loader, named: str, examples: bool) -> list[FileSource]:
    """The files of a data set of the hub. Raises OutOfReach, TaskError."""
    try:
        if loader.files:
            wanted = loader.files.get(task.name, ())
            return [file_source(hub_file(named, name), f"{named} ({name})") for name in wanted]
        config = loader.filled(loader.config, task)
        split = loader.filled(loader.examples if examples else loader.split, task)
        return [file_source(copy_of_hub(*pinned(named), config or None, split), f"{named} ({split})")]
    except (DatasetError, MissingExtra) as error:
        raise OutOfReach(str(error)) from None


def _whole(table: Table, make: Callable[[Raw, int], Row]) -> Callable[[Raw, int], Row]:
    """As published, a placeholder that only other rows of the file have is null: SEA-HELM makes a table of it, and sends "None"."""
    empty = {name: None for raw in table for turn in _turns(raw) for name in turn}

    def made(raw: Raw, index: int) -> Row:
        row = make(raw, index)
        return {**row, "prompts": [{**empty, **turn} for turn in _turns(row)]}

    return made


def _turns(row: Row) -> list[Mapping[str, Any]]:
    """The prompts of a row; none where it has no list of mappings."""
    turns = row.get("prompts")
    return turns if isinstance(turns, list) and all(isinstance(one, Mapping) for one in turns) else []


def local_file(task: SeaTask, name: str) -> Path:
    """A file of rows that a task names. Raises TaskError for one outside of the folder, DatasetError for one that is not there."""
    assert task.root is not None
    where = f"The task '{task.name}' ({task.language}) reads '{name[:200]}'"
    if "://" in name:
        raise TaskError(f"{where}: addresses are not opened.")
    path, folder = task.root / name, shown(task.root)
    if "\0" in name or not is_within(path, task.root):
        raise TaskError(f"{where}, which is outside of its folder '{folder}' (links followed), or hidden.")
    try:
        there = path.is_file()
    except OSError:  # a name that is too long
        there = False
    if not there:
        raise DatasetError(f"{where}, which does not exist in '{folder}' or is not a file.")
    with path.open("rb") as file:
        start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    return copy_of_file(path, "json", None) if start.startswith(b"[") else path


def pinned(repository: str) -> tuple[str, str]:
    """A data set of the hub with its revision: that of the first fetch. Raises TaskError, DatasetError, MissingExtra."""
    if not _HUB_ID.fullmatch(repository) or ".." in repository:
        raise TaskError(
            f"'{repository[:200]}' is no data set of the hub (OWNER/NAME), and nothing else is opened here."
        )
    return repository, first_fetched(repository)


def hub_file(repository: str, name: str) -> Path:
    """A single file of a data set of the hub, at its revision. Raises DatasetError."""
    owner, revision = pinned(repository)
    try:
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(owner, name, repo_type="dataset", revision=revision))
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise DatasetError(
            f"The file '{name}' of the dataset '{repository}' cannot be fetched: {reason}."
        ) from None
