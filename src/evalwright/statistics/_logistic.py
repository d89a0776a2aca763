"""Logistic regression by Newton's method, with a covariance that lets rows of a cluster depend on each other.

Small on purpose: a handful of columns (length, same family, position) or one column a model (Bradley-Terry).
The covariance is the sandwich of Huber (1967) and Liang & Zeger (1986): it holds where rows share an item, and where
the model is only roughly right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evalwright.statistics.units import F64, cluster_codes, cluster_ids

_STEPS = 100
_TOLERANCE = 1e-10
_FAR = 30.0
"""On the logit scale a probability of 1e-13: no data says that, so a fit that reaches it is running off."""


class LogisticFit(NamedTuple):
    """Coefficients (columns,) and their sandwich covariance (columns, columns)."""

    coefficients: F64
    covariance: F64


def fit_logistic(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    clusters: npt.ArrayLike | None = None,
    ridge: float = 0.0,
) -> LogisticFit:
    """Maximise sum_i w_i [y_i log p_i + (1 - y_i) log(1 - p_i)] - ridge/2 |b|^2 with logit p = x b.

    `x`: (rows, columns), with a column of ones where an intercept is wanted. `y`: (rows,) in [0, 1]; 0.5 is a tie.
    `weights`: (rows,), not negative. `clusters`: (rows,) integers; every row stands alone if None. The covariance is
    H^-1 M H^-1 with H the Hessian, M = G/(G-1) (n-1)/(n-k) sum_g s_g s_g', s_g the score of cluster g (nan with one
    cluster, or no more rows than columns). A ridge keeps the fit finite where the columns determine the outcome, or each other; use a small one.

    Raises ValueError for other shapes or values, and where there is no finite fit.
    """
    design, outcome, weight = _checked(x, y, weights)
    if not ridge >= 0.0:
        raise ValueError(f"ridge must not be negative, but is {ridge!r}")
    coefficients = _newton(design, outcome, weight, ridge)
    chances = _chances(design @ coefficients)
    hessian = _hessian(design, weight, chances, ridge)
    scores = design * (weight * (outcome - chances))[:, None]
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


def _newton(design: F64, outcome: F64, weight: F64, ridge: float) -> F64:
    """Newton steps, halved until the objective does not fall."""
    coefficients = np.zeros(design.shape[1])
    best = _objective(design, outcome, weight, ridge, coefficients)
    for _ in range(_STEPS):
        chances = _chances(design @ coefficients)
        gradient = design.T @ (weight * (outcome - chances)) - ridge * coefficients
        try:
            step = np.linalg.solve(_hessian(design, weight, chances, ridge), gradient)
        except np.linalg.LinAlgError:
            break
        scale = 1.0
        while scale > 1e-6:
            trial = coefficients + scale * step
            value = _objective(design, outcome, weight, ridge, trial)
            if value >= best - 1e-12 * abs(best):
                break
            scale /= 2
        coefficients, best = trial, max(best, value)
        if float(np.abs(design @ coefficients).max(initial=0.0)) > _FAR and ridge == 0.0:
            break
        if float(np.abs(scale * step).max(initial=0.0)) < _TOLERANCE:
            return coefficients
    raise ValueError(
        "the logistic regression has no finite fit: its columns predict every outcome, or one of them follows from "
        "the others; leave a column out, add rows, or give a small ridge"
    )


def _objective(design: F64, outcome: F64, weight: F64, ridge: float, coefficients: F64) -> float:
    logits = design @ coefficients
    likelihood = float(np.dot(weight, outcome * logits - np.logaddexp(0.0, logits)))
    return likelihood - ridge / 2 * float(np.dot(coefficients, coefficients))


def _chances(logits: F64) -> F64:
    chances: F64 = 0.5 * (1.0 + np.tanh(logits / 2))
    return chances


def _hessian(design: F64, weight: F64, chances: F64, ridge: float) -> F64:
    hessian: F64 = design.T @ (design * (weight * chances * (1 - chances))[:, None])
    hessian += ridge * np.eye(design.shape[1])
    return hessian


def _checked(x: npt.ArrayLike, y: npt.ArrayLike, weights: npt.ArrayLike | None) -> tuple[F64, F64, F64]:
    design, outcome = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if design.ndim != 2 or outcome.shape != (len(design),) or design.size == 0:
        raise ValueError(
            f"x must have the shape (rows, columns) and y (rows,), not {design.shape} and {outcome.shape}"
        )
    weight = np.ones(len(design)) if weights is None else np.asarray(weights, dtype=np.float64)
    if weight.shape != (len(design),):
        raise ValueError(f"weights must hold one number a row, but has the shape {weight.shape}")
    if not (np.isfinite(design).all() and np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(
            "x and weights must be finite, and weights not negative; leave rows without a value out"
        )
    if not ((outcome >= 0) & (outcome <= 1)).all():
        raise ValueError("y must lie between 0 and 1; leave rows without an outcome out")
    return design, outcome, weight
