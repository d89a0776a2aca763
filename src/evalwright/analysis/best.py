"""The best of several runs, without the luck of having been chosen.

Of many prompts or models the best looks better than it is. Its score is corrected for that by
resampling (`statistics.selection`), or measured where it was not chosen: chosen on one half of the
items, measured on the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.comparison import read_matrices
from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import Plain
from evalwright.runs.confirmed import confirm_all
from evalwright.runs.measures import Matrix, paired_of
from evalwright.runs.reader import Run, called
from evalwright.statistics import Estimate, PairedComparison, mean_interval
from evalwright.statistics.selection import selection_bias

LEAST_ITEMS = 20
"""With fewer items, halves say nothing."""


@dataclass(frozen=True, slots=True)
class ConfirmedBest(Plain):
    """The best on one half of the items, measured on the other.

    Args:
        label: the run that was chosen.
        n_chosen_on: items that it was chosen on.
        estimate: its mean on the other half.
        second: the run that came second where it was chosen.
        difference: the chosen run against the second, on the other half.
    """

    label: str
    n_chosen_on: int
    estimate: Estimate
    second: str
    difference: PairedComparison


@dataclass(frozen=True, slots=True)
class BestRun(Plain):
    """The run with the best mean on one task.

    Args:
        task: the task's name.
        metric: the metric's label.
        bounded: whether scores lie between 0 and 1.
        label: the best run.
        candidates: how many runs it was chosen from.
        n: items that all runs have a score for.
        mean: its mean on them.
        corrected: the mean without what the choice adds on average.
        confirmed: chosen and measured on different halves, where that was asked for.
    """

    task: str
    metric: str
    bounded: bool
    label: str
    candidates: int
    n: int
    mean: float
    corrected: float
    confirmed: ConfirmedBest | None = None


def best_runs(
    runs: Sequence[Run],
    metric: str | None = None,
    *,
    confirm: bool = False,
    seed: int = 0,
) -> list[BestRun]:
    """The best run on each task that all runs have.

    Args:
        runs: two runs or more, on the same items.
        metric: the metric, a label or TASK.LABEL; without it each task's main one.
        confirm: whether to choose on one half of the items and measure on the other.
        seed: draws the halves.

    Raises:
        RunError: the runs have no task in common.
        ConfigurationError: fewer than two runs, or too few items for halves.
    """
    if len(runs) < 2:
        raise ConfigurationError("The best is chosen from two runs or more.")
    runs = confirm_all(runs)
    labels = called(runs)
    return [
        _best_on_task(matrix, labels, confirm=confirm, seed=seed)
        for matrix in read_matrices(runs, (), metric)
    ]


def _best_on_task(
    matrix: Matrix, labels: Sequence[str], *, confirm: bool, seed: int
) -> BestRun:
    has_all_scores: NDArray[np.bool_] = np.asarray(~np.isnan(matrix.values).any(axis=0))
    scored = matrix.part(has_all_scores)
    n_items = len(scored.keys)
    if not n_items:
        raise ConfigurationError(
            f"No item of '{matrix.measure.task}' has a score from every run, so none"
            " can be called the best."
        )
    order = _best_first(scored)
    best = order[0]
    mean = float(scored.values[best].mean())
    bias = selection_bias(
        scored.values,
        clusters=scored.clusters,
        lower_is_better=matrix.measure.lower_is_better,
        seed=seed,
    )
    confirmed = None
    if confirm:
        confirmed = _confirm(scored, labels, seed)
    return BestRun(
        task=matrix.measure.task,
        metric=matrix.measure.metric,
        bounded=matrix.measure.bounded,
        label=labels[best],
        candidates=len(labels),
        n=n_items,
        mean=mean,
        corrected=mean - bias,
        confirmed=confirmed,
    )


def _best_first(matrix: Matrix) -> NDArray[np.int64]:
    """The rows of a matrix without nan, best mean first; of equal ones the earlier."""
    means = matrix.values.mean(axis=1)
    sign = 1.0 if matrix.measure.lower_is_better else -1.0
    return np.argsort(sign * means, kind="stable")


def _confirm(matrix: Matrix, labels: Sequence[str], seed: int) -> ConfirmedBest:
    """Choose on half of the clusters and measure on the others."""
    units = np.unique(matrix.units)
    if len(units) < LEAST_ITEMS:
        raise ConfigurationError(
            f"'{matrix.measure.task}' has {len(units)} independent items with scores"
            f" from every run; halves need at least {LEAST_ITEMS}. Leave out --confirm."
        )
    shuffled = np.random.default_rng(seed).permutation(units)
    in_first = np.isin(matrix.units, shuffled[: len(units) // 2])
    first = matrix.part(in_first)
    second = matrix.part(~in_first)
    best, runner_up = _best_first(first)[:2]
    return ConfirmedBest(
        label=labels[best],
        n_chosen_on=len(first.keys),
        estimate=mean_interval(
            second.values[best],
            clusters=second.clusters,
            value_range=matrix.measure.value_range,
        ),
        second=labels[runner_up],
        difference=paired_of(second, rows=(int(best), int(runner_up))),
    )
