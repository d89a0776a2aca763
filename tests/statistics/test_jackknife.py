"""The jackknife over groups: who is in which group, and pseudo-values against their definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import compare_paired
from evalwright.statistics.jackknife import (
    jackknife_groups,
    pseudo_values,
    shared_groups,
)


@given(
    st.lists(st.integers(-5, 30), min_size=2, max_size=200),
    st.randoms(use_true_random=False),
)
def test_groups_hold_whole_clusters_whatever_the_order(
    names: list[int], random: object
) -> None:
    codes = np.array(names, np.int64)
    groups = jackknife_groups(codes, 20)
    sizes = np.unique(codes, return_counts=True)[1]
    effective = len(codes) ** 2 / float((sizes.astype(float) ** 2).sum())
    assert sorted(set(groups.tolist())) == list(range(groups.max() + 1))
    assert groups.max() + 1 <= max(1, min(20, effective + 1e-6))
    assert all(len(set(groups[codes == name].tolist())) == 1 for name in names)
    turned = np.random.default_rng(len(names)).permutation(len(codes))
    assert (jackknife_groups(codes[turned], 20) == groups[turned]).all()


@pytest.mark.parametrize(
    ("n", "count", "largest"),
    [(40, 40, 1), (150, 75, 2), (199, 99, 3), (100_000, 100, 1000)],
)
def test_groups_of_single_items_are_of_about_one_size(
    n: int, count: int, largest: int
) -> None:
    sizes = np.bincount(jackknife_groups(np.arange(n) * 7919))
    assert (len(sizes), sizes.max()) == (count, largest)
    assert sizes.max() - sizes.min() <= 1


def test_one_large_cluster_leaves_few_groups() -> None:
    codes = np.concatenate([np.zeros(140, np.int64), np.repeat(np.arange(1, 15), 10)])
    assert np.bincount(jackknife_groups(codes)).tolist() in (
        [140, 70, 70],
        [70, 140, 70],
        [70, 70, 140],
    )


def test_pseudo_values_of_a_mean_are_its_items() -> None:
    values = np.random.default_rng(1).normal(size=30)
    without = np.array([np.delete(values, i).mean() for i in range(30)])
    assert pseudo_values(float(values.mean()), without) == pytest.approx(values)


def test_the_error_is_that_of_the_jackknife() -> None:
    """Against the textbook's formula, (G - 1) / G sum (theta_-g - mean)^2, for a ratio."""
    rng = np.random.default_rng(2)
    above = rng.gamma(2, 1, (2, 40))
    below = rng.gamma(3, 1, (2, 40))
    whole = above.sum(axis=1) / below.sum(axis=1)
    without = np.array(
        [
            [np.delete(a, i).sum() / np.delete(b, i).sum() for i in range(40)]
            for a, b in zip(above, below, strict=True)
        ]
    )
    gap = without[0] - without[1]
    error = math.sqrt(39 / 40 * float(((gap - gap.mean()) ** 2).sum()))
    found = compare_paired(
        *(
            pseudo_values(float(w), each)
            for w, each in zip(whole, without, strict=True)
        ),
        value_range=None,
    )
    assert found.difference == pytest.approx(whole[0] - whole[1])
    assert found.standard_error == pytest.approx(error)
    assert found.degrees_of_freedom == 39


def test_only_runs_that_share_clusters_share_groups() -> None:
    codes = np.repeat(np.arange(30), 2)
    asked = np.zeros((3, 60), dtype=bool)
    asked[0, :40] = asked[1, 20:40] = asked[2, 40:] = True
    found = shared_groups(codes, asked)
    assert found.sides == (0, 0, 1)
    assert [found.place(row) for row in range(3)] == [
        slice(0, 20),
        slice(0, 20),
        slice(20, 30),
    ]
    again = shared_groups(codes[:40], asked[:2, :40])
    assert (
        again.keys[0] == found.keys[0]
    ).all()  # the same clusters have the same keys elsewhere
