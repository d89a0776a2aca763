"""Comparison of all pairs of models on the average over a fixed set of tasks.

It extends `many_models` to a mean over tasks. A pair's difference is the weighted mean over
tasks of its paired differences, and its standard error and degrees of freedom those of
`macro_difference`, with the covariance of tasks that share units. Each task's error is that of
the interval that `compare_paired` gives, so that a task where few items differ does not count
as certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level
from evalwright.statistics.many_models import (
    AllDifferences,
    assemble_differences,
    checked_scores,
)
from evalwright.statistics.pairwise import (
    AllPairs,
    MissingPolicy,
    WorstCase,
    checked_missing,
    common_differences,
    worst_case,
)
from evalwright.statistics.shared_units import (
    MeanSpread,
    correlate_sums,
    cr2_scaled,
    errors_of_intervals,
    mean_spread,
    sharing,
    unit_sums,
)
from evalwright.statistics.units import F64, I64, Range

_CELLS = 4_000_000
"""Pairs x items in memory at a time: 32 MB."""
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
        value_range: the range of a score, None if unknown.

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
) -> AllPairs | WorstCase:
    """Average all differences over tasks, as an object that gives intervals at any level.

    Arguments are those of `all_macro_differences`.
    """
    check_level(level)
    if not parts:
        raise ValueError("an average needs at least one task")
    tasks = list[F64]()
    scored = list[AllPairs]()
    worst = list[AllPairs | None]()
    for (scores, clusters), which in zip(
        parts, missing or [None] * len(parts), strict=True
    ):
        rows, codes = checked_scores(scores, clusters, value_range)
        is_missing = checked_missing(which, rows)
        tasks.append(rows)
        scored.append(common_differences(rows, codes, value_range, is_missing))
        if missing_policy == "worst-case":
            worst.append(
                worst_case(rows, codes, value_range, is_missing, scored[-1]).worst
            )
    if len({len(rows) for rows in tasks}) > 1:
        raise ValueError("every task must have a row for the same models")
    share = np.ones(len(parts)) if weights is None else np.asarray(weights, np.float64)
    share = share / share.sum()
    units = _consistent_units(parts)
    mean = _average_pairs(scored, tasks, units, share, level)
    if missing_policy == "scored":
        return mean
    if not any(worst):
        return WorstCase(mean, None)
    filled = [
        fill or own_scored for fill, own_scored in zip(worst, scored, strict=True)
    ]
    return WorstCase(mean, _average_pairs(filled, tasks, units, share, level))


def _average_pairs(
    pairs_by_task: Sequence[AllPairs],
    tasks: Sequence[F64],
    units: Sequence[I64],
    share: F64,
    level: float,
) -> AllPairs:
    """Average all differences over tasks.

    `tasks` are the scores of each task, `units` the codes of its units.
    """
    spread = _spread_of_pairs(tasks, units, pairs_by_task, share, level)
    names = ("n", "units", "effective_units", "n_missing")
    sums: dict[str, Any] = {
        name: np.sum(
            [getattr(task_pairs, name) for task_pairs in pairs_by_task], axis=0
        )
        for name in names
    }
    return AllPairs(
        difference=np.einsum(
            "t,tij->ij", share, [task_pairs.difference for task_pairs in pairs_by_task]
        ),
        error=spread.error,
        freedom=spread.freedom,
        asymmetry=spread.asymmetry,
        counts=None,
        span=pairs_by_task[0].span,
        counted=np.zeros(spread.error.shape, dtype=bool),
        differing=np.zeros(spread.error.shape),
        skewness=np.zeros(spread.error.shape),
        **sums,
    )


def _interval_errors(pairs: AllPairs, level: float) -> tuple[F64, F64, F64, F64]:
    """Convert each pair's interval on one task to the error that it corresponds to.

    Returns:
        Error, degrees of freedom, half the width, and how far the centre is above the difference;
        each (models, models), nan without items.
    """
    low, high = pairs.limits(1 - level)
    errors, freedom = errors_of_intervals(low, high, pairs.freedom, pairs.span, level)
    half = (high - low) / 2
    centre_offset = (high + low) / 2 - pairs.difference
    has_items = pairs.n > 0
    errors, half, centre_offset = (
        np.where(has_items, part, np.nan) for part in (errors, half, centre_offset)
    )
    return errors, np.where(has_items, freedom, 1.0), half, centre_offset


def _consistent_units(parts: Sequence[Part]) -> list[I64]:
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


def _spread_of_pairs(
    tasks: Sequence[F64],
    units: Sequence[I64],
    pairs_by_task: Sequence[AllPairs],
    share: F64,
    level: float,
) -> MeanSpread:
    """The spread of the mean over tasks, for all pairs (models, models)."""
    from scipy.special import stdtrit

    by_task = zip(
        *(_interval_errors(pairs, level) for pairs in pairs_by_task), strict=True
    )
    errors, freedom, half, centre_offset = (np.stack(part, axis=-1) for part in by_task)
    errors = errors * share
    half = half * share
    centre_offset = centre_offset * share
    uncut_half = errors * np.asarray(stdtrit(freedom, 0.5 + level / 2))
    models = len(errors)
    among = sharing(
        [unit_sums(np.zeros(len(task_units)), task_units) for task_units in units]
    )

    def spread(index: tuple[Any, ...], rho: F64) -> MeanSpread:
        parts = (
            errors[index],
            freedom[index],
            half[index],
            centre_offset[index],
            uncut_half[index],
        )
        return mean_spread(*parts, rho, among.sets, level)

    standard_error, error, asymmetry, df = spread((), np.eye(len(tasks)))
    if len(among.shared):
        sums = [
            _PairSums(rows, task_units, among.shared)
            for rows, task_units in zip(tasks, units, strict=True)
        ]
        step = max(
            1,
            _CELLS
            // max(
                1, *(rows.shape[1] for rows in tasks), len(tasks) * len(among.shared)
            ),
        )
        for row in range(models - 1):
            for begin in range(row + 1, models, step):
                others = np.arange(begin, min(begin + step, models))
                pair_sums = [task_sums.of(row, others) for task_sums in sums]
                values, norms = (
                    np.stack(side, axis=1) for side in zip(*pair_sums, strict=True)
                )
                rho = correlate_sums(values, norms, among.overlap)
                for index in ((row, others), (others, row)):
                    own_spread = spread(index, rho)
                    for table, part in zip(
                        (standard_error, error, asymmetry, df), own_spread, strict=True
                    ):
                        table[index] = part
    for table in (standard_error, error):
        np.fill_diagonal(table, 0.0)
    return MeanSpread(standard_error, error, np.nan_to_num(asymmetry), np.fmax(df, 1.0))


class _PairSums:
    """The `unit_sums` of a model's differences from other models, on units that tasks share."""

    def __init__(self, rows: F64, units: I64, shared: I64) -> None:
        self.rows = rows
        self.order = np.argsort(units, kind="stable")
        names, self.starts = np.unique(units[self.order], return_index=True)
        self.places = np.minimum(np.searchsorted(names, shared), max(len(names) - 1, 0))
        self.has = (
            names[self.places] == shared if len(names) else np.zeros(len(shared), bool)
        )

    def of(self, row: int, others: npt.NDArray[np.intp]) -> tuple[F64, F64]:
        """Compute scaled sums (others, shared units), and their norms over all units (others,)."""
        gaps = (self.rows[row] - self.rows[others])[:, self.order]
        there = ~np.isnan(gaps)
        n = np.maximum(there.sum(axis=1), 1)[:, None]
        gaps = np.where(there, gaps, 0.0)
        residuals = np.where(there, gaps - gaps.sum(axis=1, keepdims=True) / n, 0.0)
        if not len(self.starts):
            return np.zeros((len(others), len(self.has))), np.zeros(len(others))
        sizes = np.add.reduceat(there, self.starts, axis=1, dtype=np.float64) / n
        sums = cr2_scaled(np.add.reduceat(residuals, self.starts, axis=1) / n, sizes)
        return np.where(self.has, sums[:, self.places], 0.0), np.sqrt(
            (sums**2).sum(axis=1)
        )
