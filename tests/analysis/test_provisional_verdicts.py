"""Verdicts where answers are missing, of two simulated models whose items have difficulties in
common: how often they are given, how often wrong, and how often marked as provisional.

Coverage of intervals with missing answers is in benchmarks/coverage_settings/missing.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from evalwright.analysis.robustness import explain_provisional
from evalwright.analysis.trees import Average
from evalwright.runs.measures import Matrix, Measure, paired_of
from evalwright.statistics import compare_paired

F64 = npt.NDArray[np.float64]
SPREAD = 1.5
"""Standard deviation of the items' difficulties, in log odds."""


@pytest.fixture(params=[20, pytest.param(60, marks=pytest.mark.slow)])
def trials(request: pytest.FixtureRequest) -> int:
    n_trials: int = request.param
    return n_trials


def draw_answers(rng: np.random.Generator, n: int, first: float, second: float) -> F64:
    """(2, n) right-or-wrong scores with these expected rates."""
    difficulty = rng.normal(0, SPREAD, n)
    rates = [1 / (1 + np.exp(-(centre(rate) - difficulty))) for rate in (first, second)]
    return (rng.random((2, n)) < np.stack(rates)).astype(np.float64)


def centre(rate: float) -> float:
    """The log odds at which the mean over the difficulties is `rate`."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    low, high = -12.0, 12.0
    for _ in range(50):
        middle = (low + high) / 2
        shares = 1 / (1 + np.exp(-(middle - SPREAD * nodes)))
        is_lower = float((weights / weights.sum() * shares).sum()) < rate
        low, high = (middle, high) if is_lower else (low, middle)
    return middle


def lose_at_random(rng: np.random.Generator, scores: F64, share: float) -> F64:
    """Every answer is missing with this probability."""
    return np.where(rng.random(scores.shape) < share, np.nan, scores)


def lose_half_of_the_wrong(rng: np.random.Generator, scores: F64) -> F64:
    """The first model lacks half of what it gets wrong."""
    lost = (scores[0] == 0) & (rng.random(scores.shape[1]) < 0.5)
    return np.stack([np.where(lost, np.nan, scores[0]), scores[1]])


def compare_scores(scores: F64) -> tuple[str, bool]:
    """The verdict on two runs, and whether it is provisional."""
    measure = Measure("task", "accuracy", "scorer", "accuracy", True, False, "score")
    everything = np.ones(scores.shape, bool)
    matrix = Matrix(
        measure,
        np.arange(scores.shape[1]),
        scores,
        everything,
        np.isnan(scores),
        ~everything,
        None,
        {},
    )
    provisional = explain_provisional(Average((matrix,)), ("A", "B"))
    return paired_of(matrix).verdict, bool(provisional)


def at_most(n_hits: int, n_trials: int, aim: float) -> bool:
    """Whether a share is at most `aim`, but for two Monte Carlo errors."""
    return n_hits / n_trials <= aim + 2 * math.sqrt(aim * (1 - aim) / n_trials)


def comparisons(
    trials: int, n: int, first: float, second: float, share: float
) -> Iterator[tuple[F64, str, bool]]:
    """Scores with answers missing at random, their verdict, and whether it is provisional."""
    rng = np.random.default_rng(3)
    for _ in range(trials):
        scores = lose_at_random(rng, draw_answers(rng, n, first, second), share)
        yield scores, *compare_scores(scores)


@pytest.mark.parametrize(
    ("n", "first"), [(1000, 0.66), (300, 0.70), (200, 0.75)], ids=str
)
def test_verdicts_of_scored_items_are_given(n: int, first: float, trials: int) -> None:
    n_shown = n_given = 0
    for scores, verdict, _ in comparisons(trials, n, first, 0.60, 0.05):
        of_scored = compare_paired(*scores[:, ~np.isnan(scores).any(axis=0)]).verdict
        if of_scored != "no difference seen":
            n_shown += 1
            n_given += verdict == of_scored
    assert n_shown
    assert at_most(n_shown - n_given, n_shown, 0.02)


@pytest.mark.parametrize("n", [200, 300, 1000, 5000])
def test_few_missing_at_random_are_not_marked(n: int, trials: int) -> None:
    marks = [marked for *_, marked in comparisons(trials, n, 0.65, 0.6, 0.02)]
    assert at_most(sum(marks), trials, 0.03)


@pytest.mark.parametrize(
    ("n", "share"), [(100, 0.05), (200, 0.05), (1000, 0.05), (1000, 0.10)], ids=str
)
def test_equal_models_are_rarely_told_apart(n: int, share: float, trials: int) -> None:
    verdicts = [verdict for _, verdict, _ in comparisons(trials, n, 0.6, 0.6, share)]
    n_false = sum(verdict != "no difference seen" for verdict in verdicts)
    assert at_most(n_false, trials, 0.06)


@pytest.mark.parametrize("n", [200, 1000])
@pytest.mark.parametrize("rate", [0.8, 0.65, 0.5])
def test_lacking_half_of_the_wrong_is_marked(n: int, rate: float, trials: int) -> None:
    rng = np.random.default_rng(3)
    compared = [
        compare_scores(lose_half_of_the_wrong(rng, draw_answers(rng, n, rate, rate)))
        for _ in range(trials)
    ]
    n_unmarked = sum(verdict == "better" and not marked for verdict, marked in compared)
    assert at_most(n_unmarked, trials, 0.01)


def test_a_model_that_lacks_its_wrong_answers_is_called_better_with_the_mark() -> None:
    scores = np.ones((2, 400))
    scores[:, 300:] = 0.0
    scores[0, 300:350] = np.nan  # half of what the first one gets wrong
    assert compare_scores(scores) == ("no difference seen", True)
    scores[1, 280:300] = 0.0
    assert compare_scores(scores) == ("better", True)


def test_answers_have_the_rates_that_are_asked_for() -> None:
    scores = draw_answers(np.random.default_rng(1), 200_000, 0.7, 0.4)
    assert scores.mean(axis=1) == pytest.approx([0.7, 0.4], abs=0.01)
