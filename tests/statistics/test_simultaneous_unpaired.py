"""All pairs where some have no item in common: right at each kind of pair, and holding together."""

from __future__ import annotations

import numpy as np
import pytest

from evalwright.statistics import all_differences, compare_unpaired, rank_sets
from evalwright.statistics.simultaneous import simultaneous_differences


def blocks(rng: np.random.Generator, items: int = 200) -> np.ndarray:
    """Four models, of which the last saw items of its own."""
    hard = rng.random((2, items))
    scores = np.full((4, 2 * items), np.nan)
    for model, skill in enumerate((0.5, 0.5, 0.6)):
        scores[model, :items] = (0.6 * hard[0] + 0.4 * rng.random(items) < skill).astype(float)
    scores[3, items:] = (0.6 * hard[1] + 0.4 * rng.random(items) < 0.7).astype(float)
    return scores


def test_without_such_pairs_it_is_the_paired_comparison() -> None:
    scores = blocks(np.random.default_rng(0))[:3, :200]
    ours, theirs = all_differences(scores), simultaneous_differences(scores)
    assert ours.as_dict() == theirs.as_dict()


def test_each_kind_of_pair_is_compared_in_its_way() -> None:
    scores = blocks(np.random.default_rng(1))
    found = all_differences(scores, missing=False)
    alpha = 0.05 / 6
    alone = compare_unpaired(scores[0, :200], scores[3, 200:], level=1 - alpha)
    assert (found.difference[0, 3], found.low[0, 3], found.high[0, 3]) == pytest.approx(
        (alone.difference, alone.low, alone.high)
    )
    assert (found.low[3, 0], found.high[3, 0]) == pytest.approx((-alone.high, -alone.low))
    assert found.p_adjusted[0, 3] == pytest.approx(min(1.0, 6 * alone.p_value))
    paired = simultaneous_differences(scores, level=1 - 0.05 / 2, missing=False)
    assert found.low[0, 1] == pytest.approx(paired.low[0, 1])
    assert found.p_adjusted[0, 2] == pytest.approx(min(1.0, 2 * paired.p_adjusted[0, 2]))
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


def test_all_intervals_hold_together() -> None:
    rng = np.random.default_rng(3)
    big = blocks(rng, 50_000)
    truth = np.nanmean(big, axis=1)
    wanted = truth[:, None] - truth[None, :]
    pairs = np.triu_indices(4, 1)
    held = 0
    for _ in range(60):
        found = all_differences(blocks(rng, 150), missing=False)
        held += bool(((found.low <= wanted) & (wanted <= found.high))[pairs].all())
    assert held >= 60 * 0.95 - 3 * np.sqrt(60 * 0.95 * 0.05)
