"""Answers to label as a table for spreadsheets: UTF-8 with a byte order mark, commas, CRLF, and no cell that acts."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from evalwright.analysis.judge_validation.sheets import SheetRow
from evalwright.reports.text import inert

COLUMNS = (
    "row",
    "task",
    "id",
    "draw",
    "input",
    "choices",
    "context",
    "reference",
    "answer",
    "label",
    "labeller",
)
LONGEST_CELL = 32_000
"""Characters; spreadsheets cut a cell at 32,767 and shift what follows it."""

_FILLED_IN = ("label", "labeller")
_ONLY_WHERE_USED = ("choices", "context")
_FORMULA = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")


def sheet_csv(rows: Sequence[SheetRow]) -> str:
    """The rows with the empty columns `label` and `labeller`, as text for `write_text`."""
    used = [
        name for name in COLUMNS if name not in _ONLY_WHERE_USED or any(getattr(row, name) for row in rows)
    ]
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(used)
    for row in rows:
        writer.writerow(["" if name in _FILLED_IN else cell(getattr(row, name)) for name in used])
    return "\ufeff" + out.getvalue()


def cell(text: str) -> str:
    """A cell that no spreadsheet runs or cuts: an apostrophe stands before what it would take for a formula."""
    shown = inert_lines(text)
    if len(shown) > LONGEST_CELL:
        shown = (
            f"{shown[:LONGEST_CELL]} ... [{len(shown) - LONGEST_CELL:,} more characters: label on the page]"
        )
    return f"'{shown}" if shown.lstrip(" ").startswith(_FORMULA) else shown


def inert_lines(text: str) -> str:
    """The text with every character that acts shown as its escape; its lines and tabs stay."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(inert(part) for part in line.split("\t")) for line in lines)
