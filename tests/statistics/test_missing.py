"""Missing answers: left out and counted, or under every value that they could have had, by
trying all of these.
"""

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
    contamination_check,
    equivalence_paired,
    macro_difference,
    mean_interval,
)
from evalwright.statistics.many_models_macro import Part, all_macro_differences
from evalwright.statistics.pairwise import MissingPolicy
from evalwright.statistics.task_sample import (
    all_sampled_differences,
    sampled_difference,
)

NAN = math.nan
WORST: MissingPolicy = "worst-case"
POLICIES: tuple[MissingPolicy, MissingPolicy] = ("scored", WORST)


def _filled(scores: np.ndarray, ends: tuple[float, ...]) -> np.ndarray:
    out = scores.copy()
    out[np.isnan(out)] = ends
    return out


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])),
        min_size=12,
        max_size=40,
    ),
    st.integers(0, 4),
    st.integers(0, 3),
    st.booleans(),
)
def test_the_worst_case_holds_that_of_every_filling(
    rows: list[tuple[float, float]], lost_a: int, lost_b: int, overlapping: bool
) -> None:
    a, b = (np.array(side) for side in zip(*rows, strict=True))
    a[:lost_a] = NAN
    start = 0 if overlapping else lost_a
    b[start : start + lost_b] = NAN
    found = compare_paired(a, b, missing_policy=WORST)
    unknown = int(np.isnan(a).sum()), int(np.isnan(b).sum())
    assert found.n_missing == int((np.isnan(a) | np.isnan(b)).sum())
    assert (found.n_missing_a, found.n_missing_b) == unknown
    for ends in product((0.0, 1.0), repeat=sum(unknown)):
        full = compare_paired(
            _filled(a, ends[: unknown[0]]), _filled(b, ends[unknown[0] :])
        )
        assert found.low <= full.low + 1e-9 and full.high <= found.high + 1e-9
        assert found.p_value >= full.p_value - 1e-9
    assert (found.p_value < 0.05) == (found.verdict != "no difference seen")
    scored = compare_paired(a, b)
    kept = ~(np.isnan(a) | np.isnan(b))
    alone = compare_paired(a[kept], b[kept])
    assert (scored.low, scored.high, scored.p_value) == pytest.approx(
        (alone.low, alone.high, alone.p_value)
    )
    if found.n_missing:
        assert (
            (found.low, found.high)
            == (scored.worst_low, scored.worst_high)
            == (found.worst_low, found.worst_high)
        )
    else:
        assert math.isnan(found.worst_low) and (found.low, found.high) == (
            scored.low,
            scored.high,
        )


def test_both_fillings_by_hand_with_clusters_and_a_range_of_its_own() -> None:
    rng = np.random.default_rng(1)
    a = rng.uniform(1, 5, 60)
    b = rng.uniform(1, 4, 60)
    ids = np.arange(60) // 4
    a[[3, 4, 20]], b[[4, 41]] = NAN, NAN
    found = compare_paired(
        a, b, clusters=ids, value_range=(1.0, 5.0), missing_policy=WORST
    )
    full = [
        compare_paired(
            np.nan_to_num(a, nan=x),
            np.nan_to_num(b, nan=y),
            clusters=ids,
            value_range=(1.0, 5.0),
        )
        for x, y in ((1.0, 5.0), (5.0, 1.0))
    ]
    kept = ~(np.isnan(a) | np.isnan(b))
    scored = compare_paired(
        a[kept], b[kept], clusters=ids[kept], value_range=(1.0, 5.0)
    )
    assert found.fillings is not None
    for ours, theirs in zip(found.fillings, (scored, *full), strict=True):
        wanted = (theirs.difference, theirs.low, theirs.high, theirs.degrees_of_freedom)
        assert ours == pytest.approx(wanted)
    assert (found.low, found.high) == pytest.approx((full[0].low, full[1].high))
    assert found.difference == pytest.approx(scored.difference)
    assert (found.n, found.n_missing, found.n_missing_a, found.n_missing_b) == (
        56,
        4,
        3,
        2,
    )
    assert found.p_value == pytest.approx(max(one.p_value for one in (scored, *full)))


def test_a_few_missing_answers_do_not_end_a_verdict() -> None:
    rng = np.random.default_rng(8)
    seen = 0
    for _ in range(100):
        u = rng.random(1000)
        a = (u < 0.73) * 1.0
        b = np.where(rng.random(1000) < 0.8, u < 0.67, rng.random(1000) < 0.67) * 1.0
        whole = compare_paired(a, b).verdict
        a[rng.random(1000) < 0.05] = NAN
        some = compare_paired(a, b)
        seen += (some.verdict == "better") - (whole == "better")
        assert some.n_missing_b == 0
    assert abs(seen) <= 6


def test_fillings_that_disagree_give_no_verdict() -> None:
    a = np.ones(60)
    b = np.ones(60)
    a[:30] = NAN
    found = compare_paired(a, b, missing_policy=WORST)
    assert (found.verdict, found.p_value) == ("no difference seen", 1.0)
    assert found.low < -0.3 < 0.0 < found.high
    assert found.smallest_visible_difference > 0.5
    assert compare_paired(a, b, missing=False).n_missing == 0
    assert not equivalence_paired(a, b, margin=0.2, missing_policy=WORST).equivalent
    assert equivalence_paired(a, b, margin=0.2).equivalent
    with pytest.raises(ValueError, match="missing_policy"):
        compare_paired(a, b, missing_policy="hope")  # type: ignore[arg-type]


def test_without_a_known_range_what_is_missing_cannot_be_bounded() -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(3, 1, 50)
    b = rng.normal(0, 1, 50)
    a[0] = NAN
    assert compare_paired(a, b, value_range=None).verdict == "better"
    found = compare_paired(a, b, value_range=None, missing_policy=WORST)
    assert np.isnan(
        [found.low, found.high, found.p_value, found.smallest_visible_difference]
    ).all()
    assert found.verdict == "no difference seen"
    assert "range not known" in found.test
    whole = macro_difference(
        [found, compare_paired(b, b + 1.0, value_range=None, missing_policy=WORST)]
    )
    assert math.isnan(whole.low) and math.isnan(whole.p_value)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_board_has_the_pairs_of_compare_paired(
    clustered: bool, policy: MissingPolicy
) -> None:
    rng = np.random.default_rng(3)
    rows = (rng.random((5, 90)) < 0.6).astype(float)
    rows[:4][rng.random((4, 90)) < 0.1] = NAN
    never = np.isnan(rows) & (rng.random(rows.shape) < 0.4)
    lost = np.isnan(rows) & ~never
    ids = rng.integers(0, 20, 90) if clustered else None
    found = all_differences(rows, ids, missing=lost, missing_policy=policy)
    for i in range(5):
        for j in set(range(5)) - {i}:
            pair = compare_paired(
                rows[i], rows[j], missing=lost[[i, j]], missing_policy=policy, clusters=ids,
                level=float(found.pair_level[i, j]),
            )  # fmt: skip
            assert found.p_value[i, j] == pytest.approx(pair.p_value)
            assert found.n_missing[i, j] == pair.n_missing
            assert (found.low[i, j], found.high[i, j]) == pytest.approx(
                (pair.low, pair.high)
            )
            assert found.low[i, j] == pytest.approx(-found.high[j, i])


def test_a_mean_over_tasks_has_the_mean_of_the_fillings() -> None:
    rng = np.random.default_rng(4)
    tasks = [(rng.random((3, n)) < 0.5).astype(float) for n in (40, 70)]
    tasks[0][0, :9] = NAN
    parts: list[Part] = [(task, None) for task in tasks]
    found = all_macro_differences(parts, missing_policy=WORST)
    whole = macro_difference(
        [compare_paired(task[0], task[1], missing_policy=WORST) for task in tasks],
        value_range=(0.0, 1.0),
    )
    filled = macro_difference(
        [
            compare_paired(np.nan_to_num(tasks[0][0], nan=0.0), tasks[0][1]),
            compare_paired(*tasks[1][:2]),
        ],
        value_range=(0.0, 1.0),
    )
    scored = macro_difference(
        [compare_paired(task[0], task[1]) for task in tasks], value_range=(0.0, 1.0)
    )
    assert whole.low == pytest.approx(filled.low) == pytest.approx(scored.worst_low)
    assert scored.low > whole.low and scored.high <= whole.high
    assert whole.n_missing == scored.n_missing_a == found.n_missing[0, 1] == 9
    assert found.p_value[0, 1] == pytest.approx(whole.p_value)
    assert all_macro_differences(parts).p_value[0, 1] == pytest.approx(scored.p_value)


def test_a_sample_of_tasks_with_missing_answers() -> None:
    rng = np.random.default_rng(6)
    tasks = [(rng.random((2, 50)) < p).astype(float) for p in (0.4, 0.5, 0.6, 0.7)]
    whole = [compare_paired(*task) for task in tasks]
    tasks[1][0, :6] = NAN
    gaps = [(task[0] - task[1], None) for task in tasks]
    scored, worst = (
        sampled_difference(
            [compare_paired(*task, missing_policy=policy) for task in tasks],
            gaps,
            value_range=(0.0, 1.0),
        )
        for policy in POLICIES
    )
    assert (
        worst.low == pytest.approx(scored.worst_low)
        and worst.low < scored.low < scored.high < worst.high
    )
    assert math.isnan(sampled_difference(whole, gaps).worst_low)
    boards = [
        all_sampled_differences([(task, None) for task in tasks], missing_policy=policy)
        for policy in POLICIES
    ]
    assert boards[0].low[0, 1] == pytest.approx(scored.low)
    assert boards[1].low[0, 1] < boards[0].low[0, 1]


def test_independent_samples_and_means() -> None:
    rng = np.random.default_rng(5)
    a = (rng.random(80) < 0.8).astype(float)
    b = (rng.random(60) < 0.5).astype(float)
    full = compare_unpaired(a, b)
    assert full.low > 0 and math.isnan(full.worst_low)
    a[rng.permutation(80)[:30]] = NAN
    found = compare_unpaired(a, b, missing_policy=WORST)
    worst, best = (compare_unpaired(np.nan_to_num(a, nan=end), b) for end in (0.0, 1.0))
    assert (found.low, found.high) == (worst.low, best.high)
    scored = compare_unpaired(a, b)
    assert scored.low > found.low == scored.worst_low
    assert found.p_value >= worst.p_value
    assert (scored.n_missing_a, scored.n_missing_b) == (30, 0)
    unknown = compare_unpaired(a, b, value_range=None, missing_policy=WORST)
    assert math.isnan(unknown.low) and not math.isnan(
        compare_unpaired(a, b, value_range=None).low
    )
    ids = np.arange(80) // 4
    mean = mean_interval(a, clusters=ids)
    low, high = (
        mean_interval(np.nan_to_num(a, nan=end), clusters=ids) for end in (0.0, 1.0)
    )
    assert mean.bounds == (low.low, high.high)


def test_a_contamination_check_leaves_missing_answers_out() -> None:
    rng = np.random.default_rng(7)
    sides = [(rng.random(120) < p).astype(float) for p in (0.9, 0.4, 0.7, 0.7)]
    sides[0][:8] = NAN
    scored, worst = (
        contamination_check(*sides, missing_policy=policy) for policy in POLICIES
    )
    assert (
        scored.suspicious and worst.low < scored.low and worst.p_value > scored.p_value
    )
