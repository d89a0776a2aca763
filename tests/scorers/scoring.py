"""Helpers of the scorer tests: one score from a target and an answer, and tables of cases with their reasons."""

from __future__ import annotations

from typing import Any, NamedTuple

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.short_answer import short_answer

CORRECT, INCORRECT, NOT_ATTEMPTED = "correct", "incorrect", "not_attempted"


class Case(NamedTuple):
    """A reply and what a careful reader would say of it, and why."""

    targets: str | tuple[str, ...]
    reply: str
    label: str
    reason: str


def score(targets: str | tuple[str, ...], reply: str, question: str = "", **metadata: Any) -> Score:
    """The short-answer score of a reply."""
    found = (targets,) if isinstance(targets, str) else targets
    return short_answer(Sample("s", question, found, metadata=metadata), Answer(reply))


def mistakes(table: list[tuple[str | tuple[str, ...], str, str, str]], question: str = "", **metadata: Any) -> list[str]:
    """What the scorer says differently from a table of (targets, reply, label, reason); empty where all is well."""
    out = []
    for targets, reply, label, reason in table:
        found = score(targets, reply, question, **metadata)
        if found.label != label or found.value != (label == CORRECT) or not found.explanation:
            out.append(f"{targets} in {reply!r} should be {label} ({reason}), is {found.label}: {found.explanation}")
    return out
