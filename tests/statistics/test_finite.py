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
    assert (failed.low, failed.high) == pytest.approx(failed.bounds)


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


def test_the_noise_of_draws_does_not_grow_with_clusters() -> None:
    # All items were asked, so only their draws vary, each on its own, however much the items of a cluster have in common.
    rng = np.random.default_rng(3)
    ids = np.repeat(np.arange(30), 5)
    scores = (rng.random((150, 4)) < rng.beta(1, 1, 30)[ids][:, None]).astype(float)
    found = mean_interval(scores, clusters=ids, population=150)
    within = scores.var(axis=1, ddof=1).mean()
    assert found.standard_error == pytest.approx(math.sqrt(within / 4 / 150), rel=1e-9)
    assert found.standard_error is not None
    assert found.standard_error < 0.6 * (mean_interval(scores, clusters=ids).standard_error or 0)


def test_one_unit_of_many_says_nothing_more() -> None:
    assert mean_interval([1.0], population=10).low == pytest.approx(0.1)  # this one is right, nine are open
    assert mean_interval([1, 0, 1], clusters=[4, 4, 4], population=10).low == pytest.approx(0.2)
    assert mean_interval([1, 0, 1], clusters=[4, 4, 4], population=3).low == pytest.approx(2 / 3)
    assert math.isnan(mean_interval([], population=10).low)


@pytest.mark.parametrize("population", [0, 3, -1])
def test_a_population_smaller_than_the_sample_is_refused(population: int) -> None:
    with pytest.raises(ValueError, match="at least the 4 items"):
        mean_interval([1, 0, 1, 1], population=population)


def test_what_was_seen_limits_what_can_be() -> None:
    found = mean_interval([1] * 95 + [0] * 4, population=100)
    assert 0.95 - 1e-12 <= found.low < found.value < found.high <= 0.96 + 1e-12
    graded = mean_interval([0.2, 0.4, 0.9], population=4)
    assert graded.low >= 1.5 / 4 - 1e-12
    assert graded.high <= 2.5 / 4 + 1e-12


@pytest.mark.parametrize("population", [9.5, float("nan"), True])
def test_a_population_is_a_whole_number(population: float) -> None:
    with pytest.raises(ValueError, match="population must be a whole number"):
        mean_interval([1, 0, 1, 1], population=population)  # type: ignore[arg-type]
