"""Compares two runs by slice: a paired comparison per metadata value, adjusted for multiplicity.

If one slice differs and another does not, that does not prove that the slices differ from each
other: each line is about its own items. An item without a value is in no slice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evalwright.core.plain import Plain
from evalwright.runs.measures import Matrix, pair_of
from evalwright.statistics import PairedComparison
from evalwright.statistics.multiplicity import (
    Adjustment,
    adjusted_p_values,
    interval_level,
)

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class SlicePart:
    """One value of a metadata key.

    Attributes:
        value: the metadata value.
        paired: the comparison; its interval and verdict are adjusted.
        p_adjusted: the p-value, adjusted for all values of the key.
    """

    value: str
    paired: PairedComparison
    p_adjusted: float

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        adjusted = None if self.p_adjusted != self.p_adjusted else self.p_adjusted
        return {"value": self.value, **self.paired.as_dict(), "p_adjusted": adjusted}


@dataclass(frozen=True, slots=True)
class SliceComparison(Plain):
    """All values of one metadata key, in alphabetical order.

    Attributes:
        key: the metadata key.
        parts: the values.
        without: number of common items that have no value.
        correction: how p-values, verdicts and intervals were adjusted, in words.
    """

    key: str
    parts: tuple[SlicePart, ...]
    without: int
    correction: str


def adjustment_text(how: Adjustment, tests: str) -> str:
    """Describe the adjustment for many slices; `tests` is what they are, in words."""
    return {
        "bh": f"Benjamini-Hochberg over {tests}, false discovery rate 5%",
        "holm": f"Holm over {tests}, 5% for any false finding",
        "none": (
            f"none: each of {tests} is tested at 5% alone, so of twenty slices without"
            " a difference one is expected to show one"
        ),
    }[how]


def compare_slices(matrix: Matrix, key: str, how: Adjustment = "bh") -> SliceComparison:
    """Compare the first two runs of a matrix within each value of one of its keys."""
    codes = matrix.slices[key]
    common = matrix.of_items.common()
    if matrix.clusters is not None:  # small numbers sort faster than hashes
        matrix = replace(
            matrix, clusters=np.unique(matrix.clusters, return_inverse=True)[1]
        )
    pairs = {}
    for name in sorted(codes.names):
        inside = matrix.slice(key, name)
        if inside is not None and inside.common().any():
            pairs[name] = pair_of(inside)
    p_values = [pair.p_value for pair in pairs.values()]
    level = interval_level(p_values, how, ALPHA)
    parts = [
        SlicePart(name, agreeing(pair.comparison(level), float(p)), float(p))
        for (name, pair), p in zip(
            pairs.items(), adjusted_p_values(p_values, how), strict=True
        )
    ]
    return SliceComparison(
        key=key,
        parts=tuple(parts),
        without=int((common & (codes.codes < 0)).sum()),
        correction=(
            adjustment_text(how, f"the {len(parts)} values of '{key}'")
            if len(parts) > 1
            else f"none, as '{key}' has one value"
        ),
    )


def agreeing(paired: PairedComparison, p_adjusted: float) -> PairedComparison:
    """Make a comparison's interval contain 0 unless the adjusted p-value is significant.

    At `interval_level` it does so by itself, except for Holm's later steps: there it is cut at 0.
    """
    if not p_adjusted < ALPHA or not paired.low <= 0 <= paired.high:
        return paired
    if paired.difference > 0:
        return replace(paired, low=0.0, verdict="better")
    return replace(paired, high=0.0, verdict="worse")
