"""Averages over a fixed set of tasks, all models at once: `simultaneous.py` for the mean of several tasks' differences.

A pair's difference is the mean over tasks of its paired differences, each task counting the same, and its standard
error adds the tasks' own in squares with Welch-Satterthwaite degrees of freedom, as in `macro.py`. Each task's error is that of
the interval that `compare_paired` gives, so that a task where few items differ does not pose as certain.

The critical value comes from one resample over the items of all tasks (Gaussian multipliers, max-|t|; sources in
`simultaneous.py`). Beside the items every model has a small independent part of its own in every task, as if one unit more
had spoken for it alone: pairs without any spread then count as nearly independent of the others, which is the careful side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level
from evalwright.statistics.intervals import Range
from evalwright.statistics.pairwise import (
    AllPairs,
    Pairs,
    checked_missing,
    common_differences,
    common_influences,
)
from evalwright.statistics.simultaneous import (
    DRAWS,
    F32,
    GROUPS,
    SimultaneousDifferences,
    assembled,
    checked_scores,
    middle_filled,
    multiplied,
)
from evalwright.statistics.units import F64, I64

Part = tuple[npt.ArrayLike, npt.ArrayLike | None]
"""Scores (models, items) of one task, nan = no score, and its clusters (items,) or None."""


def simultaneous_macro(
    parts: Sequence[Part],
    *,
    missing: Sequence[npt.ArrayLike | None] | None = None,
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
    draws: int = DRAWS,
    seed: int = 0,
) -> SimultaneousDifferences:
    """Simultaneous intervals and adjusted p-values of the mean over tasks of all paired differences.

    `parts`: the tasks, with the models in the same order; `missing`: of each, which scores failed. The other arguments are those of `simultaneous_differences`; a
    pair that shares no item of some task, or that has no error there, has no answer (nan). `n` and `units` are sums over
    tasks, `units` one more than the degrees of freedom. Raises ValueError as there, for no task, and for numbers of models
    that differ.
    """
    check_level(level)
    if not parts:
        raise ValueError("an average needs at least one task")
    tasks = [checked_scores(scores, clusters, value_range, draws) for scores, clusters in parts]
    models = len(tasks[0][0])
    if any(len(rows) != models for rows, _ in tasks):
        raise ValueError("every task must have a row for the same models")
    lost = [
        checked_missing(which, rows)
        for which, (rows, _) in zip(missing or [None] * len(tasks), tasks, strict=True)
    ]
    found = [
        common_differences(rows, codes, value_range, missing)
        for (rows, codes), missing in zip(tasks, lost, strict=True)
    ]
    every = _mean_of(found, level)
    filled = [
        (*middle_filled(rows, missing, one, value_range), codes)
        for (rows, codes), missing, one in zip(tasks, lost, found, strict=True)
    ]
    rng = np.random.default_rng(seed)
    deviations = _deviations(filled, np.triu_indices(models, 1), draws, rng)
    method = f"max-|t| of the mean over {len(tasks)} fixed tasks, {draws} Gaussian multiplier draws on common items"
    return assembled(every, deviations, rng, level, draws, method)


def _mean_of(found: Sequence[AllPairs], level: float) -> AllPairs:
    """The mean over tasks of all differences, and of their fillings where something is missing."""
    errors = np.stack([_errors(one, level) for one in found])
    error = np.sqrt((errors**2).sum(axis=0)) / len(found)
    np.fill_diagonal(error, 0.0)
    filled = any(one.worst is not None for one in found)
    return AllPairs(
        difference=np.mean([one.difference for one in found], axis=0),
        error=error,
        freedom=_freedom(errors, np.stack([one.freedom for one in found])),
        n=np.sum([one.n for one in found], axis=0),
        units=np.sum([one.units for one in found], axis=0),
        worth=np.sum([one.worth for one in found], axis=0),
        counts=None,
        span=found[0].span,
        n_missing=np.sum([one.n_missing for one in found], axis=0),
        worst=_mean_of([one.worst or one for one in found], level) if filled else None,
    )


def _errors(found: AllPairs, level: float) -> F64:
    """The standard error that each pair's interval is worth on one task, (models, models); nan where there is none."""
    from scipy.special import stdtrit

    low, high = found.scored_limits(1 - level)
    out: F64 = (high - low) / (2 * np.asarray(stdtrit(np.maximum(found.freedom, 1.0), 0.5 + level / 2)))
    return np.where(found.n > 0, out, np.nan)


def _freedom(errors: F64, freedom: F64) -> F64:
    """Welch-Satterthwaite degrees of freedom. errors and freedom: (tasks, models, models)."""
    squares = errors**2
    with np.errstate(divide="ignore", invalid="ignore"):
        found = squares.sum(axis=0) ** 2 / (
            squares**2 / np.maximum(np.nan_to_num(freedom, nan=1.0), 1.0)
        ).sum(axis=0)
    out: F64 = np.maximum(np.nan_to_num(found, nan=1.0), 1.0)
    return out


def _deviations(
    tasks: Sequence[tuple[F64, F64, I64 | None]],
    pairs: Pairs,
    draws: int,
    rng: np.random.Generator,
) -> Iterator[F32]:
    """|deviation| of every pair in units of its standard error, (some draws, pairs). tasks: scores, their differences, clusters."""
    influences = np.concatenate(
        [
            _influences(rows, codes, difference, pairs, GROUPS // len(tasks), rng)
            for rows, difference, codes in tasks
        ]
    )
    yield from multiplied(influences, draws, rng)


def _influences(
    rows: F64, codes: I64 | None, difference: F64, pairs: Pairs, most: int, rng: np.random.Generator
) -> F32:
    """Influences of groups of units on one task, and of each model's own small part: (groups + models, pairs)."""
    units = codes if codes is not None else np.arange(rows.shape[1])
    size = int(units.max(initial=0)) + 1
    groups = max(most, 64)
    if size > groups:
        units = (rng.permutation(size) % groups)[units]
    shared = common_influences(rows, units, difference, pairs)
    own = np.zeros((len(rows), len(pairs[0])), dtype=np.float32)
    places = np.arange(len(pairs[0]))
    own[pairs[0], places], own[pairs[1], places] = 1 / (size + 2), -1 / (size + 2)
    return np.concatenate([shared, own * _spread(rows)])


def _spread(rows: F64) -> np.float32:
    """The range of the scores there are, 1 where they are all alike: what one unit more could say."""
    there = rows[~np.isnan(rows)]
    span = float(there.max() - there.min()) if len(there) else 0.0
    return np.float32(span or 1.0)
