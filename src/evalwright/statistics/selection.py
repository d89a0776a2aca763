"""Whether confidence sorts right from wrong: AUROC, the risk-coverage curve, accuracy at a coverage.

A model that knows when it is wrong can decline; these say what that is worth. Calibration is another question.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import check_level, t_quantile
from evalwright.statistics.calibration import Answers, read_answers
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.intervals import logit_interval, mean_interval, wilson
from evalwright.statistics.units import F64, I64, Clusters, cluster_spread


@dataclass(frozen=True, slots=True)
class RiskCoverage(Plain):
    """The error rate among the most confident items, by how many are answered.

    `coverage` and `risk`: one point for each distinct confidence, from the most confident on; `threshold` is the
    confidence from which on that share is answered. `area` is AURC, the mean of the risk over all coverages (lower is better);
    `best_area` is that of a confidence that sorts perfectly, `area_by_chance` that of one that sorts nothing.
    """

    coverage: tuple[float, ...]
    risk: tuple[float, ...]
    threshold: tuple[float, ...]
    area: Estimate
    best_area: float
    area_by_chance: float


@dataclass(frozen=True, slots=True)
class SelectiveAccuracy(Plain):
    """Accuracy where only items of confidence >= `threshold` are answered, which is `coverage` of all."""

    accuracy: Estimate
    coverage: float
    threshold: float


def auroc(
    confidence: npt.ArrayLike, right: npt.ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> Estimate:
    """The chance that a right answer has a higher confidence than a wrong one, ties half.

    `confidence` (n,) in [0, 1], `right` (n,) of 0 and 1, nan = missing. Variance of DeLong, DeLong & Clarke-Pearson (1988), by
    clusters that of Obuchowski (1997); interval on the logit scale, which keeps it inside (0, 1) and right at small
    n. nan where all are right or all wrong.
    """
    check_level(level)
    answers = read_answers(confidence, right, clusters)
    good, bad = answers.right == 1.0, answers.right == 0.0
    n_good, n_bad = int(np.count_nonzero(good)), int(np.count_nonzero(bad))
    if n_good == 0 or n_bad == 0:
        return answers.nothing(level, "no interval: all right or all wrong")
    high_good, high_bad = np.sort(answers.confidence[good]), np.sort(answers.confidence[bad])
    placed = np.empty(answers.n)
    placed[good] = _below(high_bad, answers.confidence[good]) / n_bad
    placed[bad] = 1 - _below(high_good, answers.confidence[bad]) / n_good
    value = float(placed[good].mean())
    influence = np.where(good, (placed - value) / n_good, (placed - value) / n_bad)
    if answers.codes is None:
        if n_good < 2 or n_bad < 2:
            return answers.estimate(
                value, 0.0, 1.0, level, None, "one right or wrong answer: the whole range"
            )
        variance = float((influence[good] ** 2).sum()) * n_good / (n_good - 1)
        variance += float((influence[bad] ** 2).sum()) * n_bad / (n_bad - 1)
        df, name = min(n_good, n_bad) - 1.0, "DeLong"
    else:
        weights = np.where(good, 0.5 / n_good, 0.5 / n_bad)
        variance, df = _by_cluster(influence, weights, answers)
        name = f"DeLong by clusters (G={answers.size})"
    error = math.sqrt(variance) if variance > 1e-24 else 0.0
    if answers.size < 2:
        return answers.estimate(value, 0.0, 1.0, level, None, "one cluster: the whole range")
    if error == 0.0 or not 0.0 < value < 1.0:
        least = min(n_good, n_bad, answers.size)
        low, high = wilson(round(value * least), least, level)
        return answers.estimate(value, low, high, level, None, f"Wilson on the rarer kind ({least})")
    low, high = logit_interval(value, error, t_quantile(0.5 + level / 2, df))
    return answers.estimate(value, low, high, level, error, f"{name}, logit t")


def risk_coverage(
    confidence: npt.ArrayLike, right: npt.ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> RiskCoverage:
    """The risk-coverage curve and its area, AURC (Geifman & El-Yaniv 2017; Geifman, Uziel & El-Yaniv 2019).

    Arguments as for `auroc`. Items of equal confidence are taken in random order and the area is the expectation over
    such orders. Interval of the area: t with the infinitesimal jackknife over items or clusters, on the logit scale.
    """
    check_level(level)
    answers = read_answers(confidence, right, clusters)
    if answers.n == 0:
        nothing = answers.nothing(level, "no interval: nothing was scored")
        return RiskCoverage((), (), (), nothing, math.nan, math.nan)
    order = np.argsort(-answers.confidence, kind="stable")
    sure, wrong = answers.confidence[order], 1 - answers.right[order]
    ends = np.append(np.flatnonzero(np.diff(sure)), answers.n - 1)
    sizes = np.diff(np.append(-1, ends))
    sums = np.add.reduceat(wrong, np.append(0, ends[:-1] + 1))
    spread = np.repeat(sums / sizes, sizes)  # the expected error at every place of a run of ties
    taken = np.arange(1, answers.n + 1)
    risks = np.cumsum(spread) / taken
    area = float(risks.mean())
    # What one more item of its kind would change: its own place, and every later place's risk.
    later = np.cumsum((1 / taken)[::-1])[::-1]
    later_risk = np.cumsum((risks / taken)[::-1])[::-1]
    pull = risks + wrong * _over_ties(later, sizes) - _over_ties(later_risk, sizes) - area
    influence = np.empty(answers.n)
    influence[order] = pull / answers.n
    influence -= influence.mean()
    base = float(wrong.mean())
    perfect = np.cumsum(np.sort(wrong)) / taken
    return RiskCoverage(
        coverage=tuple(((ends + 1) / answers.n).tolist()),
        risk=tuple(risks[ends].tolist()),
        threshold=tuple(sure[ends].tolist()),
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
    """Accuracy among the most confident share `coverage` of the items, in (0, 1]; ties at the threshold are all answered.

    The interval takes the threshold as given: it speaks of other items whose confidence reaches it.
    """
    if not 0.0 < coverage <= 1.0:
        raise ValueError(f"coverage must be above 0 and at most 1, but is {coverage!r}")
    answers = read_answers(confidence, right, clusters)
    if answers.n == 0:
        return SelectiveAccuracy(mean_interval([], level=level), math.nan, math.nan)
    rank = max(1, math.ceil(coverage * answers.n - 1e-9))
    threshold = float(np.partition(answers.confidence, answers.n - rank)[answers.n - rank])
    answered = answers.confidence >= threshold
    codes = None if answers.codes is None else answers.codes[answered]
    found = mean_interval(answers.right[answered], clusters=codes, level=level)
    return SelectiveAccuracy(found, float(answered.mean()), threshold)


def _below(values: F64, at: F64) -> F64:
    """For each of `at` how many of the sorted `values` lie below, ties half."""
    below: F64 = (np.searchsorted(values, at, "left") + np.searchsorted(values, at, "right")) / 2
    return below


def _over_ties(values: F64, sizes: I64) -> F64:
    """The mean over a run of ties at every place of that run."""
    starts = np.append(0, np.cumsum(sizes)[:-1])
    means: F64 = np.repeat(np.add.reduceat(values, starts) / sizes, sizes)
    return means


def _by_cluster(influence: F64, weights: F64, answers: Answers) -> tuple[float, float]:
    """Variance and degrees of freedom by CR2, whose leverages are the clusters' shares `weights` of right and wrong answers."""
    assert answers.codes is not None
    n, codes = np.float64(answers.n), answers.codes
    sums, sizes = (n * np.bincount(codes, weights=part) for part in (influence, weights))
    error, freedom, _ = cluster_spread(sums, sizes, n, n**2 * np.float64(np.dot(influence, influence)))
    return float(np.nan_to_num(error)) ** 2, max(float(freedom), 1.0)


def _clustered(influence: F64, answers: Answers) -> float:
    sums = influence if answers.codes is None else np.bincount(answers.codes, weights=influence)
    return float(np.dot(sums, sums)) * answers.size / max(answers.size - 1, 1)


def _area_estimate(answers: Answers, area: float, influence: F64, level: float) -> Estimate:
    if answers.size < 2:
        return answers.estimate(area, 0.0, 1.0, level, None, "one unit: the whole range")
    error = math.sqrt(_clustered(influence, answers))
    if error <= 1e-12 or not 0.0 < area < 1.0:
        low, high = wilson(round(area * answers.size), answers.size, level)
        return answers.estimate(area, low, high, level, None, "Wilson: all right or all wrong")
    low, high = logit_interval(area, error, t_quantile(0.5 + level / 2, answers.size - 1))
    what = "items" if answers.codes is None else "clusters"
    return answers.estimate(area, low, high, level, error, f"jackknife over {what}, logit t")
