"""An estimate as it is shown: value, interval, number of items, and the method."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evalwright.core.plain import Plain, plain_fields

NOTHING_SCORED = "no interval: nothing was scored"


@dataclass(frozen=True, slots=True)
class Estimate(Plain):
    """A point estimate with its interval.

    Attributes:
        value: the estimate; nan where it does not exist.
        low: low end of the interval; nan where it does not exist.
        high: its high end.
        level: confidence level.
        n: number of scored items (never draws).
        n_missing: items without a score through no fault of the model; they are not part of
            `value`.
        n_clusters: number of clusters; None where every item is independent.
        standard_error: None where the data show none (fewer than two units, or no spread at all),
            because 0 would claim a certainty that is not there.
        method: how the interval was computed, in words.
        bounds: hold the value at `level` whatever the missing items would have scored: low end of
            the interval if all of them had the worst score, high end if all had the best. None
            where nothing is missing, or the possible range of the values is unknown.
        n_unsure: scored items whose score a careful reader might dispute.
        degrees_of_freedom: of the standard error; None where items are independent.
        effective_clusters: the number of equally large clusters that the data are worth; None where
            items are independent.
        unsure_range: the value if all unsure items had the worst score, and the best; None where
            nothing is unsure or the range is unknown.
    """

    value: float
    low: float
    high: float
    level: float
    n: int
    n_missing: int
    n_clusters: int | None
    standard_error: float | None
    method: str
    bounds: tuple[float, float] | None = None
    n_unsure: int = 0
    degrees_of_freedom: float | None = None
    effective_clusters: float | None = None
    unsure_range: tuple[float, float] | None = None

    @classmethod
    def none(
        cls,
        method: str,
        n_missing: int = 0,
        *,
        level: float = 0.95,
        n: int = 0,
        n_clusters: int | None = None,
    ) -> Estimate:
        """Create an estimate without a number; `method` says why there is none."""
        nan = math.nan
        return cls(nan, nan, nan, level, n, n_missing, n_clusters, None, method)

    @property
    def n_units(self) -> int:
        """The number of independent units: clusters where there are any, else items."""
        return self.n if self.n_clusters is None else self.n_clusters

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values, leaving out optional ones that are empty."""
        names = ("n_unsure", "unsure_range", "degrees_of_freedom", "effective_clusters")
        return plain_fields(self, [name for name in names if not getattr(self, name)])


def bounds_around(
    points: tuple[float, float], value: float, low: float, high: float
) -> tuple[float, float]:
    """Bounds that hold whatever the missing items would have scored, including sampling error.

    They extend as far beyond `points` as [low, high] extends from `value`, within 0 to 1.

    Args:
        points: the share with all missing items at the worst, and at the best.
        value: the share among the scored items.
        low: low end of its interval.
        high: high end.
    """
    if math.isnan(value):
        return points
    return max(0.0, points[0] - (value - low)), min(1.0, points[1] + (high - value))
