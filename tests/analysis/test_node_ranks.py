"""Ranks at many nodes at once against `rank`, node by node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from evalwright.analysis.node_ranks import NodeRanks, rank_many
from evalwright.analysis.ranking import rank
from evalwright.analysis.trees import Average
from evalwright.runs.measures import Matrix, Measure, pooled

RUNS = 12
TASKS = 8


def task_matrix(
    number: int,
    values: NDArray[np.float64],
    clusters: NDArray[np.int64] | None = None,
    *,
    bounded: bool = True,
    less: bool = False,
) -> Matrix:
    measure = Measure(
        f"task {number}",
        "rate",
        "score",
        "accuracy" if bounded else "mean",
        bounded,
        less,
        "score",
    )
    missing = np.isnan(values)
    return Matrix(
        measure,
        np.arange(values.shape[1]) + 1_000 * number,
        values,
        np.ones(values.shape, bool),
        missing,
        np.zeros(values.shape, bool),
        clusters,
        {},
    )


def board(seed: int, *, less: bool = False) -> list[Matrix]:
    """Right or wrong with holes; three tasks of the same units, one of them graded; one in clusters
    of its own; one whose scores are all alike; one with few items.
    """
    rng = np.random.default_rng(seed)
    ability = np.linspace(-1, 1, RUNS)[:, None]
    matrices = []
    for number in range(TASKS):
        items = 4 if number == 7 else 40
        chance = 1 / (1 + np.exp(rng.normal(size=items) - ability))
        values = (rng.random((RUNS, items)) < chance).astype(float)
        if number == 3:
            values = np.round(0.5 * values + 0.5 * rng.random(values.shape), 2)
        if number == 6:
            values[:] = 1.0
        values[rng.random(values.shape) < 0.03] = np.nan
        clusters = None
        if number in (1, 2, 3):
            clusters = np.arange(items)
        if number == 4:
            clusters = np.arange(items) // 4 + 5_000
        matrices.append(task_matrix(number, values, clusters, less=less))
    return matrices


def check(ranks: NodeRanks | None, average: Average) -> None:
    assert ranks is not None
    alone = rank(average.samples, weights=average.weights, tasks_are=average.tasks_are)
    assert ranks.ranks == alone.ranks
    assert ranks.own_ranks == alone.own_ranks
    assert ranks.letters == alone.letters
    assert ranks.isolated == alone.isolated
    for run in range(len(ranks.ranks)):
        assert ranks.common(run) == alone.common(run)


def nodes(matrices: Sequence[Matrix]) -> list[Average]:
    """A root with weights, inner nodes with and without shared units, pooled tasks, and leaves."""
    chosen = [
        Average(tuple(matrices)),
        Average(tuple(matrices), tuple(range(1, TASKS + 1))),
        Average(tuple(matrices[:3])),
        Average(tuple(matrices[1:4])),
        Average((matrices[1], matrices[3])),
        Average((matrices[0], matrices[5])),
        Average((pooled(matrices[:3], "pooled"), matrices[3])),
    ]
    return chosen + [Average((matrix,)) for matrix in matrices]


@pytest.mark.parametrize("less", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_node_is_ranked_as_it_is_alone(seed: int, less: bool) -> None:
    averages = nodes(board(seed, less=less))
    separated = 0
    for ranks, average in zip(rank_many(averages), averages, strict=True):
        check(ranks, average)
        assert ranks is not None
        separated += any(low > 1 for low, _ in ranks.ranks)
    assert separated > 3


def test_tasks_as_a_sample_and_worst_cases_are_ranked_alike() -> None:
    matrices = board(4)
    worst = [matrix.with_policy("worst-case") for matrix in matrices]
    averages = [
        Average(tuple(matrices), tasks_are="sample"),
        Average(tuple(worst)),
        Average((worst[0],)),
    ]
    for ranks, average in zip(rank_many(averages), averages, strict=True):
        check(ranks, average)


def test_runs_without_common_items_are_ranked_alike() -> None:
    rng = np.random.default_rng(5)
    values = (rng.random((4, 60)) < [[0.2], [0.5], [0.9], [0.9]]).astype(float)
    values[2, :30] = values[3, 30:] = values[0, 30:] = np.nan
    alone = np.full((3, 20), np.nan)
    alone[0] = 1.0
    averages = [
        Average((task_matrix(0, values),)),
        Average((task_matrix(0, values), task_matrix(1, values))),
        Average((task_matrix(2, alone), task_matrix(3, alone))),
        Average((task_matrix(4, np.array([[1.0], [0.0], [1.0]])),)),
    ]
    for ranks, average in zip(rank_many(averages), averages, strict=True):
        check(ranks, average)


def test_scores_without_a_range() -> None:
    rng = np.random.default_rng(6)
    values = rng.normal(size=(5, 30)) + np.arange(5)[:, None]
    values[4] = values[3] + 1
    matrices = [task_matrix(number, values, bounded=False) for number in range(2)]
    averages = [Average(tuple(matrices)), Average((matrices[0],))]
    for ranks, average in zip(rank_many(averages), averages, strict=True):
        check(ranks, average)


def test_nodes_without_a_number_and_beyond_the_work_allowed_have_no_ranks() -> None:
    matrices = board(7)
    averages = [None, Average(tuple(matrices)), Average((matrices[0],))]
    assert rank_many(averages)[0] is None
    pairs = RUNS * (RUNS - 1) // 2
    ranked = rank_many(averages, most_pair_terms=pairs * (TASKS + 50))
    assert [ranks is not None for ranks in ranked] == [False, True, False]
    one_run = task_matrix(0, np.ones((1, 5)))
    assert rank_many([Average((one_run,))]) == [None]
