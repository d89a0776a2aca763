"""A budget of several processes: never passed, used up, and right after a kill; in both kinds of
store.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest

from engine.test_budget import spend_all
from evalwright.core.errors import RequestFailed
from evalwright.engine.budget import Amount, Limits
from evalwright.engine.opening import open_store
from evalwright.engine.shared_budget import SharedBudget
from evalwright.engine.store import Store

pytestmark = pytest.mark.usefixtures("each_store")

TOKENS = Amount(1, 110, 0.0)


def budget_in(
    store: Store, limits: Limits, processes: int = 3, name: str = "run"
) -> SharedBudget:
    budget = SharedBudget(limits, name, processes)
    budget.open(store)
    return budget


async def spend_quickly(
    budget: SharedBudget, amount: Amount, most: int = 1_000_000
) -> None:
    """One sample after another, until one is refused."""
    for _ in range(most):
        reservation = budget.reservation()
        try:
            await reservation.hold(amount)
        except RequestFailed:
            return
        await asyncio.sleep(0)
        reservation.settle(amount, amount)
        reservation.close()


@pytest.mark.parametrize("limit", [1, 5, 100, 333])
def test_several_processes_spend_it_all_and_no_more(tmp_path: Path, limit: int) -> None:
    async def work() -> list[SharedBudget]:
        with ExitStack() as stack:
            stores = [stack.enter_context(open_store(tmp_path)) for _ in range(3)]
            budgets = [budget_in(store, Limits(requests=limit)) for store in stores]
            await asyncio.gather(
                *(spend_quickly(budget, TOKENS) for budget in budgets for _ in range(4))
            )
            for budget in budgets:
                await budget.close()
            return budgets

    budgets = asyncio.run(work())
    assert sum(budget.spent.requests for budget in budgets) == limit
    assert all(budget.reached == "requests" for budget in budgets)


def test_a_limit_is_passed_by_nobody(tmp_path: Path) -> None:
    async def work() -> list[SharedBudget]:
        with ExitStack() as stack:
            stores = [stack.enter_context(open_store(tmp_path)) for _ in range(2)]
            budgets = [
                budget_in(store, Limits(tokens=10_000, requests=10_000), 2)
                for store in stores
            ]
            await asyncio.gather(
                *(spend_quickly(budget, TOKENS) for budget in budgets for _ in range(5))
            )
            return budgets

    budgets = asyncio.run(work())
    spent = sum(budget.spent.tokens for budget in budgets)
    assert 10_000 - 2 * 110 <= spent <= 10_000
    assert {budget.reached for budget in budgets} == {"tokens"}


def test_what_a_killed_process_had_taken_counts_as_spent_and_what_one_gives_back_does_not(
    tmp_path: Path,
) -> None:
    limits = Limits(requests=100)

    async def begin(most: int, *, ends: bool) -> SharedBudget:
        with open_store(tmp_path) as store:
            budget = budget_in(store, limits, 2)
            await spend_quickly(budget, TOKENS, most)
            if ends:
                await budget.close()
            return budget

    ended = asyncio.run(begin(10, ends=True))
    killed = asyncio.run(begin(10, ends=False))
    assert ended.spent.requests == killed.spent.requests == 10
    last = asyncio.run(begin(1000, ends=True))
    taken_by_killed = 100 - 10 - last.spent.requests
    assert 10 <= taken_by_killed <= 10 + 100 / 8
    assert last.as_dict()["spent_by_all"] == {"requests": 100}
    nothing = asyncio.run(begin(1000, ends=True))
    assert (nothing.spent.requests, nothing.reached) == (0, "requests")
    limits = Limits(requests=120)
    assert asyncio.run(begin(1000, ends=True)).spent.requests == 20


@pytest.mark.parametrize("limit", [10, 333])
def test_what_one_gives_back_while_it_waits_others_spend(
    tmp_path: Path, limit: int
) -> None:
    """Two workers, of which one waits with an allotment that it does not use."""

    async def work() -> None:
        with open_store(tmp_path) as store, open_store(tmp_path) as other_store:
            waiting, busy = (
                budget_in(home, Limits(tokens=limit * 110), processes=0)
                for home in (store, other_store)
            )
            await spend_quickly(waiting, TOKENS, 3)
            await spend_quickly(busy, TOKENS)
            assert busy.reached == "tokens"
            assert "processes" not in busy.as_dict()
            await waiting.give_back()
            await waiting.give_back()
            busy.reopen()
            await spend_quickly(busy, TOKENS)
            assert waiting.spent.requests + busy.spent.requests == limit
            waiting.reopen()
            await spend_quickly(waiting, TOKENS)
            assert waiting.spent.requests == 3

    asyncio.run(work())


def test_nothing_is_given_back_of_what_is_in_flight(tmp_path: Path) -> None:
    async def work() -> None:
        with open_store(tmp_path) as store, open_store(tmp_path) as other_store:
            budget, other = (
                budget_in(home, Limits(requests=4), processes=0)
                for home in (store, other_store)
            )
            reservation = budget.reservation()
            await reservation.hold(TOKENS)
            await budget.give_back()
            await spend_quickly(other, TOKENS)
            reservation.settle(TOKENS, TOKENS)
            assert budget.spent.requests + other.spent.requests <= 4

    asyncio.run(work())


def test_budgets_of_other_runs_are_apart(tmp_path: Path) -> None:
    async def work() -> None:
        with open_store(tmp_path) as store:
            for name in ("one", "two"):
                budget = budget_in(store, Limits(requests=7), name=name)
                await spend_quickly(budget, TOKENS)
                assert budget.spent.requests == 7

    asyncio.run(work())


def test_who_waits_for_room_is_refused_when_none_will_come(tmp_path: Path) -> None:
    """The last tokens are not enough for one sending, and several wait for others to cost less
    than they might.
    """

    async def work() -> SharedBudget:
        with open_store(tmp_path) as store:
            budget = budget_in(store, Limits(tokens=3 * 110 + 50), 1)
            async with asyncio.timeout(60):
                await spend_all(budget, 10)
            return budget

    assert asyncio.run(work()).spent.tokens == 330


def test_money_that_nothing_costs_is_no_limit(tmp_path: Path) -> None:
    async def work() -> None:
        with open_store(tmp_path) as store:
            budget = budget_in(store, Limits(dollars=1.0))
            await spend_quickly(budget, Amount(1, 10, 0.0), most=50)
            assert budget.reached == ""
            assert budget.spent.requests == 50

    asyncio.run(work())
