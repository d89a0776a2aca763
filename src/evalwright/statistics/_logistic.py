"""Logistic regression by Newton's method, with a covariance that lets rows of a cluster depend on each other.

Small on purpose: a handful of columns (intercept, length).
The covariance is the sandwich of Huber (1967) and Liang & Zeger (1986): it holds where rows share an item, and where
the model is only roughly right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evalwright.statistics.units import F64, Clusters, cluster_codes, cluster_ids

_STEPS = 100
_TOLERANCE = 1e-10
_FAR = 30.0
"""On the logit scale a probability of 1e-13: no data says that, so a fit that reaches it is running off."""


class LogisticFit(NamedTuple):
    """Coefficients (columns,) and their sandwich covariance (columns, columns)."""

    coefficients: F64
    covariance: F64


def fit_logistic(design: F64, outcome: F64, clusters: Clusters = None) -> LogisticFit:
    """Maximise sum_i [y_i log p_i + (1 - y_i) log(1 - p_i)] with logit p = x b.

    `design`, x: (rows, columns), with a column of ones where an intercept is wanted. `outcome`, y: (rows,) in [0, 1];
    0.5 is a tie. The covariance is H^-1 M H^-1 with H the Hessian,
    M = G/(G-1) (n-1)/(n-k) sum_g s_g s_g', s_g the score of cluster g (nan with one cluster, or no more rows than columns).

    Raises ValueError where there is no finite fit.
    """
    coefficients = _newton(design, outcome)
    chances = _chances(design @ coefficients)
    hessian = _hessian(design, chances)
    scores = design * (outcome - chances)[:, None]
    n, columns = design.shape
    codes, n_clusters = cluster_codes(None if clusters is None else cluster_ids(clusters, n))
    size = n if n_clusters is None else n_clusters
    if size < 2 or n <= columns:
        return LogisticFit(coefficients, np.full((columns, columns), np.nan))
    if codes is not None:
        summed = np.zeros((size, columns))
        np.add.at(summed, codes, scores)
        scores = summed
    meat = (scores.T @ scores) * (size / (size - 1)) * ((n - 1) / (n - columns))
    half = np.linalg.solve(hessian, meat)
    covariance = np.linalg.solve(hessian, half.T)
    return LogisticFit(coefficients, (covariance + covariance.T) / 2)


def _newton(design: F64, outcome: F64) -> F64:
    """Newton steps, halved until the objective does not fall."""
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
        coefficients, best = trial, max(best, value)
        if float(np.abs(design @ coefficients).max(initial=0.0)) > _FAR:
            break
        if float(np.abs(scale * step).max(initial=0.0)) < _TOLERANCE:
            return coefficients
    raise ValueError(
        "the logistic regression has no finite fit: its columns predict every outcome, or one is a combination of "
        "the others; remove a column, or add rows"
    )


def _objective(design: F64, outcome: F64, coefficients: F64) -> float:
    logits = design @ coefficients
    return float(np.dot(np.ones(len(logits)), outcome * logits - np.logaddexp(0.0, logits)))


def _chances(logits: F64) -> F64:
    chances: F64 = 0.5 * (1.0 + np.tanh(logits / 2))
    return chances


def _hessian(design: F64, chances: F64) -> F64:
    hessian: F64 = design.T @ (design * (chances * (1 - chances))[:, None])
    return hessian
