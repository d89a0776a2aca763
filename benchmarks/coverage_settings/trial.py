"""What one trial of a paired or a clustered setting is: its data, our interval or verdict of them,
and those of a known method.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coverage_settings.known_methods import Ids, beside, mean_known, pairs_known
from coverage_settings.registry import (
    F64,
    Bools,
    Covered,
    KnownMethod,
    Plain,
    Setting,
    coverage_of_intervals,
)
from evalwright.statistics import compare_paired, mean_interval
from evalwright.statistics.pairwise import (
    AllPairs,
    grouped,
    pairs_of_sums,
    sums_of_differences,
)

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
            mean_known(scores if scores.ndim == 1 else scores.mean(axis=1), ids)
            for scores, ids in data
        ]
        covered = coverage_of_intervals(
            [e.low for e in ours],
            [e.high for e in ours],
            [e.method for e in ours],
            truth,
        )
        return Covered(
            covered.hits,
            covered.widths,
            covered.method,
            covered.note,
            _known_coverage(theirs, truth),
        )

    return Setting(name, run, least=least, most=1.0, short=100)


def pairs(name: str, draw: Two, truth: float, least: float = 0.935) -> Setting:
    """The interval of a difference holds the truth.

    Where the truth is 0 a miss is a verdict: at most 6%.
    """

    def run(seed: int, trials: int) -> Covered:
        low, high, method, theirs = _intervals(draw, seed, trials, 0.95)
        covered = coverage_of_intervals(low.tolist(), high.tolist(), [method], truth)
        return Covered(
            covered.hits,
            covered.widths,
            covered.method,
            covered.note,
            _known_coverage(theirs, truth),
        )

    return Setting(name, run, least=0.94 if truth == 0 else least, most=1.0, short=400)


def equivalences(name: str, draw: Two, margin: float, least: float = 0.94) -> Setting:
    """Not called equivalent although the models differ by the margin; the width is that of the 90%
    interval.
    """
    return _verdicts(
        name,
        draw,
        lambda low, high: (low >= -margin) & (high <= margin),
        least,
        "TOST, ",
    )


def gates(
    name: str, draw: Two, margin: float, mode: str, least: float = 0.94
) -> Setting:
    """A gate where b loses exactly the margin: `shown` must not fail it as a loss shown,
    `not-ruled-out` not pass it.
    """
    return _verdicts(
        name,
        draw,
        lambda low, high: low > margin if mode == "shown" else high < margin,
        least,
    )


def _verdicts(
    name: str,
    draw: Two,
    wrong: Callable[[F64, F64], Bools],
    least: float,
    how: str = "",
) -> Setting:
    """One-sided verdicts at 5%: from the ends of the 90% interval."""

    def run(seed: int, trials: int) -> Covered:
        low, high, method, theirs = _intervals(draw, seed, trials, 0.9)
        their_low, their_high = (
            np.array([getattr(interval, end) for interval in theirs])
            for end in ("low", "high")
        )
        known_method = KnownMethod(
            theirs[0].method, ~wrong(their_low, their_high), their_high - their_low
        )
        return Covered(~wrong(low, high), high - low, how + method, "", known_method)

    return Setting(name, run, least=least, most=1.0, short=400)


def pairs_at_once(gaps: F64) -> AllPairs:
    """The tests of many comparisons on single items, scores between 0 and 1: gaps (comparisons,
    items).
    """
    none_missing = np.zeros(len(gaps), dtype=np.int64)
    return pairs_of_sums(
        sums_of_differences(gaps, None, None, True), 1.0, none_missing, False
    )


def _intervals(
    draw: Two, seed: int, trials: int, level: float
) -> tuple[F64, F64, str, list[Plain]]:
    """Ours, as arrays (trials,), and those of a known method.

    Ours come from the core of `compare_paired`, for all trials at once; the first trials are asked
    of `compare_paired` itself, and must be the same.
    """
    rng = np.random.default_rng(seed)
    differences = list[F64]()
    clusters = list[Ids]()
    first = list[tuple[float, float]]()
    sums = []
    for trial in range(trials):
        a, b, ids = draw(rng)
        differences.append(_gaps(a, b))
        clusters.append(_common(a, b, ids))
        sums.append(_sums(differences[-1], clusters[-1]))
        if trial < 5:
            comparison = compare_paired(a, b, clusters=ids, level=level, missing=False)
            first.append((comparison.low, comparison.high))
    stacked = {
        name: np.concatenate([trial_sums[name] for trial_sums in sums])
        for name in sums[0]
    }
    core = pairs_of_sums(
        stacked, 1.0, np.zeros(trials, dtype=np.int64), clusters[0] is not None
    )
    low, high = core.limits(1 - level)
    assert np.allclose(np.stack([low, high], axis=1)[: len(first)], first, atol=1e-9), (
        low,
        high,
        first,
    )
    return low, high, comparison.test, pairs_known(differences, clusters, level)


def _sums(gaps: F64, ids: Ids) -> dict[str, F64]:
    if ids is None:
        return sums_of_differences(gaps[None], None, None, True)
    order, starts = grouped(ids)
    return sums_of_differences(gaps[order][None], None, starts, True)


def _gaps(a: F64, b: F64) -> F64:
    gaps: F64 = (a if a.ndim == 1 else a.mean(axis=1)) - (
        b if b.ndim == 1 else b.mean(axis=1)
    )
    return gaps[~np.isnan(gaps)]


def _common(a: F64, b: F64, ids: Ids) -> Ids:
    if ids is None or a.ndim > 1:
        return ids
    common_ids: Ids = np.unique(ids[~np.isnan(a - b)], return_inverse=True)[1].astype(
        np.int64
    )
    return common_ids


def _known_coverage(theirs: list[Plain], truth: float) -> KnownMethod:
    return beside(
        theirs[0].method,
        [interval.low for interval in theirs],
        [interval.high for interval in theirs],
        truth,
    )
