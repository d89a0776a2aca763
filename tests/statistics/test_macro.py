"""Averages over fixed tasks: against a brute-force reading of the formula, and by simulated
coverage.
"""

import functools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalwright.statistics import (
    PairedComparison,
    compare_paired,
    macro_average,
    macro_difference,
    mean_interval,
)
from evalwright.statistics.many_models_macro import all_macro_differences
from evalwright.statistics.shared_units import combine_errors, sharing, unit_sums

UNIT = (0.0, 1.0)


def _by_hand(
    errors: list[float], units: list[int], level: float = 0.95
) -> tuple[float, float]:
    """(standard error, half width) of a mean of independent parts, written out from the
    specification.
    """
    shares = [error / len(errors) for error in errors]
    error = math.sqrt(sum(share**2 for share in shares))
    freedom = error**4 / sum(
        share**4 / (n - 1) for share, n in zip(shares, units, strict=True)
    )
    return error, stats.t.ppf(0.5 + level / 2, freedom) * error


def test_average_of_tasks_of_different_size() -> None:
    rng = np.random.default_rng(1)
    scores = [rng.beta(3, 2, n) for n in (12, 40, 300)]
    parts = [mean_interval(score) for score in scores]
    found = macro_average(parts)
    error, half = _by_hand([stats.sem(score) for score in scores], [12, 40, 300])
    value = np.mean([score.mean() for score in scores])
    assert found.value == pytest.approx(value)
    assert (found.low, found.high) == pytest.approx(
        (value - half, value + half), abs=0.02 * half
    )
    assert found.high - found.low == pytest.approx(2 * half, rel=0.02)
    assert found.standard_error == pytest.approx(error)
    assert (found.n, found.n_missing, found.n_clusters, found.bounds) == (
        352,
        0,
        None,
        None,
    )
    assert "3 fixed tasks" in found.method


def test_clusters_are_the_units() -> None:
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(9), 5)
    scores = [rng.beta(2, 2, 45), rng.beta(2, 2, 30)]
    parts = [mean_interval(scores[0], clusters=clusters), mean_interval(scores[1])]
    errors = [part.standard_error or math.nan for part in parts]
    _, half = _by_hand(errors, [9, 30])
    found = macro_average(parts)
    assert found.high - found.value == pytest.approx(half)
    assert found.n_clusters == 39
    assert found.n == 75


def test_one_part_comes_back_as_it_is() -> None:
    part = mean_interval([0.1, 0.9, 0.4], n_missing=1)
    assert macro_average([part], value_range=UNIT) is part
    with pytest.raises(ValueError, match="at least one"):
        macro_average([])
    with pytest.raises(ValueError, match="at least one"):
        macro_difference([])


def test_a_task_without_spread_does_not_pose_as_certain() -> None:
    perfect = mean_interval([1.0] * 20)
    assert perfect.standard_error is None
    other = mean_interval([0.0, 1.0] * 10)
    found = macro_average([perfect, other])
    assert other.standard_error is not None
    width = (perfect.high - perfect.low) / (2 * stats.norm.ppf(0.975))
    assert found.standard_error == pytest.approx(
        math.hypot(width, other.standard_error) / 2
    )
    all_perfect = macro_average([perfect, perfect], value_range=UNIT)
    assert all_perfect.high == 1.0
    assert all_perfect.low < 0.97


@pytest.mark.parametrize(
    ("items", "tasks"), [(1, 3), (1, 30), (2, 3), (2, 30), (3, 10), (4, 20)]
)
def test_tasks_of_a_few_items_are_not_certain(items: int, tasks: int) -> None:
    """Two equal models, right in 70%, on tasks so small that each one's own interval is nearly
    the whole range.
    """
    rng = np.random.default_rng(items * tasks)

    @functools.cache
    def pair(a: tuple[float, ...], b: tuple[float, ...]) -> PairedComparison:
        return compare_paired(a, b)

    right = np.sort(rng.random((200, tasks, 2, items)) < 0.7).astype(float)
    right[..., 1, :] = rng.permuted(right[..., 1, :], axis=-1)
    verdicts = 0
    missed = 0
    for trial in right:
        found = macro_difference(
            [pair(tuple(a), tuple(b)) for a, b in trial], value_range=UNIT
        )
        verdicts += not found.low <= 0 <= found.high
        own = macro_average([mean_interval(a) for a, _ in trial], value_range=UNIT)
        missed += not own.low <= 0.7 <= own.high
    assert verdicts <= 16 and missed <= 16


def test_one_cluster_is_known_as_little_as_one_item() -> None:
    one = compare_paired([1.0], [0.0])
    cluster = compare_paired([1.0, 1.0], [0.0, 0.0], clusters=[3, 3])
    many = compare_paired([1.0, 0.0] * 30, [0.0, 1.0] * 30)
    found = [
        macro_difference([part, many, many], value_range=UNIT)
        for part in (one, cluster)
    ]
    assert (found[0].low, found[0].high) == pytest.approx((found[1].low, found[1].high))
    # The one difference is 1, and may be 2 less and no more.
    assert (
        found[0].low < -0.33
        and found[0].high > 0.4
        and found[0].smallest_visible_difference > 0.4
    )
    board = all_macro_differences(
        [([[1.0], [0.0]], None), *[([[1.0, 0.0] * 30, [0.0, 1.0] * 30], None)] * 2],
        level=0.95,
    )
    assert (board.low[0, 1], min(board.high[0, 1], 1.0)) == pytest.approx(
        (found[0].low, found[0].high)
    )


def test_a_part_that_nobody_scored_leaves_no_average() -> None:
    found = macro_average(
        [mean_interval([], n_missing=5), mean_interval([0.0, 1.0])], value_range=UNIT
    )
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    assert found.n_missing == 5
    json.dumps(found.as_dict(), allow_nan=False)


def test_bounds_hold_the_intervals_of_both_fillings() -> None:
    rng = np.random.default_rng(5)
    first = rng.random(60)
    second = rng.random(40)
    lost = mean_interval(first, n_missing=20)
    whole = mean_interval(second)
    found = macro_average([lost, whole], value_range=UNIT)
    low, high = (
        macro_average(
            [mean_interval(np.append(first, np.full(20, end))), whole], value_range=UNIT
        )
        for end in UNIT
    )
    assert found.bounds == pytest.approx((low.low, high.high), abs=0.004)
    assert lost.bounds is not None
    added = macro_average([lost, whole]).bounds
    assert added == pytest.approx(
        ((lost.bounds[0] + whole.low) / 2, (lost.bounds[1] + whole.high) / 2)
    )
    unknown = mean_interval([1.0, 3.0], n_missing=1, value_range=None)
    assert macro_average([lost, unknown]).bounds is None


def test_the_interval_stays_inside_the_range_and_as_wide() -> None:
    parts = [mean_interval([1.0, 1.0, 1.0, 0.0]), mean_interval([1.0, 1.0, 1.0])]
    for found in (macro_average(parts), macro_average(parts, value_range=UNIT)):
        assert 1.0 >= found.high > found.value == 0.875
        assert found.low < 0.57


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=12),
        min_size=2,
        max_size=5,
    )
)
def test_the_interval_holds_the_value_and_stays_in_range(
    tasks: list[list[float]],
) -> None:
    parts = [mean_interval(task) for task in tasks]
    found = macro_average(parts, value_range=UNIT)
    assert found.value == pytest.approx(np.mean([np.mean(task) for task in tasks]))
    if not math.isnan(found.low):
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    order = macro_average(parts[::-1], value_range=UNIT)
    assert (order.value, order.low, order.high) == pytest.approx(
        (found.value, found.low, found.high), nan_ok=True
    )


def test_difference_of_tasks_is_that_of_their_parts() -> None:
    rng = np.random.default_rng(3)
    pairs = [(rng.beta(3, 2, n), rng.beta(2, 2, n)) for n in (20, 35, 90)]
    parts = [compare_paired(a, b) for a, b in pairs]
    found = macro_difference(parts, value_range=UNIT)
    errors = [
        (part.high - part.low) / (2 * stats.t.ppf(0.975, part.n - 1)) for part in parts
    ]
    assert errors == pytest.approx([stats.sem(a - b) for a, b in pairs], rel=0.12)
    error, half = _by_hand(errors, [20, 35, 90])
    value = np.mean([(a - b).mean() for a, b in pairs])
    assert found.difference == pytest.approx(value)
    assert (found.low, found.high) == pytest.approx(
        (value - half, value + half), abs=0.02 * half
    )
    assert found.high - found.low == pytest.approx(2 * half, rel=0.02)
    freedom = error**4 / sum(
        (one / 3) ** 4 / (n - 1) for one, n in zip(errors, (20, 35, 90), strict=True)
    )
    # The differences are a little skewed, and so are the ends.
    below = (value - found.low) / stats.t.ppf(0.975, freedom)
    assert found.p_value == pytest.approx(
        2 * stats.t.sf(abs(value / below), freedom), rel=0.01
    )
    assert found.smallest_visible_difference == pytest.approx(
        (stats.t.ppf(0.975, freedom) + stats.t.ppf(0.8, freedom)) * error, rel=0.02
    )
    assert (found.n, found.n_tasks) == (145, 3)


def test_a_difference_stays_in_range_and_in_json() -> None:
    better = compare_paired([1, 1, 1, 1, 1], [0, 0, 0, 0, 1])
    found = macro_difference([better, better], value_range=UNIT)
    assert -1.0 <= found.low <= found.difference <= found.high <= 1.0
    alone = compare_paired([1.0], [0.5])
    unknown = macro_difference([compare_paired([], []), alone])
    assert math.isnan(unknown.p_value)
    plain = json.loads(json.dumps(unknown.as_dict(), allow_nan=False))
    assert plain["p_value"] is None
    assert plain["low"] is None
    assert plain["n_tasks"] == 2
    assert found.as_dict()["difference"] == found.difference


def test_one_task_in_two_halves_of_one_weight_is_the_task() -> None:
    """The score interval comes back from its width, near the end of the range too."""
    for right in (0, 3, 29, 30):
        part = mean_interval([1.0] * right + [0.0] * (30 - right))
        units = [unit_sums(np.zeros(30), np.arange(30))] * 2
        found = macro_average([part, part], units=units, value_range=UNIT)
        assert found.value == part.value
        assert found.high - found.low >= (part.high - part.low) * (1 - 1e-9)
        assert (found.low, found.high) == pytest.approx(
            (part.low, part.high), abs=0.012
        )


def _stacked(tasks: list[tuple[np.ndarray, np.ndarray]], weights: np.ndarray) -> float:
    """CR2 of the weighted mean, by matrices: all tasks stacked, an indicator column for each."""
    n = [len(values) for values, _ in tasks]
    x = np.zeros((sum(n), len(tasks)))
    for place, (start, size) in enumerate(zip(np.cumsum([0, *n]), n, strict=False)):
        x[start : start + size, place] = 1.0
    y, ids = (np.concatenate(side) for side in zip(*tasks, strict=True))
    bread = np.linalg.inv(x.T @ x)
    residuals = y - x @ bread @ x.T @ y
    meat = np.zeros((len(tasks), len(tasks)))
    for unit in np.unique(ids):
        own = x[ids == unit]
        values, vectors = np.linalg.eigh(np.eye(len(own)) - own @ bread @ own.T)
        half = vectors @ np.diag(values**-0.5) @ vectors.T
        score = own.T @ half @ residuals[ids == unit]
        meat += np.outer(score, score)
    return float(np.sqrt(weights @ bread @ meat @ bread @ weights))


def _graded(rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Three tasks about 14 passages of unequal size, of which each has some."""
    ease = rng.normal(0.5, 0.1, 14)
    out = []
    for begin, end in ((0, 10), (4, 14), (2, 9)):
        ids = np.repeat(np.arange(begin, end), rng.integers(1, 6, end - begin))
        out.append((np.clip(ease[ids] + rng.normal(0, 0.1, len(ids)), 0, 1), ids))
    return out


def test_shared_units_are_those_of_the_stacked_regression() -> None:
    tasks = _graded(np.random.default_rng(8))
    parts = [mean_interval(values, clusters=ids) for values, ids in tasks]
    units = [unit_sums(values, ids) for values, ids in tasks]
    weights = [1.0, 2.0, 5.0]
    found = macro_average(parts, weights=weights, units=units)
    assert found.standard_error == pytest.approx(
        _stacked(tasks, np.array(weights) / 8), rel=1e-9
    )
    assert (found.standard_error or 0) > 1.2 * (
        macro_average(parts, weights=weights).standard_error or 1
    )


def test_shared_units_are_those_of_a_bootstrap_over_all_units() -> None:
    """100 equal units in three tasks, drawn with replacement for all of them together."""
    rng = np.random.default_rng(9)
    ease = rng.normal(0.5, 0.1, 100)
    tasks = [(ease + rng.normal(0, 0.05 * k, 100), np.arange(100)) for k in (1, 2, 3)]
    found = macro_average(
        [mean_interval(values, value_range=None) for values, _ in tasks],
        units=[unit_sums(*task) for task in tasks],
    )
    drawn = rng.multinomial(100, np.full(100, 0.01), size=20_000) / 100
    error = float(np.mean([drawn @ values for values, _ in tasks], axis=0).std())
    assert (found.standard_error or 0) * math.sqrt(99 / 100) == pytest.approx(
        error, rel=0.02
    )


def test_a_copy_of_a_task_adds_nothing() -> None:
    rng = np.random.default_rng(10)
    a, b = (rng.random((2, 60)) < 0.7) * 1.0
    part = compare_paired(a, b)
    units = unit_sums(a - b, np.arange(60))
    found = macro_difference([part] * 7, units=[units] * 7, value_range=UNIT)
    assert found.high - found.low == pytest.approx(part.high - part.low)
    assert found.p_value == pytest.approx(part.p_value, abs=0.02)
    apart = macro_difference([part] * 7, value_range=UNIT)
    # The interval of one task is a little shorter because the range of a score ends.
    assert apart.standard_error == pytest.approx(
        found.standard_error / math.sqrt(7), rel=0.03
    )


def test_degrees_of_freedom_are_those_of_each_connected_set() -> None:
    """Two tasks about the same 6 passages and one of its own: the two bring 5 between them, not
    10.
    """
    rng = np.random.default_rng(11)
    ids = np.repeat(np.arange(6), 4)
    values = [rng.random(24), rng.random(24), rng.random(24)]
    codes = [ids, ids, ids + 10]
    units = [unit_sums(*one) for one in zip(values, codes, strict=True)]
    among = sharing(units)
    assert among.sets[0] == among.sets[1] != among.sets[2]
    errors = np.array([1.0, 1.0, 0.0])
    freedom = np.array([5.0, 5.0, 5.0])
    for rho in (0.0, 1.0):
        error, df = combine_errors(
            errors,
            freedom,
            np.array([[1, rho, 0], [rho, 1, 0], [0, 0, 1.0]]),
            among.sets,
        )
        assert (float(error), float(df)) == pytest.approx((math.sqrt(2 + 2 * rho), 5.0))
    assert float(
        combine_errors(np.ones(3), freedom, np.eye(3), among.sets)[1]
    ) == pytest.approx(9 / (4 / 5 + 1 / 5))


def test_tasks_are_connected_through_others() -> None:
    """A chain in which each task shares one unit with the next, in an order in which the least
    number has the longest way; and one apart.
    """
    codes = [[0, 1], [5, 6], [4, 5], [3, 4], [2, 3], [1, 2], [9, 10]]
    found = sharing([unit_sums([0.0, 1.0], code) for code in codes])
    assert found.sets.tolist() == [0] * 6 + [6]
    assert sharing([None, None]).sets.tolist() == [0, 1]


def test_tasks_without_spread_go_together_as_far_as_they_overlap() -> None:
    perfect = mean_interval([1.0] * 40)
    ids = np.arange(40)
    widths = []
    for shift, worth in ((0, 1.0), (20, math.sqrt(0.75)), (40, math.sqrt(0.5))):
        units = [unit_sums(np.ones(40), ids), unit_sums(np.ones(40), ids + shift)]
        found = macro_average([perfect, perfect], units=units)
        widths.append(found.high - found.low)
        # Less skewed, so that the lower end is nearer than the root of what they share says.
        assert (
            0.8 * worth
            <= widths[-1] / (perfect.high - perfect.low)
            <= worth * (1 + 1e-9)
        )
    assert widths[0] == pytest.approx(perfect.high - perfect.low)
    assert widths[0] > widths[1] > widths[2]
    with pytest.raises(ValueError, match="weights"):
        macro_average([perfect, perfect], weights=[1.0])


def test_a_tiny_task_beside_a_large_one_is_no_worse_than_both() -> None:
    """Three items have two degrees of freedom, which are not the whole's: it reaches as far as
    its parts do, each by its weight.
    """
    tiny = mean_interval([1.0, 1.0, 0.0])
    large = mean_interval([1.0] * 1800 + [0.0] * 1200)
    found = macro_average([tiny, large], value_range=UNIT)
    assert (
        found.high - found.low
        < 1.01 * (2 * (tiny.value - tiny.low) + large.high - large.low) / 2
    )
    pair = compare_paired([1, 1, 0], [1, 0, 0])
    many = compare_paired(np.arange(3000) % 2, np.arange(3000) // 2 % 2)
    both = macro_difference([pair, many], value_range=UNIT)
    assert both.high - both.low < 0.7 * (pair.high - pair.low + many.high - many.low)


def test_p_and_interval_of_a_mean_over_tiny_tasks_agree() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        sizes = rng.choice([2, 3, 4, 10, 40], rng.integers(2, 5))
        pairs = [
            (rng.random(n) < rng.random(), rng.random(n) < rng.random()) for n in sizes
        ]
        found = macro_difference(
            [compare_paired(a * 1.0, b * 1.0) for a, b in pairs], value_range=UNIT
        )
        assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0)
