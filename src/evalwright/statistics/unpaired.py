"""Compares two models on different items: Welch's t and Newcombe's interval.

Where the items are the same, compare them paired instead.

- right or wrong, independent items: score test of two proportions; where it disagrees with the
  interval, by inverting that (Newcombe's hybrid score (1998))
- graded, means of draws, clusters: Welch's t with each side's (clustered) standard error (the same
  t)
- the same where a side has no spread, or t would leave the range: by inverting the interval (hybrid
  of both sides' own intervals)

The hybrid combines the two means' own limits (Zou & Donner 2008): with d the difference, d -
sqrt((a - l_a)^2 + (u_b - b)^2) and d + sqrt((u_a - a)^2 + (b - l_b)^2). With Wilson limits this
is Newcombe's interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import (
    check_level,
    greatest_failing,
    normal_cdf,
    t_quantile,
    t_two_sided,
)
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.intervals import filled, mean_interval
from evalwright.statistics.pairwise import MissingPolicy
from evalwright.statistics.units import Clusters, Range


@dataclass(frozen=True, slots=True)
class UnpairedComparison(Plain):
    """Comparison of model a on its items with model b on others.

    Attributes:
        n_a: scored items of a.
        n_b: scored items of b.
        n_missing_a: items of a without a score; they are left out.
        n_missing_b: items of b without a score.
        mean_a: mean score of a.
        mean_b: mean score of b.
        difference: mean_a - mean_b.
        low: low end of its interval.
        high: high end.
        level: confidence level.
        p_value: two-sided, of no difference.
        test: the name of the test.
        interval_method: how the interval was computed.
        standard_error: of the difference; None where a side has none.
        degrees_of_freedom: Welch-Satterthwaite; None where no t quantile is used.
        worst_low: low end of the interval that holds whatever the missing items would have scored;
            nan where nothing is missing or the range of a score is unknown.
        worst_high: its high end.
        missing_policy: with "worst-case" that interval, and its p-value, replace `low`, `high` and
            `p_value`.
    """

    n_a: int
    n_b: int
    n_missing_a: int
    n_missing_b: int
    mean_a: float
    mean_b: float
    difference: float
    low: float
    high: float
    level: float
    p_value: float
    test: str
    interval_method: str
    standard_error: float | None
    degrees_of_freedom: float | None
    worst_low: float = math.nan
    worst_high: float = math.nan
    missing_policy: MissingPolicy = "scored"


_Side = tuple[npt.ArrayLike, Clusters]
_At = Callable[[float], tuple[Estimate, Estimate]]


class _Tested(NamedTuple):
    """The part of a comparison that its test determines; fields as in `UnpairedComparison`."""

    low: float
    high: float
    p_value: float
    test: str
    interval_method: str
    standard_error: float | None = None
    degrees_of_freedom: float | None = None


def compare_unpaired(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    clusters_a: Clusters = None,
    clusters_b: Clusters = None,
    missing_policy: MissingPolicy = "scored",
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
) -> UnpairedComparison:
    """Compare two independent sets of scores (see the table in this module).

    Args:
        a: (n,) or (n, draws), nan is missing.
        b: likewise, of any length.
        clusters_a: (n,) integers for a; items that share one are not independent.
        clusters_b: the same for b. A cluster that is on both sides makes them dependent, which is
            not detected here.
        missing_policy: "scored" or "worst-case".
        level: confidence level of the interval.
        value_range: the range of a score, None if unknown.

    Raises:
        ValueError: as `mean_interval`.
    """
    check_level(level)
    side_a, side_b, tested = _test_sides(
        (a, clusters_a), (b, clusters_b), level, value_range
    )
    worst_low = worst_high = math.nan
    if (side_a.n_missing or side_b.n_missing) and side_a.n and side_b.n:
        worst = _worst_case(
            tested, (a, clusters_a), (b, clusters_b), level, value_range
        )
        worst_low = worst.low
        worst_high = worst.high
        tested = worst if missing_policy == "worst-case" else tested
    return UnpairedComparison(
        n_a=side_a.n,
        n_b=side_b.n,
        n_missing_a=side_a.n_missing,
        n_missing_b=side_b.n_missing,
        mean_a=side_a.value,
        mean_b=side_b.value,
        difference=side_a.value - side_b.value,
        level=level,
        worst_low=worst_low,
        worst_high=worst_high,
        missing_policy=missing_policy,
        **tested._asdict(),
    )


def _test_sides(
    a: _Side, b: _Side, level: float, value_range: Range | None
) -> tuple[Estimate, Estimate, _Tested]:
    """Compute both means and compare them, on the existing scores."""

    def at(level: float) -> tuple[Estimate, Estimate]:
        side_a, side_b = (
            mean_interval(values, clusters=ids, level=level, value_range=value_range)
            for values, ids in (a, b)
        )
        return side_a, side_b

    side_a, side_b = at(level)
    if side_a.n == 0 or side_b.n == 0:
        none = "none: one side has no score"
        tested = _Tested(math.nan, math.nan, math.nan, none, none)
    elif side_a.method == side_b.method == "Wilson":
        tested = _proportions(side_a, side_b, value_range or (0.0, 1.0))
        if (tested.p_value < 1 - level) != (tested.low > 0 or tested.high < 0):
            # Both are approximations; where they disagree, the p-value that matches the interval is
            # reported.
            tested = tested._replace(
                p_value=_inverted_p_value(side_a, side_b, at),
                test="inverted hybrid interval",
            )
    else:
        tested = _welch_test(side_a, side_b, level, value_range) or _hybrid_test(
            side_a, side_b, at
        )
    return side_a, side_b, tested


def _worst_case(
    scored: _Tested, a: _Side, b: _Side, level: float, value_range: Range | None
) -> _Tested:
    """Compare the sides whatever the missing scores would have been.

    Covers a at the worst with b at the best, and the opposite; the p-value is 1 if they disagree.
    """
    if value_range is None:
        return scored._replace(low=math.nan, high=math.nan, p_value=math.nan)
    least, most = (
        _test_sides(
            (filled(a[0], end_a), a[1]), (filled(b[0], end_b), b[1]), level, value_range
        )[2]
        for end_a, end_b in (value_range, value_range[::-1])
    )
    known_parts = [part for part in (scored, least, most) if not math.isnan(part.low)]
    low = min(part.low for part in known_parts)
    high = max(part.high for part in known_parts)
    sides = {
        (part.low + part.high > 0) - (part.low + part.high < 0) for part in known_parts
    }
    p_value = max(part.p_value for part in known_parts) if len(sides) == 1 else 1.0
    return scored._replace(low=low, high=high, p_value=p_value)


def hybrid_limits(side_a: Estimate, side_b: Estimate) -> Range:
    """Limits of a difference of independent estimates from their own limits (Zou & Donner 2008)."""
    difference = side_a.value - side_b.value
    below = math.hypot(side_a.value - side_a.low, side_b.high - side_b.value)
    above = math.hypot(side_a.high - side_a.value, side_b.value - side_b.low)
    return difference - below, difference + above


def _proportions(side_a: Estimate, side_b: Estimate, value_range: Range) -> _Tested:
    """Test two proportions by the score test.

    Args:
        side_a: the first mean.
        side_b: the second mean.
        value_range: the scores that mean wrong and right.
    """
    bottom = value_range[0]
    span = value_range[1] - value_range[0]
    shared = (
        (side_a.value * side_a.n + side_b.value * side_b.n) / (side_a.n + side_b.n)
        - bottom
    ) / span
    error = span * math.sqrt(
        max(shared * (1 - shared), 0.0) * (1 / side_a.n + 1 / side_b.n)
    )
    difference = side_a.value - side_b.value
    p_value = 2 * normal_cdf(-abs(difference) / error) if error > 0 else 1.0
    spread = [part.standard_error for part in (side_a, side_b)]
    standard_error = (
        None if None in spread else math.hypot(*(e for e in spread if e is not None))
    )
    low, high = hybrid_limits(side_a, side_b)
    return _Tested(
        low,
        high,
        p_value,
        "score test of two proportions",
        "Newcombe hybrid score",
        standard_error,
    )


def _welch_test(
    side_a: Estimate, side_b: Estimate, level: float, value_range: Range | None
) -> _Tested | None:
    """Run Welch's t test; None if a side has no spread or the interval would leave the range."""
    if not side_a.standard_error or not side_b.standard_error:
        return None
    parts = np.array([side_a.standard_error, side_b.standard_error]) ** 2
    degrees = np.array([max(_freedom(part), 1.0) for part in (side_a, side_b)])
    error = math.sqrt(float(parts.sum()))
    freedom = float(parts.sum() ** 2 / (parts**2 / degrees).sum())
    difference = side_a.value - side_b.value
    span = math.inf if value_range is None else value_range[1] - value_range[0]
    # Which test is used must not depend on the level, or an interval of 96% could be shorter than
    # one of 95%.
    if abs(difference) + t_quantile(0.975, freedom) * error > span:
        return None
    half = t_quantile(0.5 + level / 2, freedom) * error
    clustered = side_a.n_clusters is not None or side_b.n_clusters is not None
    name = "clustered Welch t" if clustered else "Welch t"
    low = max(difference - half, -span)
    high = min(difference + half, span)
    p_value = t_two_sided(difference / error, freedom)
    return _Tested(low, high, p_value, name, name, error, freedom)


def _freedom(part: Estimate) -> float:
    """A side's degrees of freedom: those of CR2 for clusters, else n - 1."""
    return part.n - 1.0 if part.degrees_of_freedom is None else part.degrees_of_freedom


def _hybrid_test(side_a: Estimate, side_b: Estimate, at: _At) -> _Tested:
    low, high = hybrid_limits(side_a, side_b)
    if math.isnan(low):
        none = "none: a side without spread, range not known"
        return _Tested(low, high, math.nan, none, none)
    p_value = _inverted_p_value(side_a, side_b, at)
    return _Tested(
        low,
        high,
        p_value,
        "inverted hybrid interval",
        "hybrid of both sides' intervals",
    )


def _inverted_p_value(side_a: Estimate, side_b: Estimate, at: _At) -> float:
    """The p-value that agrees with the hybrid interval: the error rate at which it ends at 0."""
    if side_a.value == side_b.value:
        return 1.0
    sign = 1 if side_a.value > side_b.value else -1

    def excludes_zero(rate: float) -> bool:
        ends = hybrid_limits(*at(1 - 2 * rate))
        return bool(ends[0] > 0 if sign > 0 else ends[1] < 0)

    return 2 * greatest_failing(excludes_zero)
