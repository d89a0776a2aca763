"""The labels of judged tasks."""

from __future__ import annotations

from evalwright.scorers.judge.opinions import Scale, pass_or_fail
from evalwright.scorers.judge.pair import LABELS

PASS_OR_FAIL = pass_or_fail(0.5)
RIGHT_OR_WRONG = Scale(
    ("incorrect", "correct"), lambda value: "correct" if value > 0.5 else "incorrect"
)
PAIRS = Scale(
    LABELS, lambda value: "win" if value > 0.5 else "loss" if value < 0.5 else "tie"
)
