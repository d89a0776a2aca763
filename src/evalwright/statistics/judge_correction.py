"""Estimates the score that people would give, from many verdicts of a judge and few human labels.

A judge is cheap and biased, people are unbiased and expensive. Where people label a random part
of what the judge saw, the judge's mean can be corrected by the error that the labels show. That
is PPI++ (Angelopoulos, Duchi & Zrnic 2023): it works for any score, assumes nothing about the
judge, and gives it a weight that falls to 0 (labels alone) where it is of no use.

Labels drawn with different probabilities in each stratum (more of the doubtful verdicts, say)
are weighted by their inverse (Horvitz & Thompson 1952; Hajek 1971; active inference, Zrnic &
Candes 2024).

`rogan_gladen` corrects a pass rate by the judge's sensitivity and specificity (Rogan & Gladen
1978). These may come from other items than the ones to be judged now, which `corrected_mean`
does not allow; in return the judge must make errors at the same rates on both, and where it
barely separates right from wrong no estimate is possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import (
    check_level,
    greatest_failing,
    normal_quantile,
    t_quantile,
    t_two_sided,
)
from evalwright.statistics.intervals import effective_score_interval
from evalwright.statistics.labelling import JudgedSample, judged_sample, vector
from evalwright.statistics.units import F64, Clusters, Range, check_range

_DOUBT = 0.5
"""Weight of each of the two disagreements that are added to the data for 0/1 scores.

With a weight of 1, intervals cover 97-99.7% at 40 labels; with 0, 89% at 40 labels, a good
judge and a high mean.
"""


@dataclass(frozen=True, slots=True)
class JudgeCorrection(Plain):
    """The mean that people would have given to all `n_judged` items, with its interval.

    Args:
        value: the corrected mean.
        low: low end of its interval.
        high: high end.
        level: confidence level.
        standard_error: None with fewer than two labelled units.
        judge_weight: lambda, the weight of the judge (0: labels only, 1: its errors are fully
            subtracted).
        judge_mean: the mean according to the judge alone.
        labels_mean: the mean according to the labels alone.
        labels_error: the standard error of `labels_mean`.
        label_gain: how many times as many labels would be needed without the judge, else nan.
        n_labels: items with a label.
        n_judged: items with a verdict.
        n_left_out: items without a verdict, which are in none of the numbers.
        n_clusters: number of clusters; None where items are independent.
        p_value: for differences only, of a mean of 0.
        method: how the interval was computed.
    """

    value: float
    low: float
    high: float
    level: float
    standard_error: float | None
    judge_weight: float
    judge_mean: float
    labels_mean: float
    labels_error: float | None
    label_gain: float
    n_labels: int
    n_judged: int
    n_left_out: int
    n_clusters: int | None
    p_value: float | None
    method: str


def corrected_mean(
    judge: npt.ArrayLike,
    human: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    strata: Clusters = None,
    judge_weight: float | None = None,
    value_range: Range | None = (0.0, 1.0),
    level: float = 0.95,
) -> JudgeCorrection:
    """Estimate the mean human score over all judged items, by PPI++.

    Interval: t with Welch-Satterthwaite degrees of freedom; scores that are all at the ends of
    `value_range`, and intervals that would leave it, get Wilson's with the effective n (Korn &
    Graubard 1998). For 0/1 labels and verdicts, half a disagreement in each direction is added in
    the variance (in the spirit of Bonett & Price 2012), so that forty labels without a disagreement
    are not taken as proof that there is none.

    Args:
        judge: (N,), verdicts; an item with nan is left out.
        human: (N,), labels, nan where there is none. The labelled items must be a random sample,
            drawn with equal probabilities; with `strata`, at random within each stratum, whatever
            its share.
        clusters: (N,) integers; items that share one are not independent.
        strata: (N,) integers, the stratum of each item.
        judge_weight: lambda in [0, 1], None for the best one, Cov(y, f) / ((1 + n/N) Var f) clipped
            to [0, 1].
        value_range: the least and greatest possible score, None if unlimited.
        level: confidence level of the interval.

    Raises:
        ValueError: other shapes or values.
    """
    sample = judged_sample(judge, human, clusters, strata)
    return _correct(sample, judge_weight, value_range, level, difference=False)


def corrected_difference(
    judge_a: npt.ArrayLike,
    human_a: npt.ArrayLike,
    judge_b: npt.ArrayLike,
    human_b: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    strata: Clusters = None,
    judge_weight: float | None = None,
    value_range: Range | None = (0.0, 1.0),
    level: float = 0.95,
) -> JudgeCorrection:
    """Estimate the difference of two models on the same items by PPI++, with labels for both.

    An item counts as labelled where people looked at both answers. The means in the result are
    differences, and its `p_value` tests for none. Arguments as for `corrected_mean`, all (N,);
    `value_range` is that of one score.
    """
    verdicts = [vector(judge_a, "judge_a"), vector(judge_b, "judge_b")]
    labels = [vector(human_a, "human_a"), vector(human_b, "human_b")]
    if len({len(array) for array in verdicts + labels}) > 1:
        raise ValueError(
            "the verdicts and labels of both models must have one entry for each of the"
            " same items"
        )
    span = None if value_range is None else value_range[1] - value_range[0]
    reach = None if span is None else (-span, span)
    sample = judged_sample(
        verdicts[0] - verdicts[1], labels[0] - labels[1], clusters, strata
    )
    return _correct(sample, judge_weight, reach, level, difference=True)


def _correct(
    sample: JudgedSample,
    weight: float | None,
    value_range: Range | None,
    level: float,
    *,
    difference: bool,
) -> JudgeCorrection:
    check_level(level)
    if weight is not None and not 0.0 <= weight <= 1.0:
        raise ValueError(f"judge_weight must be between 0 and 1, but is {weight!r}")
    check_range(np.concatenate([sample.judge, sample.human]), value_range)
    n = int(np.count_nonzero(sample.labelled))
    total = len(sample.judge)
    judge_mean = float(sample.judge.mean()) if total else math.nan
    units = sample.labelled_units
    if units < 2:
        trust = 0.0 if weight is None or n == 0 else weight
        value, labels = (
            _corrected_value(sample, part) if n else math.nan for part in (trust, 0.0)
        )
        wide = (math.nan, math.nan) if value_range is None else value_range
        one_unit_method = (
            f"{'one label' if n == 1 else 'one labelled cluster'}: the whole range"
        )
        return JudgeCorrection(
            value,
            min(wide[0], value),
            max(wide[1], value),
            level,
            None,
            trust,
            judge_mean,
            labels,
            None,
            math.nan,
            n,
            total,
            sample.n_left_out,
            sample.n_clusters,
            None,
            one_unit_method
            if n
            else "no labels: a judge's errors are unknown without labels",
        )
    trust = _best_weight(sample) if weight is None else weight
    value = _corrected_value(sample, trust)
    labels = _corrected_value(sample, 0.0)
    variance, freedom = _variance(sample, trust, value_range, difference)
    labels_variance, _ = _variance(sample, 0.0, value_range, difference)
    error = math.sqrt(variance)
    low, high, method = _interval(
        sample, value, error, freedom, value_range, level, difference
    )
    p_value = None
    if difference:
        p_value = (
            t_two_sided(value / error, freedom)
            if error > 0
            else _inverted_p_value(sample, value, freedom, value_range)
        )
    return JudgeCorrection(
        value=value,
        low=min(low, value),
        high=max(high, value),
        level=level,
        standard_error=error if error > 0 else None,
        judge_weight=trust,
        judge_mean=judge_mean,
        labels_mean=labels,
        labels_error=math.sqrt(labels_variance) if labels_variance > 0 else None,
        label_gain=labels_variance / variance if variance > 0 else math.nan,
        n_labels=n,
        n_judged=total,
        n_left_out=sample.n_left_out,
        n_clusters=sample.n_clusters,
        p_value=p_value,
        method=f"PPI++ ({sample.scheme} labels), {method}",
    )


def _best_weight(sample: JudgedSample) -> float:
    """The judge's weight, lambda* = Cov(y, f) / ((1 + n/N) Var f) in [0, 1].

    With strata, from weighted moments over all items. Where labels have unequal probabilities,
    lambda should minimise the weighted spread of the residuals, so the moments carry the squares of
    the weights (Zrnic & Candes 2024, least squares of the residual term).
    """
    chosen = sample.labelled
    y = sample.human[chosen]
    f = sample.judge[chosen]
    if sample.scheme == "random":
        spread = float(sample.judge.var(ddof=1))
        unlabelled = len(sample.judge) - len(y)
        if unlabelled == 0 or spread <= 1e-20 * max(
            float(np.abs(sample.judge).max()) ** 2, 1e-280
        ):
            return 0.0
        covariance = float(np.dot(y - y.mean(), f - f.mean())) / (len(y) - 1)
        return min(1.0, max(0.0, covariance / ((1 + len(y) / unlabelled) * spread)))
    w = sample.weights[chosen]
    y = y - sample.stratum_means(y)
    f = f - sample.stratum_means(f)
    # what the unsampled rest of a stratum adds; 0 where everything was labelled
    weight = w * np.maximum(w - 1.0, 0.0)
    spread = float(np.dot(weight, f * f))
    return (
        min(1.0, max(0.0, float(np.dot(weight, y * f)) / spread)) if spread > 0 else 0.0
    )


def _corrected_value(sample: JudgedSample, trust: float) -> float:
    """Compute lambda mean f + mean (y - lambda f).

    f is averaged over the unlabelled items for random labels (PPI++), else over all items.
    """
    chosen = sample.labelled
    residuals = sample.human[chosen] - trust * sample.judge[chosen]
    if sample.scheme == "random":
        unlabelled = sample.judge[~chosen]
        return float(residuals.mean()) + (
            trust * float(unlabelled.mean())
            if len(unlabelled)
            else trust * float(sample.judge.mean())
        )
    w = sample.weights[chosen]
    return trust * float(sample.judge.mean()) + float(np.dot(w, residuals)) / float(
        w.sum()
    )


def _variance(
    sample: JudgedSample, trust: float, value_range: Range | None, difference: bool
) -> tuple[float, float]:
    """The variance of the estimate and its degrees of freedom."""
    doubts = _doubtful_labels(sample, value_range) if not difference else None
    if sample.codes is not None:
        return _clustered_variance(sample, trust, doubts)
    if sample.scheme == "random":
        return _random_variance(sample, trust, doubts)
    return _stratified_variance(sample, trust, doubts)


def _doubtful_labels(
    sample: JudgedSample, value_range: Range | None
) -> tuple[F64, F64] | None:
    """The labels and verdicts of two hypothetical disagreements, one in each direction.

    They are added where verdicts are at the ends of the range, and most labels are (those on which
    several people differ are between them); None elsewhere.
    """
    if value_range is None or not sample.two_valued(value_range):
        return None
    low, high = value_range
    return np.array([low, high]), np.array([high, low])


def _random_variance(
    sample: JudgedSample, trust: float, doubts: tuple[F64, F64] | None
) -> tuple[float, float]:
    """The variance with random labels, and its Welch-Satterthwaite degrees of freedom.

    lambda^2 Var f / N + Var(y - lambda f) / n.
    """
    unlabelled = sample.judge[~sample.labelled]
    y = sample.human[sample.labelled]
    f = sample.judge[sample.labelled]
    residuals = y - trust * f
    mass = np.ones(len(y))
    if doubts is not None:
        residuals = np.append(residuals, doubts[0] - trust * doubts[1])
        mass = np.append(mass, [_DOUBT] * 2)
    size = float(mass.sum())
    centre = float(np.dot(mass, residuals)) / size
    label_variance = float(np.dot(mass, (residuals - centre) ** 2)) / (size - 1) / size
    judged = (
        trust**2 * float(unlabelled.var(ddof=1)) / len(unlabelled)
        if len(unlabelled) > 1
        else 0.0
    )
    # One degree of freedom is lost for lambda, which was estimated from the same labels.
    df = max(1, len(y) - 1 - (trust > 0))
    pooled = label_variance**2 / df + (
        judged**2 / (len(unlabelled) - 1) if len(unlabelled) > 1 else 0.0
    )
    return label_variance + judged, (
        (label_variance + judged) ** 2 / pooled if pooled > 0 else df
    )


def _stratified_variance(
    sample: JudgedSample, trust: float, doubts: tuple[F64, F64] | None
) -> tuple[float, float]:
    """The variance with strata, and its degrees of freedom.

    Var(y) / M over items like these, plus sum_h W_h^2 (1 - n_h/M_h) Var_h(y - lambda f) / n_h for
    the unseen labels.
    """
    assert sample.strata is not None
    total = len(sample.judge)
    sizes = np.bincount(sample.strata)
    shares = sizes / total
    rows = sample.strata[sample.labelled]
    seen = np.bincount(rows, minlength=len(shares)).astype(np.float64)
    y = sample.human[sample.labelled]
    f = sample.judge[sample.labelled]
    mass = np.ones(len(rows))
    y_seen = y
    if doubts is not None:
        # Within a stratum verdicts are nearly equal, so the added disagreements vary the label
        # only.
        verdicts = np.bincount(sample.strata, weights=sample.judge) / sizes
        strata_twice = np.repeat(np.arange(len(shares)), 2)
        y = np.append(y, np.tile(doubts[0], len(shares)))
        f = np.append(f, verdicts[strata_twice])
        rows = np.append(rows, strata_twice)
        # Shared out by labels: their squares add up to one disagreement, as without strata.
        mass = np.append(mass, _DOUBT * np.sqrt(seen / len(y_seen))[strata_twice])
    counts = np.bincount(rows, weights=mass)

    def moments(values: F64) -> tuple[F64, F64]:
        means = np.bincount(rows, weights=mass * values) / counts
        squares = np.bincount(rows, weights=mass * (values - means[rows]) ** 2)
        return means, squares / np.maximum(counts - 1, 1)

    parts = shares**2 * (1 - seen / sizes) * moments(y - trust * f)[1] / counts
    means, squares = moments(y)
    spread = float(
        np.dot(shares, squares + (means - float(np.dot(shares, means))) ** 2)
    )
    item_variance = spread / total
    variance = float(parts.sum()) + item_variance
    pooled = float((parts**2 / np.maximum(seen - 1, 1)).sum()) + item_variance**2 / max(
        1, total - 1
    )
    return variance, variance**2 / pooled if pooled > 0 else 1.0


def _clustered_variance(
    sample: JudgedSample, trust: float, doubts: tuple[F64, F64] | None
) -> tuple[float, float]:
    """The variance from influences summed by cluster, and its degrees of freedom.

    Only clusters with a label count, because their spread dominates: as many equal ones as their
    labels are worth. The two hypothetical disagreements are clusters of their own.
    """
    assert sample.codes is not None
    sums = np.bincount(sample.codes, weights=_influence(sample, trust))
    labels = np.bincount(sample.codes[sample.labelled])
    n = float(labels.sum())
    size = max(1.5, n * n / float(np.dot(labels, labels)))
    variance = float(np.dot(sums, sums)) * size / (size - 1)
    if doubts is not None:
        y = sample.human[sample.labelled]
        f = sample.judge[sample.labelled]
        centre = float((y - trust * f).mean())
        residuals = doubts[0] - trust * doubts[1] - centre
        variance += _DOUBT * float(np.dot(residuals, residuals)) / (n * n)
    return variance, max(1.0, size - 1.0 - (trust > 0))


def _influence(sample: JudgedSample, trust: float) -> F64:
    """What each item adds to the estimate's error.

    To first order, the estimate is the truth plus the sum of these influences.
    """
    chosen = sample.labelled
    influence = np.zeros(len(sample.judge))
    residuals = sample.human[chosen] - trust * sample.judge[chosen]
    if sample.scheme == "random":
        influence[chosen] = (residuals - residuals.mean()) / len(residuals)
        unlabelled = sample.judge[~chosen]
        if len(unlabelled):
            influence[~chosen] = (
                trust * (unlabelled - unlabelled.mean()) / len(unlabelled)
            )
        return influence
    w = sample.weights[chosen]
    centre = float(np.dot(w, residuals)) / float(w.sum())
    influence += trust * (sample.judge - sample.judge.mean()) / len(influence)
    assert sample.strata is not None
    means = sample.stratum_means(residuals)
    influence[chosen] += w * (residuals - means) / float(w.sum())
    stratum_means = np.bincount(sample.strata[chosen], weights=residuals) / np.bincount(
        sample.strata[chosen]
    )
    return influence + (stratum_means[sample.strata] - centre) / len(influence)


def _inverted_p_value(
    sample: JudgedSample, value: float, freedom: float, value_range: Range | None
) -> float:
    """The p-value of a mean of 0 if labels show no spread, by inverting the interval."""
    if value == 0 or value_range is None:
        return 1.0 if value == 0 else math.nan

    def excludes_zero(rate: float) -> bool:
        low, high, _ = _interval(
            sample, value, 0.0, freedom, value_range, 1 - 2 * rate, True
        )
        return low > 0 if value > 0 else high < 0

    return 2 * greatest_failing(excludes_zero)


def _interval(
    sample: JudgedSample,
    value: float,
    error: float,
    freedom: float,
    value_range: Range | None,
    level: float,
    difference: bool,
) -> tuple[float, float, str]:
    critical = t_quantile(0.5 + level / 2, freedom)
    low = value - critical * error
    high = value + critical * error
    at = (
        f"t (df = {freedom:.0f})"
        if sample.codes is None
        else f"clustered t (G={sample.labelled_units})"
    )
    if value_range is None:
        return (
            (low, high, at)
            if error > 0
            else (math.nan, math.nan, f"{at}: no spread, so no interval")
        )
    ends = sample.labels_at_ends(value_range) and not difference
    if ends or low < value_range[0] or high > value_range[1] or error == 0.0:
        low, high = effective_score_interval(
            value,
            error,
            value_range,
            critical=critical,
            most=len(sample.judge),
            without_spread=sample.labelled_units,
        )
        return low, high, "Wilson (effective n)"
    return low, high, at


@dataclass(frozen=True, slots=True)
class CorrectionParts:
    """A corrected mean in the parts of which differences of corrected means are made.

    Args:
        value: the corrected mean.
        error: its standard error, 0 without any spread.
        freedom: degrees of freedom of `error`.
        proportion: whether the interval is Wilson's with an effective n, else it is t.
        n_judged: items with a verdict, the upper limit of the effective n.
        n_units: labelled items or clusters.
        influence: (items,), what each item adds to the error of `value`; 0 without a verdict.
    """

    value: float
    error: float
    freedom: float
    proportion: bool
    n_judged: int
    n_units: int
    influence: F64


def correction_parts(
    judge: F64,
    human: F64,
    *,
    clusters: Clusters = None,
    strata: Clusters = None,
    value_range: Range | None = (0.0, 1.0),
) -> CorrectionParts | None:
    """Compute the parts of a corrected mean; arguments as for `corrected_mean`.

    None with fewer than two labelled units.
    """
    sample = judged_sample(judge, human, clusters, strata)
    if sample.labelled_units < 2:
        return None
    trust = _best_weight(sample)
    value = _corrected_value(sample, trust)
    variance, freedom = _variance(sample, trust, value_range, difference=False)
    error = math.sqrt(variance)
    proportion = False
    if value_range is not None:
        reach = t_quantile(0.975, freedom) * error
        proportion = (
            sample.labels_at_ends(value_range)
            or value - reach < value_range[0]
            or value + reach > value_range[1]
            or error == 0.0
        )
    influence = np.zeros(len(judge))
    influence[~np.isnan(judge)] = _influence(sample, trust)
    return CorrectionParts(
        value=value,
        error=error,
        freedom=freedom,
        proportion=proportion,
        n_judged=len(sample.judge),
        n_units=sample.labelled_units,
        influence=influence,
    )


# -- Rogan-Gladen ----------------------------------------------------------------------


_LEAST_POWER = 0.1
"""Least sensitivity + specificity - 1 at which a corrected rate is shown.

Below it, the interval is more than ten times as wide as that of the raw rate.
"""

_SHRINK = 0.25
"""Successes and failures added to the counts of sensitivity and specificity.

With none, eight labelled wrong answers give intervals that cover 88%; with the one of Lang &
Reiczigel nearly all cover more than 99%.
"""


@dataclass(frozen=True, slots=True)
class RoganGladen(Plain):
    """The pass rate corrected by the Rogan-Gladen estimator, clipped to [0, 1], with its interval.

    Args:
        value: the corrected rate; nan if it is not useful.
        low: low end of its interval.
        high: high end.
        level: confidence level.
        standard_error: of the corrected rate.
        raw: the judge's pass rate.
        sensitivity: share of right items that the judge passes.
        specificity: share of wrong items that the judge fails.
        separation: sensitivity + specificity - 1: 1 for a perfect judge, 0 for an uninformative
            one.
        separation_low: low end of its interval.
        separation_high: high end.
        useful: False if that interval reaches 0 or the separation is under 0.1; then `value` is nan
            and the interval [0, 1].
        reason: why it is not useful, else "".
        n_judged: judged items, apart from the labelled ones.
        n_labels: labelled items.
        method: how the interval was computed.
    """

    value: float
    low: float
    high: float
    level: float
    standard_error: float | None
    raw: float
    sensitivity: float
    specificity: float
    separation: float
    separation_low: float
    separation_high: float
    useful: bool
    reason: str
    n_judged: int
    n_labels: int
    method: str


def rogan_gladen(
    passed: int,
    judged: int,
    true_positives: int,
    positives: int,
    true_negatives: int,
    negatives: int,
    *,
    level: float = 0.95,
) -> RoganGladen:
    """Correct a judge's pass rate by its sensitivity and specificity (Rogan & Gladen 1978).

    p = (q + sp - 1) / (se + sp - 1) from q = passed/judged, se = true_positives/positives, sp =
    true_negatives/negatives. Variance by the delta method, (q(1-q)/n + p^2 se(1-se)/n_pos + (1-p)^2
    sp(1-sp)/n_neg) / (se+sp-1)^2; for the interval at shrunken rates (after Lang & Reiczigel 2014):
    z^2/2 more of each kind in q, a quarter in se and sp.

    Args:
        passed: judged items that the judge passed.
        judged: judged items, apart from the labelled ones.
        true_positives: labelled right items that the judge passed.
        positives: labelled items that are right.
        true_negatives: labelled wrong items that the judge failed.
        negatives: labelled items that are wrong.
        level: confidence level of the interval.

    Raises:
        ValueError: impossible counts.
    """
    check_level(level)
    for count, total, name in (
        (passed, judged, "passed of judged"),
        (true_positives, positives, "true_positives of positives"),
        (true_negatives, negatives, "true_negatives of negatives"),
    ):
        if not 0 <= count <= total:
            raise ValueError(f"{name}: {count} of {total} cannot be")
    raw, sensitivity, specificity = (
        k / n if n else math.nan
        for k, n in (
            (passed, judged),
            (true_positives, positives),
            (true_negatives, negatives),
        )
    )
    separation = sensitivity + specificity - 1
    z = normal_quantile(0.5 + level / 2)
    size_se = positives + 2 * _SHRINK
    size_sp = negatives + 2 * _SHRINK
    smooth_se = (true_positives + _SHRINK) / size_se
    smooth_sp = (true_negatives + _SHRINK) / size_sp
    part_se = smooth_se * (1 - smooth_se) / size_se
    part_sp = smooth_sp * (1 - smooth_sp) / size_sp
    smooth_j = smooth_se + smooth_sp - 1
    half_j = z * math.sqrt(part_se + part_sp)
    separation_low = max(-1.0, smooth_j - half_j)
    separation_high = min(1.0, smooth_j + half_j)
    reason = _explain_useless(judged, positives, negatives, separation, separation_low)
    value = math.nan
    low = 0.0
    high = 1.0
    error = None
    if not reason:
        value = min(1.0, max(0.0, (raw + specificity - 1) / separation))
        size = judged + z * z
        smooth_q = (passed + z * z / 2) / size
        centre = min(1.0, max(0.0, (smooth_q + smooth_sp - 1) / smooth_j))
        inner = (
            smooth_q * (1 - smooth_q) / size
            + centre**2 * part_se
            + (1 - centre) ** 2 * part_sp
        )
        error = math.sqrt(inner) / smooth_j
        low = max(0.0, min(value, centre - z * error))
        high = min(1.0, max(value, centre + z * error))
    return RoganGladen(
        value=value,
        low=low,
        high=high,
        level=level,
        standard_error=error,
        raw=raw,
        sensitivity=sensitivity,
        specificity=specificity,
        separation=separation,
        separation_low=separation_low,
        separation_high=separation_high,
        useful=not reason,
        reason=reason,
        n_judged=judged,
        n_labels=positives + negatives,
        method=(
            "useless: the whole range"
            if reason
            else "Rogan-Gladen, delta method (shrunken rates)"
        ),
    )


def _explain_useless(
    judged: int,
    positives: int,
    negatives: int,
    separation: float,
    separation_low: float,
) -> str:
    """Explain why no corrected rate can be given; "" if it can."""
    if judged == 0:
        return (
            "the judge judged no item beside the labelled ones, so there is no pass"
            " rate to correct"
        )
    if positives == 0 or negatives == 0:
        missing = "right" if positives == 0 else "wrong"
        return (
            f"no labelled item is {missing}, so the judge's rate on such items is"
            " unknown"
        )
    if separation_low <= 0:
        return (
            "on these labels the judge may give the same verdicts to right and wrong"
            " items"
        )
    if separation < _LEAST_POWER:
        return (
            "the judge barely separates right from wrong items, so its pass rate says"
            " almost nothing"
        )
    return ""
