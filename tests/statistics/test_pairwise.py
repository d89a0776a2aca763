"""All pairs at once give the standard errors of the pairs one by one."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.statistics import compare_paired, pairwise_differences


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_every_pair_is_that_of_compare_paired(clustered: bool, binary: bool) -> None:
    rng = np.random.default_rng(7)
    scores = rng.random((6, 60))
    scores = (scores < 0.6).astype(float) if binary else scores
    clusters = rng.integers(0, 14, 60) if clustered else None
    found = pairwise_differences(scores, clusters)
    assert found.units == (60 if clusters is None else len(np.unique(clusters)))
    for i in range(6):
        for j in range(6):
            pair = compare_paired(scores[i], scores[j], clusters=clusters, binary=False)
            assert found.difference[i, j] == pytest.approx(pair.difference, abs=1e-12)
            assert found.standard_error[i, j] == pytest.approx(pair.standard_error or 0.0, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 30), st.integers(2, 5), st.integers(0, 2**31))
def test_invariants(items: int, models: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, (models, items)) / 2
    found = pairwise_differences(scores)
    assert np.allclose(found.difference, -found.difference.T)
    assert np.array_equal(found.standard_error, found.standard_error.T)
    assert (np.diag(found.standard_error) == 0).all()
    shuffled = rng.permutation(items)
    again = pairwise_differences(scores[:, shuffled])
    assert np.allclose(again.standard_error, found.standard_error)


def test_equal_rows_have_no_error() -> None:
    row = np.random.default_rng(1).random(500)
    found = pairwise_differences(np.stack([row, row, 1 - row]))
    assert found.standard_error[0, 1] == 0.0
    assert found.standard_error[0, 2] > 0.0


def test_one_item_that_differs_among_many_is_seen() -> None:
    scores = np.zeros((2, 100_000))
    scores[:, ::2] = 1.0
    scores[0, 1] = 1.0
    found = pairwise_differences(scores)
    assert found.standard_error[0, 1] == pytest.approx(1e-5, rel=1e-3)


@pytest.mark.parametrize("clusters", [None, np.zeros(1, np.int64)])
def test_too_few_units_are_refused(clusters: np.ndarray[tuple[int], np.dtype[np.int64]] | None) -> None:
    with pytest.raises(ValueError, match="at least two"):
        pairwise_differences(np.ones((3, 1)), clusters)


def test_a_hundred_models_take_less_than_a_second() -> None:
    rng = np.random.default_rng(2)
    scores = (rng.random((100, 2000)) < 0.7).astype(float)
    clusters = np.repeat(np.arange(400), 5)
    began = time.perf_counter()
    found = pairwise_differences(scores, clusters)
    assert time.perf_counter() - began < 1.0
    assert found.standard_error.shape == (100, 100)
