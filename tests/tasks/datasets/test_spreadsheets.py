"""Excel workbooks as data: values as they were saved, nothing computed, nothing without bounds."""

from __future__ import annotations

import sys
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import DatasetError, MissingExtra
from evalwright.tasks.datasets import spreadsheets
from evalwright.tasks.datasets.formats import read_rows
from evalwright.tasks.loading import load_task


def test_the_extra_names_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtra, match=r"evalwright\[xlsx\]"):
        list(read_rows(tmp_path / "d.xlsx", "xlsx"))


def book(path: Path, *sheets: list[list[Any]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for number, rows in enumerate(sheets):
        sheet = workbook.create_sheet(f"sheet {number}")
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return path


def test_cells_keep_their_types_and_empty_rows_are_none(tmp_path: Path) -> None:
    path = book(
        tmp_path / "d.xlsx",
        [
            ["질문", "n", "when"],
            ["물음, 하나\n둘", 7, datetime(2024, 3, 1)],
            [None, None, None],
            ["01", 1.5, None],
        ],
        [["q"], ["other"]],
    )
    assert list(read_rows(path, "xlsx")) == [
        (1, {"질문": "물음, 하나\n둘", "n": 7, "when": datetime(2024, 3, 1)}),
        (2, {"질문": "01", "n": 1.5, "when": None}),
    ]
    assert list(read_rows(path, "xlsx", "sheet 1")) == [(1, {"q": "other"})]


def test_a_workbook_is_a_task(tmp_path: Path) -> None:
    book(
        tmp_path / "mine.xlsx",
        [["question", "reference", "date"], ["1 + 1 = ?", 2, datetime(2024, 3, 1)]],
    )
    task = load_task(tmp_path / "mine.xlsx")
    assert (task.samples[0].input, task.samples[0].targets) == ("1 + 1 = ?", ("2",))
    assert (
        task.samples[0].row is not None
        and task.samples[0].row["date"] == "2024-03-01T00:00:00"
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["a", "a"], [1, 2]], "the header has the column 'a' twice"),
        ([["a", None, "b"], [1, 2, 3]], "column 2 of the header has no name"),
        ([["a"], [1, 2]], r"row 1 \(line 2\): it has more cells than the header"),
        (
            [["a"], ["=1+1"]],
            r"row 1 \(line 2\): the cell of 'a' is a formula without a saved value",
        ),
        ([["a"] * 1, *[[None]] * 10_001, [1]], "more than 10,000 empty rows"),
        ([[f"c{number}" for number in range(1_001)]], "more than 1,000 columns"),
    ],
)
def test_what_a_sheet_may_not_be(
    tmp_path: Path, rows: list[list[Any]], message: str
) -> None:
    path = book(tmp_path / "d.xlsx", rows)
    if "empty rows" in message:
        import openpyxl

        workbook = openpyxl.load_workbook(path)
        workbook.active.cell(row=1_000_000, column=1, value=1)
        workbook.save(path)
    with pytest.raises(DatasetError, match=message):
        list(read_rows(path, "xlsx"))


def test_no_workbook_and_one_that_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "d.xlsx"
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(DatasetError, match="not an Excel workbook"):
        list(read_rows(path, "xlsx"))
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("x", "x")
    with pytest.raises(DatasetError, match="not an Excel workbook"):
        list(read_rows(path, "xlsx"))
    monkeypatch.setattr(spreadsheets, "MOST_UNPACKED", 1000)
    with pytest.raises(DatasetError, match="unpacks to 0 MiB, more than"):
        list(read_rows(book(path, [["a"], [1]]), "xlsx"))
    with pytest.raises(DatasetError, match="cannot be read"):
        list(read_rows(tmp_path / "none.xlsx", "xlsx"))


def test_a_workbook_with_a_flipped_bit_is_an_error_that_names_it(
    tmp_path: Path,
) -> None:
    path = book(
        tmp_path / "d.xlsx",
        [["input", "target"], *([f"{place}", "x"] for place in range(50))],
    )
    whole = path.read_bytes()
    for place in range(60, len(whole) - 200, 97):
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :]
        )
        try:
            list(read_rows(path, "xlsx"))
        except DatasetError as error:
            assert "d.xlsx" in str(error)
