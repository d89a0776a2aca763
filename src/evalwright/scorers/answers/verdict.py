"""What a rule reads in an answer: the label, why, and what a careful reader might argue."""

from __future__ import annotations

from typing import Literal, NamedTuple

from evalwright.core.samples import Score

Label = Literal["correct", "incorrect", "not_attempted", "unreadable"]


def shortened(text: str, most: int = 60) -> str:
    """A text as an explanation shows it: in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


class Verdict(NamedTuple):
    """The best reading of an answer, the words and rule that led to it, and why a careful reader
    might argue with it ("" if none would).
    """

    label: Label
    why: str
    unsure: str = ""

    def outcome(self) -> Score:
        """1.0 for correct, else 0.0, with the label, the reason and the doubt."""
        value = 1.0 if self.label == "correct" else 0.0
        return Score(value, self.label, self.why, unsure=self.unsure)


def correct(why: str, unsure: str = "") -> Verdict:
    """A right answer."""
    return Verdict("correct", why, unsure)


def incorrect(why: str, unsure: str = "") -> Verdict:
    """A wrong answer."""
    return Verdict("incorrect", why, unsure)


def not_attempted(why: str, unsure: str = "") -> Verdict:
    """No answer was given."""
    return Verdict("not_attempted", why, unsure)


def unreadable(why: str, unsure: str = "") -> Verdict:
    """Nothing can be read that could be what was asked for, which is wrong."""
    return Verdict("unreadable", why, unsure)
