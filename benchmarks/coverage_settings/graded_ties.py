"""Graded pairs with many equal items: t tests where few items differ, rare large losses,
equivalence with a long tail.

The numbers of items, the shares of equal items and the kinds of differences were fixed before the
method was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from scipy.special import stdtrit

from coverage_settings.known_methods import Ids, beside
from coverage_settings.registry import F64, Covered, KnownMethod, Setting
from coverage_settings.trial import Rng, equivalences, pairs, pairs_at_once
from evalwright.statistics.pairwise import AllPairs

ABOUT = (
    "Of n items a share is equal, the others differ by a normal amount with mean 0 or"
    " 0.1 and standard deviation 0.02, 0.1 or 0.2; a row is the worst of these six."
    " With k = n x the share that differs: 93% where k is 8 or more, 90% where it is 3"
    " to 8. Below that a comparison says that too few items differ. Rare losses by the"
    " whole range among small differences: trials in which the data show at least one;"
    " a loss that no item shows, no interval of this width can hold (rule of three:"
    " with n items it may have a rate of 3 / n). Equivalence: two models that differ by"
    " the margin, the losses of one with a long tail: at most 9% err (Student's t 8 to"
    " 16%). In brackets: Student's t, its mean width and how often it was right."
)
KINDS = tuple((mean, spread) for mean in (0.0, 0.1) for spread in (0.02, 0.1, 0.2))


def differences(
    rng: Rng, trials: int, n: int, equal: float, mean: float, spread: float
) -> F64:
    """(trials, n): 0 for the share `equal`, else normal."""
    apart = np.clip(rng.normal(mean, spread, (trials, n)), -1, 1)
    return np.where(rng.random((trials, n)) < equal, 0.0, apart)


def student_limits(core: AllPairs, level: float) -> tuple[F64, F64]:
    """Student's t of the same differences."""
    half = stdtrit(core.n - 1, 0.5 + level / 2) * np.nan_to_num(core.error)
    return core.difference - half, core.difference + half


def _cover_truth(gaps: F64, truth: float, note: str) -> Covered:
    core = pairs_at_once(gaps)
    low, high = core.limits(0.05)
    student = beside("t", *student_limits(core, 0.95), truth)
    # Where no item differs, t has no interval and ours is the rule of three, which is no width to
    # compare.
    has_width = core.error > 0
    widths = np.where(has_width, high - low, np.nan)
    student = KnownMethod(
        "t", student.hits, np.where(has_width, student.widths, np.nan)
    )
    return Covered(
        (low <= truth) & (high >= truth), widths, "skewness-adjusted t", note, student
    )


def _ties(n: int, equal: float) -> Setting:
    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        coverages = []
        for mean, spread in KINDS:
            gaps = differences(rng, trials, n, equal, mean, spread)
            coverages.append(
                _cover_truth(gaps, (1 - equal) * mean, f"mean {mean:g}, sd {spread:g}")
            )
        return min(coverages, key=lambda covered: covered.share)

    k = n * (1 - equal)
    least = 0.93 if k > 7.99 else 0.9
    name = f"{n} items, {equal:.0%} equal, {k:g} expected to differ"
    return Setting(name, run, least, 1.0, short=1000)


def _rare(expected: int) -> Setting:
    """300 items that differ by little, of which some are lost by the whole range."""

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        lost = rng.random((4 * trials, 300)) < expected / 300
        lost = lost[lost.any(axis=1)][:trials]
        gaps = np.where(lost, -1.0, rng.normal(0, 0.02, lost.shape))
        return _cover_truth(gaps, -expected / 300, "at least one shown")

    return Setting(
        f"300 small differences, {expected} whole losses expected",
        run,
        0.9,
        1.0,
        short=1000,
    )


def _long_tail(n: int, name: str, loss: Callable[[Rng], F64]) -> Setting:
    title = f"at the margin: {n} items, losses {name}"

    def draw(rng: Rng) -> tuple[F64, F64, Ids]:
        lost = loss(rng)[:n]
        return np.ones(n), 1 - lost, None

    def run(seed: int, trials: int) -> Covered:
        return equivalences(title, draw, _mean(loss), 0.91).run(seed, trials)

    # The margin is simulated when the setting runs: who only lists the settings need not wait.
    return replace(equivalences(title, draw, math.nan, 0.91), run=run)


@cache
def _mean(loss: Callable[[Rng], F64]) -> float:
    rng = np.random.default_rng(97)
    return float(np.mean([loss(rng).mean() for _ in range(20_000)]))


def _lognormal(spread: float, scale: float) -> Callable[[Rng], F64]:
    return lambda rng: np.minimum(1.0, scale * np.exp(rng.normal(0, spread, 300)))


def _beta(a: float, b: float) -> Callable[[Rng], F64]:
    return lambda rng: rng.beta(a, b, 300)


def _normal_equivalence(n: int, margin: float) -> Setting:
    """Equal models with normal differences: in how many of the trials in which t finds equivalence
    do we?
    """

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        agreements = np.zeros(0, bool)
        theirs = 0
        widths = []
        while len(agreements) < trials:
            core = pairs_at_once(rng.normal(0, 0.1, (4 * trials, n)))
            low, high = core.limits(0.1)
            t_low, t_high = student_limits(core, 0.9)
            equivalent_by_t = (t_low >= -margin) & (t_high <= margin)
            theirs += int(equivalent_by_t.sum())
            agreements = np.concatenate(
                [agreements, ((low >= -margin) & (high <= margin))[equivalent_by_t]]
            )
            widths.append((high - low)[equivalent_by_t])
        return Covered(
            agreements[:trials],
            np.concatenate(widths)[:trials],
            "TOST, skewness-adjusted t",
            "of those that t finds",
        )

    return Setting(
        f"equivalence found, {n} normal differences, margin {margin:g}",
        run,
        0.9,
        1.0,
        short=400,
    )


SETTINGS: tuple[Setting, ...] = (
    *(
        _ties(n, equal)
        for n in (40, 60, 100, 150, 200, 300, 500, 1000)
        for equal in (0.0, 0.5, 0.8, 0.9, 0.95)
    ),
    *(_rare(expected) for expected in (1, 2, 3)),
    pairs(
        "8 items, graded, none equal",
        lambda rng: (np.clip(0.5 + rng.normal(0, 0.1, 8), 0, 1), np.full(8, 0.5), None),
        0.0,
    ),
    _long_tail(80, "log-normal (sd 1)", _lognormal(1.0, 0.02)),
    _long_tail(80, "log-normal (sd 1.5, around 0.015)", _lognormal(1.5, 0.015)),
    _long_tail(80, "beta(0.1, 2)", _beta(0.1, 2)),
    _long_tail(80, "beta(0.05, 2)", _beta(0.05, 2)),
    _normal_equivalence(40, 0.05),
    _normal_equivalence(80, 0.025),
)
