"""The bootstrap for metrics that are not means: whole units are resampled, never rows of a cluster.

A metric like macro-F1 is a function of sums (of true positives, of gold and of predicted
labels). So a resample needs no data, only weights: `multinomial weights @ totals of each unit`
gives the sums of a thousand resamples in one product. Units with equal totals are drawn
together, so a million items in ten classes cost what a hundred cells cost. Intervals are BCa
(Efron 1987) with the small-sample expansion of Hesterberg (2015).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from evalwright.statistics._quantiles import normal_cdf, normal_quantile, t_quantile
from evalwright.statistics.intervals import alike_interval, effective_score_interval
from evalwright.statistics.units import F64, I64

DRAWS = 2000
_CHUNK = 4_000_000  # weights in memory at a time: 32 MB
_WORK = 40_000_000  # weights in all; more would take seconds longer without a better interval

Statistic = Callable[[F64], F64]
"""A metric as a function of sums: maps (..., parts) to (...)."""


@dataclass(frozen=True, slots=True)
class Resampled:
    """An interval by resampling; `standard_error` is 0 where no resample changes the metric."""

    low: float
    high: float
    standard_error: float
    method: str


def resampled_interval(
    totals: F64,
    statistic: Statistic,
    *,
    counts: I64 | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
    unit: str = "clusters",
) -> Resampled:
    """The BCa interval of `statistic(sum of totals over units)`, by resampling units.

    With so many distinct units that resampling would take seconds, the jackknife's standard error
    and a t quantile are used and named: at that size the two agree.

    Args:
        totals: (rows, parts), the sums of each unit.
        statistic: maps sums (..., parts) to the metric (...).
        counts: (rows,), how many units have each row; one each if None.
        level: confidence level of the interval.
        draws: number of resamples.
        seed: seeds the resampling.
        unit: what the units are called in the method's name.

    Raises:
        ValueError: fewer than two units.
    """
    repeats = np.ones(len(totals), dtype=np.int64) if counts is None else counts
    size = int(repeats.sum())
    if size < 2:
        raise ValueError(f"at least two {unit} are needed to resample them, not {size}")
    total = totals.T @ repeats.astype(np.float64)
    value = float(statistic(total))
    left_out = statistic(total - totals)
    if (
        size if _mostly_distinct(len(totals), size) else 4 * len(totals)
    ) * draws > _WORK:
        centre = float(np.dot(repeats, left_out)) / size
        error = math.sqrt(
            float(np.dot(repeats, (left_out - centre) ** 2)) * (size - 1) / size
        )
        half = t_quantile(0.5 + level / 2, size - 1) * error
        return Resampled(
            value - half, value + half, error, f"jackknife over {unit}, t (G={size})"
        )
    rng = np.random.default_rng(seed)
    replicates = np.concatenate(
        [statistic(sums) for sums in _resampled_sums(totals, repeats, draws, rng)]
    )
    low, high = _bca(replicates, value, left_out, repeats, level)
    error = float(replicates.std(ddof=1))
    if error <= 1e-12 * max(abs(value), 1e-300):
        error = 0.0
    return Resampled(
        min(low, value),
        max(high, value),
        error,
        f"BCa bootstrap over {unit}, {draws} draws",
    )


def share_interval(
    totals: F64,
    value: float,
    statistic: Statistic,
    *,
    counts: I64 | None = None,
    effective_units: int,
    most: float,
    level: float,
    seed: int,
    unit: str,
    prefix: str = "",
) -> tuple[float, float, float | None, str]:
    """The interval of a metric in [0, 1], by resampling where that can be trusted.

    If the resampled interval reaches an end of the range, or no resample changes the metric, too
    few errors were seen. Then Wilson's interval with an effective n, or the rule of three, is used
    instead.

    Args:
        totals: (rows, parts), the sums of each unit.
        value: the metric.
        statistic: maps sums (..., parts) to the metric (...).
        counts: (rows,), how many units have each row; one each if None.
        effective_units: the number of units assumed where the data show no spread.
        most: upper limit of the effective n.
        level: confidence level of the interval.
        seed: seeds the resampling.
        unit: what the units are called in the method's name.
        prefix: goes before the method's name.

    Returns:
        Low end, high end, standard error or None, and the method's name.
    """
    size = len(totals) if counts is None else int(counts.sum())
    if size == 1:
        return 0.0, 1.0, None, f"one {unit.removesuffix('s')}: the whole range"
    drawn = resampled_interval(
        totals, statistic, counts=counts, level=level, seed=seed, unit=unit
    )
    if drawn.standard_error == 0.0:
        low, high = alike_interval(value, effective_units, (0.0, 1.0), level)
        return (
            low,
            high,
            None,
            f"rule of three ({unit} alike, effective n = {effective_units})",
        )
    if drawn.low <= 0.0 or drawn.high >= 1.0:
        critical = t_quantile(0.5 + level / 2, size - 1)
        low, high = effective_score_interval(
            value,
            drawn.standard_error,
            (0.0, 1.0),
            critical=critical,
            most=most,
            without_spread=effective_units,
        )
        kind = "" if unit == "items" else "clustered "
        return low, high, drawn.standard_error, f"{kind}Wilson (effective n)"
    return drawn.low, drawn.high, drawn.standard_error, f"{prefix}{drawn.method}"


def collapse(rows: I64) -> tuple[I64, I64]:
    """Find the distinct entries of an integer array (n,), and how often each occurs.

    Takes O(n) time for small codes.
    """
    most = int(rows.max()) + 1 if len(rows) else 0
    if most > 4 * len(rows) + 1024:
        names, repeats = np.unique(rows, return_counts=True)
        return names, repeats.astype(np.int64)
    occurrences = np.bincount(rows, minlength=most)
    names = np.flatnonzero(occurrences)
    return names.astype(np.int64), occurrences[names].astype(np.int64)


def _mostly_distinct(rows: int, size: int) -> bool:
    # Drawing one multinomial cell costs about four times as much as drawing one index.
    return size <= 4 * rows


def _resampled_sums(
    totals: F64, repeats: I64, draws: int, rng: np.random.Generator
) -> Iterator[F64]:
    """Iterate over the sums of `draws` resamples, in chunks of shape (chunk, parts)."""
    rows = len(totals)
    size = int(repeats.sum())
    chunk = max(1, _CHUNK // max(rows, size if _mostly_distinct(rows, size) else rows))
    owner = (
        np.repeat(np.arange(rows), repeats) if _mostly_distinct(rows, size) else None
    )
    for start in range(0, draws, chunk):
        n_draws = min(chunk, draws - start)
        if owner is None:
            weights = rng.multinomial(size, repeats / size, size=n_draws)
        else:  # the same distribution, by counting how often each unit was drawn
            drawn = owner[rng.integers(0, size, size=(n_draws, size))]
            drawn += (np.arange(n_draws) * rows)[:, None]
            weights = np.bincount(drawn.ravel(), minlength=n_draws * rows).reshape(
                n_draws, rows
            )
        yield weights.astype(np.float64) @ totals


def _bca(
    replicates: F64, value: float, left_out: F64, repeats: I64, level: float
) -> tuple[float, float]:
    """Bias-corrected and accelerated (BCa) percentiles of the replicates (Efron 1987)."""
    size = int(repeats.sum())
    below = float(np.mean(replicates < value) + 0.5 * np.mean(replicates == value))
    edge = 0.5 / len(replicates)
    bias = normal_quantile(min(max(below, edge), 1 - edge))
    pull = np.dot(repeats, left_out) / size - left_out
    spread = float(np.dot(repeats, pull**2))
    acceleration = (
        float(np.dot(repeats, pull**3)) / (6 * spread**1.5) if spread > 0 else 0.0
    )
    reach = math.sqrt(size / (size - 1)) * t_quantile(0.5 + level / 2, size - 1)
    ends = []
    for z in (bias - reach, bias + reach):
        shrink = 1 - acceleration * z
        # Beyond the pole of the correction formula the percentile is the end of the distribution.
        end = 0.0 if z < 0 else 1.0
        if shrink > 0:
            end = normal_cdf(bias + z / shrink)
        ends.append(end)
    low, high = np.quantile(replicates, ends)
    return float(low), float(high)
