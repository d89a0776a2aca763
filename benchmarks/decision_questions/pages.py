"""Tables that a command puts into a page, between comments that mark their place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

END = "<!-- end of rows -->"


def begin_mark(name: str) -> str:
    """The comment that begins the lines of that name."""
    return f"<!-- rows of {name} -->"


def write_page(page: Path, name: str, lines: Sequence[str]) -> None:
    """Replace the lines of that name in a page. Exits where the page has no place for them."""
    text = page.read_text(encoding="utf-8")
    above, begin, marked = text.partition(begin_mark(name))
    _, end, below = marked.partition(END)
    if not begin or not end:
        raise SystemExit(
            f"{page} has no place for the table: {begin_mark(name)} and {END}."
        )
    page.write_text(
        "\n".join([f"{above}{begin}", "", *lines, "", f"{end}{below}"]),
        encoding="utf-8",
    )
