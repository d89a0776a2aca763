"""Averages over tasks that are treated as a sample from a larger set of similar tasks.

A mean over fixed tasks says how these tasks would come out with other items. Whether another
choice of tasks would agree is seen in how far the tasks' means differ, which includes the
sampling of their items already: the variance is S^2 / T with S^2 the variance of the T means,
and T - 1 degrees of freedom.

Tasks that share items (translations, prompts of the same questions) have errors in common,
which do not show between them: the mean covariance c of two tasks' means over their common
units is added, S^2 / T + c, with Satterthwaite's degrees of freedom. It is 0 without common
units, and then the interval is Student's with T - 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import t_quantile, t_two_sided
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.macro import MacroDifference, macro_average, macro_difference
from evalwright.statistics.many_models import AllDifferences, assemble_differences
from evalwright.statistics.many_models_macro import Part, mean_over_tasks
from evalwright.statistics.many_tasks import TaskRange
from evalwright.statistics.paired import PairedComparison
from evalwright.statistics.pairwise import (
    AllPairs,
    MissingPolicy,
    WorstCase,
    common_differences,
    common_influences,
)
from evalwright.statistics.units import F64, I64, Range, Spread

FEWEST = 3
"""Fewest tasks that a sample can have.

With two, the quantile is 12.7 and nothing can be concluded.
"""

Values = tuple[F64, I64 | None]
"""Scores or differences of one task's items (n,), nan is missing, and unit codes (n,).

The codes mean the same in every task; None if the task shares no unit.
"""


def sampled_spread(between: float, tasks: int, shared: float, freedom: float) -> Spread:
    """Compute the error and degrees of freedom of a mean over sampled tasks.

    Args:
        between: variance of the tasks' means.
        tasks: number of tasks.
        shared: covariance of two tasks' means.
        freedom: degrees of freedom of that covariance.
    """
    between_error = between / tasks
    variance = between_error + shared
    below = between_error**2 / (tasks - 1) + (
        shared**2 / freedom if shared > 0 else 0.0
    )
    return Spread(
        math.sqrt(variance),
        variance**2 / below if below > 0 else tasks - 1.0,
        float(tasks),
    )


def shared_covariance(parts: Sequence[Values]) -> tuple[float, float]:
    """The mean covariance between two tasks' means over shared units, with its degrees of freedom.

    It is at least 0. Items with one code, in whatever task, are one unit. The covariance of two
    tasks is the sum over units of the products of their sums of residuals, over n_t n_u, times G /
    (G - 1) for G units in common.
    """
    sums = []
    for values, codes in parts:
        has_value = ~np.isnan(values)
        if codes is None or np.count_nonzero(has_value) < 2:
            continue
        present = values[has_value]
        names, places = np.unique(codes[has_value], return_inverse=True)
        sums.append(
            (
                names,
                np.bincount(places, present - present.mean(), len(names))
                / len(present),
            )
        )
    total = 0.0
    most = 0
    for (names, sums_a), (others, sums_b) in combinations(sums, 2):
        _, mine, theirs = np.intersect1d(
            names, others, assume_unique=True, return_indices=True
        )
        if len(mine) > 1:
            total += float(sums_a[mine] @ sums_b[theirs]) * len(mine) / (len(mine) - 1)
            most = max(most, len(mine))
    pairs = len(parts) * (len(parts) - 1) / 2
    return max(0.0, total / pairs) if pairs else 0.0, max(1.0, most - 1.0)


def check_sample(tasks: int) -> None:
    """Raise ValueError for fewer tasks than a sample needs."""
    if tasks < FEWEST:
        raise ValueError(
            f"a sample of tasks needs at least {FEWEST} of them, not {tasks}"
        )


def sampled_difference(
    parts: Sequence[PairedComparison],
    differences: Sequence[Values],
    *,
    value_range: Range | None = None,
    fixed: MacroDifference | None = None,
) -> MacroDifference:
    """The mean over tasks of paired differences, for tasks like these.

    Conclusions about tasks like these cannot be more certain than about exactly these tasks: where
    the tasks' means happen to differ less than their own errors suggest, the errors of the fixed
    tasks are used.

    Args:
        parts: the tasks' comparisons.
        differences: of each task's items.
        value_range: the range of a score.
        fixed: the same mean for fixed tasks, if already computed.

    Raises:
        ValueError: fewer than three tasks.
    """
    check_sample(len(parts))
    fixed = fixed or macro_difference(parts, value_range=value_range)
    error, freedom = _task_spread([part.difference for part in parts], differences)
    half = t_quantile(0.5 + fixed.level / 2, freedom) * error
    span = math.inf if value_range is None else value_range[1] - value_range[0]
    p_value = t_two_sided(fixed.difference / error, freedom) if error > 0 else 0.0
    visible = half + t_quantile(parts[0].power, freedom) * error
    low = max(fixed.difference - half, -span)
    high = min(fixed.difference + half, span)
    # Missing answers shift this mean by as much as they shift that of the fixed tasks.
    below, above = (
        float(
            np.mean(
                [
                    (
                        abs(part.fillings[side][0] - part.difference)
                        if part.fillings
                        else 0.0
                    )
                    for part in parts
                ]
            )
        )
        for side in (1, 2)
    )
    worst_low = (
        min(fixed.worst_low, max(low - below, -span)) if fixed.n_missing else math.nan
    )
    worst_high = (
        max(fixed.worst_high, min(high + above, span)) if fixed.n_missing else math.nan
    )
    if fixed.missing_policy == "worst-case" and fixed.n_missing:
        low = worst_low
        high = worst_high
    return replace(
        fixed,
        low=min(fixed.low, low),
        high=max(fixed.high, high),
        worst_low=worst_low,
        worst_high=worst_high,
        p_value=max(fixed.p_value, p_value),
        standard_error=max(fixed.standard_error, error),
        smallest_visible_difference=max(
            fixed.smallest_visible_difference, min(visible, span)
        ),
        tasks_are="sample",
    )


def sampled_average(
    parts: Sequence[Estimate],
    scores: Sequence[Values] = (),
    *,
    value_range: Range | None = None,
    fixed: Estimate | None = None,
) -> Estimate:
    """One model's mean score over tasks like these; see `sampled_difference`."""
    check_sample(len(parts))
    fixed = fixed or macro_average(parts, value_range=value_range)
    error, freedom = _task_spread([part.value for part in parts], scores)
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


def _task_spread(
    means: Sequence[float], values: Sequence[Values]
) -> tuple[float, float]:
    error, freedom, _ = sampled_spread(
        float(np.var(means, ddof=1)),
        len(means),
        *(shared_covariance(values) if values else (0.0, 1.0)),
    )
    return error, freedom


def all_sampled_differences(
    parts: Sequence[Part],
    *,
    missing: Sequence[npt.ArrayLike | None] | None = None,
    missing_policy: MissingPolicy = "scored",
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
    ranges: Sequence[TaskRange] | None = None,
) -> AllDifferences:
    """Compare all pairs of models on the mean over tasks, for tasks like these.

    No interval is narrower than that of the fixed tasks. Arguments and errors as of
    `all_macro_differences`; also raises ValueError for fewer than three tasks.
    """
    check_sample(len(parts))
    fixed = mean_over_tasks(
        parts,
        missing=missing,
        missing_policy=missing_policy,
        weights=None,
        level=level,
        value_range=value_range,
        ranges=ranges,
    )
    of_fixed = fixed.scored if isinstance(fixed, WorstCase) else fixed
    sampled = _sampled_pairs(parts, of_fixed)
    span = math.inf if value_range is None else value_range[1] - value_range[0]

    def limits(share: F64) -> tuple[F64, F64]:
        low, high = fixed.limits(share)
        ends = sampled.limits(share)
        half = (ends[1] - ends[0]) / 2
        below = above = np.zeros_like(half)
        if isinstance(fixed, WorstCase) and fixed.worst is not None:
            # Missing answers shift this mean by as much as they shift that of the fixed tasks.
            below = np.maximum(of_fixed.difference - fixed.worst.difference, 0.0)
            above = below.T
        low = np.fmin(low, np.maximum(sampled.difference - half - below, -span))
        return low, np.fmax(high, np.minimum(sampled.difference + half + above, span))

    return assemble_differences(
        replace(of_fixed, error=np.fmax(of_fixed.error, sampled.error)),
        np.fmax(fixed.p_values(), sampled.p_values()),
        limits,
        level=level,
        missing_policy=missing_policy,
        method=f"mean over {len(parts)} tasks as a sample of tasks",
    )


def _sampled_pairs(parts: Sequence[Part], fixed: AllPairs) -> AllPairs:
    """Compute all pairs with the spread between tasks; `fixed` are the pairs for fixed tasks."""
    tasks = [np.asarray(scores, dtype=np.float64) for scores, _ in parts]
    gaps = np.stack([common_differences(rows).difference for rows in tasks])
    shared, freedom_shared = _pair_covariances(
        tasks, [codes for _, codes in parts], gaps
    )
    count = len(tasks)
    models = len(tasks[0])
    between_error = gaps.var(axis=0, ddof=1) / count
    error = np.sqrt(between_error + shared)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (between_error + shared) ** 2 / (
            between_error**2 / (count - 1) + shared**2 / freedom_shared
        )
    return AllPairs(
        difference=fixed.difference,
        error=np.where(np.isnan(fixed.error), np.nan, error),
        freedom=np.where(np.isfinite(freedom), freedom, count - 1.0),
        n=fixed.n,
        units=np.full((models, models), count),
        effective_units=np.full((models, models), float(count)),
        counts=None,
        span=math.nan,
        n_missing=fixed.n_missing,
        counted=np.zeros(error.shape, dtype=bool),
        differing=np.zeros(error.shape),
        skewness=np.zeros(error.shape),
    )


def _pair_covariances(
    tasks: Sequence[F64], codes: Sequence[npt.ArrayLike | None], gaps: F64
) -> tuple[F64, float]:
    """Compute `shared_covariance` for every pair of models, with the degrees of freedom."""
    models = len(tasks[0])
    pairs = np.triu_indices(models, 1)
    names, counts = np.unique(
        np.concatenate(
            [np.unique(np.asarray(ids)) for ids in codes if ids is not None]
            or [np.zeros(0)]
        ),
        return_counts=True,
    )
    shared = names[counts > 1]
    covariances = np.zeros((models, models))
    if len(shared) < 2:
        return covariances, 1.0
    total = np.zeros((len(shared), len(pairs[0])))
    squares = np.zeros(len(pairs[0]))
    for rows, ids, gap in zip(tasks, codes, gaps, strict=True):
        if ids is None:
            continue
        is_shared = np.isin(ids, shared)
        units = np.searchsorted(shared, np.asarray(ids)[is_shared])
        present, places = np.unique(units, return_inverse=True)
        task_influences = np.zeros_like(total)
        inside = (~np.isnan(rows)).astype(np.float64)
        common = (inside @ inside.T)[pairs]
        n_common = (inside[:, is_shared] @ inside[:, is_shared].T)[pairs]
        sums = common_influences(
            rows[:, is_shared], places.astype(np.int64), gap, pairs
        )
        task_influences[present] = sums * (
            np.maximum(n_common, 1) / np.maximum(common, 1)
        )
        total += task_influences
        squares += (task_influences**2).sum(axis=0)
    pairs_of_tasks = len(tasks) * (len(tasks) - 1) / 2
    covariance = (
        ((total**2).sum(axis=0) - squares)
        / 2
        / pairs_of_tasks
        * len(shared)
        / (len(shared) - 1)
    )
    covariances[pairs] = np.maximum(covariance, 0.0)
    return covariances + covariances.T, len(shared) - 1.0
