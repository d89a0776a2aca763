"""Finds numbers and dates that a text contrasts with others.

Examples: "not 3 but 5", "3개가 아니라 5개", "3ではなく5".
"""

from __future__ import annotations

import re

from evalwright.scorers.text.cues import Cues
from evalwright.scorers.text.tokens import fold
from evalwright.scorers.text.units import sentence_pattern

_CLAUSE = re.compile(
    r"(?<!\d)[,;:.!?(—、，。；：]|[,;:.!?(—、，。；：](?!\d)|\n|\s[–-]\s"
)
_BEFORE = sentence_pattern("set_against")
_BEHIND = sentence_pattern("set_against_behind")
_TURNED = sentence_pattern("turned")
MAX_DENIAL_CHARS = 24
"""A word of contrast is looked for in this many characters before a number."""


def is_set_against(text: str, start: int, end: int) -> bool:
    """Return whether the text at a position is rejected for something else: "not 365 but"."""
    before = _CLAUSE.split(text[max(0, start - MAX_DENIAL_CHARS) : start])[-1]
    return _BEFORE.search(before) is not None or _BEHIND.match(text, end) is not None


def behind_turn(before: str, cues: Cues) -> str:
    """Cut the text before a number after its last "but" or "아니라".

    A denial before such a word is about something else.
    """
    turned = max((match.end() for match in _TURNED.finditer(before)), default=0)
    for word in re.finditer(r"[^\W\d_]+", before):
        if fold(word.group().casefold()) in cues.turns:
            turned = max(turned, word.end())
    return before[turned:]
