"""Counts of a client's requests (sent, answered from the store, joined, failed) and their cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evalwright.core.plain import plain_fields
from evalwright.core.responses import Usage


@dataclass(slots=True)
class EstimatedCosts:
    """The part of the cost that no reply stated; an upper bound as far as one can tell."""

    sendings: int = 0
    tokens: int = 0
    dollars: float = 0.0


@dataclass(slots=True)
class Counts:
    """Counts of requests; each ends in exactly one of `asked`, `stored`, `joined` or `failed`.

    Attributes:
        requested: their sum at the end.
        asked: sent to a model that replied, even if the reply is no answer
            (`outcomes.is_models_own`).
        sent: sent to a model, whatever came of it.
        stored: answered from the store, which also remembers requests without an answer.
        joined: answered by an identical request in flight, here or in another process.
        failed: failed for good.
        retries: sendings after a request's first.
        usage: tokens of every sending of this run, useless ones included.
        cost: US dollars of every sending of this run; None if no price is known.
        estimated: the part of usage and cost that no reply stated (`engine.ledger`).
        damaged: stored responses that could not be read, and were requested again.
        failures: number of failures by kind.
    """

    requested: int = 0
    asked: int = 0
    sent: int = 0
    stored: int = 0
    joined: int = 0
    failed: int = 0
    retries: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    estimated: EstimatedCosts = field(default_factory=EstimatedCosts)
    damaged: int = 0
    failures: dict[str, int] = field(default_factory=dict)

    def add_bill(
        self, usage: Usage, dollars: float | None, *, estimated: bool = False
    ) -> None:
        """Count the bill of a sending that has ended, whatever became of it."""
        self.usage = self.usage + usage
        if dollars is not None:
            self.cost = (self.cost or 0.0) + dollars
        if estimated:
            self.estimated.sendings += 1
            self.estimated.tokens += usage.input_tokens + usage.output_tokens
            self.estimated.dollars += dollars or 0.0

    def add_failure(self, kind: str) -> None:
        """Count a request that failed for good."""
        self.failed += 1
        self.failures[kind] = self.failures.get(kind, 0) + 1

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        # Prices have fewer digits than this, so rounding only removes the noise of adding floats.
        return {
            **plain_fields(self),
            "cost": None if self.cost is None else round(self.cost, 12),
        }
