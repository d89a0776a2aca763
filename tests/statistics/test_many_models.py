"""Simultaneous intervals against the single pair, Tukey's range, brute-force resampling and one another."""

import json
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from evalwright.statistics import compare_paired, mean_interval, rank_sets, simultaneous_means
from evalwright.statistics.many_models import all_differences
from evalwright.statistics.pairwise import common_differences


def _scores(models: int, items: int, seed: int = 0, spread: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(-(rng.normal(0, 1.5, items) + np.linspace(0, spread, models)[:, None])))
    return (rng.random((models, items)) < chance).astype(float)


@pytest.mark.parametrize("clustered", [False, True])
def test_a_pair_with_gaps_is_that_of_compare_paired(clustered: bool) -> None:
    rng = np.random.default_rng(1)
    scores = rng.random((5, 80))
    scores[rng.random(scores.shape) < 0.3] = np.nan
    ids = rng.integers(0, 17, 80) if clustered else None
    found = all_differences(scores, ids)
    for i in range(5):
        for j in range(5):
            pair = compare_paired(scores[i], scores[j], clusters=ids)
            assert found.difference[i, j] == pytest.approx(pair.difference, abs=1e-12)
            assert found.standard_error[i, j] == pytest.approx(pair.standard_error or 0.0, abs=1e-12)
            assert found.n[i, j] == pair.n
            assert found.units[i, j] == (pair.n if pair.n_clusters is None else pair.n_clusters)
            if i != j:
                assert found.p_value[i, j] == pytest.approx(pair.p_value, rel=1e-6)
                assert found.p_adjusted[i, j] >= pair.p_value


@pytest.mark.parametrize("gaps", [False, True])
def test_two_models_get_the_single_comparison(gaps: bool) -> None:
    rng = np.random.default_rng(2)
    scores = rng.random((2, 25))
    if gaps:
        scores[0, :3] = np.nan
    found = all_differences(scores, draws=40_000)
    pair = compare_paired(scores[0], scores[1])
    width = (found.high - found.low)[0, 1]
    assert width == pytest.approx(pair.high - pair.low, rel=0.02)
    assert found.own_high[0, 1] == pytest.approx(found.high[0, 1], rel=1e-6)
    assert found.p_adjusted[0, 1] == pytest.approx(pair.p_value, rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_a_board_of_two_says_what_the_comparison_says(seed: int) -> None:
    # One pair needs no draws: with them its interval, and now and then its verdict, was another than that of `compare`.
    rng = np.random.default_rng(seed)
    scores = (rng.random((2, 30)) < [[0.6], [0.3]]).astype(float)
    scores[:, :3] = np.where(rng.random((2, 3)) < 0.4, np.nan, scores[:, :3])
    ids = None if seed < 2 else rng.integers(0, 9, 30)
    found, pair = all_differences(scores, ids), compare_paired(*scores, clusters=ids)
    for low, high in ((found.low, found.high), (found.own_low, found.own_high)):
        assert (low[0, 1], high[0, 1]) == pytest.approx((pair.low, pair.high), abs=1e-9)
        assert (low[1, 0], high[1, 0]) == pytest.approx((-pair.high, -pair.low), abs=1e-9)
    assert found.p_adjusted[0, 1] == pytest.approx(pair.p_value)


def test_one_item_and_a_failure_are_no_verdict() -> None:
    nan = np.nan
    found = all_differences([[0.1, 0.1], [1.0, nan]])
    pair = compare_paired([0.1, 0.1], [1.0, nan])
    assert (found.low[0, 1], found.high[0, 1]) == pytest.approx((pair.low, pair.high))
    assert found.low[0, 1] < 0 < found.high[0, 1]


def test_intervals_that_hold_together_are_never_narrower_than_one_alone() -> None:
    rng = np.random.default_rng(0)
    row = rng.random(12)
    for seed in range(6):
        together = simultaneous_means(np.stack([row, row]), seed=seed)
        alone = mean_interval(row)
        assert together[0].low <= alone.low and alone.high <= together[0].high
        alike = all_differences(np.stack([row, row, rng.permutation(row)]), seed=seed)
        assert alike.critical >= stats.norm.ppf(0.975)


def test_right_or_wrong_has_the_interval_and_test_of_compare_paired() -> None:
    rng = np.random.default_rng(9)
    scores = (rng.random((4, 60)) < 0.9).astype(float)
    scores[rng.random(scores.shape) < 0.1] = np.nan
    scores[3] = scores[2]
    found = all_differences(scores)
    level = 1 - 2 * float(stats.norm.sf(found.critical))
    for i, j in [(0, 1), (1, 0), (2, 0), (2, 3)]:
        pair = compare_paired(scores[i], scores[j], level=level)
        assert (found.low[i, j], found.high[i, j]) == pytest.approx((pair.low, pair.high), abs=1e-9)
        assert found.p_value[i, j] == pytest.approx(pair.p_value)


def test_the_critical_value_of_independent_models_is_tukeys() -> None:
    # The greatest |difference| of M independent means with one variance is the studentised range over sqrt 2.
    found = all_differences(
        np.random.default_rng(3).normal(0, 1, (8, 20_000)), value_range=None, draws=20_000
    )
    assert found.critical == pytest.approx(
        stats.studentized_range.ppf(0.95, 8, np.inf) / np.sqrt(2), rel=0.015
    )


def test_the_critical_value_is_that_of_a_multinomial_bootstrap() -> None:
    scores = _scores(6, 400)
    ids = np.repeat(np.arange(80), 5)
    first, second = np.triu_indices(6, 1)
    differences = scores[first] - scores[second]
    totals = (differences - differences.mean(axis=1, keepdims=True)).reshape(len(first), 80, 5).sum(axis=2)
    weights = np.random.default_rng(4).multinomial(80, np.full(80, 1 / 80), size=20_000)
    largest = np.abs((weights - 1) @ (totals / np.sqrt((totals**2).sum(axis=1, keepdims=True))).T).max(axis=1)
    found = all_differences(scores, ids, draws=20_000)
    assert found.critical == pytest.approx(float(np.quantile(largest, 0.95)), rel=0.02)
    gappy = np.hstack([scores, np.full((6, 1), np.nan)])  # an item that nobody has takes the other path
    again = all_differences(gappy, np.append(ids, 999), draws=20_000)
    assert again.critical == pytest.approx(found.critical, rel=0.02)
    assert np.allclose(again.standard_error, found.standard_error)


def test_random_groups_stand_for_many_units() -> None:
    scores = _scores(6, 3000, seed=5)
    found = all_differences(scores, draws=8000)
    scores[0, :1] = np.nan
    grouped = all_differences(scores, draws=8000)
    assert grouped.critical == pytest.approx(found.critical, rel=0.03)


def test_clusters_of_unlike_sizes_in_blocks() -> None:
    rng = np.random.default_rng(6)
    scores, ids = rng.random((4, 300)), np.sort(rng.integers(0, 40, 300) ** 2 // 40)
    codes = np.unique(ids, return_inverse=True)[1]
    found = common_differences(scores, codes)
    for a, b in combinations(range(4), 2):
        assert found.error[a, b] == pytest.approx(
            compare_paired(scores[a], scores[b], clusters=ids).standard_error
        )
    assert (found.units == codes.max() + 1).all()


def test_adjusted_p_values_are_ordered_and_between_their_bounds() -> None:
    found = all_differences(_scores(8, 300, seed=7))
    pairs = np.triu_indices(8, 1)
    p, adjusted = found.p_value[pairs], found.p_adjusted[pairs]
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(1, p * len(p)) + 1e-12).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= -1e-12).all()
    # Single-step claims are step-down claims: an interval without 0 means a p-value below 5%.
    sure = (found.low > 0) | (found.high < 0)
    assert (found.p_adjusted[sure] <= 0.0501).all()
    assert (found.own_low[~np.eye(8, dtype=bool)] >= found.low[~np.eye(8, dtype=bool)] - 1e-12).all()


def test_equal_models_are_no_certainty() -> None:
    row = _scores(1, 60)[0]
    found = all_differences(np.stack([row, row, 1 - row]))
    alone = compare_paired(row, row)
    assert found.low[0, 1] < alone.low < 0 < alone.high < found.high[0, 1]
    level = 1 - 2 * float(stats.norm.sf(found.critical))
    assert found.high[0, 1] == pytest.approx(compare_paired(row, row, level=level).high)
    assert found.p_adjusted[0, 1] == 1.0
    shifted = all_differences(np.stack([np.full(60, 0.5), np.full(60, 0.25)]))
    assert 0.1 < shifted.low[0, 1] < 0.25 < shifted.high[0, 1]
    unknown = all_differences(np.stack([row, row]), value_range=None)
    assert np.isnan(unknown.low).all()


def test_pairs_without_common_items_have_no_answer() -> None:
    nan = np.nan
    found = all_differences(
        [[1, 0, 1, nan, nan], [0, 0, 1, nan, nan], [nan, nan, 1, 0, 1], [nan, nan, nan, 0, 0]], missing=False
    )
    assert np.isnan([found.difference[0, 3], found.low[0, 3], found.p_adjusted[0, 3]]).all()
    assert (found.low[0, 2], found.high[0, 2], found.n[0, 2]) == (-1.0, 1.0, 1)
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["difference"][0][3] is None


def test_means_are_those_of_mean_interval_at_a_higher_level() -> None:
    scores = _scores(6, 200, seed=8)
    found = simultaneous_means(scores, draws=20_000)
    single = mean_interval(scores[2])
    assert (found[2].value, found[2].level, found[2].n) == (single.value, 0.95, 200)
    assert found[2].high - found[2].low > single.high - single.low
    bonferroni = mean_interval(scores[2], level=1 - 0.05 / 6)
    assert found[2].high - found[2].low < 1.02 * (bonferroni.high - bonferroni.low)
    alone = simultaneous_means(scores[:1], draws=20_000)[0]
    plain = mean_interval(scores[0])
    assert alone.high - alone.low == pytest.approx(plain.high - plain.low, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [[1, 0]]}, "at least 2 models"),
        ({"scores": [1, 0]}, "shape"),
        ({"scores": [[1, 0], [0, 3]]}, "value_range"),
        ({"scores": [[1, 0], [0, np.inf]]}, "finite"),
        ({"scores": [[1, 0], [0, 1]], "draws": 100}, "2,000"),
        ({"scores": [[1, 0], [0, 1]], "level": 2.0}, "level"),
        ({"scores": [[1, 0], [0, 1]], "clusters": [1]}, "one id for each"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        all_differences(**arguments)  # type: ignore[arg-type]


def _found(seed: int = 0, models: int = 7, items: int = 300):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    chance = np.linspace(0.3, 0.9, models)[:, None]
    return all_differences((rng.random((models, items)) < chance).astype(float))


@pytest.mark.parametrize("simultaneous", [True, False])
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_sets_count_the_significantly_better_and_worse(simultaneous: bool, higher_is_better: bool) -> None:
    found = _found()
    sets = rank_sets(found, simultaneous=simultaneous, higher_is_better=higher_is_better)
    low, high = (found.low, found.high) if simultaneous else (found.own_low, found.own_high)
    for j in range(7):
        above = (
            sum(low[k, j] > 0 for k in range(7)) if simultaneous else sum(high[j, k] < 0 for k in range(7))
        )
        below = (
            sum(high[k, j] < 0 for k in range(7)) if simultaneous else sum(low[j, k] > 0 for k in range(7))
        )
        better, worse = (above, below) if higher_is_better else (below, above)
        assert (sets.low[j], sets.high[j]) == (1 + better, 7 - worse)
    assert (sets.low <= sets.high).all()


def test_lower_is_better_mirrors() -> None:
    found = _found(seed=1)
    up, down = rank_sets(found), rank_sets(found, higher_is_better=False)
    assert (down.low == 8 - up.high).all()
    assert (down.high == 8 - up.low).all()


def test_marginal_sets_lie_within_simultaneous_ones() -> None:
    saved = 0
    for seed in range(8):
        found = _found(seed=seed, items=150)
        wide, narrow = rank_sets(found), rank_sets(found, simultaneous=False)
        assert (narrow.low >= wide.low).all()
        assert (narrow.high <= wide.high).all()
        saved += int((wide.high - wide.low).sum() - (narrow.high - narrow.low).sum())
    assert saved > 0


def test_clear_order_and_ties() -> None:
    rng = np.random.default_rng(3)
    base = rng.random((4, 4000)) * 0.1
    scores = base + np.array([0.1, 0.9, 0.5, 0.5])[:, None] * 0.9
    scores[3] = scores[2]  # the same answers: any order of the two is possible
    sets = rank_sets(all_differences(scores))
    assert sets.low.tolist() == [4, 1, 2, 2]
    assert sets.high.tolist() == [4, 1, 3, 3]
