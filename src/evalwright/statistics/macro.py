"""Averages over a fixed set of tasks with weights, also where tasks share items or passages.

The tasks are fixed: the interval covers the choice of items for these tasks, not the choice of
tasks. The variance of the mean is sum_t sum_u w_t w_u rho_tu e_t e_u with the correlations rho
of the tasks' means (`shared_units`; 0 for tasks that share nothing). A task's error e_t is
derived from the width of its own interval, so that parts and whole agree and a task without
spread does not count as certain; for scores it is never less than the standard error. The
quantile is Student's with Welch-Satterthwaite degrees of freedom.

No interval is longer than the root of sum_t sum_u rho_tu h_t h_u with h_t = w_t times half of a
task's interval: MOVER (Zou & Donner 2008) with ends of equal length. Without that limit a task
of 3 items beside one of 3,000 would impose its few degrees of freedom on the whole. (The
interval of a few items is short only because the range ends, which does not limit a mean over
many such tasks: so the square of h_t is the mean of the squares of h_t and z e_t, with the
weights p_t and 1 - p_t.)

The ends are of unequal length as far as the sum is skewed. The centre of a task's interval is
a_t away from its mean; the skewness of a sum is that of its parts weighted with their
variances, so the centre of the whole is sum_t p_t w_t a_t away from the mean, p_t = h_t^2 / sum
h^2 (for tasks that share units (sum_u rho_tu h_u)^2 over the whole). Where one task outweighs
the others these are MOVER's own ends. Over many tasks near 0 or 1 MOVER's ends are too unequal,
and cover 87 to 92%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import normal_quantile, t_quantile, t_two_sided
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.paired import Filling, PairedComparison
from evalwright.statistics.pairwise import MissingPolicy, limits_without_spread
from evalwright.statistics.shared_units import (
    Sharing,
    UnitSums,
    correlations,
    errors_of_intervals,
    mean_spread,
    sharing,
)
from evalwright.statistics.units import F64, I64, Range

ROUNDING_ERROR = 1e-12
"""Size of an end of an interval, relative to the other, below which it is 0 but for rounding."""

TasksAre = Literal["fixed", "sample"]
"""Whether an average over tasks is about exactly these tasks, or about tasks like them."""


def macro_average(
    parts: Sequence[Estimate],
    *,
    weights: Sequence[float] | None = None,
    units: Sequence[UnitSums | None] | None = None,
    value_range: Range | Sequence[Range] | None = None,
) -> Estimate:
    """The weighted mean of the estimates of different tasks, with its interval.

    Args:
        parts: the tasks' estimates; the interval has the level of the first.
        weights: the tasks' weights, on any scale; equal by default.
        units: `unit_sums` of each task, None for tasks that share no units.
        value_range: the range in which each part must lie, one for all or one for each. The
            interval is cut at the mean of these ranges, which costs no coverage.

    Returns:
        The mean; a single part is returned unchanged.

    Raises:
        ValueError: no parts.
    """
    share = _normalise_weights(parts, weights)
    if len(parts) == 1:
        return parts[0]
    level = parts[0].level
    among, rho = _sharing(units, len(parts))
    freedom = np.array(
        [math.inf if part.n_units == 1 else max(_freedom(part), 1.0) for part in parts]
    )
    value = math.fsum(w * part.value for w, part in zip(share, parts, strict=True))
    ends = np.array([(part.value - part.low, part.high - part.value) for part in parts])
    ranges = (
        None
        if value_range is None
        else np.broadcast_to(np.asarray(value_range, np.float64), (len(parts), 2))
    )
    room = (
        np.full(len(parts), math.inf)
        if ranges is None
        else (ranges[:, 1] - ranges[:, 0]) / 2
    )
    quantiles = np.array([_quantile(part) for part in parts])
    half = ends.mean(axis=1)
    shown_errors = half / quantiles / np.sqrt(np.maximum(1 - (half / room) ** 2, 1e-12))
    shown_errors = np.where(
        np.isinf(room), shown_errors, np.minimum(shown_errors, room)
    )
    errors = np.maximum([part.standard_error or 0.0 for part in parts], shown_errors)
    mean = _make_mean(
        value, share, ends, errors, freedom, errors * quantiles, rho, among.sets, level
    )
    limits = (
        None
        if ranges is None
        else (math.fsum(share * ranges[:, 0]), math.fsum(share * ranges[:, 1]))
    )
    largest = max(map(abs, mean.interval(limits)))
    low, high = (
        0.0 if abs(end) < ROUNDING_ERROR * largest else end
        for end in mean.interval(limits)
    )
    how = "each the same" if weights is None else "weighted"
    shared = f", {len(among.shared):,} units shared" if len(among.shared) else ""
    return Estimate(
        value=value,
        low=low,
        high=high,
        level=level,
        n=sum(part.n for part in parts),
        n_missing=sum(part.n_missing for part in parts),
        n_clusters=_count_clusters(parts, units),
        standard_error=mean.standard_error,
        method=f"mean over {len(parts)} fixed tasks, {how}{shared}, t",
        bounds=_bounds(parts, share, rho, ranges),
        n_unsure=sum(part.n_unsure for part in parts),
    )


@dataclass(frozen=True, slots=True)
class MacroDifference(Plain):
    """The mean over tasks of paired differences a - b.

    Fields as in `PairedComparison`: with the policy "scored", `low`, `high` and `p_value` are those
    of the items that both models have; with "worst-case" they hold whatever the `n_missing` items
    would have scored. `tasks_are` is "fixed" if the interval is about these tasks with other items,
    "sample" if it is about tasks like these (`task_sample`). `mean_a` and `mean_b` are the same
    average of each model's scores on the items that both have.
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
    n_missing_a: int = 0
    n_missing_b: int = 0
    worst_low: float = math.nan
    worst_high: float = math.nan
    missing_policy: MissingPolicy = "scored"
    tasks_are: TasksAre = "fixed"
    mean_a: float = math.nan
    mean_b: float = math.nan


def macro_difference(
    parts: Sequence[PairedComparison],
    *,
    weights: Sequence[float] | None = None,
    units: Sequence[UnitSums | None] | None = None,
    value_range: Range | None = None,
    widths: Sequence[float] | None = None,
) -> MacroDifference:
    """Average the paired comparisons of different tasks, all with one policy for missing answers.

    Args:
        parts: the tasks' comparisons.
        weights: the tasks' weights, on any scale; equal by default.
        units: `unit_sums` of each task's differences, None for tasks that share no units.
        value_range: the range of a score; no difference exceeds its width, so the interval is cut
            there.
        widths: the greatest possible difference of each task, nan if unknown. A task that shows no
            spread, or has a single unit, counts with the interval that this leaves.

    Raises:
        ValueError: no parts.
    """
    share = _normalise_weights(parts, weights)
    level = parts[0].level
    among, rho = _sharing(units, len(parts))
    span = None if value_range is None else value_range[1] - value_range[0]
    limits = None if span is None else (-span, span)

    widest = np.full(len(parts), math.nan) if widths is None else np.asarray(widths)

    def mean(fillings: Sequence[Filling]) -> _TaskMean:
        values, low, high, freedoms = np.array(fillings, dtype=np.float64).T
        low, high, freedoms = _with_hidden_spread(
            parts, low, high, freedoms, widest, level
        )
        errors, freedom = errors_of_intervals(
            low, high, freedoms, math.nan if span is None else span, level, widest
        )
        ends = np.stack([values - low, high - values], axis=1)
        uncut_half = errors * [_interval_multiple(df, level) for df in freedom]
        return _make_mean(
            float(share @ values),
            share,
            ends,
            errors,
            freedom,
            uncut_half,
            rho,
            among.sets,
            level,
        )

    if len(parts) == 1:
        return _from_single_task(parts[0])
    n_missing = sum(part.n_missing for part in parts)
    scored_parts = [_scored_filling(part) for part in parts]
    scored = mean(scored_parts)
    fillings = []
    if n_missing:
        for side in (1, 2):
            pairs = zip(parts, scored_parts, strict=True)
            fillings.append(
                mean(
                    [
                        part.fillings[side] if part.fillings else scored_part
                        for part, scored_part in pairs
                    ]
                )
            )
    low, high = scored.interval(limits)
    p_value = scored.p_value
    visible = _visible(scored, parts[0].power)
    worst_low = worst_high = math.nan
    policy = parts[0].missing_policy
    bounded = n_missing > 0 and not any(
        part.n_missing and part.fillings is None for part in parts
    )
    if bounded:
        ends = [filling.interval(limits) for filling in fillings]
        worst_low = min(low, *(end[0] for end in ends))
        worst_high = max(high, *(end[1] for end in ends))
    if policy == "worst-case" and n_missing:
        low = worst_low
        high = worst_high
        parts_with_fillings = [scored, *fillings]
        agree = (
            len(
                {
                    (filling_mean.value > 0) - (filling_mean.value < 0)
                    for filling_mean in parts_with_fillings
                }
            )
            == 1
        )
        p_value = (
            max(filling_mean.p_value for filling_mean in parts_with_fillings)
            if agree
            else 1.0
        )
        visible += max(
            abs(filling_mean.value - scored.value)
            for filling_mean in parts_with_fillings
        )
        if not bounded:
            p_value = visible = math.nan  # missing items: no bound
    return MacroDifference(
        difference=scored.value,
        low=low,
        high=high,
        level=level,
        p_value=p_value,
        standard_error=scored.error,
        smallest_visible_difference=visible if span is None else min(visible, span),
        n=sum(part.n for part in parts),
        n_tasks=len(parts),
        n_missing=n_missing,
        n_missing_a=sum(part.n_missing_a for part in parts),
        n_missing_b=sum(part.n_missing_b for part in parts),
        worst_low=worst_low,
        worst_high=worst_high,
        missing_policy=policy,
        mean_a=float(share @ [part.mean_a for part in parts]),
        mean_b=float(share @ [part.mean_b for part in parts]),
    )


def _with_hidden_spread(
    parts: Sequence[PairedComparison],
    low: F64,
    high: F64,
    freedom: F64,
    widest: F64,
    level: float,
) -> tuple[F64, F64, F64]:
    """Give tasks without spread the interval that the range of their numbers leaves."""
    units = np.array([part.effective_units for part in parts])
    no_spread = np.isnan(low) & np.array(
        [
            part.n > 0
            and not part.standard_error
            and not (part.n_missing and part.missing_policy == "worst-case")
            for part in parts
        ]
    )
    if not no_spread.any():
        return low, high, freedom
    ends = limits_without_spread(units, widest, level)
    return (
        np.where(no_spread, ends[0], low),
        np.where(no_spread, ends[1], high),
        np.where(no_spread & (units > 1), np.inf, freedom),
    )


def _scored_filling(part: PairedComparison) -> Filling:
    """A task's comparison on the items that both models have, whatever its missing policy."""
    return (
        part.fillings[0]
        if part.fillings
        else Filling(part.difference, part.low, part.high, part.degrees_of_freedom)
    )


def _visible(mean: _TaskMean, power: float) -> float:
    critical = _interval_multiple(mean.freedom, mean.level) + _interval_multiple(
        mean.freedom, 2 * power - 1
    )
    return critical * mean.error


def _from_single_task(part: PairedComparison) -> MacroDifference:
    return MacroDifference(
        difference=part.difference,
        low=part.low,
        high=part.high,
        level=part.level,
        p_value=part.p_value,
        standard_error=part.standard_error or 0.0,
        smallest_visible_difference=part.smallest_visible_difference,
        n=part.n,
        n_tasks=1,
        n_missing=part.n_missing,
        n_missing_a=part.n_missing_a,
        n_missing_b=part.n_missing_b,
        worst_low=part.worst_low,
        worst_high=part.worst_high,
        missing_policy=part.missing_policy,
        mean_a=part.mean_a,
        mean_b=part.mean_b,
    )


@dataclass(frozen=True, slots=True)
class _TaskMean:
    """A mean over tasks at `level`, with separate errors for both ends, and degrees of freedom."""

    value: float
    below: float
    above: float
    standard_error: float
    freedom: float
    level: float

    @property
    def error(self) -> float:
        """The mean of the two errors, which together make the width."""
        return (self.below + self.above) / 2

    def interval(self, limits: Range | None) -> Range:
        multiple = _interval_multiple(self.freedom, self.level)
        return _clip_to_limits(
            self.value - multiple * self.below,
            self.value + multiple * self.above,
            limits,
        )

    @property
    def p_value(self) -> float:
        error = self.below if self.value > 0 else self.above
        if math.isnan(error) or error == 0:
            return math.nan if math.isnan(error) else float(self.value == 0)
        return t_two_sided(self.value / error, self.freedom)


def _make_mean(
    value: float,
    share: F64,
    ends: F64,
    errors: F64,
    freedom: F64,
    uncut_half: F64,
    rho: F64,
    sets: I64,
    level: float,
) -> _TaskMean:
    """Compute the mean of tasks.

    Args:
        value: the weighted mean.
        share: (tasks,), weights that add up to 1.
        ends: (tasks, 2), how far their intervals reach below and above.
        errors: (tasks,), the errors that these intervals correspond to.
        freedom: (tasks,), their degrees of freedom.
        uncut_half: (tasks,), half the width of an interval with such an error that is not cut by
            the range.
        rho: (tasks, tasks), correlations.
        sets: (tasks,), equal numbers for tasks that share units.
        level: confidence level.
    """
    half = share * ends.mean(axis=1)
    centre_offset = share * (ends[:, 1] - ends[:, 0]) / 2
    spread = mean_spread(
        share * errors,
        freedom,
        half,
        centre_offset,
        share * uncut_half,
        rho,
        sets,
        level,
    )
    standard_error, error, asymmetry, df = (float(part) for part in spread)
    return _TaskMean(
        value, error - asymmetry, error + asymmetry, standard_error, df, level
    )


def _normalise_weights(
    parts: Sequence[Estimate | PairedComparison], weights: Sequence[float] | None
) -> F64:
    if not parts:
        raise ValueError("an average needs at least one part")
    weight_values = (
        np.ones(len(parts)) if weights is None else np.asarray(weights, np.float64)
    )
    if weight_values.shape != (len(parts),) or not (
        np.isfinite(weight_values).all()
        and (weight_values >= 0).all()
        and weight_values.sum() > 0
    ):
        raise ValueError(
            f"weights must be {len(parts)} numbers of at least 0, not {weights}"
        )
    share: F64 = weight_values / weight_values.sum()
    return share


def _sharing(units: Sequence[UnitSums | None] | None, n: int) -> tuple[Sharing, F64]:
    unit_sums_by_task = [None] * n if units is None else list(units)
    among = sharing(unit_sums_by_task)
    return among, correlations(unit_sums_by_task, among)


def _count_clusters(
    parts: Sequence[Estimate], units: Sequence[UnitSums | None] | None
) -> int | None:
    """Count the units of all tasks, shared ones once; None if every item is independent."""
    n = sum(part.n for part in parts)
    unit_sums_by_task = units or [None] * len(parts)
    n_unshared_units = sum(
        part.n_units
        for part, task_units in zip(parts, unit_sums_by_task, strict=True)
        if task_units is None
    )
    names = [
        task_units.codes for task_units in unit_sums_by_task if task_units is not None
    ]
    total = n_unshared_units + (len(np.unique(np.concatenate(names))) if names else 0)
    return total if total < n else None


def _freedom(part: Estimate) -> float:
    return (
        part.n_units - 1 if part.degrees_of_freedom is None else part.degrees_of_freedom
    )


def _quantile(part: Estimate) -> float:
    """The quantile that a task's interval is based on.

    Student's t, or the normal one for Wilson's interval and for intervals of data without spread.
    """
    normal = part.standard_error is None or part.method.startswith("Wilson")
    if normal and "effective n" not in part.method:
        return normal_quantile(0.5 + part.level / 2)
    return _t_multiple(max(_freedom(part), 1.0), part.level)


def _bounds(
    parts: Sequence[Estimate], share: F64, rho: F64, ranges: F64 | None
) -> Range | None:
    """Bounds of the mean whatever the missing items would have scored.

    They combine the bounds of the parts with their errors and correlations (or simply add up where
    the ranges are unknown). A part without missing items contributes its interval; if a part lacks
    bounds, there are none at all.
    """
    edges = [
        part.bounds or (None if part.n_missing else (part.low, part.high))
        for part in parts
    ]
    known_edges = [edge for edge in edges if edge is not None]
    if not any(part.n_missing for part in parts) or len(known_edges) < len(parts):
        return None
    ends = []
    for side, sign in ((0, -1), (1, 1)):
        edge = np.array([bounds[side] for bounds in known_edges])
        if ranges is None:
            ends.append(float(share @ edge))
            continue
        points = np.array(
            [
                (
                    (part.n * part.value + part.n_missing * end)
                    / (part.n + part.n_missing)
                    if part.n
                    else end
                )
                for part, end in zip(parts, ranges[:, side], strict=True)
            ]
        )
        reach = [
            sign * ((part.low, part.high)[side] - part.value) if part.n else 0.0
            for part in parts
        ]
        errors = share * np.maximum(sign * (edge - points), reach)
        ends.append(
            float(share @ points + sign * np.sqrt(max(errors @ rho @ errors, 0.0)))
        )
    limits = (
        None
        if ranges is None
        else (float(share @ ranges[:, 0]), float(share @ ranges[:, 1]))
    )
    return _clip_to_limits(ends[0], ends[1], limits)


def _clip_to_limits(low: float, high: float, limits: Range | None) -> Range:
    """Cut an interval at the limits; nan stays nan."""
    if limits is not None and not math.isnan(low):
        low = max(low, limits[0])
        high = min(high, limits[1])
    return low, high


def _interval_multiple(freedom: float, level: float) -> float:
    return _t_multiple(freedom, level) if freedom > 0 else math.nan


def _t_multiple(freedom: float, level: float) -> float:
    return t_quantile(0.5 + level / 2, freedom)
