"""Probes of a judge's biases: position, length and acquiescence bias, and inconsistency.

Each takes verdicts as arrays and returns typed numbers with intervals; whether a bias matters
is left to the reader.

The length probe is a logistic regression fitted by Newton's method. Its covariance is the
sandwich of Huber (1967) and Liang & Zeger (1986): it is valid where rows share an item, and
where the model is only approximately right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import check_level, t_quantile, t_two_sided
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.intervals import mean_interval
from evalwright.statistics.paired import PairedComparison, compare_paired
from evalwright.statistics.units import (
    F64,
    I64,
    Bools,
    Clusters,
    cluster_codes,
    cluster_ids,
    kept_codes,
    score_matrix,
)


@dataclass(frozen=True, slots=True)
class SwapProbe(Plain):
    """Position bias, from verdicts on the same pairs in both orders.

    Attributes:
        consistency: share of pairs with the same verdict in both orders.
        first_rate: share of the verdicts other than ties that name the answer shown first; 1/2
            without a bias. Pairs tied in both orders count as missing here.
        both_first: pairs for which the answer shown first won in both orders.
        both_second: pairs for which the answer shown second did.
        p_value: of the hypothesis of no bias.
        test: the name of the test.
    """

    consistency: Estimate
    first_rate: Estimate
    both_first: int
    both_second: int
    p_value: float
    test: str


@dataclass(frozen=True, slots=True)
class Effect(Plain):
    """One coefficient of a logistic regression, in log-odds per unit of its column."""

    name: str
    coefficient: float
    low: float
    high: float
    standard_error: float
    p_value: float

    @property
    def odds_ratio(self) -> float:
        """The factor by which one unit multiplies the odds."""
        return math.exp(self.coefficient)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values, with the odds ratio."""
        return {**Plain.as_dict(self), "odds_ratio": self.odds_ratio}


@dataclass(frozen=True, slots=True)
class LengthProbe(Plain):
    """How a judge's verdict depends on length: `effects` are the intercept and the length."""

    effects: tuple[Effect, ...]
    n: int
    n_missing: int
    n_clusters: int | None
    level: float
    method: str


@dataclass(frozen=True, slots=True)
class AcquiescenceProbe(Plain):
    """Acquiescence bias: where judge and people disagree on pass or fail.

    Attributes:
        false_yes: share of the items that people failed which the judge passed.
        false_no: share of the items that people passed which the judge failed.
        excess: the judge's pass rate minus people's, as a paired comparison ("better" means that
            the judge says yes more often).
    """

    false_yes: Estimate
    false_no: Estimate
    excess: PairedComparison


@dataclass(frozen=True, slots=True)
class RepeatProbe(Plain):
    """Consistency of a judge that gets the same request several times.

    Attributes:
        flip_rate: the chance that two repeats differ.
        unstable: the share of items with any difference.
        repeats: the number of repeats.
    """

    flip_rate: Estimate
    unstable: Estimate
    repeats: int


def swap_consistency(
    a_first: npt.ArrayLike,
    b_first: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
) -> SwapProbe:
    """Measure position bias from verdicts on the same pairs with A shown first, and B shown first.

    The p-value is from the score test of `compare_paired` on the pairs in which the same position
    won twice (a pair judged consistently names each position once and says nothing).

    Args:
        a_first: (pairs,), 1 where A won, 0 where B won, 0.5 for a tie, nan for no verdict; A shown
            first.
        b_first: the same with B shown first; pairs without both verdicts count as missing.
        clusters: (pairs,) integers; pairs that share one are not independent.
        level: confidence level of the intervals.

    Raises:
        ValueError: other values.
    """
    forth = _check_verdicts(a_first, "a_first", ties=True)
    back = _check_verdicts(b_first, "b_first", ties=True)
    forth, back, codes, n_missing = _keep_complete(forth, back, clusters)
    consistency = mean_interval(
        (forth == back).astype(np.float64),
        clusters=codes,
        n_missing=n_missing,
        level=level,
    )
    places = np.column_stack(
        [np.where(forth == 0.5, np.nan, forth), np.where(back == 0.5, np.nan, 1 - back)]
    )
    first_rate = mean_interval(places, clusters=codes, n_missing=n_missing, level=level)
    preferred_place = (
        forth - back
    )  # 1: the first position won twice, -1: the second did, halves with a tie
    first = int(np.count_nonzero(preferred_place > 0))
    second = int(np.count_nonzero(preferred_place < 0))
    comparison = compare_paired(
        preferred_place > 0, preferred_place < 0, clusters=codes, level=level
    )
    return SwapProbe(
        consistency, first_rate, first, second, comparison.p_value, comparison.test
    )


def length_bias(
    verdict: npt.ArrayLike,
    log_length_difference: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
) -> LengthProbe:
    """Measure length bias: logistic regression of "A won" on log(length of A / length of B).

    The standard errors are the sandwich's over clusters, intervals with t_{G-1}. A length effect
    may be legitimate (longer answers may be better): put human verdicts through the same probe.

    Args:
        verdict: (n,), 1, 0, or 0.5 for a tie.
        log_length_difference: (n,); nan here or in `verdict` leaves the row out and counts it as
            missing.
        clusters: (n,) integers; rows that share one are not independent.
        level: confidence level of the intervals.

    Raises:
        ValueError: other values, fewer than twelve complete rows, or no finite fit.
    """
    check_level(level)
    outcome = _check_verdicts(verdict, "verdict", ties=True)
    lengths = np.asarray(log_length_difference, dtype=np.float64)
    if lengths.shape != outcome.shape:
        raise ValueError(
            f"every column needs one number for each of the {len(outcome)} verdicts"
        )
    names = ("intercept", "log length difference")
    is_complete: Bools = np.isnan(np.column_stack([outcome, lengths])).sum(axis=1) == 0
    design = np.column_stack([np.ones(len(outcome)), lengths])[is_complete]
    codes, n_clusters = kept_codes(clusters, is_complete)
    n = len(design)
    if n < design.shape[1] + 10:
        raise ValueError(f"{n} verdicts are too few for a regression")
    coefficients, covariance = fit_logistic(
        design, outcome[is_complete], clusters=codes
    )
    df = (n if n_clusters is None else n_clusters) - (
        design.shape[1] if n_clusters is None else 1
    )
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    reach = t_quantile(0.5 + level / 2, df) if df > 0 else math.nan
    effects = tuple(
        _effect(name, float(b), float(se), reach, df)
        for name, b, se in zip(names, coefficients, errors, strict=True)
    )
    over = "rows" if n_clusters is None else f"clusters (G={n_clusters})"
    return LengthProbe(
        effects,
        n,
        len(outcome) - n,
        n_clusters,
        level,
        f"logistic regression, sandwich over {over}",
    )


def acquiescence_bias(
    judge: npt.ArrayLike,
    human: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
) -> AcquiescenceProbe:
    """Measure acquiescence bias: a judge's false passes against its false fails.

    Args:
        judge: (n,), 1 is pass, 0 is fail, nan is missing.
        human: (n,), people's labels of the same items.
        clusters: (n,) integers; items that share one are not independent.
        level: confidence level of the intervals.
    """
    verdicts, truth, codes, _ = _keep_complete(
        _check_verdicts(judge, "judge"), _check_verdicts(human, "human"), clusters
    )

    def rate(rows: npt.NDArray[np.bool_], wrong: float) -> Estimate:
        row_codes = None if codes is None else codes[rows]
        return mean_interval(
            (verdicts[rows] == wrong).astype(np.float64),
            clusters=row_codes,
            level=level,
        )

    excess = compare_paired(verdicts, truth, clusters=codes, level=level)
    return AcquiescenceProbe(rate(truth == 0.0, 1.0), rate(truth == 1.0, 0.0), excess)


def repeat_flips(
    verdicts: npt.ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> RepeatProbe:
    """Measure how often a judge at temperature 0 gives different verdicts to the same request.

    Args:
        verdicts: (items, repeats), numbers that stand for labels; nan is missing. Items with fewer
            than two verdicts count as missing.
        clusters: (items,) integers; items that share one are not independent.
        level: confidence level of the intervals.

    Raises:
        ValueError: fewer than two repeats.
    """
    labels = score_matrix(verdicts)
    if labels.shape[1] < 2:
        raise ValueError(
            "repeat_flips needs at least two repeats of every item: shape (items,"
            " repeats)"
        )
    sizes = (~np.isnan(labels)).sum(axis=1)
    names = np.unique(labels[~np.isnan(labels)])
    alike = np.zeros(len(labels))
    for name in names:
        count = (labels == name).sum(axis=1)
        alike += count * (count - 1)
    pairs = sizes * (sizes - 1)
    flips = np.where(pairs > 0, 1 - alike / np.maximum(pairs, 1), np.nan)
    unstable = np.where(np.isnan(flips), np.nan, (flips > 0).astype(np.float64))
    rate, share = (
        mean_interval(values, clusters=clusters, level=level)
        for values in (flips, unstable)
    )
    return RepeatProbe(rate, share, labels.shape[1])


def _effect(
    name: str, coefficient: float, error: float, reach: float, df: int
) -> Effect:
    p_value = t_two_sided(coefficient / error, df) if error > 0 and df > 0 else math.nan
    return Effect(
        name,
        coefficient,
        coefficient - reach * error,
        coefficient + reach * error,
        error,
        p_value,
    )


def _check_verdicts(values: npt.ArrayLike, name: str, *, ties: bool = False) -> F64:
    array = np.asarray(values, dtype=np.float64)
    allowed = (0.0, 0.5, 1.0) if ties else (0.0, 1.0)
    if array.ndim != 1 or not (np.isin(array, allowed) | np.isnan(array)).all():
        raise ValueError(
            f"{name} must be a vector of {', '.join(f'{v:g}' for v in allowed)}, or nan"
            " for none"
        )
    return array


def _keep_complete(
    left: F64, right: F64, clusters: Clusters
) -> tuple[F64, F64, I64 | None, int]:
    """Select the items with both verdicts and their clusters, and count the others."""
    if len(left) != len(right):
        raise ValueError(
            f"both sides must have a row for the same items, not {len(left)} and"
            f" {len(right)}"
        )
    has_both: Bools = ~(np.isnan(left) | np.isnan(right))
    ids = None if clusters is None else cluster_ids(clusters, len(left))[has_both]
    return (
        left[has_both],
        right[has_both],
        ids,
        int(len(has_both) - np.count_nonzero(has_both)),
    )


# -- logistic regression ---------------------------------------------------------------


_STEPS = 100
_TOLERANCE = 1e-10
_FAR = 30.0
"""Largest logit of a fitted probability, about 1 - 1e-13.

No data support such a probability, so a fit that reaches it is diverging.
"""


def fit_logistic(
    design: F64, outcome: F64, clusters: Clusters = None
) -> tuple[F64, F64]:
    """Fit a logistic regression, with a cluster-robust covariance.

    It maximises sum_i [y_i log p_i + (1 - y_i) log(1 - p_i)] with logit p = x b. The covariance is
    H^-1 M H^-1 with H the Hessian, M = G/(G-1) (n-1)/(n-k) sum_g s_g s_g', s_g the score of cluster
    g.

    Args:
        design: x, (rows, columns), with a column of ones where an intercept is wanted.
        outcome: y, (rows,) in [0, 1]; 0.5 is a tie.
        clusters: (rows,) integers; rows that share one are not independent.

    Returns:
        Coefficients (columns,), and covariance (columns, columns), which is nan with one cluster,
        or no more rows than columns.

    Raises:
        ValueError: there is no finite fit.
    """
    coefficients = _newton(design, outcome)
    chances = _chances(design @ coefficients)
    hessian = _hessian(design, chances)
    scores = design * (outcome - chances)[:, None]
    n, columns = design.shape
    codes, n_clusters = cluster_codes(
        None if clusters is None else cluster_ids(clusters, n)
    )
    size = n if n_clusters is None else n_clusters
    if size < 2 or n <= columns:
        return coefficients, np.full((columns, columns), np.nan)
    if codes is not None:
        summed = np.zeros((size, columns))
        np.add.at(summed, codes, scores)
        scores = summed
    meat = (scores.T @ scores) * (size / (size - 1)) * ((n - 1) / (n - columns))
    half = np.linalg.solve(hessian, meat)
    covariance = np.linalg.solve(hessian, half.T)
    return coefficients, (covariance + covariance.T) / 2


def _newton(design: F64, outcome: F64) -> F64:
    """Maximise the likelihood by Newton's method, with steps halved until they improve it."""
    coefficients = np.zeros(design.shape[1])
    best = _objective(design, outcome, coefficients)
    for _ in range(_STEPS):
        chances = _chances(design @ coefficients)
        gradient = design.T @ (outcome - chances)
        try:
            step = np.linalg.solve(_hessian(design, chances), gradient)
        except np.linalg.LinAlgError:
            break
        scale = 1.0
        while scale > 1e-6:
            trial = coefficients + scale * step
            value = _objective(design, outcome, trial)
            if value >= best - 1e-12 * abs(best):
                break
            scale /= 2
        coefficients = trial
        best = max(best, value)
        if float(np.abs(design @ coefficients).max(initial=0.0)) > _FAR:
            break
        if float(np.abs(scale * step).max(initial=0.0)) < _TOLERANCE:
            return coefficients
    raise ValueError(
        "the logistic regression has no finite fit: its columns predict every outcome,"
        " or one is a combination of the others; remove a column, or add rows"
    )


def _objective(design: F64, outcome: F64, coefficients: F64) -> float:
    logits = design @ coefficients
    return float(
        np.dot(np.ones(len(logits)), outcome * logits - np.logaddexp(0.0, logits))
    )


def _chances(logits: F64) -> F64:
    chances: F64 = 0.5 * (1.0 + np.tanh(logits / 2))
    return chances


def _hessian(design: F64, chances: F64) -> F64:
    hessian: F64 = design.T @ (design * (chances * (1 - chances))[:, None])
    return hessian
