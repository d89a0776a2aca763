"""Averages over a fixed set of tasks: each task counts the same, and their errors add as independent parts.

The tasks are fixed: the interval speaks of other items for these tasks, not of other tasks. Standard error
sqrt(sum w_t^2 SE_t^2) with w_t = 1/T (statistics specification 6.1); degrees of freedom by Welch-Satterthwaite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import t_quantile, t_two_sided
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.intervals import Range
from evalwright.statistics.paired import PairedComparison

TasksAre = Literal["fixed", "sample"]
"""Whether an average over tasks is about these tasks, or about tasks like these."""


def macro_average(parts: Sequence[Estimate], *, value_range: Range | None = None) -> Estimate:
    """The unweighted mean of the estimates of different tasks, with its interval at the level of the first.

    Where a part shows no spread, its standard error is taken from the width of its interval, so that a task without
    spread does not pose as certain. One part comes back as it is. value_range: the range in which the parts, and so
    their mean, must lie; the interval ends there, which costs no coverage. Raises ValueError for none.
    """
    if not parts:
        raise ValueError("an average needs at least one part")
    if len(parts) == 1:
        return parts[0]
    share, level = 1.0 / len(parts), parts[0].level
    value = share * math.fsum(part.value for part in parts)
    error, freedom = _combined(parts)
    low, high = _within(value, _multiple(freedom, level) * error, value_range)
    bounds = None
    if any(part.n_missing for part in parts):
        # A part that lost nothing is bounded by its own value; one whose range is unknown leaves no bound at all.
        edges = [part.bounds or ((part.value, part.value) if not part.n_missing else None) for part in parts]
        known = [edge for edge in edges if edge is not None]
        if len(known) == len(parts):
            bounds = (share * sum(low for low, _ in known), share * sum(high for _, high in known))
    clusters = [part.n_clusters if part.n_clusters is not None else part.n for part in parts]
    return Estimate(
        value=value,
        low=low,
        high=high,
        level=level,
        n=sum(part.n for part in parts),
        n_failed=sum(part.n_failed for part in parts),
        n_clusters=sum(clusters) if any(part.n_clusters is not None for part in parts) else None,
        standard_error=error,
        method=f"macro average over {len(parts)} fixed tasks, Welch-Satterthwaite t",
        bounds=bounds,
        n_undecided=sum(part.n_undecided for part in parts),
    )


@dataclass(frozen=True, slots=True)
class MacroDifference(Plain):
    """The mean over tasks of paired differences a - b. Fields as in PairedComparison.

    `tasks_are`: "fixed", then the interval is about these tasks with other items; "sample", about tasks like these (`task_sample`).
    """

    difference: float
    low: float
    high: float
    level: float
    p_value: float
    standard_error: float
    smallest_visible_difference: float
    n: int
    n_tasks: int
    tasks_are: TasksAre = "fixed"


def macro_difference(
    parts: Sequence[PairedComparison], *, value_range: Range | None = None
) -> MacroDifference:
    """Combine the paired comparisons of different tasks, each task counting the same. Raises ValueError for none.

    value_range: the range of a score; no difference lies outside its span, so the interval ends there.
    """
    if not parts:
        raise ValueError("an average needs at least one part")
    level = parts[0].level
    value = 1.0 / len(parts) * math.fsum(part.difference for part in parts)
    error, freedom = _combined(parts)
    span = None if value_range is None else value_range[1] - value_range[0]
    low, high = _within(value, _multiple(freedom, level) * error, None if span is None else (-span, span))
    if math.isnan(error) or error == 0:
        p_value = math.nan if math.isnan(error) else float(value == 0)
    else:
        p_value = t_two_sided(value / error, freedom) if freedom > 0 else math.nan
    visible = (_multiple(freedom, level) + _multiple(freedom, 2 * parts[0].power - 1)) * error
    if span is not None:
        visible = min(visible, span)
    return MacroDifference(
        value, low, high, level, p_value, error, visible, sum(part.n for part in parts), len(parts)
    )


def _combined(parts: Sequence[Estimate] | Sequence[PairedComparison]) -> tuple[float, float]:
    """The standard error of the mean of independent parts, and its Welch-Satterthwaite degrees of freedom.

    The error of a difference is that of its interval, so that a task where few items differ does not pose as certain.
    """
    share = 1.0 / len(parts)
    freedom = [_freedom(part) for part in parts]
    errors = [share * _error(part) for part in parts]
    total = sum(error**2 for error in errors)
    below = sum(error**4 / df for error, df in zip(errors, freedom, strict=True) if df > 0)
    return math.hypot(*errors), total**2 / below if below > 0 else 0.0


def _freedom(part: Estimate | PairedComparison) -> float:
    if part.degrees_of_freedom is not None:
        return part.degrees_of_freedom
    return (part.n if part.n_clusters is None else part.n_clusters) - 1


def _error(part: Estimate | PairedComparison) -> float:
    if isinstance(part, Estimate) and part.standard_error is not None:
        return part.standard_error
    return (part.high - part.low) / (2 * t_quantile(0.5 + part.level / 2, max(_freedom(part), 1.0)))


def _within(value: float, half: float, limits: Range | None) -> Range:
    """value +- half, cut off at the limits; nan stays nan."""
    low, high = value - half, value + half
    if limits is not None and not math.isnan(half):
        low, high = max(low, limits[0]), min(high, limits[1])
    return low, high


def _multiple(freedom: float, level: float) -> float:
    return t_quantile(0.5 + level / 2, freedom) if freedom > 0 else math.nan
