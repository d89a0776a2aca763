"""The interval of a mean: Wilson, Student's t and their clustered forms, chosen by the scores.

- all at the two ends of the range, every item alone: Wilson (1927)
- the same in clusters, or as repeated draws: Wilson with an effective n and a t quantile (Korn &
  Graubard 1998)
- graded: t, or clustered t; where that would leave the range of the scores, Wilson with an
  effective n
- graded, without any spread: rule of three: the share of unlike units that n alike ones cannot
  exclude
- one unit: the whole range of the scores

Why not t (or the bootstrap) everywhere: near 0 and 1 and with few items it covers far less than it
says (Bowyer, Aitchison & Ivanova 2025); repeated draws of a right-or-wrong answer have the same
trouble, at n = 20 items with four draws and 95% right the t interval covers 80-88%, the effective-n
Wilson interval 97%.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level, normal_quantile, t_quantile
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.units import (
    F64,
    Clusters,
    Range,
    Spread,
    Units,
    at_ends,
    check_range,
    item_units,
    score_matrix,
    standard_error,
)

__all__ = ["Estimate", "mean_interval", "wilson"]

_NAN = (math.nan, math.nan)


def mean_interval(
    values: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    n_missing: int = 0,
    value_range: Range | None = (0.0, 1.0),
    level: float = 0.95,
) -> Estimate:
    """The mean of scores with the interval that suits them (see the table in this module).

    Args:
        values: (n,) scores, or (n, draws), where the units are the item means; nan is missing. An
            item without any score counts as missing.
        clusters: (n,) integers; items that share one are not independent.
        n_missing: further missing items of which nothing is known, not even a cluster.
        value_range: the least and greatest score that an item can get, None if unlimited; then
            there are no bounds, and no interval (nan) where the scores show no spread.
        level: confidence level of the interval.

    Returns:
        The estimate. Its `bounds` hold whatever the missing items would have scored: from the low
        end of the interval if all had the least score, to the high end if all had the greatest.

    Raises:
        ValueError: a wrong shape, a score outside `value_range`, a negative `n_missing`, or a level
            outside (0, 1).
    """
    check_level(level)
    if n_missing < 0:
        raise ValueError(f"n_missing must not be negative, but is {n_missing}")
    units = item_units(values, clusters)
    value = float(units.means.mean()) if units.n else math.nan
    if value_range is not None:
        check_range(units.scores, value_range)
        value = min(max(value, value_range[0]), value_range[1]) if units.n else value
    spread = standard_error(units.means, units.codes, units.n_clusters)
    low, high, error, method = _interval(units, value, spread, value_range, level)
    failed = n_missing + units.n_left_out
    clustered = units.codes is not None and units.size > 1
    estimate = Estimate(
        value=value,
        low=min(low, value),
        high=max(high, value),
        level=level,
        n=units.n,
        n_missing=failed,
        n_clusters=units.n_clusters,
        standard_error=error,
        method=method,
        degrees_of_freedom=spread.freedom if clustered else None,
        effective_clusters=spread.units if clustered else None,
    )
    if not failed or value_range is None:
        return estimate
    values, clusters = _append_failed(values, clusters, n_missing)
    worst, best = (
        mean_interval(
            filled(values, end), clusters=clusters, value_range=value_range, level=level
        )
        for end in value_range
    )
    ends = [
        estimates
        for estimates in (estimate, worst, best)
        if not math.isnan(estimates.low)
    ]
    return replace(
        estimate,
        bounds=(
            min(estimates.low for estimates in ends),
            max(estimates.high for estimates in ends),
        ),
    )


def filled(values: npt.ArrayLike, end: float) -> F64:
    """Replace the scores (items, draws) of every item that has none by `end`."""
    scores = score_matrix(values)
    return np.where(np.isnan(scores).all(axis=1, keepdims=True), end, scores)


def _append_failed(
    values: npt.ArrayLike, clusters: Clusters, n_missing: int
) -> tuple[F64, Clusters]:
    """Append `n_missing` items without a score, each in a cluster of its own."""
    scores = score_matrix(values)
    if not n_missing:
        return scores, clusters
    scores = np.concatenate(
        [scores, np.full((n_missing, max(scores.shape[1], 1)), np.nan)]
    )
    if clusters is not None:
        ids = np.unique(np.asarray(clusters), return_inverse=True)[1]
        clusters = np.concatenate([ids, len(ids) + np.arange(n_missing)])
    return scores, clusters


def wilson(k: float, n: float, level: float = 0.95) -> Range:
    """Wilson score interval (1927) of a proportion, k successes out of n; (0, 1) for n = 0.

    Args:
        k: number of successes.
        n: number of trials.
        level: confidence level.

    Returns:
        Low and high end.

    Raises:
        ValueError: k is not between 0 and n.
    """
    check_level(level)
    if not 0 <= k <= n:
        raise ValueError(f"k must be between 0 and n = {n}, but is {k}")
    return (
        score_interval(k / n, n, normal_quantile(0.5 + level / 2)) if n else (0.0, 1.0)
    )


def score_interval(p: float, size: float, critical: float) -> Range:
    """Wilson's interval around proportion `p` of `size` effective items, with z = `critical`."""
    square = critical * critical / size
    centre = (p + square / 2) / (1 + square)
    half = critical * math.sqrt(p * (1 - p) / size + square / (4 * size)) / (1 + square)
    return max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half))


def effective_score_interval(
    value: float,
    error: float,
    value_range: Range,
    *,
    critical: float,
    most: float,
    without_spread: float,
) -> Range:
    """Wilson's interval with the sample size that a standard error implies (Korn & Graubard 1998).

    n* = p (1 - p) / SE^2, with values rescaled from `value_range` to [0, 1].

    Args:
        value: the mean.
        error: its standard error.
        value_range: the least and greatest possible value.
        critical: the quantile, in place of z.
        most: upper limit of n*.
        without_spread: n* where p is 0 or 1, or the standard error is 0.
    """
    bottom, top = value_range
    span = top - bottom
    p = (value - bottom) / span
    inside = 0.0 < p < 1.0 and error > 0.0
    size = min(most, p * (1 - p) * (span / error) ** 2) if inside else without_spread
    low, high = score_interval(min(max(p, 0.0), 1.0), size, critical)
    return bottom + span * low, bottom + span * high


def logit_interval(value: float, error: float, critical: float) -> Range:
    """Compute value +- critical x error on the logit scale, which keeps it inside (0, 1)."""
    centre = math.log(value / (1 - value))
    reach = critical * error / (value * (1 - value))
    low, high = (0.5 * (1 + math.tanh((centre + side * reach) / 2)) for side in (-1, 1))
    return low, high


def unlike_share(size: float, level: float) -> float:
    """The share of units unlike the rest that a sample of `size` equal ones cannot exclude.

    It is about 3 / size. Solves (1 - u)^(size - 1) = 1 - level. With a value fixed beforehand the
    exponent would be `size`; here the value is read from the data, and the chance that all of them
    agree on *some* value with share at most 1 - u is at most (1 - u)^(size - 1).
    """
    return 1.0 if size <= 1 else -math.expm1(math.log1p(-level) / (size - 1))


def alike_interval(
    value: float, size: float, value_range: Range, level: float
) -> Range:
    """The interval of the mean if `size` units all have the same `value` (rule of three).

    The share of unlike units that could have gone undetected is taken to have the worst, or the
    best, value. Each end is wrong with probability (1 - `level`) / 2 at most, so it is valid for a
    one-sided test too.
    """
    share = unlike_share(size, 0.5 + level / 2)
    return value + share * (value_range[0] - value), value + share * (
        value_range[1] - value
    )


def _interval(
    units: Units, value: float, spread: Spread, value_range: Range | None, level: float
) -> tuple[float, float, float | None, str]:
    """Choose and compute the interval of the mean `value` of `units`.

    Returns:
        Low end, high end, standard error or None, and the method's name.
    """
    if units.n == 0:
        return *_NAN, None, "no interval: nothing was scored"
    if units.size == 1:
        unit_name = "one item" if units.n == 1 else "one cluster"
        if value_range is None:
            return *_NAN, None, f"no interval: {unit_name}"
        return *value_range, None, f"{unit_name}: the whole range"
    error = spread.error
    shown_error = error if error > 0 else None
    if (
        value_range is not None
        and at_ends(units.means, value_range)
        and units.codes is None
    ):
        bottom = value_range[0]
        span = value_range[1] - value_range[0]
        p = min(max((value - bottom) / span, 0.0), 1.0)
        low, high = score_interval(p, units.n, normal_quantile(0.5 + level / 2))
        return bottom + span * low, bottom + span * high, shown_error, "Wilson"
    critical = t_quantile(0.5 + level / 2, max(spread.freedom, 1.0))
    prefix = "" if units.codes is None else "clustered "
    if value_range is not None and at_ends(units.scores, value_range):
        low, high = effective_score_interval(
            value,
            error,
            value_range,
            critical=critical,
            most=units.n_draws,
            without_spread=(
                units.n if value_range[0] < value < value_range[1] else spread.units
            ),
        )
        return low, high, shown_error, f"{prefix}Wilson (effective n)"
    if error == 0.0:
        alike = (
            _NAN
            if value_range is None
            else alike_interval(value, spread.units, value_range, level)
        )
        unit_name = (
            f"{units.size} {'items' if units.codes is None else 'clusters'} alike"
        )
        how = (
            "no interval: {}, range not known"
            if value_range is None
            else "rule of three ({})"
        )
        return *alike, None, how.format(unit_name)
    low = value - critical * error
    high = value + critical * error
    name = "t" if units.codes is None else f"clustered t (G={units.n_clusters})"
    if value_range is None:
        return low, high, shown_error, name
    # Which interval is used must not depend on the level, or one of 96% could be shorter than one
    # of 95%.
    reach = t_quantile(0.975, max(spread.freedom, 1.0)) * error
    if value - reach < value_range[0] or value + reach > value_range[1]:
        low, high = effective_score_interval(
            value,
            error,
            value_range,
            critical=critical,
            most=units.n,
            without_spread=spread.units,
        )
        return low, high, shown_error, f"{prefix}Wilson (effective n)"
    return max(low, value_range[0]), min(high, value_range[1]), shown_error, name
