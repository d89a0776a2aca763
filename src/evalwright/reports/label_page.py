"""Answers to label as one self-contained HTML page: a person labels with keys or buttons and downloads a table.

No network: the page's Content-Security-Policy allows its own style and script by their hashes and nothing else. The
texts of a run stand in the page as escaped text and are never made into markup by the script.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from evalwright.reports.html import page, read_asset, text
from evalwright.reports.label_sheet import inert_lines

if TYPE_CHECKING:
    from evalwright.analysis.judge_validation.sheets import SheetRow

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
