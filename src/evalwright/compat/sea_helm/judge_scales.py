"""What the verdicts of judged tasks are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelScale:
    """Labels of scores from 0 to 1, the worst first.

    Args:
        labels: all of them.
        label_of: that of a score.
    """

    labels: tuple[str, ...]
    label_of: Callable[[float], str]


PASS_OR_FAIL = LabelScale(
    ("fail", "pass"), lambda value: "pass" if value >= 0.5 else "fail"
)
RIGHT_OR_WRONG = LabelScale(
    ("incorrect", "correct"), lambda value: "correct" if value > 0.5 else "incorrect"
)
PAIRS = LabelScale(
    ("loss", "tie", "win"),
    lambda value: "win" if value > 0.5 else "loss" if value < 0.5 else "tie",
)
SEVERITY: Mapping[str, float] = {
    "generic": 1.0,
    "low": 1.0,
    "medium": 5.0,
    "high": 10.0,
}
"""Weights of criteria."""
SAME = "same verdict"
FIRST = "answer_first"
SECOND = "answer_second"
"""Parts of a score of pairs: how often both orders agree, and the share won in each."""
