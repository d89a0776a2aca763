"""Two models on the same items: the difference, its interval, a test, and what the data could not have shown.

| scores | test | interval |
|---|---|---|
| right or wrong, every item alone | exact McNemar mid-p on the discordant items | Bonett & Price (2012) |
| graded, or means of repeated draws | paired t | t |
| anything in clusters | clustered t, G - 1 degrees of freedom | clustered t |
| no spread at all in the differences | exact sign test over units | rule of three |

Pairing is what makes small benchmarks useful: the items' difficulty cancels, the more so the higher the
correlation of the two models' scores, which is reported beside the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import (
    beta_quantile,
    check_level,
    half_binomial_cdf,
    normal_quantile,
    t_quantile,
    t_two_sided,
)
from evalwright.statistics.intervals import Range, unlike_share
from evalwright.statistics.units import (
    F64,
    I64,
    Clusters,
    cluster_codes,
    cluster_ids,
    item_units,
    score_matrix,
    standard_error,
)

Verdict = Literal["better", "worse", "no difference seen"]

_FEW = 5
"""With fewer differing units no t test can reject at 5% (t is about the root of their number), so their spread is
no basis for saying what could have been seen."""


@dataclass(frozen=True, slots=True)
class PairedComparison(Plain):
    """Model a against model b on the items that both have a score for.

    `difference` is mean_a - mean_b, [`low`, `high`] its interval at `level`. `verdict` is about a, where more is
    better: it needs p_value < 1 - level *and* an interval without 0. `smallest_visible_difference` is the difference
    that this comparison would have shown with probability `power`. `discordant` is (only a right, only b right),
    None for graded scores. `n_missing` items lack a score on one side or both and are in none of the numbers.
    `correlation` is nan where one side is constant, `standard_error` None where the differences have no spread.
    """

    n: int
    n_missing: int
    n_clusters: int | None
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
    correlation: float
    smallest_visible_difference: float
    power: float
    discordant: tuple[int, int] | None
    verdict: Verdict

    @property
    def few_differ(self) -> bool:
        """Whether too few units differ to go by their spread, so `smallest_visible_difference` is of what is possible."""
        if self.test not in ("paired t", "clustered t") or not self.standard_error:
            return self.test == "exact sign test" and self.difference == 0
        df = (self.n_clusters or self.n) - 1
        seen = (t_quantile(0.5 + self.level / 2, df) + t_quantile(self.power, df)) * self.standard_error
        return self.smallest_visible_difference > seen * (1 + 1e-9)


class _Tested(NamedTuple):
    """The part of a comparison that its test makes; fields as there."""

    low: float
    high: float
    p_value: float
    test: str
    interval_method: str
    standard_error: float | None
    smallest_visible_difference: float


def compare_paired(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    binary: bool | None = None,
    level: float = 0.95,
    power: float = 0.8,
    value_range: Range | None = (0.0, 1.0),
) -> PairedComparison:
    """Compare the scores of two models on the same items, row by row (the table at the top of this module).

    `a` and `b`: (n,) or (n, draws), nan = missing; the numbers of draws may differ, the item means are the units.
    `clusters`: (n,) integers. `binary`: whether all item means are 0 or 1; None finds out, False treats them as
    graded. `value_range`: the range of one score, None if it is not known; it is needed only for the interval and the
    smallest visible difference of scores whose differences show no spread (else nan).

    Raises ValueError for arrays that do not match, scores outside `value_range`, `binary=True` with graded scores,
    and `level` or `power` outside (0, 1).
    """
    check_level(level)
    check_level(power, "power")
    means_a, means_b, ids, n_missing = _paired_means(a, b, clusters)
    _check_range(means_a, means_b, value_range)
    is_binary = _is_binary(means_a) and _is_binary(means_b)
    if binary and not is_binary:
        raise ValueError("binary=True needs scores that are all 0 or 1")
    is_binary = is_binary and binary is not False and len(means_a) > 0
    codes, n_clusters = cluster_codes(ids)
    differences = means_a - means_b
    difference = _mean(differences)
    discordant = _discordant(differences) if is_binary else None
    if len(differences) == 0:
        none = "none: no common item"
        tested = _Tested(math.nan, math.nan, math.nan, none, none, None, math.nan)
    elif discordant is not None and codes is None:
        tested = _binary_test(*discordant, len(differences), level, power)
    else:
        tested = _t_test(differences, difference, codes, n_clusters, level, power, value_range)
    return PairedComparison(
        n=len(differences),
        n_missing=n_missing,
        n_clusters=n_clusters,
        mean_a=_mean(means_a),
        mean_b=_mean(means_b),
        difference=difference,
        level=level,
        correlation=_correlation(means_a, means_b),
        power=power,
        discordant=discordant,
        verdict=_verdict(difference, tested, level),
        **tested._asdict(),
    )


def mcnemar_mid_p(b: int, c: int) -> float:
    """Two-sided exact McNemar mid-p of discordant counts b and c: 2 P(X <= min) - P(X = min), X ~ Bin(b + c, 1/2).

    Fagerland, Lydersen & Laake (2013). 1 where nothing is discordant.
    """
    least, total = min(b, c), b + c
    if total == 0:
        return 1.0
    return min(1.0, half_binomial_cdf(least, total) + half_binomial_cdf(least - 1, total))


def bonett_price(b: int, c: int, n: int, level: float = 0.95) -> tuple[float, float, float]:
    """Interval and standard error (low, high, se) of the paired difference of proportions (b - c) / n.

    Bonett & Price (2012): p12 = (b + 1)/(n + 2), p21 = (c + 1)/(n + 2), p12 - p21 +- z sqrt((p12 + p21 -
    (p12 - p21)^2)/(n + 2)); clipped to [-1, 1], and never without the difference itself.
    """
    p12, p21 = (b + 1) / (n + 2), (c + 1) / (n + 2)
    error = math.sqrt((p12 + p21 - (p12 - p21) ** 2) / (n + 2))
    half = normal_quantile(0.5 + level / 2) * error
    centre, difference = p12 - p21, (b - c) / n
    return max(-1.0, min(centre - half, difference)), min(1.0, max(centre + half, difference)), error


def _binary_test(b: int, c: int, n: int, level: float, power: float) -> _Tested:
    low, high, error = bonett_price(b, c, n, level)
    visible = (normal_quantile(0.5 + level / 2) + normal_quantile(power)) * error
    visible = min(1.0, max(visible, _least_visible_binary(n, level, power)))
    return _Tested(low, high, mcnemar_mid_p(b, c), "exact McNemar mid-p", "Bonett-Price", error, visible)


def _least_visible_binary(n: int, level: float, power: float) -> float:
    """The smallest difference that n right-or-wrong pairs can show with probability `power`, at best.

    At best all discordant items favour the same model. `wins` is the least number of them that gives a verdict; the
    difference d solves P(Bin(n, d) >= wins) = power. 1 where even n wins would not do.
    """
    for wins in range(1, min(n, 200) + 1):  # the first few decide, whatever the number of items
        if mcnemar_mid_p(wins, 0) < 1 - level and bonett_price(wins, 0, n, level)[0] > 0:
            return beta_quantile(power, wins, n - wins + 1)
    return 1.0


def _t_test(
    differences: F64,
    difference: float,
    codes: I64 | None,
    n_clusters: int | None,
    level: float,
    power: float,
    value_range: Range | None,
) -> _Tested:
    """Paired or clustered t. Smallest visible difference: (t_{1-alpha/2} + t_{power}) SE, which is Miller's (2024)
    (z + z) sqrt(Var d / n) with the quantiles of the few units there are; never above the range of a score.

    With no spread, or fewer than five differing units, Var d is taken as u span^2, u being the upper limit (at
    `level`) of the share of units that may differ: what was not seen is limited only by what is possible.
    """
    span = math.nan if value_range is None else value_range[1] - value_range[0]
    size = len(differences) if n_clusters is None else n_clusters
    if size == 1:
        none = "none: one item" if n_clusters is None else "none: one cluster"
        return _Tested(-span, span, math.nan, none, none, None, span)
    error, df = standard_error(differences, codes, n_clusters)
    critical = t_quantile(0.5 + level / 2, df)
    visible = (critical + t_quantile(power, df)) * error
    sums = differences if codes is None else np.bincount(codes, weights=differences, minlength=size)
    differing = int(np.count_nonzero(sums))
    if differing < _FEW or error == 0.0:
        # Only what is possible limits the spread that was not seen: a share u of the units may differ by the span.
        share = beta_quantile(level, differing + 1, size - differing) if differing < size else 1.0
        possible = span * math.sqrt(share / size) * (critical + t_quantile(power, df))
        visible = max(possible, visible)  # nan where the range is not known
    visible = min(visible, span) if span == span else visible
    if error == 0.0:
        share = unlike_share(size, level)
        p_value = 1.0 if difference == 0 else 2.0 ** (1 - size)
        method = f"rule of three ({size} {'items' if codes is None else 'clusters'} alike)"
        low, high = difference - share * (span + difference), difference + share * (span - difference)
        return _Tested(low, high, p_value, "exact sign test", method, None, visible)
    low, high = difference - critical * error, difference + critical * error
    if span == span:
        low, high = max(low, -span), min(high, span)
    test = "paired t" if codes is None else "clustered t"
    method = "t" if codes is None else f"clustered t (G={size})"
    return _Tested(low, high, t_two_sided(difference / error, df), test, method, error, visible)


def _paired_means(a: npt.ArrayLike, b: npt.ArrayLike, clusters: Clusters) -> tuple[F64, F64, I64 | None, int]:
    """Item means of both sides where both have one, their cluster ids, and how many items were left out."""
    scores_a, scores_b = score_matrix(a), score_matrix(b)
    if len(scores_a) != len(scores_b):
        raise ValueError(
            f"the two models must have a row for the same items, not {len(scores_a)} and {len(scores_b)}"
        )
    ids = None if clusters is None else cluster_ids(clusters, len(scores_a))
    common = _some_score(scores_a) & _some_score(scores_b)
    n_missing = int(len(common) - np.count_nonzero(common))
    if n_missing:
        scores_a, scores_b = scores_a[common], scores_b[common]
        ids = None if ids is None else ids[common]
    return item_units(scores_a).means, item_units(scores_b).means, ids, n_missing


def _some_score(scores: F64) -> npt.NDArray[np.bool_]:
    there: npt.NDArray[np.bool_] = np.count_nonzero(~np.isnan(scores), axis=1) > 0
    return there


def _check_range(a: F64, b: F64, value_range: Range | None) -> None:
    if value_range is None or not len(a):
        return
    bottom, top = value_range
    slack = 1e-9 * (top - bottom)
    least, most = min(float(a.min()), float(b.min())), max(float(a.max()), float(b.max()))
    if not bottom < top or least < bottom - slack or most > top + slack:
        raise ValueError(
            f"scores from {least:g} to {most:g} are not all within value_range {value_range}; "
            "give the range that these scores can have, or None"
        )


def _mean(values: F64) -> float:
    return float(values.mean()) if len(values) else math.nan


def _discordant(differences: F64) -> tuple[int, int]:
    return int(np.count_nonzero(differences > 0)), int(np.count_nonzero(differences < 0))


def _is_binary(means: F64) -> bool:
    return bool(((means == 0.0) | (means == 1.0)).all())


def _correlation(a: F64, b: F64) -> float:
    """Pearson's correlation; nan where one side has no spread."""
    if len(a) < 2:
        return math.nan
    x, y = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(np.dot(x, x)) * float(np.dot(y, y)))
    noise = 1e-24 * len(a) * max(float(np.abs(a).max()), float(np.abs(b).max())) ** 2
    return max(-1.0, min(1.0, float(np.dot(x, y)) / scale)) if scale > noise else math.nan


def _verdict(difference: float, tested: _Tested, level: float) -> Verdict:
    if tested.p_value < 1 - level and difference > 0 and tested.low > 0:
        return "better"
    if tested.p_value < 1 - level and difference < 0 and tested.high < 0:
        return "worse"
    return "no difference seen"
