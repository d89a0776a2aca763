"""Ranks of a leaderboard's models at its nodes: over all its tasks, over some, or on a slice.

Models are ranked at the node that sorts the board, and at further nodes while that is cheap
(`node_ranks.rank_many`). All nodes are ranked in one call, so that the tasks that they have in
common are compared once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalwright.analysis.node_ranks import MOST_PAIR_TERMS, NodeRanks, rank_many
from evalwright.analysis.trees import Average, make_average
from evalwright.metrics.tree import Node
from evalwright.runs.measures import Matrix, matrices
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult
from evalwright.statistics import Estimate, simultaneous_means
from evalwright.statistics.macro import TasksAre

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

    def simultaneous(self) -> list[Estimate]:
        """Compute the runs' scores with intervals that hold for all of them at once.

        The level is adjusted by Bonferroni over the runs.
        """
        average = self.average
        if average is None or len(self.positions) < 2:
            return []
        first_matrix = average.samples[0]
        level = 1 - 0.05 / len(first_matrix.values)
        if len(average.samples) == 1:
            span = first_matrix.measure.value_range
            estimates = simultaneous_means(
                first_matrix.values, first_matrix.clusters, value_range=span
            )
            together = [
                _limit_to_metric(
                    average.mean(row, level) if math.isnan(estimate.low) else estimate,
                    first_matrix,
                    row,
                )
                for row, estimate in enumerate(estimates)
            ]
        else:
            together = [
                average.mean(row, level) for row in range(len(first_matrix.values))
            ]
        return [
            _around(estimate, average.mean(row))
            for row, estimate in enumerate(together)
        ]


def read_scores(
    runs: Sequence[Run],
    cells: Sequence[Cells],
    tasks: Sequence[str],
    node: Node | None,
    tasks_are: TasksAre = "fixed",
    slices: Mapping[str, str] | None = None,
    read_already: NodeScores | None = None,
) -> NodeScores:
    """Read the item scores of the runs that have a number on all of some tasks.

    Args:
        runs: the runs.
        cells: each run's metric by task.
        tasks: the tasks, all in one unit and direction.
        node: how they are averaged; None for each the same.
        tasks_are: as in `Average`.
        slices: only items with these values of metadata; tasks without such items are left out.
        read_already: scores that were read already, used if they are of the same runs and tasks.
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
    samples = None
    if (
        read_already is not None
        and not slices
        and [*read_already.positions] == complete
    ):
        samples = _selected(read_already.samples, tasks)
    if samples is None:
        samples = matrices(
            [runs[index] for index in complete],
            {name: [cells[index][name] for index in complete] for name in tasks},
            tuple(slices or ()),
        )
    if slices:
        sliced = (select_slice(sample, slices) for sample in samples)
        samples = [sample for sample in sliced if sample is not None]
    positions = {index: row for row, index in enumerate(complete)}
    return NodeScores(
        positions, tuple(samples), _average_of(samples, node, tasks_are), tasks_are
    )


def _selected(samples: Sequence[Matrix], tasks: Sequence[str]) -> list[Matrix] | None:
    """Select the matrices of some tasks; None if one is not there."""
    by_task = {sample.measure.task: sample for sample in samples}
    if not {*tasks} <= by_task.keys():
        return None
    return [by_task[task] for task in tasks]


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
        sliced: Matrix | None = matrix
        for key, value in slices.items():
            if sliced is None or key not in sliced.slices:
                return None
            if value not in sliced.slices[key].names:
                return None
            sliced = sliced.slice(key, value)
        return sliced
    return None


def has_number(metric: MetricResult) -> bool:
    """Tell whether a metric has a value."""
    return not math.isnan(metric.estimate.value)


def rank_nodes(
    boards: Sequence[NodeScores | None],
    averages: Sequence[Average],
    most_pair_terms: int = MOST_PAIR_TERMS,
) -> tuple[list[NodeRanks | None], list[NodeRanks | None]]:
    """Rank the runs at the nodes that sort boards, and at further nodes while that is cheap.

    Args:
        boards: the item scores at the nodes that sort boards; None for a board without ranks.
        averages: of further nodes, the most important first, made of the same matrices.
        most_pair_terms: the work allowed for further nodes, as of `rank_many`.

    Returns:
        The ranks of the boards, and those of the further nodes; None where fewer than two runs
        have a number, and for further nodes after the work allowed.
    """
    sorting = [None if scores is None else scores.average for scores in boards]
    node_ranks = rank_many([*sorting, *averages], most_pair_terms, len(sorting))
    return node_ranks[: len(sorting)], node_ranks[len(sorting) :]


def _around(together: Estimate, alone: Estimate) -> Estimate:
    """Widen an interval that holds for all runs at once to the one that holds for a run alone.

    The two are computed in different ways where the metric is not a mean over items.
    """
    if math.isnan(together.low) or math.isnan(alone.low):
        return together
    return replace(
        together,
        low=min(together.low, alone.low),
        high=max(together.high, alone.high),
    )


def _limit_to_metric(estimate: Estimate, matrix: Matrix, row: int) -> Estimate:
    """Restate an estimate from pseudo-values in items, and limit it to the metric's range."""
    if not matrix.estimates:
        return estimate
    low = estimate.low
    high = estimate.high
    if matrix.measure.metric_range:
        least, greatest = matrix.measure.metric_range
        low = max(least, low)
        high = min(greatest, high)
    return replace(estimate, n=matrix.estimates[row].n, low=low, high=high)
