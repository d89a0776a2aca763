"""Metrics that are a function of sums over items (a corpus BLEU, a mean of means over slices), with an interval over whole units."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level
from evalwright.statistics.bootstrap import Statistic, resampled_interval, share_interval
from evalwright.statistics.estimate import NOTHING_SCORED, Estimate
from evalwright.statistics.intervals import alike_interval
from evalwright.statistics.units import Clusters, cluster_codes, cluster_ids


def of_sums(
    parts: npt.ArrayLike,
    statistic: Statistic,
    *,
    clusters: Clusters = None,
    n_failed: int = 0,
    level: float = 0.95,
    seed: int = 0,
    scale: float = 1.0,
    greatest: float | None = None,
    worth: int | None = None,
) -> Estimate:
    """`statistic` of the sums of parts (n, parts) over items, with its BCa bootstrap over items or clusters.

    scale: where the metric's usual range ends that begins at 0; greatest: where it ends for sure, None where it may go on beyond or lies on both
    sides of 0. Where the data show no spread, the interval is that of as many alike units, `worth` of them where given. What
    failed has no parts, so it bounds nothing. Raises ValueError for arrays that do not fit.
    """
    check_level(level)
    table = np.asarray(parts, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError("parts must be a table of finite numbers (items, parts)")
    n, nan = len(table), math.nan
    if not n:
        return Estimate.none(NOTHING_SCORED, n_failed, level=level)
    codes, n_clusters = cluster_codes(None if clusters is None else cluster_ids(clusters, n))
    totals = table
    if codes is not None and n_clusters is not None:
        totals = np.stack([np.bincount(codes, weights=one, minlength=n_clusters) for one in table.T], axis=1)
    value = float(statistic(table.sum(axis=0)))
    unit = "items" if codes is None else "clusters"
    size = len(totals) if worth is None else worth
    if math.isnan(value):
        low, high, error, method = nan, nan, None, "no number"
    elif greatest is not None:
        low, high, error, method = share_interval(
            totals, value / scale, lambda sums: statistic(sums) / scale, worth=size, most=n, level=level, seed=seed, unit=unit
        )  # fmt: skip
        low, high, error = low * scale, high * scale, None if error is None else error * scale
    elif len(totals) < 2:
        low, high, error, method = nan, nan, None, f"no interval: one of the {unit}"
    else:
        found = resampled_interval(totals, statistic, level=level, seed=seed, unit=unit)
        low, high, error, method = found.low, found.high, found.standard_error or None, found.method
        if error is None:
            low, high = alike_interval(value, size, (min(value, 0.0), max(value, scale)), level)
            method = f"rule of three ({unit} alike, n = {size})"
    return Estimate(value, low, high, level, n, n_failed, n_clusters, error, method)
