"""Judged scores of many models corrected by human labels, and their differences, for ranks.

A model with enough labels of its own gets PPI++ (`judge_correction`), which assumes nothing about
the judge. All others stay without a corrected score, because the judge's errors on the answers of
other models need not be those on theirs (`judge_errors`).

Differences are tested between corrected scores. Each score has an influence for every item, so
that labels and verdicts on the same items (or clusters) are paired, and their correlation r counts,
whichever answers were labelled. The interval of a difference a - b combines those of both scores
(MOVER; Zou & Donner 2008, and Zou 2007 for correlated ones):

    low  = a - b - sqrt((a - la)^2 + (ub - b)^2 - 2 r (a - la) (ub - b))
    high = a - b + sqrt((ua - a)^2 + (b - lb)^2 - 2 r (ua - a) (b - lb))

so a rate near 0 from few labels keeps its long upper side, where a t interval of the difference
would be symmetric. Its p-value is the error rate at which the interval reaches 0, and verdicts
over all pairs are Holm's. A pair is compared on the items for which the judge has a verdict on
both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.judge_correction import (
    CorrectionParts,
    JudgeCorrection,
    corrected_mean,
    correction_parts,
)
from evalwright.statistics.judge_errors import (
    ErrorRate,
    PooledRate,
    error_rates,
    pool_rates,
)
from evalwright.statistics.labelling import judged_sample
from evalwright.statistics.many_models import AllDifferences, assemble_differences
from evalwright.statistics.pairwise import AllPairs
from evalwright.statistics.units import F64, I64, Clusters, Range

FEWEST_LABELS = 20
"""Least labelled items or clusters at which a model is corrected.

With 20, intervals cover 97 to 99% from rates of 3% to 40% (docs/reference/coverage.md). With 10
they do too, but are half the range wide, and a judge that was right ten times shows little.
"""
_STEPS = 45
_LEAST_SHARE = 1e-12


@dataclass(frozen=True, slots=True)
class LabelledModel:
    """A judge's verdicts on one model's answers, and the labels of some.

    Items have the same position in all models.

    Args:
        judge: (items,), verdicts, nan where there is none.
        human: (items,), labels, nan where there is none.
        strata: (items,), the stratum from which each item was drawn; None for a simple random
            set. Any code will do for items without a verdict.
        scale: (items,), factors on verdicts and labels, with which their mean is the score (an
            average over tasks of unequal size); None for the plain mean.
    """

    judge: F64
    human: F64
    strata: I64 | None = None
    scale: F64 | None = None

    @property
    def scaled(self) -> LabelledModel:
        """The model with its scale multiplied in."""
        if self.scale is None:
            return self
        return replace(
            self,
            judge=self.judge * self.scale,
            human=self.human * self.scale,
            scale=None,
        )


@dataclass(frozen=True, slots=True)
class CorrectedScore:
    """A model's corrected score.

    Args:
        estimate: the score with its interval; None if the model stays uncorrected.
        reason: why it does; "" for a corrected score.
        labels: number of the model's own labels.
        judge_mean: the mean of the verdicts.
        false_alarm: the judge's rate of false alarms on its answers; None if unknown.
        miss: its rate of misses on its answers.
    """

    estimate: Estimate | None
    reason: str
    labels: int
    judge_mean: float
    false_alarm: Estimate | None
    miss: Estimate | None


@dataclass(frozen=True, slots=True)
class CorrectedScores:
    """The corrected scores of all models, and what they were made of.

    Args:
        scores: one for each model.
        false_alarm: the judge's rate of false alarms over all models, None if it is unknown.
        miss: its rate of misses over all models.
        differences: all pairs of the models `compared`; None with fewer than two.
        compared: positions of the models with a corrected score.
    """

    scores: tuple[CorrectedScore, ...]
    false_alarm: PooledRate | None
    miss: PooledRate | None
    differences: AllDifferences | None
    compared: tuple[int, ...]


def correct_scores(
    models: Sequence[LabelledModel],
    *,
    clusters: Clusters = None,
    value_range: Range | None = (0.0, 1.0),
    level: float = 0.95,
) -> CorrectedScores:
    """Correct the scores of all models, and compare all pairs.

    Args:
        models: verdicts and labels of each model.
        clusters: (items,) integers; items that share one are not independent.
        value_range: the least and greatest possible score; None if unlimited.
        level: confidence level of intervals, and 1 minus the chance of any false finding.

    Raises:
        ValueError: shapes or values that do not fit.
    """
    check_level(level)
    rates = [_rates_of(model, clusters) for model in models]
    alarm, miss = (
        pool_rates([pair[kind] for pair in rates if pair is not None], level)
        for kind in (0, 1)
    )
    scores = []
    sides = list[_Side | None]()
    if any(model.scale is not None for model in models):
        value_range = None
    models = [model.scaled for model in models]
    for model, own_rates in zip(models, rates, strict=True):
        score = _correct_model(model, own_rates, clusters, value_range, level)
        scores.append(score)
        sides.append(
            None if score.estimate is None else _side_of(model, clusters, value_range)
        )
    compared = tuple(i for i, side in enumerate(sides) if side is not None)
    differences = None
    if len(compared) > 1:
        differences = _compare(
            [models[i] for i in compared],
            [side for side in sides if side is not None],
            clusters,
            value_range,
            level,
        )
    return CorrectedScores(tuple(scores), alarm, miss, differences, compared)


@dataclass(frozen=True, slots=True)
class _Side:
    """One model's corrected score as a side of differences.

    Attributes:
        parts: value, error and influences.
        refit: computes the parts on some of the items only; None where that is impossible.
    """

    parts: CorrectionParts
    refit: Callable[[npt.NDArray[np.bool_]], CorrectionParts | None]


def _rates_of(
    model: LabelledModel, clusters: Clusters
) -> tuple[ErrorRate, ErrorRate] | None:
    """The judge's error rates on a model's labelled answers.

    None for graded labels, for which no rate exists, and for strata with too few labels.
    """
    try:
        sample = judged_sample(model.judge, model.human, clusters, model.strata)
    except ValueError:
        return None
    if not sample.labelled.any() or not sample.labels_at_ends((0.0, 1.0)):
        return None
    return error_rates(sample)


def _correct_model(
    model: LabelledModel,
    rates: tuple[ErrorRate, ErrorRate] | None,
    clusters: Clusters,
    value_range: Range | None,
    level: float,
) -> CorrectedScore:
    judged = ~np.isnan(model.judge)
    labels = int(np.count_nonzero(judged & ~np.isnan(model.human)))
    reason = _why_uncorrected(model, labels, clusters)
    estimate = None
    if not reason:
        correction = corrected_mean(
            model.judge,
            model.human,
            clusters=clusters,
            strata=model.strata,
            value_range=value_range,
            level=level,
        )
        estimate = _estimate_of(correction)
    return CorrectedScore(
        estimate=estimate,
        reason=reason,
        labels=labels,
        judge_mean=float(model.judge[judged].mean()) if judged.any() else np.nan,
        false_alarm=rates[0].estimate if rates else None,
        miss=rates[1].estimate if rates else None,
    )


def _why_uncorrected(model: LabelledModel, labels: int, clusters: Clusters) -> str:
    """Why a model's labels do not suffice; "" if they do."""
    if not labels:
        return "it has no labels"
    try:
        sample = judged_sample(model.judge, model.human, clusters, model.strata)
    except ValueError:
        return "a stratum of its answers has fewer than two labels"
    units = sample.labelled_units
    if units >= min(FEWEST_LABELS, len(sample.judge)):
        return ""
    kind = "labels" if units == labels else "labelled clusters"
    return f"it has {units} {kind}, fewer than {FEWEST_LABELS}"


def _estimate_of(correction: JudgeCorrection) -> Estimate:
    return Estimate(
        value=correction.value,
        low=correction.low,
        high=correction.high,
        level=correction.level,
        n=correction.n_judged,
        n_missing=correction.n_left_out,
        n_clusters=correction.n_clusters,
        standard_error=correction.standard_error,
        method=correction.method,
    )


def _side_of(
    model: LabelledModel, clusters: Clusters, value_range: Range | None
) -> _Side | None:
    def refit(judged_items: npt.NDArray[np.bool_]) -> CorrectionParts | None:
        try:
            return correction_parts(
                np.where(judged_items, model.judge, np.nan),
                model.human,
                clusters=clusters,
                strata=model.strata,
                value_range=value_range,
            )
        except ValueError:
            return None

    parts = refit(np.ones(len(model.judge), dtype=np.bool_))
    return None if parts is None else _Side(parts, refit)


# -- differences -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Limits:
    """What gives the limits of many scores at any level, as arrays of one shape."""

    value: F64
    error: F64
    freedom: F64
    proportion: npt.NDArray[np.bool_]
    most: F64
    units: F64

    def at(self, share: F64, bounded: bool = True) -> tuple[F64, F64]:
        """The limits at error rates `share`."""
        from scipy.special import stdtrit

        critical = np.asarray(stdtrit(self.freedom, 1 - share / 2))
        low = self.value - critical * self.error
        high = self.value + critical * self.error
        if not bounded:
            return low, high
        p = np.clip(self.value, 0.0, 1.0)
        spread = p * (1 - p)
        inside = (spread > 0) & (self.error > 0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            size = np.where(
                inside, np.minimum(self.most, spread / self.error**2), self.units
            )
            square = critical**2 / size
            half = (
                critical * np.sqrt(spread / size + square / (4 * size)) / (1 + square)
            )
            centre = (p + square / 2) / (1 + square)
        low = np.where(self.proportion, centre - half, low)
        high = np.where(self.proportion, centre + half, high)
        return (
            np.minimum(np.maximum(low, 0.0), self.value),
            np.maximum(np.minimum(high, 1.0), self.value),
        )


def _limits_from(parts: Sequence[CorrectionParts]) -> _Limits:
    return _Limits(
        value=np.array([part.value for part in parts]),
        error=np.array([part.error for part in parts]),
        freedom=np.array([part.freedom for part in parts]),
        proportion=np.array([part.proportion for part in parts]),
        most=np.array([part.n_judged for part in parts], dtype=np.float64),
        units=np.array([part.n_units for part in parts], dtype=np.float64),
    )


def _compare(
    models: Sequence[LabelledModel],
    sides: Sequence[_Side],
    clusters: Clusters,
    value_range: Range | None,
    level: float,
) -> AllDifferences:
    """Compare all pairs of corrected models."""
    count = len(models)
    rows, columns = np.triu_indices(count, 1)
    judged = np.stack([~np.isnan(model.judge) for model in models])
    codes = (
        None
        if clusters is None
        else np.unique(np.asarray(clusters), return_inverse=True)[1]
    )
    left, right, covariance = _pair_parts(sides, judged, codes, rows, columns)
    compared = np.array([part is not None for part in left])
    none = replace(sides[0].parts, value=np.nan, error=np.nan)
    pairs = _Pairs(
        _limits_from([part or none for part in left]),
        _limits_from([part or none for part in right]),
        covariance,
        bounded=value_range is not None,
    )
    p_values = pairs.p_values()

    def table(upper: F64, mirror: float = 1.0) -> F64:
        full = np.full((count, count), np.nan)
        full[rows, columns] = upper
        full[columns, rows] = mirror * upper
        return full

    def limits(share: F64) -> tuple[F64, F64]:
        low = np.full((count, count), np.nan)
        high = np.full((count, count), np.nan)
        low[rows, columns], high[rows, columns] = pairs.limits(share[rows, columns])
        turned_low, turned_high = pairs.limits(share[columns, rows])
        low[columns, rows] = -turned_high
        high[columns, rows] = -turned_low
        return low, high

    common = (judged.astype(np.float64) @ judged.T.astype(np.float64)).astype(np.int64)
    difference = table(np.where(compared, pairs.difference, np.nan), -1.0)
    error = table(pairs.error)
    for array in (difference, error):
        np.fill_diagonal(array, 0.0)
    zeros = np.zeros((count, count))
    all_pairs = AllPairs(
        difference=difference,
        error=error,
        freedom=np.full((count, count), np.inf),
        n=common,
        units=common,
        effective_units=zeros,
        counts=None,
        span=np.nan,
        n_missing=zeros.astype(np.int64),
        counted=zeros.astype(np.bool_),
        differing=zeros,
        skewness=zeros,
    )
    return assemble_differences(
        all_pairs,
        table(p_values),
        limits,
        level=level,
        missing_policy="scored",
        method="corrected scores, MOVER of their intervals",
    )


def _pair_parts(
    sides: Sequence[_Side],
    judged: npt.NDArray[np.bool_],
    codes: I64 | None,
    rows: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
) -> tuple[list[CorrectionParts | None], list[CorrectionParts | None], F64]:
    """Both scores of each pair on the items that both have, and their covariance."""
    masks = [mask.tobytes() for mask in judged]
    full = np.stack([_summed(side.parts.influence, codes) for side in sides])
    products = full @ full.T
    left = list[CorrectionParts | None]()
    right = list[CorrectionParts | None]()
    covariance = np.empty(len(rows))
    for pair, (a, b) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
        part_a: CorrectionParts | None = sides[a].parts
        part_b: CorrectionParts | None = sides[b].parts
        covariance[pair] = products[a, b]
        if masks[a] != masks[b]:
            judged_for_both = judged[a] & judged[b]
            part_a = sides[a].refit(judged_for_both)
            part_b = sides[b].refit(judged_for_both)
            if part_a is None or part_b is None:
                part_a = part_b = None
            else:
                covariance[pair] = np.dot(
                    _summed(part_a.influence, codes), _summed(part_b.influence, codes)
                )
        left.append(part_a)
        right.append(part_b)
    return left, right, covariance


def _summed(influence: F64, codes: I64 | None) -> F64:
    if codes is None:
        return influence
    sums: F64 = np.bincount(codes, weights=influence).astype(np.float64)
    return sums


@dataclass(frozen=True, slots=True)
class _Pairs:
    """All pairs of two sides, (pairs,)."""

    left: _Limits
    right: _Limits
    covariance: F64
    bounded: bool

    @property
    def difference(self) -> F64:
        return self.left.value - self.right.value

    @property
    def error(self) -> F64:
        """The standard error of the difference."""
        squares = self.left.error**2 + self.right.error**2 - 2 * self.covariance
        error: F64 = np.sqrt(np.maximum(squares, 0.0))
        return error

    def limits(self, share: F64) -> tuple[F64, F64]:
        """The interval of each difference with error rate `share` (MOVER)."""
        safe = np.where(np.isnan(share), 0.5, share)
        a_low, a_high = self.left.at(safe, self.bounded)
        b_low, b_high = self.right.at(safe, self.bounded)
        a = self.left.value
        b = self.right.value
        with np.errstate(divide="ignore", invalid="ignore"):
            correlation = self.covariance / (self.left.error * self.right.error)
        correlation = np.clip(np.nan_to_num(correlation), -1.0, 1.0)

        def reach(from_a: F64, from_b: F64) -> F64:
            squares = from_a**2 + from_b**2 - 2 * correlation * from_a * from_b
            distance: F64 = np.sqrt(np.maximum(squares, 0.0))
            return distance

        low = a - b - reach(a - a_low, b_high - b)
        high = a - b + reach(a_high - a, b - b_low)
        gone = np.isnan(share)
        return np.where(gone, np.nan, low), np.where(gone, np.nan, high)

    def p_values(self) -> F64:
        """The error rate at which each interval reaches 0, nan for a pair without scores."""
        log_low = np.full(len(self.covariance), np.log(_LEAST_SHARE))
        log_high = np.zeros(len(self.covariance))
        for _ in range(_STEPS):
            middle = (log_low + log_high) / 2
            low, high = self.limits(np.exp(middle))
            excludes = (low > 0) | (high < 0)
            log_high = np.where(excludes, middle, log_high)
            log_low = np.where(excludes, log_low, middle)
        p_values = np.exp(log_high)
        return np.where(np.isnan(self.difference), np.nan, p_values)
