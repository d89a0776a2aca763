"""Means over exactly N items: the textbook factor, the edges, and coverage over all samples."""

import math

import numpy as np
import pytest

from evalwright.statistics import mean_interval


def test_the_factor_of_cochran() -> None:
    values = np.random.default_rng(1).beta(4, 4, 60)
    plain, found = mean_interval(values), mean_interval(values, population=100)
    assert found.standard_error == pytest.approx(plain.standard_error * math.sqrt(0.4))  # type: ignore[operator]
    assert found.high - found.low == pytest.approx((plain.high - plain.low) * math.sqrt(0.4))
    assert found.method == "t; mean over exactly these 100 items, 60 scored"
    assert (found.value, found.n) == (plain.value, 60)


def test_the_whole_population_leaves_nothing_open() -> None:
    found = mean_interval([1, 0, 1, 1], population=4)
    assert (found.low, found.high, found.standard_error) == (0.75, 0.75, 0.0)
    assert mean_interval([0.5], population=1).low == 0.5
    failed = mean_interval([1, 0, 1, math.nan], population=4)
    assert failed.high - failed.low > 0.3
    assert failed.bounds == (0.5, 0.75)


def test_the_noise_of_draws_stays() -> None:
    rng = np.random.default_rng(2)
    chance = rng.random((200, 1))
    scores = rng.random((200, 5)) < chance
    found = mean_interval(scores.astype(float), population=200)
    within = scores.var(axis=1, ddof=1).mean()
    assert found.standard_error == pytest.approx(math.sqrt(within / 5 / 200), rel=1e-9)
    part = mean_interval(scores[:50].astype(float), population=200)
    means, own = scores[:50].mean(axis=1), scores[:50].var(axis=1, ddof=1).mean()
    expected = math.sqrt((0.75 * means.var(ddof=1) + 0.25 * own / 5) / 50)
    assert part.standard_error == pytest.approx(expected, rel=1e-9)
    noise = mean_interval(np.tile([1.0, 0.0], (30, 1)), population=30)
    assert noise.high > noise.value


def test_one_unit_of_many_says_nothing_more() -> None:
    assert mean_interval([1.0], population=10).low == 0.0
    assert mean_interval([1, 0, 1], clusters=[4, 4, 4], population=10).low == 0.0
    assert mean_interval([1, 0, 1], clusters=[4, 4, 4], population=3).low == pytest.approx(2 / 3)
    assert math.isnan(mean_interval([], population=10).low)


@pytest.mark.parametrize("population", [0, 3, -1])
def test_a_population_smaller_than_the_sample_is_refused(population: int) -> None:
    with pytest.raises(ValueError, match="at least the 4 items"):
        mean_interval([1, 0, 1, 1], population=population)


@pytest.mark.parametrize(("n", "size", "right"), [(50, 100, 0.9), (300, 400, 0.7), (90, 100, 0.95)])
def test_coverage_over_exactly_these_items(n: int, size: int, right: float) -> None:
    rng = np.random.default_rng(3)
    population = np.arange(size) < right * size
    samples = [rng.choice(population, n, replace=False).astype(float) for _ in range(1500)]
    found = [mean_interval(sample, population=size) for sample in samples]
    truth = population.mean()
    assert (
        0.93 <= np.mean([each.low <= truth + 1e-12 and each.high >= truth - 1e-12 for each in found]) <= 0.995
    )
