"""Rates of what should not happen: one minus the share of scores between 0 and 1 that are better when higher."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright.metrics.means import accuracy

if TYPE_CHECKING:
    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate


def hallucination_rate(column: Column, *, level: float = 0.95) -> Estimate:
    """The share of answers that are not consistent with their source; less is better, and scores stay better when higher."""
    found = accuracy(column, level=level)
    # All that failed wrong comes first, which here is the greater one.
    bounds = found.bounds and (1 - found.bounds[0], 1 - found.bounds[1])
    return replace(found, value=1 - found.value, low=1 - found.high, high=1 - found.low, bounds=bounds)
