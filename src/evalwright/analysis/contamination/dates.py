"""Dates of questions (a year, month or day), and on which side of a cut-off they are.

"2024-06" is a span from the 1st to the 30th. A span across the cut-off is on neither side: it
is counted and left out.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from evalwright.core.errors import ConfigurationError

_FORM = re.compile(r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ].*)?)?)?\s*", re.DOTALL)

Side = Literal["before", "after", "across", "undated", "unreadable"]


@dataclass(frozen=True, slots=True)
class DateSpan:
    """The first and the last day that a date may mean."""

    first: date
    last: date


def parse_span(text: Any) -> DateSpan | None:
    """Parse "2024", "2024-06", "2024-06-15" or a year as a number; None for anything else.

    A time after the date is ignored.
    """
    if isinstance(text, bool) or text is None:
        return None
    match = _FORM.fullmatch(str(text)[:40])
    if match is None:
        return None
    year, month, day = (int(number) if number else None for number in match.groups())
    try:
        first = date(year or 0, month or 1, day or 1)
        end = month or 12
        return DateSpan(
            first, date(first.year, end, day or monthrange(first.year, end)[1])
        )
    except ValueError:
        return None


def read_cut_off(text: str) -> date:
    """Parse a cut-off such as "2024-06" or "2024-06-15"; returns its last day.

    Raises:
        ConfigurationError: it is not a date.
    """
    span = parse_span(text)
    if span is None:
        raise ConfigurationError(
            f"The cut-off '{text}' is not a date, such as 2024-06 or 2024-06-15."
        )
    return span.last


def side_of(text: Any, cut_off: date) -> Side:
    """Tell on which side of the cut-off a date is: before (or on) it, after it, or across it.

    It may also be missing or unreadable.
    """
    if text is None or not str(text).strip():
        return "undated"
    span = parse_span(text)
    if span is None:
        return "unreadable"
    if span.last <= cut_off:
        return "before"
    return "after" if span.first > cut_off else "across"
