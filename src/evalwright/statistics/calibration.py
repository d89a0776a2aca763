"""Calibration of a model's confidence, and how well it separates right answers from wrong ones.

For calibration: the Brier score and its parts, and the calibration error over bins of equal
mass. For separation: AUROC, the risk-coverage curve, and accuracy at a coverage.

Confidence is the stated probability (from log-probabilities, words, or the agreement of
samples) that an answer is right. A model that knows when it is wrong can decline to answer; how
useful that is does not depend on the calibration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import check_level, normal_quantile, t_quantile
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.intervals import (
    alike_interval,
    logit_interval,
    mean_interval,
    wilson,
)
from evalwright.statistics.units import (
    F64,
    I64,
    Clusters,
    KeptItems,
    cluster_spread,
    kept_codes,
)

_DRAWS = 1000
_SCALES = 61


@dataclass(frozen=True, slots=True)
class Answers(KeptItems):
    """The confidence, and right (1) or wrong (0), of the items that have both."""

    confidence: F64
    right: F64


@dataclass(frozen=True, slots=True)
class BrierScore(Plain):
    """The Brier score, the mean of (confidence - right)^2, and its decomposition.

    score = reliability - resolution + uncertainty + within_bin, exactly (Murphy 1973; Stephenson,
    Coelho & Jolliffe 2008 for the last).

    Attributes:
        score: the Brier score with its interval; lower is better.
        reliability: how far the bins' mean confidence is from their accuracy; lower is better.
        resolution: how far the bins' accuracy is from the average; higher is better.
        uncertainty: the variance of right and wrong.
        within_bin: the variance of confidence inside the bins, minus twice its covariance with
            right.
        bins: number of bins.
    """

    score: Estimate
    reliability: float
    resolution: float
    uncertainty: float
    within_bin: float
    bins: int


@dataclass(frozen=True, slots=True)
class CalibrationError(Plain):
    """Expected calibration error over bins of equal mass, with an interval.

    The usual figure is biased upwards, because the noise of every bin counts as error.

    Attributes:
        value: the error without the bias: the size of error whose median would be `raw`; 0 where
            noise alone would explain it.
        low: low end of the interval of the error over these bins.
        high: its high end.
        level: confidence level.
        raw: the usual figure, the sum over bins of share * |confidence - accuracy|.
        if_calibrated: what `raw` would be on average for perfectly calibrated confidence of the
            same values.
        calibrated_limit: what `raw` would stay below with probability `level` in that case.
        miscalibrated: whether raw > calibrated_limit, and with clusters low > 0 too.
        overconfidence: mean confidence minus accuracy.
        n: number of items.
        n_missing: items without confidence or score.
        n_clusters: number of clusters, None where items are independent.
        bins: number of bins.
        standard_error: of the error, None where the data show no spread.
        method: how the interval was computed.
    """

    value: float
    low: float
    high: float
    level: float
    raw: float
    if_calibrated: float
    calibrated_limit: float
    miscalibrated: bool
    overconfidence: float
    n: int
    n_missing: int
    n_clusters: int | None
    bins: int
    standard_error: float | None
    method: str


def read_answers(
    confidence: npt.ArrayLike, right: npt.ArrayLike, clusters: Clusters
) -> Answers:
    """Check confidence (n,) in [0, 1] and right (n,) of 0 and 1, and keep items that have both.

    nan is missing. Raises ValueError for wrong shapes or values.
    """
    stated = np.asarray(confidence, dtype=np.float64)
    mark = np.asarray(right, dtype=np.float64)
    if stated.ndim != 1 or stated.shape != mark.shape:
        raise ValueError(
            f"confidence and right must be vectors of one length, not {stated.shape} and"
            f" {mark.shape}"
        )
    is_complete = ~(np.isnan(stated) | np.isnan(mark))
    n_left_out = int(len(is_complete) - np.count_nonzero(is_complete))
    stated = stated[is_complete]
    mark = mark[is_complete]
    if not ((stated >= 0) & (stated <= 1)).all():
        raise ValueError(
            "confidence must be between 0 and 1; divide percentages by 100"
        )
    if not ((mark == 0) | (mark == 1)).all():
        raise ValueError("right must be 1 for right and 0 for wrong answers")
    codes, n_clusters = kept_codes(clusters, is_complete)
    return Answers(len(mark), n_left_out, codes, n_clusters, stated, mark)


def brier_score(
    confidence: npt.ArrayLike,
    right: npt.ArrayLike,
    *,
    bins: int = 10,
    clusters: Clusters = None,
    level: float = 0.95,
) -> BrierScore:
    """Brier score (1950) with Murphy's (1973) decomposition over bins of equal mass.

    The interval is that of `mean_interval`.

    Args:
        confidence: (n,) in [0, 1], nan is missing.
        right: (n,) of 0 and 1, nan is missing.
        bins: the largest number of bins; equal confidence stays in one bin.
        clusters: (n,) integers; items that share one are not independent.
        level: confidence level of the interval.
    """
    answers = read_answers(confidence, right, clusters)
    losses = (answers.confidence - answers.right) ** 2
    score = mean_interval(
        losses, clusters=answers.codes, n_missing=answers.n_left_out, level=level
    )
    if answers.n == 0:
        return BrierScore(score, math.nan, math.nan, math.nan, math.nan, 0)
    rows = equal_mass_bins(answers.confidence, bins)
    sizes = np.bincount(rows)
    stated, accuracy = (
        np.bincount(rows, weights=v) / sizes
        for v in (answers.confidence, answers.right)
    )
    share = sizes / answers.n
    base = float(answers.right.mean())
    spread = answers.confidence - stated[rows]
    within = float(
        (spread**2).mean() - 2 * (spread * (answers.right - accuracy[rows])).mean()
    )
    reliability = float(np.dot(share, (stated - accuracy) ** 2))
    resolution = float(np.dot(share, (accuracy - base) ** 2))
    return BrierScore(
        score, reliability, resolution, base * (1 - base), within, len(sizes)
    )


def calibration_error(
    confidence: npt.ArrayLike,
    right: npt.ArrayLike,
    *,
    bins: int = 15,
    clusters: Clusters = None,
    level: float = 0.95,
    draws: int = _DRAWS,
    seed: int = 0,
) -> CalibrationError:
    """Expected calibration error over bins of equal mass, with its upward bias removed.

    The bins are those of the data and stay fixed in resamples. For the interval, the pattern of the
    bins' gaps is scaled up and down, with resampled noise added, and it keeps those scales that
    would produce an error like the observed one (percentiles of a plain bootstrap would count the
    noise twice). `if_calibrated` draws right answers with the stated probabilities, as if items
    were independent.

    Args:
        confidence: (n,) in [0, 1], nan is missing.
        right: (n,) of 0 and 1, nan is missing.
        bins: the largest number of bins; equal confidence stays in one bin.
        clusters: (n,) integers; items that share one are not independent.
        level: confidence level of the interval.
        draws: number of resamples.
        seed: seeds the resampling.
    """
    check_level(level)
    answers = read_answers(confidence, right, clusters)
    if answers.n == 0:
        none = "no interval: nothing was scored"
        return _unknown_error(answers, level, none)
    rows = equal_mass_bins(answers.confidence, bins)
    sizes = np.bincount(rows).astype(np.float64)
    gaps = np.bincount(rows, weights=answers.confidence - answers.right) / answers.n
    raw = float(np.abs(gaps).sum())
    rng = np.random.default_rng(seed)
    ideal = _simulate_calibrated(answers, rows, len(sizes), draws, rng)
    limit = float(np.quantile(ideal, level))
    low, high, value, error, method = _error_interval(
        answers, rows, gaps, raw, level, draws, rng
    )
    return CalibrationError(
        value=value,
        low=low,
        high=high,
        level=level,
        raw=raw,
        if_calibrated=float(ideal.mean()),
        calibrated_limit=limit,
        miscalibrated=raw > limit and (answers.codes is None or low > 0),
        overconfidence=float(gaps.sum()),
        n=answers.n,
        n_missing=answers.n_left_out,
        n_clusters=answers.n_clusters,
        bins=len(sizes),
        standard_error=error,
        method=method,
    )


def equal_mass_bins(confidence: F64, bins: int) -> I64:
    """Assign each item to a bin 0..B-1, with at most `bins` bins of about equal size.

    Items of equal confidence are in one bin.
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, but is {bins}")
    values, inverse, counts = np.unique(
        confidence, return_inverse=True, return_counts=True
    )
    # Each distinct value goes to the bin in which the middle of its items falls.
    middle = np.cumsum(counts) - (counts + 1) / 2
    places = np.minimum((middle * bins / len(confidence)).astype(np.int64), bins - 1)
    _, codes = np.unique(places, return_inverse=True)
    rows: I64 = (
        codes.astype(np.int64)[inverse] if len(values) else np.zeros(0, dtype=np.int64)
    )
    return rows


def _simulate_calibrated(
    answers: Answers, rows: I64, bins: int, draws: int, rng: np.random.Generator
) -> F64:
    """Simulate the raw error for perfectly calibrated confidence.

    Every item is right with its stated probability, and the bins' sums are taken as normal.
    """
    variance = np.bincount(
        rows, weights=answers.confidence * (1 - answers.confidence), minlength=bins
    )
    noise = rng.standard_normal((draws, bins)) * np.sqrt(variance) / answers.n
    errors: F64 = np.abs(noise).sum(axis=1)
    return errors


def _error_interval(
    answers: Answers,
    rows: I64,
    gaps: F64,
    raw: float,
    level: float,
    draws: int,
    rng: np.random.Generator,
) -> tuple[float, float, float, float | None, str]:
    """Compute low end, high end, value without bias, standard error and method's name."""
    unit_name = "items" if answers.codes is None else "clusters"
    if answers.size < 2:
        return (
            0.0,
            1.0,
            raw,
            None,
            f"one {unit_name.removesuffix('s')}: the whole range",
        )
    values, vectors = np.linalg.eigh(_gap_covariance(answers, rows, len(gaps)))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    wider = t_quantile(0.5 + level / 2, answers.size - 1) / normal_quantile(
        0.5 + level / 2
    )
    noise = wider * rng.standard_normal((draws, len(gaps))) @ root.T
    spread = float(np.abs(gaps + noise).sum(axis=1).std(ddof=1))
    if not raw > 0 or not spread > 0:
        low, high = alike_interval(raw, answers.size, (0.0, 1.0), level)
        return low, high, raw, None, f"rule of three ({answers.size} {unit_name} alike)"
    # Scale the observed pattern of gaps: which scales would produce an error like the observed one?
    method = f"bootstrap over {unit_name}, test inverted"
    scales = np.linspace(0.0, 1.0 + 6.0 * spread / raw, _SCALES)
    tails = (0.5 - level / 2, 0.5, 0.5 + level / 2)
    quantiles = np.array(
        [np.quantile(np.abs(s * gaps + noise).sum(axis=1), tails) for s in scales]
    )
    quantiles = np.maximum.accumulate(quantiles, axis=0)
    high, value, low = (
        min(1.0, raw * float(np.interp(raw, quantiles[:, k], scales))) for k in range(3)
    )
    return (
        low,
        max(high, _coarse_limit(gaps, noise, level)),
        value,
        spread / wider,
        method,
    )


def _coarse_limit(gaps: F64, noise: F64, level: float) -> float:
    """The greatest upper end from the bins as they are, and from joined ones.

    Noise makes even gaps look ragged, so that the real error is underestimated where gaps are even.
    Joined bins have less noise and no more error than the bins they consist of, so the upper end of
    the error cannot be below theirs.
    """
    ends = []
    for joined in {1, min(3, len(gaps)), len(gaps)}:
        into = np.eye(joined)[np.arange(len(gaps)) * joined // len(gaps)]
        sums = gaps @ into
        spread = noise @ into
        resampled = np.abs(sums + spread).sum(axis=1)
        reach = normal_quantile(0.5 + level / 2) * float(resampled.std(ddof=1))
        ends.append(2 * float(np.abs(sums).sum()) - float(resampled.mean()) + reach)
    return min(1.0, max(ends))


def _gap_covariance(answers: Answers, rows: I64, bins: int) -> F64:
    """The covariance of the bins' gaps.

    A gap is the bin's share of all items times confidence minus accuracy.
    """
    signed = answers.confidence - answers.right
    means = np.bincount(rows, weights=signed, minlength=bins) / np.bincount(
        rows, minlength=bins
    )
    residuals = (signed - means[rows]) / answers.n
    if answers.codes is None:
        sizes = np.bincount(rows, minlength=bins)
        squares = np.bincount(rows, weights=residuals**2, minlength=bins)
        return np.diag(squares * sizes / np.maximum(sizes - 1, 1))
    totals = np.zeros((answers.size, bins))
    np.add.at(totals, (answers.codes, rows), residuals)
    covariance: F64 = totals.T @ totals * (answers.size / (answers.size - 1))
    return covariance


def _unknown_error(answers: Answers, level: float, method: str) -> CalibrationError:
    nan = math.nan
    return CalibrationError(
        nan,
        nan,
        nan,
        level,
        nan,
        nan,
        nan,
        False,
        nan,
        0,
        answers.n_left_out,
        None,
        0,
        None,
        method,
    )


# -- selection -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RiskCoverage(Plain):
    """The error rate among the most confident items, as a function of how many are answered.

    Attributes:
        coverage: the share of items answered, one point for each distinct confidence, the most
            confident first.
        risk: the error rate among these items.
        threshold: the least confidence among these items.
        area: AURC, the mean of the risk over all coverages; lower is better.
        best_area: that of a confidence that separates right and wrong perfectly.
        area_by_chance: that of a confidence unrelated to right and wrong.
    """

    coverage: tuple[float, ...]
    risk: tuple[float, ...]
    threshold: tuple[float, ...]
    area: Estimate
    best_area: float
    area_by_chance: float


@dataclass(frozen=True, slots=True)
class SelectiveAccuracy(Plain):
    """The accuracy where only items with confidence >= `threshold` are answered.

    `coverage` is the share of items that this is.
    """

    accuracy: Estimate
    coverage: float
    threshold: float


def auroc(
    confidence: npt.ArrayLike,
    right: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Estimate:
    """AUROC: the chance that a right answer has a higher confidence than a wrong one, ties half.

    Variance of DeLong, DeLong & Clarke-Pearson (1988), with clusters that of Obuchowski (1997); the
    interval is on the logit scale, which keeps it inside (0, 1) and accurate at small n.

    Args:
        confidence: (n,) in [0, 1], nan is missing.
        right: (n,) of 0 and 1, nan is missing.
        clusters: (n,) integers; items that share one are not independent.
        level: confidence level of the interval.

    Returns:
        The estimate; nan where all answers are right or all are wrong.
    """
    check_level(level)
    answers = read_answers(confidence, right, clusters)
    good = answers.right == 1.0
    bad = answers.right == 0.0
    n_good = int(np.count_nonzero(good))
    n_bad = int(np.count_nonzero(bad))
    if n_good == 0 or n_bad == 0:
        return answers.nothing(level, "no interval: all right or all wrong")
    high_good = np.sort(answers.confidence[good])
    high_bad = np.sort(answers.confidence[bad])
    placed = np.empty(answers.n)
    placed[good] = _share_below(high_bad, answers.confidence[good]) / n_bad
    placed[bad] = 1 - _share_below(high_good, answers.confidence[bad]) / n_good
    value = float(placed[good].mean())
    influence = np.where(good, (placed - value) / n_good, (placed - value) / n_bad)
    if answers.codes is None:
        if n_good < 2 or n_bad < 2:
            return answers.estimate(
                value,
                0.0,
                1.0,
                level,
                None,
                "one right or wrong answer: the whole range",
            )
        variance = float((influence[good] ** 2).sum()) * n_good / (n_good - 1)
        variance += float((influence[bad] ** 2).sum()) * n_bad / (n_bad - 1)
        df = min(n_good, n_bad) - 1.0
        name = "DeLong"
    else:
        weights = np.where(good, 0.5 / n_good, 0.5 / n_bad)
        variance, df = _cluster_variance(influence, weights, answers)
        name = f"DeLong by clusters (G={answers.size})"
    error = math.sqrt(variance) if variance > 1e-24 else 0.0
    if answers.size < 2:
        return answers.estimate(
            value, 0.0, 1.0, level, None, "one cluster: the whole range"
        )
    if error == 0.0 or not 0.0 < value < 1.0:
        least = min(n_good, n_bad, answers.size)
        low, high = wilson(round(value * least), least, level)
        return answers.estimate(
            value, low, high, level, None, f"Wilson on the rarer kind ({least})"
        )
    low, high = logit_interval(value, error, t_quantile(0.5 + level / 2, df))
    return answers.estimate(value, low, high, level, error, f"{name}, logit t")


def risk_coverage(
    confidence: npt.ArrayLike,
    right: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
) -> RiskCoverage:
    """The risk-coverage curve and its area, AURC (Geifman & El-Yaniv 2017; Geifman et al. 2019).

    Items of equal confidence are taken in random order, and the area is the expectation over such
    orders. Its interval: t with the infinitesimal jackknife over items or clusters, on the logit
    scale. Arguments as for `auroc`.
    """
    check_level(level)
    answers = read_answers(confidence, right, clusters)
    if answers.n == 0:
        nothing = answers.nothing(level, "no interval: nothing was scored")
        return RiskCoverage((), (), (), nothing, math.nan, math.nan)
    order = np.argsort(-answers.confidence, kind="stable")
    sorted_confidence = answers.confidence[order]
    wrong = 1 - answers.right[order]
    ends = np.append(np.flatnonzero(np.diff(sorted_confidence)), answers.n - 1)
    sizes = np.diff(np.append(-1, ends))
    sums = np.add.reduceat(wrong, np.append(0, ends[:-1] + 1))
    spread = np.repeat(
        sums / sizes, sizes
    )  # the expected error at every place of a run of ties
    n_answered = np.arange(1, answers.n + 1)
    risks = np.cumsum(spread) / n_answered
    area = float(risks.mean())
    # How one more such item would change the area: through its own position, and the risk at every
    # later one.
    later = np.cumsum((1 / n_answered)[::-1])[::-1]
    later_risk = np.cumsum((risks / n_answered)[::-1])[::-1]
    pull = (
        risks
        + wrong * _mean_over_ties(later, sizes)
        - _mean_over_ties(later_risk, sizes)
        - area
    )
    influence = np.empty(answers.n)
    influence[order] = pull / answers.n
    influence -= influence.mean()
    base = float(wrong.mean())
    perfect = np.cumsum(np.sort(wrong)) / n_answered
    return RiskCoverage(
        coverage=tuple(((ends + 1) / answers.n).tolist()),
        risk=tuple(risks[ends].tolist()),
        threshold=tuple(sorted_confidence[ends].tolist()),
        area=_area_estimate(answers, area, influence, level),
        best_area=float(perfect.mean()),
        area_by_chance=base,
    )


def accuracy_at_coverage(
    confidence: npt.ArrayLike,
    right: npt.ArrayLike,
    coverage: float,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
) -> SelectiveAccuracy:
    """Accuracy among the share `coverage`, in (0, 1], of items with the highest confidence.

    Items tied at the threshold are all answered. The interval takes the threshold as given: it is
    about other items whose confidence reaches it. Other arguments as for `auroc`.
    """
    if not 0.0 < coverage <= 1.0:
        raise ValueError(f"coverage must be above 0 and at most 1, but is {coverage!r}")
    answers = read_answers(confidence, right, clusters)
    if answers.n == 0:
        return SelectiveAccuracy(mean_interval([], level=level), math.nan, math.nan)
    rank = max(1, math.ceil(coverage * answers.n - 1e-9))
    threshold = float(
        np.partition(answers.confidence, answers.n - rank)[answers.n - rank]
    )
    answered = answers.confidence >= threshold
    codes = None if answers.codes is None else answers.codes[answered]
    accuracy = mean_interval(answers.right[answered], clusters=codes, level=level)
    return SelectiveAccuracy(accuracy, float(answered.mean()), threshold)


def _share_below(values: F64, at: F64) -> F64:
    """For each of `at`, count how many of the sorted `values` are below it, ties half."""
    below: F64 = (
        np.searchsorted(values, at, "left") + np.searchsorted(values, at, "right")
    ) / 2
    return below


def _mean_over_ties(values: F64, sizes: I64) -> F64:
    """Replace each value by the mean over its run of ties; `sizes` are the lengths of the runs."""
    starts = np.append(0, np.cumsum(sizes)[:-1])
    means: F64 = np.repeat(np.add.reduceat(values, starts) / sizes, sizes)
    return means


def _cluster_variance(
    influence: F64, weights: F64, answers: Answers
) -> tuple[float, float]:
    """Variance and degrees of freedom by the CR2 estimator (Bell & McCaffrey 2002).

    A cluster's leverage is its share `weights` of the right and wrong answers.
    """
    assert answers.codes is not None
    n = np.float64(answers.n)
    codes = answers.codes
    sums, sizes = (
        n * np.bincount(codes, weights=part) for part in (influence, weights)
    )
    error, freedom, _ = cluster_spread(
        sums, sizes, n, n**2 * np.float64(np.dot(influence, influence))
    )
    return float(np.nan_to_num(error)) ** 2, max(float(freedom), 1.0)


def _area_estimate(
    answers: Answers, area: float, influence: F64, level: float
) -> Estimate:
    if answers.size < 2:
        return answers.estimate(
            area, 0.0, 1.0, level, None, "one unit: the whole range"
        )
    sums = (
        influence
        if answers.codes is None
        else np.bincount(answers.codes, weights=influence)
    )
    error = math.sqrt(
        float(np.dot(sums, sums)) * answers.size / max(answers.size - 1, 1)
    )
    if error <= 1e-12 or not 0.0 < area < 1.0:
        low, high = wilson(round(area * answers.size), answers.size, level)
        return answers.estimate(
            area, low, high, level, None, "Wilson: all right or all wrong"
        )
    low, high = logit_interval(
        area, error, t_quantile(0.5 + level / 2, answers.size - 1)
    )
    unit_name = "items" if answers.codes is None else "clusters"
    return answers.estimate(
        area, low, high, level, error, f"jackknife over {unit_name}, logit t"
    )
