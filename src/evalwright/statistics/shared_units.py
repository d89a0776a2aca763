"""Correlations of tasks that share units, and the standard error of a weighted mean over tasks.

Translations of the same questions, or two tasks about the same passages, are not independent
samples: their errors add, and a mean over seven translations of 200 items is hardly more
precise than one of them. Each task contributes the sums of its residuals by unit, scaled as in
CR2 (`units.cluster_spread`); their products over common units are the covariances of the means,
so that the total is the CR2 variance over the units of all tasks. How large each task's own
error is comes from its own interval, which near the ends of the range or with few items is more
reliable than the standard error: only the correlations come from the sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from evalwright.statistics.units import F64, I64, Bools


class UnitSums(NamedTuple):
    """The units of a task.

    Args:
        codes: (units,) sorted, with the same meaning in every task.
        shares: (units,), each unit's share of the items.
        sums: (units,), each unit's contribution to the error of the task's mean: the sum of its
            residuals over n, divided by the root of 1 - share.
    """

    codes: I64
    shares: F64
    sums: F64


def unit_sums(values: npt.ArrayLike, codes: npt.ArrayLike) -> UnitSums:
    """Compute the units of the mean of `values`.

    Args:
        values: (n,), nan is missing.
        codes: (n,) integers; items with one code, in whatever task, are one unit.
    """
    scores = np.asarray(values, np.float64)
    ids = np.asarray(codes, np.int64)
    has_score = ~np.isnan(scores)
    scores = scores[has_score]
    ids = ids[has_score]
    names, places = np.unique(ids, return_inverse=True)
    size = max(len(scores), 1)
    shares = np.bincount(places, minlength=len(names)) / size
    residuals = scores - scores.mean() if len(scores) else scores
    return UnitSums(
        names,
        shares,
        cr2_scaled(np.bincount(places, residuals, len(names)) / size, shares),
    )


def cr2_scaled(sums: F64, shares: F64) -> F64:
    """Scale sums of residuals over n as CR2 does; 0 where one unit is the whole task."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(shares < 1, sums / np.sqrt(1 - shares), 0.0)


class Sharing(NamedTuple):
    """The units that several tasks have in common.

    Args:
        shared: (units,) codes that at least two tasks have.
        overlap: (tasks, tasks) the cosine of their shares, 1 for the same units in the same
            proportions.
        sets: (tasks,) equal numbers for tasks that are connected by shared units.
    """

    shared: I64
    overlap: F64
    sets: I64


def sharing(units: Sequence[UnitSums | None]) -> Sharing:
    """Determine which units tasks share; None represents a task that shares none."""
    codes = [task_units.codes for task_units in units if task_units is not None]
    names, counts = np.unique(
        np.concatenate([np.zeros(0, np.int64), *codes]), return_counts=True
    )
    shared = names[counts > 1]
    shares = aligned(
        shared,
        (
            (task_units.codes, task_units.shares) if task_units else None
            for task_units in units
        ),
    )
    norms = np.array(
        [
            np.sqrt((task_units.shares**2).sum())
            if task_units and len(task_units.shares)
            else 1.0
            for task_units in units
        ]
    )
    overlap = shares @ shares.T / np.outer(norms, norms)
    np.fill_diagonal(overlap, 1.0)
    return Sharing(shared, overlap, connected_sets(overlap))


def aligned(shared: I64, columns: Iterable[tuple[I64, F64] | None]) -> F64:
    """Align each task's numbers on the shared units, (tasks, shared units); 0 where it lacks one.

    Args:
        shared: codes of the shared units.
        columns: each task's sorted codes, and its numbers (..., units).
    """
    rows = []
    for column in columns:
        row = np.zeros(len(shared))
        if column is not None and len(column[0]):
            codes, numbers = column
            places = np.minimum(np.searchsorted(codes, shared), len(codes) - 1)
            row = np.where(codes[places] == shared, numbers[places], 0.0)
        rows.append(row)
    return np.stack(rows)


def connected_sets(overlap: F64) -> I64:
    """Number tasks so that those have equal numbers that shared units connect, (tasks,)."""
    sets = np.arange(len(overlap))
    before = None
    # the smallest number of a set spreads to all tasks connected with it
    while before is None or (sets != before).any():
        sets, before = np.where(overlap > 0, sets, len(overlap)).min(axis=1), sets
    return sets


def correlations(units: Sequence[UnitSums | None], among: Sharing) -> F64:
    """Compute the correlations of the tasks' means, (tasks, tasks)."""
    sums = aligned(
        among.shared,
        (
            (task_units.codes, task_units.sums) if task_units else None
            for task_units in units
        ),
    )
    norms = np.array(
        [
            np.sqrt((task_units.sums**2).sum()) if task_units else 0.0
            for task_units in units
        ]
    )
    return correlate_sums(sums, norms, among.overlap)


def correlate_sums(sums: F64, norms: F64, overlap: F64) -> F64:
    """Compute correlations (..., tasks, tasks) of tasks that share units.

    A task without any spread says nothing about its correlations, so its overlap with the others is
    used instead.

    Args:
        sums: (..., tasks, units) by shared unit.
        norms: (..., tasks), norm of each task's sums over all its units.
        overlap: (tasks, tasks), how far tasks share their units.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = (
            sums
            @ np.swapaxes(sums, -1, -2)
            / (norms[..., :, None] * norms[..., None, :])
        )
    silent = (norms[..., :, None] <= 1e-12) | (norms[..., None, :] <= 1e-12)
    clipped: F64 = np.clip(np.where(silent, overlap, correlation), -1.0, 1.0)
    return np.where(np.eye(overlap.shape[0], dtype=bool), 1.0, clipped)


class Correlations(Protocol):
    """The correlations of tasks, as sums over tasks need them; arrays are (..., tasks)."""

    def along(self, amounts: F64) -> F64:
        """The amounts of all tasks that are correlated with each one, added up, (..., tasks)."""

    def square(self, amounts: F64) -> F64:
        """The square of the amounts' sum, (...)."""

    def variance(self, errors: F64) -> F64:
        """The variance of the sum of tasks with these errors, (...)."""

    def below(self, errors: F64, freedom: F64) -> F64:
        """What is below the fraction of Welch-Satterthwaite, (...)."""


@dataclass(frozen=True, slots=True)
class AnyCorrelations:
    """Correlations as a matrix.

    Attributes:
        matrix: (..., tasks, tasks).
        sets: (tasks,) equal numbers for connected tasks.
    """

    matrix: F64
    sets: I64

    def along(self, amounts: F64) -> F64:
        """As in `Correlations`."""
        along: F64 = (self.matrix @ amounts[..., :, None])[..., 0]
        return along

    def square(self, amounts: F64) -> F64:
        """As in `Correlations`."""
        square: F64 = (amounts[..., None, :] @ self.matrix @ amounts[..., :, None])[
            ..., 0, 0
        ]
        return square

    def variance(self, errors: F64) -> F64:
        """As in `Correlations`."""
        products = self.matrix * errors[..., :, None] * errors[..., None, :]
        variance: F64 = np.maximum(products.sum(axis=(-1, -2)), 0.0)
        return variance

    def below(self, errors: F64, freedom: F64) -> F64:
        """As in `Correlations`."""
        products = self.matrix * errors[..., :, None] * errors[..., None, :]
        below = np.zeros(errors.shape[:-1])
        for number in np.unique(self.sets):
            inside = self.sets == number
            part = np.maximum(
                products[..., inside, :][..., inside].sum(axis=(-1, -2)), 0.0
            )
            below += _below_of_set(part, errors[..., inside], freedom[..., inside])
        return below


@dataclass(frozen=True, slots=True)
class SetCorrelations:
    """Correlations of which most are 0: a matrix for each set of connected tasks.

    Attributes:
        connected: for each set of at least two tasks, their positions (k,) and their correlations
            (..., k, k).
        alone: (tasks,), which tasks are connected with no other.
    """

    connected: Sequence[tuple[I64, F64]]
    alone: Bools

    def along(self, amounts: F64) -> F64:
        """As in `Correlations`."""
        along = amounts.copy()
        for places, matrix in self.connected:
            along[..., places] = (matrix @ amounts[..., places, None])[..., 0]
        return along

    def square(self, amounts: F64) -> F64:
        """As in `Correlations`."""
        square: F64 = (amounts * self.along(amounts)).sum(axis=-1)
        return square

    def variance(self, errors: F64) -> F64:
        """As in `Correlations`."""
        return np.maximum(self.square(errors), 0.0)

    def below(self, errors: F64, freedom: F64) -> F64:
        """As in `Correlations`."""
        variances = errors[..., self.alone] ** 2
        below: F64 = np.where(
            variances > 0, variances**2 / freedom[..., self.alone], 0.0
        ).sum(axis=-1)
        for places, matrix in self.connected:
            inside = errors[..., places]
            along = (matrix @ inside[..., :, None])[..., 0]
            part = np.maximum((inside * along).sum(axis=-1), 0.0)
            below = below + _below_of_set(part, inside, freedom[..., places])
        return below


def _below_of_set(part: F64, errors: F64, freedom: F64) -> F64:
    """What a set with the variance `part` adds below the fraction of Welch-Satterthwaite."""
    variances = errors**2
    below: F64 = np.where(
        part > 0,
        part**2 * (variances / freedom).sum(axis=-1) / variances.sum(axis=-1),
        0.0,
    )
    return below


def combine_errors(
    errors: F64, freedom: F64, correlation: F64, sets: I64
) -> tuple[F64, F64]:
    """The error of a sum of tasks, and its degrees of freedom.

    Within connected tasks, whose errors come from the same units, degrees of freedom are the
    harmonic mean weighted by variances; between sets, which are independent, Welch-Satterthwaite.

    Args:
        errors: (..., tasks), standard errors.
        freedom: (..., tasks), degrees of freedom.
        correlation: (..., tasks, tasks).
        sets: (tasks,) equal numbers for connected tasks.
    """
    return _combine_errors(errors, freedom, AnyCorrelations(correlation, sets))


def _combine_errors(
    errors: F64, freedom: F64, correlations: Correlations
) -> tuple[F64, F64]:
    variance = correlations.variance(errors)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = correlations.below(errors, freedom)
        # If every part is known from the range alone (infinite degrees of freedom), so is the sum.
        combined_freedom = np.where(
            below > 0, variance**2 / below, np.where(variance > 0, np.inf, np.nan)
        )
    return np.sqrt(variance), combined_freedom


class MeanSpread(NamedTuple):
    """The spread of a mean over tasks.

    Its interval extends t (error - asymmetry) below and t (error + asymmetry) above.

    Args:
        standard_error: of the mean.
        error: the error that its interval corresponds to.
        asymmetry: by how much the error above exceeds that, and the error below falls short of it.
        freedom: degrees of freedom.
    """

    standard_error: F64
    error: F64
    asymmetry: F64
    freedom: F64


def mean_spread(
    errors: F64,
    freedom: F64,
    half: F64,
    centre_offset: F64,
    uncut_half: F64,
    correlation: F64,
    sets: I64,
    level: float,
) -> MeanSpread:
    """Compute the spread of a weighted mean over tasks (formulas in `macro.py`).

    Args:
        errors: (..., tasks), weighted standard errors.
        freedom: (..., tasks), their degrees of freedom.
        half: (..., tasks), half the width of each task's weighted interval at `level`.
        centre_offset: (..., tasks), how far the centre of that interval is above the mean.
        uncut_half: (..., tasks), half the width of an interval with that error that is not cut by
            the range.
        correlation: (..., tasks, tasks).
        sets: (tasks,) equal numbers for connected tasks.
        level: confidence level of the intervals.
    """
    correlations = AnyCorrelations(correlation, sets)
    return spread_of_mean(
        errors, freedom, half, centre_offset, uncut_half, correlations, level
    )


def spread_of_mean(
    errors: F64,
    freedom: F64,
    half: F64,
    centre_offset: F64,
    uncut_half: F64,
    correlations: Correlations,
    level: float,
) -> MeanSpread:
    """Compute `mean_spread` with correlations in any form."""
    from scipy.special import stdtrit

    standard_error, df = _combine_errors(errors, freedom, correlations)
    multiple = np.asarray(stdtrit(df, 0.5 + level / 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Half the width of the interval of all tasks correlated with this one; of a task that
        # shares nothing, its own.
        along = correlations.along(half)
        part = np.clip(along**2 / (half * along).sum(axis=-1, keepdims=True), 0.0, 1.0)
        reach = np.sqrt(part * half**2 + (1 - part) * np.fmax(uncut_half, half) ** 2)
        most = np.sqrt(np.maximum(correlations.square(reach), 0.0))
        error = np.where(
            multiple * standard_error > most, most / multiple, standard_error
        )
        centre = (part * centre_offset).sum(axis=-1)
        asymmetry = np.clip(np.nan_to_num(centre / multiple), -error, error)
        # No mean is further off than all its parts together can be.
        below = np.minimum(
            error - asymmetry, (half - centre_offset).sum(axis=-1) / multiple
        )
        above = np.minimum(
            error + asymmetry, (half + centre_offset).sum(axis=-1) / multiple
        )
    return MeanSpread(standard_error, (below + above) / 2, (above - below) / 2, df)


def errors_of_intervals(
    low: F64,
    high: F64,
    freedom: F64,
    span: float,
    level: float,
    width: npt.ArrayLike = np.nan,
) -> tuple[F64, F64]:
    """Convert intervals of differences to the standard errors they imply, and degrees of freedom.

    The error is half the width over Student's quantile. With few units, the interval fills the
    range `span` (nan: unknown) whatever its error is; as for a score interval around the middle,
    half = span t e / sqrt(span^2 + t^2 e^2) is solved for e. With a single unit only the range is
    known: the error is the greatest possible, with infinite degrees of freedom.

    Args:
        low: low ends of the intervals.
        high: high ends.
        freedom: degrees of freedom; 0 for a single unit.
        span: the range that all scores have, nan if they have none in common.
        level: confidence level of the intervals.
        width: the greatest possible difference of a single unit, where `span` is not known.
    """
    from scipy.special import stdtrit

    half = (high - low) / 2
    quantile = np.asarray(stdtrit(np.fmax(freedom, 1.0), 0.5 + level / 2))
    errors = half / quantile
    degrees = np.fmax(freedom, 1.0)
    is_single = ~(freedom > 0) & ~np.isnan(half)
    if np.isnan(span):
        is_single &= ~np.isnan(width)
        return (
            np.where(is_single, width, errors),
            np.where(is_single, np.inf, degrees),
        )
    room = np.sqrt(np.maximum(1 - (half / span) ** 2, 1e-12))
    return np.where(is_single, span, np.minimum(errors / room, span)), np.where(
        is_single, np.inf, degrees
    )
