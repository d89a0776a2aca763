"""Answers to label as one self-contained HTML page: a person labels with keys or buttons and downloads a table.

No network: the page's Content-Security-Policy allows its own style and script by their hashes and nothing else. The
texts of a run stand in the page as escaped text and are never made into markup by the script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from evalwright.reports.label_sheet import inert_lines
from evalwright.reports.text import inert

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


@dataclass(frozen=True, slots=True)
class _Row:
    row: str
    task: str
    id: str
    draw: str
    parts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Page:
    set: str
    file: str
    question: str
    rows: tuple[_Row, ...]
    choices: tuple[Choice, ...]


def label_html(
    rows: Sequence[SheetRow], *, graded: bool = False, name: str = "labels", question: str = QUESTION
) -> str:
    """The page for some rows. graded: five grades instead of right or wrong. name: how the downloaded file's name begins.
    question: what people are asked about each answer.

    The same rows give the same bytes.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    style, script = (_read(f"label.{kind}") for kind in ("css", "js"))
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    page = _Page(
        set="+".join(sorted({row.row.partition("-")[0] for row in rows})),
        file=inert(name),
        question=inert(question),
        rows=tuple(_row(row) for row in rows),
        choices=GRADES if graded else RIGHT_OR_WRONG,
    )
    template = environment.from_string(_read("label.html"))
    return template.render(page=page, style=Markup(style), script=Markup(script), policy=Markup(policy))


def _row(row: SheetRow) -> _Row:
    parts = [(title, inert_lines(text)) for title, name in _PARTS if (text := getattr(row, name))]
    answer = inert_lines(row.answer) if row.answer.strip() else "(an empty answer)"
    return _Row(row.row, inert(row.task), inert(row.id), row.draw, (*parts, ("Answer", answer)))


def _read(name: str) -> str:
    return (files("evalwright.reports") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
