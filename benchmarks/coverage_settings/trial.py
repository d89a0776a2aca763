"""What one trial of a paired or a clustered setting is: its data, our interval or verdict of them, and those of the method before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coverage_settings.before import Ids, mean_before, pair_before
from coverage_settings.registry import F64, Bools, Covered, Plain, Setting, held
from evalwright.statistics import compare_paired, mean_interval
from evalwright.statistics.pairwise import effective_counts
from evalwright.statistics.units import cluster_spread

Rng = np.random.Generator
One = Callable[[Rng], tuple[F64, Ids]]
Two = Callable[[Rng], tuple[F64, F64, Ids]]


def means(name: str, draw: One, truth: float, least: float = 0.935) -> Setting:
    """The interval of one mean holds the truth."""

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        data = [draw(rng) for _ in range(trials)]
        ours = [mean_interval(scores, clusters=ids) for scores, ids in data]
        theirs = [
            mean_before(scores if scores.ndim == 1 else scores.mean(axis=1), ids) for scores, ids in data
        ]
        found = held([e.low for e in ours], [e.high for e in ours], [e.method for e in ours], truth)
        return _beside(found, theirs, truth)

    return Setting(name, run, least=least, most=1.0, short=100)


def pairs(name: str, draw: Two, truth: float, least: float = 0.935) -> Setting:
    """The interval of a difference holds the truth. Where the truth is 0 a miss is a verdict: at most 6%."""

    def run(seed: int, trials: int) -> Covered:
        low, high, method, theirs = _intervals(draw, seed, trials, 0.95)
        found = held(low.tolist(), high.tolist(), [method], truth)
        return _beside(found, theirs, truth)

    return Setting(name, run, least=0.94 if truth == 0 else least, most=1.0, short=400)


def equivalences(name: str, draw: Two, margin: float) -> Setting:
    """Not called equivalent although the models differ by the margin; the width is that of the 90% interval."""
    return _verdicts(name, draw, lambda low, high: (low >= -margin) & (high <= margin), "TOST, ")


def gates(name: str, draw: Two, margin: float, mode: str) -> Setting:
    """A gate where b loses exactly the margin: `shown` must not fail it as a loss shown, `not-ruled-out` not pass it."""
    return _verdicts(name, draw, lambda low, high: low > margin if mode == "shown" else high < margin)


def _verdicts(name: str, draw: Two, wrong: Callable[[F64, F64], Bools], how: str = "") -> Setting:
    """One-sided verdicts at 5%: from the ends of the 90% interval."""

    def run(seed: int, trials: int) -> Covered:
        low, high, method, theirs = _intervals(draw, seed, trials, 0.9)
        old_low, old_high = np.array([each.low for each in theirs]), np.array([each.high for each in theirs])
        before = ~wrong(old_low, old_high), old_high - old_low
        return Covered(~wrong(low, high), high - low, how + method, "", before)

    return Setting(name, run, least=0.94, most=1.0, short=400)


def _intervals(draw: Two, seed: int, trials: int, level: float) -> tuple[F64, F64, str, list[Plain]]:
    """Ours, as arrays (trials,), and those before. Ours come from the core of `compare_paired`, for all trials at once; the first
    trials are asked of `compare_paired` itself, and must be the same."""
    rng = np.random.default_rng(seed)
    sums, first, theirs = [], [], []
    for trial in range(trials):
        a, b, ids = draw(rng)
        gaps, kept = _gaps(a, b), _common(a, b, ids)
        n, residuals = len(gaps), gaps - gaps.mean()
        up, down = np.maximum(gaps, 0.0).sum(), np.maximum(-gaps, 0.0).sum()
        spread = float(residuals @ residuals)
        ties = float(n - np.count_nonzero(gaps))
        sums.append((float(n), float(up), float(down), float(gaps @ gaps), ties, spread))
        first.append((residuals, kept))
        theirs.append(pair_before(gaps, kept, level))
        if trial < 5:
            found = compare_paired(a, b, clusters=ids, level=level, missing=False)
            low, high = _core(sums[-1:], first[-1:], level)
            assert np.allclose((low[0], high[0]), (found.low, found.high), atol=1e-9), (low, high, found)
    low, high = _core(sums, first, level)
    return low, high, found.test, theirs


def _core(
    sums: Sequence[tuple[float, ...]], first: Sequence[tuple[F64, Ids]], level: float
) -> tuple[F64, F64]:
    n, better, worse, squares, ties, spread = np.array(sums).T
    if first[0][1] is None:
        error, freedom, worth = np.sqrt(spread / (n - 1) / n), n - 1, n
    else:
        most = max(int(ids.max()) + 1 for _, ids in first if ids is not None)
        totals, sizes = (
            np.stack(
                [np.bincount(ids, weights=what, minlength=most).astype(np.float64) for what, ids in each],  # type: ignore[arg-type]
                axis=1,
            )
            for each in (first, [(np.ones_like(residuals), ids) for residuals, ids in first])
        )
        error, freedom, worth = cluster_spread(totals, sizes, n, spread)
    error = np.where(error > 1e-12, error, 0.0)
    counts = effective_counts(n, better, worse, squares, ties, error, freedom, worth)
    low, high = counts.limits(1 - level)
    difference = (better - worse) / n
    return np.minimum(low, difference), np.maximum(high, difference)


def _gaps(a: F64, b: F64) -> F64:
    gaps: F64 = (a if a.ndim == 1 else a.mean(axis=1)) - (b if b.ndim == 1 else b.mean(axis=1))
    return gaps[~np.isnan(gaps)]


def _common(a: F64, b: F64, ids: Ids) -> Ids:
    if ids is None or a.ndim > 1:
        return ids
    kept: Ids = np.unique(ids[~np.isnan(a - b)], return_inverse=True)[1].astype(np.int64)
    return kept


def _beside(found: Covered, theirs: list[Plain], truth: float) -> Covered:
    old = held([e.low for e in theirs], [e.high for e in theirs], ["before"], truth)
    return Covered(found.hits, found.widths, found.method, found.note, (old.hits, old.widths))
