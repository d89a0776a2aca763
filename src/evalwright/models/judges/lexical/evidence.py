"""What speaks against a sentence, given a premise: pieces of evidence, each with its kind, its strength and its words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evalwright.models.judges.lexical.clauses import Clause, Reading


@dataclass(frozen=True, slots=True)
class Evidence:
    """kind: one of `kinds.KINDS`. strength: 0 to 1. said: words of the hypothesis. source: words of the premise, or ""."""

    kind: str
    strength: float
    said: str
    source: str

    def __str__(self) -> str:
        beside = f"; the source: {self.source!r}" if self.source else ""
        return f"{self.kind} ({self.strength:.2f}): {self.said!r}{beside}"


Finder = Callable[[Reading], Iterator[Evidence]]


def words(clause: Clause) -> str:
    """A clause as it may be shown."""
    return " ".join(token.text for token in clause.tokens)


def about(clause: Clause) -> float:
    """0 where the premise's sentence has a third of the clause's words or less, 1 where it has all.

    What is not about the same thing cannot contradict it.
    """
    return max(0.0, 1.5 * clause.best_recall - 0.5)


def beside(reading: Reading, clause: Clause) -> str:
    """The sentence of the premise that is nearest to a clause."""
    return reading.premise.texts[clause.aligned[0]]
