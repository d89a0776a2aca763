from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.reports import numbers
from evalwright.statistics import Estimate, mean_interval


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, low, high, 0.95, 240, 0, None, 0.03, "t")


NOTHING = mean_interval([])


def test_points_of_100_with_one_decimal() -> None:
    assert numbers.score(estimate(0.625, 0.571, 0.676), "points") == "62.5 [57.1, 67.6]"
    assert numbers.score(estimate(1.0, 0.984, 1.0), "points") == "100.0 [98.4, 100.0]"
    assert numbers.score(estimate(0.0004, 0.0, 0.01), "points") == "0.0 [0.0, 1.0]"


def test_perplexities_have_four_significant_digits() -> None:
    assert (
        numbers.score(estimate(12.3456, 11.2, 13.7), "perplexity")
        == "12.35 [11.20, 13.70]"
    )
    assert (
        numbers.score(estimate(1234.5678, 1100, 1400), "perplexity")
        == "1,235 [1,100, 1,400]"
    )
    assert (
        numbers.score(estimate(1.00234, 1.001, 1.004), "perplexity")
        == "1.002 [1.001, 1.004]"
    )
    assert numbers.value(estimate(1.5e12, 1e12, 2e12), "perplexity") == "1.500e+12"


def test_other_metrics_take_the_decimals_that_their_interval_deserves() -> None:
    assert numbers.score(estimate(3.14159, 3.0, 3.3), "plain") == "3.14 [3.00, 3.30]"
    assert (
        numbers.score(estimate(1234.5, 1000, 1500), "plain") == "1,234 [1,000, 1,500]"
    )
    assert numbers.score(estimate(-0.00001, -0.2, 0.2), "plain") == "0.00 [-0.20, 0.20]"


def test_what_does_not_exist_is_said_so() -> None:
    assert numbers.score(NOTHING, "points") == "n/a"
    assert numbers.score(None, "points") == "n/a"
    assert numbers.score(estimate(0.5, math.nan, math.nan), "points") == "50.0 [n/a]"
    assert numbers.number(math.inf, "plain", 2) == "inf"
    assert numbers.p_value(math.nan) == "n/a"
    assert numbers.money(None) == "n/a"
    assert numbers.duration(math.nan) == "n/a"
    assert numbers.ranks(None) == "n/a"


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=6))
def test_aligned_scores_are_the_scores_with_spaces(values: list[float | None]) -> None:
    column = [
        None if x is None else estimate(x, max(0.0, x - 0.1), min(1.0, x + 0.1))
        for x in values
    ]
    shown = numbers.aligned_scores(column, "points")
    plain = [numbers.score(each, "points") for each in column]
    assert [text.replace(" ", "") for text in shown] == [
        text.replace(" ", "") for text in plain
    ]
    assert len({len(text) for text in shown if text != "n/a"}) <= 1


def test_differences_carry_their_sign() -> None:
    assert numbers.difference(0.032, -0.01, 0.074, bounded=True) == "+3.2 [-1.0, 7.4]"
    assert numbers.difference(-0.032, -0.07, 0.01, bounded=True) == "-3.2 [-7.0, 1.0]"
    assert numbers.difference(-0.0001, -0.07, 0.07, bounded=True) == "0.0 [-7.0, 7.0]"
    assert numbers.difference(1.5, math.nan, math.nan, bounded=False) == "+1.500 [n/a]"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0.00 s"), (0.42, "0.42 s"), (3.14, "3.1 s"), (9.96, "10 s"), (59.6, "1 min 00 s"),
        (185, "3 min 05 s"), (3599.7, "1 h 00 min"), (7380, "2 h 03 min"), (90000, "1 d 01 h"),
    ],
)  # fmt: skip
def test_durations(seconds: float, shown: str) -> None:
    assert numbers.duration(seconds) == shown


@pytest.mark.parametrize(
    ("dollars", "shown"),
    [
        (0.0, "$0"), (12.345, "$12.35"), (1234.5, "$1,234.50"), (0.0123, "$0.012"),
        (0.00001, "under $0.0001"), (0.996, "$1.00"),
    ],
)  # fmt: skip
def test_money(dollars: float, shown: str) -> None:
    assert numbers.money(dollars) == shown


@pytest.mark.parametrize(
    ("p", "shown"),
    [
        (0.00001, "< 0.001"), (0.00022, "< 0.001"), (0.0012, "0.0012"), (0.013, "0.013"), (0.0498, "0.0498"), (0.0502, "0.0502"),
        (0.4, "0.40"), (1.0, "1.00"),
    ],
)  # fmt: skip
def test_p_values_are_never_rounded_onto_the_threshold(p: float, shown: str) -> None:
    assert numbers.p_value(p) == shown
