"""CSV and TSV: whatever the text, the records of the csv module, and the lines of `as_json`."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import DatasetError
from evalwright.tasks.datasets.formats import read_lines, read_rows
from evalwright.tasks.datasets.jsonl_rows import as_json

DELIMITERS = {"csv": ",", "tsv": "\t"}
SIGNS = 'a,\t"\r\n\\ %é😀\x00\x0b\x1f\u2028\x85'

Numbered = list[tuple[int, dict[str, str]]]


def rows_of_module(text: str, delimiter: str) -> Numbered | None:
    """Read a table by the csv module alone; None if it is broken."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        records = [cells for cells in reader if cells]
    except csv.Error:
        return None
    columns, *cells_of_rows = records or [[]]
    if any(len(cells) != len(columns) for cells in cells_of_rows):
        return None
    if not all(map(str.strip, columns)) or len(set(columns)) < len(columns):
        return None
    return [
        (number, dict(zip(columns, cells, strict=True)))
        for number, cells in enumerate(cells_of_rows, 1)
    ]


def read(path: Path, kind: str) -> tuple[Numbered, list[tuple[int, bytes]]] | None:
    """Read a file as rows and as lines; None if both say that it is broken."""
    try:
        rows = list(read_rows(path, kind))
    except DatasetError as error:
        with pytest.raises(DatasetError) as caught:
            list(read_lines(path, kind))
        assert str(caught.value) == str(error)
        return None
    return rows, list(read_lines(path, kind))


@given(
    kind=st.sampled_from(["csv", "tsv"]),
    header=st.sampled_from(["a,b", "a\tb", "%s,b\\", "a", ""]),
    body=st.text(SIGNS, max_size=40),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_any_text_is_read_as_the_csv_module_reads_it(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    header: str,
    body: str,
    end: str,
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any.{kind}"
    text = header + end + body
    path.write_bytes(text.encode())
    expected = rows_of_module(text, DELIMITERS[kind])
    if expected is None:
        assert read(path, kind) is None
        return
    lines = [(number, as_json(row, "")) for number, row in expected]
    assert read(path, kind) == (expected, lines)


@given(
    kind=st.sampled_from(["csv", "tsv"]),
    cells=st.lists(
        st.tuples(*[st.text(st.sampled_from(SIGNS + "bc 1"), max_size=8)] * 3),
        max_size=8,
    ),
    quoting=st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
)
def test_any_cells_that_were_written_are_read_again(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    cells: list[tuple[str, str, str]],
    quoting: Literal[0, 1],
) -> None:
    path = tmp_path_factory.getbasetemp() / f"cells.{kind}"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, delimiter=DELIMITERS[kind], quoting=quoting)
        writer.writerows([("x", 'the "y"', "z,\t"), *cells])
    rows = [
        (number, dict(zip(("x", 'the "y"', "z,\t"), row_cells, strict=True)))
        for number, row_cells in enumerate(cells, 1)
    ]
    lines = [(number, as_json(row, "")) for number, row in rows]
    assert read(path, kind) == (rows, lines)


def test_the_line_of_a_broken_row_counts_those_within_cells(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text('a,b\n"1\n1",2\n\n3,4\n5\n')
    for reader in (read_rows, read_lines):
        with pytest.raises(DatasetError, match=r"row 3 \(line 6\): it has 1 cells"):
            list(reader(path, "csv"))
