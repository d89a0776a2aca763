"""Averages over the tasks of several runs: overall, and at each node of their common tree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import Plain
from evalwright.metrics.tree import Node, coverage, distinct
from evalwright.runs.measures import UNIT_RANGE, Matrix, Measure, paired_of, pooled
from evalwright.runs.reader import Run
from evalwright.runs.results import trees_of
from evalwright.statistics import (
    Estimate,
    MacroDifference,
    PairedComparison,
    macro_average,
    macro_difference,
    mean_interval,
)
from evalwright.statistics.macro import TasksAre
from evalwright.statistics.many_tasks import TaskRange
from evalwright.statistics.shared_units import UnitSums, unit_sums
from evalwright.statistics.task_sample import (
    FEWEST,
    Values,
    sampled_average,
    sampled_difference,
)


@dataclass(frozen=True, slots=True)
class Average:
    """A weighted mean over tasks.

    Args:
        samples: a matrix for each task, or for several pooled ones.
        weights: None if each counts the same.
        tasks_are: whether it is about these tasks or, with at least three equally weighted ones,
            about tasks like these.
    """

    samples: tuple[Matrix, ...]
    weights: tuple[float, ...] | None = None
    tasks_are: TasksAre = "fixed"
    _units: list[NDArray[np.int64]] = field(
        default_factory=list, compare=False, repr=False
    )
    """The units of each sample, which are the same for all runs."""
    _estimates: dict[tuple[float, int, int, int], Estimate] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Estimates of right or wrong answers, by the level and what they depend on beside it."""

    @property
    def words(self) -> str:
        """What the mean is over, in words."""
        how = "mean" if self.weights is None else "weighted mean"
        sampled = " as a sample of tasks" if self.tasks_are == "sample" else ""
        return (
            f"{how} of {len(self.samples)} tasks{sampled}"
            if len(self.samples) > 1
            else "pooled items"
        )

    @property
    def paired(self) -> bool:
        """Whether two runs have common items in every sample."""
        return all(matrix.common().any() for matrix in self.samples)

    def comparisons(
        self, rows: tuple[int, int] = (0, 1), level: float = 0.95
    ) -> list[PairedComparison]:
        """Compare two runs on each sample, paired."""
        return [paired_of(matrix, rows=rows, level=level) for matrix in self.samples]

    def difference(
        self, rows: tuple[int, int] = (0, 1), level: float = 0.95
    ) -> MacroDifference:
        """Compute the difference of two runs, with the covariance of samples that share units."""
        units = list[UnitSums]()
        gaps = list[Values]()
        for matrix in self.samples:
            both_asked = matrix.was_asked[rows[0]] & matrix.was_asked[rows[1]]
            a, b = (matrix.values[row][both_asked] for row in rows)
            gaps.append((a - b, matrix.units[both_asked]))
            units.append(unit_sums(a - b, matrix.units[both_asked]))
        comparisons = self.comparisons(rows, level)
        span = shared_range(self.samples)
        fixed = macro_difference(
            comparisons,
            weights=self.weights,
            units=units,
            value_range=span,
            widths=[matrix.measure.width for matrix in self.samples],
        )
        if self.tasks_are == "fixed":
            return fixed
        return sampled_difference(comparisons, gaps, value_range=span, fixed=fixed)

    def mean(
        self, row: int, level: float = 0.95, estimates: Sequence[Estimate] | None = None
    ) -> Estimate:
        """Compute a run's average over the items that it was asked.

        Args:
            row: the run's row.
            level: confidence level of the interval.
            estimates: the estimates of the samples, if they are known already.
        """
        span = shared_range(self.samples)
        if not self._units:
            self._units.extend(matrix.units for matrix in self.samples)
        sample_estimates = estimates or [
            self._estimate(matrix, row, level) for matrix in self.samples
        ]
        average = macro_average(
            sample_estimates,
            weights=self.weights,
            units=[
                unit_sums(matrix.values[row], units)
                for matrix, units in zip(self.samples, self._units, strict=True)
            ],
            value_range=span,
        )
        if span is None:
            average = self._limit_to_metrics(average)
        if self.tasks_are == "fixed":
            return average

        scores = [
            (matrix.values[row], units)
            for matrix, units in zip(self.samples, self._units, strict=True)
        ]
        return sampled_average(
            sample_estimates, scores, value_range=span, fixed=average
        )

    def _limit_to_metrics(self, average: Estimate) -> Estimate:
        """Cut an average's interval at the mean of the ranges of its metrics, if all are known."""
        ranges = [matrix.measure.known_range for matrix in self.samples]
        known_ranges = [known_range for known_range in ranges if known_range]
        if len(known_ranges) < len(ranges) or math.isnan(average.low):
            return average
        weights = self.weights or [1.0] * len(ranges)
        total = math.fsum(weights)
        least, greatest = (
            math.fsum(
                weight * known_range[end] / total
                for weight, known_range in zip(weights, known_ranges, strict=True)
            )
            for end in (0, 1)
        )
        return replace(
            average,
            low=min(max(average.low, least), greatest),
            high=min(max(average.high, least), greatest),
        )

    def _estimate(self, matrix: Matrix, row: int, level: float) -> Estimate:
        """Compute a run's number on one sample."""
        if matrix.estimates and level == 0.95:
            # A metric that is not a mean over items has its own number.
            return matrix.estimates[row]
        counts = ~np.isnan(matrix.values[row]) | matrix.missing[row]
        values = matrix.values[row][counts]
        value_range = matrix.measure.value_range
        scored = values[~np.isnan(values)]
        if matrix.estimates and len(scored) and scored.min() == scored.max():
            # Pseudo-values that are all alike are the metric's own value, within its range.
            value_range = matrix.measure.metric_range
        if matrix.clusters is not None or value_range != UNIT_RANGE:
            clusters = None if matrix.clusters is None else matrix.clusters[counts]
            return mean_interval(
                values, clusters=clusters, level=level, value_range=value_range
            )
        n_right = int(np.count_nonzero(values == 1))
        n_wrong = int(np.count_nonzero(values == 0))
        n_missing = int(np.count_nonzero(np.isnan(values)))
        if n_right + n_wrong + n_missing < len(values):
            return mean_interval(values, level=level, value_range=value_range)
        # On a large board, most runs have an equal's counts on some task.
        key = level, n_right, n_wrong, n_missing
        if key not in self._estimates:
            self._estimates[key] = mean_interval(
                values, level=level, value_range=value_range
            )
        return self._estimates[key]


@dataclass(frozen=True, slots=True)
class GroupDifference(Plain):
    """The difference of two runs at a node of their tree.

    Args:
        name: the node's name.
        average: how its parts are averaged.
        n_tasks: number of its tasks.
        missing: those of them that the comparison lacks.
        difference: None if a task has no number, or the tasks cannot be averaged or paired.
    """

    name: str
    average: str
    n_tasks: int
    missing: tuple[str, ...]
    difference: MacroDifference | None

    @property
    def coverage(self) -> str:
        """How many tasks have a number, in words."""
        return coverage(self.n_tasks, self.missing)


def shared_range(matrices: Sequence[Matrix]) -> tuple[float, float] | None:
    """Return the range of scores that all matrices share.

    None if one has no range, or they differ.
    """
    spans = {matrix.measure.value_range for matrix in matrices}
    return spans.pop() if len(spans) == 1 else None


def ranges_of_tasks(matrices: Sequence[Matrix]) -> list[TaskRange]:
    """Return what is known of the range of each task's scores."""
    is_shared = shared_range(matrices) is not None
    return [
        TaskRange(matrix.measure.value_range, matrix.measure.width, is_shared)
        for matrix in matrices
    ]


def can_average(measures: Sequence[Measure]) -> bool:
    """Tell whether a mean over these tasks makes sense: all in points and in the same direction."""
    return (
        all(measure.bounded for measure in measures)
        and len({measure.lower_is_better for measure in measures}) == 1
    )


def common_trees(runs: Sequence[Run]) -> tuple[Node, ...]:
    """Return the trees that all runs have; none where they differ."""
    trees_by_run = [trees_of(run.groups) for run in runs]
    return (
        trees_by_run[0]
        if all(trees == trees_by_run[0] for trees in trees_by_run)
        else ()
    )


def overall_node(runs: Sequence[Run], tasks: Sequence[str]) -> Node | None:
    """Find the node that represents all tasks.

    It is the root of the declared tree, else the last of the trees that contains all tasks.
    """
    trees = common_trees(runs)
    if len(trees) == 1 and all(run.data["configuration"].get("tree") for run in runs):
        return trees[0]
    return next((tree for tree in reversed(trees) if {*tasks} <= {*tree.tasks}), None)


def outer_first(level: Sequence[Node]) -> Iterator[Node]:
    """Iterate over the nodes of trees level by level, so that totals come before their parts."""
    while level:
        yield from level
        level = [
            part for node in level for part in node.parts if isinstance(part, Node)
        ]


def make_average(
    matrices: Sequence[Matrix], node: Node | None = None, tasks_are: TasksAre = "fixed"
) -> Average | None:
    """Make the average of a node, or one with equal weights; None if it has no number.

    Raises:
        ConfigurationError: the tasks are to be a sample, but are fewer than three or have weights.
    """
    average = _average_by_node(matrices, node)
    if tasks_are == "fixed":
        return average
    n_present = 0 if average is None else len(average.samples)
    if average is None or n_present < FEWEST:
        how_many = (
            f"there is one over {n_present}" if n_present > 1 else "there is none"
        )
        raise ConfigurationError(
            f"Tasks as a sample of tasks need a mean over at least {FEWEST} tasks, but"
            f" {how_many}: how far so few lie apart says nothing of others. Use --tasks-are"
            " fixed, or runs of more tasks."
        )
    if average.weights is not None:
        raise ConfigurationError(
            "Tasks as a sample of tasks count the same each, but the tree weighs them."
            " Use --tasks-are fixed."
        )
    return replace(average, tasks_are=tasks_are)


def _average_by_node(matrices: Sequence[Matrix], node: Node | None) -> Average | None:
    by_task = {matrix.measure.task: matrix for matrix in matrices}
    if node is None:
        return (
            Average(tuple(matrices))
            if can_average([matrix.measure for matrix in matrices])
            else None
        )
    samples_of_tree = node.samples(
        {task: len(matrix.keys) for task, matrix in by_task.items()}
    )
    inside = [by_task[task] for sample in samples_of_tree for task in sample.tasks]
    if not samples_of_tree or not can_average([matrix.measure for matrix in inside]):
        return None
    if any(len(sample.tasks) > 1 for sample in samples_of_tree) and not all(
        matrix.measure.is_mean for matrix in inside
    ):
        return None
    samples = tuple(
        pooled([by_task[task] for task in sample.tasks], node.name)
        for sample in samples_of_tree
    )
    weights = tuple(sample.weight for sample in samples_of_tree)
    return Average(samples, None if len(set(weights)) == 1 else weights)


def group_differences(
    runs: Sequence[Run], matrices: Sequence[Matrix]
) -> tuple[GroupDifference, ...]:
    """Compute the difference at each node of the trees that two runs share, inner nodes first."""
    sizes = {matrix.measure.task: len(matrix.keys) for matrix in matrices}
    differences = []
    for node in distinct(node for tree in common_trees(runs) for node in tree.nodes()):
        average = make_average(matrices, node)
        difference = (
            average.difference() if average is not None and average.paired else None
        )
        differences.append(
            GroupDifference(
                node.name,
                node.average,
                len(node.tasks),
                node.missing(sizes),
                difference,
            )
        )
    return tuple(differences)
