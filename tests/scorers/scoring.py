"""Helpers of the scorer tests: what the short-answer scorer says of a reply, in a word."""

from __future__ import annotations

from typing import Any

from evalwright.core.samples import UNDECIDED, Answer, Sample, Undecided
from evalwright.scorers.short_answer import short_answer

CORRECT, INCORRECT, NOT_ATTEMPTED = "correct", "incorrect", "not_attempted"


def label_of(targets: str | tuple[str, ...], reply: str, question: str = "", **metadata: Any) -> str:
    """The label of a reply, "undecided" among them; the value agrees with it, and there is a reason."""
    found = (targets,) if isinstance(targets, str) else targets
    made = short_answer(Sample("s", question, found, metadata=metadata), Answer(reply))
    assert made.explanation
    if isinstance(made, Undecided):
        return UNDECIDED
    assert made.value == float(made.label == CORRECT)
    return made.label
