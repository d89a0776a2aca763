"""What failed: verdicts and bounds where some items have no score, by chance or because they were hard."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from coverage_settings.registry import F64, Covered, Plain, Setting, repeated
from evalwright.statistics import compare_paired, equivalence_paired, mean_interval
from evalwright.statistics.many_models import all_differences

ABOUT = (
    "Two equal models, or twelve, should get a verdict in 5% of the trials at most, two that differ by the margin be called "
    "equivalent in 5% at most, and the bounds of a mean hold the true mean in 95% or more, whatever made items fail. The bounds allow "
    "for the worst that the failed items could have been, so with many failures they are wider than chance alone asks for."
)
I64 = npt.NDArray[np.int64]
Lose = Callable[[np.random.Generator, F64, F64], F64]
"""From difficulties and scores of one model (items,) to its scores with nan where an item failed."""

_CENTRE = 0.53
"""Of the log odds of a right answer."""


def _hard(share: float) -> Lose:
    def lose(rng: np.random.Generator, ease: F64, scores: F64) -> F64:
        return np.where((scores == 0) & (rng.random(len(scores)) < share), np.nan, scores)

    return lose


def _some(share: float) -> Lose:
    def lose(rng: np.random.Generator, ease: F64, scores: F64) -> F64:
        return np.where(rng.random(len(scores)) < share, np.nan, scores)

    return lose


def _answers(rng: np.random.Generator, models: int, ids: I64) -> tuple[F64, F64]:
    """Difficulties (items,) that items of a cluster share in part, and right-or-wrong scores (models, items)."""
    common = rng.normal(0, 1, ids.max() + 1)[ids]
    own = rng.normal(0, 0.6, (models, ids.max() + 1))[:, ids] if len(ids) > ids.max() + 1 else 0.0
    ease = _CENTRE + common + own
    return common, (rng.random((models, len(ids))) < 1 / (1 + np.exp(-ease))).astype(np.float64)


def _ids(clusters: int, items: int) -> I64:
    """Cluster of each item; sizes from 1 to about three times the mean where there are fewer clusters than items."""
    if clusters == items:
        return np.arange(items)
    weights = np.linspace(1, 5, clusters)
    return np.repeat(
        np.arange(clusters), np.maximum(1, np.round(weights / weights.sum() * items)).astype(int)
    )


def _pair(
    name: str, first: Lose, second: Lose | None, clusters: int, items: int, left_out: bool = False
) -> Setting:
    """Equal models. left_out: the contrast that compares on the scored items as if nothing were missing."""
    ids = _ids(clusters, items)

    def make(rng: np.random.Generator, trial: int) -> Plain:
        ease, (a, b) = _answers(rng, 2, ids)
        a, b = first(rng, ease, a), b if second is None else second(rng, ease, b)
        found = compare_paired(
            a, b, clusters=ids if clusters < items else None, missing=False if left_out else None
        )
        return Plain(found.low, found.high, found.test)

    groups = f" in {clusters} clusters" if clusters < items else ""
    said = f"equal models, {items} items{groups}, {name}" + (", left out" if left_out else "")
    return Setting(said, repeated(make, 0.0), 0.94, 1.0, contrast=left_out)


def _equivalent(clusters: int, lost: int) -> Setting:
    """Two models that differ by the margin of 10 points, of which one lost whole clusters, those where it is worst."""
    ids = np.repeat(np.arange(clusters), 8)

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits, widths, method = np.zeros(trials, dtype=bool), np.zeros(trials), ""
        for trial in range(trials):
            base = rng.beta(4, 2, clusters)[ids]
            loss = np.clip(rng.normal(0.15, 0.1, clusters), 0.0, 0.3)[ids]
            a = (rng.random(len(ids)) < base).astype(np.float64)
            b = (rng.random(len(ids)) < base * (1 - loss)).astype(np.float64)
            worst = np.argsort(np.bincount(ids, weights=a - b) + rng.random(clusters))[-lost:]
            b[np.isin(ids, worst)] = np.nan
            found = equivalence_paired(a, b, margin=0.1, clusters=ids)
            hits[trial], widths[trial], method = not found.equivalent, found.high - found.low, found.method
        return Covered(hits, widths, method)

    name = f"equivalence at its margin, {clusters} clusters of 8, {lost} of one model lost where it is worst"
    return Setting(name, run, 0.94, 1.0)


def _board(name: str, lose: Lose, clusters: int, items: int) -> Setting:
    """Twelve equal models: none should differ. Every other one fails."""
    ids = _ids(clusters, items)

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits, widths, method = np.zeros(trials, dtype=bool), np.zeros(trials), ""
        for trial in range(trials):
            ease, scores = _answers(rng, 12, ids)
            for row in range(0, 12, 2):
                scores[row] = lose(rng, ease, scores[row])
            found = all_differences(scores, ids if clusters < items else None, seed=trial)
            hits[trial] = not ((found.low > 0).any() or (found.high < 0).any())
            widths[trial], method = float(np.nanmean(found.high - found.low)), found.method
        return Covered(hits, widths, method)

    groups = f" in {clusters} clusters" if clusters < items else ""
    return Setting(f"12 equal models, {items} items{groups}, {name}", run, 0.94, 1.0, cost=2)


def _bounds(name: str, lose: Lose, clusters: int, items: int) -> Setting:
    ids = _ids(clusters, items)
    # The mean of a logistic function of a normal variable, by Gauss-Hermite quadrature.
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    spread = 1.0 if clusters == items else np.hypot(1.0, 0.6)
    truth = float((weights / weights.sum() / (1 + np.exp(-(_CENTRE + spread * nodes)))).sum())

    def make(rng: np.random.Generator, trial: int) -> Plain:
        ease, (a,) = _answers(rng, 1, ids)
        found = mean_interval(lose(rng, ease, a), clusters=ids if clusters < items else None)
        low, high = found.bounds or (found.low, found.high)
        return Plain(low, high, f"bounds of {found.method}")

    groups = f" in {clusters} clusters" if clusters < items else ""
    return Setting(f"bounds of a mean, {items} items{groups}, {name}", repeated(make, truth), 0.935, 1.0)


_HALF, _FEW = "one fails on half of what it would get wrong", "2% of both fail by chance"

SETTINGS = (
    _pair(_HALF, _hard(0.5), None, 200, 200),
    _pair(_HALF, _hard(0.5), None, 200, 200, left_out=True),
    _pair(_FEW, _some(0.02), _some(0.02), 200, 200),
    _pair(_HALF, _hard(0.5), None, 20, 200),
    _pair(_FEW, _some(0.02), _some(0.02), 20, 200),
    _pair("one fails on a tenth of what it would get wrong", _hard(0.1), None, 15, 150),
    _equivalent(19, 2),
    _equivalent(40, 1),
    _board("half of them fail on half of what they would get wrong", _hard(0.5), 200, 200),
    _board("half of them fail on 2% by chance", _some(0.02), 200, 200),
    _board("half of them fail on half of what they would get wrong", _hard(0.5), 20, 200),
    _board("half of them fail on 2% by chance", _some(0.02), 20, 200),
    _bounds("a fifth of what is wrong failed", _hard(0.2), 100, 100),
    _bounds("a fifth of what is wrong failed", _hard(0.2), 15, 120),
)
