"""A budget that several processes (shards, workers) spend together, through their common store.

Each process durably takes an allotment from the store before it spends, and a further one when
that is used up; when it ends, it gives back what it has not spent. So the sum never exceeds the
limit, no matter which process is killed or when: what a killed process had taken counts as
spent. Allotments shrink as less is left, so that all processes end at about the same time.

Allotments stay in the store under the budget's name. A run that is started again continues with
what is left of its limit, and if nothing is left it needs a higher limit.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from evalwright.engine.budget import Amount, Budget, Limits

ALLOTMENTS_PER_SHARE = 4
"""An allotment is one process's share of what is left, divided by this."""

SHARES_OF_WORKERS = 128
"""The number of processes for which allotments are cut where nobody knows how many there are.

A killed worker loses one allotment beside what it had in flight, so they are small: 1/512 of what
is left.
"""

MIN_ALLOTMENT_SHARE = 0.001
"""Least share of the limit in an allotment, so that what is left is not dealt out in tiny amounts.
"""

MIN_SENDINGS_PER_ALLOTMENT = 2.0
"""An allotment pays for at least this many sendings that cost the current one's estimate."""


class Allotments(Protocol):
    """A store that keeps allotments."""

    async def allot(
        self, budget: str, amounts: Mapping[str, float], limits: Mapping[str, float]
    ) -> tuple[dict[str, float], dict[str, float]]: ...

    async def settle_allotment(
        self, budget: str, spent: Mapping[str, float]
    ) -> None: ...


class SharedBudget(Budget):
    """This process's part of a budget, which grows as needed.

    Close it when nothing is sent any more.

    Args:
        limits: limits of the whole budget.
        name: the budget's name, the same in all processes.
        processes: number of processes that share it; 0 if they come and go.
    """

    def __init__(self, limits: Limits, name: str, processes: int) -> None:
        super().__init__(limits)
        self._allowed = dict.fromkeys(limits.as_dict(), 0.0)
        self._name = name
        self._processes = processes
        self._allotments: Allotments | None = None
        self._taken_by_all = dict.fromkeys(limits.as_dict(), 0.0)
        self._nothing_left = False
        self._version = 0
        """Number of allotments taken so far."""
        self._lock = asyncio.Lock()

    def open(self, allotments: Allotments) -> None:
        """Take allotments from this store."""
        self._allotments = allotments

    async def give_back(self) -> None:
        """Give back what was not spent, and go on; nothing is given back while anything is in use.

        A worker that waits for others has no use for its allotment, and may be killed meanwhile.
        """
        async with self._lock:
            unused = any(
                allotted > getattr(self.spent, name)
                for name, allotted in self._allowed.items()
            )
            if self._holding or self._waiting or not unused:
                return
            # First here, so that whatever is sent meanwhile takes a new allotment after this.
            self._allowed = {
                name: float(getattr(self.spent, name)) for name in self._allowed
            }
            await self.close()

    def reopen(self) -> None:
        """Spend again after the limit was reached, as others may have given something back."""
        self.reached = ""
        self._nothing_left = False

    async def close(self) -> None:
        """Give back what was not spent."""
        if self._allotments is not None and self._version:
            spent = {
                name: getattr(self.spent, name)
                for name in ("requests", "tokens", "dollars")
            }
            await self._allotments.settle_allotment(self._name, spent)

    def as_dict(self) -> dict[str, object]:
        """Return a plain mapping for JSON.

        `spent` is by this process; `spent_by_all` by all that share the budget, as far as is known.
        """
        others = {
            name: round(
                max(0.0, allotted - self._allowed[name]) + getattr(self.spent, name), 6
            )
            for name, allotted in self._taken_by_all.items()
        }
        processes = {"processes": self._processes} if self._processes else {}
        return {**super().as_dict(), **processes, "spent_by_all": others}

    async def may_begin(self, estimate: Amount) -> str:
        """Like `Budget.may_begin`, but first take further allotments if they are needed."""
        version = self._version
        while missing := self.missing():
            if self.reached or not await self._extend([missing], estimate, version):
                return missing
            version = self._version
        return ""

    async def hold(self, estimate: Amount) -> str:
        """Like `Budget.hold`, but first take further allotments if they are needed."""
        version = self._version
        while not self._waiting and (lacking := self._lacking(estimate)):
            if not await self._extend(lacking, estimate, version):
                break
            version = self._version
        lacking = self._lacking(estimate)
        if lacking and self._nothing_left and not self._holding:
            return lacking[0]
        return await super().hold(estimate)

    def _room(self, estimate: Amount) -> bool:
        # What one process may send beyond its part, all of them together may not.
        return not self._lacking(estimate)

    def _full(self) -> str:
        if not self._nothing_left:
            return ""
        if not self._holding and self._waiting:
            return super()._full() or next(iter(self._lacking(self._waiting[0][0])), "")
        return super()._full()

    def _left(self, name: str) -> float:
        limit = self.limits.as_dict()[name]
        return super()._left(name) + max(0.0, limit - self._taken_by_all[name])

    async def _extend(
        self, lacking: Sequence[str], estimate: Amount, version: int
    ) -> bool:
        """Take a further allotment of what is lacking, unless another task has since `version`.

        Returns:
            False if nothing is left to take.
        """
        async with self._lock:
            if self._version != version:
                return True
            if self._nothing_left or self._allotments is None:
                return False
            limits = self.limits.as_dict()
            amounts = dict.fromkeys(limits, 0.0)
            for name in lacking:
                share = max(0.0, limits[name] - self._taken_by_all[name]) / (
                    ALLOTMENTS_PER_SHARE * (self._processes or SHARES_OF_WORKERS)
                )
                least = max(
                    MIN_SENDINGS_PER_ALLOTMENT * getattr(estimate, name),
                    MIN_ALLOTMENT_SHARE * limits[name],
                )
                amounts[name] = (
                    float(math.ceil(max(share, least)))
                    if name == "requests"
                    else max(share, least)
                )
            granted, taken_by_all = await self._allotments.allot(
                self._name, amounts, limits
            )
            self._taken_by_all = {name: taken_by_all[name] for name in limits}
            for name, amount in granted.items():
                self._allowed[name] += amount
            self._version += 1
            self._nothing_left = any(granted[name] < amounts[name] for name in lacking)
            return all(granted[name] > 0 for name in lacking)
