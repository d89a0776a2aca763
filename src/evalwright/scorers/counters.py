"""Counters of Korean, Japanese and Chinese numbers: what a number counts, by the word behind it
("3개", "두 마리", "3番目").
"""

from __future__ import annotations

import re
from functools import cache

from evalwright.scorers.units import table

ORDINALS = frozenset(("번째", "番目"))
"""Counters that make a number a place in an order."""


def counter_after(text: str, start: int) -> tuple[str, int] | None:
    """The counter that begins at a place of a text, as its group is called, and where it ends."""
    found = None if text.isascii() else _counters().match(text, start)
    return (_groups()[found[1]], found.end()) if found else None


@cache
def _groups() -> dict[str, str]:
    groups = [
        group.split("/") for row in table("counters").values() for group in row.split()
    ]
    return {name: names[0] for names in groups for name in names}


@cache
def _counters() -> re.Pattern[str]:
    names = sorted(_groups(), key=len, reverse=True)
    return re.compile(
        rf"\s?({'|'.join(map(re.escape, names))})(?!데|가요|지(?![가-힣]))"
    )
