"""Rows of data for a reader of its own: the rows of files, or of a data set of the hub."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, DatasetError, check_known
from evalwright.tasks.datasets.copies import (
    FIRST_FETCH,
    copy_of_file,
    copy_of_hub,
    file_of_hub,
    first_fetched,
)
from evalwright.tasks.datasets.jsonl_rows import (
    InlineSource,
    Row,
    Rows,
    Source,
    file_source,
)
from evalwright.tasks.template_limits import TemplateError

_KEYS = ("path", "format", "rows", "hub", "config", "split", "revision")


class DatasetRows(Sequence[Row]):
    """Rows that stay on disk and are read when they are asked for, as `open_dataset` gives them.

    A sequence of mappings. `where` says in which file and line a row is, `place` how many rows of
    the data come before it.

    Args:
        sources: the files or lists that the rows come from, in order.
        keep: whether a row is one of these; None keeps all.
        first: reads only this many rows of the data; None reads all.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        keep: Callable[[Row], bool] | None,
        first: int | None,
    ) -> None:
        self._rows = Rows(sources)
        self._places = array("Q")
        for place, (row, _) in enumerate(islice(self._rows.scan(), first)):
            try:
                is_kept = keep is None or keep(row)
            except TemplateError as error:
                raise DatasetError(f"{self._rows.place()}: {error}.") from None
            if is_kept:
                self._rows.keep()
                self._places.append(place)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return self._rows[range(len(self))[index]]

    def __iter__(self) -> Iterator[Row]:
        return (self._rows[index] for index in range(len(self)))

    def where(self, index: int) -> str:
        """Where a row stands, for errors: "file, row 1,234"."""
        return self._rows.where(index)

    def place(self, index: int) -> int:
        """Which of all rows a row is, those that were not kept counted too."""
        return self._places[index]


def open_dataset(
    dataset: Mapping[str, Any],
    *,
    label: str | Sequence[str] = "",
    keep: Callable[[Row], bool] | None = None,
    first: int | None = None,
) -> DatasetRows:
    """Open data as the `dataset` of a task file does.

    Args:
        dataset: `path`, a file of JSON lines or a list of them, with `format: json` a file with one
            list; `hub`, `config`, `split` and `revision` (by default the one of the first fetch,
            which is then kept to); or `rows`.
        label: what errors call the data, or each of several files, in place of their names.
        keep: says of a row whether it is one of these.
        first: look at so many rows alone.

    Returns:
        The rows.

    Raises:
        DatasetError: the data cannot be read; OutOfReach where they cannot be fetched now.
        MissingExtra: a library is not installed.
    """
    check_known("key of a dataset", dataset, _KEYS)
    return DatasetRows(_sources(dataset, label), keep, first)


def _sources(dataset: Mapping[str, Any], label: str | Sequence[str]) -> list[Source]:
    labels = [label] if isinstance(label, str) else list(label)
    if "rows" in dataset:
        return [InlineSource(dataset["rows"], labels[0] or "The rows")]
    if "path" in dataset:
        named = dataset["path"]
        paths = named if isinstance(named, list | tuple) else [named]
        labels = labels if len(labels) == len(paths) else labels * len(paths)
        return [
            file_source(_as_lines(Path(path), dataset.get("format")), label_of_path)
            for path, label_of_path in zip(paths, labels, strict=False)
        ]
    if "hub" not in dataset:
        raise ConfigurationError("A dataset has `path`, `hub` or `rows`.")
    hub = str(dataset["hub"])
    split = str(dataset.get("split") or "test")
    config = dataset.get("config") or None
    copy = copy_of_hub(hub, _revision(hub, dataset.get("revision")), config, split)
    return [file_source(copy, labels[0] or f"{hub} ({split})")]


def _as_lines(path: Path, kind: str | None) -> Path:
    return copy_of_file(path, "json", None) if kind == "json" else path


def _revision(hub: str, revision: str | None) -> str:
    return first_fetched(hub) if revision in (None, FIRST_FETCH) else str(revision)


def hub_file(hub: str, name: str, revision: str | None = None) -> Path:
    """Fetch one file of a data set of the hub.

    Args:
        hub: the data set.
        name: the file.
        revision: a commit; by default the one of the first fetch, which is then kept to.

    Returns:
        Where the file lies here.

    Raises:
        DatasetError: there is no such file; OutOfReach where it cannot be fetched now.
        MissingExtra: a library is not installed.
    """
    return file_of_hub(hub, _revision(hub, revision), name)
