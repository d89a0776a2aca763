"""Helpers of the scorer tests: one score from a target and a reply, and tables of cases with their reasons."""

from __future__ import annotations

from typing import Any

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.short_answer import short_answer

CORRECT, INCORRECT, NOT_ATTEMPTED = "correct", "incorrect", "not_attempted"

Row = tuple[str | tuple[str, ...], str, str, str]
"""Targets, a reply, what a careful reader would say of it, and why."""


def score(targets: str | tuple[str, ...], reply: str, question: str = "", **metadata: Any) -> Score:
    """The short-answer score of a reply."""
    found = (targets,) if isinstance(targets, str) else targets
    return short_answer(Sample("s", question, found, metadata=metadata), Answer(reply))


def check(row: Row, question: str = "", **metadata: Any) -> None:
    """Fail with the scorer's own explanation where it disagrees with a row."""
    targets, reply, label, reason = row
    found = score(targets, reply, question, **metadata)
    assert found.label == label, f"{reason}; but the scorer says: {found.explanation}"
    assert found.value == (1.0 if label == CORRECT else 0.0)
    assert found.explanation, "every verdict is explained"
