"""The words that mark an answer or an option, by language (`marks.toml`), as alternatives of regular expressions."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

_TABLES: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("marks.toml").read_text(encoding="utf-8")
)
SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
"""The characters of scripts without spaces between words."""


@cache
def alternatives(table: str, spaced: bool | None = None) -> str:
    """The entries of a table in all languages, the longest first. spaced: those of scripts with, or without, spaces alone."""
    found = {one for row in _TABLES[table].values() for one in re.split(r"\|(?![^()]*\))", row)}
    kept = (one for one in found if spaced is None or spaced is (re.match(f"[{SPACELESS}]", one) is None))
    return "|".join(sorted(kept, key=lambda one: (-len(one), one)))


def alphabets() -> dict[str, str]:
    """The letters that number options, in their order, by name."""
    return _TABLES["letters"]


@cache
def ordinals() -> re.Pattern[str]:
    """Words for a place in a list in all languages, in groups named `place1` to `place5`."""
    rows = [row.split("/") for row in _TABLES["ordinal"].values()]
    groups = (
        f"(?P<place{place}>" + "|".join(row[place - 1] for row in rows if len(row) >= place) + ")"
        for place in range(1, 6)
    )
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(groups)})(?!\w{{3}})", re.IGNORECASE)
