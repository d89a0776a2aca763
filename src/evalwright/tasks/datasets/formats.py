"""CSV, TSV, JSON, Parquet and Excel workbooks as a stream of rows.

Each reader yields (row number, row) and names what is broken.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evalwright.core.errors import DatasetError, MissingExtra
from evalwright.core.private import LONGEST_LINE, lines_of
from evalwright.tasks.datasets.jsonl_rows import DECODER, NotData, Row
from evalwright.tasks.datasets.missing_headers import missing_header_hint
from evalwright.tasks.datasets.spreadsheets import workbook_rows
from evalwright.tasks.safe_files import failing_as
from evalwright.tasks.templates import other_separator
from evalwright.tasks.yaml_files import kind_of, shown_path

SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
}
"""Formats by the suffix of a file's name."""

_CHUNK = 1 << 18
_SMALL = 1 << 28
_MOST_EXPANDED = 200
"""How many times its own size a packed file may hold, if that is more than `_SMALL` bytes."""
_LARGEST_OBJECT = 1 << 30


def read_rows(
    path: Path, kind: str, key: str | None = None
) -> Iterator[tuple[int, Row]]:
    """Yield all rows of a file, numbered from 1.

    `key` is the place of the list in a JSON object, or the sheet of a workbook.
    """
    readers: dict[str, Callable[[], Iterator[tuple[int, Row]]]] = {
        "json": lambda: _json(path, key),
        "csv": lambda: _separated(path, ","),
        "tsv": lambda: _separated(path, "\t"),
        "parquet": lambda: _parquet(path),
        "xlsx": lambda: workbook_rows(path, key),
    }
    return readers[kind]()


def _separated(path: Path, delimiter: str) -> Iterator[tuple[int, Row]]:
    label = shown_path(path)
    number = 0
    # An article may be longer than the 128 KiB that a cell may have by default.
    csv.field_size_limit(LONGEST_LINE)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(lines_of(file), delimiter=delimiter, strict=True)
            columns = next((cells for cells in reader if cells), [])
            _check_columns(columns, label)
            for cells in reader:
                if not cells:
                    continue
                number += 1
                if len(cells) != len(columns):
                    raise DatasetError(
                        f"{label}, row {number:,} (line {reader.line_num:,}): it has"
                        f" {len(cells)} cells, the header has"
                        f" {len(columns)}{other_separator(columns)}."
                    )
                yield number, dict(zip(columns, cells, strict=True))
    except OSError as error:
        raise DatasetError(
            f"The data file '{label}' cannot be read: {error.strerror}."
        ) from None
    except UnicodeDecodeError:
        raise DatasetError(
            f"{label}, {_undecoded(path, delimiter)}: the file is not UTF-8 text; save"
            " it as UTF-8."
        ) from None
    except csv.Error as error:
        raise DatasetError(
            f"{label}, row {number + 1:,}: this is not {_NAMES[delimiter]}: {error}."
        ) from None


def _undecoded(path: Path, delimiter: str) -> str:
    """Find the first row that is not UTF-8, for the error.

    The file is decoded ahead of the row being read, so it must be searched for.
    """
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        rows = filter(None, csv.reader(file, delimiter=delimiter))
        for number, cells in enumerate(rows):
            if any("\udc80" <= char <= "\udcff" for cell in cells for char in cell):
                return f"row {number:,}" if number else "header"
    return "at its end"


_NAMES = {",": "CSV", "\t": "TSV"}


def _check_columns(columns: list[str], label: str) -> None:
    seen: set[str] = set()
    hint = missing_header_hint(columns)
    advice = f" {hint}." if hint else ""
    for name in columns:
        if not name.strip():
            raise DatasetError(f"{label}: a column of the header has no name.{advice}")
        if name in seen:
            raise DatasetError(
                f"{label}: the header has the column '{name}' twice.{advice}"
            )
        seen.add(name)


def _json(path: Path, key: str | None) -> Iterator[tuple[int, Row]]:
    label = shown_path(path)
    try:
        with path.open(encoding="utf-8-sig") as file:
            if key is not None:
                if path.stat().st_size > _LARGEST_OBJECT:
                    raise DatasetError(
                        f"{label}: a list within an object is read as a whole, and the"
                        f" file is larger than {_LARGEST_OBJECT >> 30} GiB; write its"
                        " rows as JSONL."
                    )
                yield from _checked(enumerate(_list_in(file, key, label), 1), label)
            else:
                yield from _checked(_json_array(file, label), label)
    except OSError as error:
        raise DatasetError(
            f"The data file '{label}' cannot be read: {error.strerror}."
        ) from None
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{label}: byte {error.start + 1} is not UTF-8 text; save it as UTF-8."
        ) from None


def _checked(rows: Iterator[tuple[int, Any]], label: str) -> Iterator[tuple[int, Row]]:
    for number, row in rows:
        if not isinstance(row, dict):
            raise DatasetError(
                f"{label}, row {number:,}: a row must be an object of columns, not"
                f" {kind_of(row)}."
            )
        yield number, row


def _list_in(file: io.TextIOWrapper, key: str, label: str) -> list[Any]:
    # A list inside an object is read whole: it is the one form that cannot be cut into rows as it
    # comes.
    with failing_as(
        DatasetError, f"{label}: this is not JSON", (ValueError, RecursionError)
    ):
        value = DECODER.decode(file.read())
    for step in key.split("."):
        if not isinstance(value, dict) or step not in value:
            raise DatasetError(f"{label}: there is no key '{key}' in the file.")
        value = value[step]
    if not isinstance(value, list):
        raise DatasetError(
            f"{label}: the key '{key}' holds {kind_of(value)}, not a list of rows."
        )
    return value


def _json_array(file: io.TextIOWrapper, label: str) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a JSON array one by one, without ever holding the whole of it."""
    buffer = file.read(_CHUNK).lstrip()
    if not buffer.startswith("["):
        hint = (
            "; name the key of the list with `key:`" if buffer.startswith("{") else ""
        )
        raise DatasetError(f"{label}: a JSON data file must be a list of rows{hint}.")
    position = 1
    number = 0
    first = True
    while True:
        buffer, position = _skip(file, buffer, position)
        if buffer[position : position + 1] == "]":
            return
        if not first:
            if buffer[position : position + 1] != ",":
                raise DatasetError(
                    f"{label}, after row {number:,}: a comma is missing, or the list"
                    " ends too early."
                )
            buffer, position = _skip(file, buffer, position + 1)
        first = False
        number += 1
        while True:
            try:
                value, end = DECODER.raw_decode(buffer, position)
                # A number at the very end of the buffer may continue in what is not read yet.
                if end < len(buffer) or not (more := file.read(_CHUNK)):
                    break
            except NotData as error:
                raise DatasetError(f"{label}, row {number:,}: {error}.") from None
            except (ValueError, RecursionError) as error:
                # Reading twice as much each time keeps the work linear in the size of a row.
                more = file.read(max(_CHUNK, len(buffer) - position))
                if len(buffer) - position + len(more) > LONGEST_LINE:
                    raise DatasetError(
                        f"{label}, row {number:,}: it is longer than"
                        f" {LONGEST_LINE >> 20} MiB, the longest that a row may be."
                    ) from None
                if not more:
                    raise DatasetError(
                        f"{label}, row {number:,}: this is not JSON: {_reason(error)}."
                    ) from None
            buffer = buffer[position:] + more
            position = 0
        yield number, value
        position = end


def _skip(file: io.TextIOWrapper, buffer: str, position: int) -> tuple[str, int]:
    while True:
        while position < len(buffer) and buffer[position] in " \t\r\n":
            position += 1
        if position < len(buffer) and position < _CHUNK:
            return buffer, position
        more = file.read(_CHUNK)
        buffer = buffer[position:] + more
        position = 0
        if not more:
            return buffer, position


def _reason(error: Exception) -> str:
    return (
        error.msg[0].lower() + error.msg[1:]
        if isinstance(error, json.JSONDecodeError)
        else str(error)
    )


def _parquet(path: Path) -> Iterator[tuple[int, Row]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(
            f"Reading '{shown_path(path)}'", "parquet", "pyarrow"
        ) from None
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            most = max(_SMALL, _MOST_EXPANDED * path.stat().st_size)
            groups = [
                file.metadata.row_group(group_index).total_byte_size
                for group_index in range(file.num_row_groups)
            ]
            too_much = DatasetError(
                f"{shown_path(path)}: the Parquet file holds more than {most >> 20:,} MiB of"
                f" rows, which is {most // max(path.stat().st_size, 1):,} times its own"
                " size; if that is meant, write it as JSONL."
            )
            if sum(groups) > most:
                raise too_much
            size = 0
            # A cell that is stored once may be repeated in every row.
            for batch in file.iter_batches(
                batch_size=min(128, max(1, most // max([1, *groups])))
            ):
                for row in batch.to_pylist():
                    number += 1
                    size += sum(
                        len(cell)
                        for cell in row.values()
                        if isinstance(cell, (str, bytes, list))
                    )
                    if size > most:
                        raise too_much
                    yield number, row
    except (OSError, pyarrow.ArrowException) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DatasetError(
            f"{shown_path(path)}: the Parquet file cannot be read: {reason}."
        ) from None
