"""CSV, TSV, JSON, Parquet and Excel workbooks as a stream of rows.

Each reader yields (row number, row) and names what is broken.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evalwright.core.errors import DatasetError
from evalwright.core.private import LONGEST_LINE
from evalwright.tasks.datasets.jsonl_rows import DECODER, NotData, Row, as_json
from evalwright.tasks.datasets.parquet_files import parquet_lines, parquet_rows
from evalwright.tasks.datasets.separated_values import separated_lines, separated_rows
from evalwright.tasks.datasets.spreadsheets import workbook_rows
from evalwright.tasks.safe_files import failing_as
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
_LARGEST_OBJECT = 1 << 30


def read_rows(
    path: Path, kind: str, key: str | None = None
) -> Iterator[tuple[int, Row]]:
    """Yield all rows of a file, numbered from 1.

    `key` is the place of the list in a JSON object, or the sheet of a workbook.
    """
    readers: dict[str, Callable[[], Iterator[tuple[int, Row]]]] = {
        "json": lambda: _json(path, key),
        "csv": lambda: separated_rows(path, ","),
        "tsv": lambda: separated_rows(path, "\t"),
        "parquet": lambda: parquet_rows(path),
        "xlsx": lambda: workbook_rows(path, key),
    }
    return readers[kind]()


def read_lines(
    path: Path, kind: str, key: str | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield all rows of a file as lines of JSONL, numbered from 1.

    They are those that `as_json` makes of the rows of `read_rows`.

    Args:
        path: the file.
        kind: its format, one of `SUFFIXES`.
        key: the place of the list in a JSON object, or the sheet of a workbook.

    Raises:
        DatasetError: the file is broken; the message has the row.
    """
    if kind in ("csv", "tsv"):
        return separated_lines(path, "," if kind == "csv" else "\t")
    if kind == "parquet":
        return parquet_lines(path)
    label = shown_path(path)
    return (
        (number, as_json(row, f"{label}, row {number:,}"))
        for number, row in read_rows(path, kind, key)
    )


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
