"""A judge's error rates beside people: on one model's answers, and over those of many models.

The judge errs in two ways. A *false alarm* calls wrong what people call right, a *miss* passes what
people call wrong. A rate of either is the judge's mean error over labelled answers of that kind,
weighted by the inverse of the probability of having a label.

Rates over several models describe the judge. They correct no model's score: a judge may favour
single models, and a model without labels does not show by how much. (Simulated with rates that
differ between models by a factor of 1.5, Rogan and Gladen's correction by pooled rates covers far
less than it says, and an interval that carries the differences is half the range wide.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import normal_quantile, t_quantile
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.intervals import score_interval
from evalwright.statistics.labelling import JudgedSample
from evalwright.statistics.units import F64, I64


@dataclass(frozen=True, slots=True)
class ErrorRate(Plain):
    """A judge's rate of one kind of error on one model's answers.

    Args:
        value: the rate; nan without labels of the kind.
        size: the number of equally likely labels that it is worth.
        estimate: the rate with its interval.
    """

    value: float
    size: float
    estimate: Estimate


def error_rates(
    sample: JudgedSample, level: float = 0.95
) -> tuple[ErrorRate, ErrorRate]:
    """A judge's rates of false alarms and of misses on one model's labelled answers."""
    chosen = sample.labelled
    right = sample.human[chosen]
    verdict = sample.judge[chosen]
    weights = sample.weights[chosen]
    codes = None if sample.codes is None else sample.codes[chosen]
    return (
        _rate(1 - verdict, right * weights, codes, sample.scheme, level),
        _rate(verdict, (1 - right) * weights, codes, sample.scheme, level),
    )


def _rate(
    errors: F64, shares: F64, codes: I64 | None, scheme: str, level: float
) -> ErrorRate:
    """The mean of `errors` weighted by `shares`, with Wilson's interval (effective n)."""
    n = int(np.count_nonzero(shares > 0))
    total = float(shares.sum())
    if not n:
        return ErrorRate(
            math.nan, 0.0, Estimate.none("no label of this kind", level=level)
        )
    value = float(np.dot(shares, errors)) / total
    size = total * total / float(np.dot(shares, shares))
    influence = shares * (errors - value) / total
    groups = n
    if codes is not None:
        influence = np.bincount(codes, weights=influence).astype(np.float64)
        groups = len(np.unique(codes[shares > 0]))
    variance = float(np.dot(influence, influence)) * groups / max(1, groups - 1)
    if 0.0 < value < 1.0 and variance > 0:
        size = min(size, value * (1 - value) / variance) if codes is not None else size
    plain = scheme == "random" and codes is None
    critical = (
        normal_quantile(0.5 + level / 2)
        if plain
        else t_quantile(0.5 + level / 2, max(1, groups - 1))
    )
    low, high = score_interval(min(1.0, max(0.0, value)), size, critical)
    estimate = Estimate(
        value=value,
        low=low,
        high=high,
        level=level,
        n=n,
        n_missing=0,
        n_clusters=None if codes is None else groups,
        standard_error=math.sqrt(variance) if variance > 0 else None,
        method="Wilson" if plain else "Wilson (effective n)",
    )
    return ErrorRate(value, size, estimate)


@dataclass(frozen=True, slots=True)
class PooledRate(Plain):
    """A judge's rate of one kind of error over all models.

    Args:
        estimate: the rate with its interval; the spread between models counts.
        models: number of models with labels of the kind.
        p_equal: p-value of the hypothesis that the rate is the same on all models.
    """

    estimate: Estimate
    models: int
    p_equal: float


def pool_rates(rates: Sequence[ErrorRate], level: float = 0.95) -> PooledRate | None:
    """Pool the rates of several models; None if none has one."""
    known_rates = [rate for rate in rates if rate.size > 0]
    models = len(known_rates)
    if models < 2:
        return PooledRate(known_rates[0].estimate, 1, 1.0) if known_rates else None
    values = np.array([rate.value for rate in known_rates])
    sizes = np.array([rate.size for rate in known_rates])
    total = float(sizes.sum())
    value = float(np.dot(sizes, values)) / total
    # Half an error and half a correct verdict more: a rate of 0 leaves a variance.
    smoothed = (total * value + 0.5) / (total + 1)
    spread = smoothed * (1 - smoothed)
    influence = sizes * (values - value) / total
    between = float(np.dot(influence, influence)) * models / (models - 1)
    size = min(total, spread / between) if between > 0 else total
    critical = normal_quantile(0.5 + level / 2)
    if size < total:
        critical = t_quantile(0.5 + level / 2, models - 1)
    low, high = score_interval(min(1.0, max(0.0, value)), size, critical)
    estimate = Estimate(
        value=value,
        low=low,
        high=high,
        level=level,
        n=sum(rate.estimate.n for rate in known_rates),
        n_missing=0,
        n_clusters=None,
        standard_error=math.sqrt(spread / size),
        method=f"Wilson (effective n), {models} models",
    )
    q = float(np.dot(sizes, (values - value) ** 2)) / spread
    return PooledRate(estimate, models, _p_equal(q, sizes, smoothed))


def _p_equal(q: float, sizes: F64, mean: float) -> float:
    """The p-value of Q if the rate is the same on all models.

    Q's variance under binomial counts, sum of 2 + (1 / (p (1 - p)) - 6) / n (Haldane 1937), matched
    by a gamma distribution: chi-squared is wrong for rare errors and few labels.
    """
    from scipy.special import gammaincc

    models = len(sizes)
    excess = (1 / (mean * (1 - mean)) - 6) / sizes
    variance = float((2 + excess).sum()) * (models - 1) / models
    expected = models - 1
    if variance < 0.1 * expected:
        return 1.0  # about one label a model
    return float(gammaincc(expected**2 / variance, q * expected / variance))
