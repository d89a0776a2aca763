"""What each sending is billed, and where the bill is counted.

It is counted three times: in the client's counts, in the sample's reservation, and in the
ledger of the store.

- a reply whose usage could be read, be it an answer or not: what it states
- an answer that states only one of input and output tokens: the other is estimated from its size
- it timed out, broke after it was sent or in its stream, came back unreadable, or was stopped;
  status 408, 424, 502, 504, 520, 524: the estimate
- a prompt that the provider's filter stopped: the prompt's part of the estimate
- no connection; 429, 400, 401, 403, 404, 422; 500, 503, 529 and other server errors: nothing:
  providers bill none of these

Each counts as one request for a budget, whatever came of it, unless no connection was made.

The estimate is one token for every three bytes of the request, plus the most tokens that the
answer may have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from evalwright.core.errors import EvalwrightError, Failure, RequestError
from evalwright.core.requests import Generate, Request
from evalwright.core.responses import Response, Usage
from evalwright.engine.budget import Amount, Reservation
from evalwright.engine.counts import Counts
from evalwright.engine.store_rows import BillKey
from evalwright.models.model_interface import Model, RemoteModel

BYTES_PER_TOKEN = 3
"""Bytes of a request's JSON per token. English has more, Korean and code about as many."""

UNLIMITED_ANSWER_TOKENS = 4096
"""Most tokens that an answer without a limit is assumed to have."""


_NO_USAGE = Usage()


class Bill(NamedTuple):
    """The bill of one sending.

    Attributes:
        outcome: "answered" or the kind of the error.
        usage: tokens.
        dollars: US dollars; None if no price is known.
        estimated: whether this is an estimate.
        sent: whether the request left this machine.
    """

    outcome: str
    usage: Usage = _NO_USAGE
    dollars: float | None = None
    estimated: bool = False
    sent: bool = True

    @property
    def amount(self) -> Amount:
        """The bill as an amount of a budget."""
        tokens = self.usage.input_tokens + self.usage.output_tokens
        return Amount(float(self.sent), tokens, self.dollars or 0.0)


@dataclass(slots=True)
class Account:
    """The sendings of one request to one model, and what they cost.

    `size` is the size of the request's payload in bytes.
    """

    model: Model
    request: Request
    size: int
    counts: Counts
    ledger: Callable[[BillKey, Usage, float | None], None]
    reservation: Reservation | None = None
    usage: Usage = _NO_USAGE
    dollars: float | None = None
    reserved: Amount | None = None

    async def reserve(self) -> None:
        """Reserve the most that a sending may cost, waiting for room.

        Raises:
            RequestFailed: the budget does not allow it.
        """
        if self.reservation is not None:
            estimate = self._estimate("").amount
            await self.reservation.hold(estimate)
            self.reserved = estimate

    def release(self) -> None:
        """Release a reservation that was not used. Harmless after `settle`."""
        if self.reservation is not None and self.reserved is not None:
            self.reservation.settle(self.reserved, None)
            self.reserved = None

    def settle(self, outcome: Response | BaseException) -> None:
        """Bill a sending that has ended, whatever came of it."""
        bill = self._bill(outcome)
        self.counts.add_bill(bill.usage, bill.dollars, estimated=bill.estimated)
        if self.reservation is not None and self.reserved is not None:
            self.reservation.settle(
                self.reserved, bill.amount, estimated=bill.estimated
            )
            self.reserved = None
        self.ledger(
            (self.model.name, bill.outcome, bill.estimated), bill.usage, bill.dollars
        )
        if bill.outcome != "answered":
            self.usage = self.usage + bill.usage
            if bill.dollars is not None:
                self.dollars = (self.dollars or 0.0) + bill.dollars

    def failed(self, failure: Failure) -> Failure:
        """Add the cost of the sendings so far to a failure."""
        used = self.usage.as_dict() or None
        return (
            replace(failure, usage=used, cost=self.dollars)
            if used or self.dollars
            else failure
        )

    def _bill(self, outcome: Response | BaseException) -> Bill:
        if isinstance(outcome, Response):
            usage = outcome.usage
            cost = outcome.cost
            if (
                cost is not None
                and self.model.price is None
                and isinstance(self.model, RemoteModel)
            ):
                self.model.dearest = max(cost, self.model.dearest or 0.0)
            if outcome.counted:
                return Bill(
                    "answered", usage, self._dollars(usage) if cost is None else cost
                )
            size = len((outcome.text + outcome.reasoning).encode(errors="replace"))
            guess = self._estimate("answered", -(-size // BYTES_PER_TOKEN)).usage
            usage = replace(
                usage,
                input_tokens=usage.input_tokens or guess.input_tokens,
                output_tokens=usage.output_tokens or guess.output_tokens,
            )
            return Bill(
                "answered",
                usage,
                self._dollars(usage) if cost is None else cost,
                estimated=True,
            )
        if isinstance(outcome, RequestError):
            if outcome.usage is not None:
                cost = outcome.cost
                return Bill(
                    outcome.kind,
                    outcome.usage,
                    self._dollars(outcome.usage) if cost is None else cost,
                )
            if outcome.taken:
                return self._estimate(outcome.kind, 0 if outcome.prompt_only else None)
            return Bill(outcome.kind, sent=outcome.status is not None)
        if not isinstance(self.model, RemoteModel) or isinstance(
            outcome, EvalwrightError
        ):
            return Bill("failed", sent=not isinstance(self.model, RemoteModel))
        # It was cancelled while it was in flight.
        return (
            Bill("stopped", sent=False)
            if self.model.resumes
            else self._estimate("stopped")
        )

    def _estimate(self, outcome: str, written: int | None = None) -> Bill:
        """Return the most that a sending may cost; `written` is the answer's tokens, if known."""
        if written is None and isinstance(self.model, RemoteModel):
            written = self.model.most_tokens(self.request)
        elif written is None:
            written = (
                self.request.max_tokens if isinstance(self.request, Generate) else 0
            )
        usage = Usage(
            self.size // BYTES_PER_TOKEN + 1,
            UNLIMITED_ANSWER_TOKENS if written is None else written,
        )
        return Bill(outcome, usage, self._dollars(usage), estimated=True)

    def _dollars(self, usage: Usage) -> float | None:
        model = self.model
        price = self.model.price
        if price is None:
            return model.dearest if isinstance(model, RemoteModel) else None
        batched = isinstance(model, RemoteModel) and model.batched
        # Without a price for batches, the price of a single request is an upper bound.
        cost = price.cost(usage, batched=batched)
        return price.cost(usage) if cost is None else cost
