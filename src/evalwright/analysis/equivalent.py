"""Are two runs the same, up to a margin named beforehand? Two one-sided tests (TOST) at 5%, task by task and over tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import Plain
from evalwright.runs.measures import UNIT_RANGE, Matrix, paired_of, unpaired_of
from evalwright.statistics import MacroDifference, UnpairedComparison, equivalence_paired, macro_difference
from evalwright.statistics.equivalence import Equivalence

LEVEL = 0.9
"""Of the interval that must lie inside the margin: 1 - 2 x 5%."""


@dataclass(frozen=True, slots=True)
class TaskEquivalence(Plain):
    """Whether the difference lies inside +-margin. p_value is nan where the test has none of its own."""

    difference: float
    low: float
    high: float
    margin: float
    p_value: float
    equivalent: bool
    method: str
    sentence: str


def equivalence_of(found: Matrix, margin: float, names: tuple[str, str]) -> TaskEquivalence:
    """TOST of the first two runs of a matrix: paired on common items, else as independent samples.

    Raises ConfigurationError for a margin that is not above 0, or not below the range of the scores.
    """
    common, bounded = found.common(), found.measure.bounded
    if not math.isfinite(margin) or margin <= 0 or (bounded and margin >= 1):
        raise ConfigurationError(
            f"The margin of equivalence is the smallest difference that would matter, such as 0.03 for 3 points of "
            f"accuracy, not {margin:g}."
        )
    if not common.any():
        apart = unpaired_of(found, level=LEVEL)
        return _result(apart, margin, math.nan, f"TOST, {apart.interval_method}", names, bounded)
    values, clusters = found.part(common)
    span = found.measure.value_range
    same = equivalence_paired(values[0], values[1], margin=margin, clusters=clusters, value_range=span)
    return _result(same, margin, same.p_value, same.method, names, bounded)


def overall_equivalence(found: Sequence[Matrix], margin: float, names: tuple[str, str]) -> TaskEquivalence:
    """TOST of the mean over tasks, each with the same weight; all must be bounded and have common items."""
    parts = [paired_of(one, level=LEVEL) for one in found]
    whole = macro_difference(parts, value_range=UNIT_RANGE)
    method = f"TOST, mean over {len(parts)} fixed tasks"
    return _result(whole, margin, math.nan, method, (f"Over all tasks {names[0]}", names[1]), True)


def _result(
    found: MacroDifference | UnpairedComparison | Equivalence,
    margin: float,
    p_value: float,
    method: str,
    names: tuple[str, str],
    bounded: bool,
) -> TaskEquivalence:
    low, high = found.low, found.high
    inside = bool(low >= -margin and high <= margin)
    scale, unit, decimals = (100.0, " points", 2) if bounded else (1.0, "", 4)
    size, who = f"{margin * scale:g}{unit}", f"{names[0]} and {names[1]}"
    if math.isnan(low):
        text = f"{who}: no interval, so it cannot be said whether they are equivalent within {size}."
    else:
        said = "are equivalent" if inside else "were not shown to be equivalent"
        ends = f"{low * scale:.{decimals}f} to {high * scale:.{decimals}f}"
        reach = "lies inside" if inside else "is not inside"
        text = f"{who} {said} within {size} (two one-sided tests at 5%: the 90% interval {ends} {reach} the margin)."
    return TaskEquivalence(found.difference, low, high, margin, p_value, inside, method, text)
