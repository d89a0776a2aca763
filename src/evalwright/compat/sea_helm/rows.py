"""The rows of a task in SEA-HELM's form, and its examples: files of its folder, or data sets of the hub.

Files are read inside the folder only. A data set of the hub comes without a revision in the files: the one that is found at the first
fetch is used from then on. Rows stay on disk and are made one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evalwright.compat.sea_helm.loaders import LOADERS, LOCAL, Loader, Raw
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.errors import DatasetError, TaskError
from evalwright.tasks.datasets.copies import copy_of_file, copy_of_hub, first_fetched
from evalwright.tasks.datasets.rows import Rows, file_source
from evalwright.tasks.files import is_within
from evalwright.tasks.yaml_files import shown

_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*")
_KINDS = {"world_cuisine_task1": (1, 3, 4), "world_cuisine_task2": (2,)}
"""The prompts of World Cuisine, in the order of its rows."""


class Table(Sequence[Any]):
    """Rows of files that are read, and made, when they are asked for. make: from a raw row and its place; what: what they are, for errors.

    places: of each row in the files.
    """

    def __init__(self, rows: Rows, places: Sequence[int], what: str) -> None:
        self._rows, self.places, self._what = rows, places, what
        self.order: Sequence[int] = range(len(rows))
        self.make: Callable[[Raw, int], Row] | None = None

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        raw = {**self._rows[self.order[place]], "place": self.places[self.order[place]]}
        if self.make is None:
            return raw
        where = f"Row {place + 1:,} of {self._what}"
        try:
            row = self.make(raw, place)
        except (LookupError, TypeError, ValueError, AttributeError, SyntaxError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise DatasetError(f"{where} cannot be used: {reason}.") from None
        turns = row.get("prompts")
        if not (isinstance(turns, list) and turns and all(isinstance(one, Mapping) for one in turns)):
            raise DatasetError(f"{where} has no list of mappings at `prompts`.")
        return row


def loader_of(task: SeaTask) -> Loader:
    """What reads a task's rows. Raises TaskError for a class that is not known."""
    named = task.loaded_by
    if named is None:
        return LOCAL
    if named not in LOADERS:
        raise TaskError(
            f"The task '{task.name}' reads its data with the class {named[1]} of '{named[0]}', which is not known here, and its Python is "
            "not run. Keep the rows as a JSON Lines file in SEA-HELM's form, and leave out `dataloader_class`."
        )
    return LOADERS[named]


def load_rows(task: SeaTask, *, tokenizer: str = "") -> Sequence[Row]:
    """All rows of a task. tokenizer: for the tasks whose texts are made to a length. Raises UsageError."""
    loader = loader_of(task)
    if loader.generated:
        from evalwright.compat.sea_helm.oneruler import oneruler_rows

        return oneruler_rows(task, tokenizer)
    return _table(task, loader, "filepath", loader.split, local=loader.local)


def load_examples(task: SeaTask, count: int) -> Sequence[Row]:
    """The rows that `count` shots of a task are taken from, in their order; none where the task has none."""
    loader = loader_of(task)
    if (
        not count
        or not task.here.get("example_filepath")
        or not loader.examples
        or loader.generated
        or loader.files
    ):
        return ()
    local = loader.local or loader.local_examples
    first = count if loader.limited_early and task.published else None
    return _table(task, loader, "example_filepath", loader.examples, local=local, first=first)


def _table(
    task: SeaTask, loader: Loader, key: str, split: str, *, local: bool, first: int | None = None
) -> Table:
    place = task.here.get(key)
    if not isinstance(place, str) or not place:
        raise TaskError(f"The task '{task.name}' ({task.language}) names no data (`{key}`).")
    fetch = partial(hub_file, place)
    if local:
        paths = [local_file(task, place)]
    elif loader.files:
        paths = [fetch(name) for name in loader.files.get(task.name, ())]
    else:
        paths = [
            copy_of_hub(
                *pinned(place), loader.filled(loader.config, task) or None, loader.filled(split, task)
            )
        ]
    examples = key != "filepath"
    what = f"the {'examples' if examples else 'data'} of '{task.name}' ({task.language})"
    table = _read(paths, what, None if local else loader.kept(task), first)
    if examples and loader.chosen:
        table.order = [one for one in loader.chosen.get(loader.category(task), ()) if one < len(table)]
    elif loader.make == "world_cuisine":
        kinds = [raw.get("prompt_type") for raw in table]
        table.order = [one for kind in _KINDS[task.name] for one, own in enumerate(kinds) if own == kind]
    if local:
        own = LOCAL if loader.local_examples else loader
        table.make = _whole(table, own.maker(task, (), fetch))
    else:
        table.make = loader.maker(task, table, fetch)
    return table


def _read(paths: Sequence[Path], what: str, keep: Callable[[Raw], bool] | None, first: int | None) -> Table:
    """The rows of files that are kept. first: look at so many alone."""
    rows, places = Rows([file_source(path) for path in paths]), []
    for place, (row, _, where, use) in enumerate(rows.scan()):
        if first is not None and place >= first:
            break
        try:
            wanted = keep is None or keep(row)
        except KeyError as error:
            raise DatasetError(f"{where}: the column {error} is not there.") from None
        if wanted:
            use()
            places.append(place)
    return Table(rows, places, what)


def _whole(table: Table, make: Callable[[Raw, int], Row]) -> Callable[[Raw, int], Row]:
    """Of a file of the folder: a placeholder that only other rows have is null, as in the table that SEA-HELM makes of the file."""
    empty: dict[str, None] = {}
    for raw in table:
        for turn in raw["prompts"] if isinstance(raw.get("prompts"), list) else ():
            empty.update(dict.fromkeys(turn if isinstance(turn, Mapping) else ()))

    def made(raw: Raw, index: int) -> Row:
        row = dict(make(raw, index))
        if isinstance(turns := row.get("prompts"), list):
            row["prompts"] = [{**empty, **one} if isinstance(one, Mapping) else one for one in turns]
        return row

    return made


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
