"""From a task file's `dataset` and `where` to rows: which files, in which form, and which of their rows."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from evalwright.core.errors import DatasetError
from evalwright.tasks import schema, templates
from evalwright.tasks.datasets.copies import copy_of_file, copy_of_hub
from evalwright.tasks.datasets.formats import SUFFIXES, read_rows
from evalwright.tasks.datasets.rows import InlineSource, Row, Rows, Source, file_source
from evalwright.tasks.yaml_files import Document, KeyPath, kind_of, shown


def open_sources(dataset: schema.Dataset, document: Document, at: KeyPath) -> list[Source]:
    """The JSONL behind a dataset; other formats are copied first. Raises errors that name the file or the line."""
    if dataset.rows is not None:
        return [InlineSource(dataset.rows, f"{document.at((*at, 'rows'))} (rows)")]
    if dataset.hub is not None:
        assert dataset.revision is not None
        split = dataset.split or "test"
        path = copy_of_hub(dataset.hub, dataset.revision, dataset.config, split)
        return [file_source(path, f"{dataset.hub} ({split})")]
    return [_open_file(path, dataset, document, at) for path in _files(dataset, document, at)]


def file_rows(path: Path) -> Iterator[Row]:
    """The rows of a data file whose name says its format, one by one."""
    kind = SUFFIXES[path.suffix.lower()]
    if kind == "jsonl":
        return (row for row, *_ in Rows([file_source(path)]).scan())
    return (row for _, row in read_rows(path, kind))


def _files(dataset: schema.Dataset, document: Document, at: KeyPath) -> list[Path]:
    found: list[Path] = []
    for index, name in enumerate(dataset.path or []):
        place = (*at, "path", index)
        pattern = document.folder(place) / name
        fixed = list(takewhile(lambda part: not glob.has_magic(part), pattern.parts))
        document.allowed(place, Path(*fixed))
        if ".." in pattern.parts[len(fixed) :]:
            raise document.error(place, f"'{name}' has '..' after a pattern; name the folder instead.")
        if not glob.has_magic(name):
            if not pattern.is_file():
                kind = "is a folder, not a file" if pattern.is_dir() else "does not exist"
                raise document.error(place, f"the data file '{shown(pattern)}' {kind}.")
            found.append(pattern)
            continue
        matches = sorted(Path(name) for name in glob.glob(str(pattern), recursive=True))  # noqa: PTH207
        matches = [document.allowed(place, match) for match in matches if match.is_file()]
        if not matches:
            raise document.error(place, f"no file matches '{shown(pattern)}'.")
        found.extend(matches)
    return list(dict.fromkeys(found))


def _open_file(path: Path, dataset: schema.Dataset, document: Document, at: KeyPath) -> Source:
    kind = dataset.format or SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise document.error(
            (*at, "path"),
            f"the name '{path.name}' does not say its format; add `format: jsonl`, json, csv, tsv, parquet or xlsx.",
        )
    if dataset.key is not None and kind not in ("json", "xlsx"):
        raise document.error(
            (*at, "key"),
            f"`key` can only be used with JSON files and workbooks, and '{path.name}' is {kind}.",
        )
    if kind == "jsonl":
        return file_source(path)
    return file_source(copy_of_file(path, kind, dataset.key), shown(path))


class Filter:
    """The rows that `where` wants: columns that equal a value or are one of a list, or an expression.

    Raises DatasetError where a row lacks the column.
    """

    def __init__(
        self, where: schema.Where, variables: Mapping[str, Any], document: Document, at: KeyPath
    ) -> None:
        self._at = document.at(at)
        self._columns: list[tuple[str, tuple[Any, ...]]] = []
        self._condition: Callable[[Mapping[str, Any]], bool] | None = None
        self._variables = dict(variables)
        if isinstance(where, str):
            try:
                self._condition = templates.condition(where)
            except templates.TemplateError as error:
                raise document.error(at, f"{error}.") from None
        for name, wanted in (where or {}).items() if not isinstance(where, str) else ():
            values = wanted if isinstance(wanted, list) else [wanted]
            if any(isinstance(value, Mapping | list) for value in values):
                raise document.error(
                    (*at, name), f"`where.{name}` is a value or a list of values, not {kind_of(wanted)}."
                )
            self._columns.append((name, tuple(values)))

    def __bool__(self) -> bool:
        return bool(self._columns) or self._condition is not None

    def wants(self, row: Row, where: str) -> bool:
        """Whether to keep a row; `where` names it in errors."""
        for name, values in self._columns:
            value = _column(row, name, where, self._at)
            if not any(_same(value, wanted) for wanted in values):
                return False
        if self._condition is not None:
            try:
                return self._condition({"row": row, **row, **self._variables})
            except templates.TemplateError as error:
                reason = templates.missing_column(error.missing, row) if error.missing else str(error)
                raise DatasetError(f"{where}: `where` ({self._at}) cannot be decided: {reason}.") from None
        return True

    def skipper(self) -> Callable[[bytes], bool] | None:
        """A quick look at a raw line that drops most rows of other subjects without parsing them.

        Sound only for plain text values, and where no character is written as an escape.
        """
        needles: list[bytes] = []
        for _, values in self._columns:
            if (
                len(values) == 1
                and isinstance(values[0], str)
                and re.fullmatch(r"[A-Za-z0-9_ -]{2,}", values[0])
            ):
                needles.append(json.dumps(values[0]).encode())
        if not needles:
            return None
        return lambda line: any(needle not in line for needle in needles) and b"\\u00" not in line


def _column(row: Row, name: str, where: str, at: str) -> Any:
    if name in row:
        return row[name]
    value: Any = row
    for step in name.split("."):
        if not isinstance(value, Mapping) or step not in value:
            raise DatasetError(f"{where}: `where` ({at}): {templates.missing_column(name, row)}.")
        value = value[step]
    return value


def _same(value: Any, wanted: Any) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return bool(value == wanted)
