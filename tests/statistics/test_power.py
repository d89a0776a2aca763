"""Power against statsmodels, worked examples and the power that simulated comparisons reach."""

import math

import numpy as np
import pytest
from statsmodels.stats.power import NormalIndPower, TTestPower

from evalwright.statistics import (
    compare_paired,
    items_for_difference,
    items_for_half_width,
    smallest_visible_difference,
    wilson,
)
from evalwright.statistics.power import best_draws


@pytest.mark.parametrize(("level", "power"), [(0.95, 0.8), (0.99, 0.9)])
def test_items_for_a_difference(level: float, power: float) -> None:
    effects = np.array([0.02, 0.05, 0.1])
    found = items_for_difference(effects, 0.2, level=level, power=power)
    for n, effect in zip(found, effects / 0.2**0.5, strict=True):
        oracle = NormalIndPower(ddof=0).solve_power(
            effect, alpha=1 - level, power=power, ratio=0
        )
        assert n == pytest.approx(oracle, abs=1.01)
        t_test = TTestPower().solve_power(effect, alpha=1 - level, power=power)
        assert n <= t_test + 1 and n == pytest.approx(t_test, rel=0.05)
    assert (
        items_for_difference(0.02, 0.2) == 3925
    )  # the worked example of the specification


def test_the_smallest_visible_difference_inverts_it() -> None:
    n = np.array([100, 1000, 5000])
    visible = smallest_visible_difference(n, 0.3, level=0.9, power=0.75)
    assert (items_for_difference(visible, 0.3, level=0.9, power=0.75) == n).all()


def test_the_power_that_is_promised_is_reached() -> None:
    rng = np.random.default_rng(1)
    delta = 0.08
    discordant = 0.25
    n = int(items_for_difference(delta, discordant))
    seen = 0
    for _ in range(300):
        d = rng.choice(
            [1, -1, 0],
            n,
            p=[(discordant + delta) / 2, (discordant - delta) / 2, 1 - discordant],
        )
        seen += compare_paired(np.maximum(d, 0), np.maximum(-d, 0)).verdict == "better"
    assert seen / 300 == pytest.approx(0.8, abs=0.07)


def test_items_for_a_half_width() -> None:
    n = int(items_for_half_width(0.03, 0.7 * 0.3))
    low, high = wilson(0.7 * n, n)
    assert (high - low) / 2 == pytest.approx(0.03, rel=0.01)


@pytest.mark.parametrize(
    ("within", "between", "per_item"),
    [(0.2, 0.05, 10.0), (0.2, 0.2, 0.0), (0.3, 0.1, 2.0)],
)
def test_the_best_number_of_draws_is_the_cheapest(
    within: float, between: float, per_item: float
) -> None:
    def price(draws: int) -> float:
        n = items_for_difference(0.0005, between + within / draws)
        return float(n) * (per_item + draws)

    assert best_draws(within, between, per_item=per_item, per_draw=1.0, most=40) == min(
        range(1, 40), key=price
    )


def test_bad_numbers_are_refused() -> None:
    for call in (
        lambda: items_for_difference(0, 0.2),
        lambda: items_for_difference(0.1, -0.2),
        lambda: items_for_difference(0.1, 0.2, power=1.0),
        lambda: smallest_visible_difference(0, 0.2),
        lambda: best_draws(0.1, -0.1, per_item=1, per_draw=1, most=9),
        lambda: best_draws(math.nan, 1.0, per_item=1, per_draw=1, most=9),
        lambda: best_draws(1.0, math.inf, per_item=1, per_draw=1, most=9),
    ):
        with pytest.raises(ValueError, match="must"):
            call()
