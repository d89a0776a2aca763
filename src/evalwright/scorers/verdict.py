"""What a deterministic rule decided, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

from evalwright.core.samples import Score
from evalwright.scorers.text.tokens import Quote

Label = Literal["correct", "incorrect", "not_attempted"]


class Verdict(NamedTuple):
    """An outcome, the words and rule that led to it, and the characters of the plain answer where those words stand."""

    label: Label
    why: str
    span: tuple[int, int] = (0, 0)

    def score(self) -> Score:
        """1.0 for correct, else 0.0, with the label and the reason."""
        return Score(1.0 if self.label == "correct" else 0.0, self.label, self.why)

    def score_at(self, start: int, end: int) -> Score:
        """The same with the evidence's place in the answer as the parts `evidence_start` and `evidence_end`."""
        score = self.score()
        if end <= start:
            return score
        return replace(score, parts={"evidence_start": float(start), "evidence_end": float(end)})


def correct(why: str, evidence: str = "") -> Verdict:
    """A right answer. evidence: the quotation that decided, which knows its place (`Words.quote`)."""
    return Verdict("correct", why, _span(evidence))


def incorrect(why: str, evidence: str = "") -> Verdict:
    """A wrong answer."""
    return Verdict("incorrect", why, _span(evidence))


def not_attempted(why: str, evidence: str = "") -> Verdict:
    """No answer was given."""
    return Verdict("not_attempted", why, _span(evidence))


def _span(evidence: str) -> tuple[int, int]:
    return evidence.span if isinstance(evidence, Quote) else (0, 0)
