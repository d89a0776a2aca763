"""What a door has counted: how many requests were sent, answered from the store, joined or failed,
and what they cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evalwright.core.plain import plain_fields
from evalwright.core.responses import Usage


@dataclass(slots=True)
class Estimated:
    """What is paid for sendings whose bill is not known: no more than this, as far as can be told."""

    sendings: int = 0
    tokens: int = 0
    dollars: float = 0.0


@dataclass(slots=True)
class Counts:
    """Every request ends in exactly one of `asked`, `stored`, `joined` or `failed`, so `requested`
    is their sum at the end.

    asked: sent to a model and answered, be it with what is no answer (`outcomes.is_models_own`).
    sent: sent to a model, whatever came of it. stored: answered from the store, which remembers
    also to what there was no answer. joined: answered by an identical request that was in flight,
    here or in another process. retries: sendings after a request's first. usage and cost (US
    dollars, None where no price is known): of every sending from here, useless ones included, so
    what this run paid. estimated: the part of them that no reply said (`engine.ledger`). damaged:
    stored responses that could not be read, and were requested again. failures: how many of each
    kind.
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
    estimated: Estimated = field(default_factory=Estimated)
    damaged: int = 0
    failures: dict[str, int] = field(default_factory=dict)

    def add_bill(
        self, usage: Usage, dollars: float | None, *, estimated: bool = False
    ) -> None:
        """A sending has ended and is billed so, whatever became of it."""
        self.usage = self.usage + usage
        if dollars is not None:
            self.cost = (self.cost or 0.0) + dollars
        if estimated:
            self.estimated.sendings += 1
            self.estimated.tokens += usage.input_tokens + usage.output_tokens
            self.estimated.dollars += dollars or 0.0

    def add_failure(self, kind: str) -> None:
        """One more request failed for good."""
        self.failed += 1
        self.failures[kind] = self.failures.get(kind, 0) + 1

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        # A sum of floats, without the noise of adding them: prices end long before.
        return {
            **plain_fields(self),
            "cost": None if self.cost is None else round(self.cost, 12),
        }
