"""The outcome of one of the doctor's checks, and the report of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evalwright._version import __version__
from evalwright.core.plain import Plain
from evalwright.core.secrets import mask
from evalwright.runs.environment import environment

Part = Literal["here", "provider", "hub", "device"]
Outcome = Literal["works", "look", "fails", "skipped"]
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Check(Plain):
    """One check.

    Attributes:
        subject: what was checked, such as a model's name or a device.
        name: which of its aspects.
        outcome: "look" if it works, but the user should know something.
        why: the reason, in a sentence.
        seconds: how long the check took.
        facts: figures, for the file.
    """

    part: Part
    subject: str
    name: str
    outcome: Outcome
    why: str = ""
    seconds: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report(Plain):
    """What `doctor` checked, and what that cost.

    Attributes:
        started: when the checks began, in UTC.
        checks: the checks, in the order in which they were made.
        ceiling: the most that may be spent, in dollars, requests and tokens; {} if nothing was to
            be sent.
        spent: what was spent, likewise.
    """

    started: str
    checks: Sequence[Check]
    ceiling: Mapping[str, float] = field(default_factory=dict)
    spent: Mapping[str, float] = field(default_factory=dict)

    @property
    def has_failures(self) -> bool:
        """Return whether something does not work."""
        return any(check.outcome == "fails" for check in self.checks)

    def counts(self) -> dict[str, int]:
        """Count the checks by outcome."""
        counter = Counter(check.outcome for check in self.checks)
        return {
            outcome: counter[outcome]
            for outcome in ("works", "look", "fails", "skipped")
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the report for a file, with versions and platform, and without known secrets."""
        plain = {
            "schema": SCHEMA_VERSION,
            "evalwright": __version__,
            "environment": environment(),
            "counts": self.counts(),
            **Plain.as_dict(self),
        }
        masked: dict[str, Any] = _masked(plain)
        return masked


def _masked(fact: Any) -> Any:
    if isinstance(fact, str):
        return mask(fact)
    if isinstance(fact, dict):
        return {name: _masked(inner) for name, inner in fact.items()}
    return [_masked(inner) for inner in fact] if isinstance(fact, list) else fact
