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

    from evalwright.runs.board import Board
    from evalwright.runs.reader import Run

_SEPARATED = re.compile(r"[^/_@:+-]*[/_@:+-]+(?=.)|.+")
"""A part of a name up to and with its separators, or the rest."""


def board_html(board: Board, runs: Sequence[Run], *, title: str = "Leaderboard") -> str:
    """The page of a board. `runs` are those that it was made of: their slices, failures and facts stand below the table.

    The same runs give the same bytes.
    """
    from markupsafe import Markup

    style, script = _read("board.css"), _read("board.js")
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
    template = _environment().from_string(_read("board.html"))
    return template.render(
        page=make_page(board, runs, title), style=Markup(style), script=Markup(script), policy=Markup(policy)
    )


def _environment() -> Environment:
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
    return environment


def _finalize(value: Any) -> Any:
    """Every text that the template puts out is inert, but for our own style and script."""
    return inert(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _name(text: str) -> Markup:
    """A name that may be long: escaped, kept apart from the direction of what surrounds it, broken after separators."""
    from markupsafe import Markup, escape

    parts = [escape(part) for part in _SEPARATED.findall(inert(text))]
    return Markup("<bdi>{}</bdi>").format(Markup("<wbr>").join(parts))


def _read(name: str) -> str:
    return (files("evalwright.reports") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
