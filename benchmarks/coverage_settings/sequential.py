"""Does it hold at every look? Simulations of the sequential statistics, one table row a setting.

Each setting takes a random generator and a number of trials. "ever wrong" is the share of trials in which a
sequence missed the truth at any time (at most 5% is right), "agreement" the share in which a stopped run
said what the full run would have said (at least 95%), "saved" the share of items not asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from evalwright.statistics.asymptotic import asymptotic_half_width
from evalwright.statistics.confidence_sequences import BettingSequence
from evalwright.statistics.e_values import log_pair_e_value
from evalwright.statistics.finite_counts import log_evidence
from evalwright.statistics.full_run import binary_outlook, graded_outlook, least_wins
from evalwright.statistics.paired import compare_paired

F64 = npt.NDArray[np.float64]
Row = dict[str, object]
ALPHA = 0.05
LOOKS = 50


def correlated_pair(
    rng: np.random.Generator, n: int, p_a: float, p_b: float, correlation: float = 0.5
) -> tuple[F64, F64]:
    """Right-or-wrong answers of two models to n items, with the correlation of their scores."""
    both = p_a * p_b + correlation * math.sqrt(p_a * (1 - p_a) * p_b * (1 - p_b))
    a = rng.random(n) < p_a
    b = rng.random(n) < np.where(a, both / p_a, (p_b - both) / (1 - p_a))
    return a.astype(np.float64), b.astype(np.float64)


def false_alarms(rng: np.random.Generator, trials: int, *, every: int, n: int = 1000) -> Row:
    """Equal models, n discordant items, a look after each `every` of them: the e-value, and a z test at
    each look."""
    wins = np.cumsum(rng.random((trials, n)) < 0.5, axis=1)[:, every - 1 :: every].astype(np.float64)
    seen = np.arange(every, n + 1, every, dtype=np.float64)
    e_value = (log_pair_e_value(wins, seen - wins) >= -math.log(ALPHA)).any(axis=1)
    z = np.abs(2 * wins - seen) / np.sqrt(seen)
    naive = (z[:, seen >= 20] > 1.96).any(axis=1)
    return {
        "what": f"false alarms, equal models, a look every {every}",
        "trials": trials,
        "ever wrong": float(e_value.mean()),
        "ever wrong, z test at each look": float(naive.mean()),
    }


def betting_coverage(
    rng: np.random.Generator, trials: int, *, without_replacement: bool, p: float = 0.7, n: int = 400
) -> Row:
    """Right-or-wrong scores: how often the betting sequence ever misses, and its half width after n."""
    missed, widths = 0, []
    total = 2 * n
    for _ in range(trials):
        scores = (rng.random(total) < p).astype(np.float64)
        truth = float(scores.mean()) if without_replacement else p
        sequence = BettingSequence(alpha=ALPHA, n_total=total if without_replacement else None)
        low, high = sequence.path(scores[:n])
        missed += bool(((low > truth + 1e-12) | (high < truth - 1e-12)).any())
        widths.append((high[-1] - low[-1]) / 2)
    return {
        "what": f"betting sequence {'without' if without_replacement else 'with'} replacement, p = {p}",
        "trials": trials,
        "ever wrong": missed / trials,
        "median half width": float(np.median(widths)),
        "items": n,
    }


def exact_count_coverage(rng: np.random.Generator, trials: int, *, p: float = 0.9, n: int = 500) -> Row:
    """The number of right answers among n items: how often its true value is ever refuted, at any of n
    looks."""
    scores = (rng.random((trials, n)) < p).astype(np.float64)
    total, truth = np.full(trials, float(n)), scores.sum(axis=1)
    seen = np.cumsum(scores, axis=1)
    weight = np.full(trials, n / 24)
    worst = np.full(trials, -np.inf)
    for i in range(n):
        found = log_evidence(seen[:, i], float(i + 1), truth, total, weight)
        worst = np.maximum(worst, found)
    return {
        "what": f"exact counts without replacement, p = {p}, N = {n}",
        "trials": trials,
        "ever wrong": float((worst >= -math.log(ALPHA)).mean()),
    }


def asymptotic_coverage(
    rng: np.random.Generator, trials: int, *, clusters: bool, without_replacement: bool, n: int = 2000
) -> Row:
    """The asymptotic sequence from unit 30 on; clusters of 1 to 8 items that share their difficulty."""
    totals, sizes, truth = _units(rng, trials, n, clusters, without_replacement)
    place = np.arange(1, n + 1, dtype=np.float64)
    items, sums = np.cumsum(sizes, axis=1), np.cumsum(totals, axis=1)
    mean = sums / items
    squares = np.cumsum(totals**2, axis=1) - 2 * mean * np.cumsum(totals * sizes, axis=1)
    spread = np.sqrt(np.maximum(squares + mean**2 * np.cumsum(sizes**2, axis=1), 0.0) / place)
    unit = np.array(
        [
            asymptotic_half_width(1.0, int(i), n_opt=n / 3, n_total=n if without_replacement else None)
            for i in place
        ]
    )
    wrong = np.abs(mean - truth[:, None]) > spread * unit * place / items + 1e-12
    where = "without replacement" if without_replacement else "with replacement"
    return {
        "what": f"asymptotic sequence {where}, {'clusters of 1 to 8' if clusters else 'items'}",
        "trials": trials,
        "ever wrong": float(wrong[:, 29:].any(axis=1).mean()),
    }


def full_run_pairs(rng: np.random.Generator, trials: int, *, p_a: float, p_b: float, n: int) -> Row:
    """Right-or-wrong pairs: the run stops when the verdict of the full run is settled (50 looks).

    "false decisions": the wrong model, or any where both are equal; those of the full run stand beside them.
    """
    agreed, reversed_, alarms, saved = 0, 0, 0, []
    names = {"better": "a better", "worse": "b better"}
    for _ in range(trials):
        a, b = correlated_pair(rng, n, p_a, p_b)
        full = compare_paired(a, b).verdict
        expected = names.get(full, full)
        wins, losses = np.cumsum(a > b), np.cumsum(a < b)
        said, stop = expected, n
        for i in range(n // LOOKS, n, n // LOOKS):
            verdict = binary_outlook(int(wins[i - 1]), int(losses[i - 1]), i, n, interval=False).verdict
            if verdict != "open":
                said, stop = verdict, i
                break
        agreed += said == expected
        reversed_ += said == "b better" if p_a > p_b else said != "no difference seen" and p_a == p_b
        alarms += expected == "b better" if p_a > p_b else expected != "no difference seen" and p_a == p_b
        saved.append(1 - stop / n)
    return {
        "what": f"A beats B, {100 * (p_a - p_b):.0f} points, N = {n}",
        "trials": trials,
        "agreement": agreed / trials,
        "false decisions": reversed_ / trials,
        "false decisions of the full run": alarms / trials,
        "median saved": float(np.median(saved)),
        "mean saved": float(np.mean(saved)),
    }


def margin_pairs(
    rng: np.random.Generator, trials: int, *, p_a: float, p_b: float, n: int, margin: float = 0.03
) -> Row:
    """Right-or-wrong pairs and the rule "A differs from B or not by `margin`": is what is said true of the
    full run?"""
    true_of_all, saved = 0, []
    for _ in range(trials):
        a, b = correlated_pair(rng, n, p_a, p_b)
        full = compare_paired(a, b)
        wins, losses = np.cumsum(a > b), np.cumsum(a < b)
        right, stop = True, n
        for i in range(n // LOOKS, n, n // LOOKS):
            found = binary_outlook(int(wins[i - 1]), int(losses[i - 1]), i, n, lean=False)
            if found.verdict in ("a better", "b better"):
                right, stop = full.verdict == ("better" if found.verdict == "a better" else "worse"), i
                break
            if -margin < found.low <= found.high < margin:
                right, stop = abs(full.difference) < margin, i
                break
        true_of_all += right
        saved.append(1 - stop / n)
    return {
        "what": f"A differs from B or not by {margin}, {100 * (p_a - p_b):.0f} points, N = {n}",
        "trials": trials,
        "agreement": true_of_all / trials,
        "median saved": float(np.median(saved)),
        "mean saved": float(np.mean(saved)),
    }


def e_value_pairs(rng: np.random.Generator, trials: int, *, p_a: float, p_b: float, n: int) -> Row:
    """Items like these: the run stops when the pair e-value reaches 20 (a look after each item)."""
    wrong, decided, saved = 0, 0, []
    for _ in range(trials):
        a, b = correlated_pair(rng, n, p_a, p_b)
        wins, losses = np.cumsum(a > b), np.cumsum(a < b)
        crossed = np.flatnonzero(log_pair_e_value(wins, losses) >= -math.log(ALPHA))
        stop = int(crossed[0]) + 1 if len(crossed) else n
        decided += bool(len(crossed))
        wrong += bool(len(crossed)) and (p_a == p_b or wins[stop - 1] < losses[stop - 1])
        saved.append(1 - stop / n)
    return {
        "what": f"e-value, items like these, {100 * (p_a - p_b):.0f} points, N = {n}",
        "trials": trials,
        "ever wrong": int(wrong) / trials,
        "decided": decided / trials,
        "median saved": float(np.median(saved)),
        "mean saved": float(np.mean(saved)),
    }


def full_run_clusters(rng: np.random.Generator, trials: int, *, difference: float, n: int = 600) -> Row:
    """Clusters of 1 to 8 pairs: the run stops when the clustered t test of the full run is settled."""
    agreed, saved = 0, []
    names = {"better": "a better", "worse": "b better"}
    for _ in range(trials):
        sizes = rng.integers(1, 9, n)
        ids = np.repeat(np.arange(n), sizes)
        shift = np.repeat(rng.normal(0, 0.08, n), sizes)
        a = (rng.random(len(ids)) < np.clip(0.7 + difference + shift, 0, 1)).astype(np.float64)
        b = (rng.random(len(ids)) < np.clip(0.7 - shift, 0, 1)).astype(np.float64)
        full = compare_paired(a, b, clusters=ids).verdict
        expected = names.get(full, full)
        totals: F64 = np.bincount(ids, weights=a - b).astype(np.float64)
        said, stop = expected, n
        for i in range(n // LOOKS, n, n // LOOKS):
            verdict = graded_outlook(totals[:i], sizes[:i].astype(np.float64), n, len(ids)).verdict
            if verdict != "open":
                said, stop = verdict, i
                break
        agreed += said == expected
        saved.append(1 - stop / n)
    return {
        "what": f"A beats B in clusters, {100 * difference:.0f} points, G = {n}",
        "trials": trials,
        "agreement": agreed / trials,
        "median saved": float(np.median(saved)),
        "mean saved": float(np.mean(saved)),
    }


def borderline_pairs(rng: np.random.Generator, trials: int, *, n: int = 1000, discordant: int = 250) -> Row:
    """The hardest list for `full_run_pairs`: one win short of "better", in random order, a look after each
    item."""
    wins = int(least_wins(np.array([float(discordant)]), n, 0.95)[0]) - 1
    wrong = 0
    d = np.concatenate((np.ones(wins), -np.ones(discordant - wins), np.zeros(n - discordant)))
    for _ in range(trials):
        order = rng.permutation(d)
        up, down = np.cumsum(order > 0), np.cumsum(order < 0)
        for i in range(10, n, 10):
            found = binary_outlook(int(up[i - 1]), int(down[i - 1]), i, n, interval=False).verdict
            if found != "open":
                wrong += found != "no difference seen"
                break
    return {
        "what": f"one win short of a verdict, N = {n}, a look every 10",
        "trials": trials,
        "agreement": 1 - wrong / trials,
        "ever wrong": wrong / trials,
    }


def _units(
    rng: np.random.Generator, trials: int, n: int, clusters: bool, without_replacement: bool
) -> tuple[F64, F64, F64]:
    """Totals and sizes (trials, n) and the truth (trials,)."""
    if not clusters:
        scores = rng.beta(2, 1, (trials, n))
        truth = scores.mean(axis=1) if without_replacement else np.full(trials, 2 / 3)
        return scores, np.ones((trials, n)), truth
    sizes = rng.integers(1, 9, (trials, n)).astype(np.float64)
    totals = rng.binomial(sizes.astype(np.int64), rng.beta(2, 1, (trials, n))).astype(np.float64)
    truth = totals.sum(axis=1) / sizes.sum(axis=1) if without_replacement else np.full(trials, 2 / 3)
    return totals, sizes, truth


_PAIRS = [(0.74, 0.70), (0.71, 0.70), (0.70, 0.70)]

SETTINGS: dict[str, Callable[[np.random.Generator, int], dict[str, object]]] = {
    **{f"false alarms, every {every}": partial(false_alarms, every=every) for every in (1, 10, 100)},
    **{
        f"betting {'without' if without else 'with'} replacement, p = {p}": partial(
            betting_coverage, without_replacement=without, p=p
        )
        for without in (False, True)
        for p in (0.7, 0.95)
    },
    "exact counts": exact_count_coverage,
    **{
        f"asymptotic {'without' if without else 'with'} replacement, {'clusters' if clusters else 'items'}": partial(
            asymptotic_coverage, clusters=clusters, without_replacement=without
        )
        for without in (False, True)
        for clusters in (False, True)
    },
    "one win short of a verdict": borderline_pairs,
    **{
        f"A beats B, {100 * (a - b):.0f} points, N = {n}": partial(full_run_pairs, p_a=a, p_b=b, n=n)
        for a, b in _PAIRS
        for n in (1000, 3000, 10000)
    },
    **{
        f"A differs from B or not by 0.03, {100 * (a - b):.0f} points, N = {n}": partial(
            margin_pairs, p_a=a, p_b=b, n=n
        )
        for a, b in _PAIRS
        for n in (3000, 10000)
    },
    **{
        f"e-value, {100 * (a - b):.0f} points, N = {n}": partial(e_value_pairs, p_a=a, p_b=b, n=n)
        for a, b in _PAIRS
        for n in (1000, 3000, 10000)
    },
    **{
        f"A beats B in clusters, {100 * difference:.0f} points": partial(
            full_run_clusters, difference=difference
        )
        for difference in (0.04, 0.0)
    },
}
