"""Accuracy among what was attempted, and SimpleQA's F, which rewards neither guessing nor silence.

With C right, A attempted and N asked, accuracy given attempted is C / A and F is the harmonic mean of C / N and C / A, which is
2 C / (N + A) (Wei et al. 2024, arXiv:2411.04368). Both are ratios of sums: their standard error is that of the linearised ratio
(residuals by item or cluster), and the interval is t on the logit scale, which keeps it inside (0, 1).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level, t_quantile
from evalwright.statistics.estimate import NOTHING_SCORED, Estimate, bounds_around
from evalwright.statistics.intervals import logit_interval, mean_interval, unlike_share
from evalwright.statistics.units import F64, I64, Clusters, cluster_codes, cluster_ids, cluster_spread


def attempted_accuracy(
    right: npt.ArrayLike,
    attempted: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_failed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """The share of right answers among attempted ones.

    `right`, `attempted`: (n,) or (n, draws) of 0 to 1, nan = missing in both. `n` counts items with an attempt, and with
    several draws an item counts by its attempts. Wilson where every item stands alone and has one draw. `bounds`: what
    failed had all been attempted, and wrong or right. Raises ValueError for wrong shapes, values outside 0 to 1 or
    right answers that were not attempted.
    """
    check_level(level)
    good, tried, ids, n_missing = _read(right, attempted, clusters)
    failed = n_failed + n_missing
    if good.shape[1] == 1:
        kept = tried[:, 0] > 0
        return mean_interval(
            good[kept, 0], clusters=None if ids is None else ids[kept], n_failed=failed, level=level
        )
    sums, sizes = np.nansum(good, axis=1), np.nansum(tried, axis=1)
    kept = sizes > 0
    found = _ratio(sums[kept], sizes[kept], None if ids is None else ids[kept], failed, level, False)
    if not failed:
        return found
    hits = found.value * found.n if found.n else 0.0
    points = hits / (found.n + failed), (hits + failed) / (found.n + failed)
    return replace(found, bounds=bounds_around(points, found.value, found.low, found.high))


def attempted_f(
    right: npt.ArrayLike,
    attempted: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_failed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """SimpleQA's F: the harmonic mean of the share that is right and the share of attempted answers that is right.

    Arguments and errors as for `attempted_accuracy`. `n` counts all scored items. `bounds`: what failed had all been
    attempted, and wrong or right.
    """
    check_level(level)
    good, tried, ids, n_missing = _read(right, attempted, clusters)
    failed = n_failed + n_missing
    there = ~np.isnan(good)
    draws = there.sum(axis=1)
    # Means over draws: an item counts the same, however many of its draws came back.
    hits, tries = np.nansum(good, axis=1) / draws, np.nansum(tried, axis=1) / draws
    found = _ratio(2 * hits, 1 + tries, ids, failed, level, True)
    if not failed:
        return found
    top, bottom = float(2 * hits.sum()), float((1 + tries).sum()) + 2 * failed
    points = top / bottom, (top + 2 * failed) / bottom
    return replace(found, bounds=bounds_around(points, found.value, found.low, found.high))


def _read(
    right: npt.ArrayLike, attempted: npt.ArrayLike, clusters: Clusters
) -> tuple[F64, F64, I64 | None, int]:
    """Both as (n, draws) of the items that have a score, their clusters, and how many items have none."""
    good, tried = np.asarray(right, dtype=np.float64), np.asarray(attempted, dtype=np.float64)
    if good.shape != tried.shape or good.ndim not in (1, 2):
        raise ValueError(
            f"right and attempted must be arrays of one shape, (n,) or (n, draws), not {good.shape} and {tried.shape}"
        )
    good, tried = (values.reshape(len(values), -1 if values.size else 1) for values in (good, tried))
    if (np.isnan(good) != np.isnan(tried)).any():
        raise ValueError("right and attempted must be missing in the same places")
    for values in (good, tried):
        if ((values < 0) | (values > 1)).any():
            raise ValueError("right and attempted must be between 0 and 1")
    if (good > tried).any():
        raise ValueError("an answer that was not attempted cannot be right")
    ids = None if clusters is None else cluster_ids(clusters, len(good))
    kept = ~np.isnan(good).all(axis=1)
    return good[kept], tried[kept], None if ids is None else ids[kept], int((~kept).sum())


def _ratio(top: F64, bottom: F64, ids: I64 | None, failed: int, level: float, is_f: bool) -> Estimate:
    """sum(top) / sum(bottom), between 0 and 1, with its interval; one row an item."""
    n = len(top)
    if not n:
        return Estimate.none(NOTHING_SCORED, failed, level=level)
    codes, n_clusters = cluster_codes(ids)
    total = float(bottom.sum())
    value = float(top.sum()) / total
    pulls = (top - value * bottom) / total
    units = pulls if codes is None else np.bincount(codes, weights=pulls)
    size, what = len(units), "items" if codes is None else "clusters"

    def estimate(low: float, high: float, error: float | None, method: str) -> Estimate:
        return Estimate(value, min(low, value), max(high, value), level, n, failed, n_clusters, error, method)

    if size < 2:
        return estimate(0.0, 1.0, None, f"one {what.removesuffix('s')}: the whole range")
    error, freedom = math.sqrt(float(np.dot(units, units)) * size / (size - 1)), size - 1.0
    if codes is not None:
        sizes = np.bincount(codes, weights=n * bottom / total).astype(np.float64)
        squares = np.float64(np.dot(pulls, pulls) * n**2)
        error, freedom = (
            float(one)
            for one in cluster_spread(np.asarray(units * n, np.float64), sizes, np.float64(n), squares)[:2]
        )
    if error < 1e-12 or not 0.0 < value < 1.0:
        share = unlike_share(size, 0.5 + level / 2)
        # A share s of right answers among all makes an F of 2 s / (1 + s) where nothing else is attempted.
        up, down = (2 * share / (1 + share), share) if is_f else (share, share)
        return estimate(
            value * (1 - down), value + (1 - value) * up, None, f"rule of three ({size:,} {what} alike)"
        )
    low, high = logit_interval(value, error, t_quantile(0.5 + level / 2, max(freedom, 1.0)))
    return estimate(low, high, error, f"linearised ratio over {what}, logit t")
