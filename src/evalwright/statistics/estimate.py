"""One number as the product shows it: value, interval, how many items it rests on, and how it was
made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evalwright.core.plain import Plain, plain_fields

NOTHING_SCORED = "no interval: nothing was scored"


@dataclass(frozen=True, slots=True)
class Estimate(Plain):
    """A point estimate with its interval.

    `n` counts scored items (never draws) and `n_missing` the items without a score through no fault
    of the model, which are not part of `value`. `n_unsure` of the scored items have a score that a
    careful reader might argue with; `unsure_range` is what the value would be if all of these were
    at the worst, and at the best (None where nothing is unsure or the range is not known).
    `n_clusters` is None where every item stands alone. `standard_error` is None where the data show
    none (fewer than two units, or no spread at all), because 0 would claim a certainty that is not
    there. `bounds` hold the value at `level` whatever the missing items would have scored: (low end
    of the interval if all of them were at the worst, high end if all were at the best); None where
    nothing is missing or where the possible range of the values is not known. `value`, `low` and
    `high` are nan where they do not exist. `degrees_of_freedom` are those of the standard error,
    and `effective_clusters` how many clusters of one size the data are worth, both None where items
    stand alone.
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
        """No number. method: why."""
        nan = math.nan
        return cls(nan, nan, nan, level, n, n_missing, n_clusters, None, method)

    @property
    def n_units(self) -> int:
        """Independent units: clusters where there are any, else items."""
        return self.n if self.n_clusters is None else self.n_clusters

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON-ready values, without those that say nothing here."""
        names = ("n_unsure", "unsure_range", "degrees_of_freedom", "effective_clusters")
        return plain_fields(self, [name for name in names if not getattr(self, name)])


def bounds_around(
    points: tuple[float, float], value: float, low: float, high: float
) -> tuple[float, float]:
    """Bounds that hold whatever the missing items would have scored, with sampling error.

    They reach as far beyond `points` as [low, high] reaches from `value`, within 0 to 1.

    Args:
        points: the share with all missing items at the worst, and at the best.
    """
    if math.isnan(value):
        return points
    return max(0.0, points[0] - (value - low)), min(1.0, points[1] + (high - value))
