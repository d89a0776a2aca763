"""What one trial of a paired or a clustered setting is: its data, our interval or verdict of them, and those of the method before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coverage_settings.before import Ids, mean_before, pair_before
from coverage_settings.registry import F64, Covered, Plain, Setting, held
from evalwright.statistics import compare_paired, equivalence_paired, mean_interval

Rng = np.random.Generator
One = Callable[[Rng], tuple[F64, Ids]]
Two = Callable[[Rng], tuple[F64, F64, Ids]]
COVERS = {"least": 0.935, "most": 1.0, "short": 100}
ERRS = {"least": 0.94, "most": 1.0, "short": 100}


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
        rng = np.random.default_rng(seed)
        data = [draw(rng) for _ in range(trials)]
        ours = [compare_paired(a, b, clusters=ids) for a, b, ids in data]
        theirs = [pair_before(_gaps(a, b), _common(a, b, ids)) for a, b, ids in data]
        found = held([e.low for e in ours], [e.high for e in ours], [e.test for e in ours], truth)
        return _beside(found, theirs, truth)

    return Setting(name, run, least=0.94 if truth == 0 else least, most=1.0, short=100)


def equivalences(name: str, draw: Two, margin: float) -> Setting:
    """Not called equivalent although the models differ by the margin; the width is that of the 90% interval."""

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        data = [draw(rng) for _ in range(trials)]
        ours = [equivalence_paired(a, b, clusters=ids, margin=margin) for a, b, ids in data]
        theirs = [pair_before(_gaps(a, b), _common(a, b, ids), 0.9) for a, b, ids in data]
        widths = np.array([each.high - each.low for each in ours])
        right = np.array([not each.equivalent for each in ours])
        before = np.array([not (each.low >= -margin and each.high <= margin) for each in theirs])
        return Covered(
            right, widths, ours[0].method, "", (before, np.array([e.high - e.low for e in theirs]))
        )

    return Setting(name, run, **ERRS)  # type: ignore[arg-type]


def gates(name: str, draw: Two, margin: float, mode: str) -> Setting:
    """A gate where b loses exactly the margin: `shown` must not fail it as a loss shown, `not-ruled-out` not pass it."""

    def wrong(low: float, high: float) -> bool:
        return low > margin if mode == "shown" else high < margin

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        data = [draw(rng) for _ in range(trials)]
        ours = [compare_paired(a, b, clusters=ids, level=0.9) for a, b, ids in data]
        theirs = [pair_before(_gaps(a, b), _common(a, b, ids), 0.9) for a, b, ids in data]
        right, before = (np.array([not wrong(e.low, e.high) for e in each]) for each in (ours, theirs))
        widths, old = (np.array([e.high - e.low for e in each]) for each in (ours, theirs))
        return Covered(right, widths, ours[0].test, "", (before, old))

    return Setting(name, run, **ERRS)  # type: ignore[arg-type]


def _gaps(a: F64, b: F64) -> F64:
    gaps = (a if a.ndim == 1 else a.mean(axis=1)) - (b if b.ndim == 1 else b.mean(axis=1))
    return gaps[~np.isnan(gaps)]


def _common(a: F64, b: F64, ids: Ids) -> Ids:
    if ids is None or a.ndim > 1:
        return ids
    kept: Ids = np.unique(ids[~np.isnan(a - b)], return_inverse=True)[1].astype(np.int64)
    return kept


def _beside(found: Covered, theirs: list[Plain], truth: float) -> Covered:
    old = held([e.low for e in theirs], [e.high for e in theirs], ["before"], truth)
    return Covered(found.hits, found.widths, found.method, found.note, (old.hits, old.widths))
