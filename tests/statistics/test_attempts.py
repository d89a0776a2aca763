"""Accuracy given attempted and F: equal to the definitions written out, inside (0, 1), and with intervals that cover."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import attempted_accuracy, attempted_f, wilson


def outcomes(n: int, right: int, attempted: int) -> tuple[np.ndarray, np.ndarray]:
    return (np.arange(n) < right).astype(float), (np.arange(n) < attempted).astype(float)


@given(st.integers(2, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))))
def test_f_is_the_harmonic_mean_of_both_shares(found: tuple[int, int, int]) -> None:
    n, one, other = found
    right, attempted = min(one, other), max(one, other)
    f = attempted_f(*outcomes(n, right, attempted))
    correct, precision = right / n, right / attempted if attempted else 0.0
    wanted = 2 * correct * precision / (correct + precision) if right else 0.0
    assert f.value == pytest.approx(wanted)
    assert 0.0 <= f.low <= f.value <= f.high <= 1.0
    assert f.high > f.low
    given_attempted = attempted_accuracy(*outcomes(n, right, attempted))
    assert given_attempted.n == attempted
    if attempted > 1:
        assert given_attempted.value == pytest.approx(precision)
        assert (given_attempted.low, given_attempted.high) == pytest.approx(wilson(right, attempted))


def test_what_failed_is_bounded_by_all_wrong_and_all_right() -> None:
    right, attempted = outcomes(10, 4, 8)
    f = attempted_f(right, attempted, n_failed=5)
    assert f.bounds == pytest.approx(
        (max(0.0, 2 * 4 / (15 + 13) - (f.value - f.low)), min(1.0, 2 * 9 / (15 + 13) + f.high - f.value))
    )
    assert (f.n, f.n_failed) == (10, 5)
    share = attempted_accuracy(right, attempted, n_failed=5)
    assert share.bounds == pytest.approx((wilson(4, 13)[0], wilson(9, 13)[1]))


def test_draws_are_no_items() -> None:
    right, attempted = outcomes(40, 20, 30)
    once, twice = attempted_f(right, attempted), attempted_f(*(np.c_[v, v] for v in (right, attempted)))
    assert (once.value, once.low, once.high, once.n) == pytest.approx(
        (twice.value, twice.low, twice.high, twice.n)
    )
    share = attempted_accuracy(np.c_[right, right], np.c_[attempted, attempted])
    assert (share.value, share.n) == (20 / 30, 30)
    mixed = attempted_accuracy([[1.0, np.nan], [0.0, 1.0]], [[1.0, np.nan], [0.0, 1.0]])
    assert (mixed.value, mixed.n) == (1.0, 2)


def test_clusters_widen_the_interval_and_nothing_is_no_number() -> None:
    right, attempted = np.tile([1.0, 1.0, 0.0, 0.0], 20), np.tile([1.0, 1.0, 1.0, 0.0], 20)
    order = np.argsort(-right - attempted, kind="stable")
    clusters = np.arange(80) // 4
    alone, together = (
        attempted_f(right, attempted),
        attempted_f(right[order], attempted[order], clusters=clusters),
    )
    assert together.value == alone.value
    assert together.high - together.low > 1.3 * (alone.high - alone.low)
    assert together.n_clusters == 20
    empty = attempted_f([], [])
    assert np.isnan(empty.value) and empty.n == 0
    assert np.isnan(attempted_accuracy([0.0, 0.0], [0.0, 0.0]).value)


@pytest.mark.parametrize(
    ("right", "attempted", "words"),
    [
        ([1.0], [0.0], "cannot be right"),
        ([2.0], [2.0], "between 0 and 1"),
        ([1.0, 0.0], [1.0], "one shape"),
        ([1.0], [np.nan], "the same places"),
    ],
)
def test_what_cannot_be_is_refused(right: list[float], attempted: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        attempted_f(right, attempted)


@pytest.mark.parametrize(
    ("correct", "wrong", "n"), [(0.4, 0.3, 60), (0.1, 0.2, 40), (0.85, 0.1, 60), (0.03, 0.9, 80)]
)
def test_the_interval_of_f_covers(correct: float, wrong: float, n: int) -> None:
    rng = np.random.default_rng(7)
    true = 2 * correct / (1 + correct + wrong)
    hits, times = 0, 1200
    for kinds in rng.choice(3, size=(times, n), p=[correct, wrong, 1 - correct - wrong]):
        found = attempted_f((kinds == 0).astype(float), (kinds < 2).astype(float))
        hits += found.low <= true <= found.high
    assert hits / times > 0.93


def test_a_few_unequal_clusters_are_not_certain() -> None:
    """One of 15 clusters has half of the questions; with 14 degrees of freedom 18% of the intervals of F miss."""
    rng = np.random.default_rng(5)
    ids, missed = np.repeat(np.arange(15), [3] * 14 + [42]), 0
    for _ in range(300):
        own = rng.normal(size=(2, 15))[:, ids] * 0.63 + rng.normal(size=(2, len(ids))) * 0.775
        attempted = (own[0] < 0.842).astype(float)
        found = attempted_f(attempted * (own[1] < 0.2533), attempted, clusters=ids)
        missed += not found.low <= 2 * 0.48 / 1.8 <= found.high
    assert missed <= 24
