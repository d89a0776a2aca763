"""Converts inspect_ai's scores: letters, words, numbers, lists and objects of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalwright import Failure, Score
from evalwright.compat.inspect.log_files import LoggedSample
from evalwright.compat.recording import as_mapping, number
from evalwright.extend import (
    printable,
)

OURS = "evalwright"
"""The key in inspect_ai's metadata that holds what only our records have."""
WORDS = {
    "C": (1.0, "correct"),
    "P": (0.5, "partial"),
    "I": (0.0, "incorrect"),
    "N": (0.0, "not_attempted"),
}
"""inspect_ai's letters for how good an answer is."""
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def scores_by_scorer(sample: LoggedSample) -> Mapping[str, Any]:
    """Scores by scorer; logs of version 1 have one score without a name."""
    return sample.scores or ({"score": sample.score} if sample.score else {})


@dataclass(slots=True)
class ScoreReader:
    """Reads scores.

    A column is a scorer, or a component of one whose values are objects or lists: "scorer.part".

    odd: a text that is not a number, by column. empty: columns with a missing value.
    """

    odd: dict[str, str] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)

    def values(self, sample: LoggedSample) -> Iterator[tuple[str, Any]]:
        """Yield (column, value) of a sample's scores."""
        for name, score in scores_by_scorer(sample).items():
            value = as_mapping(score).get("value")
            if isinstance(value, dict):
                yield from (
                    (f"{name}.{key}", component) for key, component in value.items()
                )
            elif isinstance(value, list):
                yield from (
                    (f"{name}.{index + 1}", component)
                    for index, component in enumerate(value)
                )
            else:
                yield name, value

    def worth(self, column: str, value: Any) -> float | None:
        """Convert a value as inspect_ai's `value_to_float` does; None if it is missing."""
        if isinstance(value, str):
            if value in WORDS or value.lower() in _WORDS:
                return WORDS[value][0] if value in WORDS else _WORDS[value.lower()]
            try:
                return number(float(value))
            except ValueError:
                self.odd.setdefault(column, value)
                return 0.0
        if value is None:
            self.empty.add(column)
        return float(value) if isinstance(value, bool) else number(value)

    def read_scores(
        self, sample: LoggedSample, extras: dict[str, Any]
    ) -> tuple[dict[str, Score], dict[str, Failure]]:
        """Scores and failures by column; what a score cannot hold is added to `extras`."""
        scores: dict[str, Score] = {}
        failures: dict[str, Failure] = {}
        logged_scores = {
            name: as_mapping(score) for name, score in scores_by_scorer(sample).items()
        }
        _collect_extras(logged_scores, extras)
        for column, value in self.values(sample):
            parent_scores = (
                parent_score
                for name, parent_score in logged_scores.items()
                if column.startswith(f"{name}.")
            )
            score = logged_scores.get(column) or next(parent_scores, {})
            metadata = as_mapping(score.get("metadata"))
            our_fields = as_mapping(metadata.get(OURS))
            explanation = str(score.get("explanation") or "")
            worth = self.worth(column, value)
            if worth is not None:
                word = WORDS.get(value, (0, value))[1] if isinstance(value, str) else ""
                label = our_fields.get("label") or word
                named = as_mapping(our_fields.get("parts")).items()
                parts = {
                    key: part_worth
                    for key, raw in named
                    if (part_worth := number(raw)) is not None
                }
                item = (
                    our_fields.get("item")
                    if isinstance(our_fields.get("item"), dict)
                    else None
                )
                unsure = str(our_fields.get("unsure") or "")
                scores[column] = Score(
                    worth, str(label)[:200], explanation, parts, item, unsure=unsure
                )
                continue
            reason = printable(
                str(score.get("reason") or metadata.get("reason") or "no value")
            )
            party: Any = "judge" if reason.startswith("grader") else "scorer"
            failures[column] = Failure(
                reason, party, explanation or "inspect_ai recorded no value."
            )
        return scores, failures


def _collect_extras(
    scores: Mapping[str, Mapping[str, Any]], extras: dict[str, Any]
) -> None:
    values: dict[str, Any] = {}
    score_extras: dict[str, Any] = {}
    for name, score in scores.items():
        value = score.get("value")
        if isinstance(value, (dict, list)) or (
            isinstance(value, str) and value not in WORDS
        ):
            values[name] = value
        fields = {
            key: score[key]
            for key in ("answer", "reason", "metadata")
            if score.get(key) is not None
        }
        if isinstance(metadata := fields.get("metadata"), dict):
            fields["metadata"] = {
                key: content for key, content in metadata.items() if key != OURS
            }
        if fields := {key: content for key, content in fields.items() if content != {}}:
            score_extras[name] = fields
    extras |= {
        name: by_scorer
        for name, by_scorer in (("values", values), ("scores", score_extras))
        if by_scorer
    }
