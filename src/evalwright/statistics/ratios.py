"""A ratio of two totals over items, such as dollars for each right answer."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import t_quantile
from evalwright.statistics.estimate import NOTHING_SCORED, Estimate
from evalwright.statistics.units import Clusters, cluster_codes

FEWEST_UNITS = 2


def ratio_of_totals(
    numerators: npt.ArrayLike,
    denominators: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Estimate:
    """Estimate sum(numerators) / sum(denominators) of items that were drawn at random.

    The interval is that of the logarithm of the ratio, linearised (delta method), with a t
    quantile. It covers the choice of items.

    Args:
        numerators: (n,) numbers of at least 0; nan is missing.
        denominators: (n,) likewise; an item that misses either counts for neither.
        clusters: (n,) integers; items that share one are not independent.
        level: confidence level of the interval.

    Returns:
        The estimate. It has no number if the denominators add up to 0.
    """
    top = np.asarray(numerators, dtype=np.float64)
    bottom = np.asarray(denominators, dtype=np.float64)
    has_both = ~(np.isnan(top) | np.isnan(bottom))
    n_missing = int((~has_both).sum())
    top = top[has_both]
    bottom = bottom[has_both]
    n = len(top)
    if not n:
        return Estimate.none(NOTHING_SCORED, n_missing, level=level)
    total = float(bottom.sum())
    if total <= 0:
        return Estimate.none(
            "no number: the denominator is 0", n_missing, level=level, n=n
        )
    ids = None if clusters is None else np.asarray(clusters)[has_both]
    codes, n_clusters = cluster_codes(ids)
    value = float(top.sum()) / total

    def estimate(low: float, high: float, error: float | None, method: str) -> Estimate:
        return Estimate(
            value, low, high, level, n, n_missing, n_clusters, error, method
        )

    if value <= 0:
        return estimate(math.nan, math.nan, None, "no interval: the numerator is 0")
    pulls = top / top.sum() - bottom / total
    units = pulls if codes is None else np.bincount(codes, weights=pulls)
    size = len(units)
    if size < FEWEST_UNITS:
        return estimate(math.nan, math.nan, None, "no interval: one unit")
    log_error = math.sqrt(float(np.dot(units, units)) * size / (size - 1))
    if log_error < 1e-12:
        return estimate(math.nan, math.nan, None, "no interval: all items are alike")
    half_width = t_quantile(0.5 + level / 2, size - 1) * log_error
    unit_name = "items" if codes is None else "clusters"
    return estimate(
        value * math.exp(-half_width),
        value * math.exp(half_width),
        value * log_error,
        f"ratio of totals over {unit_name}, log delta t",
    )
