"""Reading what a provider still allows from its headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.engine.rate_limit import Moment, RateLimit


def observe(
    rate: RateLimit,
    limit: float | None,
    remaining: float | None,
    reset: float | None,
    now: float,
    unseen: float = 0,
) -> None:
    """A reply that took no time."""
    rate.observe(limit, remaining, reset, Moment(now, now, 0.01), unseen=unseen, counted_at=now)


def test_a_falling_bucket_and_a_falling_window_are_told_apart() -> None:
    bucket, window = RateLimit(), RateLimit()
    for number in range(1, 200):
        now = number / 1000
        observe(bucket, 1000, 1000 - number, number * 0.06, now)
        observe(window, 1000, 1000 - number, 60 - now, now)
    assert bucket.kind == "bucket" and bucket.rate == pytest.approx(1 / 0.06)
    assert window.kind == "window"


def test_an_exhausted_window_is_waited_for_to_its_end_and_opened_carefully() -> None:
    rate = RateLimit()
    for number in range(1, 1001):
        observe(rate, 1000, 1000 - number, 60 - number / 1000, number / 1000)
    assert rate.wait(1, 1.0, 0.01) == pytest.approx(59.0)
    allowed = 0
    while rate.wait(1, 60.1, 0.01) == 0 and allowed < 100:
        rate.spend(1)
        allowed += 1
    assert allowed == 10, "a hundredth, until a reply confirms the new window"
    observe(rate, 1000, 990, 59.9, 60.2)
    assert rate.wait(900, 60.2, 0.01) == 0


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(0, 1000),
            st.none() | st.integers(0, 1000),
            st.none() | st.floats(0, 1e4),
            st.floats(0, 10),
            st.integers(0, 50),
        ),
        max_size=30,
    )
)
def test_no_headers_make_anybody_wait_for_ever(
    replies: list[tuple[int | None, int | None, float | None, float, int]],
) -> None:
    rate, now = RateLimit(), 0.0
    for limit, remaining, reset, pause, unseen in replies:
        now += pause
        observe(rate, limit, remaining, reset, now, unseen)
        rate.spend(1)
    waited = 0.0
    for _ in range(100):
        delay = rate.wait(1, now, 0.1)
        assert delay >= 0
        if delay == 0:
            break
        now += delay
        waited += delay
    else:
        raise AssertionError("never let through")
    assert waited < 1e8
