"""The luck of being chosen, in simulations whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from evalwright.statistics.selection import selection_bias


def simulated(
    rng: np.random.Generator, rates: list[float], n_items: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    difficulty = rng.uniform(0, 1, n_items)
    return np.stack(
        [
            (0.5 * rng.uniform(0, 1, n_items) + 0.5 * difficulty < rate).astype(float)
            for rate in rates
        ]
    )


@pytest.mark.parametrize("clustered", [False, True])
def test_the_corrected_best_is_closer_to_the_truth_on_average(clustered: bool) -> None:
    rng = np.random.default_rng(7)
    rates = [0.5] * 8
    truth = 0.5
    raw, corrected = [], []
    for _ in range(150):
        scores = simulated(rng, rates, 120)
        clusters = None
        if clustered:
            scores = np.repeat(scores[:, :40], 3, axis=1)
            clusters = np.repeat(np.arange(40), 3)
        best = scores.mean(axis=1).max()
        raw.append(best - truth)
        bias = selection_bias(scores, clusters=clusters, resamples=300)
        corrected.append(best - bias - truth)
    assert np.mean(raw) > 0.02
    assert abs(np.mean(corrected)) < 0.5 * np.mean(raw)


def test_a_clear_winner_is_hardly_corrected() -> None:
    rng = np.random.default_rng(1)
    scores = simulated(rng, [0.3, 0.9], 400)
    assert abs(selection_bias(scores)) < 0.005


def test_where_lower_is_better_the_correction_goes_up() -> None:
    rng = np.random.default_rng(2)
    scores = simulated(rng, [0.5] * 5, 100)
    assert selection_bias(scores) > 0
    assert selection_bias(scores, lower_is_better=True) < 0
    mirrored = selection_bias(1 - scores, lower_is_better=True)
    assert mirrored == pytest.approx(-selection_bias(scores))


def test_one_candidate_has_no_luck() -> None:
    assert selection_bias(np.ones((1, 10))) == 0
    assert selection_bias(np.ones((3, 1))) == 0


def test_the_same_seed_gives_the_same_number() -> None:
    scores = simulated(np.random.default_rng(3), [0.5, 0.5], 50)
    assert selection_bias(scores, seed=4) == selection_bias(scores, seed=4)
