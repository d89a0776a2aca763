"""Rank sets against a direct count, and in the cases that have only one answer."""

import numpy as np
import pytest

from evalwright.statistics import rank_sets
from evalwright.statistics.simultaneous import simultaneous_differences


def _found(seed: int = 0, models: int = 7, items: int = 300):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    chance = np.linspace(0.3, 0.9, models)[:, None]
    return simultaneous_differences((rng.random((models, items)) < chance).astype(float))


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
    sets = rank_sets(simultaneous_differences(scores))
    assert sets.low.tolist() == [4, 1, 2, 2]
    assert sets.high.tolist() == [4, 1, 3, 3]
