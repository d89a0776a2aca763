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
from evalwright.statistics.paired import Filling, PairedComparison

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
        bounds=_bounds(parts, value_range),
        n_undecided=sum(part.n_undecided for part in parts),
    )


def _bounds(parts: Sequence[Estimate], value_range: Range | None) -> Range | None:
    """The bounds of the mean: the parts' own fillings, with their errors in squares (or added up, where the range is not known).

    A part that lost nothing is bounded by its interval; one without bounds leaves none at all.
    """
    edges = [part.bounds or (None if part.n_missing else (part.low, part.high)) for part in parts]
    known = [edge for edge in edges if edge is not None]
    if not any(part.n_missing for part in parts) or len(known) < len(parts):
        return None
    ends = []
    for side, sign in ((0, -1), (1, 1)):
        if value_range is None:
            ends.append(math.fsum(edge[side] for edge in known) / len(parts))
            continue
        points = [
            (part.n * part.value + part.n_missing * value_range[side]) / (part.n + part.n_missing)
            if part.n
            else value_range[side]
            for part in parts
        ]
        errors = [
            max(sign * (edge[side] - point), sign * ((part.low, part.high)[side] - part.value))
            if part.n
            else 0.0
            for part, edge, point in zip(parts, known, points, strict=True)
        ]
        ends.append((math.fsum(points) + sign * math.hypot(*errors)) / len(parts))
    return _clipped((ends[0], ends[1]), value_range)


@dataclass(frozen=True, slots=True)
class MacroDifference(Plain):
    """The mean over tasks of paired differences a - b. Fields as in PairedComparison; `low`, `high` and `p_value` hold whatever the
    `n_missing` failed items would have scored.

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
    n_missing: int
    scored_low: float
    scored_high: float
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
    span = None if value_range is None else value_range[1] - value_range[0]
    limits = None if span is None else (-span, span)
    scored = _Mean(
        [Filling(p.difference, p.scored_low, p.scored_high, p.degrees_of_freedom) for p in parts], level
    )
    value, (low, high), p_value = scored.value, scored.interval(limits), scored.p_value
    visible = (
        _multiple(scored.freedom, level) + _multiple(scored.freedom, 2 * parts[0].power - 1)
    ) * scored.error
    scored_low, scored_high = low, high
    n_missing = sum(part.n_missing for part in parts)
    if any(part.n_missing and part.fillings is None for part in parts):
        low = high = p_value = visible = math.nan  # what failed cannot be bounded
    elif n_missing:
        own = [Filling(p.difference, p.low, p.high, p.degrees_of_freedom) for p in parts]
        sides = [
            _Mean(
                [part.fillings[side] if part.fillings else one for part, one in zip(parts, own, strict=True)],
                level,
            )
            for side in (0, 1)
        ]
        every = [scored, *sides]
        low, high = (
            min(one.interval(limits)[0] for one in every),
            max(one.interval(limits)[1] for one in every),
        )
        agree = len({(one.value > 0) - (one.value < 0) for one in every}) == 1
        p_value = max(one.p_value for one in every) if agree else 1.0
        visible += max(abs(one.value - value) for one in sides)
    return MacroDifference(
        value,
        low,
        high,
        level,
        p_value,
        scored.error,
        visible if span is None else min(visible, span),
        sum(part.n for part in parts),
        len(parts),
        n_missing,
        scored_low,
        scored_high,
    )


class _Mean:
    """The mean of independent differences: `value`, its `error` and Welch-Satterthwaite `freedom`, at `level`."""

    def __init__(self, parts: Sequence[Filling], level: float) -> None:
        self.value = 1.0 / len(parts) * math.fsum(part.difference for part in parts)
        errors = [
            (one.high - one.low) / (2 * t_quantile(0.5 + level / 2, max(one.freedom, 1.0))) for one in parts
        ]
        self.error, self.freedom = _added(errors, [one.freedom for one in parts])
        self.level = level

    def interval(self, limits: Range | None) -> Range:
        return _within(self.value, _multiple(self.freedom, self.level) * self.error, limits)

    @property
    def p_value(self) -> float:
        if math.isnan(self.error) or self.error == 0:
            return math.nan if math.isnan(self.error) else float(self.value == 0)
        return t_two_sided(self.value / self.error, self.freedom) if self.freedom > 0 else math.nan


def _combined(parts: Sequence[Estimate]) -> tuple[float, float]:
    """The standard error of the mean of independent parts, and its degrees of freedom.

    Where a part shows no spread it is that of its interval, so that a task without spread does not pose as certain.
    """
    freedom = [_freedom(part) for part in parts]
    return _added(list(map(_error, parts)), freedom)


def _added(errors: Sequence[float], freedom: Sequence[float]) -> tuple[float, float]:
    """The error of the mean of independent parts with these, and its Welch-Satterthwaite degrees of freedom."""
    shares = [error / len(errors) for error in errors]
    below = sum(error**4 / df for error, df in zip(shares, freedom, strict=True) if df > 0)
    return math.hypot(*shares), sum(error**2 for error in shares) ** 2 / below if below > 0 else 0.0


def _freedom(part: Estimate) -> float:
    if part.degrees_of_freedom is not None:
        return part.degrees_of_freedom
    return (part.n if part.n_clusters is None else part.n_clusters) - 1


def _error(part: Estimate) -> float:
    if part.standard_error is not None:
        return part.standard_error
    return (part.high - part.low) / (2 * t_quantile(0.5 + part.level / 2, max(_freedom(part), 1.0)))


def _within(value: float, half: float, limits: Range | None) -> Range:
    """value +- half, cut off at the limits; nan stays nan."""
    return _clipped((value - half, value + half), limits)


def _clipped(ends: Range, limits: Range | None) -> Range:
    if limits is None or math.isnan(ends[0]):
        return ends
    return max(ends[0], limits[0]), min(ends[1], limits[1])


def _multiple(freedom: float, level: float) -> float:
    return t_quantile(0.5 + level / 2, freedom) if freedom > 0 else math.nan
