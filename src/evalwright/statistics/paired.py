"""Compares two models on the same items: difference, interval, test, and detectable difference.

All four come from one test (`pairwise`): the interval contains the differences that it does not
reject, the p-value is that of no difference, and the smallest visible difference is what it
would have detected. Where the range of a score is unknown it is a t test. The standard error
and its degrees of freedom are those of clusters where there are any (`units.cluster_spread`).

Missing answers are left out and counted: interval, p-value and verdict come from the items for
which both models have a score, which is right where answers are missing at random (a network
fault, a rate limit). The worst case (Manski 2003) is reported as well: the interval from the
low end with a's missing items at the worst and b's at the best to the high end of the opposite.
With `missing_policy="worst-case"` it replaces the other, and the p-value is the larger of both
cases, 1 where they disagree.

Pairing is what makes small benchmarks useful: the items' difficulty cancels, the more so the
higher the correlation of the two models' scores, which is reported beside the difference.

Equivalence up to a margin named beforehand: "no difference seen" is not "no difference". Two
one-sided tests (TOST, Schuirmann 1987) reject "differs by the margin or more"; with the
intervals of this package this is the same as asking whether the interval at level 1 - 2 alpha
lies inside the margin. So the answer can never contradict the interval, and the p-value is the
alpha at which it just fits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain, plain_fields
from evalwright.statistics._quantiles import check_level
from evalwright.statistics.pairwise import (
    AllPairs,
    Bools,
    MissingPolicy,
    WorstCase,
    checked_missing,
    common_differences,
    worst_case,
)
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
    """A comparison with every missing score set to one end of the range."""

    difference: float
    low: float
    high: float
    freedom: float


@dataclass(frozen=True, slots=True)
class PairedComparison(Plain):
    """Comparison of model a with model b on the items for which both have a score.

    Attributes:
        n: number of such items.
        n_missing: items that lack an answer of a, of b, or of both.
        n_clusters: number of clusters; None where items are independent.
        mean_a: mean score of a.
        mean_b: mean score of b.
        difference: mean_a - mean_b.
        low: low end of its interval at `level`.
        high: its high end.
        level: confidence level.
        p_value: two-sided, of no difference.
        test: the name of the test.
        standard_error: of the difference; None where no item differs.
        degrees_of_freedom: of every quantile.
        effective_units: the number of equally large units that the data are worth.
        correlation: of the two models' scores; nan where one side is constant.
        smallest_visible_difference: the difference that this comparison would have detected with
            probability `power`.
        power: that probability.
        discordant: (only a right, only b right), None for graded scores.
        verdict: about a, where higher is better: "better" or "worse" where the interval excludes 0,
            which is p_value < 1 - level.
        n_differing: items on which the models differ at all (clusters, for graded scores in
            clusters).
        n_missing_a: items that lack an answer of a.
        n_missing_b: items that lack an answer of b.
        worst_low: low end of the interval that holds whatever the missing items would have scored;
            nan where nothing is missing or the range of a score is unknown.
        worst_high: its high end.
        missing_policy: "scored" leaves missing items out of interval, p-value and verdict;
            "worst-case" uses the worst-case interval, and its p-value, for them.
        fillings: the comparison on the scored items, with a's missing ones at the worst and b's at
            the best, and the opposite; None where nothing is missing or the range is unknown.
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
    n_differing: int = 0
    n_missing_a: int = 0
    n_missing_b: int = 0
    worst_low: float = math.nan
    worst_high: float = math.nan
    missing_policy: MissingPolicy = "scored"
    fillings: tuple[Filling, Filling, Filling] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON, without `fillings`.

        `worst_low` and `worst_high` summarise these.
        """
        return plain_fields(self, ("fillings",))


def compare_paired(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    missing: npt.ArrayLike | None = None,
    missing_policy: MissingPolicy = "scored",
    clusters: Clusters = None,
    binary: bool | None = None,
    level: float = 0.95,
    power: float = 0.8,
    value_range: Range | None = (0.0, 1.0),
) -> PairedComparison:
    """Compare the scores of two models on the same items, row by row.

    The test is described in `pairwise`.

    Args:
        a: scores (n,) or (n, draws), nan is no score; the units are the item means.
        b: likewise; the number of draws may differ.
        missing: (2, n), which items of a and of b are missing (None: all without a score); others
            without a score were never asked, and are not counted.
        missing_policy: what the verdict is based on: "scored" for the items that both models have,
            "worst-case" for the worst that the missing ones could have been.
        clusters: (n,) integers; items that share one are not independent.
        binary: whether all item means are 0 or 1; None detects it, False gives no discordant
            counts.
        level: confidence level of the interval.
        power: the probability that defines the smallest visible difference.
        value_range: the range of one score, None if unknown; then scores that are all equal have no
            interval (nan).

    Raises:
        ValueError: arrays that do not match, scores outside `value_range`, `binary=True` with
            graded scores, and `level` or `power` outside (0, 1).
    """
    return paired(
        a,
        b,
        missing=missing,
        missing_policy=missing_policy,
        clusters=clusters,
        binary=binary,
        value_range=value_range,
    ).comparison(level, power)


@dataclass(frozen=True, slots=True)
class Paired:
    """Two models' scores, prepared once so that they can be compared at any level.

    Attributes:
        pairs: 2 x 2, of which [0, 1] is a against b.
        any_filling: the same whatever the missing items would have scored.
        missing_policy: which of the two the verdict is based on.
        n_missing: items that a lacks, and that b lacks.
        clustered: whether items are in clusters.
        means: mean scores of a and b.
        difference: of the means.
        correlation: of the scores.
        discordant: (only a right, only b right), None for graded scores.
    """

    pairs: AllPairs
    any_filling: WorstCase
    missing_policy: MissingPolicy
    n_missing: tuple[int, int]
    clustered: bool
    means: tuple[float, float]
    difference: float
    correlation: float
    discordant: tuple[int, int] | None

    @property
    def tested(self) -> AllPairs | WorstCase:
        """The differences on which the verdict is based."""
        return self.any_filling if self.missing_policy == "worst-case" else self.pairs

    @property
    def p_value(self) -> float:
        """The two-sided p-value of no difference."""
        return float(self.tested.p_values()[0, 1])

    def comparison(self, level: float = 0.95, power: float = 0.8) -> PairedComparison:
        """Build the full comparison at a level.

        Raises ValueError for a level or power outside (0, 1).
        """
        check_level(level)
        check_level(power, "power")
        pairs = self.pairs
        n = int(pairs.n[0, 1])
        units = int(pairs.units[0, 1])
        error = float(pairs.error[0, 1])
        n_missing = int(pairs.n_missing[0, 1])
        low, high = (float(end[0, 1]) for end in self.tested.limits(1 - level))
        worst_low = worst_high = math.nan
        if n_missing and n:
            worst_low, worst_high = (
                float(end[0, 1]) for end in self.any_filling.limits(1 - level)
            )
        return PairedComparison(
            n=n,
            n_missing=n_missing,
            n_missing_a=self.n_missing[0],
            n_missing_b=self.n_missing[1],
            n_clusters=units if self.clustered else None,
            mean_a=self.means[0],
            mean_b=self.means[1],
            difference=self.difference,
            low=low,
            high=high,
            level=level,
            p_value=self.p_value,
            test=self._test(math.isnan(low)),
            standard_error=error if error > 0 else None,
            degrees_of_freedom=float(pairs.freedom[0, 1]),
            effective_units=float(pairs.effective_units[0, 1]),
            correlation=self.correlation,
            smallest_visible_difference=float(self.tested.visible(level, power)[0, 1]),
            power=power,
            discordant=self.discordant,
            verdict=_verdict(low, high),
            n_differing=int(np.nan_to_num(pairs.differing[0, 1])),
            worst_low=worst_low,
            worst_high=worst_high,
            missing_policy=self.missing_policy,
            fillings=_make_fillings(self.any_filling, level),
        )

    def _test(self, no_interval: bool) -> str:
        pairs = self.pairs
        if pairs.n[0, 1] == 0:
            return "none: no item scored in both"
        if (
            no_interval
            and self.missing_policy == "worst-case"
            and pairs.n_missing[0, 1]
        ):
            return "none: answers missing, range not known"
        if pairs.units[0, 1] == 1:
            return "none: one cluster" if self.clustered else "none: one item"
        if no_interval:
            return "none: no spread, range not known"
        graded = "t" if pairs.counts is None else "skewness-adjusted t"
        name = "score test" if pairs.counted[0, 1] else graded
        return f"clustered {name}" if self.clustered else name


def paired(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    missing: npt.ArrayLike | None = None,
    missing_policy: MissingPolicy = "scored",
    clusters: Clusters = None,
    binary: bool | None = None,
    value_range: Range | None = (0.0, 1.0),
) -> Paired:
    """Prepare the two models' scores for comparison.

    Arguments and errors as of `compare_paired`.
    """
    if missing_policy not in get_args(MissingPolicy):
        raise ValueError(
            "missing_policy must be 'scored' or 'worst-case', but is"
            f" {missing_policy!r}"
        )
    means, is_missing, ids = _asked_items(
        a, b, missing=missing, clusters=clusters, value_range=value_range
    )
    codes = cluster_codes(ids)[0]
    pairs = common_differences(means, codes, value_range, is_missing)
    any_filling = worst_case(means, codes, value_range, is_missing, pairs)
    common = ~is_missing.any(axis=0)
    if not common.all():
        means = means[:, common]
        codes = cluster_codes(None if ids is None else ids[common])[0]
    right_or_wrong = bool(((means == 0.0) | (means == 1.0)).all())
    if binary and not right_or_wrong:
        raise ValueError("binary=True needs scores that are all 0 or 1")
    of_a, of_b = means
    discordant = None
    if right_or_wrong and binary is not False and len(of_a):
        discordant = (
            int(np.count_nonzero(of_a > of_b)),
            int(np.count_nonzero(of_a < of_b)),
        )
    return Paired(
        pairs=pairs,
        any_filling=any_filling,
        missing_policy=missing_policy,
        n_missing=(int(is_missing[0].sum()), int(is_missing[1].sum())),
        clustered=codes is not None,
        means=(_mean(of_a), _mean(of_b)),
        difference=_mean(of_a - of_b),
        correlation=_correlation(of_a, of_b),
        discordant=discordant,
    )


def _make_fillings(
    any_filling: WorstCase, level: float
) -> tuple[Filling, Filling, Filling] | None:
    scored = any_filling.scored
    worst = any_filling.worst
    if worst is None:
        return None
    low, high = worst.limits(1 - level)
    forward = (0, 1)
    turned = (1, 0)
    return (
        Filling(
            *(
                float(part[forward])
                for part in (
                    scored.difference,
                    *scored.limits(1 - level),
                    scored.freedom,
                )
            )
        ),
        Filling(
            *(
                float(part[forward])
                for part in (worst.difference, low, high, worst.freedom)
            )
        ),
        Filling(
            *(
                float(part[turned])
                for part in (-worst.difference, -high, -low, worst.freedom)
            )
        ),
    )


def paired_differences(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    missing: npt.ArrayLike | None = None,
    clusters: Clusters = None,
    value_range: Range | None = (0.0, 1.0),
) -> AllPairs:
    """Compute the differences on the items that both models have, as `AllPairs`.

    Arguments and errors as of `compare_paired`.
    """
    means, is_missing, ids = _asked_items(
        a, b, missing=missing, clusters=clusters, value_range=value_range
    )
    return common_differences(means, cluster_codes(ids)[0], value_range, is_missing)


def _asked_items(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    missing: npt.ArrayLike | None,
    clusters: Clusters,
    value_range: Range | None,
) -> tuple[F64, Bools, I64 | None]:
    """Select the items that both models were asked.

    Returns:
        The models' means (2, n), which of these are missing (2, n), and cluster ids.
    """
    scores = score_matrix(a), score_matrix(b)
    if len(scores[0]) != len(scores[1]):
        raise ValueError(
            f"the two models must have a row for the same items, not {len(scores[0])}"
            f" and {len(scores[1])}"
        )
    means = np.stack([row_means(side) for side in scores])
    ids = None if clusters is None else cluster_ids(clusters, means.shape[1])
    is_missing = checked_missing(missing, means)
    # A model that was not asked an item is in no pair on it.
    is_asked = (is_missing | ~np.isnan(means)).all(axis=0)
    if not is_asked.all():
        means = means[:, is_asked]
        is_missing = is_missing[:, is_asked]
        ids = None if ids is None else ids[is_asked]
    check_range(means, value_range)
    return means, is_missing, ids


def _mean(values: F64) -> float:
    return float(values.mean()) if len(values) else math.nan


def _correlation(a: F64, b: F64) -> float:
    """Pearson's correlation; nan where one side has no spread."""
    if len(a) < 2:
        return math.nan
    x = a - a.mean()
    y = b - b.mean()
    scale = math.sqrt(float(np.dot(x, x)) * float(np.dot(y, y)))
    noise = 1e-24 * len(a) * max(float(np.abs(a).max()), float(np.abs(b).max())) ** 2
    return (
        max(-1.0, min(1.0, float(np.dot(x, y)) / scale)) if scale > noise else math.nan
    )


def _verdict(low: float, high: float) -> Verdict:
    if low > 0:
        return "better"
    return "worse" if high < 0 else "no difference seen"


# -- equivalence -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Equivalence(Plain):
    """The result of a test whether `difference` is inside (`least`, `most`), at error rate `alpha`.

    Attributes:
        difference: mean_a - mean_b.
        low: low end of its interval at `level` on the items that both models have.
        high: its high end.
        level: 1 - 2 alpha.
        least: low end of the margin.
        most: high end.
        alpha: error rate.
        p_value: the greater of `p_least` and `p_most`; 0.5 stands for 0.5 or more where the test is
            not a t test; nan without an interval.
        p_least: p-value of the test that rejects "below `least`".
        p_most: p-value of the test that rejects "above `most`".
        equivalent: whether the interval is inside the margin.
        n: items that both models have.
        n_missing: items that are left out, or taken at the worst with the policy "worst-case".
        n_clusters: number of clusters; None where items are independent.
        method: the name of the test.
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
    missing_policy: MissingPolicy = "scored",
    clusters: Clusters = None,
    binary: bool | None = None,
    value_range: Range | None = (0.0, 1.0),
) -> Equivalence:
    """Test whether two models are equivalent up to a margin, by TOST (Schuirmann 1987).

    Args:
        a: scores (n,) or (n, draws), nan is no score.
        b: likewise, of the same items.
        margin: the smallest difference that would matter, > 0, or (least, most).
        alpha: error rate of each of the two tests, in (0, 0.5).
        missing: as in `compare_paired`, like all further arguments.
        missing_policy: see there.
        clusters: see there.
        binary: see there.
        value_range: see there.

    Raises:
        ValueError: as `compare_paired`; a margin whose ends are not in order; another alpha.
    """
    least, most = _margin(margin, alpha)
    pair = paired(
        a,
        b,
        missing=missing,
        missing_policy=missing_policy,
        clusters=clusters,
        binary=binary,
        value_range=value_range,
    )
    comparison = pair.comparison(1 - 2 * alpha)
    p_least = float(pair.tested.tail(least)[0, 1])
    p_most = float(pair.tested.tail(most, above=False)[0, 1])
    return Equivalence(
        difference=comparison.difference,
        low=comparison.low,
        high=comparison.high,
        level=1 - 2 * alpha,
        least=least,
        most=most,
        alpha=alpha,
        p_value=max(p_least, p_most),
        p_least=p_least,
        p_most=p_most,
        equivalent=bool(comparison.low >= least and comparison.high <= most),
        n=comparison.n,
        n_missing=comparison.n_missing,
        n_clusters=comparison.n_clusters,
        method=f"TOST, {comparison.test}",
    )


def _margin(margin: float | Range, alpha: float) -> Range:
    check_level(alpha, "alpha")
    if alpha >= 0.5:
        raise ValueError(f"alpha must be below 0.5, but is {alpha}")
    least, most = margin if isinstance(margin, tuple) else (-margin, margin)
    if not (math.isfinite(least) and math.isfinite(most) and least < most):
        raise ValueError(
            f"margin must be a number above 0 or a pair (least, most), but is {margin};"
            " it is the smallest difference that would matter to you"
        )
    return float(least), float(most)
