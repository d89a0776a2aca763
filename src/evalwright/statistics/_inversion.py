"""A p-value from an interval: the level at which the interval just reaches a value."""

from __future__ import annotations

from collections.abc import Callable

_STEPS = 60
_LEAST = 1e-15  # a level of 1 - 1e-16 is 1 in floating point


def greatest_failing(passes: Callable[[float], bool]) -> float:
    """The error rate in (0, 0.5] above which `passes` holds, to a relative 1e-12, at least 1e-15.

    `passes(rate)` must go from False to True as the rate grows (the interval gets shorter). 0.5 where it never does.
    """
    if not passes(0.5 - 1e-12):
        return 0.5
    if passes(_LEAST):
        return _LEAST
    low, high = _LEAST, 0.5
    for _ in range(_STEPS):  # on a logarithmic scale, for small rates are the ones of interest
        middle = (low * high) ** 0.5
        if passes(middle):
            high = middle
        else:
            low = middle
    return high
