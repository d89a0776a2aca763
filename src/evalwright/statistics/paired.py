"""Two models on the same items: the difference, its interval, a test, and what the data could not have shown.

All four come from one test (`pairwise`): the interval holds the differences that it does not reject, the p-value is that of no
difference, and the smallest visible difference is what it would have shown. Where the range of a score is not known it is a t test.
The spread and its degrees of freedom are those of clusters where there are any (`units.cluster_spread`).

What failed may have been anything: the interval goes from the low end of the comparison with a's failed items at the worst and
b's at the best to the high end of the opposite one, and the p-value is the larger of both, 1 where they disagree. Left out, a
model that fails where it would be wrong is better than its equal in 74% of the trials.

Pairing is what makes small benchmarks useful: the items' difficulty cancels, the more so the higher the
correlation of the two models' scores, which is reported beside the difference.

Equivalence up to a margin named beforehand: "no difference seen" is not "no difference". Two one-sided tests (TOST, Schuirmann 1987) reject "differs by the margin or
more"; with the intervals that the package uses anyway this is the same as asking whether the interval at level
1 - 2 alpha lies inside the margin. So the answer can never contradict the interval, and the p-value is the alpha at which it
just fits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import check_level
from evalwright.statistics.pairwise import AllPairs, checked_missing, common_differences
from evalwright.statistics.units import (
    F64,
    I64,
    Clusters,
    Range,
    check_range,
    cluster_codes,
    cluster_ids,
    row_means,
    score_matrix,
)

Verdict = Literal["better", "worse", "no difference seen"]


class Filling(NamedTuple):
    """A comparison with every failed score at one end of the range: difference, interval, degrees of freedom."""

    difference: float
    low: float
    high: float
    freedom: float


@dataclass(frozen=True, slots=True)
class PairedComparison(Plain):
    """Model a against model b on the items that both have a score for.

    `difference` is mean_a - mean_b, [`scored_low`, `scored_high`] its interval at `level` on these items. `n_missing` items failed on
    one side or both: [`low`, `high`], `p_value` and `verdict` hold whatever they would have scored, and are nan (no verdict) where
    the range of a score is not known. Where nothing is missing both intervals are the same. `verdict` is about a, where more is
    better: the interval is without 0, which is p_value < 1 - level. `smallest_visible_difference` is the difference
    that this comparison would have shown with probability `power`. `discordant` is (only a right, only b right),
    None for graded scores.
    `correlation` is nan where one side is constant, `standard_error` None where the differences have no spread.
    `degrees_of_freedom` are those of every quantile, `effective_units` how many units of equal size the data are worth. `fillings`: with a's failed items at the worst and b's at the best, and the
    opposite; None where nothing is missing or the range is not known.
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
    standard_error: float | None
    degrees_of_freedom: float
    effective_units: float
    correlation: float
    smallest_visible_difference: float
    power: float
    discordant: tuple[int, int] | None
    verdict: Verdict
    scored_low: float
    scored_high: float
    fillings: tuple[Filling, Filling] | None = None


def compare_paired(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    missing: npt.ArrayLike | None = None,
    clusters: Clusters = None,
    binary: bool | None = None,
    level: float = 0.95,
    power: float = 0.8,
    value_range: Range | None = (0.0, 1.0),
) -> PairedComparison:
    """Compare the scores of two models on the same items, row by row (the test named at the top of this module).

    `a` and `b`: (n,) or (n, draws), nan = no score; the numbers of draws may differ, the item means are the units. `missing`: (2, n),
    which items of a and of b failed (None: all without a score); others without a score were never asked and are left out.
    `clusters`: (n,) integers. `binary`: whether all item means are 0 or 1; None finds out, False gives no discordant
    counts. `value_range`: the range of one score, None if it is not known; then differences without spread have no interval (nan).

    Raises ValueError for arrays that do not match, scores outside `value_range`, `binary=True` with graded scores,
    and `level` or `power` outside (0, 1).
    """
    return paired(
        a, b, missing=missing, clusters=clusters, binary=binary, value_range=value_range
    ).comparison(level, power)


@dataclass(frozen=True, slots=True)
class Paired:
    """Two models' scores put together once, to be compared at any level. `found`: 2 x 2, of which [0, 1] is a against b."""

    found: AllPairs
    clustered: bool
    means: tuple[float, float]
    difference: float
    correlation: float
    discordant: tuple[int, int] | None

    @property
    def p_value(self) -> float:
        """Two-sided, of no difference."""
        return float(self.found.p_values()[0, 1])

    def comparison(self, level: float = 0.95, power: float = 0.8) -> PairedComparison:
        """Everything that is said of the two. Raises ValueError for a level or power outside (0, 1)."""
        check_level(level)
        check_level(power, "power")
        found = self.found
        n, units, error = int(found.n[0, 1]), int(found.units[0, 1]), float(found.error[0, 1])
        n_missing = int(found.n_missing[0, 1])
        low, high = (float(end[0, 1]) for end in found.limits(1 - level))
        scored_low, scored_high = low, high
        if n_missing:
            scored_low, scored_high = (float(end[0, 1]) for end in found.scored_limits(1 - level))
        if n == 0:
            test = "none: no item scored in both"
        elif math.isnan(low) and n_missing:
            test = "none: items failed, range not known"
        elif units == 1:
            test = "none: one cluster" if self.clustered else "none: one item"
        elif math.isnan(low):
            test = "none: no spread, range not known"
        else:
            test = ("clustered " if self.clustered else "") + ("t" if found.counts is None else "score test")
        return PairedComparison(
            n=n,
            n_missing=n_missing,
            n_clusters=units if self.clustered else None,
            mean_a=self.means[0],
            mean_b=self.means[1],
            difference=self.difference,
            low=low,
            high=high,
            level=level,
            p_value=self.p_value,
            test=test,
            standard_error=error if error > 0 else None,
            degrees_of_freedom=float(found.freedom[0, 1]),
            effective_units=float(found.worth[0, 1]),
            correlation=self.correlation,
            smallest_visible_difference=float(found.visible(level, power)[0, 1]),
            power=power,
            discordant=self.discordant,
            verdict=_verdict(low, high),
            scored_low=scored_low,
            scored_high=scored_high,
            fillings=_fillings(found, level),
        )


def paired(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    missing: npt.ArrayLike | None = None,
    clusters: Clusters = None,
    binary: bool | None = None,
    value_range: Range | None = (0.0, 1.0),
) -> Paired:
    """The two models' scores put together; arguments and errors as of `compare_paired`."""
    found, means, codes = paired_differences(
        a, b, missing=missing, clusters=clusters, value_range=value_range
    )
    right_or_wrong = bool(((means == 0.0) | (means == 1.0)).all())
    if binary and not right_or_wrong:
        raise ValueError("binary=True needs scores that are all 0 or 1")
    of_a, of_b = means
    discordant = None
    if right_or_wrong and binary is not False and len(of_a):
        discordant = int(np.count_nonzero(of_a > of_b)), int(np.count_nonzero(of_a < of_b))
    own = _mean(of_a), _mean(of_b)
    return Paired(found, codes is not None, own, _mean(of_a - of_b), _correlation(of_a, of_b), discordant)


def _fillings(found: AllPairs, level: float) -> tuple[Filling, Filling] | None:
    worst = found.worst
    if worst is None:
        return None
    low, high = worst.scored_limits(1 - level)
    place, other = (0, 1), (1, 0)
    return (
        Filling(*(float(part[place]) for part in (worst.difference, low, high, worst.freedom))),
        Filling(*(float(part[other]) for part in (-worst.difference, -high, -low, worst.freedom))),
    )


def paired_differences(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    missing: npt.ArrayLike | None = None,
    clusters: Clusters = None,
    value_range: Range | None = (0.0, 1.0),
) -> tuple[AllPairs, F64, I64 | None]:
    """The two models as `AllPairs`, and of the items that both have a score for their means (2, n) and cluster codes."""
    scores = score_matrix(a), score_matrix(b)
    if len(scores[0]) != len(scores[1]):
        raise ValueError(
            f"the two models must have a row for the same items, not {len(scores[0])} and {len(scores[1])}"
        )
    means = np.stack([row_means(one) for one in scores])
    ids = None if clusters is None else cluster_ids(clusters, means.shape[1])
    lost = checked_missing(missing, means)
    # Who was not asked an item is in no pair on it.
    asked = (lost | ~np.isnan(means)).all(axis=0)
    if not asked.all():
        means, lost, ids = means[:, asked], lost[:, asked], None if ids is None else ids[asked]
    check_range(means, value_range)
    codes = cluster_codes(ids)[0]
    if not lost.any():
        return common_differences(means, codes, value_range), means, codes
    found = common_differences(means, codes, value_range, lost)
    both = ~lost.any(axis=0)
    return found, means[:, both], cluster_codes(None if ids is None else ids[both])[0]


def _mean(values: F64) -> float:
    return float(values.mean()) if len(values) else math.nan


def _correlation(a: F64, b: F64) -> float:
    """Pearson's correlation; nan where one side has no spread."""
    if len(a) < 2:
        return math.nan
    x, y = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(np.dot(x, x)) * float(np.dot(y, y)))
    noise = 1e-24 * len(a) * max(float(np.abs(a).max()), float(np.abs(b).max())) ** 2
    return max(-1.0, min(1.0, float(np.dot(x, y)) / scale)) if scale > noise else math.nan


def _verdict(low: float, high: float) -> Verdict:
    if low > 0:
        return "better"
    return "worse" if high < 0 else "no difference seen"


# -- equivalence ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Equivalence(Plain):
    """Whether `difference` lies inside (`least`, `most`), at error rate `alpha`.

    [`low`, `high`] is its interval at `level` = 1 - 2 alpha, whatever the `n_missing` items that failed would have scored. `p_value` is the greater of `p_least` (not below `least`)
    and `p_most` (not above `most`); 0.5 stands for 0.5 or more where the test is not a t test. nan without an interval.
    """

    difference: float
    low: float
    high: float
    level: float
    least: float
    most: float
    alpha: float
    p_value: float
    p_least: float
    p_most: float
    equivalent: bool
    n: int
    n_missing: int
    n_clusters: int | None
    method: str


def equivalence_paired(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    margin: float | Range,
    alpha: float = 0.05,
    missing: npt.ArrayLike | None = None,
    clusters: Clusters = None,
    binary: bool | None = None,
    value_range: Range | None = (0.0, 1.0),
) -> Equivalence:
    """TOST of mean_a - mean_b on common items, with the interval that `compare_paired` gives: equivalent whatever failed.

    `margin`: the smallest difference that would matter, > 0, or (least, most). The other arguments and the errors are
    those of `compare_paired`; a margin without room or an alpha outside (0, 0.5) is a ValueError too.
    """
    least, most = _margin(margin, alpha)
    both = paired(a, b, missing=missing, clusters=clusters, binary=binary, value_range=value_range)
    found = both.comparison(1 - 2 * alpha)
    p_least, p_most = float(both.found.tail(least)[0, 1]), float(both.found.tail(most, above=False)[0, 1])
    return Equivalence(
        difference=found.difference,
        low=found.low,
        high=found.high,
        level=1 - 2 * alpha,
        least=least,
        most=most,
        alpha=alpha,
        p_value=max(p_least, p_most),
        p_least=p_least,
        p_most=p_most,
        equivalent=bool(found.low >= least and found.high <= most),
        n=found.n,
        n_missing=found.n_missing,
        n_clusters=found.n_clusters,
        method=f"TOST, {found.test}",
    )


def _margin(margin: float | Range, alpha: float) -> Range:
    check_level(alpha, "alpha")
    if alpha >= 0.5:
        raise ValueError(f"alpha must be below 0.5, but is {alpha}")
    least, most = margin if isinstance(margin, tuple) else (-margin, margin)
    if not (math.isfinite(least) and math.isfinite(most) and least < most):
        raise ValueError(
            f"margin must be a number above 0 or a pair (least, most), but is {margin}; "
            "it is the smallest difference that would matter to you"
        )
    return float(least), float(most)
