"""What failed: every verdict holds whatever the failed items would have scored, by trying all that they could have."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import (
    all_differences,
    compare_paired,
    compare_unpaired,
    equivalence_paired,
    macro_difference,
    mean_interval,
)
from evalwright.statistics.many_models import all_differences
from evalwright.statistics.many_models_macro import all_macro_differences

NAN = math.nan


def _filled(scores: np.ndarray, ends: tuple[float, ...]) -> np.ndarray:
    out = scores.copy()
    out[np.isnan(out)] = ends
    return out


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=12, max_size=40),
    st.integers(0, 4),
    st.integers(0, 3),
    st.booleans(),
)
def test_the_interval_holds_that_of_every_filling(
    rows: list[tuple[float, float]], lost_a: int, lost_b: int, overlapping: bool
) -> None:
    a, b = (np.array(side) for side in zip(*rows, strict=True))
    a[:lost_a] = NAN
    start = 0 if overlapping else lost_a
    b[start : start + lost_b] = NAN
    found = compare_paired(a, b)
    unknown = int(np.isnan(a).sum()), int(np.isnan(b).sum())
    assert found.n_missing == int((np.isnan(a) | np.isnan(b)).sum())
    for ends in product((0.0, 1.0), repeat=sum(unknown)):
        full = compare_paired(_filled(a, ends[: unknown[0]]), _filled(b, ends[unknown[0] :]))
        assert found.low <= full.low + 1e-9 and full.high <= found.high + 1e-9
        assert found.p_value >= full.p_value - 1e-9
    assert found.low <= found.scored_low <= found.scored_high <= found.high
    assert (found.p_value < 0.05) == (found.verdict != "no difference seen")
    if not found.n_missing:
        assert (found.low, found.high) == (found.scored_low, found.scored_high)


def test_both_fillings_by_hand_with_clusters_and_a_range_of_its_own() -> None:
    rng = np.random.default_rng(1)
    a, b, ids = rng.uniform(1, 5, 60), rng.uniform(1, 4, 60), np.arange(60) // 4
    a[[3, 4, 20]], b[[4, 41]] = NAN, NAN
    found = compare_paired(a, b, clusters=ids, value_range=(1.0, 5.0))
    full = [
        compare_paired(np.nan_to_num(a, nan=x), np.nan_to_num(b, nan=y), clusters=ids, value_range=(1.0, 5.0))
        for x, y in ((1.0, 5.0), (5.0, 1.0))
    ]
    assert found.fillings is not None
    for ours, theirs in zip(found.fillings, full, strict=True):
        wanted = (theirs.difference, theirs.low, theirs.high, theirs.degrees_of_freedom)
        assert ours == pytest.approx(wanted)
    assert (found.low, found.high) == pytest.approx((full[0].low, full[1].high))
    kept = ~(np.isnan(a) | np.isnan(b))
    scored = compare_paired(a[kept], b[kept], clusters=ids[kept], value_range=(1.0, 5.0))
    assert (found.scored_low, found.scored_high) == pytest.approx((scored.low, scored.high))
    assert found.difference == pytest.approx(scored.difference)
    assert (found.n, found.n_missing) == (56, 4)
    assert found.p_value == pytest.approx(max(one.p_value for one in (scored, *full)))


def test_ends_that_disagree_give_no_verdict() -> None:
    a, b = np.ones(60), np.ones(60)
    a[:30] = NAN
    found = compare_paired(a, b)
    assert (found.verdict, found.p_value) == ("no difference seen", 1.0)
    assert found.low < -0.3 < 0.0 < found.high
    assert found.smallest_visible_difference > 0.5
    assert compare_paired(a, b, missing=False).n_missing == 0
    assert not equivalence_paired(a, b, margin=0.2).equivalent
    assert equivalence_paired(a, b, margin=0.2, missing=False).equivalent


def test_without_a_known_range_what_failed_cannot_be_bounded() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(3, 1, 50), rng.normal(0, 1, 50)
    a[0] = NAN
    found = compare_paired(a, b, value_range=None)
    assert np.isnan([found.low, found.high, found.p_value, found.smallest_visible_difference]).all()
    assert found.scored_low > 0
    assert found.verdict == "no difference seen"
    assert "range not known" in found.test
    whole = macro_difference([found, compare_paired(b, b + 1.0, value_range=None)])
    assert math.isnan(whole.low) and math.isnan(whole.p_value)


@pytest.mark.parametrize("clustered", [False, True])
def test_a_board_has_the_pairs_of_compare_paired(clustered: bool) -> None:
    rng = np.random.default_rng(3)
    rows = (rng.random((5, 90)) < 0.6).astype(float)
    rows[:4][rng.random((4, 90)) < 0.1] = NAN
    never = np.isnan(rows) & (rng.random(rows.shape) < 0.4)
    lost = np.isnan(rows) & ~never
    ids = rng.integers(0, 20, 90) if clustered else None
    found = all_differences(rows, ids, missing=lost)
    for i in range(5):
        for j in set(range(5)) - {i}:
            pair = compare_paired(rows[i], rows[j], missing=lost[[i, j]], clusters=ids)
            assert found.p_value[i, j] == pytest.approx(pair.p_value)
            assert found.n_missing[i, j] == pair.n_missing
            assert found.low[i, j] < pair.low < pair.high < found.high[i, j]
            assert found.low[i, j] == pytest.approx(-found.high[j, i])
            assert found.own_low[i, j] >= found.low[i, j] - 1e-9
            assert found.low[i, j] <= found.scored_low[i, j]
    again = all_differences(rows, ids, missing=lost)
    assert np.array_equal(again.low, found.low, equal_nan=True)


def test_a_mean_over_tasks_has_the_mean_of_the_fillings() -> None:
    rng = np.random.default_rng(4)
    tasks = [(rng.random((3, n)) < 0.5).astype(float) for n in (40, 70)]
    tasks[0][0, :9] = NAN
    found = all_macro_differences([(one, None) for one in tasks])
    whole = macro_difference([compare_paired(one[0], one[1]) for one in tasks])
    filled = macro_difference(
        [compare_paired(np.nan_to_num(tasks[0][0], nan=0.0), tasks[0][1]), compare_paired(*tasks[1][:2])]
    )
    assert whole.low == pytest.approx(filled.low)
    assert whole.scored_low > whole.low and whole.scored_high <= whole.high
    assert whole.n_missing == found.n_missing[0, 1] == 9
    assert found.p_value[0, 1] == pytest.approx(whole.p_value)
    assert found.low[0, 1] < whole.low
    clear = all_macro_differences([(one, None) for one in tasks], missing=[False, False])
    assert clear.low[0, 1] > found.low[0, 1]


def test_independent_samples_and_means_hold_whatever_failed() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.random(80) < 0.8).astype(float), (rng.random(60) < 0.5).astype(float)
    full = compare_unpaired(a, b)
    assert full.low > 0 and (full.scored_low, full.scored_high) == (full.low, full.high)
    a[rng.permutation(80)[:30]] = NAN
    found = compare_unpaired(a, b)
    worst, best = (compare_unpaired(np.nan_to_num(a, nan=end), b) for end in (0.0, 1.0))
    assert (found.low, found.high) == (worst.low, best.high)
    assert found.scored_low > found.low
    assert found.p_value >= worst.p_value
    unknown = compare_unpaired(a, b, value_range=None)
    assert math.isnan(unknown.low) and not math.isnan(unknown.scored_low)
    ids = np.arange(80) // 4
    mean = mean_interval(a, clusters=ids)
    low, high = (mean_interval(np.nan_to_num(a, nan=end), clusters=ids) for end in (0.0, 1.0))
    assert mean.bounds == (low.low, high.high)
