"""Patterns of a user's, looked for within limits of time and memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from evalwright.extend import (
    ConfigurationError,
    LimitExceeded,
    RaisedInProcess,
    ScoringError,
    call_with_limits,
)


def without(patterns: Sequence[str], text: str) -> str:
    """A text without what some patterns match. Raises ScoringError."""
    return _within_limits(_without, patterns, text) if patterns else text


def last_group(patterns: Sequence[str], text: str) -> str:
    """The first group of the last match of any pattern, or the match; without one the text.

    Raises ScoringError.
    """
    return _within_limits(_last_group, patterns, text)


def _within_limits(work: Callable[..., str], patterns: Sequence[str], text: str) -> str:
    try:
        return str(call_with_limits(work, tuple(patterns), text, key=tuple(patterns)))
    except (LimitExceeded, RaisedInProcess) as error:
        raise ScoringError(
            f"The patterns {list(patterns)!r} cannot be looked for: {error}"
        ) from None


def _last_group(patterns: Sequence[str], text: str) -> str:
    matches = [match for pattern in patterns for match in re.finditer(pattern, text)]
    if not matches:
        return text
    last = max(matches, key=lambda match: match.start())
    return (last[1] if last.re.groups else last[0]) or ""


def _without(patterns: Sequence[str], text: str) -> str:
    for pattern in patterns:
        text = re.sub(pattern, "", text)
    return text


def check_patterns(parameter: str, patterns: Sequence[str] | None) -> tuple[str, ...]:
    """The patterns of a parameter. Raises ConfigurationError for what is none."""
    for pattern in patterns or ():
        try:
            re.compile(pattern)
        except (re.error, TypeError, RecursionError, OverflowError) as error:
            raise ConfigurationError(
                f"The parameter '{parameter}' has {pattern!r}, which is no"
                f" pattern: {error}."
            ) from None
    return tuple(patterns or ())
