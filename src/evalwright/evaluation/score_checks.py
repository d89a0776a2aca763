"""Checks a scorer's score: finite numbers, in the range that the metrics over them assume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Score, plain_number, score_from
from evalwright.scorers.registry import MAX_SCORE

_ROUNDING = 1e-9
"""How far outside of its range rounding may put a value; it is then set to the end of the range."""


MAX_UNSURE_CHARS = 2_000
"""Most characters of the reason why a score is unsure.

It is repeated in every line of samples, and nobody reads more.
"""


def checked_score(
    score: object, scorer: str, sample_id: str, bounded: Sequence[str] = ()
) -> Score:
    """Return what a scorer gave for an item as a Score of finite numbers.

    A bare number becomes a Score; True and False become 1 and 0. `bounded` are metrics that assume
    scores from 0 to 1; one for which there is a part of its own name is not about the value.

    Raises:
        ScoringError: the value cannot be made a Score.
    """
    if not isinstance(score, Score):
        score = score_from(score)
    who = f"The scorer '{scorer}' on the item '{sample_id}'"
    if not isinstance(score, Score):
        hint = (
            " A scorer that has nothing to say of an answer gives NoScore()."
            if score is None
            else ""
        )
        raise ScoringError(
            f"{who} must give a Score, a number, True or False, not"
            f" {type(score).__name__}.{hint}"
        )
    if not (isinstance(score.label, str) and isinstance(score.explanation, str)):
        raise ScoringError(f"{who}: the score's label and explanation must be text.")
    if not isinstance(score.unsure, str):
        raise ScoringError(
            f"{who}: 'unsure' of the score must be text, not"
            f" {type(score.unsure).__name__}."
        )
    if len(score.unsure) > MAX_UNSURE_CHARS:
        score = replace(score, unsure=f"{score.unsure[: MAX_UNSURE_CHARS - 1]}…")
    score = _with_plain_numbers(score)
    for name, number in (("value", score.value), *score.parts.items()):
        if not isinstance(number, (int, float)) or not abs(number) <= MAX_SCORE:
            raise ScoringError(
                f"{who}: the score's {name} must be a finite number up to"
                f" {MAX_SCORE:g}, not {number!r}."
            )
    score_value = score.value
    metric = next((label for label in bounded if label not in score.parts), "")
    if metric and not -_ROUNDING <= score_value <= 1 + _ROUNDING:
        raise ScoringError(
            f"{who} gave {score_value:g}, and the metric '{metric}' is of scores from 0 to 1."
            " Divide them by their greatest value, or use a metric without a range,"
            " such as 'mean'."
        )
    score_value = min(max(score_value, 0.0), 1.0) if metric else score_value
    return score if score_value is score.value else replace(score, value=score_value)


def _with_plain_numbers(score: Score) -> Score:
    """Return the score for the record: numpy's numbers as Python's, truth values as 1 and 0."""
    if not score.parts and type(score.value) is float:
        return score  # as nearly all are
    numbers = [score.value, *score.parts.values()]
    if not any(
        isinstance(number, bool) or hasattr(number, "dtype") for number in numbers
    ):
        return score
    plain_parts = {
        name: _recorded_number(number) for name, number in score.parts.items()
    }
    return replace(score, value=_recorded_number(score.value), parts=plain_parts)


def _recorded_number(number: object) -> Any:
    plain = plain_number(number)
    return float(plain) if isinstance(plain, bool) else plain
