"""Ranks of a leaderboard's models at one node: over all its tasks, over some, or on a slice.

Models are ranked at the node that sorts the board. Ranks at other nodes are made only while they
are cheap: every pair of models is tested on every task of a node, so the number of these tests has
a limit (`MOST_TESTS`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalwright.analysis.ranking import Ranking, rank
from evalwright.analysis.trees import Average, make_average
from evalwright.metrics.registry import BOUNDED
from evalwright.metrics.tree import Node
from evalwright.runs.measures import Matrix, matrices
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult
from evalwright.statistics import Estimate, simultaneous_means
from evalwright.statistics.macro import TasksAre

MOST_TESTS = 100_000
"""Most tests, pairs of models times tasks, that ranks at further nodes may take in all.

A test takes about 20 microseconds, so all take two seconds. 30 models on 50 tasks take 21,750 tests
for each level of the tree.
"""

Cells = Mapping[str, MetricResult]
"""A run's metric by task."""


@dataclass(frozen=True, slots=True)
class NodeScores:
    """What ranks of the runs at a node are made of.

    Args:
        positions: the row in the matrices of each run that has all of the node's tasks.
        samples: the item scores by task.
        average: the node's number over them; None if it has none.
        tasks_are: as in `Average`.
    """

    positions: Mapping[int, int]
    samples: tuple[Matrix, ...]
    average: Average | None
    tasks_are: TasksAre = "fixed"

    def ranking(self) -> Ranking | None:
        """Rank the runs; None if there are fewer than two, or no number."""
        if len(self.positions) < 2 or self.average is None:
            return None
        return rank(
            self.average.samples,
            weights=self.average.weights,
            tasks_are=self.tasks_are,
        )

    def simultaneous(self) -> list[Estimate]:
        """Compute the runs' scores with intervals that hold for all of them at once.

        The level is adjusted by Bonferroni over the runs.
        """
        average = self.average
        if average is None or len(self.positions) < 2:
            return []
        first = average.samples[0]
        if len(average.samples) == 1:
            span = first.measure.value_range
            estimates = simultaneous_means(
                first.values, first.clusters, value_range=span
            )
            return [
                _limit_to_metric(estimate, first, row)
                for row, estimate in enumerate(estimates)
            ]
        level = 1 - 0.05 / len(first.values)
        return [average.mean(row, level) for row in range(len(first.values))]


def read_scores(
    runs: Sequence[Run],
    cells: Sequence[Cells],
    tasks: Sequence[str],
    node: Node | None,
    tasks_are: TasksAre = "fixed",
    slices: Mapping[str, str] | None = None,
) -> NodeScores:
    """Read the item scores of the runs that have a number on all of some tasks.

    Args:
        runs: the runs.
        cells: each run's metric by task.
        tasks: the tasks, all in one unit and direction.
        node: how they are averaged; None for each the same.
        tasks_are: as in `Average`.
        slices: only items with these values of metadata; tasks without such items are left out.
    """
    complete = [
        index
        for index in range(len(runs))
        if all(
            name in cells[index] and has_number(cells[index][name]) for name in tasks
        )
    ]
    # The order does not depend on that of the arguments.
    complete.sort(
        key=lambda i: (runs[i].id, runs[i].label, str(runs[i].data["started"]))
    )
    if not complete or not tasks:
        return NodeScores({}, (), None, tasks_are)
    samples: list[Matrix] = matrices(
        [runs[index] for index in complete],
        {name: [cells[index][name] for index in complete] for name in tasks},
        tuple(slices or ()),
    )
    if slices:
        selected = (select_slice(sample, slices) for sample in samples)
        samples = [sample for sample in selected if sample is not None]
    positions = {index: row for row, index in enumerate(complete)}
    return NodeScores(
        positions, tuple(samples), _average_of(samples, node, tasks_are), tasks_are
    )


def _average_of(
    samples: Sequence[Matrix], node: Node | None, tasks_are: TasksAre
) -> Average | None:
    if not samples:
        return None
    average = None
    if node or len(samples) > 1 or tasks_are == "sample":
        average = make_average(samples, node, tasks_are)
    if average is None and len(samples) == 1:
        average = Average((samples[0],))
    return average


def select_slice(matrix: Matrix, slices: Mapping[str, str]) -> Matrix | None:
    """Select the items with these values of metadata; None where there are none.

    A metric that is no mean over items has numbers by one key only.
    """
    if len(slices) == 1 or matrix.scores is None:
        selected: Matrix | None = matrix
        for key, value in slices.items():
            if selected is None or key not in selected.slices:
                return None
            if value not in selected.slices[key].names:
                return None
            selected = selected.slice(key, value)
        return selected
    return None


def has_number(metric: MetricResult) -> bool:
    """Tell whether a metric has a value."""
    return not math.isnan(metric.estimate.value)


def count_tests(models: int, tasks: int) -> int:
    """Count the tests that ranks take: one for each pair of models and task."""
    return models * (models - 1) // 2 * tasks


def _limit_to_metric(estimate: Estimate, matrix: Matrix, row: int) -> Estimate:
    """Restate an estimate from pseudo-values in items, and limit it to the metric's range."""
    if not matrix.estimates:
        return estimate
    low = estimate.low
    high = estimate.high
    # chance-normalised values may be below 0
    if matrix.measure.kind in BOUNDED - {"chance-normalised"}:
        low = max(0.0, low)
        high = min(1.0, high)
    return replace(estimate, n=matrix.estimates[row].n, low=low, high=high)
