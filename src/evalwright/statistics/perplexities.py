"""Perplexity and bits per byte: a ratio of two sums, with the interval that a ratio of sums deserves.

The mean of the documents' own perplexities is another number, and a worse one: it lets a short odd document weigh as
much as a long one. Here r = -sum(log-likelihood) / sum(count), and its standard error comes from the linearised
ratio (the delta method): residuals -ll_i - r c_i, summed by cluster.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level, t_quantile
from evalwright.statistics.estimate import NOTHING_SCORED, Estimate
from evalwright.statistics.units import F64, Clusters, cluster_spread, kept_codes

_BITS = 1.0 / math.log(2.0)


def perplexity(
    log_likelihoods: npt.ArrayLike,
    counts: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_failed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """exp(-sum of log-likelihoods / sum of counts): per token, word or byte, by what `counts` counts.

    `log_likelihoods`: (n,) natural logarithms, one a document, nan = failed (added to `n_failed`); `counts`: (n,)
    tokens, words or bytes of each. The interval is t on the log scale, so it is not symmetric. There are no
    bounds: what failed could have been arbitrarily bad. A document of probability 0 makes the perplexity infinite.
    Raises ValueError for wrong shapes, negative counts, or documents that count nothing at all.
    """
    found = _ratio(log_likelihoods, counts, clusters, n_failed, level)
    value, error = _exp(found.value), found.standard_error
    low, high = _exp(found.low), _exp(found.high)
    return replace(
        found, value=value, low=low, high=high, standard_error=None if error is None else value * error
    )


def bits_per_byte(
    log_likelihoods: npt.ArrayLike,
    byte_counts: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_failed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """-sum of log-likelihoods / (sum of UTF-8 bytes x ln 2), comparable across tokenizers.

    Arguments and errors as for `perplexity`.
    """
    found = _ratio(log_likelihoods, byte_counts, clusters, n_failed, level)
    error = None if found.standard_error is None else found.standard_error * _BITS
    value, low, high = found.value * _BITS, found.low * _BITS, found.high * _BITS
    return replace(found, value=value, low=low, high=high, standard_error=error)


def _ratio(
    log_likelihoods: npt.ArrayLike, counts: npt.ArrayLike, clusters: Clusters, n_failed: int, level: float
) -> Estimate:
    """r = -sum(ll) / sum(count) with its interval, all on the scale of natural logarithms."""
    check_level(level)
    if n_failed < 0:
        raise ValueError(f"n_failed must not be negative, but is {n_failed}")
    likelihoods = np.asarray(log_likelihoods, dtype=np.float64)
    lengths = np.asarray(counts, dtype=np.float64)
    if likelihoods.ndim != 1 or likelihoods.shape != lengths.shape:
        raise ValueError(
            "log-likelihoods and counts must be two arrays of the same length, "
            f"not of the shapes {likelihoods.shape} and {lengths.shape}"
        )
    there = ~np.isnan(likelihoods)
    likelihoods, lengths = likelihoods[there], lengths[there]
    if not (lengths >= 0).all() or np.isinf(lengths).any():
        raise ValueError("counts must be finite and not negative")
    if len(lengths) and not lengths.sum() > 0:
        raise ValueError("the documents have no tokens, words or bytes at all, so there is no perplexity")
    failed = n_failed + int(len(there) - len(lengths))
    if not len(lengths):
        return Estimate.none(NOTHING_SCORED, failed, level=level)
    codes, n_clusters = kept_codes(clusters, there)
    losses, totals = -likelihoods, lengths
    if codes is not None:
        losses, totals = (np.bincount(codes, weights=part).astype(np.float64) for part in (losses, totals))
    value = float(losses.sum()) / float(totals.sum())
    unit = "documents" if codes is None else "clusters"
    low, high, error, method = _interval(value, losses, totals, level, unit)
    return Estimate(value, low, high, level, len(lengths), failed, n_clusters, error, method)


def _interval(
    value: float, losses: F64, lengths: F64, level: float, unit: str
) -> tuple[float, float, float | None, str]:
    """(low, high, standard error, method) of the ratio `value`, from the loss and the length of every unit."""
    size = len(losses)
    if not math.isfinite(value):
        return math.nan, math.nan, None, "no interval: a document has probability 0"
    if size < 2:
        return math.nan, math.nan, None, f"no interval: one {unit.removesuffix('s')}"
    residuals = losses - value * lengths
    # A long document pulls the ratio towards itself, which its residual then hides: CR2 with the shares of the whole length.
    total = np.float64(lengths.sum())
    error, freedom = (float(one) for one in cluster_spread(residuals, lengths, total, np.float64(0.0))[:2])
    if error <= 1e-12 * max(abs(value), 1e-300):
        return math.nan, math.nan, None, f"no interval: {size} {unit} alike, range not known"
    half = t_quantile(0.5 + level / 2, max(freedom, 1.0)) * error
    suffix = f", clustered t (G={size})" if unit == "clusters" else ", t"
    # A log-likelihood of text is at most 0, so r is at least 0: an interval below that would be nonsense.
    return max(value - half, min(0.0, value)), value + half, error, f"delta method{suffix}"


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf
