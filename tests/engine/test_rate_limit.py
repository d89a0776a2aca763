"""Reading what a provider still allows from its headers."""

from __future__ import annotations

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
    rate.observe(
        limit, remaining, reset, Moment(now, now, 0.01), unseen=unseen, counted_at=now
    )


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
    rate = RateLimit()
    now = 0.0
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
