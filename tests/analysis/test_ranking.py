"""Runs against each other: letters, ranks and pairs, on incomplete scores of the size of a
public leaderboard.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from evalwright.analysis.ranking import letter_groups, rank
from evalwright.runs.measures import Matrix, Measure
from evalwright.statistics import compare_paired
from evalwright.statistics.many_models import all_differences
from support.bounds import ends


def matrix(
    values: NDArray[np.float64], *, less: bool = False, bounded: bool = True
) -> Matrix:
    measure = Measure(
        "task",
        "rate",
        "score",
        "accuracy" if bounded else "mean",
        bounded,
        less,
        "score",
    )
    none = np.zeros(values.shape, bool)
    return Matrix(
        measure,
        np.arange(values.shape[1]),
        values,
        ~np.isnan(values),
        none,
        none,
        None,
        {},
    )


def incomplete(seed: int = 0) -> NDArray[np.float64]:
    """8 models x 7,731 items of unlike difficulty; up to a quarter of the answers has no score."""
    rng = np.random.default_rng(seed)
    rates = np.array([0.02, 0.021, 0.04, 0.06, 0.061, 0.10, 0.15, 0.25])
    hard = rng.normal(size=7731)
    wrong = hard + rng.normal(size=(8, 7731)) > stats.norm.ppf(
        1 - rates[:, None], scale=np.sqrt(2)
    )
    values: NDArray[np.float64] = wrong.astype(np.float64)
    values[rng.random(values.shape) < np.linspace(0, 0.25, 8)[:, None]] = np.nan
    return values


def test_incomplete_scores_of_eight_models_on_7731_items() -> None:
    values = incomplete()
    with ends():
        found = rank([matrix(values, less=True)])
    assert found.ranks == (
        (1, 2),
        (1, 2),
        (3, 3),
        (4, 5),
        (4, 5),
        (6, 6),
        (7, 7),
        (8, 8),
    )
    assert found.letters == ("a", "a", "b", "c", "c", "d", "e", "f")
    pairs = {(pair.a, pair.b): pair for pair in found.pairs()}
    assert len(pairs) == 28
    for a, b in ((0, 1), (2, 7), (3, 4)):
        common = ~np.isnan(values[[a, b]]).any(axis=0)
        alone = compare_paired(values[a], values[b], missing=False)
        pair = pairs[a, b]
        assert (pair.n, pair.units) == (common.sum(), common.sum())
        assert pair.difference == pytest.approx(alone.difference)
        assert pair.p_value == pytest.approx(alone.p_value, rel=1e-6, abs=1e-12)
        assert pair.low < alone.low and alone.high < pair.high
    assert pairs[0, 7].verdict == "better"  # fewer errors
    assert pairs[0, 1].verdict == "no difference seen"
    assert 0.001 < pairs[0, 1].visible < 0.02


@pytest.mark.parametrize("seed", range(8))
def test_letters_are_shared_by_exactly_those_that_cannot_be_told_apart(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    values = (rng.random((9, 250)) < np.linspace(0.3, 0.7, 9)[:, None]).astype(float)
    values[rng.random(values.shape) < 0.3 * rng.random((9, 1))] = np.nan
    found = rank([matrix(values)])
    low = found.differences.low
    high = found.differences.high
    assert all(found.letters)
    for a in range(9):
        for b in range(a):
            sure = low[a, b] > 0 or high[a, b] < 0
            assert bool(set(found.letters[a]) & set(found.letters[b])) != sure
    letters = set().union(*found.letters)
    members = [
        {i for i, own in enumerate(found.letters) if letter in own}
        for letter in letters
    ]
    assert not any(one < member for one in members for member in members)


def test_a_baseline_has_fewer_questions_and_narrower_intervals() -> None:
    values = (np.random.default_rng(2).random((6, 300)) < 0.5).astype(float)
    found = rank([matrix(values)])
    every = {(pair.a, pair.b): pair for pair in found.pairs()}
    against = found.pairs(baseline=0)
    assert [(pair.a, pair.b) for pair in against] == [
        (other, 0) for other in range(1, 6)
    ]
    differences = all_differences(values)
    for pair in against:
        same = every[0, pair.a]
        assert pair.difference == pytest.approx(-same.difference)
        assert pair.high - pair.low < same.high - same.low
        assert pair.low == pytest.approx(-differences.own_high[0, pair.a])
        assert pair.visible < same.visible
        assert pair.p_value <= pair.p_adjusted <= 5 * pair.p_value + 1e-12


@pytest.mark.parametrize("runs", [12, 60, 90])
def test_letters_are_left_out_where_there_would_be_more_than_26(runs: int) -> None:
    """The groups are all largest sets of runs of which no two differ, found here by themselves."""
    places = np.sort(np.random.default_rng(runs).random(runs))
    gaps = places[:, None] - places
    differs = np.abs(gaps) > 1.2 / runs
    groups = {tuple(np.flatnonzero(~differs[run][run:]) + run) for run in range(runs)}
    largest = [
        group for group in groups if not any({*group} < {*more} for more in groups)
    ]
    letters = letter_groups(differs, gaps, np.ones(runs, bool), lower_is_better=False)
    if len(largest) > 26:
        assert letters == ()
        return
    assert len(set("".join(letters))) == len(largest)
    for a in range(runs):
        for b in range(a):
            assert differs[a, b] == (not {*letters[a]} & {*letters[b]})
