"""Answers to label: as a table for spreadsheets, and as one self-contained HTML page with keys and buttons.

The table is UTF-8 with a byte order mark, commas and CRLF, and no cell acts. The page's Content-Security-Policy allows its own
style and script by their hashes and nothing else; the texts of a run stand in it as escaped text, never made into markup.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape

from evalwright.analysis.judge_validation.drawing import SheetRow
from evalwright.reports.html import page, read_asset, text
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


Choice = tuple[str, str, str]
"""A label's value, its name, and the key that gives it."""

RIGHT_OR_WRONG: tuple[Choice, ...] = (("1", "Right", "1"), ("0", "Wrong", "0"))
GRADES: tuple[Choice, ...] = (
    ("0", "Wrong", "0"),
    ("0.25", "Mostly wrong", "1"),
    ("0.5", "Half right", "2"),
    ("0.75", "Mostly right", "3"),
    ("1", "Right", "4"),
)

QUESTION = "Is the answer right?"

_PARTS = (("Question", "input"), ("Choices", "choices"), ("Context", "context"), ("Reference", "reference"))


def label_html(
    rows: Sequence[SheetRow], *, graded: bool = False, name: str = "labels", question: str = QUESTION
) -> str:
    """The page for some rows. graded: five grades instead of right or wrong. name: how the downloaded file's name begins.
    question: what people are asked about each answer.

    The same rows give the same bytes.
    """
    style, script = read_asset("label.css"), read_asset("label.js")
    title = f"Label {len(rows)} answers"
    choices = (*(GRADES if graded else RIGHT_OR_WRONG), ("", "No label", "x"))
    buttons = "".join(
        f'<button type="button" data-value="{value}" data-key="{key}" aria-pressed="false">{what} <kbd>{key}</kbd></button>'
        for value, what, key in choices
    )
    drawn = text("+".join(sorted({row.row.partition("-")[0] for row in rows})))
    body = (
        f"<header><h1>{title}</h1><p><bdi>{text(question)}</bdi> {_HELP}</p>{_NO_SCRIPTS}{_WHO}</header>\n<main>\n"
        + "\n".join(_article(row, i, len(rows), buttons) for i, row in enumerate(rows))
        + f"\n{_BUTTONS}\n</main>\n{_FOOTER}\n<script>{script}</script>"
    )
    return page(title, style, body, script, f' data-set="{drawn}" data-file="{text(name)}"')


_HELP = "Label each answer by itself; the judge's verdict is not shown. Labels stay in this page until you download them."
_NO_SCRIPTS = (
    '<noscript><p class="warning">This page needs JavaScript, which is off in this browser. Use the CSV table '
    "instead.</p></noscript>"
)
_WHO = (
    '<p class="who"><label for="labeller">Your name</label> <input id="labeller" type="text" maxlength="80" '
    'autocomplete="off" spellcheck="false"> <span id="progress" role="status" aria-live="polite"></span></p>'
)
_BUTTONS = (
    '<nav aria-label="Answers"><button type="button" id="back">Back <kbd>←</kbd></button> '
    '<button type="button" id="next">Next <kbd>→</kbd></button> '
    '<button type="button" id="open">Next without a label <kbd>u</kbd></button></nav>'
)
_FOOTER = (
    '<footer><button type="button" id="download">Download the labels</button>'
    '<details id="copy"><summary>Or copy them</summary><textarea id="text" readonly rows="8" aria-label="Labels as CSV">'
    "</textarea></details><p>Send the file to the person who sent you this page. Until then labels are kept in this browser.</p>"
    "</footer>"
)


def _article(row: SheetRow, place: int, total: int, buttons: str) -> str:
    parts = [(title, content) for title, part in _PARTS if (content := getattr(row, part))]
    parts.append(("Answer", row.answer if row.answer.strip() else "(an empty answer)"))
    shown = "".join(
        f'<dt>{title}</dt><dd class="{title.lower()}" dir="auto">{escape(inert_lines(content))}</dd>'
        for title, content in parts
    )
    draw = f", draw {text(row.draw)}" if row.draw != "0" else ""
    return (
        f'<article data-row="{text(row.row)}"{" hidden" if place else ""}><h2>{place + 1} of {total}</h2>'
        f'<p class="facts"><bdi>{text(row.task)}</bdi>, <bdi>{text(row.id)}</bdi>{draw}</p><dl>{shown}</dl>'
        f'<p class="labels" role="group" aria-label="Label">{buttons}</p></article>'
    )
