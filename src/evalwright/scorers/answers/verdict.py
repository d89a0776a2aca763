"""A verdict on an answer: the label, the reason, and what a careful reader might argue."""

from __future__ import annotations

from typing import Literal, NamedTuple

from evalwright.core.samples import Score

Label = Literal["correct", "incorrect", "not_attempted", "unreadable"]


def shortened(text: str, most: int = 60) -> str:
    """Shorten a text to one line of at most `most` characters, for an explanation."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


class Verdict(NamedTuple):
    """A rule's verdict on an answer.

    Args:
        label: "correct", "incorrect", "not_attempted" or "unreadable".
        why: the words and the rule that led to it.
        unsure: why a careful reader might argue with it; "" if none would.
    """

    label: Label
    why: str
    unsure: str = ""

    def outcome(self) -> Score:
        """Return the score: 1.0 if correct, else 0.0, with label and reasons."""
        value = 1.0 if self.label == "correct" else 0.0
        return Score(value, self.label, self.why, unsure=self.unsure)


def correct(why: str, unsure: str = "") -> Verdict:
    """Make the verdict that the answer is right."""
    return Verdict("correct", why, unsure)


def incorrect(why: str, unsure: str = "") -> Verdict:
    """Make the verdict that the answer is wrong."""
    return Verdict("incorrect", why, unsure)


def not_attempted(why: str, unsure: str = "") -> Verdict:
    """Make the verdict that the reply does not answer."""
    return Verdict("not_attempted", why, unsure)


def unreadable(why: str, unsure: str = "") -> Verdict:
    """Make the verdict that the reply has nothing of the wanted kind, which counts as wrong."""
    return Verdict("unreadable", why, unsure)
