"""Metrics that are functions of sums over items, with intervals over whole units.

Examples are a corpus BLEU, a mean of means over slices, and ratios.

Pooled shares (precision, recall and F1 of citations): an item may have no citation or ten, so
the mean of the items' own precisions is another number, and undefined where an item has none.
The pooled share is the sum of what is right over the sum of what there is, a ratio of sums;
items (or clusters of them) are resampled whole, BCa as in `bootstrap`. Where that interval
reaches an end of the range, or no resample changes the share, Wilson's interval with an
effective n or the rule of three is used instead (`bootstrap.share_interval`).

Accuracy among attempted answers, and SimpleQA's F, which rewards neither guessing nor silence:
with C right, A attempted and N asked, accuracy given attempted is C / A and F is the harmonic
mean of C / N and C / A, which is 2 C / (N + A) (Wei et al. 2024, arXiv:2411.04368). Both are
ratios of sums: their standard error is that of the linearised ratio (residuals by item or
cluster), and the interval is t on the logit scale, which keeps it inside (0, 1).

Perplexity and bits per byte: the mean of the documents' own perplexities is another number, and
a worse one: it lets a short odd document weigh as much as a long one. Here r =
-sum(log-likelihood) / sum(count), and its standard error comes from the linearised ratio (the
delta method): residuals -ll_i - r c_i, summed by cluster.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level, t_quantile
from evalwright.statistics.bootstrap import (
    Statistic,
    resampled_interval,
    share_interval,
)
from evalwright.statistics.estimate import NOTHING_SCORED, Estimate, bounds_around
from evalwright.statistics.intervals import (
    alike_interval,
    logit_interval,
    mean_interval,
    unlike_share,
)
from evalwright.statistics.units import (
    F64,
    I64,
    Clusters,
    cluster_codes,
    cluster_ids,
    cluster_spread,
    kept_codes,
)


def estimate_of_sums(
    parts: npt.ArrayLike,
    statistic: Statistic,
    *,
    clusters: Clusters = None,
    n_missing: int = 0,
    level: float = 0.95,
    seed: int = 0,
    scale: float = 1.0,
    greatest: float | None = None,
    effective_units: int | None = None,
) -> Estimate:
    """Estimate a function of the sums of parts over items, with a BCa bootstrap interval.

    Failed items have no parts, so there are no bounds.

    Args:
        parts: (n, parts), the parts of each item.
        statistic: maps sums (..., parts) to the metric (...).
        clusters: (n,) integers; items that share one are not independent.
        n_missing: number of failed items.
        level: confidence level of the interval.
        seed: seeds the bootstrap.
        scale: the upper end of the metric's usual range, which begins at 0.
        greatest: the upper end that it cannot exceed, None if it has none or can be negative.
        effective_units: the number of equal units assumed where the data show no spread.

    Raises:
        ValueError: arrays that do not fit.
    """
    check_level(level)
    table = np.asarray(parts, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError("parts must be a table of finite numbers (items, parts)")
    n = len(table)
    nan = math.nan
    if not n:
        return Estimate.none(NOTHING_SCORED, n_missing, level=level)
    totals, n_clusters, unit = _unit_totals(table, clusters)
    value = float(statistic(table.sum(axis=0)))
    size = len(totals) if effective_units is None else effective_units
    if math.isnan(value):
        low = nan
        high = nan
        error = None
        method = "no number"
    elif greatest is not None:
        low, high, error, method = share_interval(
            totals,
            value / scale,
            lambda sums: statistic(sums) / scale,
            effective_units=size,
            most=n,
            level=level,
            seed=seed,
            unit=unit,
        )
        low = low * scale
        high = high * scale
        error = None if error is None else error * scale
    elif len(totals) < 2:
        low = nan
        high = nan
        error = None
        method = f"no interval: one of the {unit}"
    else:
        resampled = resampled_interval(
            totals, statistic, level=level, seed=seed, unit=unit
        )
        low = resampled.low
        high = resampled.high
        error = resampled.standard_error or None
        method = resampled.method
        if error is None:
            low, high = alike_interval(
                value, size, (min(value, 0.0), max(value, scale)), level
            )
            method = f"rule of three ({unit} alike, n = {size})"
    return Estimate(value, low, high, level, n, n_missing, n_clusters, error, method)


def _unit_totals(parts: F64, clusters: Clusters) -> tuple[F64, int | None, str]:
    """Sum parts (n, parts) by unit.

    Also returns the number of clusters, and the name of the units.
    """
    codes, n_clusters = cluster_codes(
        None if clusters is None else cluster_ids(clusters, len(parts))
    )
    if codes is None:
        return parts, None, "items"
    totals = [
        np.bincount(codes, weights=column, minlength=n_clusters or 0)
        for column in parts.T
    ]
    return np.stack(totals, axis=1), n_clusters, "clusters"


# -- pooled shares ---------------------------------------------------------------------


def pooled_share(
    right: npt.ArrayLike,
    total: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_missing: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The pooled share sum(right) / sum(total) over items, in [0, 1].

    Args:
        right: (n,) counts or mean counts, 0 <= right <= total.
        total: (n,) counts or mean counts.
        clusters: (n,) integers; items that share one are not independent.
        n_missing: items that are in neither; their counts are unknown, so there are no bounds.
        level: confidence level of the interval.
        seed: seeds the bootstrap.

    Returns:
        The estimate; nan where `total` is 0 throughout.

    Raises:
        ValueError: arrays that do not fit.
    """
    parts = _count_table((right, total), ("right", "total"))
    return _pool(parts, _share, clusters, n_missing, level, seed)


def pooled_f1(
    supporting: npt.ArrayLike,
    cited: npt.ArrayLike,
    supported: npt.ArrayLike,
    claims: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_missing: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Pooled F1: the harmonic mean of pooled precision and pooled recall.

    Precision is supporting / cited, recall is supported / claims. F1 is 0 where one of them is 0,
    or where claims are made and nothing is cited; nan where there is neither claim nor citation.
    Other arguments as for `pooled_share`.

    Args:
        supporting: (n,), citations that support their claim.
        cited: (n,), all citations.
        supported: (n,), claims with a supporting citation.
        claims: (n,), all claims that need one.
    """
    parts = _count_table(
        (supporting, cited, supported, claims),
        ("supporting", "cited", "supported", "claims"),
    )
    return _pool(parts, f1_of_sums, clusters, n_missing, level, seed)


def _share(sums: F64) -> F64:
    return _quotient(sums[..., 0], sums[..., 1])


def f1_of_sums(sums: F64) -> F64:
    """Compute F1 from sums (..., 4) of supporting, cited, supported and claims."""
    precision = _quotient(sums[..., 0], sums[..., 1])
    recall = _quotient(sums[..., 2], sums[..., 3])
    return _quotient(2 * precision * recall, precision + recall)


def _quotient(numerator: F64, denominator: F64) -> F64:
    """Divide, with 0 where the denominator is 0 (a resample may have nothing to count)."""
    quotient: F64 = np.divide(
        numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0
    )
    return quotient


def _count_table(columns: tuple[npt.ArrayLike, ...], names: tuple[str, ...]) -> F64:
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    for array, name in zip(arrays, names, strict=True):
        if array.ndim != 1 or array.shape != arrays[0].shape:
            raise ValueError(
                f"{' and '.join(names)} must be arrays of one length, but {name} has"
                f" {array.shape}"
            )
        if not np.isfinite(array).all() or (array < 0).any():
            raise ValueError(f"{name} must contain finite counts of at least 0")
    for part_index, whole_index in zip(
        range(0, len(arrays), 2), range(1, len(arrays), 2), strict=True
    ):
        if (arrays[part_index] > arrays[whole_index] * (1 + 1e-12)).any():
            raise ValueError(
                f"{names[part_index]} must not be greater than {names[whole_index]}"
            )
    return np.stack(arrays, axis=1)


def _pool(
    parts: F64,
    statistic: Statistic,
    clusters: Clusters,
    n_missing: int,
    level: float,
    seed: int,
) -> Estimate:
    check_level(level)
    if n_missing < 0:
        raise ValueError(f"n_missing must not be negative, but is {n_missing}")
    totals, n_clusters, unit = _unit_totals(parts, clusters)
    sums = parts.sum(axis=0)
    # Units with nothing to count carry no information about a share.
    holding = totals[totals[:, 1::2].any(axis=1)]
    if not len(holding):
        none = "no number: there is nothing to share"
        return Estimate.none(
            none, n_missing, level=level, n=len(parts), n_clusters=n_clusters
        )
    value = float(statistic(sums))
    low, high, error, method = share_interval(
        holding,
        value,
        statistic,
        effective_units=len(holding),
        most=float(sums[1::2].max()),
        level=level,
        seed=seed,
        unit=unit,
        prefix=f"pooled over {unit}: ",
    )
    return Estimate(
        value, low, high, level, len(parts), n_missing, n_clusters, error, method
    )


# -- accuracy among attempted answers -------------------------------------------------


def attempted_accuracy(
    right: npt.ArrayLike,
    attempted: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_missing: int = 0,
    level: float = 0.95,
) -> Estimate:
    """The share of right answers among attempted ones.

    With several draws an item counts by its attempts. Wilson where items are independent and have
    one draw.

    Args:
        right: (n,) or (n, draws) of 0 to 1, nan is missing.
        attempted: likewise, missing in the same places.
        clusters: (n,) integers; items that share one are not independent.
        n_missing: further items without a score.
        level: confidence level of the interval.

    Returns:
        The estimate; `n` counts items with an attempt, `bounds` assume that the missing answers had
        all been attempted, and wrong or right.

    Raises:
        ValueError: wrong shapes, values outside 0 to 1, or right answers that were not attempted.
    """
    check_level(level)
    good, tried, ids, n_unread = _read_attempts(right, attempted, clusters)
    failed = n_missing + n_unread
    if good.shape[1] == 1:
        has_attempt = tried[:, 0] > 0
        return mean_interval(
            good[has_attempt, 0],
            clusters=None if ids is None else ids[has_attempt],
            n_missing=failed,
            level=level,
        )
    sums = np.nansum(good, axis=1)
    sizes = np.nansum(tried, axis=1)
    has_attempt = sizes > 0
    estimate = _ratio_estimate(
        sums[has_attempt],
        sizes[has_attempt],
        None if ids is None else ids[has_attempt],
        failed,
        level,
        False,
    )
    if not failed:
        return estimate
    hits = estimate.value * estimate.n if estimate.n else 0.0
    points = hits / (estimate.n + failed), (hits + failed) / (estimate.n + failed)
    return replace(
        estimate,
        bounds=bounds_around(points, estimate.value, estimate.low, estimate.high),
    )


def attempted_f(
    right: npt.ArrayLike,
    attempted: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_missing: int = 0,
    level: float = 0.95,
) -> Estimate:
    """SimpleQA's F: the harmonic mean of accuracy and accuracy given attempted.

    Arguments and errors as for `attempted_accuracy`. `n` counts all scored items, `bounds` assume
    that the missing answers had all been attempted, and wrong or right.
    """
    check_level(level)
    good, tried, ids, n_unread = _read_attempts(right, attempted, clusters)
    failed = n_missing + n_unread
    has_value = ~np.isnan(good)
    draws = has_value.sum(axis=1)
    # Means over draws: an item counts the same, however many of its draws have a score.
    hits = np.nansum(good, axis=1) / draws
    tries = np.nansum(tried, axis=1) / draws
    estimate = _ratio_estimate(2 * hits, 1 + tries, ids, failed, level, True)
    if not failed:
        return estimate
    top = float(2 * hits.sum())
    bottom = float((1 + tries).sum()) + 2 * failed
    points = top / bottom, (top + 2 * failed) / bottom
    return replace(
        estimate,
        bounds=bounds_around(points, estimate.value, estimate.low, estimate.high),
    )


def _read_attempts(
    right: npt.ArrayLike, attempted: npt.ArrayLike, clusters: Clusters
) -> tuple[F64, F64, I64 | None, int]:
    """Check both arrays; returns them as (n, draws) for the scored items.

    The other results are the clusters of these items, and how many items have no score.
    """
    good = np.asarray(right, dtype=np.float64)
    tried = np.asarray(attempted, dtype=np.float64)
    if good.shape != tried.shape or good.ndim not in (1, 2):
        raise ValueError(
            "right and attempted must be arrays of one shape, (n,) or (n, draws), not"
            f" {good.shape} and {tried.shape}"
        )
    good, tried = (
        values.reshape(len(values), -1 if values.size else 1)
        for values in (good, tried)
    )
    if (np.isnan(good) != np.isnan(tried)).any():
        raise ValueError("right and attempted must be missing in the same places")
    for values in (good, tried):
        if ((values < 0) | (values > 1)).any():
            raise ValueError("right and attempted must be between 0 and 1")
    if (good > tried).any():
        raise ValueError("an answer that was not attempted cannot be right")
    ids = None if clusters is None else cluster_ids(clusters, len(good))
    has_score = ~np.isnan(good).all(axis=1)
    return (
        good[has_score],
        tried[has_score],
        None if ids is None else ids[has_score],
        int((~has_score).sum()),
    )


def _ratio_estimate(
    top: F64, bottom: F64, ids: I64 | None, failed: int, level: float, is_f: bool
) -> Estimate:
    """Estimate sum(top) / sum(bottom), between 0 and 1, with its interval; one row per item."""
    n = len(top)
    if not n:
        return Estimate.none(NOTHING_SCORED, failed, level=level)
    codes, n_clusters = cluster_codes(ids)
    total = float(bottom.sum())
    value = float(top.sum()) / total
    pulls = (top - value * bottom) / total
    units = pulls if codes is None else np.bincount(codes, weights=pulls)
    size = len(units)
    unit_name = "items" if codes is None else "clusters"

    def estimate(low: float, high: float, error: float | None, method: str) -> Estimate:
        return Estimate(
            value,
            min(low, value),
            max(high, value),
            level,
            n,
            failed,
            n_clusters,
            error,
            method,
        )

    if size < 2:
        return estimate(
            0.0, 1.0, None, f"one {unit_name.removesuffix('s')}: the whole range"
        )
    error = math.sqrt(float(np.dot(units, units)) * size / (size - 1))
    freedom = size - 1.0
    if codes is not None:
        sizes = np.bincount(codes, weights=n * bottom / total).astype(np.float64)
        squares = np.float64(np.dot(pulls, pulls) * n**2)
        error, freedom = (
            float(number)
            for number in cluster_spread(
                np.asarray(units * n, np.float64), sizes, np.float64(n), squares
            )[:2]
        )
    if error < 1e-12 or not 0.0 < value < 1.0:
        share = unlike_share(size, 0.5 + level / 2)
        # If the failed items are all attempted, a share s of right answers among all gives F = 2 s
        # / (1 + s).
        up, down = (2 * share / (1 + share), share) if is_f else (share, share)
        return estimate(
            value * (1 - down),
            value + (1 - value) * up,
            None,
            f"rule of three ({size:,} {unit_name} alike)",
        )
    low, high = logit_interval(
        value, error, t_quantile(0.5 + level / 2, max(freedom, 1.0))
    )
    return estimate(low, high, error, f"linearised ratio over {unit_name}, logit t")


# -- perplexities and bits per byte ----------------------------------------------------


_BITS = 1.0 / math.log(2.0)


def perplexity(
    log_likelihoods: npt.ArrayLike,
    counts: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_missing: int = 0,
    level: float = 0.95,
) -> Estimate:
    """Perplexity exp(-sum of log-likelihoods / sum of counts): per token, word or byte.

    The interval is t on the log scale, so it is not symmetric. There are no bounds, because a
    failed document could be arbitrarily bad. A document of probability 0 makes the perplexity
    infinite.

    Args:
        log_likelihoods: (n,) natural logarithms, one per document; nan is failed (added to
            `n_missing`).
        counts: (n,), tokens, words or bytes of each document.
        clusters: (n,) integers; documents that share one are not independent.
        n_missing: further failed documents.
        level: confidence level of the interval.

    Raises:
        ValueError: wrong shapes, negative counts, or documents without any length.
    """
    log_estimate = _log_ratio(log_likelihoods, counts, clusters, n_missing, level)
    value = _exp_or_inf(log_estimate.value)
    low = _exp_or_inf(log_estimate.low)
    high = _exp_or_inf(log_estimate.high)
    error = (
        None
        if log_estimate.standard_error is None
        else value * log_estimate.standard_error
    )
    return replace(log_estimate, value=value, low=low, high=high, standard_error=error)


def bits_per_byte(
    log_likelihoods: npt.ArrayLike,
    byte_counts: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_missing: int = 0,
    level: float = 0.95,
) -> Estimate:
    """Bits per byte: -sum of log-likelihoods / (sum of UTF-8 bytes x ln 2), for any tokenizer.

    Arguments and errors as for `perplexity`.
    """
    log_estimate = _log_ratio(log_likelihoods, byte_counts, clusters, n_missing, level)
    error = (
        None
        if log_estimate.standard_error is None
        else log_estimate.standard_error * _BITS
    )
    value = log_estimate.value * _BITS
    low = log_estimate.low * _BITS
    high = log_estimate.high * _BITS
    return replace(log_estimate, value=value, low=low, high=high, standard_error=error)


def _log_ratio(
    log_likelihoods: npt.ArrayLike,
    counts: npt.ArrayLike,
    clusters: Clusters,
    n_missing: int,
    level: float,
) -> Estimate:
    """Estimate r = -sum(ll) / sum(count) with its interval, all in natural logarithms."""
    check_level(level)
    if n_missing < 0:
        raise ValueError(f"n_missing must not be negative, but is {n_missing}")
    likelihoods = np.asarray(log_likelihoods, dtype=np.float64)
    lengths = np.asarray(counts, dtype=np.float64)
    if likelihoods.ndim != 1 or likelihoods.shape != lengths.shape:
        raise ValueError(
            "log-likelihoods and counts must be two arrays of the same length, "
            f"not of the shapes {likelihoods.shape} and {lengths.shape}"
        )
    has_likelihood = ~np.isnan(likelihoods)
    likelihoods = likelihoods[has_likelihood]
    lengths = lengths[has_likelihood]
    if not (lengths >= 0).all() or np.isinf(lengths).any():
        raise ValueError("counts must be finite and not negative")
    if len(lengths) and not lengths.sum() > 0:
        raise ValueError(
            "the documents have no tokens, words or bytes at all, so there is no"
            " perplexity"
        )
    failed = n_missing + int(len(has_likelihood) - len(lengths))
    if not len(lengths):
        return Estimate.none(NOTHING_SCORED, failed, level=level)
    codes, n_clusters = kept_codes(clusters, has_likelihood)
    losses = -likelihoods
    totals = lengths
    if codes is not None:
        losses, totals = (
            np.bincount(codes, weights=part).astype(np.float64)
            for part in (losses, totals)
        )
    value = float(losses.sum()) / float(totals.sum())
    unit = "documents" if codes is None else "clusters"
    low, high, error, method = _log_interval(value, losses, totals, level, unit)
    return Estimate(
        value, low, high, level, len(lengths), failed, n_clusters, error, method
    )


def _log_interval(
    value: float, losses: F64, lengths: F64, level: float, unit: str
) -> tuple[float, float, float | None, str]:
    """Compute the interval of a ratio from each unit's loss and length.

    Returns:
        Low end, high end, standard error and method.
    """
    size = len(losses)
    if not math.isfinite(value):
        return math.nan, math.nan, None, "no interval: a document has probability 0"
    if size < 2:
        return math.nan, math.nan, None, f"no interval: one {unit.removesuffix('s')}"
    residuals = losses - value * lengths
    # A long document pulls the ratio towards itself, which makes its residual too small: CR2
    # corrects for that with the shares of the total length.
    total = np.float64(lengths.sum())
    error, freedom = (
        float(number)
        for number in cluster_spread(residuals, lengths, total, np.float64(0.0))[:2]
    )
    if error <= 1e-12 * max(abs(value), 1e-300):
        return (
            math.nan,
            math.nan,
            None,
            f"no interval: {size} {unit} alike, range not known",
        )
    half = t_quantile(0.5 + level / 2, max(freedom, 1.0)) * error
    suffix = f", clustered t (G={size})" if unit == "clusters" else ", t"
    # A log-likelihood of text is at most 0, so r is at least 0, and the interval is cut there.
    return (
        max(value - half, min(0.0, value)),
        value + half,
        error,
        f"delta method{suffix}",
    )


def _exp_or_inf(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf
