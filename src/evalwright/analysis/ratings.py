"""Elo-scale ratings (Elo 1978), from how often a model's score on an item is the higher of two.

Only the order of scores matters, so tasks with different units and directions count together,
weighted as in the runs' common tree or equally. For a metric that is not a mean of its items'
scores, items are compared by those scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.trees import overall_node
from evalwright.analysis.words import count, counted, listed
from evalwright.core.errors import RunError
from evalwright.core.plain import Plain
from evalwright.metrics.tree import Node
from evalwright.runs.measures import make_matrix
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult
from evalwright.runs.score_tables import item_scores
from evalwright.statistics import Estimate
from evalwright.statistics.bradley_terry import Ratings as Fitted
from evalwright.statistics.bradley_terry import Scored, bradley_terry
from evalwright.tasks.safe_files import failing_as

SCALE = 400.0
BASE = 10.0
MEAN = 1000.0
"""The scale: a difference of 400 means odds of 10 to 1, and the mean rating is 1000."""


@dataclass(frozen=True, slots=True)
class RatedRun(Plain):
    """A run with its rating, and the share of comparisons that it won, ties counting half."""

    run: str
    label: str
    rating: Estimate
    wins: float


@dataclass(frozen=True, slots=True)
class Ratings(Plain):
    """The ratings, best run first.

    Args:
        rows: the rated runs.
        weights: the weight of each task.
        notes: what a reader must know.
    """

    rows: tuple[RatedRun, ...]
    weights: Mapping[str, float]
    notes: tuple[str, ...]


def make_ratings(
    runs: Sequence[Run],
    labels: Sequence[str],
    metrics_by_run: Sequence[Mapping[str, MetricResult]],
) -> Ratings:
    """Rate the runs.

    Args:
        runs: the runs.
        labels: what the runs are called.
        metrics_by_run: for each run, the metric shown for each task.

    Raises:
        RunError: the runs have too little in common.
    """
    order = sorted(range(len(runs)), key=lambda index: (runs[index].id, labels[index]))
    tasks = sorted({task for metrics in metrics_by_run for task in metrics})
    scored_by_task = {
        task: _collect_scores(
            task, [runs[i] for i in order], [metrics_by_run[i].get(task) for i in order]
        )
        for task in tasks
    }
    node = overall_node(runs, tasks)
    sizes = {
        task: scored.scores.shape[1] for task, (scored, _) in scored_by_task.items()
    }
    weights = _task_weights(node, sizes)
    with failing_as(RunError, "There are no ratings", ValueError):
        fitted = bradley_terry(
            [
                scored_by_task[task][0]._replace(weight=weight)
                for task, weight in weights.items()
            ]
        )
    unit = SCALE / math.log(BASE)
    counted_in = [scored_by_task[task] for task in weights]
    n = np.sum(
        [(scored.scores == scored.scores).sum(axis=1) for scored, _ in counted_in],
        axis=0,
    )
    n_missing = np.sum([missing.sum(axis=1) for _, missing in counted_in], axis=0)
    rows = [
        RatedRun(
            runs[index].id,
            labels[index],
            Estimate(
                value=MEAN + unit * float(fitted.strengths[row]),
                low=MEAN + unit * float(fitted.low[row]),
                high=MEAN + unit * float(fitted.high[row]),
                level=0.95,
                n=int(n[row]),
                n_missing=int(n_missing[row]),
                n_clusters=fitted.units,
                standard_error=unit * float(fitted.errors[row]),
                method=(
                    "Bradley-Terry,"
                    f" {'weak prior' if fitted.unbounded else 'sandwich'}, t"
                ),
            ),
            float(fitted.wins[row]),
        )
        for row, index in enumerate(order)
    ]
    rows.sort(key=lambda row: (-row.rating.value, row.label, row.run))
    notes = _rating_notes(
        fitted,
        node,
        [task for task in tasks if task not in weights],
        int(n_missing.sum()),
    )
    return Ratings(tuple(rows), weights, tuple(notes))


def _collect_scores(
    task: str, runs: Sequence[Run], metrics: Sequence[MetricResult | None]
) -> tuple[Scored, NDArray[np.bool_]]:
    """Collect all runs' scores on a task's items, and which are missing.

    Runs without an item have nan there.
    """
    there = [
        (row, run, metric)
        for row, (run, metric) in enumerate(zip(runs, metrics, strict=True))
        if metric
    ]
    scores = [item_scores(run, {task: metric.scorer})[task] for _, run, metric in there]
    matrix = make_matrix(task, [metric for *_, metric in there], scores)
    values = np.full((len(runs), len(matrix.keys)), np.nan)
    missing = np.zeros(values.shape, dtype=bool)
    rows = [row for row, *_ in there]
    # The scores behind metrics that are not means are better when higher, whatever the metric.
    values[rows] = (
        -matrix.values
        if matrix.measure.is_mean and matrix.measure.lower_is_better
        else matrix.values
    )
    missing[rows] = matrix.missing
    return Scored(values, matrix.units), missing


def _task_weights(node: Node | None, sizes: Mapping[str, int]) -> dict[str, float]:
    """Compute the weight of each task; items that a tree pools share its weight."""
    samples = node.samples(sizes) if node else ()
    if not samples:
        return dict.fromkeys(sizes, 1 / len(sizes))
    pools = [
        (sample, max(1, sum(sizes[task] for task in sample.tasks)))
        for sample in samples
    ]
    weights = {
        task: sample.weight * sizes[task] / n_items
        for sample, n_items in pools
        for task in sample.tasks
    }
    return {task: weight for task, weight in weights.items() if weight > 0}


def _rating_notes(
    fitted: Fitted, node: Node | None, lacking: Sequence[str], failed: int
) -> Iterator[str]:
    yield (
        "Ratings are those of Bradley and Terry over"
        f" {counted(fitted.games, 'comparison')} on the same items, {count(fitted.ties)} of"
        f" them ties, which count as half a win. A difference of {SCALE:g} stands for"
        f" odds of {BASE:g} to 1, and the mean is {MEAN:,g}. Each interval is its own"
        " 95%, over items (or clusters) like these; the tasks count "
        + (f"as in the tree '{node.name}'." if node else "the same each.")
    )
    if fitted.unbounded:
        yield (
            "Some models never lose or draw against some others (or all are always"
            " tied), so the data bound no rating: half a win and half a loss against a"
            " model of mean strength are added for each, and the intervals are wide."
        )
    if lacking:
        yield f"The tree lacks {listed(lacking, 5)}, so the ratings do not count it."
    if failed:
        yield f"Missing answers ({count(failed)}) are compared with nothing."
