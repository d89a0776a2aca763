"""Shares of what items hold several of: precision, recall and F1 of citations, pooled over all items, with intervals.

An item may hold no citation or ten, so the mean of the items' own precisions is another number, and undefined where an item has
none. The pooled share is the sum of what is right over the sum of what there is, a ratio of sums; items (or clusters of
them) are resampled whole, BCa as in `bootstrap`. Where that interval reaches an end of the range, or no resample changes the
share, Wilson's interval of effective n or the rule of three takes its place (`bootstrap.share_interval`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level
from evalwright.statistics.bootstrap import Statistic, share_interval
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.units import F64, Clusters, cluster_codes, cluster_ids


def pooled_share(
    right: npt.ArrayLike,
    total: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_failed: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """sum(right) / sum(total) over items, in [0, 1]; nan where there is nothing to share.

    right, total: (n,) counts or mean counts, 0 <= right <= total. clusters: (n,) integers. n_failed: items that are in neither; what
    they would have held is not known, so there are no bounds. Raises ValueError for arrays that do not fit.
    """
    parts = _counts((right, total), ("right", "total"))
    return _pooled(parts, _share, clusters, n_failed, level, seed)


def pooled_f1(
    supporting: npt.ArrayLike,
    cited: npt.ArrayLike,
    supported: npt.ArrayLike,
    claims: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_failed: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The harmonic mean of pooled precision (supporting / cited) and pooled recall (supported / claims).

    0 where one of them is 0, or where claims are made and nothing is cited; nan where there is neither claim nor citation. Arguments
    as for `pooled_share`.
    """
    parts = _counts((supporting, cited, supported, claims), ("supporting", "cited", "supported", "claims"))
    return _pooled(parts, f1_of_sums, clusters, n_failed, level, seed)


def _share(sums: F64) -> F64:
    return _ratio(sums[..., 0], sums[..., 1])


def f1_of_sums(sums: F64) -> F64:
    """The harmonic mean of precision and recall of sums (..., 4): supporting, cited, supported, claims."""
    precision, recall = _ratio(sums[..., 0], sums[..., 1]), _ratio(sums[..., 2], sums[..., 3])
    return _ratio(2 * precision * recall, precision + recall)


def _ratio(numerator: F64, denominator: F64) -> F64:
    """A ratio, 0 where the denominator is 0 (a resample may hold nothing)."""
    out: F64 = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
    return out


def _counts(columns: tuple[npt.ArrayLike, ...], names: tuple[str, ...]) -> F64:
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    for array, name in zip(arrays, names, strict=True):
        if array.ndim != 1 or array.shape != arrays[0].shape:
            raise ValueError(
                f"{' and '.join(names)} must be arrays of one length, but {name} has {array.shape}"
            )
        if not np.isfinite(array).all() or (array < 0).any():
            raise ValueError(f"{name} must contain finite counts of at least 0")
    for part, whole in zip(range(0, len(arrays), 2), range(1, len(arrays), 2), strict=True):
        if (arrays[part] > arrays[whole] * (1 + 1e-12)).any():
            raise ValueError(f"{names[part]} must not be greater than {names[whole]}")
    return np.stack(arrays, axis=1)


def _pooled(
    parts: F64, statistic: Statistic, clusters: Clusters, n_failed: int, level: float, seed: int
) -> Estimate:
    check_level(level)
    if n_failed < 0:
        raise ValueError(f"n_failed must not be negative, but is {n_failed}")
    ids = None if clusters is None else cluster_ids(clusters, len(parts))
    codes, n_clusters = cluster_codes(ids)
    totals = parts
    if codes is not None and n_clusters is not None:
        totals = np.stack(
            [np.bincount(codes, weights=column, minlength=n_clusters) for column in parts.T], axis=1
        )
    unit = "items" if codes is None else "clusters"
    sums = parts.sum(axis=0)
    # Units that hold nothing at all carry no information about a share.
    holding = totals[totals[:, 1::2].any(axis=1)]
    if not len(holding):
        none = "no number: there is nothing to share"
        return Estimate.none(none, n_failed, level=level, n=len(parts), n_clusters=n_clusters)
    value = float(statistic(sums))
    low, high, error, method = share_interval(
        holding,
        value,
        statistic,
        worth=len(holding),
        most=float(sums[1::2].max()),
        level=level,
        seed=seed,
        unit=unit,
        prefix=f"pooled over {unit}: ",
    )
    return Estimate(value, low, high, level, len(parts), n_failed, n_clusters, error, method)
