"""Metrics that are a function of sums over items (a corpus BLEU, a mean of means over slices), with an interval over whole units."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level
from evalwright.statistics.bootstrap import Statistic, resampled_interval
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.units import Clusters, cluster_codes, cluster_ids


def of_sums(
    parts: npt.ArrayLike,
    statistic: Statistic,
    *,
    clusters: Clusters = None,
    n_failed: int = 0,
    level: float = 0.95,
    seed: int = 0,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """`statistic` of the sums of parts (n, parts) over items, with its BCa bootstrap over items or clusters.

    limits: of the metric; the interval is cut there. No interval with fewer than two units. What failed has no parts, so it bounds
    nothing. Raises ValueError for arrays that do not fit.
    """
    check_level(level)
    table = np.asarray(parts, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError("parts must be a table of finite numbers (items, parts)")
    n, nan = len(table), math.nan
    if not n:
        return Estimate(nan, nan, nan, level, 0, n_failed, None, None, "no interval: nothing was scored")
    codes, n_clusters = cluster_codes(None if clusters is None else cluster_ids(clusters, n))
    totals = table
    if codes is not None and n_clusters is not None:
        totals = np.stack([np.bincount(codes, weights=one, minlength=n_clusters) for one in table.T], axis=1)
    value = float(statistic(table.sum(axis=0)))
    unit = "items" if codes is None else "clusters"
    if len(totals) < 2 or math.isnan(value):
        return Estimate(
            value, nan, nan, level, n, n_failed, n_clusters, None, f"no interval: one of the {unit}"
        )
    found = resampled_interval(totals, statistic, level=level, seed=seed, unit=unit)
    low, high = max(found.low, limits[0]), min(found.high, limits[1])
    error = found.standard_error or None
    return Estimate(value, low, high, level, n, n_failed, n_clusters, error, found.method)
