"""What a plan needs to know of scores: their variance with limits, and what clusters take from a number of items.

A pilot of thirty items knows a variance only roughly, so every variance here comes with limits:

| scores | limits of the variance |
|---|---|
| right or wrong | p (1 - p) over the interval of the mean p |
| graded | t interval of the mean squared deviation, on the log scale |
| differences of two right-or-wrong scores | those of the discordant share (Wilson), less the difference squared |
| no spread at all | from 0 to what the unlike share that was not excluded may add |

Items of one cluster are alike: n items in clusters of sizes m_g are worth n / deff independent ones, with deff = 1 +
(sum m_g^2 / n - 1) rho, rho the correlation of two items of one cluster (Kish 1965). A sample of a benchmark holds thinner
clusters than the whole, so its own design effect would be too small for the whole: rho is what carries over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import normal_quantile, t_quantile
from evalwright.statistics.intervals import Range, mean_interval, unlike_share
from evalwright.statistics.power import discordant_variance, smallest_visible_difference
from evalwright.statistics.units import Clusters, cluster_codes, cluster_ids, item_units, standard_error


@dataclass(frozen=True, slots=True)
class Limits:
    """A value that was measured, and the limits (at some level) between which it may lie."""

    value: float
    low: float
    high: float


def score_variance(
    values: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    value_range: Range | None = (0.0, 1.0),
    level: float = 0.95,
) -> Limits:
    """The variance of one item's score (the table at the top of this module).

    `values`: (n,) or (n, draws), nan = missing; item means are the units. Limits are nan where fewer than two items, or
    scores without spread in an unknown range, leave them open. Raises ValueError as `mean_interval`.
    """
    units = item_units(values, clusters)
    means, span = units.means, math.inf if value_range is None else value_range[1] - value_range[0]
    most = span * span / 4
    if units.size < 2:
        return Limits(math.nan, 0.0, most if value_range is not None else math.nan)
    if value_range is not None and bool(((means == value_range[0]) | (means == value_range[1])).all()):
        estimate = mean_interval(means, clusters=units.codes, value_range=value_range, level=level)
        shares = [(x - value_range[0]) / span for x in (estimate.value, estimate.low, estimate.high)]
        p, low, high = (min(max(share, 0.0), 1.0) for share in shares)
        ends = low * (1 - low), high * (1 - high)
        top = 0.25 if low <= 0.5 <= high else max(ends)
        return Limits(p * (1 - p) * span * span, min(ends) * span * span, top * span * span)
    squares = (means - means.mean()) ** 2 * (units.n / (units.n - 1))
    value = float(squares.mean())
    error, df = standard_error(squares, units.codes, units.n_clusters)
    if value <= 1e-24 * max(float(np.abs(means).max()), 1e-150) ** 2:
        share = unlike_share(units.size, level)
        return Limits(
            0.0, 0.0, min(most, share * (1 - min(share, 0.5)) * span * span) if span < math.inf else math.nan
        )
    factor = math.exp(min(700.0, t_quantile(0.5 + level / 2, df) * error / value))
    return Limits(min(value, most), value / factor, min(value * factor, most))


def difference_variance(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    difference: float,
    *,
    clusters: Clusters = None,
    value_range: Range | None = (0.0, 1.0),
    level: float = 0.95,
) -> Limits:
    """The variance over items of the difference of two models' scores, if their means differ by `difference`.

    `a`, `b`: (n,) scores of the same items, nan = missing. Right-or-wrong scores: the discordant share, at least
    |difference|, less its square (`power.discordant_variance`); graded ones: the variance of the differences as it was seen.
    """
    differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    if value_range is None:
        return score_variance(differences, clusters=clusters, value_range=None, level=level)
    span = value_range[1] - value_range[0]
    seen = differences[~np.isnan(differences)] / span
    if not bool(np.isin(seen, (-1.0, 0.0, 1.0)).all()):
        both = (-span, span)
        return score_variance(differences, clusters=clusters, value_range=both, level=level)
    share = mean_interval((differences / span) ** 2, clusters=clusters, level=level)
    least = abs(difference) / span
    value, low, high = (
        float(discordant_variance(min(1.0, max(x, least)), least)) * span * span
        if not math.isnan(x)
        else math.nan
        for x in (share.value, share.low, share.high)
    )
    return Limits(value if share.value > 0 else 0.0, low, high)


def least_visible_difference(
    n: float, *, design: float = 1.0, level: float = 0.95, power: float = 0.8
) -> float:
    """The smallest difference that n right-or-wrong items show however seldom two models disagree.

    Models that differ by d disagree on at least that share of the items, so the variance is at least d - d^2, and d >= k / (1 + k)
    with k = (z + z)^2 deff / n. A formula with a smaller discordant share would promise more than there can be.
    """
    k = float(smallest_visible_difference(n, design, level=level, power=power)) ** 2
    return k / (1 + k)


def cluster_weight(clusters: npt.ArrayLike) -> float:
    """sum m_g^2 / n: the design effect if the items of a cluster were all alike; 1 where every item is alone."""
    ids = np.asarray(clusters)
    sizes = np.unique(cluster_ids(ids, len(ids)), return_counts=True)[1]
    return float((sizes.astype(np.float64) ** 2).sum() / len(ids)) if len(ids) else 1.0


def design_effect(correlation: float, weight: float) -> float:
    """1 + (weight - 1) correlation (Kish 1965); `weight` as `cluster_weight` gives it."""
    return 1.0 + (weight - 1.0) * correlation


def cluster_correlation(values: npt.ArrayLike, clusters: npt.ArrayLike, *, level: float = 0.95) -> Limits:
    """The correlation of two items of one cluster, from 0 to 1, with rough limits.

    The mean product of the deviations of all pairs within clusters over the variance, which is what makes the clustered
    standard error larger than the plain one. Limits: +- z / sqrt(pairs), the error where there is no correlation; (nan, 0,
    1) where no cluster has two items or the scores have no spread. Raises ValueError as `mean_interval`.
    """
    units = item_units(values, clusters)
    codes, _ = cluster_codes(units.codes)
    if codes is None or units.n < 2:
        return Limits(math.nan, 0.0, 1.0)
    residuals = units.means - units.means.mean()
    squares = float(np.dot(residuals, residuals))
    sums, sizes = np.bincount(codes, weights=residuals), np.bincount(codes).astype(np.float64)
    pairs = float((sizes * (sizes - 1)).sum()) / 2
    if pairs < 1 or squares <= 1e-24 * units.n * max(float(np.abs(units.means).max()), 1e-150) ** 2:
        return Limits(math.nan, 0.0, 1.0)
    product = (float(np.dot(sums, sums)) - squares) / (2 * pairs)
    found = product / (squares / (units.n - 1))
    error = normal_quantile(0.5 + level / 2) / math.sqrt(pairs)
    low, value, high = (min(1.0, max(0.0, found + sign * error)) for sign in (-1, 0, 1))
    return Limits(value, low, high)
