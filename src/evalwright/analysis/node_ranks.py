"""Ranks at many nodes of a tree at once: over all tasks, by language, by competency, by task.

`rank` compares all pairs on all tasks of one mean. The nodes of a tree have their tasks in
common, so here each task's differences are computed once, and combined with the weights of each
node (`statistics.many_tasks`). The ranks, letters and exclusions are those of `rank`; intervals
of pairs, which a board does not show, are not computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from evalwright.analysis.ranking import Ranking, letter_groups, rank
from evalwright.analysis.trees import Average, ranges_of_tasks
from evalwright.runs.measures import Matrix, common_counts
from evalwright.statistics.many_models import checked_scores, rank_sets_of
from evalwright.statistics.many_tasks import (
    ManyTasks,
    TaskMean,
    TaskPairs,
    TaskRange,
    scored_pairs,
    task_pairs,
)
from evalwright.statistics.multiplicity import holm, holm_rows
from evalwright.statistics.units import F64, I64, Bools

Number = TypeVar("Number", np.float64, np.bool_)
LEVEL = 0.95
NODES_AT_ONCE = 32
"""Nodes whose pairs are in memory at a time: 2 MB each for 500 models."""
MOST_PAIR_TERMS = 2_000_000_000
"""Most work: pairs of models, times tasks (and `TERMS_OF_NODE`), summed over nodes."""
TERMS_OF_NODE = 50
"""What a node costs beside its tasks (tests, letters), in tasks."""


@dataclass(frozen=True, slots=True)
class NodeRanks:
    """The ranks of runs at a node; runs are referred to by number.

    Args:
        ranks: rank sets that hold simultaneously for all runs.
        own_ranks: the rank set of each run, if only this one had been chosen beforehand.
        letters: runs that share a letter are tied; "" for a run that could not be compared, and ()
            if there would be too many letters.
        isolated: runs that could not be compared with any other.
        with_common: runs that have an item in common with any other.
    """

    ranks: tuple[tuple[int, int], ...]
    own_ranks: tuple[tuple[int, int], ...]
    letters: tuple[str, ...]
    isolated: tuple[int, ...]
    with_common: frozenset[int]

    def common(self, run: int) -> bool:
        """Tell whether a run has an item in common with any other."""
        return run in self.with_common


def rank_many(
    averages: Sequence[Average | None],
    most_pair_terms: int = MOST_PAIR_TERMS,
    always: int = 0,
) -> list[NodeRanks | None]:
    """Rank runs by several averages, for less than the sum of `rank`.

    Args:
        averages: of the nodes, the most important first; None where a node has no number. Averages
            that use the same task of the same runs have the same matrix in them: its differences
            are computed once.
        most_pair_terms: the work allowed, see `MOST_PAIR_TERMS`.
        always: the number of averages, from the first, that are ranked whatever work it takes.

    Returns:
        For each average the ranks; None where there is no average, where fewer than two runs are,
        and for those that come after the work allowed.
    """
    node_ranks: list[NodeRanks | None] = [None] * len(averages)
    work = 0
    together: dict[int, list[int]] = {}
    for number, average in enumerate(averages):
        if average is None or len(average.samples[0].values) < 2:
            continue
        models = len(average.samples[0].values)
        work += models * (models - 1) // 2 * (len(average.samples) + TERMS_OF_NODE)
        if work > most_pair_terms and number >= always:
            break
        if len(average.samples) == 1:
            node_ranks[number] = _ranks_of_task(average.samples[0])
        elif _needs_intervals(average):
            node_ranks[number] = _by_intervals(average)
        else:
            together.setdefault(models, []).append(number)
    for numbers in together.values():
        tasks = _Tasks()
        for begin in range(0, len(numbers), NODES_AT_ONCE):
            batch = numbers[begin : begin + NODES_AT_ONCE]
            ranked = tasks.ranks([averages[number] for number in batch])
            for number, ranks in zip(batch, ranked, strict=True):
                node_ranks[number] = ranks
    return node_ranks


def _needs_intervals(average: Average) -> bool:
    """Whether ranks come from more than the items that both runs of a pair have."""
    return average.tasks_are == "sample" or any(
        matrix.missing_policy != "scored" for matrix in average.samples
    )


def _by_intervals(average: Average) -> NodeRanks:
    ranking = rank(
        average.samples, weights=average.weights, tasks_are=average.tasks_are
    )
    return of_ranking(ranking)


def of_ranking(ranking: Ranking) -> NodeRanks:
    """Keep of a ranking what a board shows."""
    return NodeRanks(
        ranking.ranks,
        ranking.own_ranks,
        ranking.letters,
        ranking.isolated,
        frozenset(filter(ranking.common, range(len(ranking.ranks)))),
    )


class _Tasks:
    """The differences of tasks, each computed once for all nodes that it is part of."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[int, TaskRange], TaskPairs] = {}
        self._units: dict[int, I64] = {}

    def ranks(self, nodes_averages: Sequence[Average | None]) -> list[NodeRanks]:
        """Rank by some averages over several tasks."""
        averages = [average for average in nodes_averages if average is not None]
        columns: dict[tuple[int, TaskRange], int] = {}
        matrices = list[Matrix]()
        nodes = list[TaskMean]()
        for average in averages:
            keys = [
                (id(matrix), task_range)
                for matrix, task_range in zip(
                    average.samples, ranges_of_tasks(average.samples), strict=True
                )
            ]
            for matrix, key in zip(average.samples, keys, strict=True):
                if key not in columns:
                    columns[key] = len(columns)
                    matrices.append(matrix)
                    self._compare(matrix, key[1])
            places = [columns[key] for key in keys]
            weights = np.ones(len(places))
            if average.weights is not None:
                weights = np.asarray(average.weights, np.float64)
            nodes.append(TaskMean(np.array(places), weights / weights.sum()))
        upper = np.triu_indices(len(matrices[0].values), 1)
        many = ManyTasks(
            [matrix.values for matrix in matrices],
            [self._units[id(matrix)] for matrix in matrices],
            [self._pairs[key] for key in columns],
            upper,
            LEVEL,
        )
        difference = np.full((len(nodes), len(upper[0])), np.nan)
        p_value = np.full((len(nodes), len(upper[0])), np.nan)
        for block, means in many.means(nodes):
            for row, mean in enumerate(means):
                difference[row, block] = mean.difference
                p_value[row, block] = mean.p_values
        return [
            _ranks_of_pairs(
                difference[row],
                p_value[row],
                ~np.isnan(p_value[row]),
                _with_common(average.samples),
                average.samples[0].measure.lower_is_better,
            )
            for row, average in enumerate(averages)
        ]

    def _compare(self, matrix: Matrix, task_range: TaskRange) -> None:
        """Compare all pairs on one task, unless that was done."""
        if id(matrix) not in self._units:
            self._units[id(matrix)] = matrix.units
        if (id(matrix), task_range) not in self._pairs:
            units = self._units[id(matrix)]
            scores, codes = checked_scores(matrix.values, units, task_range.scores)
            self._pairs[id(matrix), task_range] = task_pairs(
                scores, codes, task_range, LEVEL
            )


def _ranks_of_task(matrix: Matrix) -> NodeRanks:
    """Rank by one task."""
    span = matrix.measure.value_range
    counts = common_counts(matrix)
    if _needs_intervals(Average((matrix,))) or (counts == 0).any():
        # Pairs without common items are compared as independent samples.
        return _by_intervals(Average((matrix,)))
    scores, codes = checked_scores(matrix.values, matrix.clusters, span)
    pairs, places = scored_pairs(scores, codes, span)
    p_value = pairs.p_values()
    # A pair with a single unit has an interval, the whole range, but no test.
    compared = ~np.isnan(p_value)
    if pairs.counts is not None:
        compared |= pairs.units == 1
    return _ranks_of_pairs(
        pairs.difference[places],
        p_value[places],
        compared[places],
        _with_common([matrix]),
        matrix.measure.lower_is_better,
    )


def _with_common(matrices: Sequence[Matrix]) -> Bools:
    """Which runs have an item in common with any other, (runs,)."""
    has = np.zeros(len(matrices[0].values), bool)
    for matrix in matrices:
        has_score = ~np.isnan(matrix.of_items.values)
        shared = has_score.sum(axis=0) > 1
        has |= has_score[:, shared].any(axis=1)
    return has


def _ranks_of_pairs(
    difference: F64,
    p_value: F64,
    compared: Bools,
    with_common: Bools,
    lower_is_better: bool,
) -> NodeRanks:
    """Rank from the tests of the pairs with row < column, (pairs,).

    Args:
        difference: row minus column.
        p_value: of each pair by itself; nan without a test.
        compared: whether a pair has an interval.
        with_common: (runs,), as in `NodeRanks`.
        lower_is_better: whether lower values are better.
    """
    runs = len(with_common)
    differs = _mirrored(np.nan_to_num(holm(p_value), nan=1.0) < 1 - LEVEL, runs)
    own_adjusted = holm_rows(_mirrored(p_value, runs, np.nan))
    own_differs = np.nan_to_num(own_adjusted, nan=1.0) < 1 - LEVEL
    # Below the diagonal stand the same pairs the other way round.
    full_difference = np.triu(_mirrored(difference, runs))
    full_difference -= full_difference.T
    is_compared = np.asarray(_mirrored(compared, runs).any(axis=1))
    ranks, own_ranks = (
        tuple(zip(*(side.tolist() for side in sets), strict=True))
        for sets in (
            rank_sets_of(differing, full_difference, not lower_is_better)
            for differing in (differs, own_differs)
        )
    )
    return NodeRanks(
        ranks,
        own_ranks,
        letter_groups(differs, full_difference, is_compared, lower_is_better),
        tuple(np.flatnonzero(~is_compared).tolist()),
        frozenset(np.flatnonzero(with_common).tolist()),
    )


def _mirrored(
    pairs: npt.NDArray[Number], runs: int, diagonal: float = 0
) -> npt.NDArray[Number]:
    """Arrange pairs with row < column as (runs, runs), equal in both directions.

    Args:
        pairs: (pairs,).
        runs: the number of runs.
        diagonal: what stands on the diagonal.
    """
    table = np.zeros((runs, runs), pairs.dtype)
    upper = np.triu_indices(runs, 1)
    table[upper] = pairs
    table.T[upper] = pairs
    np.fill_diagonal(table, diagonal)
    return table
