"""Stopping early: sequences that hold at every look, and runs that stop when the verdict of the
full run is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from coverage_settings.registry import F64, Covered, Setting
from evalwright.statistics import compare_paired
from evalwright.statistics._evidence import log_pair_e_value
from evalwright.statistics.confidence_sequences import (
    BettingSequence,
    asymptotic_half_width,
)
from evalwright.statistics.full_run import (
    binary_outlook,
    graded_outlook,
    least_wins,
    log_evidence,
)

ABOUT = (
    "A trial counts as covered where a sequence never misses the truth, at no look;"
    " where no false alarm is ever raised; or where the run that stopped says what the"
    " full run says. Each should be so in at least 95% of the trials."
)
ALPHA = 0.05
LOOKS = 50
_BAR = -math.log(ALPHA)
_NAMES = {"better": "a better", "worse": "b better"}
Random = np.random.Generator


def _setting(
    name: str,
    run: Callable[[Random, int], Covered],
    cost: int = 1,
    contrast: bool = False,
) -> Setting:
    def seeded(seed: int, trials: int) -> Covered:
        return run(np.random.default_rng(seed), trials)

    return Setting(name, seeded, 0.95, 1.0, cost, contrast)


def _none(trials: int) -> F64:
    """No interval has a width here."""
    return np.full(trials, math.nan)


def correlated_pair(
    rng: Random, n: int, p_a: float, p_b: float, correlation: float = 0.5
) -> tuple[F64, F64]:
    """Right-or-wrong answers of two models to n items, with the correlation of their scores."""
    both_right = p_a * p_b + correlation * math.sqrt(p_a * (1 - p_a) * p_b * (1 - p_b))
    a = rng.random(n) < p_a
    b = rng.random(n) < np.where(a, both_right / p_a, (p_b - both_right) / (1 - p_a))
    return a.astype(np.float64), b.astype(np.float64)


def _equal_models(
    rng: Random, trials: int, *, every: int, naive: bool, n: int = 1000
) -> Covered:
    """n discordant items of equal models and a look after each `every` of them: is an alarm ever
    raised?

    `naive`: by a z test at each look from 20 items on, in place of the e-value.
    """
    wins = np.cumsum(rng.random((trials, n)) < 0.5, axis=1)[
        :, every - 1 :: every
    ].astype(np.float64)
    seen = np.arange(every, n + 1, every, dtype=np.float64)
    if naive:
        alarm = (np.abs(2 * wins - seen) / np.sqrt(seen) > 1.96)[:, seen >= 20].any(
            axis=1
        )
    else:
        alarm = (log_pair_e_value(wins, seen - wins) >= _BAR).any(axis=1)
    note = f"false alarms {alarm.mean():.1%}"
    return Covered(
        np.logical_not(alarm),
        _none(trials),
        "z test at each look" if naive else "pair e-value",
        note,
    )


def _betting(rng: Random, trials: int, *, p: float, n: int = 400) -> Covered:
    """Right-or-wrong scores of exactly 2 n items, a look after each of n."""
    hits = np.zeros(trials, dtype=bool)
    widths = np.zeros(trials)
    for trial in range(trials):
        scores = (rng.random(2 * n) < p).astype(np.float64)
        truth = float(scores.mean())
        low, high = BettingSequence(2 * n, alpha=ALPHA).update(scores[:n])
        hits[trial] = ((low <= truth + 1e-12) & (high >= truth - 1e-12)).all()
        widths[trial] = high[-1] - low[-1]
    return Covered(hits, widths, "hedged betting")


def _counts(rng: Random, trials: int, *, p: float, n: int = 500) -> Covered:
    """The number of right answers among n items: do any of n looks refute its true value?"""
    scores = (rng.random((trials, n)) < p).astype(np.float64)
    total = np.full(trials, float(n))
    truth = scores.sum(axis=1)
    weight = np.full(trials, n / 24)
    seen = np.cumsum(scores, axis=1)
    worst = np.full(trials, -np.inf)
    for i in range(n):
        worst = np.maximum(
            worst, log_evidence(seen[:, i], float(i + 1), truth, total, weight)
        )
    return Covered(worst < _BAR, _none(trials), "exact counts without replacement")


def _asymptotic(rng: Random, trials: int, *, clusters: bool, n: int = 2000) -> Covered:
    """The asymptotic sequence from unit 30 on; clusters of 1 to 8 items that share their
    difficulty.
    """
    place = np.arange(1, n + 1, dtype=np.float64)
    unit = np.array([asymptotic_half_width(1.0, int(i), n) for i in place])
    hits = []
    widths = []
    for start in range(0, trials, 100):  # a hundred trials are a few dozen megabytes
        totals, sizes, truth = _units(rng, min(100, trials - start), n, clusters)
        items = np.cumsum(sizes, axis=1)
        sums = np.cumsum(totals, axis=1)
        mean = sums / items
        squares = np.cumsum(totals**2, axis=1) - 2 * mean * np.cumsum(
            totals * sizes, axis=1
        )
        spread = np.sqrt(
            np.maximum(squares + mean**2 * np.cumsum(sizes**2, axis=1), 0.0) / place
        )
        half = spread * unit * place / items
        hits.append(~(np.abs(mean - truth[:, None]) > half + 1e-12)[:, 29:].any(axis=1))
        widths.append(2 * half[:, n // 2])
    return Covered(np.concatenate(hits), np.concatenate(widths), "asymptotic sequence")


def _units(rng: Random, trials: int, n: int, clusters: bool) -> tuple[F64, F64, F64]:
    """Totals and sizes (trials, n) and the truth (trials,)."""
    if not clusters:
        scores = rng.beta(2, 1, (trials, n))
        return scores, np.ones((trials, n)), scores.mean(axis=1)
    sizes = rng.integers(1, 9, (trials, n)).astype(np.float64)
    totals = rng.binomial(sizes.astype(np.int64), rng.beta(2, 1, (trials, n))).astype(
        np.float64
    )
    return totals, sizes, totals.sum(axis=1) / sizes.sum(axis=1)


def _saved(stops: list[int], n: int) -> str:
    """The note on what stopping saved."""
    shares = 1 - np.array(stops) / n
    return f"items saved: median {np.median(shares):.0%}, mean {shares.mean():.0%}"


def _looks(n: int) -> range:
    return range(n // LOOKS, n, n // LOOKS)


def _full_run(rng: Random, trials: int, *, p_a: float, p_b: float, n: int) -> Covered:
    """Right-or-wrong pairs: the run stops when the verdict of the full run is settled."""
    hits = np.zeros(trials, dtype=bool)
    stops = []
    for trial in range(trials):
        a, b = correlated_pair(rng, n, p_a, p_b)
        full = compare_paired(a, b).verdict
        full_verdict = _NAMES.get(full, full)
        stop = n
        hits[trial] = True
        wins = np.cumsum(a > b)
        losses = np.cumsum(a < b)
        for i in _looks(n):
            verdict = binary_outlook(
                int(wins[i - 1]), int(losses[i - 1]), i, n, interval=False
            ).verdict
            if verdict != "open":
                hits[trial], stop = verdict == full_verdict, i
                break
        stops.append(stop)
    return Covered(hits, _none(trials), "verdict of the full run", _saved(stops, n))


def _within_margin(
    rng: Random, trials: int, *, p_a: float, p_b: float, n: int, margin: float = 0.03
) -> Covered:
    """Right-or-wrong pairs, "A differs from B or not by the margin": is what is said true of the
    full run?
    """
    hits = np.ones(trials, dtype=bool)
    stops = []
    for trial in range(trials):
        a, b = correlated_pair(rng, n, p_a, p_b)
        full = compare_paired(a, b)
        stop = n
        wins = np.cumsum(a > b)
        losses = np.cumsum(a < b)
        for i in _looks(n):
            outlook = binary_outlook(
                int(wins[i - 1]), int(losses[i - 1]), i, n, directed=False
            )
            close = -margin < outlook.low <= outlook.high < margin
            if outlook.verdict in ("a better", "b better") or close:
                right = outlook.verdict == _NAMES.get(full.verdict)
                hits[trial] = (
                    right
                    if outlook.verdict in ("a better", "b better")
                    else abs(full.difference) < margin
                )
                stop = i
                break
        stops.append(stop)
    return Covered(
        hits, _none(trials), "exact counts of the full run", _saved(stops, n)
    )


def _full_run_clusters(
    rng: Random, trials: int, *, difference: float, n: int = 600
) -> Covered:
    """Clusters of 1 to 8 pairs: the run stops once the full run's clustered t test is settled."""
    hits = np.ones(trials, dtype=bool)
    stops = []
    for trial in range(trials):
        sizes = rng.integers(1, 9, n)
        ids = np.repeat(np.arange(n), sizes)
        shift = np.repeat(rng.normal(0, 0.08, n), sizes)
        a = (rng.random(len(ids)) < np.clip(0.7 + difference + shift, 0, 1)).astype(
            np.float64
        )
        b = (rng.random(len(ids)) < np.clip(0.7 - shift, 0, 1)).astype(np.float64)
        full = compare_paired(a, b, clusters=ids).verdict
        totals = np.bincount(ids, weights=a - b).astype(np.float64)
        stop = n
        for i in _looks(n):
            verdict = graded_outlook(
                totals[:i], sizes[:i].astype(np.float64), n, len(ids)
            ).verdict
            if verdict != "open":
                hits[trial], stop = verdict == _NAMES.get(full, full), i
                break
        stops.append(stop)
    return Covered(hits, _none(trials), "asymptotic, of the full run", _saved(stops, n))


def _borderline(
    rng: Random, trials: int, *, n: int = 1000, discordant: int = 250
) -> Covered:
    """The hardest list: one win short of "better", in random order, looked at every ten items."""
    wins = int(least_wins(np.array([float(discordant)]), 0.95)[0]) - 1
    d = np.concatenate(
        (np.ones(wins), -np.ones(discordant - wins), np.zeros(n - discordant))
    )
    hits = np.ones(trials, dtype=bool)
    for trial in range(trials):
        order = rng.permutation(d)
        up = np.cumsum(order > 0)
        down = np.cumsum(order < 0)
        for i in range(10, n, 10):
            verdict = binary_outlook(
                int(up[i - 1]), int(down[i - 1]), i, n, interval=False
            ).verdict
            if verdict != "open":
                hits[trial] = verdict == "no difference seen"
                break
    return Covered(hits, _none(trials), "verdict of the full run")


_PAIRS = ((0.74, 0.70), (0.71, 0.70), (0.70, 0.70))


def _gap(p_a: float, p_b: float) -> str:
    points = round(100 * (p_a - p_b))
    return f"{points} point{'' if points == 1 else 's'} apart"


SETTINGS: tuple[Setting, ...] = (
    *(
        _setting(
            f"equal models, a look every {every}" + (", z test" if naive else ""),
            partial(_equal_models, every=every, naive=naive),
            contrast=naive,
        )
        for every in (1, 10, 100)
        for naive in (False, True)
    ),
    *(
        _setting(
            f"mean of exactly 800 items, p = {p}, a look at each of 400",
            partial(_betting, p=p),
            cost=2,
        )
        for p in (0.7, 0.95)
    ),
    _setting(
        "right answers among exactly 500 items, p = 0.9, a look at each",
        partial(_counts, p=0.9),
    ),
    *(
        _setting(
            "mean of exactly 2,000"
            f" {'clusters of 1 to 8' if clusters else 'graded items'}, a look at each"
            " of 2,000",
            partial(_asymptotic, clusters=clusters),
            cost=2,
        )
        for clusters in (False, True)
    ),
    _setting(
        "A beats B, one win short of a verdict, 1,000 items, a look every 10",
        _borderline,
        cost=3,
    ),
    *(
        _setting(
            f"A beats B, {_gap(a, b)}, {n:,} items",
            partial(_full_run, p_a=a, p_b=b, n=n),
            cost=3,
        )
        for a, b in _PAIRS
        for n in (1000, 3000, 10000)
    ),
    *(
        _setting(
            f"A differs from B or not by 0.03, {_gap(a, b)}, {n:,} items",
            partial(_within_margin, p_a=a, p_b=b, n=n),
            cost=7,
        )
        for a, b in _PAIRS
        for n in (3000, 10000)
    ),
    *(
        _setting(
            f"A beats B in 600 clusters, {100 * difference:.0f} points apart",
            partial(_full_run_clusters, difference=difference),
            cost=2,
        )
        for difference in (0.04, 0.0)
    ),
)
