"""Power analysis: items needed, differences that can be detected, and the best number of draws.

All formulas are the normal approximation: a difference delta is detected with probability
`power` at `level` if

    n = (z_{1 - alpha/2} + z_power)^2 (omega_d^2 + sigma_A^2 / K_A + sigma_B^2 / K_B) / delta^2

(Miller 2024, "Adding error bars to evals", section on power). omega_d^2 is the variance over
items of the difference of the two models' true scores, sigma^2 the variance of one draw around
its item's score, K the draws per item. For two right-or-wrong models it is the share of items
on which they disagree, which is the variance of a difference if there is none (the score
test's), and at least the difference itself. Variances and differences may be numbers or arrays
that broadcast; results are then arrays. What a completed comparison would have detected
(`pairwise.AllPairs.visible`, `designs.Design`) is the same formula with its own standard error
and quantiles.

A finite benchmark limits n: items beyond its N do not exist, and repeated draws help only down
to omega_d^2 / N.

A pilot of thirty items estimates a variance only roughly, so every variance here comes with
limits:

| scores | limits of the variance |
|---|---|
| right or wrong | p (1 - p) over the interval of the mean p |
| graded | t interval of the mean squared deviation, on the log scale |
| differences of two right-or-wrong scores | those of the discordant share (Wilson) |
| no spread at all | from 0 to the most that undetected unlike items could add |

Items of one cluster are alike: n items in clusters of sizes m_g are worth n / deff independent
ones, with deff = 1 + (sum m_g^2 / n - 1) rho, rho the correlation of two items of one cluster
(Kish 1965). A sample of a benchmark has smaller clusters than the whole, so its own design
effect would be too small for the whole: rho is what carries over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level, normal_quantile, t_quantile
from evalwright.statistics.intervals import mean_interval, unlike_share
from evalwright.statistics.units import (
    F64,
    Clusters,
    Range,
    at_ends,
    cluster_codes,
    cluster_ids,
    item_units,
    standard_error,
)

_COUNTABLE = 2.0**53


def items_for_difference(
    difference: npt.ArrayLike,
    variance: npt.ArrayLike,
    *,
    level: float = 0.95,
    power: float = 0.8,
) -> npt.NDArray[np.int64]:
    """Compute how many items detect `difference` with probability `power`, as whole numbers.

    Args:
        difference: the true difference, a number or an array.
        variance: of one item's difference.
        level: confidence level of the test.
        power: the probability of detection.

    Raises:
        ValueError: a difference of 0, a negative variance, or a level or power outside (0, 1).
    """
    delta = _check_finite(difference, "difference", "0")
    return _round_up_items(
        _critical(level, power) ** 2
        * _check_finite(variance, "variance")
        / (delta * delta)
    )


def smallest_visible_difference(
    n: npt.ArrayLike,
    variance: npt.ArrayLike,
    *,
    level: float = 0.95,
    power: float = 0.8,
) -> F64:
    """Compute the difference that n items detect with probability `power`.

    It is (z + z) sqrt(variance / n), with the quantiles of level and power.

    Args:
        n: number of items, a number or an array.
        variance: of one item's difference.
        level: confidence level of the test.
        power: the probability of detection.

    Raises:
        ValueError: n below 1, a negative variance, or a level or power outside (0, 1).
    """
    items = np.asarray(n, dtype=np.float64)
    if not (items >= 1).all():
        raise ValueError("n must be at least 1")
    return np.asarray(
        _critical(level, power) * np.sqrt(_check_finite(variance, "variance") / items)
    )


def items_for_half_width(
    half_width: npt.ArrayLike, variance: npt.ArrayLike, *, level: float = 0.95
) -> npt.NDArray[np.int64]:
    """Compute how many items fix one mean to +-half_width: z^2 variance / half_width^2."""
    check_level(level)
    width = _check_finite(half_width, "half_width", "0")
    z = normal_quantile(0.5 + level / 2)
    return _round_up_items(
        z * z * _check_finite(variance, "variance") / (width * width)
    )


def best_draws(
    within: float, between: float, *, per_item: float, per_draw: float, most: int
) -> int:
    """Choose the number of draws per item, 1 to `most`, with the least variance for the money.

    The optimum is sqrt(within / between x per_item / per_draw), which minimises (between + within /
    K) (per_item + K per_draw); of the two whole numbers next to it the better one is taken. Without
    a price per item one draw is best, without spread between items `most`.

    Args:
        within: variance of one draw within an item.
        between: variance between items.
        per_item: price of an item, whatever the draws.
        per_draw: price of a draw.
        most: largest number of draws.

    Raises:
        ValueError: negative variances or prices, or `per_draw` = 0.
    """
    finite = all(map(math.isfinite, (within, between, per_item, per_draw)))
    if not finite or min(within, between, per_item) < 0 or per_draw <= 0:
        raise ValueError(
            "within, between and per_item must be finite and not negative, and per_draw"
            " finite and above 0"
        )

    def price(draws: int) -> float:
        return (between + within / draws) * (per_item + draws * per_draw)

    ratio = within * per_item
    exact = math.inf if ratio > 0 else 0.0
    if between > 0:
        exact = math.sqrt(ratio / (between * per_draw))
    low = int(min(max(1.0, math.floor(min(exact, most))), most))
    return min((low, min(low + 1, most)), key=lambda draws: (price(draws), draws))


@dataclass(frozen=True, slots=True)
class Limits:
    """A measured value with the limits of its interval."""

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
    """Estimate the variance of one item's score, with limits (see the table in this module).

    Args:
        values: (n,) or (n, draws), nan is missing; the units are the item means.
        clusters: (n,) integers; items that share one are not independent.
        value_range: the range of a score, None if unknown.
        level: confidence level of the limits.

    Returns:
        The variance. Its limits are nan with fewer than two items, or with scores without spread in
        an unknown range.

    Raises:
        ValueError: as `mean_interval`.
    """
    units = item_units(values, clusters)
    means = units.means
    span = math.inf if value_range is None else value_range[1] - value_range[0]
    most = span * span / 4
    if units.size < 2:
        return Limits(math.nan, 0.0, most if value_range is not None else math.nan)
    if value_range is not None and at_ends(means, value_range):
        estimate = mean_interval(
            means, clusters=units.codes, value_range=value_range, level=level
        )
        shares = [
            (x - value_range[0]) / span
            for x in (estimate.value, estimate.low, estimate.high)
        ]
        p, low, high = (min(max(share, 0.0), 1.0) for share in shares)
        ends = low * (1 - low), high * (1 - high)
        top = 0.25 if low <= 0.5 <= high else max(ends)
        return Limits(
            p * (1 - p) * span * span, min(ends) * span * span, top * span * span
        )
    squares = (means - means.mean()) ** 2 * (units.n / (units.n - 1))
    value = float(squares.mean())
    error, df, _ = standard_error(squares, units.codes, units.n_clusters)
    if value <= 1e-24 * max(float(np.abs(means).max()), 1e-150) ** 2:
        share = unlike_share(units.size, level)
        return Limits(
            0.0,
            0.0,
            (
                min(most, share * (1 - min(share, 0.5)) * span * span)
                if span < math.inf
                else math.nan
            ),
        )
    factor = math.exp(
        min(700.0, t_quantile(0.5 + level / 2, max(df, 1.0)) * error / value)
    )
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
    """Estimate the variance over items of the difference of two models' scores.

    For right-or-wrong scores it is the discordant share, at least |difference|; for graded ones the
    observed variance of the differences.

    Args:
        a: (n,), scores, nan is missing.
        b: (n,), scores of the same items.
        difference: by how much the means are assumed to differ.
        clusters: (n,) integers; items that share one are not independent.
        value_range: the range of a score, None if unknown.
        level: confidence level of the limits.
    """
    differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    if value_range is None:
        return score_variance(
            differences, clusters=clusters, value_range=None, level=level
        )
    span = value_range[1] - value_range[0]
    seen = differences[~np.isnan(differences)] / span
    if not bool(np.isin(seen, (-1.0, 0.0, 1.0)).all()):
        difference_range = (-span, span)
        return score_variance(
            differences, clusters=clusters, value_range=difference_range, level=level
        )
    share = mean_interval((differences / span) ** 2, clusters=clusters, level=level)
    least = abs(difference) / span
    value, low, high = (
        min(1.0, max(x, least)) * span * span if not math.isnan(x) else math.nan
        for x in (share.value, share.low, share.high)
    )
    return Limits(value if share.value > 0 else 0.0, low, high)


def least_visible_difference(
    n: float, *, design: float = 1.0, level: float = 0.95, power: float = 0.8
) -> float:
    """The least difference that n right-or-wrong items can detect, however rarely models disagree.

    Models whose means differ by d disagree on at least that share of the items, so the variance is
    at least d - d^2, and d >= k / (1 + k) with k = (z + z)^2 deff / n. A formula with a smaller
    discordant share would promise the impossible.
    """
    k = float(smallest_visible_difference(n, design, level=level, power=power)) ** 2
    return k / (1 + k)


def cluster_weight(clusters: npt.ArrayLike) -> float:
    """Compute sum m_g^2 / n, the design effect if the items of a cluster were identical.

    It is 1 where every item is independent.
    """
    ids = np.asarray(clusters)
    sizes = np.unique(cluster_ids(ids, len(ids)), return_counts=True)[1]
    return float((sizes.astype(np.float64) ** 2).sum() / len(ids)) if len(ids) else 1.0


def design_effect(correlation: float, weight: float) -> float:
    """Compute the design effect 1 + (weight - 1) correlation (Kish 1965).

    `weight` comes from `cluster_weight`.
    """
    return 1.0 + (weight - 1.0) * correlation


def cluster_correlation(
    values: npt.ArrayLike, clusters: npt.ArrayLike, *, level: float = 0.95
) -> Limits:
    """Estimate the correlation of two items of one cluster, from 0 to 1, with rough limits.

    It is the mean product of the deviations of all pairs within clusters over the variance, which
    is what makes the clustered standard error larger than the plain one. Limits: +- z /
    sqrt(pairs), the error where there is no correlation; (nan, 0, 1) where no cluster has two items
    or the scores have no spread. Raises ValueError as `mean_interval`.
    """
    units = item_units(values, clusters)
    codes, _ = cluster_codes(units.codes)
    if codes is None or units.n < 2:
        return Limits(math.nan, 0.0, 1.0)
    residuals = units.means - units.means.mean()
    squares = float(np.dot(residuals, residuals))
    sums = np.bincount(codes, weights=residuals)
    sizes = np.bincount(codes).astype(np.float64)
    pairs = float((sizes * (sizes - 1)).sum()) / 2
    if (
        pairs < 1
        or squares
        <= 1e-24 * units.n * max(float(np.abs(units.means).max()), 1e-150) ** 2
    ):
        return Limits(math.nan, 0.0, 1.0)
    product = (float(np.dot(sums, sums)) - squares) / (2 * pairs)
    correlation = product / (squares / (units.n - 1))
    error = normal_quantile(0.5 + level / 2) / math.sqrt(pairs)
    low, value, high = (
        min(1.0, max(0.0, correlation + sign * error)) for sign in (-1, 0, 1)
    )
    return Limits(value, low, high)


def _critical(level: float, power: float) -> float:
    check_level(level)
    check_level(power, "power")
    return normal_quantile(0.5 + level / 2) + normal_quantile(power)


def _check_finite(value: npt.ArrayLike, name: str, barred: str = "negative") -> F64:
    array = np.asarray(value, dtype=np.float64)
    if not (np.isfinite(array) & (array != 0 if barred == "0" else array >= 0)).all():
        raise ValueError(f"{name} must be finite and not {barred}")
    return array


def _round_up_items(items: npt.ArrayLike) -> npt.NDArray[np.int64]:
    exact = np.asarray(items, dtype=np.float64)
    if not (exact < _COUNTABLE).all():
        raise ValueError(
            "so small a difference or half width needs more items than can be counted;"
            " give a larger one"
        )
    return np.asarray(
        np.ceil(exact - 1e-9 * exact), dtype=np.int64
    )  # rounding errors must not add an item: 400.0000000001 items are 400
