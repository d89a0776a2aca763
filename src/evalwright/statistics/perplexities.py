"""Perplexity and bits per byte: a ratio of two sums, with the interval that a ratio of sums deserves.

The mean of the documents' own perplexities is another number, and a worse one: it lets a short odd document weigh as
much as a long one. Here r = -sum(log-likelihood) / sum(count), and its standard error comes from the linearised
ratio (the delta method): residuals -ll_i - r c_i, summed by cluster.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level, t_quantile
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.units import F64, cluster_codes, cluster_ids

_BITS = 1.0 / math.log(2.0)


def perplexity(
    log_likelihoods: npt.ArrayLike,
    counts: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    n_failed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """exp(-sum of log-likelihoods / sum of counts): per token, word or byte, by what `counts` counts.

    `log_likelihoods`: (n,) natural logarithms, one a document, nan = failed (added to `n_failed`); `counts`: (n,)
    tokens, words or bytes of each. The interval is t on the log scale, so it is not symmetric. There are no
    bounds: what failed could have been arbitrarily bad. A document of probability 0 makes the perplexity infinite.
    Raises ValueError for wrong shapes, negative counts, or documents that count nothing at all.
    """
    ratio = _ratio(log_likelihoods, counts, clusters, level)
    value = _exp(ratio.value)
    error = None if ratio.error is None else value * ratio.error
    return _estimate(value, _exp(ratio.low), _exp(ratio.high), error, ratio, n_failed, level)


def bits_per_byte(
    log_likelihoods: npt.ArrayLike,
    byte_counts: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    n_failed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """-sum of log-likelihoods / (sum of UTF-8 bytes x ln 2), comparable across tokenizers.

    Arguments and errors as for `perplexity`.
    """
    ratio = _ratio(log_likelihoods, byte_counts, clusters, level)
    error = None if ratio.error is None else ratio.error * _BITS
    return _estimate(
        ratio.value * _BITS, ratio.low * _BITS, ratio.high * _BITS, error, ratio, n_failed, level
    )


class _Ratio:
    """r = -sum(ll) / sum(count) with its interval, all on the scale of natural logarithms."""

    __slots__ = ("error", "high", "low", "method", "n", "n_clusters", "n_missing", "value")

    def __init__(self, n: int, n_missing: int, n_clusters: int | None) -> None:
        self.n, self.n_missing, self.n_clusters = n, n_missing, n_clusters
        self.value = self.low = self.high = math.nan
        self.error: float | None = None
        self.method = "no interval: nothing was scored"


def _ratio(
    log_likelihoods: npt.ArrayLike, counts: npt.ArrayLike, clusters: npt.ArrayLike | None, level: float
) -> _Ratio:
    check_level(level)
    likelihoods = np.asarray(log_likelihoods, dtype=np.float64)
    lengths = np.asarray(counts, dtype=np.float64)
    if likelihoods.ndim != 1 or likelihoods.shape != lengths.shape:
        raise ValueError(
            "log-likelihoods and counts must be two arrays of the same length, "
            f"not of the shapes {likelihoods.shape} and {lengths.shape}"
        )
    ids = None if clusters is None else cluster_ids(clusters, len(likelihoods))
    there = ~np.isnan(likelihoods)
    likelihoods, lengths, ids = likelihoods[there], lengths[there], None if ids is None else ids[there]
    if not (lengths >= 0).all() or np.isinf(lengths).any():
        raise ValueError("counts must be finite and not negative")
    if len(lengths) and not lengths.sum() > 0:
        raise ValueError("the documents have no tokens, words or bytes at all, so there is no perplexity")
    codes, n_clusters = cluster_codes(ids)
    ratio = _Ratio(len(lengths), int(len(there) - len(lengths)), n_clusters)
    if ratio.n:
        sums = likelihoods if codes is None else np.bincount(codes, weights=likelihoods)
        totals = lengths if codes is None else np.bincount(codes, weights=lengths)
        _fill(ratio, -sums, totals, level)
    return ratio


def _fill(ratio: _Ratio, losses: F64, lengths: F64, level: float) -> None:
    """Value and interval from the loss and the length of every independent unit."""
    size, total = len(losses), float(lengths.sum())
    ratio.value = float(losses.sum()) / total
    what = "document" if ratio.n_clusters is None else "cluster"
    if not math.isfinite(ratio.value):
        ratio.method = "no interval: a document has probability 0"
        return
    if size < 2:
        ratio.method = f"no interval: one {what}"
        return
    residuals = losses - ratio.value * lengths
    error = math.sqrt(float(np.dot(residuals, residuals)) * size / (size - 1)) / total
    if error <= 1e-12 * max(abs(ratio.value), 1e-300):
        ratio.method = f"no interval: {size} {what}s alike, range not known"
        return
    half = t_quantile(0.5 + level / 2, size - 1) * error
    # A log-likelihood of text is at most 0, so r is at least 0: an interval below that would be nonsense.
    ratio.low, ratio.high = max(ratio.value - half, min(0.0, ratio.value)), ratio.value + half
    ratio.error = error
    suffix = "" if ratio.n_clusters is None else f", clustered t (G={size})"
    ratio.method = f"delta method on the log scale{suffix}"


def _estimate(
    value: float, low: float, high: float, error: float | None, ratio: _Ratio, n_failed: int, level: float
) -> Estimate:
    if n_failed < 0:
        raise ValueError(f"n_failed must not be negative, but is {n_failed}")
    return Estimate(
        value=value,
        low=low,
        high=high,
        level=level,
        n=ratio.n,
        n_failed=n_failed + ratio.n_missing,
        n_clusters=ratio.n_clusters,
        standard_error=error,
        method=ratio.method,
    )


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf
