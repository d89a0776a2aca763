"""The table for spreadsheets: nothing in it acts, and every text comes back as it was."""

from __future__ import annotations

import csv
import io

import pytest

from evalwright.analysis.judge_validation.drawing import SheetRow
from evalwright.reports.labelling import LONGEST_CELL, cell, sheet_csv
from support.hostile import ACTIVE, HOSTILE


def row(text: str, **more: str) -> SheetRow:
    fields = {
        "task": text,
        "id": text,
        "input": text,
        "choices": "",
        "context": "",
        "reference": text,
        "answer": text,
    }
    return SheetRow(row="s00000001-1", draw="0", **{**fields, **more})


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@x", '=HYPERLINK("http://127.0.0.1","x")', "  =1", "＝1"],
)
def test_formulas_are_quoted(text: str) -> None:
    assert cell(text) == f"'{text}"


def test_hostile_texts_come_back_in_their_cells() -> None:
    rows = [row(text) for text in HOSTILE]
    text = sheet_csv(rows)
    assert text.startswith("\ufeff")
    assert not {char for char in ACTIVE if char != "\r"} & set(text[1:])
    read = list(csv.reader(io.StringIO(text[1:], newline="")))
    assert [len(line) for line in read] == [9] * (len(HOSTILE) + 1)
    assert read[0] == [
        "row",
        "task",
        "id",
        "draw",
        "input",
        "reference",
        "answer",
        "label",
        "labeller",
    ]
    for line, hostile in zip(read[1:], HOSTILE, strict=True):
        assert line[4] == cell(hostile)
        assert line[-2:] == ["", ""]
        assert not line[4].startswith(("=", "+", "-", "@"))


def test_cells_stay_under_what_spreadsheets_take() -> None:
    assert len(cell("x" * 50_000)) < 32_767
    assert cell("x" * LONGEST_CELL) == "x" * LONGEST_CELL
    assert "18,000 more characters" in cell("x" * 50_000)
