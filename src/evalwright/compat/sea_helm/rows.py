"""The rows of a task in SEA-HELM's form, and its examples: files of its folder, or data sets of the hub.

Files are read inside the folder only. A data set of the hub comes without a revision in the files: the one that is found at the first
fetch is kept under `$EVALWRIGHT_HOME/sea-helm` and used from then on. Rows stay on disk and are made one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from evalwright.bounded import from_json
from evalwright.compat.sea_helm.loaders import LOADERS, LOCAL, OF_FILES, Loader, Raw, cuisine
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.errors import DatasetError, MissingExtra, TaskError
from evalwright.core.private import home_folder, ordinary
from evalwright.tasks.datasets.copies import copy_of_file, copy_of_hub
from evalwright.tasks.datasets.rows import Rows, file_source
from evalwright.tasks.files import is_within, write_text
from evalwright.tasks.yaml_files import shown

_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*")


class Table(Sequence[Row]):
    """Rows that are made when they are asked for. make: from a raw row and its place; what: what they are, for errors."""

    def __init__(self, raw: Sequence[Raw], make: Callable[[Raw, int], Row], what: str) -> None:
        self._raw = raw
        self._make = make
        self._what = what

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        where = f"Row {place + 1:,} of {self._what}"
        try:
            row = self._make(self._raw[place], place)
        except (LookupError, TypeError, ValueError, AttributeError, SyntaxError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise DatasetError(f"{where} cannot be used: {reason}.") from None
        turns = row.get("prompts")
        if not (isinstance(turns, list) and turns and all(isinstance(one, Mapping) for one in turns)):
            raise DatasetError(f"{where} has no list of mappings at `prompts`.")
        return row

    def __iter__(self) -> Iterator[Row]:
        return (self[place] for place in range(len(self)))


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
    what = f"the data of '{task.name}' ({task.language})"
    if loader.generated:
        from evalwright.compat.sea_helm.oneruler import CODE_POINTS, oneruler_rows

        return oneruler_rows(task, tokenizer or CODE_POINTS)
    place = task.here.get("filepath")
    raws = partial(_raw, task, loader, place, loader.split, local=loader.local)
    made: Sequence[Row] | None = None
    try:
        if loader.files:
            made = OF_FILES[loader.files](task, partial(hub_file, str(place)), raws)
        elif loader.make == "world_cuisine":
            made = cuisine(task, raws())
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DatasetError(f"A row of {what} cannot be used: {type(error).__name__} {error}.") from None
    if made is not None:
        return made
    raw = raws()
    return Table(raw, loader.maker(task, len(raw)), what)


def load_examples(task: SeaTask, count: int) -> Sequence[Row]:
    """The rows that `count` shots of a task are taken from, in their order; none where the task has none."""
    loader = loader_of(task)
    place = task.here.get("example_filepath")
    if not count or not place or not loader.examples or loader.generated or loader.files:
        return ()
    local = loader.local or loader.local_examples
    first = count if loader.limited_early and task.published else None
    raw = _raw(task, loader, place, loader.examples, local=local, first=first)
    if loader.chosen:
        raw = [raw[one] for one in loader.chosen.get(loader.category(task), ()) if one < len(raw)]
    make = (LOCAL if loader.local_examples else loader).maker(task, len(raw))
    return Table(raw, make, f"the examples of '{task.name}' ({task.language})")


def _raw(
    task: SeaTask, loader: Loader, place: Any, split: str, *, local: bool, first: int | None = None
) -> Sequence[Raw]:
    if not isinstance(place, str) or not place:
        raise TaskError(f"The task '{task.name}' ({task.language}) names no data (`filepath`).")
    if local:
        return _Local(_rows(local_file(task, place)))
    config = loader.filled(loader.config, task) or None
    path = copy_of_hub(*pinned(place), config, loader.filled(split, task))
    return _rows(path, loader.kept(task), first)


def _rows(path: Path, keep: Callable[[Raw], bool] | None = None, first: int | None = None) -> Sequence[Raw]:
    """Rows of a file, those that are kept with their `place` in it. first: look at so many alone."""
    rows, places = Rows([file_source(path)]), []
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
    return _Kept(rows, places)


class _Kept(Sequence[Raw]):
    def __init__(self, rows: Rows, places: Sequence[int]) -> None:
        self.rows, self.places = rows, places

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return {**self.rows[index], "place": self.places[index]}


class _Local(Sequence[Raw]):
    """Rows of a file of the folder. A placeholder that only other rows have is null, as in the table that SEA-HELM makes of the file."""

    def __init__(self, kept: Any) -> None:
        self._rows: Rows = kept.rows
        self._empty: dict[str, None] = {}
        for row in self._rows:
            for turn in row["prompts"] if isinstance(row.get("prompts"), list) else ():
                self._empty.update(dict.fromkeys(turn if isinstance(turn, Mapping) else ()))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        row = self._rows[index]
        if isinstance(turns := row.get("prompts"), list):
            row["prompts"] = [{**self._empty, **one} if isinstance(one, Mapping) else one for one in turns]
        return row


def local_file(task: SeaTask, name: str) -> Path:
    """A file of rows that a task names. Raises TaskError for one outside of the folder, DatasetError for one that is not there."""
    assert task.root is not None
    where = f"The task '{task.name}' ({task.language}) reads '{name[:200]}'"
    if "://" in name:
        raise TaskError(f"{where}: addresses are not opened.")
    path = task.root / name
    if "\0" in name or not is_within(path, task.root):
        raise TaskError(
            f"{where}, which is outside of its folder '{shown(task.root)}' (links followed), or hidden."
        )
    if not path.is_file():
        raise DatasetError(f"{where}, which does not exist in '{shown(task.root)}' or is no file.")
    with path.open("rb") as file:
        start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    return copy_of_file(path, "json", None) if start.startswith(b"[") else path


def pinned(repository: str) -> tuple[str, str]:
    """A data set of the hub with its revision: that of the first fetch. Raises TaskError, DatasetError, MissingExtra."""
    if not _HUB_ID.fullmatch(repository) or ".." in repository:
        raise TaskError(
            f"'{repository[:200]}' is no data set of the hub (OWNER/NAME), and nothing else is opened here."
        )
    kept = home_folder() / "sea-helm" / "revisions.json"
    known: dict[str, str] = {}
    with suppress(OSError, ValueError, TypeError):
        known = dict(from_json(ordinary(kept).read_text(encoding="utf-8")))
    if repository not in known:
        known[repository] = _newest(repository)
        write_text(kept.resolve(), json.dumps(known, indent=1, sort_keys=True))
    return repository, str(known[repository])


def _newest(repository: str) -> str:
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise MissingExtra(f"The dataset '{repository}'", "hub", "huggingface_hub") from None
    try:
        return str(HfApi().dataset_info(repository).sha)
    except Exception as error:
        raise DatasetError(
            f"The revision of the dataset '{repository}' cannot be found: {_first_line(error)}."
        ) from None


def hub_file(repository: str, name: str) -> Path:
    """A single file of a data set of the hub, at its revision. Raises DatasetError."""
    owner, revision = pinned(repository)
    try:
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(owner, name, repo_type="dataset", revision=revision))
    except Exception as error:
        raise DatasetError(
            f"The file '{name}' of the dataset '{repository}' cannot be fetched: {_first_line(error)}."
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
