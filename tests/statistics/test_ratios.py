"""A ratio of totals: its value, its interval's coverage, and what has no interval."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalwright.statistics.ratios import ratio_of_totals


def test_value_and_missing_items() -> None:
    estimate = ratio_of_totals([1.0, 2.0, 3.0, math.nan], [1.0, 0.0, 1.0, 1.0])
    assert estimate.value == 3.0
    assert (estimate.n, estimate.n_missing) == (3, 1)
    assert estimate.low < 3.0 < estimate.high
    assert estimate.method == "ratio of totals over items, log delta t"


@pytest.mark.parametrize(
    ("top", "bottom", "why"),
    [
        ([1.0, 2.0], [0.0, 0.0], "no number: the denominator is 0"),
        ([0.0, 0.0], [1.0, 1.0], "no interval: the numerator is 0"),
        ([1.0], [1.0], "no interval: one unit"),
        ([2.0, 2.0], [1.0, 1.0], "no interval: all items are alike"),
        ([], [], "no interval: nothing was scored"),
    ],
)
def test_what_has_no_interval_says_why(
    top: list[float], bottom: list[float], why: str
) -> None:
    estimate = ratio_of_totals(top, bottom)
    assert estimate.method == why
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.high)


@pytest.mark.parametrize(("n", "share"), [(40, 0.5), (200, 0.2), (200, 0.9)])
def test_coverage_over_drawn_questions(n: int, share: float) -> None:
    """Costs that go with difficulty: lognormal, larger where the answer is wrong."""
    draws = np.random.default_rng(n)
    covered = 0
    times = 2000
    truth = (share * 1.0 + (1 - share) * 2.0) * math.exp(0.5 * 0.8**2) / share
    for _ in range(times):
        right = (draws.random(n) < share).astype(float)
        costs = np.exp(0.8 * draws.standard_normal(n)) * np.where(right > 0, 1.0, 2.0)
        estimate = ratio_of_totals(costs, right)
        covered += estimate.low <= truth <= estimate.high
    assert 0.93 <= covered / times <= 0.97


def test_clusters_widen_the_interval() -> None:
    draws = np.random.default_rng(1)
    by_cluster = draws.random(30) < 0.5
    right = np.repeat(by_cluster, 10).astype(float)
    costs = np.ones(300)
    clusters = np.repeat(np.arange(30), 10)
    alone = ratio_of_totals(costs, right)
    together = ratio_of_totals(costs, right, clusters=clusters)
    assert together.value == alone.value
    assert together.n_clusters == 30
    assert together.high - together.low > 2 * (alone.high - alone.low)
