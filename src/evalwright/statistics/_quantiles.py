"""Quantiles and tail probabilities of the few distributions that the other modules need.

The normal quantile comes from the standard library, so a plain Wilson interval loads no SciPy.
The rest comes from `scipy.special`, which loads in about a tenth of a second where
`scipy.stats` takes half a second and more.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from statistics import NormalDist

_NORMAL = NormalDist()
_STEPS = 60
_LEAST = 1e-15  # a level of 1 - 1e-16 would round to 1


def check_level(level: float, name: str = "level") -> None:
    """Raise ValueError unless `level` is a probability strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"{name} must be above 0 and below 1, but is {level!r}")


def normal_quantile(probability: float) -> float:
    """The standard normal quantile of `probability`, to machine precision."""
    return _NORMAL.inv_cdf(probability)


def normal_cdf(x: float) -> float:
    """P(Z <= x) for a standard normal Z."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def t_quantile(probability: float, df: float) -> float:
    """The quantile of Student's t with `df` degrees of freedom (df > 0)."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def t_two_sided(t: float, df: float) -> float:
    """P(|T| >= |t|) for Student's t with `df` degrees of freedom; at least the smallest float.

    It is never 0, since no finite sample can exclude the null hypothesis entirely.
    """
    from scipy.special import stdtr

    return min(1.0, max(sys.float_info.min, 2.0 * float(stdtr(df, -abs(t)))))


def greatest_failing(passes: Callable[[float], bool]) -> float:
    """Find the least error rate in (0, 0.5] at which `passes` holds, to a relative 1e-12.

    This turns an interval into a p-value. `passes(rate)` must go from False to True as the rate
    grows (the interval gets shorter). The result is at least 1e-15; 0.5 where `passes` never holds.
    """
    if not passes(0.5 - 1e-12):
        return 0.5
    if passes(_LEAST):
        return _LEAST
    low = _LEAST
    high = 0.5
    for _ in range(_STEPS):  # bisection on a log scale: small rates matter most
        middle = (low * high) ** 0.5
        if passes(middle):
            high = middle
        else:
            low = middle
    return high
