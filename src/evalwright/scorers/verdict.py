"""What a deterministic rule decided, and why."""

from __future__ import annotations

from typing import Literal, NamedTuple

from evalwright.core.samples import Score, Undecided

Label = Literal["correct", "incorrect", "not_attempted", "undecided"]


def shortened(text: str, most: int = 60) -> str:
    """A text as an explanation shows it: in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


class Verdict(NamedTuple):
    """An outcome and the words and rule that led to it."""

    label: Label
    why: str

    def outcome(self) -> Score | Undecided:
        """1.0 for correct, else 0.0, with the label and the reason; Undecided where no rule is certain."""
        if self.label == "undecided":
            return Undecided(self.why)
        return Score(1.0 if self.label == "correct" else 0.0, self.label, self.why)


def correct(why: str) -> Verdict:
    """A right answer."""
    return Verdict("correct", why)


def incorrect(why: str) -> Verdict:
    """A wrong answer."""
    return Verdict("incorrect", why)


def not_attempted(why: str) -> Verdict:
    """No answer was given."""
    return Verdict("not_attempted", why)


def undecided(why: str) -> Verdict:
    """A reader might argue."""
    return Verdict("undecided", why)
