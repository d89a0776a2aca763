"""Axes of drawn scores: round end points, a few round ticks, and positions in percent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalwright.reports.numbers import Unit
from evalwright.statistics import Estimate


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from `low` to `high` in the metric's unit; `ticks` are (position, label) pairs."""

    low: float
    high: float
    ticks: tuple[tuple[str, str], ...]

    def place(self, number: float) -> str:
        """The position of a number, "0.00%" to "100.00%"; numbers outside the axis go to an end."""
        share = (number - self.low) / (self.high - self.low)
        return f"{100 * min(1.0, max(0.0, share)):.2f}%"


@dataclass(frozen=True, slots=True)
class Bar:
    """A value and the ends of its interval, as positions on an axis."""

    low: str
    high: str
    value: str


def axis_of(
    estimates: Sequence[Estimate], unit: Unit, *, full_range: bool = False
) -> Axis:
    """Build an axis that covers all estimates with their intervals.

    Args:
        estimates: The estimates to be drawn.
        unit: Their unit; "points" are shares that are shown times 100.
        full_range: Whether the axis extends over 0 to 100 points (or from the lowest estimate where
            one is below 0), rather than only over the estimates.
    """
    ends = [
        end
        for estimate in estimates
        for end in (estimate.low, estimate.value, estimate.high)
        if math.isfinite(end)
    ]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    if unit == "points":
        # A score below 0 is worse than guessing.
        below = any(estimate.value < 0 for estimate in estimates)
        floor = max(-1.0, low) if below else 0.0
        low, high = (floor, 1.0) if full_range else (max(floor, low), min(1.0, high))
    if high - low <= 1e-9 * max(1.0, abs(low), abs(high)):
        low, high = (0.0, 1.0) if unit == "points" else (low - 0.5, high + 0.5)
    rough = (high - low) / 4
    size = 10.0 ** math.floor(math.log10(rough))
    # The smallest of 1, 2 or 5 times a power of ten that is not below `rough`.
    step = next(
        (size * k for k in (1, 2, 5) if size * k >= rough * (1 - 1e-9)), size * 10
    )
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    scale = 100 if unit == "points" else 1
    decimals = max(0, -math.floor(math.log10(step * scale) + 1e-9))
    axis = Axis(first * step, last * step, ())
    ticks = [
        (axis.place(i * step), f"{i * step * scale:,.{decimals}f}")
        for i in range(first, last + 1)
    ]
    return Axis(axis.low, axis.high, tuple(ticks))


def bar_of(estimate: Estimate, axis: Axis) -> Bar:
    """Place an estimate on the axis; without an interval, the bar is a point."""
    low = estimate.value if math.isnan(estimate.low) else estimate.low
    high = estimate.value if math.isnan(estimate.high) else estimate.high
    return Bar(axis.place(low), axis.place(high), axis.place(estimate.value))
