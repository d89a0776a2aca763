"""The methods that the package had before: CR1 with G - 1 degrees of freedom, Bonett-Price, t. For comparison alone."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from coverage_settings.registry import F64, Plain
from evalwright.statistics.intervals import effective_score_interval

Ids = npt.NDArray[np.int64] | None


def _error(values: F64, ids: Ids) -> tuple[float, float]:
    """The standard error of a mean, and its degrees of freedom."""
    residuals = values - values.mean()
    sums = residuals if ids is None else np.bincount(ids, weights=residuals)
    groups = len(sums)
    return math.sqrt(groups / (groups - 1) * float(sums @ sums)) / len(values), groups - 1.0


def mean_before(scores: F64, ids: Ids, level: float = 0.95) -> Plain:
    """The interval of one mean: Wilson with the effective n of CR1 for right or wrong in clusters, else t."""
    error, freedom = _error(scores, ids)
    value, critical = float(scores.mean()), float(stdtrit(freedom, 0.5 + level / 2))
    if ids is not None and np.isin(scores, (0.0, 1.0)).all():
        size = float(len(scores))
        low, high = effective_score_interval(
            value, error, (0.0, 1.0), critical=critical, most=size, without_spread=freedom + 1
        )
        return Plain(low, high, "before")
    return Plain(value - critical * error, value + critical * error, "before")


def pair_before(gaps: F64, ids: Ids, level: float = 0.95) -> Plain:
    """The interval of a paired difference: Bonett & Price (2012) for single items right or wrong, else t."""
    if ids is None and np.isin(gaps, (-1.0, 0.0, 1.0)).all():
        n = len(gaps)
        up, down = ((np.count_nonzero(gaps == sign) + 1) / (n + 2) for sign in (1.0, -1.0))
        half = float(stdtrit(np.inf, 0.5 + level / 2)) * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
        return Plain(up - down - half, up - down + half, "before")
    error, freedom = _error(gaps, ids)
    half = float(stdtrit(freedom, 0.5 + level / 2)) * error
    return Plain(float(gaps.mean()) - half, float(gaps.mean()) + half, "before")
