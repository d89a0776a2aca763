"""The shape of the tables of cases: a stress question, an answer, and the class that a careful reader gives it."""

from __future__ import annotations

from typing import NamedTuple

from evalwright.core.samples import Answer, Sample
from evalwright.scorers.stress.rules import (
    ACCEPTED,
    CORRECTION,
    EMPTY,
    FABRICATED,
    PARTIAL,
    REFUSAL,
    Ruling,
    judge_by_rules,
    question_of,
)


class Stress(NamedTuple):
    """A question with what its metadata say."""

    question: str
    premise: str
    corrections: tuple[str, ...] = ()
    fabrications: tuple[str, ...] = ()

    def sample(self, language: str = "en") -> Sample:
        """As a task makes it."""
        metadata = {
            "premise": self.premise,
            "corrections": list(self.corrections),
            "fabrications": list(self.fabrications),
            "language": language,
        }
        return Sample("s", self.question, ("No answer",), metadata=metadata)


Case = tuple[Stress, str, str]
"""The question, an answer, its class."""


def ruling(stress: Stress, reply: str, language: str = "en") -> Ruling:
    """What the rules say."""
    sample = stress.sample(language)
    return judge_by_rules(question_of(sample.input, sample.targets, sample.metadata), Answer(reply).text)


__all__ = [
    "ACCEPTED",
    "CORRECTION",
    "EMPTY",
    "FABRICATED",
    "PARTIAL",
    "REFUSAL",
    "Case",
    "Stress",
    "ruling",
]
