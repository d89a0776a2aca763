"""Limits of seconds that must be reached, but not before something else has happened."""

from __future__ import annotations

from collections.abc import Callable

GROWING_SECONDS = (0.5, 5.0, 60.0)
"""The last is enough on any machine; the first is reached soon where that is enough."""


def within_growing_seconds(
    check: Callable[[float], None], limits: tuple[float, ...] = GROWING_SECONDS
) -> None:
    """Check something under a limit of seconds, under a greater one where that was too short.

    Args:
        check: asserts what holds under a limit that a loaded machine may reach too early.
        limits: in seconds, growing.
    """
    for seconds in limits[:-1]:
        try:
            check(seconds)
        except AssertionError:
            continue
        return
    check(limits[-1])
