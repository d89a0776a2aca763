"""All pairs of models: each against the single comparison at its level, Holm's step-down by
hand, ranks and their agreement.
"""

import json
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from evalwright.statistics import (
    compare_paired,
    holm,
    mean_interval,
    rank_sets,
    simultaneous_means,
)
from evalwright.statistics.many_models import all_differences
from evalwright.statistics.pairwise import common_differences


def _scores(models: int, items: int, seed: int = 0, spread: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    chance = 1 / (
        1
        + np.exp(-(rng.normal(0, 1.5, items) + np.linspace(0, spread, models)[:, None]))
    )
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
            assert found.standard_error[i, j] == pytest.approx(
                pair.standard_error or 0.0, abs=1e-12
            )
            assert found.n[i, j] == pair.n
            assert found.units[i, j] == (
                pair.n if pair.n_clusters is None else pair.n_clusters
            )
            if i != j:
                assert found.p_value[i, j] == pytest.approx(pair.p_value, rel=1e-6)
                assert found.p_adjusted[i, j] >= pair.p_value


@pytest.mark.parametrize("seed", range(4))
def test_a_board_of_two_says_what_the_comparison_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = (rng.random((2, 30)) < [[0.6], [0.3]]).astype(float)
    scores[:, :3] = np.where(rng.random((2, 3)) < 0.4, np.nan, scores[:, :3])
    ids = None if seed < 2 else rng.integers(0, 9, 30)
    found = all_differences(scores, ids)
    pair = compare_paired(*scores, clusters=ids)
    for low, high in ((found.low, found.high), (found.own_low, found.own_high)):
        assert (low[0, 1], high[0, 1]) == pytest.approx((pair.low, pair.high), abs=1e-9)
        assert (low[1, 0], high[1, 0]) == pytest.approx(
            (-pair.high, -pair.low), abs=1e-9
        )
    assert found.p_adjusted[0, 1] == pytest.approx(pair.p_value)


def test_one_item_and_a_failure_are_no_verdict() -> None:
    nan = np.nan
    found = all_differences([[0.1, 0.1], [1.0, nan]])
    pair = compare_paired([0.1, 0.1], [1.0, nan])
    assert (found.low[0, 1], found.high[0, 1]) == pytest.approx((pair.low, pair.high))
    assert found.low[0, 1] < 0 < found.high[0, 1]


def test_right_or_wrong_has_the_interval_and_test_of_compare_paired() -> None:
    rng = np.random.default_rng(9)
    scores = (rng.random((4, 60)) < 0.9).astype(float)
    scores[rng.random(scores.shape) < 0.1] = np.nan
    scores[3] = scores[2]
    found = all_differences(scores)
    for i, j in [(0, 1), (1, 0), (2, 0), (2, 3)]:
        for low, high, level in (
            (found.low, found.high, found.pair_level),
            (found.own_low, found.own_high, found.own_level),
        ):
            pair = compare_paired(scores[i], scores[j], level=float(level[i, j]))
            assert (low[i, j], high[i, j]) == pytest.approx(
                (pair.low, pair.high), abs=1e-9
            )
        assert found.p_value[i, j] == pytest.approx(pair.p_value)


@pytest.mark.parametrize("graded", [False, True])
def test_intervals_agree_with_holms_verdicts(graded: bool) -> None:
    """Pair k is tested at alpha / (m - k + 1), and from the first that is not rejected on at
    that one's level.
    """
    for seed in range(12):
        scores = _scores(7, 90, seed=seed, spread=1.5)
        if graded:
            scores = 0.5 * scores + 0.5 * np.random.default_rng(seed).random(
                scores.shape
            )
        found = all_differences(scores)
        upper = np.triu_indices(7, 1)
        p = found.p_value[upper]
        level = found.pair_level[upper]
        assert found.p_adjusted[upper] == pytest.approx(holm(p))
        differs = (found.low > 0) | (found.high < 0)
        assert (differs == found.differs).all()
        assert (((found.own_low > 0) | (found.own_high < 0)) == found.own_differs).all()
        order = np.argsort(p, kind="stable")
        rejected = 0
        while rejected < len(p) and p[order[rejected]] < 0.05 / (len(p) - rejected):
            assert (
                level[order[rejected]] == pytest.approx(1 - 0.05 / (len(p) - rejected))
                or p[order[rejected]] == p[order[rejected - 1]]
            )
            rejected += 1
        assert found.differs[upper].sum() == rejected
        if rejected < len(p):
            assert level[order[rejected:]] == pytest.approx(
                1 - 0.05 / (len(p) - rejected)
            )


def test_false_findings_are_at_most_five_in_a_hundred_boards() -> None:
    false = 0
    for seed in range(150):
        scores = _scores(8, 60, seed=seed, spread=0.0)
        false += bool(all_differences(scores).differs.any())
    assert false <= 150 * 0.05 + 2 * np.sqrt(150 * 0.05 * 0.95)


def test_a_board_claims_what_holm_on_mid_p_claims() -> None:
    """40 items, 20 models."""
    ours = theirs = 0
    for seed in range(40):
        scores = _scores(20, 40, seed=seed, spread=3.0)
        ours += int(all_differences(scores).differs.sum()) // 2
        first, second = np.triu_indices(20, 1)
        wins = (
            (scores[first] > scores[second]).sum(axis=1),
            (scores[first] < scores[second]).sum(axis=1),
        )
        least = np.minimum(*wins)
        both = wins[0] + wins[1]
        mid_p = 2 * stats.binom.cdf(least, both, 0.5) - stats.binom.pmf(
            least, both, 0.5
        )
        theirs += int((holm(np.minimum(mid_p, 1.0)) < 0.05).sum())
    assert theirs > 50 and ours >= 0.9 * theirs


def test_clusters_of_unlike_sizes_in_blocks() -> None:
    rng = np.random.default_rng(6)
    scores = rng.random((4, 300))
    ids = np.sort(rng.integers(0, 40, 300) ** 2 // 40)
    codes = np.unique(ids, return_inverse=True)[1]
    found = common_differences(scores, codes)
    for a, b in combinations(range(4), 2):
        assert found.error[a, b] == pytest.approx(
            compare_paired(scores[a], scores[b], clusters=ids).standard_error
        )
    assert (found.units == codes.max() + 1).all()


def test_equal_models_are_no_certainty() -> None:
    row = _scores(1, 60)[0]
    found = all_differences(np.stack([row, row, 1 - row]))
    alone = compare_paired(row, row)
    assert found.low[0, 1] <= alone.low < 0 < alone.high <= found.high[0, 1]
    assert found.high[0, 1] == pytest.approx(
        compare_paired(row, row, level=float(found.pair_level[0, 1])).high
    )
    assert found.p_adjusted[0, 1] == 1.0
    shifted = all_differences(np.stack([np.full(60, 0.5), np.full(60, 0.25)]))
    assert 0.1 < shifted.low[0, 1] < 0.25 < shifted.high[0, 1]
    unknown = all_differences(np.stack([row, row]), value_range=None)
    assert np.isnan(unknown.low).all()


def test_a_pair_that_shares_a_passage_but_no_item_has_no_answer() -> None:
    nan = np.nan
    found = all_differences(
        [
            [1, 0, 1, nan, nan],
            [0, 0, 1, nan, nan],
            [nan, nan, 1, 0, 1],
            [nan, nan, nan, 0, 0],
        ],
        [0, 1, 2, 0, 3],
        missing=False,
    )
    assert np.isnan(
        [found.difference[0, 3], found.low[0, 3], found.p_adjusted[0, 3]]
    ).all()
    assert (found.low[0, 2], found.high[0, 2], found.n[0, 2]) == (-1.0, 1.0, 1)
    assert (
        json.loads(json.dumps(found.as_dict(), allow_nan=False))["difference"][0][3]
        is None
    )


def test_means_are_those_of_mean_interval_at_a_higher_level() -> None:
    scores = _scores(6, 200, seed=8)
    found = simultaneous_means(scores)
    single = mean_interval(scores[2])
    assert (found[2].value, found[2].level, found[2].n) == (single.value, 0.95, 200)
    assert found[2].high - found[2].low > single.high - single.low
    bonferroni = mean_interval(scores[2], level=1 - 0.05 / 6)
    assert (found[2].low, found[2].high) == (bonferroni.low, bonferroni.high)
    alone = simultaneous_means(scores[:1])[0]
    plain = mean_interval(scores[0])
    assert (alone.low, alone.high) == (plain.low, plain.high)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [[1, 0]]}, "at least 2 models"),
        ({"scores": [1, 0]}, "shape"),
        ({"scores": [[1, 0], [0, 3]]}, "value_range"),
        ({"scores": [[1, 0], [0, np.inf]]}, "finite"),
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
def test_sets_count_the_significantly_better_and_worse(
    simultaneous: bool, higher_is_better: bool
) -> None:
    found = _found()
    sets = rank_sets(
        found, simultaneous=simultaneous, higher_is_better=higher_is_better
    )
    low, high = (
        (found.low, found.high) if simultaneous else (found.own_low, found.own_high)
    )
    for j in range(7):
        above = (
            sum(low[k, j] > 0 for k in range(7))
            if simultaneous
            else sum(high[j, k] < 0 for k in range(7))
        )
        below = (
            sum(high[k, j] < 0 for k in range(7))
            if simultaneous
            else sum(low[j, k] > 0 for k in range(7))
        )
        better, worse = (above, below) if higher_is_better else (below, above)
        assert (sets.low[j], sets.high[j]) == (1 + better, 7 - worse)
    assert (sets.low <= sets.high).all()


def test_lower_is_better_mirrors() -> None:
    found = _found(seed=1)
    up = rank_sets(found)
    down = rank_sets(found, higher_is_better=False)
    assert (down.low == 8 - up.high).all()
    assert (down.high == 8 - up.low).all()


def test_marginal_sets_lie_within_simultaneous_ones() -> None:
    saved = 0
    for seed in range(8):
        found = _found(seed=seed, items=150)
        wide = rank_sets(found)
        narrow = rank_sets(found, simultaneous=False)
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
