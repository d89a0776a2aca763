"""What one command may spend: requests, tokens and dollars, over all its models and roles.

The unit is one sending. Before it, the most that it may cost is reserved; after it, its actual
cost is counted (`engine.ledger`). A sending that does not fit beside those in flight waits
until some of them have ended; one that would not fit even alone is sent only while nothing else
is in flight, so a limit is exceeded by less than that one sending, unless its estimate was too
low. To avoid starting samples that cannot be finished, a new sample begins only if the mean
cost of the finished ones still fits. A sample that has begun may finish, judges included, as
far as the limit allows. Stored responses need no reservation, and are used even after the limit
is reached.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from typing import NoReturn

from evalwright.core.errors import Failure, RequestFailed

SPENT = "budget spent"
"""The kind of failure of a request that was not sent for lack of budget. It is never recorded."""

FIRST_SAMPLES = 4
"""Number of samples of each model and task that are sent first, to learn what one costs."""

_FLOAT_TOLERANCE = 1 + 1e-9
"""Tolerance for rounding errors of float sums."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that may be spent of each kind; None for no limit."""

    requests: int | None = None
    tokens: int | None = None
    dollars: float | None = None

    def as_dict(self) -> dict[str, float]:
        """Return the limits that are set."""
        return {
            name: value
            for name in self.__slots__
            if (value := getattr(self, name)) is not None
        }


@dataclass(slots=True)
class Amount:
    """An amount of requests, tokens and dollars."""

    requests: float = 0.0
    tokens: float = 0.0
    dollars: float = 0.0

    def add(self, amount: Amount, times: float = 1.0) -> None:
        """Add an amount, or subtract it with times = -1."""
        self.requests += times * amount.requests
        self.tokens += times * amount.tokens
        self.dollars += times * amount.dollars

    def as_dict(self) -> dict[str, float]:
        """Return a plain mapping for JSON."""
        return {
            "requests": round(self.requests),
            "tokens": round(self.tokens),
            "dollars": round(self.dollars, 6),
        }


class Budget:
    """Limits, and what has been spent of them. Belongs to one event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._allowed: dict[str, float] = limits.as_dict()
        """The limits that apply to this process, which shares of a common budget can raise."""
        self.spent = Amount()
        self.estimated = Amount()
        """The part of the spending that was estimated, because no reply stated it."""
        self.reached = ""
        """The limit that ended the run; "" while none has."""
        self._held = Amount()
        self._holding = 0
        self._waiting: deque[tuple[Amount, asyncio.Future[str]]] = deque()
        self._ended = Amount()
        self._reservations_ended = 0
        self._open = Amount()
        self._reservations_open = 0
        self._round_size = 0.0
        self._noted = 0.0

    def next_round(self, lanes: int) -> float:
        """Return how many samples the next round should send, over all its `lanes` together.

        A lane is one model on one task; a round gives each of them a share. It has as many samples
        as can still be paid for; a few per lane while the cost of one is unknown; and four times as
        many as before after a round that was answered from the store for nothing.
        """
        free = self.spent.requests == self._noted
        self._noted = self.spent.requests
        if free and self._round_size:
            self._round_size *= 4
        elif not self._reservations_ended:
            self._round_size = float(FIRST_SAMPLES * lanes)
        else:
            left = [
                self._left(name) * self._reservations_ended / ended
                for name in self._allowed
                if (ended := getattr(self._ended, name)) > 0
            ]
            self._round_size = max(1.0, min(left, default=math.inf))
        return self._round_size

    def _left(self, name: str) -> float:
        """Return how much of a limit may still be spent."""
        spent: float = getattr(self.spent, name)
        return self._allowed[name] - spent

    async def may_begin(self, estimate: Amount) -> str:
        """Return the limit that forbids another sample with this estimate, or "" if it may begin.

        The estimate is that of the sample's first sending.
        """
        return self.missing()

    def reservation(self) -> Reservation:
        """Make a reservation for one sample; close it when the sample has its scores."""
        return Reservation(self)

    def as_dict(self) -> dict[str, object]:
        """Return a plain mapping for JSON."""
        return {
            "limits": self.limits.as_dict(),
            "spent": self.spent.as_dict(),
            "estimated": self.estimated.as_dict(),
            "reached": self.reached,
        }

    def missing(self) -> str:
        """Return the limit that one more sample would exceed; "" if there is none."""
        if self.reached:
            return self.reached
        for name, limit in self._allowed.items():
            ended = getattr(self._ended, name)
            spent = getattr(self._open, name)
            unknown = 1.0 if name == "requests" else 0.0
            mean = (
                ended / self._reservations_ended
                if self._reservations_ended
                else unknown
            )
            if (
                ended + max(spent, self._reservations_open * mean) + mean
                > limit * _FLOAT_TOLERANCE
            ):
                return name
            if ended + spent >= limit:
                return name
        return ""

    def begun(self) -> None:
        """Count a sample that has begun."""
        self._reservations_open += 1

    def ended(self, used: Amount) -> None:
        """Count a sample that has ended."""
        self._reservations_open -= 1
        self._reservations_ended += 1
        self._open.add(used, -1)
        self._ended.add(used)

    async def hold(self, estimate: Amount) -> str:
        """Reserve an amount for a sending, once there is room for it.

        Returns:
            The limit that forbids the sending; "" if none does.
        """
        if not self._waiting and self._room(estimate):
            self._reserve(estimate)
            return ""
        if full := self._full():
            return full
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((estimate, future))
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and not future.result():
                self.settle(estimate, None)
            raise

    def settle(
        self, estimate: Amount, amount: Amount | None, *, estimated: bool = False
    ) -> None:
        """End a sending for which `estimate` was reserved.

        Args:
            estimate: the reserved amount.
            amount: what it cost; None if it was not sent.
            estimated: whether the amount is an estimate.
        """
        self._held.add(estimate, -1)
        self._holding -= 1
        if amount is not None:
            self.spent.add(amount)
            self._open.add(amount)
            if estimated:
                self.estimated.add(amount)
        full = self._full()
        while self._waiting and (
            full or self._waiting[0][1].done() or self._room(self._waiting[0][0])
        ):
            waiting, future = self._waiting.popleft()
            if not future.done():
                future.set_result(full)
                if not full:
                    self._reserve(waiting)

    def _reserve(self, estimate: Amount) -> None:
        self._held.add(estimate)
        self._holding += 1

    def _room(self, estimate: Amount) -> bool:
        if not self._holding:
            return not self._full()
        return not self._lacking(estimate)

    def _lacking(self, estimate: Amount) -> list[str]:
        """Return the limits that have no room for an amount beside what is spent and reserved."""
        return [
            name
            for name, limit in self._allowed.items()
            if getattr(self.spent, name)
            + getattr(self._held, name)
            + getattr(estimate, name)
            > limit * _FLOAT_TOLERANCE
        ]

    def _full(self) -> str:
        limits = self._allowed.items()
        return next(
            (
                name
                for name, limit in limits
                if getattr(self.spent, name) * _FLOAT_TOLERANCE >= limit
            ),
            "",
        )


class Reservation:
    """One sample's right to send requests; `refused` is set once the spent budget denied it."""

    __slots__ = ("_begun", "_budget", "_used", "refused")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._used = Amount()
        self._begun = False
        self.refused = False

    async def hold(self, estimate: Amount) -> None:
        """Reserve an amount for a request that is about to be sent.

        Raises:
            RequestFailed: the budget does not allow the request, or another sample.
        """
        if not self._begun:
            if missing := await self._budget.may_begin(estimate):
                self._refuse(missing)
            self._begun = True
            self._budget.begun()
        if missing := await self._budget.hold(estimate):
            self._refuse(missing)

    @property
    def is_spent(self) -> bool:
        """Whether this sample may no longer begin."""
        return bool(self._budget.reached) and not self._begun

    def refuse_if_spent(self) -> None:
        """Raise RequestFailed if this sample may no longer begin.

        Called before any work on sending a request.
        """
        if self.is_spent:
            self._refuse(self._budget.reached)

    def _refuse(self, limit: str) -> NoReturn:
        self._budget.reached = limit
        self.refused = True
        raise RequestFailed(
            Failure(
                SPENT,
                "configuration",
                f"The budget of {limit} is spent.",
                True,
                attempts=0,
            )
        )

    def settle(
        self, estimate: Amount, amount: Amount | None, *, estimated: bool = False
    ) -> None:
        """See `Budget.settle`."""
        self._budget.settle(estimate, amount, estimated=estimated)
        if amount is not None:
            self._used.add(amount)

    def close(self) -> None:
        """End the sample; one that never reserved anything does not count towards the mean cost."""
        if self._begun:
            self._begun = False
            self._budget.ended(self._used)
