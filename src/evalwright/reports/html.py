"""A leaderboard as one self-contained HTML page: no network, no foreign code, readable without scripts.

The page carries its style and its one small script, allowed by their hashes in a Content-Security-Policy that forbids
everything else. Text from runs is made inert and escaped wherever it is put out.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from evalwright.reports.html_view import make_page
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from evalwright.analysis.board import Board
    from evalwright.runs.reader import Run

_SEPARATED = re.compile(r"[^/_@:+-]*[/_@:+-]+(?=.)|.+")
"""A part of a name up to and with its separators, or the rest."""


def board_html(
    board: Board, runs: Sequence[Run], *, title: str = "Leaderboard", links: Sequence[str] = ()
) -> str:
    """The page of a board. `runs` are those that it was made of: their slices, failures and facts stand below the table.

    links: the address of each row's own page, where there are such pages. The same runs give the same bytes.
    """
    from markupsafe import Markup

    style, script = read_template("board.css"), read_template("board.js")
    template = environment().from_string(read_template("board.html"))
    return template.render(
        page=make_page(board, runs, title, links),
        style=Markup(style),
        script=Markup(script),
        policy=content_policy(style, script),
    )


def content_policy(style: str, script: str = "") -> Markup:
    """The Content-Security-Policy of a page: its own style and script by their hashes, and nothing else."""
    from markupsafe import Markup

    parts = [
        "default-src 'none'",
        f"style-src '{hash_of(style)}'",
        f"script-src '{hash_of(script)}'" if script else "script-src 'none'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return Markup("; ".join(parts))


def environment() -> Environment:
    """What renders our templates: everything is escaped, and what acts instead of being seen is made visible."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalize,
    )
    environment.filters["name"] = _name
    environment.filters["lines"] = _lines
    return environment


def _lines(text: str) -> Markup:
    """A text of several lines: each is inert and escaped, and the breaks between them stay."""
    from markupsafe import Markup, escape

    return Markup("\n").join(escape(inert(line)) for line in re.split(r"\r\n|\r|\n", text))


def _finalize(value: Any) -> Any:
    """Every text that the template puts out is inert, but for our own style and script."""
    return inert(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _name(text: str) -> Markup:
    """A name that may be long: escaped, kept apart from the direction of what surrounds it, broken after separators."""
    from markupsafe import Markup, escape

    parts = [escape(part) for part in _SEPARATED.findall(inert(text))]
    return Markup("<bdi>{}</bdi>").format(Markup("<wbr>").join(parts))


def read_template(name: str) -> str:
    """A template, style or script of ours."""
    return (files("evalwright.reports") / "templates" / name).read_text(encoding="utf-8")


def hash_of(text: str) -> str:
    """The text's hash as a policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
