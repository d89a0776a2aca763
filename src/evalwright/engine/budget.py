"""What one command may spend: requests, tokens, dollars, over all its models and roles.

A sample makes a `Reservation` with its first request that has to be sent; from then on it may finish, judges included. Answers
from the store need no reservation, and nothing is sent for a sample that gets none. What samples in flight will still use is
reckoned as the mean of those that ended, so that a thousand requests are a thousand and not a thousand and what is in
flight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.responses import Response, Usage
from evalwright.models.base import Model
from evalwright.models.remote.prices import Price

SPENT = "budget spent"
"""The kind of failure of a request that was not sent for lack of budget. There is no response to it, and it is never recorded."""

FIRST_SAMPLES = 4
"""How many samples of each model and task are asked first, to learn what one costs."""

_BYTES_PER_TOKEN = 4
"""For a provider that counts no tokens."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that may be spent of each; None for no limit."""

    requests: int | None = None
    tokens: int | None = None
    dollars: float | None = None

    def as_dict(self) -> dict[str, float]:
        """The limits that there are."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}


@dataclass(slots=True)
class Amount:
    """A sum of what was spent."""

    requests: float = 0.0
    tokens: float = 0.0
    dollars: float = 0.0

    def add(self, other: Amount, times: float = 1.0) -> None:
        """Add another sum, or subtract it with times = -1."""
        self.requests += times * other.requests
        self.tokens += times * other.tokens
        self.dollars += times * other.dollars

    def as_dict(self) -> dict[str, float]:
        """A plain mapping for JSON."""
        return {
            "requests": round(self.requests),
            "tokens": round(self.tokens),
            "dollars": round(self.dollars, 6),
        }


class Budget:
    """The limits and what is left of them. prices: by `id(model)`; a model without one costs tokens only."""

    def __init__(self, limits: Limits, prices: Mapping[int, Price]) -> None:
        self.limits = limits
        self.prices = prices
        self.spent = Amount()
        self.reached = ""
        """The limit that ended the run, "" before."""
        self._ended = Amount()
        self._reservations_ended = 0
        self._open = Amount()
        self._reservations_open = 0
        self._wanted = 0.0
        self._noted = 0.0

    def next_round(self, lanes: int) -> float:
        """How many samples the next round should want, in all its `lanes`, so that each gets its share.

        What can still be paid for; a few samples of each lane while the cost of one is unknown; and four times as many as
        before after a round that the store answered for nothing.
        """
        free = self.spent.requests == self._noted
        self._noted = self.spent.requests
        if free and self._wanted:
            self._wanted *= 4
        elif not self._reservations_ended:
            self._wanted = float(FIRST_SAMPLES * lanes)
        else:
            left = [
                (limit - getattr(self.spent, name)) * self._reservations_ended / ended
                for name, limit in self.limits.as_dict().items()
                if (ended := getattr(self._ended, name)) > 0
            ]
            self._wanted = max(1.0, min(left, default=math.inf))
        return self._wanted

    def reservation(self) -> Reservation:
        """For one sample; close it when the sample has its scores."""
        return Reservation(self)

    def as_dict(self) -> dict[str, object]:
        """A plain mapping for JSON."""
        return {"limits": self.limits.as_dict(), "spent": self.spent.as_dict(), "reached": self.reached}

    def _missing(self) -> str:
        """The limit that one more sample would pass; "" where there is none."""
        if self.reached:
            return self.reached
        for name, limit in self.limits.as_dict().items():
            ended, spent = getattr(self._ended, name), getattr(self._open, name)
            unknown = 1.0 if name == "requests" else 0.0
            mean = ended / self._reservations_ended if self._reservations_ended else unknown
            if ended + max(spent, self._reservations_open * mean) + mean > limit * (1 + 1e-9):
                return name
            if ended + spent >= limit:
                return name
        return ""


class Reservation:
    """One sample's right to send requests. refused: it wanted to, and the budget was spent."""

    __slots__ = ("_budget", "_made", "_used", "refused")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._used = Amount()
        self._made = False
        self.refused = False

    def send(self) -> None:
        """A request is about to be sent. Raises RequestFailed where the budget does not allow for another sample."""
        budget = self._budget
        if not self._made:
            missing = budget._missing()
            if missing:
                budget.reached = missing
                self.refused = True
                raise RequestFailed(
                    Failure(SPENT, "configuration", f"The budget of {missing} is spent.", True, attempts=0)
                )
            self._made = True
            budget._reservations_open += 1
        self._add(Amount(requests=1))

    def paid(self, model: Model, size: int, response: Response) -> None:
        """An answer came to a request of `size` bytes."""
        into, out = response.usage.input_tokens, response.usage.output_tokens
        if not into and not out:
            into, out = (
                size // _BYTES_PER_TOKEN,
                len(response.text.encode(errors="replace")) // _BYTES_PER_TOKEN,
            )
        dollars = response.cost
        if dollars is None:
            price = self._budget.prices.get(id(model))
            dollars = (price.cost(Usage(into, out)) if price else None) or 0.0
        self._add(Amount(tokens=into + out, dollars=dollars))

    def close(self) -> None:
        """The sample has ended. What was used without a reservation (nothing) counts for no mean."""
        if self._made:
            self._made = False
            budget = self._budget
            budget._reservations_open -= 1
            budget._reservations_ended += 1
            budget._open.add(self._used, -1)
            budget._ended.add(self._used)

    def _add(self, amount: Amount) -> None:
        self._used.add(amount)
        self._budget._open.add(amount)
        self._budget.spent.add(amount)
