from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from evalwright.reports.axis import axis_of, bar_of
from evalwright.statistics import Estimate


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, low, high, 0.95, 10, 0, None, None, "t")


def test_ticks_are_round_and_reach_around_the_intervals() -> None:
    axis = axis_of([estimate(0.6, 0.57, 0.7), estimate(0.2, 0.13, 0.22)], "points")
    assert [label for _, label in axis.ticks] == ["0", "20", "40", "60", "80"]
    assert [place for place, _ in axis.ticks] == [
        "0.00%",
        "25.00%",
        "50.00%",
        "75.00%",
        "100.00%",
    ]


def test_scores_worse_than_guessing_are_drawn_where_they_are() -> None:
    worse = estimate(-0.4, -0.7, 0.2)
    better = estimate(0.5, 0.4, 0.6)
    axis = axis_of([worse, better], "points")
    assert axis.low <= -0.7 and bar_of(worse, axis).value > "0.00%"
    # An interval alone that goes below 0 does not lengthen the axis.
    assert axis_of([estimate(0.1, -0.1, 0.3), better], "points").low == 0


def test_without_numbers_or_without_spread_there_is_still_an_axis() -> None:
    assert len(axis_of([], "points").ticks) >= 2
    assert len(axis_of([estimate(3.0, math.nan, math.nan)], "plain").ticks) >= 2
    point = bar_of(
        estimate(3.0, math.nan, math.nan),
        axis_of([estimate(3.0, math.nan, math.nan)], "plain"),
    )
    assert point.low == point.value == point.high


@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.floats(0, 1e5), st.floats(0, 1e5)),
        min_size=1,
        max_size=5,
    )
)
def test_everything_lies_on_the_axis(parts: list[tuple[float, float, float]]) -> None:
    estimates = [
        estimate(value, value - below, value + above) for value, below, above in parts
    ]
    axis = axis_of(estimates, "plain")
    slack = 1e-6 * (axis.high - axis.low)
    assert all(
        axis.low - slack <= estimate.low and estimate.high <= axis.high + slack
        for estimate in estimates
    )
    assert 2 <= len(axis.ticks) <= 8
    assert len({label for _, label in axis.ticks}) == len(axis.ticks)
