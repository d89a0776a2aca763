"""What may be spent: sendings reserve what they may cost, and nothing is sent that passes the
limit.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.support import question, run_virtually
from evalwright.core.errors import RequestFailed
from evalwright.core.responses import Response, Usage
from evalwright.engine.budget import SPENT, Amount, Budget, Limits, Reservation
from evalwright.engine.counts import Counts
from evalwright.engine.ledger import Account
from evalwright.models.model_interface import Model
from evalwright.models.remote.prices import Price
from evalwright.models.scripted import ScriptedLocalModel, ScriptedModel

ONE = Amount(1, 110, 0.0)


async def spend(reservation: Reservation, amount: Amount = ONE) -> None:
    await reservation.hold(amount)
    await asyncio.sleep(random.random())
    reservation.settle(amount, amount)


async def spend_all(budget: Budget, at_once: int, amount: Amount = ONE) -> None:
    """Samples of one sending each, so many in flight at a time, until one is refused."""

    async def worker() -> None:
        while not budget.reached:
            reservation = budget.reservation()
            try:
                await spend(reservation, amount)
            except RequestFailed as refused:
                assert refused.failure.kind == SPENT
            reservation.close()

    await asyncio.gather(*(worker() for _ in range(at_once)))


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return run_virtually(work)


@given(st.integers(1, 200), st.integers(1, 40))
def test_a_thousand_requests_are_a_thousand(limit: int, at_once: int) -> None:
    """With one request a sample the limit is met exactly, however many are in flight."""
    budget = Budget(Limits(requests=limit))
    run(spend_all(budget, at_once))
    assert budget.spent.requests == limit and budget.reached == "requests"


@given(st.integers(200, 50_000), st.integers(1, 30))
def test_no_limit_is_passed_by_more_than_one_sending(limit: int, at_once: int) -> None:
    budget = Budget(Limits(tokens=limit))
    run(spend_all(budget, at_once))
    assert limit - 110 < budget.spent.tokens < limit + 110


def test_a_sample_that_has_begun_may_finish_as_far_as_the_limit_allows() -> None:
    async def work() -> None:
        budget = Budget(Limits(requests=4))
        first = budget.reservation()
        second = budget.reservation()
        for _ in range(3):
            await spend(first)
        first.close()
        with pytest.raises(RequestFailed):  # a sample takes three, as far as is known
            await spend(second)
        assert second.refused and not first.refused and budget.spent.requests == 3
        third = Budget(Limits(requests=4)).reservation()
        for _ in range(4):
            await spend(third)
        with pytest.raises(RequestFailed):
            await spend(third)

    run(work())


def test_what_does_not_fit_beside_others_waits_for_them() -> None:
    async def work() -> None:
        budget = Budget(Limits(tokens=200))
        reservations = [budget.reservation() for _ in range(3)]
        await reservations[0].hold(ONE)
        waiting = [
            asyncio.ensure_future(reservation.hold(ONE))
            for reservation in reservations[1:]
        ]
        await asyncio.sleep(1)
        assert not any(one.done() for one in waiting)
        waiting[0].cancel()
        reservations[0].settle(ONE, Amount(1, 20))  # it cost less than it might have
        await asyncio.sleep(1)
        assert waiting[1].done() and waiting[1].exception() is None
        reservations[2].settle(ONE, None)  # and this was not sent
        assert budget.spent.tokens == 20

    run(work())


def counted(model: Model, response: Response, limits: Limits) -> tuple[Budget, Counts]:
    """One request to a model, answered so."""
    budget = Budget(limits)
    counts = Counts()

    async def work() -> None:
        account = Account(
            model, question(1), 400, counts, lambda *bill: None, budget.reservation()
        )
        await account.reserve()
        account.settle(response)

    run(work())
    return budget, counts


def test_tokens_and_dollars_are_what_the_reply_says_or_the_price() -> None:
    model = ScriptedModel("x")
    model.price = Price(2.0, 10.0)
    budget, counts = counted(
        model, Response("x", usage=Usage(100, 10)), Limits(dollars=1.0)
    )
    assert (
        budget.spent.dollars == counts.cost == pytest.approx((100 * 2 + 10 * 10) / 1e6)
    )
    budget, counts = counted(
        model, Response("x", cost=0.5, usage=Usage(1, 1)), Limits(dollars=1.0)
    )
    assert budget.spent.dollars == counts.cost == 0.5 and counts.estimated.sendings == 0
    budget, counts = counted(
        ScriptedLocalModel("x"), Response("x", usage=Usage(9, 1)), Limits(dollars=1.0)
    )
    assert (
        budget.spent.as_dict() == {"requests": 1, "tokens": 10, "dollars": 0}
        and counts.cost is None
    )


def test_a_reply_that_counts_no_tokens_is_estimated_by_its_bytes() -> None:
    budget, counts = counted(
        ScriptedModel("x"), Response("abcdefgh"), Limits(tokens=10)
    )
    assert budget.spent.tokens == 400 // 3 + 1 + 3
    assert counts.estimated.tokens == budget.estimated.tokens == budget.spent.tokens


def test_rounds_begin_with_a_few_samples_and_share_what_is_left() -> None:
    async def work() -> None:
        budget = Budget(Limits(requests=100))
        assert budget.next_round(3) == 12
        for _ in range(12):
            reservation = budget.reservation()
            await spend(reservation)
            reservation.close()
        assert budget.next_round(3) == 88
        assert budget.next_round(3) == 4 * 88  # nothing was spent: the store had it all

    run(work())


def test_money_that_nothing_costs_is_no_limit() -> None:
    async def work() -> None:
        budget = Budget(Limits(dollars=0.01))
        for _ in range(50):
            reservation = budget.reservation()
            await spend(reservation)
            reservation.close()
        assert budget.next_round(1) > 1e6
        assert not budget.reached

    run(work())
