"""Two models on different items: Welch's t and Newcombe's interval. Where the items are the same, compare them paired.

| scores | test | interval |
|---|---|---|
| right or wrong, every item alone | score test of two proportions; where it disagrees with the interval, by inverting that | Newcombe's hybrid score (1998) |
| graded, means of draws, clusters | Welch's t with each side's (clustered) standard error | the same t |
| the same where a side has no spread, or t would leave the range | by inverting the interval | hybrid of both sides' own intervals |

The hybrid takes the two means' own limits (Zou & Donner 2008): with d the difference, d - sqrt((a - l_a)^2 + (u_b - b)^2)
and d + sqrt((u_a - a)^2 + (b - l_b)^2). With Wilson limits this is Newcombe's interval.

`all_differences`: all pairs of models, paired where they have items in common, as independent samples where not. The error is shared out by pairs (Bonferroni between the two kinds): of P pairs, each unpaired one has its interval at alpha / P,
and all paired ones together have theirs at what is left, by one shared resample (`simultaneous.py`). So all intervals hold
together with the level that was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
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
from evalwright.statistics.pairwise import Bools, checked_missing
from evalwright.statistics.simultaneous import DRAWS, SimultaneousDifferences, simultaneous_differences
from evalwright.statistics.units import F64, I64, Clusters, Range


@dataclass(frozen=True, slots=True)
class UnpairedComparison(Plain):
    """Model a on its items against model b on others. `difference` is mean_a - mean_b, [`low`, `high`] its interval.

    `n_failed_*` items have no score: the interval and the p-value hold whatever they would have been (nan where the range of a score
    is not known), the means, `difference` and [`scored_low`, `scored_high`] are those of the scored ones. `standard_error` is None where a side has none;
    `degrees_of_freedom` (Welch-Satterthwaite) where no t quantile is used.
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
    scored_low: float
    scored_high: float


_Side = tuple[npt.ArrayLike, Clusters]
_At = Callable[[float], tuple[Estimate, Estimate]]


class _Tested(NamedTuple):
    """The part of a comparison that its test makes; fields as there."""

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
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
) -> UnpairedComparison:
    """Compare two independent sets of scores (the table at the top of this module).

    `a`, `b`: (n,) or (n, draws), nan = failed, of any lengths. `clusters_a`, `clusters_b`: integers (n,) of each side;
    a cluster that is on both sides makes them dependent, which this cannot see. Raises ValueError as `mean_interval`.
    """
    check_level(level)
    one, two, tested = _tested((a, clusters_a), (b, clusters_b), level, value_range)
    scored_low, scored_high = tested.low, tested.high
    if (one.n_missing or two.n_missing) and one.n and two.n:
        tested = _filled(tested, (a, clusters_a), (b, clusters_b), level, value_range)
    return UnpairedComparison(
        n_a=one.n,
        n_b=two.n,
        n_missing_a=one.n_missing,
        n_missing_b=two.n_missing,
        mean_a=one.value,
        mean_b=two.value,
        difference=one.value - two.value,
        level=level,
        scored_low=scored_low,
        scored_high=scored_high,
        **tested._asdict(),
    )


def _tested(
    a: _Side, b: _Side, level: float, value_range: Range | None
) -> tuple[Estimate, Estimate, _Tested]:
    """Both means and their comparison on the scores that are there."""

    def at(level: float) -> tuple[Estimate, Estimate]:
        one, two = (
            mean_interval(values, clusters=ids, level=level, value_range=value_range)
            for values, ids in (a, b)
        )
        return one, two

    one, two = at(level)
    if one.n == 0 or two.n == 0:
        none = "none: one side has no score"
        tested = _Tested(math.nan, math.nan, math.nan, none, none)
    elif one.method == two.method == "Wilson":
        tested = _proportions(one, two, value_range or (0.0, 1.0))
        if (tested.p_value < 1 - level) != (tested.low > 0 or tested.high < 0):
            # Both are approximations; where they disagree the interval's own p-value is the one beside it.
            tested = tested._replace(p_value=_inverted(one, two, at), test="inverted hybrid interval")
    else:
        tested = _welch(one, two, level, value_range) or _hybrid(one, two, at)
    return one, two, tested


def _filled(scored: _Tested, a: _Side, b: _Side, level: float, value_range: Range | None) -> _Tested:
    """The comparison whatever the failed scores would have been: over one with those of a at the worst and of b at the best, and
    one the other way round; p is 1 where they disagree."""
    if value_range is None:
        return scored._replace(low=math.nan, high=math.nan, p_value=math.nan)
    least, most = (
        _tested((filled(a[0], one), a[1]), (filled(b[0], other), b[1]), level, value_range)[2]
        for one, other in (value_range, value_range[::-1])
    )
    every = [part for part in (scored, least, most) if not math.isnan(part.low)]
    low, high = min(part.low for part in every), max(part.high for part in every)
    sides = {(part.low + part.high > 0) - (part.low + part.high < 0) for part in every}
    p_value = max(part.p_value for part in every) if len(sides) == 1 else 1.0
    return scored._replace(low=low, high=high, p_value=p_value)


def hybrid_limits(one: Estimate, two: Estimate) -> Range:
    """Limits of a difference of independent estimates from their own (formula at the top; Zou & Donner 2008)."""
    difference = one.value - two.value
    below = math.hypot(one.value - one.low, two.high - two.value)
    above = math.hypot(one.high - one.value, two.value - two.low)
    return difference - below, difference + above


def _proportions(one: Estimate, two: Estimate, value_range: Range) -> _Tested:
    """`value_range`: the scores of wrong and right; the test is one of their shares, whatever they are."""
    bottom, span = value_range[0], value_range[1] - value_range[0]
    shared = ((one.value * one.n + two.value * two.n) / (one.n + two.n) - bottom) / span
    error = span * math.sqrt(max(shared * (1 - shared), 0.0) * (1 / one.n + 1 / two.n))
    difference = one.value - two.value
    p_value = 2 * normal_cdf(-abs(difference) / error) if error > 0 else 1.0
    spread = [part.standard_error for part in (one, two)]
    known = None if None in spread else math.hypot(*(e for e in spread if e is not None))
    low, high = hybrid_limits(one, two)
    return _Tested(low, high, p_value, "score test of two proportions", "Newcombe hybrid score", known)


def _welch(one: Estimate, two: Estimate, level: float, value_range: Range | None) -> _Tested | None:
    """None where a side has no spread or the t interval would leave what is possible."""
    if not one.standard_error or not two.standard_error:
        return None
    parts = np.array([one.standard_error, two.standard_error]) ** 2
    degrees = np.array([max(_freedom(part), 1.0) for part in (one, two)])
    error = math.sqrt(float(parts.sum()))
    freedom = float(parts.sum() ** 2 / (parts**2 / degrees).sum())
    difference = one.value - two.value
    span = math.inf if value_range is None else value_range[1] - value_range[0]
    # Which test it is does not depend on the level, else an interval of 96% could be the shorter one.
    if abs(difference) + t_quantile(0.975, freedom) * error > span:
        return None
    half = t_quantile(0.5 + level / 2, freedom) * error
    clustered = one.n_clusters is not None or two.n_clusters is not None
    name = "clustered Welch t" if clustered else "Welch t"
    low, high = max(difference - half, -span), min(difference + half, span)
    p_value = t_two_sided(difference / error, freedom)
    return _Tested(low, high, p_value, name, name, error, freedom)


def _freedom(part: Estimate) -> float:
    """Those of CR2 for clusters, else n - 1."""
    return part.n - 1.0 if part.degrees_of_freedom is None else part.degrees_of_freedom


def _hybrid(one: Estimate, two: Estimate, at: _At) -> _Tested:
    low, high = hybrid_limits(one, two)
    if math.isnan(low):
        none = "none: a side without spread, range not known"
        return _Tested(low, high, math.nan, none, none)
    p_value = _inverted(one, two, at)
    return _Tested(low, high, p_value, "inverted hybrid interval", "hybrid of both sides' intervals")


def _inverted(one: Estimate, two: Estimate, at: _At) -> float:
    """The error rate at which the hybrid interval ends at 0."""
    if one.value == two.value:
        return 1.0
    sign = 1 if one.value > two.value else -1

    def excludes_zero(rate: float) -> bool:
        ends = hybrid_limits(*at(1 - 2 * rate))
        return bool(ends[0] > 0 if sign > 0 else ends[1] < 0)

    return 2 * greatest_failing(excludes_zero)


# -- simultaneous unpaired -----------------------------------------------------------------------------------


def all_differences(
    scores: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    missing: npt.ArrayLike | None = None,
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
    draws: int = DRAWS,
    seed: int = 0,
) -> SimultaneousDifferences:
    """`simultaneous_differences`, and pairs without a common item compared as independent samples (`compare_unpaired`).

    The arguments and errors are those of `simultaneous_differences`. `n` and `units` stay 0 for an unpaired pair. A pair that has
    a cluster in common but no item is not independent, and keeps no answer (nan), as one does where a model has no score.
    """
    rows = np.asarray(scores, dtype=np.float64)
    codes = None if clusters is None else np.asarray(clusters, dtype=np.int64)
    lost = checked_missing(missing, rows)

    def paired(level: float) -> SimultaneousDifferences:
        return simultaneous_differences(
            rows, codes, missing=lost, level=level, value_range=value_range, draws=draws, seed=seed
        )

    whole = paired(level)
    asked = lost | ~np.isnan(rows)
    apart = _apart(asked, codes)
    if not apart:
        return whole
    pairs = len(rows) * (len(rows) - 1) // 2
    alpha = 1 - level
    if len(apart) < pairs:
        whole = paired(1 - alpha * (pairs - len(apart)) / pairs)
    filled = {name: getattr(whole, name).copy() for name in _FILLED}
    # An adjusted p of a paired pair is to be held against the whole alpha, as all others are.
    filled["p_adjusted"] = np.minimum(1.0, filled["p_adjusted"] * pairs / max(1, pairs - len(apart)))
    for a, b in apart:
        _fill(filled, rows, asked, codes, a, b, level=1 - alpha / pairs, value_range=value_range, pairs=pairs)
    method = f"{whole.method}; pairs without common items as independent samples (Bonferroni)"
    return replace(whole, **filled, level=level, method=method)


_FILLED = (
    "difference", "low", "high", "own_low", "own_high", "p_value", "p_adjusted", "standard_error", "n_missing", "scored_low",
    "scored_high",
)  # fmt: skip


def _apart(asked: Bools, codes: I64 | None) -> list[tuple[int, int]]:
    """Pairs without a common item and without a common cluster, of models that were asked something."""
    found = []
    common = asked.astype(np.float64) @ asked.T
    for a, b in np.argwhere(np.triu(common == 0, 1)).tolist():
        if not (asked[a].any() and asked[b].any()):
            continue
        if codes is None or not np.intersect1d(codes[asked[a]], codes[asked[b]]).size:
            found.append((a, b))
    return found


def _fill(
    filled: dict[str, F64],
    rows: F64,
    asked: Bools,
    codes: I64 | None,
    a: int,
    b: int,
    *,
    level: float,
    value_range: Range | None,
    pairs: int,
) -> None:
    """Write one pair's comparison, and the same from the other side, into the arrays."""
    sides = [rows[model][asked[model]] for model in (a, b)]
    groups = [None if codes is None else codes[asked[model]] for model in (a, b)]
    found = compare_unpaired(
        *sides, clusters_a=groups[0], clusters_b=groups[1], level=level, value_range=value_range
    )
    both = {
        "n_missing": found.n_missing_a + found.n_missing_b,
        "p_value": found.p_value,
        "p_adjusted": min(1.0, pairs * found.p_value),
        "standard_error": np.nan if found.standard_error is None else found.standard_error,
    }
    limits, scored = (found.low, found.high), (found.scored_low, found.scored_high)
    for one, other, sign in ((a, b, 1.0), (b, a, -1.0)):
        for name, value in {**both, "difference": sign * found.difference}.items():
            filled[name][one, other] = value
        for kind, ends in (("", limits), ("own_", limits), ("scored_", scored)):
            low, high = ends if sign > 0 else (-ends[1], -ends[0])
            filled[f"{kind}low"][one, other], filled[f"{kind}high"][one, other] = low, high
