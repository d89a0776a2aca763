"""Repeated draws by brute force over all subsets, against the spec's closed forms, and by coverage."""

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from evalwright.statistics import (
    Estimate,
    majority_at_k,
    mean_interval,
    pass_at_k,
    pass_hat_k,
    plan_draws,
    plurality_at_k,
)


def _over_subsets(row: list[int], k: int, value: Callable[[tuple[int, ...]], float]) -> float:
    return float(np.mean([value(part) for part in itertools.combinations(row, k)]))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
def test_each_is_the_mean_over_all_subsets(k: int) -> None:
    scores = np.random.default_rng(1).integers(0, 2, (12, 6))
    kinds: list[tuple[Callable[..., Estimate], Callable[[tuple[int, ...]], float]]] = [
        (pass_at_k, any),
        (pass_hat_k, all),
        (majority_at_k, lambda part: (sum(part) > k / 2) + 0.5 * (sum(part) == k / 2)),
    ]
    for function, value in kinds:
        expected = [_over_subsets(row.tolist(), k, value) for row in scores]
        found = function(scores, k)
        assert found.value == pytest.approx(np.mean(expected))
        interval = mean_interval(expected)
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
        assert found.n == 12


def _plurality(part: tuple[int, ...], gold: int) -> float:
    votes = Counter(part)
    most = max(votes.values())
    tied = [label for label, count in votes.items() if count == most]
    return (gold in tied) / len(tied)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 7])
def test_plurality_is_the_mean_over_all_subsets(k: int) -> None:
    rng = np.random.default_rng(2)
    answers, gold = rng.integers(0, 4, (25, 7)), rng.integers(0, 5, 25)
    expected = [
        _over_subsets(row.tolist(), k, partial(_plurality, gold=int(g)))
        for row, g in zip(answers, gold, strict=True)
    ]
    found = plurality_at_k(answers, gold, k)
    assert found.value == pytest.approx(np.mean(expected), abs=1e-12)
    assert found.standard_error == pytest.approx(mean_interval(expected).standard_error)


def test_two_labels_are_the_binary_case() -> None:
    answers = np.random.default_rng(3).integers(0, 2, (30, 9))
    for k in (1, 4, 9):
        assert plurality_at_k(answers, np.ones(30, int), k).value == pytest.approx(
            majority_at_k(answers, k).value
        )


def test_many_draws_stay_exact() -> None:
    answers = np.arange(300) % 7
    chances = [plurality_at_k(answers[None], [gold], 150).value for gold in range(8)]
    assert sum(chances) == pytest.approx(1.0, abs=1e-12)  # someone wins, and ties are shared
    assert chances[0] == pytest.approx(chances[5]) != chances[6]
    assert chances[7] == 0.0
    scores = (np.arange(2000) % 2)[None].repeat(3, axis=0)
    assert majority_at_k(scores, 1001).value == pytest.approx(0.5)
    assert pass_at_k(scores, 5).value == pytest.approx(1 - math.comb(1000, 5) / math.comb(2000, 5))


def test_missing_draws_and_items() -> None:
    nan = math.nan
    found = pass_at_k([[1.0, 0.0, nan], [0.0, 0.0, 0.0], [nan, nan, nan]], 2, n_failed=1)
    assert (found.n, found.n_failed, found.value) == (2, 2, 0.5)
    assert pass_hat_k([[1.0, 1.0, nan], [0.0, 1.0, 1.0]], 2).value == pytest.approx((1 + 1 / 3) / 2)
    voted = plurality_at_k([[0, 1, -1], [-1, -1, -1]], [0, 0], 2)
    assert (voted.n, voted.n_failed, voted.value) == (1, 1, 0.5)
    clustered = majority_at_k([[1, 0, 1], [0, 0, 1], [1, 1, 1]], 3, clusters=[0, 0, 1])
    assert (clustered.n, clustered.n_clusters) == (3, 2)


@pytest.mark.parametrize("function", [pass_at_k, pass_hat_k, majority_at_k])
def test_what_cannot_be_had_is_refused(function: object) -> None:
    assert callable(function)
    with pytest.raises(ValueError, match="k = 3 needs 3 draws of every item, but 1 of 2 items"):
        function([[1, 0, 1], [1, 0, math.nan]], 3)
    with pytest.raises(ValueError, match="at least 1"):
        function([[1, 0]], 0)
    with pytest.raises(ValueError, match="0 or 1"):
        function([[0.5, 1]], 1)
    with pytest.raises(ValueError, match="k = 4"):
        plurality_at_k([[1, 0]], [1], 4)
    with pytest.raises(ValueError, match="integer codes"):
        plurality_at_k([["a", "b"]], ["a"], 1)


def test_the_best_number_of_draws() -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(0, 1.0, (4000, 1)) + rng.normal(0, 2.0, (4000, 6))
    found = plan_draws(scores, cost_item=9.0, cost_draw=1.0)
    assert found.exact == pytest.approx(6.0, rel=0.05)  # sqrt(4 / 1 * 9)
    prices = [(found.between + found.within / k) * (9 + k) for k in range(1, 40)]
    assert found.best == 1 + int(np.argmin(prices))
    assert found.variance_saved == pytest.approx(1 - min(prices) / prices[0])
    assert found.between_share == pytest.approx(0.2, abs=0.02)
    assert plan_draws(scores, cost_item=0.0, cost_draw=1.0).best == 1
    assert plan_draws(scores, cost_item=0.0, cost_draw=1.0).variance_saved == 0.0
    assert plan_draws(np.ones((5, 2)), cost_item=1.0, cost_draw=1.0).best == 1
    same = plan_draws(np.tile([0.0, 1.0], (5, 1)), cost_item=1.0, cost_draw=1.0, most=64)
    assert (same.best, same.exact) == (64, math.inf)
    assert json.loads(json.dumps(same.as_dict(), allow_nan=False))["exact"] is None
    with pytest.raises(ValueError, match="cost_draw"):
        plan_draws(scores, cost_item=1.0, cost_draw=0.0)
    with pytest.raises(ValueError, match="two draws"):
        plan_draws([1.0, 0.0], cost_item=1.0, cost_draw=1.0)


def test_pass_at_k_covers() -> None:
    rng = np.random.default_rng(5)
    chance = rng.beta(1, 2, (800, 60, 1))
    scores = (rng.random((800, 60, 10)) < chance).astype(float)
    truth = 1 - 24 / 60  # E (1 - p)^3 = B(1, 5) / B(1, 2) = 0.4
    hits = [found.low <= truth <= found.high for found in (pass_at_k(each, 3) for each in scores)]
    assert 0.93 <= np.mean(hits) <= 0.97


@pytest.mark.parametrize("k", [2.0, 2.5, math.nan, True])
def test_k_is_a_whole_number(k: float) -> None:
    for function in (pass_at_k, pass_hat_k, majority_at_k):
        with pytest.raises(ValueError, match="k must be a whole number"):
            function([[1, 0, 1], [0, 0, 1]], k)  # type: ignore[arg-type]
    assert majority_at_k([[1, 0, 1], [0, 0, 1]], np.int64(2)).value == 0.5  # type: ignore[arg-type]
