"""Bradley-Terry ratings of models from item-by-item comparisons of their scores (1952).

P(a beats b) = 1 / (1 + exp(s_b - s_a)). Two models are compared on every item on which both
have a score; equal scores are half a win for each. Every comparison within a task has the same
weight, and together they have the weight of the task. The strengths s maximise that weighted
likelihood, and sum to 0. Their covariance is the sandwich H^-1 V H^-1 (Huber 1967; Liang &
Zeger 1986): V is the covariance of the score's sums over units, each centred on its task's
mean, since items that share a unit, and all comparisons on one item, depend on each other; the
tasks are fixed.

Where some models never lose to or tie with the others the likelihood has no maximum (Ford
1957), and where all models always tie the sandwich is 0. In these cases each model gets half a
win and half a loss more against a model of mean strength, and the covariance is the inverse
information of one comparison per unit, which is wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalwright.statistics._quantiles import check_level, t_quantile
from evalwright.statistics.units import F64, I64

TIE = 1e-4
"""Largest difference at which two scores count as equal."""

_STEPS = 200
_FLAT = 1e-12


class Scored(NamedTuple):
    """The scores of one task.

    Args:
        scores: (models, items), higher is better, nan without a score.
        units: (items,) codes, equal in all tasks where errors are shared.
        weight: the task's weight, above 0.
    """

    scores: F64
    units: I64
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Ratings:
    """Strengths in log-odds, (models,), with standard errors and intervals.

    Args:
        strengths: in log-odds; they sum to 0.
        errors: standard errors.
        low: low ends of the intervals.
        high: high ends.
        wins: each model's weighted share of its comparisons, ties counting half.
        games: number of comparisons.
        ties: how many of them were ties.
        units: number of independent units.
        unbounded: whether the likelihood had no maximum, or no spread.
    """

    strengths: F64
    errors: F64
    low: F64
    high: F64
    wins: F64
    games: int
    ties: int
    units: int
    unbounded: bool


def bradley_terry(tasks: Sequence[Scored], level: float = 0.95) -> Ratings:
    """Rate models on one or more tasks by the Bradley-Terry model.

    Args:
        tasks: the scores by task, with the same models in the same order.
        level: confidence level of the intervals.

    Raises:
        ValueError: fewer than two models or units, or models that no comparison connects.
    """
    from scipy.sparse.csgraph import connected_components

    check_level(level)
    meetings = [(task, *_meetings(task.scores)) for task in tasks]
    meetings = [meeting for meeting in meetings if meeting[2].any()]
    units, codes = np.unique(
        np.concatenate([[], *(task.units for task, *_ in meetings)]),
        return_inverse=True,
    )
    models = len(tasks[0].scores) if tasks else 0
    if models < 2 or len(units) < 2:
        raise ValueError(
            "ratings need at least two models with scores on two items in common"
        )
    total = sum(task.weight for task, *_ in meetings)
    shares = [2 * task.weight / total / games.sum() for task, _, games, _ in meetings]
    won = sum(
        (share * wins for share, (_, wins, _, _) in zip(shares, meetings, strict=True)),
        np.zeros((models, models)),
    )
    if connected_components(won + won.T)[0] > 1:
        raise ValueError(
            "the models fall into groups without an item in common, and their ratings"
            " have no common scale"
        )
    unbounded = bool(
        connected_components(won, directed=True, connection="strong")[0] > 1
    )
    ends = np.cumsum([0, *(len(task.units) for task, *_ in meetings)])
    places = [codes[begin:end] for begin, end in pairwise(ends)]
    strengths = _fit_strengths(won, 1 / len(units) if unbounded else 0.0)
    covariance, df = _sandwich(
        strengths, [meeting[0] for meeting in meetings], shares, places, len(units)
    )
    variance = np.diag(covariance)
    if unbounded or (variance < _FLAT).any():
        unbounded = True
        strengths = _fit_strengths(won, 1 / len(units))
        variance = np.diag(
            np.linalg.inv(_information(strengths, won + won.T, 1 / len(units)))
        ) / len(units)
        df = np.full(models, float(len(units) - 1))
    errors = np.sqrt(variance)
    quantiles = np.array(
        [t_quantile(0.5 + level / 2, float(freedom)) for freedom in df]
    )
    played = won + won.T
    return Ratings(
        strengths=strengths,
        errors=errors,
        low=strengths - quantiles * errors,
        high=strengths + quantiles * errors,
        wins=won.sum(axis=1) / played.sum(axis=1),
        games=int(sum(games.sum() for _, _, games, _ in meetings)) // 2,
        ties=sum(ties for *_, ties in meetings),
        units=len(units),
        unbounded=unbounded,
    )


def _outcomes(scores: F64, model: int) -> tuple[F64, NDArray[np.bool_]]:
    """Compare a model with all models on each item.

    Returns its wins and whether both models have a score, each (models, items).
    """
    gap = scores[model] - scores
    met = ~np.isnan(gap)
    met[model] = False
    return np.where(met, (gap > TIE) + 0.5 * (np.abs(gap) <= TIE), 0.0), met


def _meetings(scores: F64) -> tuple[F64, F64, int]:
    """Count wins and comparisons of each model against each, (models, models), and all ties."""
    wins = np.zeros((len(scores),) * 2)
    games = np.zeros((len(scores),) * 2)
    ties = 0
    for model in range(len(scores)):
        won, met = _outcomes(scores, model)
        wins[model], games[model] = won.sum(axis=1), met.sum(axis=1)
        ties += int((won == 0.5).sum())
    return wins, games, ties // 2


def _win_chances(strengths: F64) -> F64:
    from scipy.special import expit

    chances: F64 = expit(strengths[:, None] - strengths)
    return chances


def _information(strengths: F64, games: F64, prior: float) -> F64:
    """The negative second derivative of the log-likelihood.

    A common shift of all strengths, which the likelihood does not determine, is held fixed.
    """
    prior_chances = _win_chances(np.append(strengths, 0.0))[:-1, -1]
    p = _win_chances(strengths)
    weights = games * p * (1 - p)
    np.fill_diagonal(weights, 0.0)
    information: F64 = (
        np.diag(weights.sum(axis=1) + prior * prior_chances * (1 - prior_chances))
        - weights
        + 1 / len(games)
    )
    return information


def _fit_strengths(won: F64, prior: float) -> F64:
    """Maximise the likelihood by Newton's method, with steps of at most 1."""
    games = won + won.T
    strengths = np.zeros(len(won))
    for _ in range(_STEPS):
        prior_chances = _win_chances(np.append(strengths, 0.0))[:-1, -1]
        gradient = (
            won.sum(axis=1)
            - (games * _win_chances(strengths)).sum(axis=1)
            + prior * (0.5 - prior_chances)
        )
        step = np.linalg.solve(_information(strengths, games, prior), gradient)
        strengths = strengths + step / max(1.0, float(np.abs(step).max()))
        strengths -= strengths.mean()
        if float(np.abs(step).max()) < 1e-11:
            break
    return strengths


def _sandwich(
    strengths: F64,
    tasks: Sequence[Scored],
    shares: Sequence[float],
    places: Sequence[I64],
    units: int,
) -> tuple[F64, F64]:
    """The sandwich covariance of the strengths, and degrees of freedom for each.

    The degrees of freedom are Satterthwaite's (1946), at most units - 1.
    """
    models = len(strengths)
    chances = _win_chances(strengths)
    played = np.zeros((models, models))
    sums = np.zeros((units, models))
    apart = []
    freedom = []
    for task, share, codes in zip(tasks, shares, places, strict=True):
        score = np.zeros((models, len(codes)))
        games = np.zeros(len(codes))
        for model in range(models):
            won, met = _outcomes(task.scores, model)
            score[model] = won.sum(axis=0) - chances[model] @ met
            games += met.sum(axis=0) / 2
            played[model] += share * met.sum(axis=1)
        size = len(np.unique(codes))
        if size > 1:  # a single unit has no spread to centre on: its whole score counts
            score = (
                score - score.sum(axis=1, keepdims=True) * games / games.sum()
            ) * np.sqrt(size / (size - 1))
        task_sums = np.zeros((units, models))
        np.add.at(task_sums, codes, share * score.T)
        sums += task_sums
        apart.append(task_sums.T @ task_sums)
        freedom.append(max(1, size - 1))
    bread = np.linalg.inv(_information(strengths, played, 0.0))
    variances = np.array([np.diag(bread @ spread @ bread) for spread in apart])
    with np.errstate(invalid="ignore", divide="ignore"):
        df = variances.sum(axis=0) ** 2 / (
            variances**2 / np.array(freedom)[:, None]
        ).sum(axis=0)
    covariance: F64 = bread @ (sums.T @ sums) @ bread
    return covariance, np.clip(np.nan_to_num(df, nan=1.0), 1, units - 1)
