"""Comparison of all pairs of models on the average over a fixed set of tasks.

It extends `many_models` to a mean over tasks. A pair's difference is the weighted mean over
tasks of its paired differences, and its standard error and degrees of freedom those of
`macro_difference`, with the covariance of tasks that share units. Each task's error is that of
the interval that `compare_paired` gives, so that a task where few items differ does not count
as certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level
from evalwright.statistics.many_models import (
    AllDifferences,
    assemble_differences,
    checked_scores,
)
from evalwright.statistics.many_tasks import (
    ManyTasks,
    TaskMean,
    TaskPairs,
    TaskRange,
    pairs_of_task,
    selected_pairs,
    task_pairs,
)
from evalwright.statistics.pairwise import (
    AllPairs,
    MissingPolicy,
    Pairs,
    WorstCase,
    checked_missing,
    count_missing,
    grouped,
    range_width,
    worst_case,
)
from evalwright.statistics.units import F64, I64, Range

Part = tuple[npt.ArrayLike, npt.ArrayLike | None]
"""One task: scores (models, items), nan is missing, and codes (items,) of its units.

The codes mean the same in every task: items with one code are one unit. None: all items are
independent and in no other task.
"""


def all_macro_differences(
    parts: Sequence[Part],
    *,
    missing: Sequence[npt.ArrayLike | None] | None = None,
    missing_policy: MissingPolicy = "scored",
    weights: Sequence[float] | None = None,
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
    ranges: Sequence[TaskRange] | None = None,
) -> AllDifferences:
    """Compare all pairs of models on the mean over fixed tasks, with Holm's adjustment.

    `n` and `units` of the result are sums over tasks. A pair that shares no item of some task, or
    has no error there, cannot be compared (nan).

    Args:
        parts: the tasks, with the models in the same order.
        missing: for each task, which scores are missing.
        missing_policy: as in `compare_paired`.
        weights: the tasks' weights; equal by default.
        level: 1 minus the chance of any false finding.
        value_range: the range of a score that all tasks have, None if unknown.
        ranges: that of each task, where they differ.

    Raises:
        ValueError: as `all_differences`; no task, or different numbers of models.
    """
    tested = mean_over_tasks(
        parts,
        missing=missing,
        missing_policy=missing_policy,
        weights=weights,
        level=level,
        value_range=value_range,
        ranges=ranges,
    )
    pairs = tested.scored if isinstance(tested, WorstCase) else tested
    return assemble_differences(
        pairs,
        tested.p_values(),
        tested.limits,
        level=level,
        missing_policy=missing_policy,
        method=f"mean over {len(parts)} fixed tasks",
    )


def mean_over_tasks(
    parts: Sequence[Part],
    *,
    missing: Sequence[npt.ArrayLike | None] | None,
    missing_policy: MissingPolicy,
    weights: Sequence[float] | None,
    level: float,
    value_range: Range | None,
    ranges: Sequence[TaskRange] | None = None,
) -> AllPairs | WorstCase:
    """Average all differences over tasks, as an object that gives intervals at any level.

    Arguments are those of `all_macro_differences`.
    """
    check_level(level)
    if not parts:
        raise ValueError("an average needs at least one task")
    policy_is_worst = missing_policy == "worst-case"
    tasks = list[F64]()
    scored = list[TaskPairs]()
    worst = list[TaskPairs | None]()
    counts = list[_Counts]()
    worst_counts = list[_Counts]()
    models = len(np.asarray(parts[0][0]))
    every = _ordered_pairs(models)
    ranges = ranges or [TaskRange.of_scores(value_range)] * len(parts)
    for (scores, clusters), which, task_range in zip(
        parts, missing or [None] * len(parts), ranges, strict=True
    ):
        rows, codes = checked_scores(scores, clusters, task_range.scores)
        if len(rows) != models:
            raise ValueError("every task must have a row for the same models")
        is_missing = checked_missing(which, rows)
        tasks.append(rows)
        scored.append(task_pairs(rows, codes, task_range, level))
        n_missing = count_missing(rows, is_missing)
        counts.append(_Counts.of_scores(rows, codes, n_missing))
        if policy_is_worst:
            filled = worst_case(rows, codes, task_range.scores, is_missing).worst
            worst.append(
                None
                if filled is None
                else pairs_of_task(selected_pairs(filled, every), level, task_range)
            )
            worst_counts.append(
                counts[-1]
                if filled is None
                else _Counts(np.diag(filled.n), np.diag(filled.units), filled.n_missing)
            )
    share = np.ones(len(parts)) if weights is None else np.asarray(weights, np.float64)
    share = share / share.sum()
    units = consistent_units(parts)
    span = range_width(value_range)
    upper = np.triu_indices(models, 1)
    mean = _average_pairs(
        ManyTasks(tasks, units, scored, upper, level), share, counts, span
    )
    if not policy_is_worst:
        return mean
    if not any(worst):
        return WorstCase(mean, None)
    all_filled = [
        fill or _both_directions(task_scored, models)
        for fill, task_scored in zip(worst, scored, strict=True)
    ]
    many_filled = ManyTasks(tasks, units, all_filled, every, level)
    return WorstCase(mean, _average_pairs(many_filled, share, worst_counts, span))


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts of one task that do not come with its pairs.

    Attributes:
        n: (models,), scored items of each model.
        units: (models,), the same in units.
        n_missing: (models, models), items that either of two models lacks.
    """

    n: I64
    units: I64
    n_missing: I64

    @classmethod
    def of_scores(cls, scores: F64, codes: I64 | None, n_missing: I64) -> _Counts:
        """Count what models have."""
        has = ~np.isnan(scores)
        n = has.sum(axis=1)
        if codes is None:
            return cls(n, n, n_missing)
        order, starts = grouped(codes)
        units = np.logical_or.reduceat(has[:, order], starts, axis=1).sum(axis=1)
        return cls(n, units, n_missing)


def _ordered_pairs(models: int) -> Pairs:
    """Rows and columns of all pairs: those of the upper triangle, then the same turned."""
    rows, columns = np.triu_indices(models, 1)
    return np.concatenate([rows, columns]), np.concatenate([columns, rows])


def _both_directions(pairs: TaskPairs, models: int) -> TaskPairs:
    """Add each pair the other way round."""
    all_pairs = slice(None)
    turned = {
        name: (pairs.of_pairs(name, all_pairs), sign * pairs.of_pairs(name, all_pairs))
        for name, sign in {
            "difference": -1,
            "error": 1,
            "freedom": 1,
            "half": 1,
            "centre_offset": -1,
            "uncut_half": 1,
            "n": 1,
            "units": 1,
            "effective_units": 1,
        }.items()
    }
    columns: dict[str, Any] = {
        name: np.concatenate(directions) for name, directions in turned.items()
    }
    return TaskPairs(places=all_pairs, **columns)


def _average_pairs(
    many: ManyTasks, share: F64, counts: Sequence[_Counts], span: float
) -> AllPairs:
    """Average all differences over all tasks."""
    mean = many.mean(TaskMean(np.arange(len(share)), share))
    models = len(counts[0].n)
    rows, columns = many.pairs
    is_half = len(rows) < models * (models - 1)

    def table(column: F64, turned: float, diagonal: Any) -> Any:
        filled = np.zeros((models, models), column.dtype)
        filled[rows, columns] = column
        if is_half:
            filled[columns, rows] = turned * column
        np.fill_diagonal(filled, diagonal)
        return filled

    all_pairs = slice(None)
    sums: dict[str, Any] = {
        name: table(
            np.sum(
                [task.of_pairs(name, all_pairs) for task in many.pairs_by_task], axis=0
            ),
            1,
            sum(
                getattr(task, "units" if name == "effective_units" else name)
                for task in counts
            ),
        )
        for name in ("n", "units", "effective_units")
    }
    nothing = np.zeros((models, models))
    return AllPairs(
        difference=table(mean.difference, -1, 0.0),
        error=table(mean.spread.error, 1, 0.0),
        freedom=table(mean.spread.freedom, 1, 1.0),
        asymmetry=table(mean.spread.asymmetry, -1, 0.0),
        counts=None,
        span=span,
        counted=nothing.astype(bool),
        differing=nothing,
        skewness=nothing,
        n_missing=np.sum([task.n_missing for task in counts], axis=0),
        **sums,
    )


def consistent_units(parts: Sequence[Part]) -> list[I64]:
    """Number the units of every task consistently between tasks.

    Items of a task without codes get numbers that occur nowhere else.
    """
    all_ids = [np.asarray(ids, np.int64) for _, ids in parts if ids is not None]
    names, places = np.unique(
        np.concatenate([np.zeros(0, np.int64), *all_ids]), return_inverse=True
    )
    units_by_task = list[I64]()
    begin = 0
    following = len(names)
    for scores, ids in parts:
        n_items = np.shape(scores)[1]
        if ids is None:
            units_by_task.append(np.arange(following, following + n_items))
            following += n_items
        else:
            units_by_task.append(places[begin : begin + n_items].astype(np.int64))
            begin += n_items
    return units_by_task
