"""Missing answers: verdicts and bounds where some items have no score, by chance or because they
were hard.

A verdict comes from the items that both models have. Where answers are missing at random that is
right, and costs no more than the items themselves; where they are missing because they were hard it
is not, which is why a comparison with more than 5% missing is marked as provisional. The worst case
is right whatever made them missing, and finds little.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from coverage_settings.registry import (
    F64,
    Covered,
    KnownMethod,
    Plain,
    Setting,
    repeat_trials,
)
from evalwright.statistics import (
    Monitor,
    all_differences,
    compare_paired,
    equivalence_paired,
    mean_interval,
    parse_rule,
)
from evalwright.statistics.pairwise import MissingPolicy

ABOUT = (
    "Two equal models, or twelve, should get a verdict in 6% of the trials at most"
    " where answers are missing at random, and under the worst case whatever made them"
    " missing; the bounds of a mean hold the true mean in 95% or more. A model that is"
    " missing on half of what it would get wrong is called better by the scored items"
    " alone: the two rows that fail show why more than 5% missing makes a verdict"
    " provisional. Power: the share of trials with a verdict, in brackets that of the"
    " worst case. Stopping: the share of trials that end in no false verdict."
)
I64 = npt.NDArray[np.int64]
Lose = Callable[[np.random.Generator, F64, F64], F64]
"""From difficulties and scores of one model (items,) to its scores with nan where an item failed.
"""

_CENTRE = 0.53
"""Of the log odds of a right answer."""


def _hard(share: float) -> Lose:
    def lose(rng: np.random.Generator, ease: F64, scores: F64) -> F64:
        return np.where(
            (scores == 0) & (rng.random(len(scores)) < share), np.nan, scores
        )

    return lose


def _some(share: float) -> Lose:
    def lose(rng: np.random.Generator, ease: F64, scores: F64) -> F64:
        return np.where(rng.random(len(scores)) < share, np.nan, scores)

    return lose


def _answers(rng: np.random.Generator, models: int, ids: I64) -> tuple[F64, F64]:
    """Difficulties (items,) that items of a cluster share in part, and right-or-wrong scores
    (models, items).
    """
    common = rng.normal(0, 1, ids.max() + 1)[ids]
    model_ease = (
        rng.normal(0, 0.6, (models, ids.max() + 1))[:, ids]
        if len(ids) > ids.max() + 1
        else 0.0
    )
    ease = _CENTRE + common + model_ease
    return common, (rng.random((models, len(ids))) < 1 / (1 + np.exp(-ease))).astype(
        np.float64
    )


def _ids(clusters: int, items: int) -> I64:
    """Cluster of each item; sizes from 1 to about three times the mean where there are fewer
    clusters than items.
    """
    if clusters == items:
        return np.arange(items)
    weights = np.linspace(1, 5, clusters)
    return np.repeat(
        np.arange(clusters),
        np.maximum(1, np.round(weights / weights.sum() * items)).astype(int),
    )


def _pair(
    name: str,
    first: Lose,
    second: Lose | None,
    clusters: int,
    items: int,
    policy: MissingPolicy = "scored",
    contrast: bool = False,
) -> Setting:
    """Equal models. contrast: missing not at random, compared on the scored items."""
    ids = _ids(clusters, items)

    def make(rng: np.random.Generator, trial: int) -> Plain:
        ease, (a, b) = _answers(rng, 2, ids)
        a = first(rng, ease, a)
        b = b if second is None else second(rng, ease, b)
        comparison = compare_paired(
            a, b, clusters=ids if clusters < items else None, missing_policy=policy
        )
        return Plain(comparison.low, comparison.high, f"{comparison.test}, {policy}")

    groups = f" in {clusters} clusters" if clusters < items else ""
    name_of_setting = f"equal models, {items} items{groups}, {name}, {policy}"
    return Setting(
        name_of_setting, repeat_trials(make, 0.0), 0.94, 1.0, contrast=contrast
    )


def _power(items: int, gap: float, share: float, least: float) -> Setting:
    """How often a true difference is seen with answers missing at random from one model."""

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits, worst, complete = (np.zeros(trials, dtype=bool) for _ in range(3))
        widths = np.zeros(trials)
        wide = np.zeros(trials)
        for trial in range(trials):
            ease = rng.random(items)
            alike = rng.random((2, items)) < 0.6
            a, b = (
                np.where(alike, ease, rng.random((2, items)))
                < np.array([[0.7], [0.7 - gap]])
            ).astype(float)
            complete[trial] = compare_paired(a, b).verdict == "better"
            a[rng.random(items) < share] = np.nan
            comparison = compare_paired(a, b)
            hits[trial], widths[trial] = (
                comparison.verdict == "better",
                comparison.high - comparison.low,
            )
            worst[trial], wide[trial] = (
                comparison.worst_low > 0,
                comparison.worst_high - comparison.worst_low,
            )
        note = f"{complete.mean():.1%} with no answer missing"
        return Covered(
            hits,
            widths,
            "score test, scored",
            note,
            KnownMethod("worst case", worst, wide),
        )

    name = (
        f"power: {items:,} items, {100 * gap:g} points, {share:.0%} missing at random"
    )
    return Setting(name, run, least, 1.0, short=60)


def _until(items: int, gap: float, share: float) -> Setting:
    """A run that stops early, with answers missing at random: no verdict that the complete
    comparison would not give.
    """

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits = np.zeros(trials, dtype=bool)
        units = np.zeros(trials)
        complete = np.zeros(trials)
        for trial in range(trials):
            ease = rng.random(items)
            alike = rng.random((2, items)) < 0.7
            a, b = (
                np.where(alike, ease, rng.random((2, items)))
                < np.array([[0.7 + gap], [0.7]])
            ).astype(float)
            holes = np.where(rng.random(items) < share, np.nan, a)
            complete[trial] = _stopped(a, b)[1]
            verdict, units[trial] = _stopped(holes, b)
            final = {"better": "A better", "worse": "B better"}.get(
                compare_paired(holes, b).verdict
            )
            hits[trial] = verdict == (final or "no difference seen")
        note = (
            f"{units.mean():.0f} items on average, {complete.mean():.0f} with no answer"
            " missing"
        )
        return Covered(hits, np.full(trials, np.nan), "full-run verdict", note)

    name = (
        f"A beats B, {items:,} items, {100 * gap:g} points, {share:.0%} missing at"
        " random: early verdicts"
    )
    return Setting(name, run, 0.95, 1.0, cost=3)


def _stopped(a: F64, b: F64) -> tuple[str, int]:
    monitor = Monitor(parse_rule("A beats B"), len(a))
    for place in range(len(a)):
        monitor.submit(place, a[place], b[place])
        if (place + 1) % 50 == 0 and monitor.decision().decided:
            break
    decision = monitor.decision()
    return decision.verdict, decision.units


def _equivalent(clusters: int, lost: int) -> Setting:
    """Two models that differ by the margin of 10 points, of which one lost whole clusters, those
    where it is worst.
    """
    ids = np.repeat(np.arange(clusters), 8)

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits = np.zeros(trials, dtype=bool)
        widths = np.zeros(trials)
        method = ""
        for trial in range(trials):
            base = rng.beta(4, 2, clusters)[ids]
            loss = np.clip(rng.normal(0.15, 0.1, clusters), 0.0, 0.3)[ids]
            a = (rng.random(len(ids)) < base).astype(np.float64)
            b = (rng.random(len(ids)) < base * (1 - loss)).astype(np.float64)
            worst = np.argsort(np.bincount(ids, weights=a - b) + rng.random(clusters))[
                -lost:
            ]
            b[np.isin(ids, worst)] = np.nan
            equivalence = equivalence_paired(
                a, b, margin=0.1, clusters=ids, missing_policy="worst-case"
            )
            hits[trial], widths[trial], method = (
                not equivalence.equivalent,
                equivalence.high - equivalence.low,
                equivalence.method,
            )
        return Covered(hits, widths, method)

    name = (
        f"equivalence at its margin, {clusters} clusters of 8, {lost} of one model"
        " missing where it is worst, worst-case"
    )
    return Setting(name, run, 0.94, 1.0)


def _board(
    name: str, lose: Lose, clusters: int, items: int, policy: MissingPolicy = "scored"
) -> Setting:
    """Twelve equal models: none should differ. Every other one lacks answers."""
    ids = _ids(clusters, items)

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits = np.zeros(trials, dtype=bool)
        widths = np.zeros(trials)
        method = ""
        for trial in range(trials):
            ease, scores = _answers(rng, 12, ids)
            for row in range(0, 12, 2):
                scores[row] = lose(rng, ease, scores[row])
            board = all_differences(
                scores, ids if clusters < items else None, missing_policy=policy
            )
            hits[trial] = not board.differs.any()
            widths[trial], method = (
                float(np.nanmean(board.high - board.low)),
                board.method,
            )
        return Covered(hits, widths, method)

    groups = f" in {clusters} clusters" if clusters < items else ""
    return Setting(
        f"12 equal models, {items} items{groups}, {name}, {policy}",
        run,
        0.94,
        1.0,
        cost=2,
    )


def _bounds(name: str, lose: Lose, clusters: int, items: int) -> Setting:
    ids = _ids(clusters, items)
    # The mean of a logistic function of a normal variable, by Gauss-Hermite quadrature.
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    spread = 1.0 if clusters == items else np.hypot(1.0, 0.6)
    truth = float(
        (weights / weights.sum() / (1 + np.exp(-(_CENTRE + spread * nodes)))).sum()
    )

    def make(rng: np.random.Generator, trial: int) -> Plain:
        ease, (a,) = _answers(rng, 1, ids)
        interval = mean_interval(
            lose(rng, ease, a), clusters=ids if clusters < items else None
        )
        low, high = interval.bounds or (interval.low, interval.high)
        return Plain(low, high, f"bounds of {interval.method}")

    groups = f" in {clusters} clusters" if clusters < items else ""
    return Setting(
        f"bounds of a mean, {items} items{groups}, {name}",
        repeat_trials(make, truth),
        0.935,
        1.0,
    )


_HALF = "one is missing on half of what it would get wrong"
_FEW = "2% of both missing by chance"
_MORE = "5% of one missing by chance"
_WORST: MissingPolicy = "worst-case"

SETTINGS = (
    _pair(_FEW, _some(0.02), _some(0.02), 200, 200),
    _pair(_MORE, _some(0.05), None, 200, 200),
    _pair(_MORE, _some(0.05), None, 1000, 1000),
    _pair("20% of one missing by chance", _some(0.2), None, 200, 200),
    _pair(_FEW, _some(0.02), _some(0.02), 20, 200),
    _pair(_HALF, _hard(0.5), None, 200, 200, contrast=True),
    _pair(_HALF, _hard(0.5), None, 1000, 1000, contrast=True),
    _pair(_HALF, _hard(0.5), None, 200, 200, _WORST),
    _pair(_HALF, _hard(0.5), None, 20, 200, _WORST),
    _pair(
        "one is missing on a tenth of what it would get wrong",
        _hard(0.1),
        None,
        15,
        150,
        _WORST,
    ),
    _power(1000, 0.06, 0.05, 0.8),
    _power(300, 0.1, 0.05, 0.75),
    _power(1000, 0.06, 0.02, 0.8),
    _equivalent(19, 2),
    _equivalent(40, 1),
    _board("half of them lack 5% by chance", _some(0.05), 200, 200),
    _board("half of them lack 2% by chance", _some(0.02), 20, 200),
    _board(
        "half of them lack half of what they would get wrong",
        _hard(0.5),
        200,
        200,
        _WORST,
    ),
    _board(
        "half of them lack half of what they would get wrong",
        _hard(0.5),
        20,
        200,
        _WORST,
    ),
    _bounds("a fifth of what is wrong missing", _hard(0.2), 100, 100),
    _bounds("a fifth of what is wrong missing", _hard(0.2), 15, 120),
    _until(1000, 0.0, 0.05),
    _until(1000, 0.06, 0.05),
)
