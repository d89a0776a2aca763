"""Averages over tasks that are a sample of tasks like them: the spread between tasks counts, with T - 1 degrees of freedom.

A mean over fixed tasks says how these tasks would come out with other items. Whether another choice of tasks would agree is seen in
how far the tasks' means lie apart, which holds the sampling of their items already: S^2 / T with S^2 the variance of the T means.

Tasks that share items (translations, prompts of the same questions) have errors in common, which do not show between them: the mean
covariance c of two tasks' means over their common units is added, S^2 / T + c, with Satterthwaite's degrees of freedom. It is 0
without common units, and then the interval is Student's with T - 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from evalwright.statistics._quantiles import t_quantile, t_two_sided
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.intervals import Range
from evalwright.statistics.macro import MacroDifference, macro_average, macro_difference
from evalwright.statistics.paired import PairedComparison
from evalwright.statistics.units import F64, I64, Spread

FEWEST = 3
"""Tasks that a sample of tasks needs: with two, the quantile is 12.7 and nothing can be concluded."""

Values = tuple[F64, I64 | None]
"""Scores or differences of one task's items (n,), nan = missing, and codes (n,) that mean the same in every task; None: shares none."""


def sampled_spread(between: float, tasks: int, shared: float, freedom: float) -> Spread:
    """Error and degrees of freedom of a mean over tasks whose means have the variance `between`, and the covariance `shared`,
    known with `freedom`."""
    own = between / tasks
    variance = own + shared
    below = own**2 / (tasks - 1) + (shared**2 / freedom if shared > 0 else 0.0)
    return Spread(math.sqrt(variance), variance**2 / below if below > 0 else tasks - 1.0, float(tasks))


def shared_covariance(parts: Sequence[Values]) -> tuple[float, float]:
    """The mean covariance of the means of two tasks over the units that they have in common, at least 0, and its degrees of freedom.

    Items with one code, in whatever task, are one unit. The covariance of two tasks is the sum over units of the products of their
    sums of residuals, over n_t n_u, times G / (G - 1) for G units in common.
    """
    sums = []
    for values, codes in parts:
        there = ~np.isnan(values)
        if codes is None or np.count_nonzero(there) < 2:
            continue
        kept = values[there]
        names, places = np.unique(codes[there], return_inverse=True)
        sums.append((names, np.bincount(places, kept - kept.mean(), len(names)) / len(kept)))
    total, most = 0.0, 0
    for (names, one), (others, other) in combinations(sums, 2):
        _, mine, theirs = np.intersect1d(names, others, assume_unique=True, return_indices=True)
        if len(mine) > 1:
            total += float(one[mine] @ other[theirs]) * len(mine) / (len(mine) - 1)
            most = max(most, len(mine))
    pairs = len(parts) * (len(parts) - 1) / 2
    return max(0.0, total / pairs) if pairs else 0.0, max(1.0, most - 1.0)


def check_sample(tasks: int) -> None:
    """Raise ValueError for too few tasks."""
    if tasks < FEWEST:
        raise ValueError(f"a sample of tasks needs at least {FEWEST} of them, not {tasks}")


def sampled_difference(
    parts: Sequence[PairedComparison], differences: Sequence[Values], *, value_range: Range | None = None
) -> MacroDifference:
    """The mean over tasks of paired differences, for tasks like these. differences: of each task's items.

    Nothing is surer of tasks like these than of these tasks: where tasks happen to lie closer together than their own errors allow,
    those of the fixed tasks count. Raises ValueError for fewer than three tasks.
    """
    check_sample(len(parts))
    fixed = macro_difference(parts, value_range=value_range)
    error, freedom = _spread([part.difference for part in parts], differences)
    half = t_quantile(0.5 + fixed.level / 2, freedom) * error
    span = math.inf if value_range is None else value_range[1] - value_range[0]
    p_value = t_two_sided(fixed.difference / error, freedom) if error > 0 else 0.0
    visible = half + t_quantile(parts[0].power, freedom) * error
    return replace(
        fixed,
        low=min(fixed.low, max(fixed.difference - half, -span)),
        high=max(fixed.high, min(fixed.difference + half, span)),
        p_value=max(fixed.p_value, p_value),
        standard_error=max(fixed.standard_error, error),
        smallest_visible_difference=max(fixed.smallest_visible_difference, min(visible, span)),
        tasks_are="sample",
    )


def sampled_average(
    parts: Sequence[Estimate], scores: Sequence[Values] = (), *, value_range: Range | None = None
) -> Estimate:
    """The mean over tasks of one model's scores, for tasks like these, as `sampled_difference`."""
    check_sample(len(parts))
    fixed = macro_average(parts, value_range=value_range)
    error, freedom = _spread([part.value for part in parts], scores)
    half = t_quantile(0.5 + fixed.level / 2, freedom) * error
    bottom, top = value_range or (-math.inf, math.inf)
    return replace(
        fixed,
        low=min(fixed.low, max(fixed.value - half, bottom)),
        high=max(fixed.high, min(fixed.value + half, top)),
        standard_error=max(fixed.standard_error or 0.0, error),
        method=f"mean over {len(parts)} tasks as a sample of tasks, t",
        degrees_of_freedom=freedom,
    )


def _spread(means: Sequence[float], values: Sequence[Values]) -> tuple[float, float]:
    error, freedom, _ = sampled_spread(
        float(np.var(means, ddof=1)), len(means), *(shared_covariance(values) if values else (0.0, 1.0))
    )
    return error, freedom
