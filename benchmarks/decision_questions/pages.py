"""What a command prints, and the table that it puts into a page, between comments that mark its
place.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

END = "<!-- end of rows -->"


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """The options `--numbers FILE`, `--before FILE` and `--write PAGE`."""
    parser.add_argument(
        "--numbers",
        type=Path,
        metavar="FILE",
        help="write all numbers into this file, as JSON",
    )
    parser.add_argument(
        "--before",
        type=Path,
        metavar="FILE",
        help="what --numbers wrote of another version, shown beside",
    )
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="a page to put the table into"
    )


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


def write_numbers(file: Path, numbers: Any) -> None:
    """Write what `--before` reads."""
    file.write_text(f"{json.dumps(numbers, indent=1)}\n", encoding="utf-8")
