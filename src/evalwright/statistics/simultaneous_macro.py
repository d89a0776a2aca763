"""Averages over a fixed set of tasks, all models at once: `simultaneous.py` for the mean of several tasks' differences.

A pair's difference is the weighted mean over tasks of its paired differences, and its standard error and degrees of freedom those of
`macro_difference`, with the covariance of tasks that share units. Each task's error is that of the interval that `compare_paired`
gives, so that a task where few items differ does not pose as certain.

The critical value comes from one resample over the units of all tasks (Gaussian multipliers, max-|t|; sources in
`simultaneous.py`); a unit that several tasks share is drawn once for all of them. Beside the items every model has a small independent part of its own in every task, as if one unit more
had spoken for it alone: pairs without any spread then count as nearly independent of the others, which is the careful side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level
from evalwright.statistics.pairwise import (
    AllPairs,
    Pairs,
    checked_missing,
    common_differences,
    common_influences,
)
from evalwright.statistics.shared_units import (
    combined,
    correlated,
    cr2_scaled,
    errors_of_intervals,
    sharing,
    unit_sums,
)
from evalwright.statistics.simultaneous import (
    CELLS,
    DRAWS,
    F32,
    GROUPS,
    SimultaneousDifferences,
    assembled,
    checked_scores,
    middle_filled,
    multiplied,
)
from evalwright.statistics.units import F64, I64, Range

Part = tuple[npt.ArrayLike, npt.ArrayLike | None]
"""Scores (models, items) of one task, nan = missing, and codes (items,) of its units that mean the same in every task: items with
one code are one unit. None: every item stands alone and is in no other task."""


def simultaneous_macro(
    parts: Sequence[Part],
    *,
    missing: Sequence[npt.ArrayLike | None] | None = None,
    weights: Sequence[float] | None = None,
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
    draws: int = DRAWS,
    seed: int = 0,
) -> SimultaneousDifferences:
    """Simultaneous intervals and adjusted p-values of the mean over tasks of all paired differences.

    `parts`: the tasks, with the models in the same order; `missing`: of each, which scores failed; `weights`: of
    the tasks, by default each the same. The other arguments are those of `simultaneous_differences`; a pair that shares no item of some task, or that has no error there, has no answer (nan). `n` and `units` are sums over
    tasks, `units` one more than the degrees of freedom. Raises ValueError as there, for no task, and for numbers of models
    that differ.
    """
    check_level(level)
    if not parts:
        raise ValueError("an average needs at least one task")
    tasks, found, filled = list[F64](), list[AllPairs](), list[tuple[F64, F64]]()
    for (scores, clusters), which in zip(parts, missing or [None] * len(parts), strict=True):
        rows, codes = checked_scores(scores, clusters, value_range, draws)
        failed = checked_missing(which, rows)
        tasks.append(rows)
        found.append(common_differences(rows, codes, value_range, failed))
        filled.append(middle_filled(rows, failed, found[-1], value_range))
    if len({len(rows) for rows in tasks}) > 1:
        raise ValueError("every task must have a row for the same models")
    share = np.ones(len(parts)) if weights is None else np.asarray(weights, np.float64)
    share = share / share.sum()
    units, rng = _units(parts), np.random.default_rng(seed)
    every = _mean_of(found, tasks, units, share, level)
    influences = _influences(filled, units, share, np.triu_indices(len(tasks[0]), 1), rng)
    method = f"max-|t| of the mean over {len(tasks)} fixed tasks, {draws} Gaussian multiplier draws on common items"
    return assembled(every, multiplied(influences, draws, rng), rng, level, draws, method)


def _mean_of(
    found: Sequence[AllPairs], tasks: Sequence[F64], units: Sequence[I64], share: F64, level: float
) -> AllPairs:
    """The mean over tasks of all differences, and of their fillings where something is missing. tasks: the scores, units: their codes."""
    error, freedom = _spread_of_pairs(tasks, units, found, share, level)
    filled = any(one.worst is not None for one in found)
    names = ("n", "units", "worth", "n_missing")
    sums: dict[str, Any] = {name: np.sum([getattr(one, name) for one in found], axis=0) for name in names}
    return AllPairs(
        difference=np.einsum("t,tij->ij", share, [one.difference for one in found]),
        error=error,
        freedom=freedom,
        counts=None,
        span=found[0].span,
        **sums,
        worst=_mean_of([one.worst or one for one in found], tasks, units, share, level) if filled else None,
    )


def _errors(found: AllPairs, level: float) -> tuple[F64, F64]:
    """The standard error that each pair's interval is worth on one task and its degrees of freedom, (models, models); nan where
    there is none."""
    errors, freedom = errors_of_intervals(*found.scored_limits(1 - level), found.freedom, found.span, level)
    return np.where(found.n > 0, errors, np.nan), np.where(found.n > 0, freedom, 1.0)


def _units(parts: Sequence[Part]) -> list[I64]:
    """The units of every task as numbers 0.. that mean the same in all; items of a task without codes get numbers of their own."""
    given = [np.asarray(ids, np.int64) for _, ids in parts if ids is not None]
    names, places = np.unique(np.concatenate([np.zeros(0, np.int64), *given]), return_inverse=True)
    out, begin, following = list[I64](), 0, len(names)
    for scores, ids in parts:
        items = np.shape(scores)[1]
        if ids is None:
            out.append(np.arange(following, following + items))
            following += items
        else:
            out.append(places[begin : begin + items].astype(np.int64))
            begin += items
    return out


def _spread_of_pairs(
    tasks: Sequence[F64], units: Sequence[I64], found: Sequence[AllPairs], share: F64, level: float
) -> tuple[F64, F64]:
    """Standard errors and degrees of freedom of all pairs, (models, models)."""
    errors, freedom = (
        np.stack(every, axis=-1) for every in zip(*(_errors(one, level) for one in found), strict=True)
    )
    errors = errors * share
    models = len(errors)
    among = sharing([unit_sums(np.zeros(len(own)), own) for own in units])
    error, df = combined(errors, freedom, np.eye(len(tasks)), among.sets)
    if len(among.shared):
        sums = [_PairSums(rows, own, among.shared) for rows, own in zip(tasks, units, strict=True)]
        step = max(1, CELLS // max(1, *(rows.shape[1] for rows in tasks), len(tasks) * len(among.shared)))
        for row in range(models - 1):
            for begin in range(row + 1, models, step):
                others = np.arange(begin, min(begin + step, models))
                own = [one.of(row, others) for one in sums]
                values, norms = (np.stack(side, axis=1) for side in zip(*own, strict=True))
                rho = correlated(values, norms, among.overlap)
                for place in ((row, others), (others, row)):
                    error[place], df[place] = combined(errors[place], freedom[place], rho, among.sets)
    np.fill_diagonal(error, 0.0)
    return error, np.fmax(df, 1.0)


class _PairSums:
    """What `unit_sums` gives of a model's differences from others, on units that tasks share."""

    def __init__(self, rows: F64, units: I64, shared: I64) -> None:
        self.rows, self.order = rows, np.argsort(units, kind="stable")
        names, self.starts = np.unique(units[self.order], return_index=True)
        self.places = np.minimum(np.searchsorted(names, shared), max(len(names) - 1, 0))
        self.has = names[self.places] == shared if len(names) else np.zeros(len(shared), bool)

    def of(self, row: int, others: npt.NDArray[np.intp]) -> tuple[F64, F64]:
        """(others, shared units) scaled sums, and their norms over all units of the task, (others,)."""
        gaps = (self.rows[row] - self.rows[others])[:, self.order]
        there = ~np.isnan(gaps)
        n = np.maximum(there.sum(axis=1), 1)[:, None]
        gaps = np.where(there, gaps, 0.0)
        residuals = np.where(there, gaps - gaps.sum(axis=1, keepdims=True) / n, 0.0)
        if not len(self.starts):
            return np.zeros((len(others), len(self.has))), np.zeros(len(others))
        sizes = np.add.reduceat(there, self.starts, axis=1, dtype=np.float64) / n
        sums = cr2_scaled(np.add.reduceat(residuals, self.starts, axis=1) / n, sizes)
        return np.where(self.has, sums[:, self.places], 0.0), np.sqrt((sums**2).sum(axis=1))


def _influences(
    tasks: Sequence[tuple[F64, F64]], units: Sequence[I64], share: F64, pairs: Pairs, rng: np.random.Generator
) -> F32:
    """tasks: scores and their differences. Influences of groups of units, the same in all tasks, and of each model's own small part in each: (groups and models, pairs)."""
    size = 1 + max(int(own.max(initial=-1)) for own in units)
    groups = rng.permutation(size) % GROUPS if size > GROUPS else np.arange(size)
    shared = np.zeros((min(size, GROUPS), len(pairs[0])), dtype=np.float32)
    alone = []
    places = np.arange(len(pairs[0]))
    for (rows, difference), own, weight in zip(tasks, units, share, strict=True):
        if not len(own):
            continue
        here = groups[own]
        shared[np.unique(here)] += np.float32(weight) * common_influences(rows, here, difference, pairs)
        small = np.zeros((len(rows), len(places)), dtype=np.float32)
        worth = weight * _spread(rows) / (len(np.unique(own)) + 2)
        small[pairs[0], places], small[pairs[1], places] = worth, -worth
        alone.append(small)
    return np.concatenate([shared, *alone])


def _spread(rows: F64) -> float:
    """The range of the scores there are, 1 where they are all alike: what one unit more could say."""
    there = rows[~np.isnan(rows)]
    return float(there.max() - there.min() if len(there) else 0.0) or 1.0
