"""What a scorer may give: finite numbers, in the range that the metrics over them assume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Score
from evalwright.scorers.registry import MAX_SCORE

_ROUNDING = 1e-9
"""How far outside of its range a value may be by arithmetic alone; it is then the end of the range."""


MAX_UNSURE_CHARS = 2_000
"""A longer reason why a score is unsure is cut: it stands in every line of samples, and nobody reads on."""


def checked_score(score: object, scorer: str, item: str, bounded: Sequence[str] = ()) -> Score:
    """What a scorer gave of an item, if it is a Score of finite numbers; True and False are 1 and 0.

    bounded: metrics that assume scores from 0 to 1; one that has a part of its own name is not of the value. Raises ScoringError for a
    value that none of them can be made of.
    """
    who = f"The scorer '{scorer}' on the item '{item}'"
    if not isinstance(score, Score):
        raise ScoringError(f"{who} must give a Score, not {type(score).__name__}.")
    if not (isinstance(score.label, str) and isinstance(score.explanation, str)):
        raise ScoringError(f"{who}: the score's label and explanation must be text.")
    if not isinstance(score.unsure, str):
        raise ScoringError(f"{who}: 'unsure' of the score must be text, not {type(score.unsure).__name__}.")
    if len(score.unsure) > MAX_UNSURE_CHARS:
        score = replace(score, unsure=f"{score.unsure[: MAX_UNSURE_CHARS - 1]}…")
    if hasattr(score.value, "dtype"):  # a number of numpy
        score = replace(score, value=float(score.value))
    for name, part in (("value", score.value), *score.parts.items()):
        if not isinstance(part, (int, float)) or not abs(part) <= MAX_SCORE:
            raise ScoringError(
                f"{who}: the score's {name} must be a finite number up to {MAX_SCORE:g}, not {part!r}."
            )
    value = float(score.value) if isinstance(score.value, bool) else score.value
    metric = next((label for label in bounded if label not in score.parts), "")
    if metric and not -_ROUNDING <= value <= 1 + _ROUNDING:
        raise ScoringError(
            f"{who} gave {value:g}, and the metric '{metric}' is of scores from 0 to 1. Divide them by their greatest value, or "
            "use a metric without a range, such as 'mean'."
        )
    value = min(max(value, 0.0), 1.0) if metric else value
    return score if value is score.value else replace(score, value=value)
