"""Answers to label: as a table for spreadsheets, and as one HTML page with keys and buttons.

The table is UTF-8 with a byte order mark, commas and CRLF, and no cell is executed. The page's
Content-Security-Policy allows its own style and script by their hashes and nothing else; the texts
of a run are escaped text in it, never markup.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from evalwright.analysis.judge_validation.drawing import SheetRow
from evalwright.reports.html import fill_page
from evalwright.reports.text import inert_cell

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
"""In characters: spreadsheets cut a cell at 32,767 and shift the text after it."""

_FILLED_IN = ("label", "labeller")
_ONLY_WHERE_USED = ("choices", "context")


def sheet_csv(rows: Sequence[SheetRow]) -> str:
    """Write the rows as CSV, with the empty columns `label` and `labeller`."""
    columns = [
        name
        for name in COLUMNS
        if name not in _ONLY_WHERE_USED or any(getattr(row, name) for row in rows)
    ]
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(
            ["" if name in _FILLED_IN else cell(getattr(row, name)) for name in columns]
        )
    return "\ufeff" + buffer.getvalue()


def cell(text: str) -> str:
    """Make a text safe as a cell that spreadsheets neither run nor cut.

    Formulas start with an apostrophe; texts of more than LONGEST_CELL characters are shortened.
    """
    content = inert_cell(text, lines=True)
    if len(content) > LONGEST_CELL:
        content = (
            f"{content[:LONGEST_CELL]} ... [{len(content) - LONGEST_CELL:,} more"
            " characters: label on the page]"
        )
    return content


Choice = tuple[str, str, str]
"""A label's value, its name, and the key to press for it."""

RIGHT_OR_WRONG: tuple[Choice, ...] = (("1", "Right", "1"), ("0", "Wrong", "0"))
GRADES: tuple[Choice, ...] = (
    ("0", "Wrong", "0"),
    ("0.25", "Mostly wrong", "1"),
    ("0.5", "Half right", "2"),
    ("0.75", "Mostly right", "3"),
    ("1", "Right", "4"),
)

QUESTION = "Is the answer right?"


def label_html(
    rows: Sequence[SheetRow],
    *,
    graded: bool = False,
    name: str = "labels",
    question: str = QUESTION,
) -> str:
    """Render the labelling page. The same rows give the same bytes.

    Args:
        rows: The answers to label.
        graded: Whether there are five grades instead of right and wrong.
        name: The beginning of the downloaded file's name.
        question: What people are asked about each answer.
    """
    return fill_page(
        "label",
        f"Label {len(rows)} answers",
        rows=rows,
        question=question,
        file=name,
        drawn="+".join(sorted({row.row.partition("-")[0] for row in rows})),
        choices=(*(GRADES if graded else RIGHT_OR_WRONG), ("", "No label", "x")),
    )
