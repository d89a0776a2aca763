"""Columns of a board that are no scores, such as facts about the models.

A column has an estimate or a text for every row of the board, in the order of its rows, and a
reason where it has neither an interval nor a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evalwright.core.plain import plain
from evalwright.runs.model_facts import Fact
from evalwright.runs.reader import Run
from evalwright.statistics import Estimate

ExtraUnit = Literal["points", "plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraColumn:
    """A column of a board that is no score.

    Args:
        name: its name in CSV and JSON.
        title: its title in tables.
        unit: "points" if values are between 0 and 1 and shown in percentage points, else "plain".
        measure: the unit of its numbers in words, such as "US dollars".
        estimates: a number for each row; () in a column of texts.
        texts: a text for each row; () in a column of numbers.
        note: what a reader must know about the column.
        lower_is_better: None where neither direction is better.
        reasons: by row, why there is no number or no interval.
    """

    name: str
    title: str
    unit: ExtraUnit = "plain"
    measure: str = ""
    estimates: tuple[Estimate | None, ...] = ()
    texts: tuple[str, ...] = ()
    note: str = ""
    lower_is_better: bool | None = None
    reasons: Mapping[int, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no row has anything in it."""
        numbers = [estimate for estimate in self.estimates if has_value(estimate)]
        return not numbers and not any(self.texts)

    @property
    def scale(self) -> str:
        """The scale of its numbers in words; "text" for a column of texts."""
        if self.texts:
            return "text"
        return "0 to 1" if self.unit == "points" else self.measure or "its own"

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON, without the rows' values."""
        return {
            "name": self.name,
            "title": self.title,
            "scale": self.scale,
            "lower_is_better": self.lower_is_better,
            "note": self.note,
        }

    def value_of(self, row: int) -> Any:
        """Return a row's value for JSON: a text, or a mapping with the reason, if any."""
        if self.texts:
            return self.texts[row] or None
        estimate = self.estimates[row]
        reason = self.reasons.get(row, "")
        if estimate is None or not has_value(estimate):
            return {"value": None, "reason": reason} if reason else None
        names = ("value", "low", "high", "level", "n", "n_missing", "method")
        fields = {name: plain(getattr(estimate, name)) for name in names}
        return {**fields, **({"reason": reason} if reason else {})}


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """A run of a board with the facts about its model."""

    run: Run
    facts: Mapping[str, Fact]


def has_value(estimate: Estimate | None) -> bool:
    """Whether there is an estimate with a number."""
    return estimate is not None and estimate.value == estimate.value


def column_of_estimates(
    estimates: Sequence[Estimate | str], **fields: Any
) -> ExtraColumn:
    """Make a column of estimates, or of reasons why there is none."""
    numbers: list[Estimate | None] = []
    reasons: dict[int, str] = {}
    for row, estimate in enumerate(estimates):
        if isinstance(estimate, str):
            numbers.append(None)
            reasons[row] = estimate
            continue
        numbers.append(estimate if has_value(estimate) else None)
        if math.isnan(estimate.low):
            reasons[row] = estimate.method
    return ExtraColumn(estimates=tuple(numbers), reasons=reasons, **fields)


# -- facts -------------------------------------------------------------------------------


FACT_TITLES: Mapping[str, str] = {
    "size": "Size",
    "licence": "Licence",
    "open": "Open",
    "released": "Released",
    "cutoff": "Cut-off",
    "provider": "Provider",
    "family": "Family",
    "context": "Context",
    "price_in": "Price in",
    "price_out": "Price out",
    "url": "Address",
}


def fact_column(key: str, models: Sequence[MeasuredModel]) -> ExtraColumn:
    """Make the column of a fact about the models."""
    return ExtraColumn(
        name=key,
        title=fact_title(key),
        texts=tuple(fact_text(key, model.facts.get(key)) for model in models),
    )


def fact_title(key: str) -> str:
    """Name a fact as in a heading."""
    return FACT_TITLES.get(key, key.replace("_", " ").capitalize())


def fact_text(key: str, fact: Fact) -> str:
    """Format a fact: "8B", "700M", "yes", "128k tokens", "$0.15"; "" if it is unknown."""
    if fact is None:
        return ""
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, str):
        return fact
    if key == "size":
        return f"{fact * 1000:.3g}M" if fact < 1 else f"{fact:.4g}B"
    if key == "context":
        return f"{fact / 1000:.4g}k" if fact >= 1000 else f"{fact:.0f}"
    if key in ("price_in", "price_out"):
        return f"${fact:.4g}"
    return f"{fact:.10g}"
