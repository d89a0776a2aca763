"""CSV and TSV files as a stream of rows, or of the lines of their JSONL copy.

A line without a quote is cut at the delimiters, which is what the csv module would do; the module
reads the remaining records. So a large file of plain cells costs half.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from json.encoder import encode_basestring
from pathlib import Path
from typing import IO

from evalwright.core.errors import DatasetError
from evalwright.core.private import LONGEST_LINE, lines_of
from evalwright.tasks.datasets.jsonl_rows import Row, has_escapes
from evalwright.tasks.datasets.missing_headers import missing_header_hint
from evalwright.tasks.templates import other_separator
from evalwright.tasks.yaml_files import shown_path

FORMAT_NAMES = {",": "CSV", "\t": "TSV"}
"""Names of the formats by their delimiter."""

Record = tuple[int, list[str]]
"""A record: the number of its last line, from 1, and its cells."""


def separated_rows(path: Path, delimiter: str) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a table of text, numbered from 1.

    Args:
        path: the file; its first record has the names of the columns.
        delimiter: what separates cells, "," or a tab.

    Raises:
        DatasetError: the file is broken; the message has the row.
    """
    table = _Table(path, delimiter)
    for cells in table.cells():
        yield table.row_number, dict(zip(table.columns, cells, strict=True))


def separated_lines(path: Path, delimiter: str) -> Iterator[tuple[int, bytes]]:
    """Yield the rows as lines of JSONL, as `as_json` encodes them, numbered from 1.

    Args:
        path: the file; its first record has the names of the columns.
        delimiter: what separates cells, "," or a tab.

    Raises:
        DatasetError: the file is broken; the message has the row.
    """
    table = _Table(path, delimiter)
    pieces: list[str] = []
    for cells in table.cells():
        if not pieces:
            pieces = _pieces_of_line(table.columns)
        if has_escapes("".join(cells)):
            # Without the quotes around them, which are in the pieces already.
            cells = [encode_basestring(cell)[1:-1] for cell in cells]
        pieces[1::2] = cells
        yield table.row_number, "".join(pieces).encode()


def _pieces_of_line(columns: list[str]) -> list[str]:
    """Return what is before, between and behind the cells of a line, with room for these."""
    names = [encode_basestring(name) for name in columns]
    pieces = ["{" + names[0] + ': "']
    for name in names[1:]:
        pieces += ["", f'", {name}: "']
    return [*pieces, "", '"}\n']


class _Table:
    """A table that is being read.

    Attributes:
        columns: the names of its columns, once `cells` has yielded a row.
        row_number: that of the row that `cells` yielded last, from 1.
    """

    def __init__(self, path: Path, delimiter: str) -> None:
        self.columns: list[str] = []
        self.row_number = 0
        self._path = path
        self._label = shown_path(path)
        self._delimiter = delimiter

    def cells(self) -> Iterator[list[str]]:
        """Yield the cells of each row, as many as there are columns."""
        label = self._label
        # An article may be longer than the 128 KiB that a cell may have by default.
        csv.field_size_limit(LONGEST_LINE)
        try:
            with self._path.open(encoding="utf-8-sig", newline="") as file:
                yield from self._cells_of(file)
        except OSError as error:
            raise DatasetError(
                f"The data file '{label}' cannot be read: {error.strerror}."
            ) from None
        except UnicodeDecodeError:
            raise DatasetError(
                f"{label}, {_undecoded(self._path, self._delimiter)}: the file is not"
                " UTF-8 text; save it as UTF-8."
            ) from None
        except csv.Error as error:
            raise DatasetError(
                f"{label}, row {self.row_number + 1:,}: this is not"
                f" {FORMAT_NAMES[self._delimiter]}: {error}."
            ) from None

    def _cells_of(self, file: IO[str]) -> Iterator[list[str]]:
        records = _records(file, self._delimiter)
        _, self.columns = next(records, (0, []))
        _check_columns(self.columns, self._label)
        n_columns = len(self.columns)
        for line_number, cells in records:
            self.row_number += 1
            if len(cells) != n_columns:
                raise DatasetError(
                    f"{self._label}, row {self.row_number:,} (line {line_number:,}): it"
                    f" has {len(cells)} cells, the header has"
                    f" {n_columns}{other_separator(self.columns)}."
                )
            yield cells


def _records(file: IO[str], delimiter: str) -> Iterator[Record]:
    """Yield the records of a file that are not blank."""
    lines = enumerate(lines_of(file), 1)
    line_number = 0
    # A line that was read and begins a record for the csv module.
    first_line: list[str] = []

    def record_lines() -> Iterator[str]:
        nonlocal line_number
        while first_line:
            yield first_line.pop()
            # The reader asks for more while a quoted cell is open.
            while not first_line:
                line_number, line = next(lines, (line_number, ""))
                if not line:
                    return
                yield line

    reader = csv.reader(record_lines(), delimiter=delimiter, strict=True)
    for line_number, line in lines:
        if '"' in line:
            first_line.append(line)
            cells = next(reader)
        elif text := line.rstrip("\r\n"):
            cells = text.split(delimiter)
        else:
            continue
        yield line_number, cells


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
