"""Averages over a fixed set of tasks, all models at once: `simultaneous.py` for the mean of several tasks' differences.

A pair's difference is the mean over tasks of its paired differences, each task counting the same, and its standard
error adds the tasks' own in squares with Welch-Satterthwaite degrees of freedom, as in `macro.py`. Each task's error is the one
that `compare_paired` would give: Bonett & Price for right or wrong on single items; where the differences show no spread, the
width of the rule of three, so that such a task does not pose as certain.

The critical value comes from one resample over the items of all tasks (Gaussian multipliers, max-|t|; sources in
`simultaneous.py`). Beside the items every model has a small independent part of its own in every task, as if one unit more
had spoken for it alone: pairs without any spread then count as nearly independent of the others, which is the careful side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level, normal_quantile
from evalwright.statistics.intervals import Range
from evalwright.statistics.pairwise import AllPairs, common_differences, common_influences
from evalwright.statistics.simultaneous import (
    DRAWS,
    F32,
    GROUPS,
    Pairs,
    SimultaneousDifferences,
    assembled,
    checked_scores,
    discordant_counts,
    multiplied,
)
from evalwright.statistics.units import F64, I64

Part = tuple[npt.ArrayLike, npt.ArrayLike | None]
"""Scores (models, items) of one task, nan = missing, and its clusters (items,) or None."""


def simultaneous_macro(
    parts: Sequence[Part],
    *,
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
    draws: int = DRAWS,
    seed: int = 0,
) -> SimultaneousDifferences:
    """Simultaneous intervals and adjusted p-values of the mean over tasks of all paired differences.

    `parts`: the tasks, with the models in the same order. The other arguments are those of `simultaneous_differences`; a
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
    span = math.nan if value_range is None else value_range[1] - value_range[0]
    found = [common_differences(rows, codes) for rows, codes in tasks]
    errors = np.stack([_errors(one, span, level) for one in found])
    units = np.stack([one.units for one in found])
    error = np.sqrt((errors**2).sum(axis=0)) / len(tasks)
    np.fill_diagonal(error, 0.0)
    every = AllPairs(
        difference=np.mean([one.difference for one in found], axis=0),
        error=error,
        n=np.sum([one.n for one in found], axis=0),
        units=_freedom(errors, units) + 1,
        binary=np.zeros((models, models), dtype=bool),
    )
    rng = np.random.default_rng(seed)
    deviations = _deviations(tasks, found, np.triu_indices(models, 1), draws, rng)
    method = f"max-|t| of the mean over {len(tasks)} fixed tasks, {draws} Gaussian multiplier draws on common items"
    return assembled(every, span, deviations, rng, level, draws, method)


def _errors(found: AllPairs, span: float, level: float) -> F64:
    """The standard error of every pair on one task, (models, models); nan where there is none."""
    width = 2 * normal_quantile(0.5 + level / 2)
    only_row, only_column = discordant_counts(found)
    p12, p21 = (only_row + 1) / (found.n + 2), (only_column + 1) / (found.n + 2)
    bonett_price = np.sqrt((p12 + p21 - (p12 - p21) ** 2) / (found.n + 2))
    alone = np.where(found.units == 1, 2 * span / width, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        unlike = -np.expm1(np.log(1 - level) / np.maximum(found.units - 1, 1))
    alike = np.where(found.alike, 2 * unlike * span / width, found.error)
    out: F64 = np.where(found.binary, bonett_price, np.where(found.units > 1, alike, alone))
    return out


def _freedom(errors: F64, units: I64) -> I64:
    """Welch-Satterthwaite degrees of freedom, rounded down, at least 1. errors and units: (tasks, models, models)."""
    squares = errors**2
    below = (squares**2 / np.maximum(units - 1, 1)).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = squares.sum(axis=0) ** 2 / below
    whole: I64 = np.maximum(np.floor(np.nan_to_num(freedom, nan=1.0, posinf=1.0) + 1e-9), 1.0).astype(
        np.int64
    )
    return whole


def _deviations(
    tasks: Sequence[tuple[F64, I64 | None]],
    found: Sequence[AllPairs],
    pairs: Pairs,
    draws: int,
    rng: np.random.Generator,
) -> Iterator[F32]:
    """|deviation| of every pair in units of its standard error, (some draws, pairs)."""
    influences = np.concatenate(
        [_influences(rows, codes, one.difference, pairs, GROUPS // len(tasks), rng)
         for (rows, codes), one in zip(tasks, found, strict=True)]
    )  # fmt: skip
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
