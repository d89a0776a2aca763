"""The tipping point: equal to brute force over all sets of missing answers and of unsure
readings.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from evalwright.statistics import compare_paired
from evalwright.statistics.tipping import (
    TippingPoint,
    shares_differ_p,
    tipping_of_missing,
    tipping_of_unsure,
)
from support.bounds import ends

F64 = npt.NDArray[np.float64]
in_many_cases = pytest.mark.parametrize(
    ("n_cases", "most_moved"), [(40, 8), pytest.param(200, 9, marks=pytest.mark.slow)]
)
"""Brute force takes twice as long for each more that may be moved."""


def _verdict(a: F64, b: F64) -> str:
    there = ~np.isnan(a + b)
    return compare_paired(a[there], b[there]).verdict


def _random_scores(rng: np.random.Generator, *, graded: bool) -> tuple[F64, F64]:
    """Scores of two models, with a verdict more often than not."""
    n = int(rng.integers(20, 80))
    gap = rng.uniform(0.1, 0.5)
    if graded:
        base = rng.uniform(0.2, 0.6, n)
        a = np.clip(base + gap / 3 + rng.normal(0, 0.1, n), 0, 1)
        b = np.clip(base + rng.normal(0, 0.1, n), 0, 1)
    else:
        a = (rng.random(n) < 0.4 + gap).astype(float)
        b = (rng.random(n) < 0.4).astype(float)
    return (a, b) if rng.random() < 0.5 else (b, a)


def _brute_missing(a: F64, b: F64, worst_a: float, worst_b: float) -> int | None:
    """The smallest set of items without a score that overturns the verdict, over all sets."""
    verdict = _verdict(a, b)
    lost = np.flatnonzero(np.isnan(a + b))
    for size in range(1, len(lost) + 1):
        for chosen in combinations(lost, size):
            filled_a = a.copy()
            filled_b = b.copy()
            for place in chosen:
                filled_a[place] = worst_a if np.isnan(a[place]) else a[place]
                filled_b[place] = worst_b if np.isnan(b[place]) else b[place]
            if _verdict(filled_a, filled_b) != verdict:
                return size
    return None


@in_many_cases
def test_the_number_of_missing_answers_is_that_of_brute_force(
    n_cases: int, most_moved: int
) -> None:
    rng = np.random.default_rng(30)
    compared = overturned = 0
    while compared < n_cases:
        a, b = _random_scores(rng, graded=compared % 4 == 3)
        lost = rng.choice(len(a), size=int(rng.integers(1, most_moved)), replace=False)
        for place in lost:
            which = rng.integers(3)
            if which != 1:
                a[place] = np.nan
            if which != 0:
                b[place] = np.nan
        verdict = _verdict(a, b)
        tipping = tipping_of_missing(a, b)
        if verdict == "no difference seen":
            assert tipping is None
            continue
        worst = (0.0, 1.0) if verdict == "better" else (1.0, 0.0)
        assert tipping == TippingPoint(len(lost), _brute_missing(a, b, *worst))
        compared += 1
        overturned += tipping.fewest is not None
    assert n_cases / 10 < overturned < n_cases * 9 / 10  # both kinds are there


@in_many_cases
def test_the_number_of_unsure_readings_is_that_of_brute_force(
    n_cases: int, most_moved: int
) -> None:
    rng = np.random.default_rng(31)
    compared = overturned = 0
    while compared < n_cases:
        a, b = _random_scores(rng, graded=False)
        values = np.stack([a, b])
        unsure = np.zeros(values.shape, bool)
        places = rng.choice(
            values.size, size=int(rng.integers(1, most_moved)), replace=False
        )
        unsure.ravel()[places] = True
        verdict = _verdict(a, b)
        tipping = tipping_of_unsure(a, b, unsure=unsure)
        if verdict == "no difference seen":
            assert tipping is None
            continue
        worst = (0.0, 1.0) if verdict == "better" else (1.0, 0.0)
        fewest = None
        for size in range(1, len(places) + 1):
            for chosen in combinations(np.argwhere(unsure), size):
                moved = values.copy()
                for row, column in chosen:
                    moved[row, column] = worst[row]
                if _verdict(*moved) != verdict:
                    fewest = size
                    break
            if fewest:
                break
        assert tipping == TippingPoint(len(places), fewest)
        compared += 1
        overturned += fewest is not None
    assert n_cases / 10 < overturned < n_cases * 9 / 10


def test_what_has_fallen_stays_fallen() -> None:
    """The bisection rests on it: after every further move the verdict is still overturned."""
    from evalwright.statistics.tipping import moves_of_missing

    rng = np.random.default_rng(5)
    for _ in range(40):
        values = (rng.random((2, 120)) < np.array([[0.65], [0.4]])).astype(float)
        lost = rng.random(values.shape) < 0.12
        values[lost] = np.nan
        if _verdict(*values) != "better":
            continue
        moves = moves_of_missing(values, lost, (0.0, 1.0), 1)
        holds = [
            _verdict(*moves.applied(values, count)) == "better"
            for count in range(len(moves) + 1)
        ]
        assert holds == sorted(holds, reverse=True)


def test_a_hundred_thousand_items_take_seconds() -> None:
    rng = np.random.default_rng(6)
    values = (rng.random((2, 100_000)) < np.array([[0.62], [0.60]])).astype(float)
    values[rng.random(values.shape) < 0.03] = np.nan
    with ends():  # a fraction of a second; with the square of the items, minutes
        tipping = tipping_of_missing(*values)
    assert tipping is not None
    assert tipping.fewest is not None


def test_nothing_missing_has_no_tipping_point() -> None:
    a = np.ones(40)
    b = np.r_[np.zeros(20), np.ones(20)]
    assert tipping_of_missing(a, b) is None
    assert tipping_of_unsure(a, b, unsure=np.zeros((2, 40), bool)) is None


def test_items_that_were_not_asked_are_not_missing() -> None:
    a = np.r_[np.ones(40), np.nan]
    b = np.r_[np.zeros(20), np.ones(20), 1.0]
    assert tipping_of_missing(a, b, missing=np.zeros((2, 41), bool)) is None
    assert tipping_of_missing(a, b) == TippingPoint(1, None)


@pytest.mark.parametrize(
    ("only_a", "only_b", "p"), [(0, 0, 1.0), (8, 0, 0.0078125), (5, 5, 1.0)]
)
def test_shares_of_missing_answers(only_a: int, only_b: int, p: float) -> None:
    missing = np.zeros((2, 40), bool)
    missing[0, :only_a] = True
    missing[1, 20 : 20 + only_b] = True
    missing[:, 39] = True  # what both lack says nothing
    assert shares_differ_p(missing) == pytest.approx(p)
