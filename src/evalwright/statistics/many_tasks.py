"""All pairs of models on many tasks, kept small, and their means over any of these tasks.

A board of 500 models and 60 tasks has 7.5 million differences of two models on a task, and a mean
over tasks is wanted at each node of a tree. So what a mean needs of a task's differences is
computed once (`TaskPairs`): pairs with equal counts of wins, losses and common items, which are
most of them, share one row of a table. Means are then taken over blocks of pairs, all nodes at a
time, and only tasks that share units have correlations, set by set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evalwright.statistics.pairwise import (
    AllPairs,
    Pairs,
    Places,
    grouped,
    is_graded,
    limits_without_spread,
    pairs_of_sums,
    range_width,
    upper_sums,
)
from evalwright.statistics.shared_units import (
    MeanSpread,
    SetCorrelations,
    connected_sets,
    correlate_sums,
    cr2_scaled,
    errors_of_intervals,
    sharing,
    spread_of_mean,
    unit_sums,
)
from evalwright.statistics.units import F64, I64, Range

_CELLS = 4_000_000
"""Pairs x (tasks or items) in memory at a time: 32 MB."""


@dataclass(frozen=True, slots=True)
class TaskPairs:
    """What means over tasks need of one task's paired differences; pairs that are alike come once.

    Attributes:
        places: the row of each pair in the columns below, (pairs,).
        difference: row minus column of the matrix of pairs.
        error: the error that its interval at the level of the mean corresponds to; nan without
            items.
        freedom: degrees of freedom.
        half: half the width of that interval.
        centre_offset: how far its centre is above the difference.
        uncut_half: half the width of an interval with that error that is not cut by the range.
        n: common items.
        units: common items or clusters.
        effective_units: the number of equally large units that the data are worth.
    """

    places: Places
    difference: F64
    error: F64
    freedom: F64
    half: F64
    centre_offset: F64
    uncut_half: F64
    n: I64
    units: I64
    effective_units: F64

    def of_pairs(self, name: str, block: slice) -> F64:
        """A column for some of the pairs, (pairs,)."""
        column: F64 = getattr(self, name)
        return column[block if isinstance(self.places, slice) else self.places[block]]


@dataclass(frozen=True, slots=True)
class TaskRange:
    """What is known of the range of a task's scores.

    Attributes:
        scores: the least and the greatest score, None if unknown.
        width: the greatest possible difference of two models; that of the scores, or of a metric
            between 0 and 1 that is no mean of its units; nan if unknown.
        is_shared: whether all tasks of the mean have the range.
    """

    scores: Range | None
    width: float
    is_shared: bool = True

    @classmethod
    def of_scores(cls, value_range: Range | None) -> TaskRange:
        """The range of a mean over items, which all tasks have."""
        return cls(value_range, range_width(value_range))


def task_pairs(
    scores: F64, codes: I64 | None, task_range: TaskRange, level: float
) -> TaskPairs:
    """Compare all pairs of models with row < column on one task.

    Args:
        scores: (models, items), nan is no score.
        codes: (items,) cluster numbers 0..G-1, or None.
        task_range: the range of the scores.
        level: that of the intervals of the mean over tasks.
    """
    pairs, places = scored_pairs(scores, codes, task_range.scores)
    return pairs_of_task(pairs, level, task_range, places)


def scored_pairs(
    scores: F64, codes: I64 | None, value_range: Range | None
) -> tuple[AllPairs, Places]:
    """Compare all pairs with row < column as `common_differences`, pairs that are alike once.

    Returns:
        The distinct pairs, and the position of each pair among them, (pairs,).
    """
    starts = None
    if codes is not None:
        order, starts = grouped(codes)
        scores = scores[:, order]
    sums, places = upper_sums(scores, starts, is_graded(scores, value_range))
    none_missing = np.zeros(len(sums["n"]), np.int64)
    pairs = pairs_of_sums(
        sums, range_width(value_range), none_missing, starts is not None
    )
    return pairs, places


def pairs_of_task(
    pairs: AllPairs, level: float, task_range: TaskRange, places: Places = slice(None)
) -> TaskPairs:
    """Keep what means over tasks need of a task's differences, which are arrays (pairs,)."""
    from scipy.special import stdtrit

    low, high = pairs.limits(1 - level)
    freedom = pairs.freedom
    no_spread = np.isnan(low) & (pairs.n > 0) & ~(pairs.error > 0)
    if no_spread.any() and not math.isnan(task_range.width):
        ends = limits_without_spread(pairs.units, task_range.width, level)
        low, high = (
            np.where(no_spread, end, limits)
            for end, limits in zip(ends, (low, high), strict=True)
        )
        freedom = np.where(no_spread & (pairs.units > 1), np.inf, freedom)
    span = pairs.span if task_range.is_shared else math.nan
    errors, freedom = errors_of_intervals(
        low, high, freedom, span, level, task_range.width
    )
    has_items = pairs.n > 0
    error, half, centre_offset = (
        np.where(has_items, column, np.nan)
        for column in (errors, (high - low) / 2, (high + low) / 2 - pairs.difference)
    )
    freedom = np.where(has_items, freedom, 1.0)
    if not isinstance(places, slice):
        places = places.astype(np.int32)
    return TaskPairs(
        places=places,
        difference=pairs.difference,
        error=error,
        freedom=freedom,
        half=half,
        centre_offset=centre_offset,
        uncut_half=error * np.asarray(stdtrit(freedom, 0.5 + level / 2)),
        n=pairs.n,
        units=pairs.units,
        effective_units=pairs.effective_units,
    )


def selected_pairs(pairs: AllPairs, places: Pairs) -> AllPairs:
    """Select some pairs of a matrix, as arrays (pairs,)."""
    counts = pairs.counts
    if counts is not None:
        counts = type(counts)(
            better=counts.better[places],
            worse=counts.worse[places],
            size=counts.size[places],
            freedom=counts.freedom[places],
            stretch=np.broadcast_to(counts.stretch, counts.size.shape)[places],
        )
    return AllPairs(
        difference=pairs.difference[places],
        error=pairs.error[places],
        freedom=pairs.freedom[places],
        n=pairs.n[places],
        units=pairs.units[places],
        effective_units=pairs.effective_units[places],
        counts=counts,
        span=pairs.span,
        n_missing=pairs.n_missing[places],
        counted=pairs.counted[places],
        differing=pairs.differing[places],
        skewness=pairs.skewness[places],
    )


class TaskMean(NamedTuple):
    """A weighted mean over tasks.

    Args:
        tasks: (k,), which of the tasks.
        share: (k,), their weights, which add up to 1.
    """

    tasks: npt.NDArray[np.intp]
    share: F64


@dataclass(frozen=True, slots=True)
class PairMeans:
    """The differences of pairs on a mean over tasks; arrays (pairs,).

    Attributes:
        difference: row minus column.
        units: common units, summed over tasks.
        spread: the spread of the differences.
    """

    difference: F64
    units: I64
    spread: MeanSpread

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """All arrays."""
        return self.difference, self.units, *self.spread

    @property
    def p_values(self) -> F64:
        """The two-sided p-values of no difference, as `AllPairs.p_values`."""
        nothing = np.zeros(self.difference.shape)
        return AllPairs(
            difference=self.difference,
            error=self.spread.error,
            freedom=self.spread.freedom,
            asymmetry=self.spread.asymmetry,
            n=self.units,
            units=self.units,
            effective_units=nothing,
            counts=None,
            span=math.nan,
            n_missing=self.units,
            counted=nothing.astype(bool),
            differing=nothing,
            skewness=nothing,
        ).p_values()


class ManyTasks:
    """The pairs of models on several tasks, of which means over some tasks are taken.

    Args:
        scores: each task's scores, (models, items), nan is no score.
        units: each task's units, (items,), with the same meaning in every task.
        pairs_by_task: each task's differences.
        pairs: rows and columns of the pairs, in the order of `pairs_by_task`.
        level: that of the means' intervals.
    """

    def __init__(
        self,
        scores: Sequence[F64],
        units: Sequence[I64],
        pairs_by_task: Sequence[TaskPairs],
        pairs: Pairs,
        level: float,
    ) -> None:
        self.scores = scores
        self.units = units
        self.pairs_by_task = pairs_by_task
        self.pairs = pairs
        self.level = level
        self.overlap = sharing(
            [unit_sums(np.zeros(len(task_units)), task_units) for task_units in units]
        ).overlap

    def means(
        self, nodes: Sequence[TaskMean]
    ) -> Iterator[tuple[slice, list[PairMeans]]]:
        """Compute the mean over tasks of every pair, for several choices of tasks at once.

        Yields:
            Some of the pairs, and for each node their means.
        """
        sets_by_node = [self._connected(node) for node in nodes]
        unit_sums_by_set = [
            _SetSums(self, tasks)
            for tasks in _largest({tasks for sets in sets_by_node for tasks in sets})
        ]
        for block in self._blocks(nodes, unit_sums_by_set):
            correlations = [
                set_sums.correlations(*(side[block] for side in self.pairs))
                for set_sums in unit_sums_by_set
            ]
            yield (
                block,
                [
                    self._mean(
                        node,
                        _set_correlations(node, sets, unit_sums_by_set, correlations),
                        block,
                    )
                    for node, sets in zip(nodes, sets_by_node, strict=True)
                ],
            )

    def mean(self, node: TaskMean) -> PairMeans:
        """Compute one mean over tasks of every pair."""
        parts = [means[0] for _, means in self.means([node])]
        columns = [
            np.concatenate(column)
            for column in zip(*(part.columns for part in parts), strict=True)
        ]
        return PairMeans(columns[0], columns[1], MeanSpread(*columns[2:]))

    def _mean(self, node: TaskMean, among: SetCorrelations, block: slice) -> PairMeans:
        tasks = [self.pairs_by_task[task] for task in node.tasks.tolist()]
        difference = sum(
            weight * task.of_pairs("difference", block)
            for weight, task in zip(node.share.tolist(), tasks, strict=True)
        )
        errors, freedom, half, centre_offset, uncut_half = (
            np.stack([task.of_pairs(name, block) for task in tasks], axis=-1)
            for name in ("error", "freedom", "half", "centre_offset", "uncut_half")
        )
        spread = spread_of_mean(
            errors * node.share,
            freedom,
            half * node.share,
            centre_offset * node.share,
            uncut_half * node.share,
            among,
            self.level,
        )
        units: I64 = np.sum([task.of_pairs("units", block) for task in tasks], axis=0)
        asymmetry = np.nan_to_num(spread.asymmetry)
        freedom = np.fmax(spread.freedom, 1.0)
        return PairMeans(
            np.asarray(difference),
            units,
            spread._replace(asymmetry=asymmetry, freedom=freedom),
        )

    def _connected(self, node: TaskMean) -> list[tuple[int, ...]]:
        """Find the tasks of a node that shared units connect, set by set."""
        sets = connected_sets(self.overlap[np.ix_(node.tasks, node.tasks)])
        return [
            tuple(node.tasks[sets == number].tolist())
            for number in np.unique(sets)
            if np.count_nonzero(sets == number) > 1
        ]

    def _blocks(
        self, nodes: Sequence[TaskMean], sets: Sequence[_SetSums]
    ) -> Iterator[slice]:
        width = max(
            1,
            *(8 * len(node.tasks) for node in nodes),
            *(set_sums.width for set_sums in sets),
        )
        step = max(1, _CELLS // width)
        count = len(self.pairs[0])
        return (slice(begin, begin + step) for begin in range(0, count, step))


def _set_correlations(
    node: TaskMean,
    sets: Sequence[tuple[int, ...]],
    unit_sums_by_set: Sequence[_SetSums],
    correlations: Sequence[F64],
) -> SetCorrelations:
    """The correlations of a node's tasks, from those of sets that contain the node's sets."""
    in_sets = {task for tasks in sets for task in tasks}
    return SetCorrelations(
        [_part_of(node, tasks, unit_sums_by_set, correlations) for tasks in sets],
        np.array([task not in in_sets for task in node.tasks.tolist()]),
    )


def _largest(sets: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Leave out sets of tasks that are part of another set."""
    return sorted(
        tasks for tasks in sets if not any({*tasks} < {*larger} for larger in sets)
    )


def _part_of(
    node: TaskMean,
    tasks: tuple[int, ...],
    unit_sums_by_set: Sequence[_SetSums],
    correlations: Sequence[F64],
) -> tuple[I64, F64]:
    """The positions of connected tasks in a node, and their correlations."""
    positions = node.tasks.tolist()
    inside = np.array([positions.index(task) for task in tasks])
    number, set_sums = next(
        (number, set_sums)
        for number, set_sums in enumerate(unit_sums_by_set)
        if {*tasks} <= {*set_sums.tasks}
    )
    if tasks == set_sums.tasks:
        return inside, correlations[number]
    chosen = np.array([set_sums.tasks.index(task) for task in tasks])
    return inside, correlations[number][:, chosen[:, None], chosen]


class _SetSums:
    """The `unit_sums` of pairs' differences on tasks that shared units connect."""

    def __init__(self, many: ManyTasks, tasks: tuple[int, ...]) -> None:
        self.tasks = tasks
        units = [np.unique(many.units[task]) for task in tasks]
        names, counts = np.unique(np.concatenate(units), return_counts=True)
        shared = names[counts > 1]
        self.sums = [
            _PairSums(many.scores[task], many.units[task], shared) for task in tasks
        ]
        self.overlap = many.overlap[np.ix_(tasks, tasks)]
        n_items = sum(many.scores[task].shape[1] for task in tasks)
        self.width = n_items + len(tasks) * (len(shared) + 2 * len(tasks))

    def correlations(
        self, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]
    ) -> F64:
        """The correlations of the tasks' differences, (pairs, tasks, tasks)."""
        pair_sums = [task_sums.of(rows, columns) for task_sums in self.sums]
        values, norms = (
            np.stack(side, axis=1) for side in zip(*pair_sums, strict=True)
        )
        return correlate_sums(values, norms, self.overlap)


class _PairSums:
    """The `unit_sums` of pairs' differences on one task, on units that tasks share."""

    def __init__(self, scores: F64, units: I64, shared: I64) -> None:
        order = np.argsort(units, kind="stable")
        names, self.starts = np.unique(units[order], return_index=True)
        self.scores = np.ascontiguousarray(scores[:, order])
        self.is_complete = not np.isnan(scores).any()
        self.is_of_items = len(names) == len(units)
        self.places = np.minimum(np.searchsorted(names, shared), max(len(names) - 1, 0))
        self.has = (
            names[self.places] == shared if len(names) else np.zeros(len(shared), bool)
        )

    def of(
        self, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]
    ) -> tuple[F64, F64]:
        """Compute scaled sums (pairs, shared units), and their norms over all units (pairs,)."""
        if not len(self.starts):
            return np.zeros((len(rows), len(self.has))), np.zeros(len(rows))
        gaps = self.scores[rows] - self.scores[columns]
        has_gap = ~np.isnan(gaps)
        n = np.maximum(np.count_nonzero(has_gap, axis=1), 1)[:, None]
        if not self.is_complete:
            gaps = np.where(has_gap, gaps, 0.0)
        residuals = gaps - gaps.sum(axis=1, keepdims=True) / n
        if not self.is_complete:
            residuals *= has_gap
        if self.is_of_items:
            sums = residuals / n
            shares = has_gap / n
        else:
            sums = np.add.reduceat(residuals, self.starts, axis=1) / n
            shares = np.add.reduceat(has_gap, self.starts, axis=1, dtype=np.float64) / n
        sums = cr2_scaled(sums, shares)
        return (
            np.where(self.has, sums[:, self.places], 0.0),
            np.sqrt(np.einsum("pu,pu->p", sums, sums)),
        )
