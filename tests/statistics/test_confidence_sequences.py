"""Confidence sequences against the reference and brute force, and by how often they ever miss."""

import math
from types import ModuleType

import numpy as np
import pytest

from evalwright.statistics.confidence_sequences import (
    AsymptoticSequence,
    BettingSequence,
    asymptotic_half_width,
)

ENDLESS = 10**9
"""So many units that what was seen says nothing of the rest, as if there were no end."""


def betting_sequence(
    x: np.ndarray, n_total: int, alpha: float = 0.05
) -> tuple[np.ndarray, np.ndarray]:
    return BettingSequence(n_total, alpha=alpha).update(x)


def brute_force(
    x: np.ndarray, alpha: float, n_total: int, cells: int
) -> tuple[np.ndarray, np.ndarray]:
    """The same bets, one value and one candidate mean at a time."""
    m = np.linspace(0, 1, cells)[1:-1]
    above = np.ones(len(m))
    below = np.ones(len(m))
    dead = np.zeros(len(m), dtype=bool)
    total = 0.0
    sum_means = 0.5
    squares = 0.25
    variance = 0.25
    lows = []
    highs = []
    for i, value in enumerate(x, 1):
        left = n_total - i + 1
        growth = n_total / left
        bet = math.sqrt(
            2 * math.log(2 / alpha) * growth / (variance * i * math.log(1 + i * growth))
        )
        for j in range(len(m)):
            mean = (n_total * m[j] - total) / left
            if not 0 < mean < 1:
                dead[j] = True
                continue
            above[j] *= 1 + min(bet, 0.5 / mean) * (value - mean)
            below[j] *= 1 - min(bet, 0.5 / (1 - mean)) * (value - mean)
            dead[j] = dead[j] or max(above[j], below[j]) / 2 >= 1 / alpha
        total += value
        sum_means += value
        dead |= (n_total * m < total) | (
            n_total * m > total + n_total - i
        )  # what was seen bounds the mean of all
        squares += (value - sum_means / (i + 1)) ** 2
        variance = squares / (i + 1)
        kept = m[~dead]
        lows.append(kept[0])
        highs.append(kept[-1])
    return np.array(lows), np.array(highs)


@pytest.mark.parametrize("n_total", [90, ENDLESS])
def test_the_betting_sequence_is_that_of_brute_force(n_total: int) -> None:
    x = np.random.default_rng(1).beta(2, 1, 60)
    low, high = betting_sequence(x, n_total)
    slow_low, slow_high = brute_force(x, 0.05, n_total, 401)
    # Ends are rounded outwards by at most a cell of our grid; those of brute force inwards by at
    # most one of its own.
    assert ((slow_low - low > -0.0026) & (slow_low - low < 0.0051)).all()
    assert ((high - slow_high > -0.0026) & (high - slow_high < 0.0051)).all()


def test_the_betting_sequence_is_that_of_the_reference(reference: ModuleType) -> None:
    x = (np.random.default_rng(2).random(800) < 0.7).astype(float)
    low, high = betting_sequence(x, ENDLESS)
    ref_low, ref_high = reference.betting_cs(x, grid=4001)
    assert np.abs(low - ref_low).max() < 0.003
    assert np.abs(high - ref_high).max() < 0.003
    assert (high[-1] - low[-1]) == pytest.approx(ref_high[-1] - ref_low[-1], rel=0.02)


def test_late_units_are_worth_more_without_replacement(reference: ModuleType) -> None:
    x = (np.random.default_rng(3).random(1000) < 0.7).astype(float)
    low, high = betting_sequence(x, 1000)
    ref_low, ref_high = reference.betting_cs(x, grid=2001, pop=1000)
    assert high[899] - low[899] < 0.9 * (ref_high[899] - ref_low[899])
    assert (low[-1], high[-1]) == (x.mean(), x.mean())
    assert (np.diff(low) >= 0).all() and (np.diff(high) <= 0).all()


def test_one_by_one_is_as_all_at_once() -> None:
    x = np.random.default_rng(4).choice([-1.0, 0.0, 1.0], 700, p=[0.1, 0.7, 0.2])
    whole = BettingSequence(900, value_range=(-1, 1))
    whole.update(x)
    single = BettingSequence(900, value_range=(-1, 1))
    for value in x:
        single.update(value)
    width = whole.interval()[1] - whole.interval()[0]
    assert single.interval() == pytest.approx(whole.interval(), abs=0.02 * width)
    assert single.mean == pytest.approx(x.mean())
    low, high = betting_sequence((x + 1) / 2, 900)
    assert whole.interval() == pytest.approx((2 * low[-1] - 1, 2 * high[-1] - 1))


def test_a_long_stream_is_narrow_and_quick() -> None:
    x = np.random.default_rng(5).random(30_000)
    low, high = betting_sequence(x, ENDLESS)
    assert low[-1] < 0.5 < high[-1]
    assert high[-1] - low[-1] < 0.02
    constant_low, constant_high = betting_sequence(np.ones(5000), ENDLESS)
    assert constant_low[-1] > 0.99 and constant_high[-1] == pytest.approx(1.0)


def test_bad_values_are_refused() -> None:
    sequence = BettingSequence(2)
    for bad in ([1.5], [math.nan], [[0.5]], [0.1, 0.2, 0.3]):
        with pytest.raises(ValueError, match="value"):
            sequence.update(bad)
    assert (
        sequence.n == 0
        and math.isnan(sequence.mean)
        and sequence.interval() == (0.0, 1.0)
    )
    with pytest.raises(ValueError, match="value_range"):
        BettingSequence(2, value_range=(1, 0))
    with pytest.raises(ValueError, match="alpha"):
        BettingSequence(2, alpha=0)


def test_the_asymptotic_half_width(reference: ModuleType) -> None:
    for n, n_total in ((1, 900), (300, 900), (5000, 20_000)):
        clock = (
            n * n_total / (n_total - n)
        )  # what n of n_total are worth, were there no end
        expected = reference.asymp_cs_halfwidth(
            0.3, clock, n_opt=n_total // 3, alpha=0.01
        )
        assert asymptotic_half_width(0.3, n, n_total, alpha=0.01) == pytest.approx(
            expected
        )
    assert asymptotic_half_width(1.0, 800, 800) == 0.0
    assert asymptotic_half_width(1.0, 0, 800) == math.inf
    with pytest.raises(ValueError, match="n_total"):
        asymptotic_half_width(1.0, 9, 8)
    with pytest.raises(ValueError, match="sd must not be negative"):
        asymptotic_half_width(-1.0, 10, 100)


def test_no_spread_is_no_certainty() -> None:
    sequence = AsymptoticSequence(1000)
    sequence.update(np.zeros(500))
    assert sequence.interval() == (-math.inf, math.inf)
    with pytest.raises(ValueError, match="finite totals"):
        sequence.update([math.nan])
    with pytest.raises(ValueError, match="alpha"):
        AsymptoticSequence(10, alpha=2.0)
    with pytest.raises(ValueError, match="n_total"):
        AsymptoticSequence(0)
