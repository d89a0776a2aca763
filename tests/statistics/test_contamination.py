"""Difference in differences against scipy and a regression."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from evalwright.statistics import contamination_check

NAN = math.nan


def test_excess_is_welch_on_the_drops() -> None:
    rng = np.random.default_rng(1)
    a = rng.random(60)
    b = rng.random(60)
    c = rng.random(45)
    d = rng.random(45)
    found = contamination_check(a, b, c, d)
    oracle = stats.ttest_ind(a - b, c - d, equal_var=False)
    interval = oracle.confidence_interval()
    assert found.excess == pytest.approx((a - b).mean() - (c - d).mean())
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.p_value == pytest.approx(oracle.pvalue)
    assert (found.drop.n, found.control_drop.n, found.method) == (60, 45, "Welch t")
    assert found.drop.difference == pytest.approx((a - b).mean())
    json.dumps(found.as_dict(), allow_nan=False)


def test_a_benchmark_learnt_by_heart() -> None:
    rng = np.random.default_rng(2)
    original = (rng.random(300) < 0.95).astype(float)
    perturbed = (rng.random(300) < 0.6).astype(float)
    control, control_perturbed = (
        (rng.random(200) < p).astype(float) for p in (0.65, 0.58)
    )
    assert contamination_check(
        original, perturbed, control, control_perturbed
    ).suspicious
    clean = contamination_check(
        control, control_perturbed, control[::-1], control_perturbed[::-1]
    )
    assert clean.excess == pytest.approx(0.0) and not clean.suspicious


def test_clusters_on_both_sides_are_one() -> None:
    rng = np.random.default_rng(3)
    ids = np.repeat(np.arange(30), 4)
    shared = rng.normal(0, 0.2, 30)[ids]
    target = shared + 0.2 + rng.normal(0, 0.05, 120)
    control = shared + rng.normal(0, 0.05, 120)
    zero = np.zeros(120)
    both = contamination_check(
        target,
        zero,
        control,
        zero,
        clusters=ids,
        control_clusters=ids,
        value_range=None,
    )
    apart = contamination_check(
        target,
        zero,
        control,
        zero,
        clusters=ids,
        control_clusters=ids + 100,
        value_range=None,
    )
    # With the same clusters in equal numbers the excess is a paired mean of cluster differences.
    gaps = (target - control).reshape(30, 4).mean(axis=1)
    assert both.standard_error == pytest.approx(gaps.std(ddof=1) / math.sqrt(30))
    assert apart.standard_error is not None and both.standard_error is not None
    assert apart.standard_error > 3 * both.standard_error
    assert apart.method == "clustered Welch t"


def test_no_spread_missing_scores_and_nothing() -> None:
    flat = contamination_check(np.ones(50), np.ones(50), np.ones(40), np.ones(40))
    assert (
        flat.excess == 0.0
        and flat.low < -0.03
        and flat.high > 0.03
        and not flat.suspicious
    )
    gap = contamination_check([1, NAN, 1, 0], [0, 1, 1, 0], [1, 0, 1], [1, 0, 0])
    assert (gap.drop.n, gap.drop.n_missing) == (3, 1)
    empty = contamination_check([NAN], [1], [1], [1])
    assert math.isnan(empty.excess) and not empty.suspicious
    single = contamination_check([1], [0], [1, 0], [0, 0])
    assert (single.low, single.high) == (-2.0, 2.0)
    json.dumps(empty.as_dict(), allow_nan=False)
    with pytest.raises(ValueError, match="same items"):
        contamination_check([1], [0, 1], [1], [0])
