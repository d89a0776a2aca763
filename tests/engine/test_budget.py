"""What may be spent: samples buy reservations, open ones reserve what they will need, and nothing is sent past the limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import RequestFailed
from evalwright.core.responses import Response, Usage
from evalwright.engine.budget import SPENT, Budget, Limits, Reservation
from evalwright.models.remote.prices import Price
from evalwright.models.scripted import ScriptedLocalModel, ScriptedModel

MODEL = ScriptedModel("x")


def spend(reservation: Reservation, into: int = 100, out: int = 10, model: object = MODEL) -> None:
    reservation.send()
    reservation.paid(model, 400, Response("a reply", usage=Usage(into, out)))  # type: ignore[arg-type]


def until_refused(budget: Budget, at_once: int, response: Response) -> int:
    """Samples of one request each, so many in flight at a time, until one is refused: how many were sent."""
    sent, refused = 0, False
    while not refused:
        flying = []
        for _ in range(at_once):
            reservation = budget.reservation()
            try:
                reservation.send()
            except RequestFailed:
                refused = True
                break
            sent += 1
            flying.append(reservation)
        for reservation in flying:
            reservation.paid(MODEL, 4, response)
            reservation.close()
    return sent


@given(st.integers(1, 200), st.integers(1, 40))
def test_a_thousand_requests_are_a_thousand(limit: int, at_once: int) -> None:
    """With one request a sample the limit is met exactly, however many are in flight."""
    budget = Budget(Limits(requests=limit), {})
    assert until_refused(budget, at_once, Response("x")) == budget.spent.requests == limit
    assert budget.reached == "requests"


def test_a_sample_that_has_begun_may_finish() -> None:
    budget = Budget(Limits(requests=2), {})
    first = budget.reservation()
    for _ in range(5):
        first.send()
    second = budget.reservation()
    with pytest.raises(RequestFailed) as raised:
        second.send()
    assert raised.value.failure.kind == SPENT
    assert second.refused and not first.refused
    first.send()
    assert budget.spent.requests == 6


def test_tokens_and_dollars_are_what_the_model_says_and_costs() -> None:
    local = ScriptedLocalModel("x")
    budget = Budget(Limits(dollars=1.0), {id(MODEL): Price(2.0, 10.0)})
    reservation = budget.reservation()
    spend(reservation)
    spend(reservation, model=local)
    assert budget.spent.tokens == 220
    assert budget.spent.dollars == pytest.approx((100 * 2 + 10 * 10) / 1e6)
    reservation.paid(MODEL, 400, Response("x", cost=0.5, usage=Usage(1, 1)))
    assert budget.spent.dollars == pytest.approx(0.5003)


def test_a_provider_that_counts_no_tokens_is_counted_by_bytes() -> None:
    budget = Budget(Limits(tokens=10), {})
    reservation = budget.reservation()
    reservation.send()
    reservation.paid(MODEL, 400, Response("abcdefgh"))
    assert budget.spent.tokens == 102


@given(st.integers(1000, 50_000), st.integers(1, 30))
def test_in_flight_samples_reserve_their_mean(limit: int, at_once: int) -> None:
    """Of samples of 110 tokens each, those in flight never take the sum past the limit once one is known."""
    budget = Budget(Limits(tokens=limit), {})
    known = budget.reservation()
    spend(known)
    known.close()
    until_refused(budget, at_once, Response("a", usage=Usage(100, 10)))
    assert limit - 110 < budget.spent.tokens <= limit


def test_rounds_begin_with_a_few_and_share_what_is_left() -> None:
    budget = Budget(Limits(requests=100), {})
    assert budget.next_round(3) == 12
    for _ in range(12):
        reservation = budget.reservation()
        spend(reservation)
        reservation.close()
    assert budget.next_round(3) == 88
    assert budget.next_round(3) == 4 * 88  # nothing was spent: the store had it all


def test_money_that_nothing_costs_is_no_limit() -> None:
    local = ScriptedLocalModel("x")
    budget = Budget(Limits(dollars=0.01), {})
    for _ in range(50):
        reservation = budget.reservation()
        spend(reservation, model=local)
        reservation.close()
    assert budget.next_round(1) > 1e6
    assert not budget.reached
