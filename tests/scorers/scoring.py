"""Helpers of the scorer tests: what the short-answer scorer says of a reply, in a word."""

from __future__ import annotations

from typing import Any

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.short_answer import short_answer

CORRECT = "correct"
INCORRECT = "incorrect"
NOT_ATTEMPTED = "not_attempted"
UNREADABLE = "unreadable"
UNSURE_CORRECT = "correct?"
UNSURE_INCORRECT = "incorrect?"


def score_of(
    targets: str | tuple[str, ...], reply: str, question: str = "", **metadata: Any
) -> Score:
    """The score of a reply; the value agrees with its label, and there is a reason."""
    targets = (targets,) if isinstance(targets, str) else targets
    score = short_answer(
        Sample("s", question, targets, metadata=metadata), Answer(reply)
    )
    assert score.explanation
    assert score.value == float(score.label == CORRECT)
    return score


def label_of(
    targets: str | tuple[str, ...], reply: str, question: str = "", **metadata: Any
) -> str:
    """The label of a reply, sure or not."""
    return score_of(targets, reply, question, **metadata).label


def reading_of(
    targets: str | tuple[str, ...], reply: str, question: str = "", **metadata: Any
) -> str:
    """The label of a reply, with a question mark where the scorer is unsure."""
    score = score_of(targets, reply, question, **metadata)
    return f"{score.label}?" if score.unsure else score.label
