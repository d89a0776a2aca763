"""Times of day in a text: "17:30", "5:30 pm", "17h30", "17.30", "noon", in minutes after midnight."""

from __future__ import annotations

import re
from typing import NamedTuple

_TIME = re.compile(
    r"(?<![\d.:,/])(?P<hour>2[0-4]|[01]?\d)(?:(?P<mark>[:.]|\s?h(?:rs?)?\s?|[時时点點시]\s?)(?P<minute>[0-5]\d)[分분]?(?::[0-5]\d)?)?"
    r"\s?(?P<half>a\.?m\b\.?|p\.?m\b\.?)?(?![\d:/]|\.\d)",
    re.IGNORECASE,
)
_WORDS = re.compile(r"\b(?:(?P<noon>noon|midday)|(?P<midnight>midnight))\b", re.IGNORECASE)


class Time(NamedTuple):
    """Minutes after midnight, and the characters where they stand."""

    minutes: int
    start: int
    end: int


def find_times(text: str) -> list[Time]:
    """All times of day; an hour alone counts only with "am" or "pm"."""
    found: list[Time] = []
    for match in _TIME.finditer(text):
        half = (match["half"] or "")[:1].lower()
        hour = int(match["hour"])
        if (not match["mark"] and not half) or (half and not 1 <= hour <= 12):
            continue
        hour = hour % 12 + 12 * (half == "p") if half else hour % 24
        found.append(Time(hour * 60 + int(match["minute"] or 0), *match.span()))
    found += [Time(12 * 60 if match["noon"] else 0, *match.span()) for match in _WORDS.finditer(text)]
    return sorted(found, key=lambda time: time.start)


def time_of_day(text: str) -> int | None:
    """The minutes of a text that is nothing but a time with hours and minutes; None for any other."""
    found = _TIME.fullmatch(text.strip())
    if found is None or not found["mark"] or found["mark"] == ".":
        return None
    return find_times(text)[0].minutes if find_times(text) else None
