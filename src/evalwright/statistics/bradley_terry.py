"""Strengths from pairwise verdicts: P(i beats j) = sigma(theta_i - theta_j) (Bradley & Terry 1952), ties as half.

Covariates (the difference in length, in style) enter as further columns, so the strengths are those at equal length
and style. The covariance is the sandwich over clusters (Huber 1967; Liang & Zeger 1986): verdicts on one prompt are not
independent, and a tie counted as half is not a coin. Verdicts are fitted by Newton's method on sparse sums.

Where a group of models never loses to the others, or a covariate settles every verdict, the likelihood has no maximum
(Ford 1957) and the sandwich would shrink to nothing. Then every model also gets half a win and half a loss against a
player of average strength, the covariance is the inverse of the penalised information, and `separated` says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level, normal_quantile, t_quantile
from evalwright.statistics.units import F64, I64, cluster_codes, cluster_ids

_RIDGE = 1e-8
_STEPS = 100
_FAR = 12.0
"""Beyond this log-odds (one verdict in 160,000) strengths or effects stand for separation, not for what was seen."""


@dataclass(frozen=True, slots=True)
class BradleyTerry:
    """Strengths (models,) that sum to 0, in log-odds, with covariance, intervals and standard errors.

    `coefficients` are the covariates' effects on the log-odds a unit, with `coefficients_covariance`. `separated`: no
    finite maximum existed and the weak prior described at the top was used. `units` are the clusters (or verdicts); the
    differences' degrees of freedom are units - 1. Pass strengths, covariance and units to
    `simultaneous_from_covariance` for differences and rank sets.
    """

    strengths: F64
    standard_errors: F64
    low: F64
    high: F64
    covariance: F64
    coefficients: F64
    coefficients_covariance: F64
    level: float
    n: int
    n_ties: int
    n_failed: int
    units: int
    separated: bool
    method: str

    def chance(self, first: int, second: int) -> float:
        """P(first beats second) at equal covariates, a tie counted as half."""
        return float(_sigmoid(np.array(self.strengths[first] - self.strengths[second])))

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON-ready values: arrays become lists."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values}


def fit_bradley_terry(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    n_models: int | None = None,
    covariates: npt.ArrayLike | None = None,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> BradleyTerry:
    """Fit strengths to verdicts (the model at the top of this module).

    `first`, `second`: (verdicts,) numbers 0..n_models-1 of the two models. `outcomes`: (verdicts,) 1 = the first won,
    0 = the second, 0.5 = a tie, nan = no verdict (counted as failed). `covariates`: (verdicts,) or (verdicts, p), first
    less second. `clusters`: (verdicts,) integers, verdicts on one prompt share one.

    Raises ValueError for shapes or values that do not fit, a model against itself, fewer than two units, and models in
    groups that never met, whose strengths have no common scale.
    """
    check_level(level)
    i, j, y, extra, ids, n_failed = _checked(first, second, outcomes, covariates, clusters)
    models = n_models if n_models is not None else int(max(i.max(), j.max())) + 1
    finite = _check_meetings(i, j, y, models)
    scale = extra.std(axis=0)
    if (scale == 0).any() and (np.abs(extra).max(axis=0)[scale == 0] == 0).any():
        raise ValueError("a covariate is 0 for every verdict and has no effect to estimate; leave it out")
    scale = np.where(scale > 0, scale, 1.0)
    design = _design(i, j, extra / scale, models)
    prior = np.zeros(design.shape[1])
    fitted = _newton(design, y, prior, models) if finite else None
    separated = fitted is None or _runs_off(design, fitted, prior, models)
    if fitted is None or separated:
        prior[:] = 1.0
        fitted = _newton(design, y, prior, models)
        if fitted is None:
            raise ValueError("the strengths cannot be fitted to these verdicts and covariates")
    codes, n_clusters = cluster_codes(ids)
    units = len(y) if n_clusters is None else n_clusters
    covariance = _covariance(design, y, fitted, prior, models, codes, units, separated)
    return _result(fitted, covariance, scale, models, level, y, units, n_failed, separated, codes is not None)


def _result(
    fitted: F64, covariance: F64, scale: F64, models: int, level: float, y: F64, units: int, n_failed: int,
    separated: bool, clustered: bool,
) -> BradleyTerry:  # fmt: skip
    centre = np.eye(len(fitted))
    centre[:models, :models] -= 1.0 / models
    covariance = centre @ covariance @ centre.T
    strengths = (centre @ fitted)[:models]
    errors = np.sqrt(np.maximum(np.diag(covariance)[:models], 0.0))
    quantile = normal_quantile(0.5 + level / 2) if separated else t_quantile(0.5 + level / 2, units - 1)
    how = "weak prior, inverse information" if separated else "sandwich"
    return BradleyTerry(
        strengths=strengths,
        standard_errors=errors,
        low=strengths - quantile * errors,
        high=strengths + quantile * errors,
        covariance=covariance[:models, :models],
        coefficients=fitted[models:] / scale,
        coefficients_covariance=covariance[models:, models:] / np.outer(scale, scale),
        level=level,
        n=len(y),
        n_ties=int(np.count_nonzero(y == 0.5)),
        n_failed=n_failed,
        units=units,
        separated=separated,
        method=f"Bradley-Terry, {how} over {units} {'clusters' if clustered else 'verdicts'}"
        + ("; no finite maximum" if separated else ""),
    )


def _design(i: I64, j: I64, extra: F64, models: int) -> Any:
    """A sparse row per verdict: 1 for the first model, -1 for the second, then the covariates."""
    from scipy import sparse

    n = len(i)
    ones = np.ones(n)
    rows = np.tile(np.arange(n), 2)
    signs = sparse.csr_array(
        (np.concatenate([ones, -ones]), (rows, np.concatenate([i, j]))), shape=(n, models)
    )
    return sparse.csr_array(sparse.hstack([signs, sparse.csr_array(extra)])) if extra.shape[1] else signs


def _newton(design: Any, y: F64, prior: F64, models: int) -> F64 | None:
    """The penalised maximum, or None where Newton's steps do not settle (separation by a covariate).

    Strengths have half a win and half a loss against strength 0 for each unit of `prior`, covariates a normal prior of
    precision 1/4, which near 0 is the same curvature.
    """
    theta = np.zeros(design.shape[1])
    best = -math.inf
    step = np.zeros_like(theta)
    for _ in range(_STEPS):
        score = _objective(design, y, theta, prior)
        halvings = 0
        while score < best - 1e-12 * abs(best) and halvings < 30:
            step, halvings = step / 2, halvings + 1
            theta -= step
            score = _objective(design, y, theta, prior)
        best = score
        gradient = (
            design.T @ (y - _sigmoid(design @ theta)) + prior * (0.5 - _sigmoid(theta)) - _RIDGE * theta
        )
        step = np.linalg.solve(_information(design, theta, prior, models), gradient)
        theta += step
        if float(np.abs(theta).max()) > 4 * _FAR:
            return None
        if float(np.abs(step).max()) < 1e-10:
            return theta
    return theta


def _runs_off(design: Any, fitted: F64, prior: F64, models: int) -> bool:
    """Whether only the ridge holds the fit: strengths or effects far off, or settled verdicts that say nothing more.

    Two strengths and an effect can share a log-odds without end among them, so that none of the three is far off.
    """
    if float(np.abs(fitted).max()) > _FAR:
        return True
    if float(np.abs(design @ fitted).max()) <= _FAR:
        return False
    return float(np.linalg.eigvalsh(_information(design, fitted, prior, models))[0]) < 100 * _RIDGE


def _objective(design: Any, y: F64, theta: F64, prior: F64) -> float:
    eta = design @ theta
    fit = float(np.dot(y, eta) - np.logaddexp(0.0, eta).sum())
    pull = float(np.dot(prior, theta / 2 - np.logaddexp(0.0, theta))) - _RIDGE / 2 * float(
        np.dot(theta, theta)
    )
    return fit + pull


def _information(design: Any, theta: F64, prior: F64, models: int) -> F64:
    """Minus the second derivative, with the direction in which all strengths move together tied down."""
    p = _sigmoid(design @ theta)
    weighted = design.multiply((p * (1 - p))[:, None])
    information = np.asarray((design.T @ weighted).toarray())
    own = _sigmoid(theta)
    information[np.diag_indices_from(information)] += prior * own * (1 - own) + _RIDGE
    information[:models, :models] += 1.0 / models
    return information


def _covariance(
    design: Any, y: F64, theta: F64, prior: F64, models: int, codes: I64 | None, units: int, separated: bool
) -> F64:  # fmt: skip
    from scipy import sparse

    bread = np.asarray(np.linalg.inv(_information(design, theta, prior, models)), dtype=np.float64)
    if separated:
        return bread
    parts = sparse.csr_array(design.multiply((y - _sigmoid(design @ theta))[:, None]))
    if codes is not None:
        member = sparse.csr_array((np.ones(len(y)), (codes, np.arange(len(y)))), shape=(units, len(y)))
        parts = member @ parts
    meat = np.asarray((parts.T @ parts).toarray()) * (units / (units - 1))
    sandwich: F64 = bread @ meat @ bread
    return sandwich


def _sigmoid(x: F64) -> F64:
    from scipy.special import expit

    values: F64 = expit(x)
    return values


def _check_meetings(i: I64, j: I64, y: F64, models: int) -> bool:
    """Whether a finite maximum exists: every model can be reached from every other over wins and ties (Ford 1957).

    Raises ValueError where models never met, directly or through others.
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    if i.min() < 0 or j.min() < 0 or max(i.max(), j.max()) >= models:
        raise ValueError(f"models must be numbered 0 to {models - 1}, but go from {min(i.min(), j.min())} to {max(i.max(), j.max())}")  # fmt: skip
    winner = np.concatenate([i[y > 0], j[y < 1]])
    loser = np.concatenate([j[y > 0], i[y < 1]])
    graph = sparse.csr_array((np.ones(len(winner)), (winner, loser)), shape=(models, models))
    groups, member = connected_components(graph, directed=True, connection="weak")
    if groups > 1:
        raise ValueError(
            f"the models fall into {groups} groups that never met, so their strengths have no common scale: "
            f"{_named(member)}; fit each group alone, or compare some of them"
        )
    return int(connected_components(graph, directed=True, connection="strong")[0]) == 1


def _named(member: npt.NDArray[Any]) -> str:
    groups = [np.flatnonzero(member == group)[:5].tolist() for group in range(min(3, int(member.max()) + 1))]
    return ", ".join(str(group) for group in groups) + (", ..." if member.max() > 2 else "")


def _checked(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    covariates: npt.ArrayLike | None,
    clusters: npt.ArrayLike | None,
) -> tuple[I64, I64, F64, F64, I64 | None, int]:
    """The arrays without the verdicts that failed, and how many those were."""
    i, j, y = np.asarray(first), np.asarray(second), np.asarray(outcomes, dtype=np.float64)
    if y.ndim != 1 or i.shape != y.shape or j.shape != y.shape or {i.dtype.kind, j.dtype.kind} - set("iu"):
        raise ValueError(
            "first, second and outcomes must have one entry for each verdict, the models as integers, "
            f"not {i.shape} {i.dtype}, {j.shape} {j.dtype} and {y.shape}"
        )
    extra = np.zeros((len(y), 0)) if covariates is None else np.asarray(covariates, dtype=np.float64)
    extra = extra[:, None] if extra.ndim == 1 else extra
    if extra.ndim != 2 or len(extra) != len(y) or not np.isfinite(extra).all():
        raise ValueError("covariates must be finite numbers of the shape (verdicts,) or (verdicts, columns)")
    ids = None if clusters is None else cluster_ids(clusters, len(y))
    there = ~np.isnan(y)
    if ((y[there] < 0) | (y[there] > 1)).any():
        raise ValueError("outcomes must be 1 (the first won), 0 (the second won), 0.5 (a tie) or nan")
    if (i == j)[there].any():
        raise ValueError("a model cannot be compared with itself; leave such verdicts out")
    i, j, y, extra = i[there].astype(np.int64), j[there].astype(np.int64), y[there], extra[there]
    ids = None if ids is None else ids[there]
    if len(y) < 2 or (ids is not None and len(np.unique(ids)) < 2):
        raise ValueError("strengths need at least two verdicts, from at least two clusters")
    return i, j, y, extra, ids, int(np.count_nonzero(~there))
