"""Graded pairs with many equal items: coverage and width beside Student's t, rare losses,
equivalence with a long tail.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import stdtrit

from evalwright.statistics import compare_paired, equivalence_paired
from evalwright.statistics.pairwise import AllPairs, pairs_of_sums, sums_of_differences

F64 = npt.NDArray[np.float64]
TRIALS = 1500


def _pairs(gaps: F64) -> AllPairs:
    """Many comparisons at once, each a row of differences of its own items."""
    return pairs_of_sums(
        sums_of_differences(gaps, None, None, True),
        1.0,
        np.zeros(len(gaps), dtype=np.int64),
        False,
    )


def _drawn(
    rng: np.random.Generator, n: int, equal: float, mean: float, spread: float
) -> F64:
    apart = np.clip(rng.normal(mean, spread, (TRIALS, n)), -1, 1)
    return np.where(rng.random((TRIALS, n)) < equal, 0.0, apart)


def _student(pairs: AllPairs, level: float = 0.95) -> F64:
    return np.asarray(stdtrit(pairs.n - 1, 0.5 + level / 2) * pairs.error)


@pytest.mark.parametrize(
    ("n", "equal", "least", "widest"),
    [
        (40, 0.0, 0.93, 1.08),
        (40, 0.8, 0.93, 1.5),
        (100, 0.9, 0.93, 1.5),
        (200, 0.95, 0.93, 1.15),
        (300, 0.9, 0.93, 1.15),
        (60, 0.95, 0.9, 2.0),
        (100, 0.95, 0.9, 2.0),
    ],
)
@pytest.mark.parametrize("mean", [0.0, 0.1])
@pytest.mark.parametrize("spread", [0.02, 0.1, 0.2])
def test_coverage_and_width(
    n: int, equal: float, least: float, widest: float, mean: float, spread: float
) -> None:
    pairs = _pairs(_drawn(np.random.default_rng(n), n, equal, mean, spread))
    low, high = pairs.limits(0.05)
    truth = (1 - equal) * mean
    covered = float(((low <= truth) & (high >= truth)).mean())
    assert covered >= least - 2 * np.sqrt(least * (1 - least) / TRIALS)
    shown = pairs.error > 0
    assert (high - low)[shown].mean() <= widest * 2 * _student(pairs)[shown].mean()


@pytest.mark.parametrize("n", [8, 12, 20])
def test_without_equal_items_it_is_hardly_wider_than_t(n: int) -> None:
    pairs = _pairs(_drawn(np.random.default_rng(n), n, 0.0, 0.05, 0.1))
    low, high = pairs.limits(0.05)
    assert (high - low).mean() <= 1.08 * 2 * _student(pairs).mean()


@pytest.mark.parametrize("expected", [1, 2, 3])
def test_rare_losses_that_the_data_show(expected: int) -> None:
    rng = np.random.default_rng(expected)
    lost = rng.random((4 * TRIALS, 300)) < expected / 300
    lost = lost[lost.any(axis=1)][:TRIALS]
    low, high = _pairs(np.where(lost, -1.0, rng.normal(0, 0.02, lost.shape))).limits(
        0.05
    )
    assert ((low <= -expected / 300) & (high >= -expected / 300)).mean() >= 0.9


def test_long_tailed_losses_are_seldom_called_equivalent() -> None:
    """At the margin: Student's t errs in 15%."""
    rng = np.random.default_rng(3)

    def losses(rows: int) -> F64:
        return np.minimum(1.0, 0.015 * np.exp(rng.normal(0, 1.5, (rows, 80))))

    margin = float(losses(40_000).mean())
    pairs = _pairs(-losses(4 * TRIALS))
    low, _ = pairs.limits(0.1)
    assert (low >= -margin).mean() <= 0.1
    assert (pairs.difference - _student(pairs, 0.9) >= -margin).mean() > 0.13


def test_normal_differences_are_found_equivalent_where_t_finds_them() -> None:
    pairs = _pairs(np.random.default_rng(4).normal(0, 0.1, (4 * TRIALS, 80)))
    low, high = pairs.limits(0.1)
    half = _student(pairs, 0.9)
    theirs = (pairs.difference - half >= -0.025) & (pairs.difference + half <= 0.025)
    ours = (low >= -0.025) & (high <= 0.025)
    assert (ours & theirs).sum() >= 0.9 * theirs.sum() > 0


def test_interval_p_value_equivalence_and_order_come_from_one_test() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        a = rng.random(40)
        b = np.clip(
            a - np.where(rng.random(40) < 0.7, 0.0, rng.exponential(0.1, 40)) + 0.01,
            0,
            1,
        )
        found = compare_paired(a, b)
        assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0)
        assert found.low <= found.difference <= found.high
        ends = [compare_paired(a, b, level=level) for level in (0.8, 0.9, 0.95, 0.99)]
        assert all(
            wide.low <= one.low <= one.high <= wide.high for one, wide in pairwise(ends)
        )
        same = equivalence_paired(a, b, margin=(found.low, 1.0), alpha=0.025)
        assert same.p_least == pytest.approx(0.025, rel=1e-6)
