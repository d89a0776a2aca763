"""Finds listed names in a text: tempting wrong answers, and what a correction would mention."""

from __future__ import annotations

import re
from functools import lru_cache

from evalwright.scorers.stress.phrases import lowered
from evalwright.scorers.text.normalise import plain

LEAST_INFLECTED_LETTERS = 5

_UNCASED = re.compile(
    "[\u0b80-\u0bff\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0900-\u097f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff]"
)
_ARABIC = re.compile("[\u0600-\u06ff]")
_INFLECTED = re.compile("[\u0400-\u04ff]")
_FULL_NAME = re.compile(r"(?:[A-Z][^\W\d_]*\.? )+[A-Z][^\W\d_]{3,}")


@lru_cache(maxsize=4096)
def _compile_patterns(
    names: tuple[str, ...], besides: str, surnames: bool
) -> tuple[re.Pattern[str], ...]:
    """Compile patterns for names, except those that occur in `besides`.

    `surnames` says that the last word of a capitalised full name is enough.
    """
    if surnames:
        names = (
            *names,
            *(name.split()[-1] for name in names if _FULL_NAME.fullmatch(name)),
        )
    excluded = f" {name_form(besides)} "
    lows = [name_form(name).strip(" .,;:!?") for name in names]
    patterns = [re.compile(_bounded_pattern(low, surnames)) for low in lows if low]
    return tuple(pattern for pattern in patterns if not pattern.search(excluded))


def name_form(text: str) -> str:
    """Normalise a text to search it for names: "Kanada'da" contains the name Kanada."""
    return lowered(plain(text).replace("'", " "))


def search_names(
    names: tuple[str, ...], besides: str, text: str, surnames: bool = False
) -> str:
    """Find the first of the names in a text, else ""."""
    if not names:
        return ""
    low = name_form(text)
    searches = [
        pattern.search(low) for pattern in _compile_patterns(names, besides, surnames)
    ]
    matches = [match for match in searches if match]
    if not matches:
        return ""
    return min(matches, key=lambda match: (match.start(), -match.end())).group()


def _bounded_pattern(low: str, loose: bool) -> str:
    """Write the pattern of a name, at word boundaries if the script has them.

    Korean particles may follow, and a number is never part of another. `loose` allows that the end
    of a longer word follows, too ("Tennisspieler").
    """
    before, after = (
        "" if _UNCASED.match(end) else edge
        for end, edge in ((low[0], r"(?<![^\W_])"), (low[-1], r"(?![^\W_])"))
    )
    if low[-1].isdigit():
        after = r"(?!\d|[.,:]\d)"
    elif len(low) >= LEAST_INFLECTED_LETTERS and loose:
        after = ""
    elif len(low) >= LEAST_INFLECTED_LETTERS and _INFLECTED.fullmatch(low[-1]):
        after = r"\w{0,3}(?![^\W_])"
    if low[0].isdigit():
        before = r"(?<![A-Za-z\d.,])"
    elif _ARABIC.match(low):
        before = r"(?<![^\W_])[وفبكل]{0,2}"
    return before + re.escape(low).replace(r"\ ", r"\s+") + after
