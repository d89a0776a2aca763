"""A candidate among repeats: exact levels, and what is seen of other answers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest

from evalwright.statistics.exchange import (
    compare_exchanged,
    find_odd_one_out,
    largest_unseen_share,
)


def exact_p(scores: np.ndarray) -> float:
    """The p-value by all exchanges; row 0 is the candidate."""
    n_answers, n_items = scores.shape

    def contrast(chosen: tuple[int, ...]) -> float:
        candidate = scores[list(chosen), range(n_items)]
        others = (scores.sum(axis=0) - candidate) / (n_answers - 1)
        return abs(float((candidate - others).mean()))

    observed = contrast((0,) * n_items)
    every = [contrast(chosen) for chosen in product(range(n_answers), repeat=n_items)]
    return float(np.mean(np.array(every) >= observed - 1e-12))


@pytest.mark.parametrize("seed", range(4))
def test_the_p_value_is_that_of_all_exchanges(seed: int) -> None:
    scores = np.random.default_rng(seed).random((3, 7)).round(1)
    result = compare_exchanged(scores[0], scores[1:])
    assert result.p == pytest.approx(exact_p(scores), abs=0.02)
    assert result.difference == pytest.approx(
        scores[0].mean() - scores[1:].mean(), abs=1e-12
    )


def test_honest_candidates_are_rarely_accused_and_better_ones_are() -> None:
    random = np.random.default_rng(1)
    honest, better = [], []
    for _ in range(300):
        chances = random.choice([0.0, 0.3, 0.9, 1.0], size=50)
        repeats = (random.random((2, 50)) < chances).astype(float)
        candidate = (random.random(50) < chances).astype(float)
        honest.append(compare_exchanged(candidate, repeats).p)
        candidate[:20] = 1.0
        better.append(compare_exchanged(candidate, repeats).p)
    assert np.mean(np.array(honest) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert np.mean(np.array(better) <= 0.05) > 0.7


def test_scores_that_never_vary_are_no_evidence() -> None:
    result = compare_exchanged(np.ones(50), np.ones((2, 50)))
    assert result.p == 1.0 and result.difference == 0.0 and np.isnan(result.visible)


def test_the_visible_difference_is_seen_in_about_80_percent() -> None:
    random = np.random.default_rng(5)
    n_seen = 0
    n_trials = 200
    for _ in range(n_trials):
        repeats = random.normal(0.5, 0.1, (2, 60))
        visible = (2.5758 + 0.8416) * 0.1 * np.sqrt(1.5 / 60)
        candidate = random.normal(0.5 + visible, 0.1, 60)
        n_seen += compare_exchanged(candidate, repeats).p <= 0.01
    assert 0.68 <= n_seen / n_trials <= 0.92


def test_the_odd_one_out_is_a_binomial_of_one_third() -> None:
    #          same  candidate odd   a repeat odd   all differ
    candidate = [0, 0, 1, 1, 1, 0, 2]
    first = [0, 0, 0, 0, 0, 1, 0]
    second = [0, 0, 0, 0, 0, 0, 1]
    odd = find_odd_one_out(candidate, [first, second])
    assert (odd.n, odd.n_same, odd.n_repeats_same) == (7, 3, 5)
    assert (odd.n_one_differs, odd.n_candidate_differs) == (4, 3)
    assert odd.p == pytest.approx(binomtest(3, 4, 1 / 3, "greater").pvalue)


def test_texts_that_always_differ_are_no_evidence() -> None:
    odd = find_odd_one_out([0] * 9, [[1] * 9, [2] * 9])
    assert odd.n_one_differs == 0 and odd.p == 1.0


def test_the_share_that_may_be_unseen() -> None:
    share = largest_unseen_share(50)
    assert (1 - share) ** 50 == pytest.approx(0.05)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="same items"):
        find_odd_one_out([0, 0], [[1], [2]])
    with pytest.raises(ValueError, match="needs items"):
        compare_exchanged([], np.empty((2, 0)))
