"""The score test of a difference against a brute-force likelihood, and its exact error rates by
enumeration.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from evalwright.statistics import compare_paired
from evalwright.statistics.pairwise import ADDED, Counts


def _counts(better: float, worse: float, n: float, freedom: float = np.inf) -> Counts:
    parts = (np.float64(better), np.float64(worse), np.float64(n), np.float64(freedom))
    return Counts(*(np.asarray(part) for part in parts))


@pytest.mark.parametrize(
    ("b", "c", "n"), [(3, 1, 20), (12, 3, 60), (0.25, 0.25, 30), (1, 9, 40)]
)
@pytest.mark.parametrize("at", [-0.2, -0.05, 0.0, 0.1, 0.4])
def test_the_variance_is_that_of_the_likeliest_counts(
    b: float, c: float, n: float, at: float
) -> None:
    def unlikely(q: float) -> float:
        p = q + at
        return -float(b * np.log(p) + c * np.log(q) + (n - b - c) * np.log1p(-p - q))

    least = max(0.0, -at) + 1e-12
    most = (1 - at) / 2 - 1e-12
    q = optimize.minimize_scalar(
        unlikely, bounds=(least, most), method="bounded", options={"xatol": 1e-12}
    ).x
    expected = (b - c - n * at) / np.sqrt(n * (2 * q + at - at**2))
    assert float(_counts(b, c, n).deviate(at)) == pytest.approx(
        expected, rel=1e-4, abs=1e-4
    )


@pytest.mark.parametrize(("b", "c"), [(5, 0), (9, 2), (30, 12), (3, 12)])
def test_at_no_difference_it_is_close_to_mcnemars_mid_p(b: int, c: int) -> None:
    found = _counts(b + ADDED, c + ADDED, 200.5)
    score = 2 * min(float(found.tail(0.0)), float(found.tail(0.0, above=False)))
    mid_p = 2 * stats.binom.cdf(min(b, c), b + c, 0.5) - stats.binom.pmf(
        min(b, c), b + c, 0.5
    )
    assert score == pytest.approx(mid_p, rel=0.2)


@pytest.mark.parametrize(
    ("n", "p", "q"),
    [(200, 0.01, 0.03), (200, 0.0, 0.02), (200, 0.02, 0.05), (100, 0.02, 0.02), (30, 0.05, 0.15), (50, 0.0, 0.06)],
)  # fmt: skip
def test_exact_coverage_and_false_equivalence(n: int, p: float, q: float) -> None:
    b, c = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    chance = stats.binom.pmf(b, n, p) * stats.binom.pmf(c, n - b, q / (1 - p))
    kept = (chance > 1e-9) & (b + c <= n)
    b = b[kept]
    c = c[kept]
    chance = chance[kept]
    counts = Counts(
        b + ADDED, c + ADDED, np.full(len(b), n + 2 * ADDED), np.full(len(b), np.inf)
    )
    low, high = counts.limits(0.05)
    truth = p - q
    assert chance[(low <= truth) & (truth <= high)].sum() >= 0.945
    if truth:
        inside = (counts.tail(truth) < 0.05) & (counts.tail(-truth, above=False) < 0.05)
        assert chance[inside].sum() <= 0.055


@pytest.mark.parametrize("n", [8, 12, 20, 60])
def test_no_wider_than_a_tenth_above_tango(n: int) -> None:
    b, c = np.meshgrid(np.arange(n + 1.0), np.arange(n + 1.0), indexing="ij")
    b, c = b[b + c <= n], c[b + c <= n]
    parts = np.full(len(b), float(n)), np.full(len(b), np.inf)
    tango = Counts(b, c, *parts).limits(0.05)
    ours = Counts(b + ADDED, c + ADDED, parts[0] + 2 * ADDED, parts[1]).limits(0.05)
    width = [high - low for low, high in (ours, tango)]
    for p, q in ((0.0, 0.01), (0.1, 0.1), (0.05, 0.3), (0.4, 0.4)):
        chance = stats.multinomial.pmf(
            np.stack([b, c, n - b - c], axis=1), n, [p, q, 1 - p - q]
        )
        assert chance @ width[0] <= 1.1 * (chance @ width[1])


def test_seven_wins_to_none_are_a_difference() -> None:
    found = compare_paired(np.ones(8), np.r_[np.zeros(7), 1.0])
    assert found.verdict == "better" and 0.005 < found.p_value < 0.02
    assert found.discordant == (7, 0)


def test_limits_are_where_the_test_rejects() -> None:
    found = _counts(9.25, 3.25, 80.5, 79)
    low, high = (float(end) for end in found.limits(0.05))
    assert float(found.tail(low)) == pytest.approx(0.025, rel=1e-6)
    assert float(found.tail(high, above=False)) == pytest.approx(0.025, rel=1e-6)
    assert [
        float(end) for end in _counts(3.25, 9.25, 80.5, 79).limits(0.05)
    ] == pytest.approx([-high, -low])


def test_clusters_of_equal_answers_are_worth_one_item_each() -> None:
    rng = np.random.default_rng(1)
    a = (rng.random(60) < 0.6).astype(float)
    b = np.where(rng.random(60) < 0.2, 1 - a, a)
    alone = compare_paired(a, b)
    thrice = compare_paired(
        np.repeat(a, 3), np.repeat(b, 3), clusters=np.repeat(np.arange(60), 3)
    )
    # But for Student's quantile in place of the normal one, and McNemar's mid-p, which is for
    # single items.
    assert (thrice.low, thrice.high) == pytest.approx((alone.low, alone.high), abs=0.01)
    assert thrice.p_value == pytest.approx(alone.p_value, abs=0.02)


def test_scores_in_another_range_give_the_same_answer() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.random((2, 40))
    unit = compare_paired(a, b)
    large = compare_paired(100 * a - 50, 100 * b - 50, value_range=(-50, 50))
    assert (large.low, large.high) == pytest.approx((100 * unit.low, 100 * unit.high))
    assert large.p_value == pytest.approx(unit.p_value)
    assert large.smallest_visible_difference == pytest.approx(
        100 * unit.smallest_visible_difference
    )


def test_many_graded_scores_give_the_paired_t() -> None:
    rng = np.random.default_rng(3)
    a = rng.random(4000)
    b = np.clip(a + rng.normal(0.005, 0.1, 4000), 0, 1)
    found = compare_paired(a, b)
    oracle = stats.ttest_rel(a, b).confidence_interval()
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high), abs=3e-5)
