"""Variances with limits and design effects: hand-computed values, brute force over pairs, and
coverage by simulation.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from evalwright.statistics import compare_paired, wilson
from evalwright.statistics.power import (
    cluster_correlation,
    cluster_weight,
    design_effect,
    difference_variance,
    least_visible_difference,
    score_variance,
)


def test_right_or_wrong_scores_by_hand() -> None:
    found = score_variance([1] * 24 + [0] * 6)
    low, high = wilson(24, 30)
    assert (found.value, found.low, found.high) == pytest.approx(
        (0.16, high * (1 - high), low * (1 - low))
    )
    half = score_variance([1, 0] * 15)
    assert (half.value, half.high) == (0.25, 0.25)
    assert half.low < 0.25


def test_graded_scores_by_hand() -> None:
    values = [0.2, 0.4, 0.9, 0.5]
    found = score_variance(values)
    assert found.value == pytest.approx(np.var(values, ddof=1))
    assert found.low < found.value < found.high <= 0.25


@pytest.mark.parametrize("values", [[1.0] * 30, [0.5] * 30])
def test_no_spread_is_not_certainty(values: list[float]) -> None:
    found = score_variance(values)
    assert found.value == 0.0
    assert 0.05 < found.high <= 0.25


@pytest.mark.parametrize(
    ("name", "least"),
    [("binary", 0.93), ("uniform", 0.92), ("skewed", 0.88), ("bimodal", 0.88)],
)
def test_limits_of_a_variance_cover_it(name: str, least: float) -> None:
    rng = np.random.default_rng(7)
    truth = {
        "binary": 0.16,
        "uniform": 1 / 12,
        "skewed": 10 / (49 * 8),
        "bimodal": 0.16 / (0.64 * 1.8),
    }[name]

    def draw() -> NDArray[np.float64]:
        if name == "binary":
            return (rng.random(30) < 0.8).astype(float)
        shape = {"uniform": (1, 1), "skewed": (2, 5), "bimodal": (0.4, 0.4)}[name]
        return rng.beta(*shape, 30)

    inside = 0
    for _ in range(1500):
        limits = score_variance(draw())
        inside += limits.low <= truth <= limits.high
    assert inside / 1500 >= least


def test_differences_of_right_or_wrong_scores_are_counted() -> None:
    a = [1, 1, 1, 0, 0, 1, 1, 0, 1, 1]
    b = [1, 0, 1, 0, 1, 1, 1, 0, 1, 1]
    found = difference_variance(a, b, 0.02)
    low, high = wilson(2, 10)
    assert (found.value, found.low, found.high) == pytest.approx((0.2, low, high))


def test_a_difference_needs_that_many_discordant_items() -> None:
    found = difference_variance([1] * 9 + [0] * 31, [1] * 10 + [0] * 30, 0.2)
    assert found.value == pytest.approx(0.2)
    none = difference_variance([1, 0] * 15, [1, 0] * 15, 0.02)
    assert none.value == 0.0
    assert none.high > 0.05


def test_graded_differences_keep_their_variance_and_missing_ones_are_left_out() -> None:
    a = np.array([0.5, 0.7, 0.1, np.nan, 0.9])
    b = np.array([0.4, 0.1, 0.3, 0.5, 0.9])
    d = (a - b)[~np.isnan(a - b)]
    assert difference_variance(a, b, 0.02).value == pytest.approx(np.var(d, ddof=1))
    assert difference_variance(
        a * 10, b * 10, 0.2, value_range=None
    ).value == pytest.approx(np.var(10 * d, ddof=1))


def test_limits_of_a_paired_variance_cover_it() -> None:
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(1500):
        kinds = rng.choice(3, size=40, p=[0.8, 0.11, 0.09])
        limits = difference_variance(kinds == 1, kinds == 2, 0.02)
        inside += limits.low <= 0.2 <= limits.high
    assert inside / 1500 >= 0.93


def test_no_difference_is_seen_without_that_many_discordant_items() -> None:
    """Brute force: all discordant items favour one model, at the difference that the function
    names.
    """
    n = 100
    d = least_visible_difference(n)
    assert d == pytest.approx(1 / (1 + n / 7.8489), rel=1e-4)
    rng = np.random.default_rng(9)
    wins = rng.binomial(n, d, 20000)
    items = np.arange(n)
    seen = np.array(
        [compare_paired(items < won, items < 0).p_value < 0.05 for won in range(n + 1)]
    )[wins]
    assert seen.mean() == pytest.approx(0.8, abs=0.08)
    assert least_visible_difference(n, design=2.0) == pytest.approx(
        least_visible_difference(n / 2)
    )


def test_the_weight_of_clusters() -> None:
    assert cluster_weight([1, 2, 3]) == 1.0
    assert cluster_weight([7, 7, 7, 7]) == 4.0
    assert cluster_weight([1, 1, 1, 2]) == pytest.approx((9 + 1) / 4)
    assert cluster_weight(np.zeros(0, np.int64)) == 1.0


def test_the_correlation_is_the_mean_product_of_pairs() -> None:
    rng = np.random.default_rng(5)
    clusters = rng.integers(0, 12, 40)
    values = rng.random(12)[clusters] + rng.random(40)
    values /= 2
    d = values - values.mean()
    pairs = [
        (i, j) for i, j in combinations(range(40), 2) if clusters[i] == clusters[j]
    ]
    expected = np.mean([d[i] * d[j] for i, j in pairs]) / np.var(values, ddof=1)
    found = cluster_correlation(values, clusters)
    assert found.value == pytest.approx(expected)
    assert found.low <= found.value <= found.high <= 1.0


@pytest.mark.parametrize("clusters", [[1, 2, 3, 4], [1, 1, 2, 2]])
def test_nothing_to_see_a_correlation_by(clusters: list[int]) -> None:
    found = cluster_correlation([1, 1, 1, 1], clusters)
    assert (math.isnan(found.value), found.low, found.high) == (True, 0.0, 1.0)


def test_a_thin_sample_foretells_the_whole() -> None:
    """Brute force: a pilot of 300 from 2,000 items in clusters of ten, against the spread of the
    mean of all of them.
    """
    rng = np.random.default_rng(11)
    groups = 200
    size = 10
    rho = 0.3
    clusters = np.repeat(np.arange(groups), size)

    def world() -> NDArray[np.float64]:
        p = rng.beta(0.5 * (1 / rho - 1), 0.5 * (1 / rho - 1), groups)
        return (rng.random(groups * size) < p[clusters]).astype(float)

    means = [world().mean() for _ in range(1500)]
    true = np.var(means) / (0.25 / (groups * size))
    foretold = []
    for _ in range(60):
        pilot = rng.permutation(groups * size)[:300]
        rho_found = cluster_correlation(world()[pilot], clusters[pilot]).value
        foretold.append(design_effect(rho_found, cluster_weight(clusters)))
    assert true == pytest.approx(1 + 9 * rho, rel=0.12)
    assert np.mean(foretold) == pytest.approx(true, rel=0.12)
    thin = design_effect(rho, cluster_weight(clusters[pilot]))
    assert thin < 0.6 * true
