"""Unpaired comparisons against scipy and statsmodels, and by coverage."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep

from evalwright.statistics import (
    all_differences,
    compare_paired,
    compare_unpaired,
    holm,
    rank_sets,
)
from support.clustered import clustered_standard_error


@pytest.mark.parametrize(
    ("k", "n", "n_right_b", "m"),
    [
        (7, 10, 30, 60),
        (0, 15, 4, 20),
        (20, 20, 0, 30),
        (300, 400, 290, 410),
        (5, 5, 9, 9),
    ],
)
def test_proportions_get_newcombe_and_the_score_test(
    k: int, n: int, n_right_b: int, m: int
) -> None:
    found = compare_unpaired(
        [1] * k + [0] * (n - k), [1] * n_right_b + [0] * (m - n_right_b)
    )
    assert (found.low, found.high) == pytest.approx(
        confint_proportions_2indep(k, n, n_right_b, m, method="newcomb"), abs=1e-9
    )
    assert (found.interval_method, found.n_a, found.n_b) == (
        "Newcombe hybrid score",
        n,
        m,
    )
    if 0 < k + n_right_b < n + m:
        expected = stats.chi2_contingency(
            [[k, n - k], [n_right_b, m - n_right_b]], correction=False
        ).pvalue
        assert found.p_value == pytest.approx(expected, rel=1e-9)
    else:
        assert found.p_value == 1.0


def test_graded_scores_get_welch() -> None:
    rng = np.random.default_rng(1)
    a = rng.beta(4, 3, 30)
    b = rng.beta(2, 2, 75)
    found = compare_unpaired(a, b, level=0.9)
    oracle = stats.ttest_ind(a, b, equal_var=False)
    interval = oracle.confidence_interval(0.9)
    assert (found.p_value, found.degrees_of_freedom) == pytest.approx(
        (oracle.pvalue, oracle.df), rel=1e-9
    )
    assert (found.low, found.high) == pytest.approx(
        (interval.low, interval.high), rel=1e-9
    )
    assert found.test == "Welch t"


def test_clusters_get_satterthwaite_over_clusters() -> None:
    rng = np.random.default_rng(2)
    ids_a = np.repeat(np.arange(12), 6)
    ids_b = np.repeat(np.arange(30), 3)
    a = rng.beta(4, 3, 72)
    b = rng.beta(2, 2, 90)
    found = compare_unpaired(a, b, clusters_a=ids_a, clusters_b=ids_b)
    (se_a, df_a), (se_b, df_b) = (
        clustered_standard_error(a, ids_a),
        clustered_standard_error(b, ids_b),
    )
    df = (se_a**2 + se_b**2) ** 2 / (se_a**4 / df_a + se_b**4 / df_b)
    assert found.standard_error == pytest.approx(math.hypot(se_a, se_b))
    assert found.degrees_of_freedom == pytest.approx(df)
    assert found.high - found.difference == pytest.approx(
        stats.t.ppf(0.975, df) * math.hypot(se_a, se_b)
    )
    assert found.test == "clustered Welch t"


def test_a_side_without_spread_is_no_certainty() -> None:
    found = compare_unpaired(np.full(30, 0.5), np.full(40, 0.2))
    assert found.low < 0.3 < found.high
    assert found.standard_error is None
    assert found.test == "inverted hybrid interval"
    assert 0 < found.p_value < 0.05
    same = compare_unpaired(np.full(30, 0.5), np.full(40, 0.5))
    assert (same.p_value, same.low < 0 < same.high) == (1.0, True)
    unknown = compare_unpaired([2.0, 2.0], [1.0, 1.0], value_range=None)
    assert math.isnan(unknown.low)
    empty = compare_unpaired([math.nan], [1.0, 0.0], value_range=None)
    assert (empty.n_a, empty.n_missing_a) == (0, 1)
    assert json.loads(json.dumps(empty.as_dict(), allow_nan=False))["low"] is None


def test_swap_turns_the_sign() -> None:
    rng = np.random.default_rng(3)
    for a, b in [
        (rng.random(9), rng.random(5)),
        (np.full(9, 0.2), rng.random(5)),
        (np.ones(9), np.zeros(8)),
    ]:
        one = compare_unpaired(a, b)
        two = compare_unpaired(b, a)
        assert (one.low, one.high, one.p_value) == pytest.approx(
            (-two.high, -two.low, two.p_value)
        )
        assert one.low < one.high


@pytest.mark.parametrize("kind", ["binary", "graded", "clustered"])
def test_intervals_cover(kind: str) -> None:
    rng = np.random.default_rng(4)
    hits = []
    for _ in range(600):
        ids = None
        a: np.ndarray
        b: np.ndarray
        if kind == "binary":
            a = rng.random(40) < 0.9
            b = rng.random(25) < 0.7
            truth = 0.2
        elif kind == "graded":
            a = rng.beta(3, 1, 20)
            b = rng.beta(1, 1, 40)
            truth = 0.25
        else:
            ids = np.repeat(np.arange(20), 5)
            a = rng.random(100) < np.repeat(rng.beta(3, 1, 20), 5)
            b = rng.random(60) < 0.5
            truth = 0.25
        found = compare_unpaired(
            np.asarray(a, float), np.asarray(b, float), clusters_a=ids
        )
        hits.append(found.low <= truth <= found.high)
    assert 0.925 <= np.mean(hits) <= 0.98


@pytest.mark.parametrize("value_range", [(0.0, 100.0), (-1.0, 1.0), (1.0, 5.0)])
def test_right_or_wrong_on_another_scale_is_the_same_question(
    value_range: tuple[float, float],
) -> None:
    rng = np.random.default_rng(5)
    a = (rng.random(80) < 0.8) * 1.0
    b = (rng.random(60) < 0.6) * 1.0
    low = value_range[0]
    span = value_range[1] - value_range[0]
    plain = compare_unpaired(a, b)
    scaled = compare_unpaired(low + span * a, low + span * b, value_range=value_range)
    assert scaled.test == plain.test == "score test of two proportions"
    assert scaled.p_value == pytest.approx(plain.p_value)
    assert (scaled.low, scaled.high) == pytest.approx(
        (span * plain.low, span * plain.high)
    )
    assert scaled.standard_error == pytest.approx(span * (plain.standard_error or 0))


def _odd_scores(rng: np.random.Generator) -> np.ndarray:
    n = int(rng.choice([2, 3, 5, 8, 15, 30]))
    kinds: list[np.ndarray] = [
        (rng.random(n) < rng.choice([0.2, 0.9])).astype(float),
        rng.choice([0, 0.5, 1], n),
        rng.random(n),
        np.ones(n),
    ]
    return kinds[int(rng.integers(len(kinds)))]


def test_p_value_and_interval_never_disagree() -> None:
    rng = np.random.default_rng(5)
    for _ in range(400):
        found = compare_unpaired(_odd_scores(rng), _odd_scores(rng))
        assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0), found
        assert -1 <= found.low <= found.difference <= found.high <= 1


def test_unequal_clusters_do_not_pose_as_many() -> None:
    """Two equal models on different passages, of which a few have most of the questions: with G
    - 1 degrees of freedom 13% err.
    """
    rng = np.random.default_rng(6)
    ids = np.repeat(np.arange(7), [1, 2, 4, 8, 16, 32, 64])
    false = 0
    for _ in range(300):
        own = (
            rng.normal(size=(2, 7))[:, ids] * 0.63
            + rng.normal(size=(2, len(ids))) * 0.77
        )
        a, b = (own < 0.25).astype(float)
        found = compare_unpaired(a, b, clusters_a=ids, clusters_b=ids + 10)
        false += found.low > 0 or found.high < 0
    assert false <= 24


def blocks(rng: np.random.Generator, items: int = 200) -> np.ndarray:
    """Four models, of which the last saw items of its own."""
    hard = rng.random((2, items))
    scores = np.full((4, 2 * items), np.nan)
    for model, skill in enumerate((0.5, 0.5, 0.6)):
        scores[model, :items] = (
            0.6 * hard[0] + 0.4 * rng.random(items) < skill
        ).astype(float)
    scores[3, items:] = (0.6 * hard[1] + 0.4 * rng.random(items) < 0.7).astype(float)
    return scores


def test_without_such_pairs_it_is_the_paired_comparison() -> None:
    scores = blocks(np.random.default_rng(0))[:3, :200]
    ours = all_differences(scores)
    theirs = all_differences(scores)
    assert ours.as_dict() == theirs.as_dict()


def test_each_kind_of_pair_is_compared_in_its_way() -> None:
    scores = blocks(np.random.default_rng(1))
    found = all_differences(scores, missing=False)
    alone = compare_unpaired(
        scores[0, :200], scores[3, 200:], level=float(found.pair_level[0, 3])
    )
    assert (found.difference[0, 3], found.low[0, 3], found.high[0, 3]) == pytest.approx(
        (alone.difference, alone.low, alone.high)
    )
    assert (found.low[3, 0], found.high[3, 0]) == pytest.approx(
        (-alone.high, -alone.low)
    )
    assert found.p_value[0, 3] == pytest.approx(alone.p_value)
    pair = compare_paired(
        scores[0], scores[1], level=float(found.pair_level[0, 1]), missing=False
    )
    assert (found.low[0, 1], found.high[0, 1]) == pytest.approx((pair.low, pair.high))
    upper = np.triu_indices(4, 1)
    assert found.p_adjusted[upper] == pytest.approx(holm(found.p_value[upper]))
    assert (found.level, found.n[0, 3], found.n[0, 1]) == (0.95, 0, 200)
    assert "independent samples" in found.method


def test_a_shared_cluster_or_a_model_without_scores_keeps_no_answer() -> None:
    scores = blocks(np.random.default_rng(2))
    apart = np.arange(400)
    assert np.isfinite(all_differences(scores, apart, missing=False).low[0, 3])
    shared = np.concatenate(
        [np.arange(200), np.arange(200)]
    )  # each item of one block belongs to one of the other
    assert np.isnan(all_differences(scores, shared, missing=False).low[0, 3])
    scores[3] = np.nan
    assert np.isnan(all_differences(scores, missing=False).low[0, 3])


def test_models_that_share_nothing_at_all() -> None:
    scores = np.full((2, 600), np.nan)
    scores[0, :300], scores[1, 300:] = np.arange(300) % 10 < 9, np.arange(300) % 2
    found = all_differences(scores, missing=False)
    assert found.low[0, 1] > 0.3
    sets = rank_sets(found)
    assert (sets.low.tolist(), sets.high.tolist()) == ([1, 2], [1, 2])


def test_false_findings_are_rare_among_paired_and_unpaired_pairs() -> None:
    """Models 0 and 1 are equal; 5% of the boards at most may find that they differ."""
    rng = np.random.default_rng(3)
    false = sum(
        bool(all_differences(blocks(rng, 150), missing=False).differs[0, 1])
        for _ in range(200)
    )
    assert false <= 200 * 0.05 + 2 * np.sqrt(200 * 0.05 * 0.95)
