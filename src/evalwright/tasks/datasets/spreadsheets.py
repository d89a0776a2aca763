"""Reads an Excel workbook (.xlsx) as a stream of rows.

It reads one sheet, whose first row has the names of columns. Nothing is computed: a formula counts
as the value that the program which saved the file stored with it, and a formula without such a
value is an error.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evalwright.core.errors import DatasetError, MissingExtra
from evalwright.tasks.datasets.jsonl_rows import Row
from evalwright.tasks.yaml_files import shown_path

MOST_UNPACKED = 1 << 28
"""Most bytes of all packed parts together.

The library holds all texts of a workbook in memory at once.
"""
MOST_COLUMNS = 1_000
MOST_EMPTY = 10_000
"""Most consecutive empty rows: a sheet may claim that its second row is the millionth."""


def workbook_rows(path: Path, sheet: str | None) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a sheet, by default the first, numbered from 1 below the header.

    Empty rows are skipped; empty cells are null.
    """
    label = shown_path(path)
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra(f"Reading '{label}'", "xlsx", "openpyxl") from None
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(part.file_size for part in packed.infolist())
        if unpacked > MOST_UNPACKED:
            raise DatasetError(
                f"{label}: the workbook unpacks to {unpacked >> 20:,} MiB, more than"
                f" {MOST_UNPACKED >> 20} MiB; save its sheet as CSV."
            )
        values = openpyxl.load_workbook(
            path, read_only=True, data_only=True, keep_links=False
        )
        formulas = openpyxl.load_workbook(
            path, read_only=True, data_only=False, keep_links=False
        )
        try:
            yield from _rows(
                _sheet(values, sheet, label), _sheet(formulas, sheet, label), label
            )
        finally:
            values.close()
            formulas.close()
    except OSError as error:
        raise DatasetError(
            f"The data file '{label}' cannot be read: {error.strerror or error}."
        ) from None
    except DatasetError:
        raise
    except (
        Exception
    ) as error:  # a damaged part can make the library raise any exception
        reason = str(error).strip().rstrip(".") or type(error).__name__
        raise DatasetError(
            f"{label}: this is not an Excel workbook (.xlsx) that can be read:"
            f" {reason}."
        ) from None


def _sheet(workbook: Any, name: str | None, label: str) -> Any:
    sheets = {sheet.title: sheet for sheet in workbook.worksheets}
    if not sheets:
        raise DatasetError(f"{label}: the workbook has no sheet with cells.")
    if name is not None and name not in sheets:
        raise DatasetError(
            f"{label}: there is no sheet '{name}'. It has: {', '.join(sheets)}."
        )
    sheet = sheets[name] if name is not None else next(iter(sheets.values()))
    sheet.reset_dimensions()
    return sheet


def _rows(values: Any, formulas: Any, label: str) -> Iterator[tuple[int, Row]]:
    first = next(
        values.iter_rows(max_row=1, max_col=MOST_COLUMNS + 1, values_only=True), ()
    )
    columns = [*first]
    while columns and columns[-1] is None:
        columns.pop()
    if len(columns) > MOST_COLUMNS:
        raise DatasetError(
            f"{label}: the sheet has more than {MOST_COLUMNS:,} columns; save it as"
            " CSV."
        )
    names = [
        _named(cell, columns, column_index, label)
        for column_index, cell in enumerate(columns)
    ]
    wide = len(names) + 1
    pairs = zip(
        values.iter_rows(min_row=2, max_col=wide, values_only=True),
        formulas.iter_rows(min_row=2, max_col=wide, values_only=True),
        strict=True,
    )
    number = empty = 0
    for line, (cells, written) in enumerate(pairs, 2):
        if all(cell is None for cell in written):
            empty += 1
            if empty > MOST_EMPTY:
                raise DatasetError(
                    f"{label}: more than {MOST_EMPTY:,} empty rows follow each other"
                    f" before row {line:,}."
                )
            continue
        empty = 0
        number += 1
        yield (
            number,
            _row(names, cells, written, f"{label}, row {number:,} (line {line:,})"),
        )


def _named(cell: Any, columns: Sequence[Any], reference: int, label: str) -> str:
    name = "" if cell is None else str(cell)
    if not name.strip():
        raise DatasetError(
            f"{label}: column {reference + 1} of the header has no name."
        )
    if name in map(str, columns[:reference]):
        raise DatasetError(f"{label}: the header has the column '{name}' twice.")
    return name


def _row(
    names: Sequence[str], cells: Sequence[Any], written: Sequence[Any], where: str
) -> Row:
    if len(written) > len(names) and written[len(names)] is not None:
        raise DatasetError(f"{where}: it has more cells than the header.")
    row = {
        name: cells[column_index] if column_index < len(cells) else None
        for column_index, name in enumerate(names)
    }
    for column_index, name in enumerate(names):
        if (
            row[name] is None
            and column_index < len(written)
            and written[column_index] is not None
        ):
            raise DatasetError(
                f"{where}: the cell of '{name}' is a formula without a saved value."
                " Open the file in a spreadsheet program and save it, or put values in"
                " place of formulas."
            )
    return row
