"""Metrics over repeats against enumeration of all choices of k draws, and against the closed
forms.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.metrics.registry import Column, compute, item_values
from evalwright.metrics.repeats import check_k, majority, shown_name
from evalwright.statistics import mean_interval

NAN = np.nan


def column(
    scores: Sequence[Sequence[float]],
    said: Sequence[Sequence[float]] | None = None,
    **more: object,
) -> Column:
    draws = np.array(scores, dtype=float)
    parts = {} if said is None else {"said": np.array(said, dtype=float)}
    means = {name: np.nanmean(part, axis=1) for name, part in parts.items()}
    return Column(
        np.nanmean(draws, axis=1),
        means,
        draws=draws,
        part_draws=parts,
        **more,  # type: ignore[arg-type]
    )


def enumerated(draws: Sequence[float], k: int, worth: object) -> float:
    """The mean worth of all choices of k draws."""
    choices = list(itertools.combinations(draws, k))
    return sum(worth(choice) for choice in choices) / len(choices)  # type: ignore[operator]


ALL = [draws for n in range(1, 7) for draws in itertools.product((0.0, 1.0), repeat=n)]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_pass_at_k_and_pass_all_k_are_the_mean_over_every_choice_and_the_closed_form(
    k: int,
) -> None:
    for draws in ALL:
        n = len(draws)
        right = int(sum(draws))
        if n < k:
            continue
        one = column([draws])
        some = compute("pass@k", one, {"k": k}).value
        every = compute("pass^k", one, {"k": k}).value
        assert some == pytest.approx(enumerated(draws, k, max), abs=1e-12)
        assert every == pytest.approx(enumerated(draws, k, min), abs=1e-12)
        assert some == float(1 - Fraction(comb(n - right, k), comb(n, k)))
        assert every == float(Fraction(comb(right, k), comb(n, k)))


def voted(choice: Sequence[tuple[int, float]]) -> float:
    """The worth of the majority of (answer, worth), in every order: a tie goes to the first
    drawn; -1 has no vote.
    """
    total = 0.0
    orders = list(itertools.permutations(choice))
    for order in orders:
        answers = [answer for answer, _ in order if answer >= 0]
        if not answers:
            total += order[0][1]
            continue
        most = max(answers.count(answer) for answer in answers)
        winner = next(answer for answer in answers if answers.count(answer) == most)
        total += next(worth for answer, worth in order if answer == winner)
    return total / len(orders)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_maj_at_k_is_the_mean_vote_of_every_choice_in_every_order(k: int) -> None:
    worths = {-1: 0.0, 0: 1.0, 1: 0.0, 2: 0.5}
    for answers in itertools.combinations_with_replacement((-1, 0, 1, 2), 5):
        scores = [worths[answer] for answer in answers]
        found = compute("maj@k", column([scores], [answers]), {"k": k}).value
        wanted = enumerated(list(zip(answers, scores, strict=True)), k, voted)  # type: ignore[arg-type]
        assert found == pytest.approx(wanted, abs=1e-12), answers


def test_maj_at_many_draws_equals_a_simulation() -> None:
    chance = random.Random(3)
    answers = [0] * 13 + [1] * 12 + [2] * 9 + [3] * 4 + [-1] * 2
    exact = majority(((4, 0.0), (9, 0.0), (12, 0.0), (13, 1.0)), 2, 0.0, 15)
    right = 0
    times = 20_000
    for _ in range(times):
        drawn = [one for one in chance.sample(answers, 15) if one >= 0]
        most = max(map(drawn.count, drawn))
        right += next(one for one in drawn if drawn.count(one) == most) == 0
    assert exact == pytest.approx(
        right / times, abs=4 * (exact * (1 - exact) / times) ** 0.5
    )


def test_intervals_are_by_item_over_clusters_and_the_items_can_be_paired() -> None:
    chance = np.random.default_rng(5)
    draws = (chance.random((40, 6)) < chance.random((40, 1))).astype(float)
    clusters = np.repeat(np.arange(10), 4)
    made = column(draws.tolist(), clusters=clusters)
    values = item_values("pass@k", made, {"k": 3, "level": 0.9})
    assert values is not None and values.shape == (40,)
    wanted = mean_interval(values, clusters=clusters, level=0.9)
    found = compute("pass@k", made, {"k": 3, "level": 0.9})
    assert (found.value, found.low, found.high) == (
        wanted.value,
        wanted.low,
        wanted.high,
    )
    assert (found.n, found.n_clusters) == (40, 10)
    assert "by cluster" in found.method or "cluster" in found.method
    plain = compute("pass@k", column(draws.tolist()), {"k": 3})
    assert plain.n_clusters is None or plain.n_clusters == 40


@pytest.mark.parametrize(
    ("kind", "worth"),
    [
        ("pass@k", lambda p: 1 - (1 - p) ** 3),
        ("pass^k", lambda p: p**3),
        ("maj@k", lambda p: p**3 + 3 * p**2 * (1 - p)),
    ],
)
def test_intervals_hold_the_truth_of_new_items_and_new_draws(
    kind: str, worth: Any
) -> None:
    chance = np.random.default_rng(11)
    held = 0
    trials = 250
    truth = float(worth(chance.beta(1.5, 1.5, 200_000)).mean())
    for _ in range(trials):
        draws = (chance.random((90, 6)) < chance.beta(1.5, 1.5, (90, 1))).astype(float)
        found = compute(kind, column(draws.tolist(), (1 - draws).tolist()), {"k": 3})
        held += found.low <= truth <= found.high
    assert 0.91 <= held / trials <= 0.985


def test_an_item_with_too_few_draws_is_missing_and_bounds_what_it_might_have_been() -> (
    None
):
    made = column([[1, 0, NAN], [1, NAN, NAN], *([[0, 0, 1]] * 8)])
    found = compute("pass@k", made, {"k": 2})
    assert found.value == pytest.approx((1 + 8 * 2 / 3) / 9)
    assert (found.n, found.n_missing) == (9, 1)
    assert (
        found.bounds is not None
        and found.bounds[0] < found.low < found.high < found.bounds[1]
    )


def test_right_is_a_score_of_at_least_the_threshold() -> None:
    made = column([[0.4, 0.6]])
    assert compute("pass@k", made, {"k": 1}).value == 0
    assert compute("pass@k", made, {"k": 1, "threshold": 0.5}).value == 0.5


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigurationError, match="at least 3 draws of each sample"):
        check_k("pass@k", {"k": 3}, 2)
    for k in (0, True, 1.5, None):
        with pytest.raises(ConfigurationError, match="a whole number from 1 on"):
            check_k("pass@k", {"k": k}, 9)
    with pytest.raises(ConfigurationError, match="nothing to vote on"):
        compute("maj@k", column([[1, 0]]), {"k": 2})
    with pytest.raises(ConfigurationError, match="needs the option 'k'"):
        compute("pass^k", column([[1, 0]]))
    assert [shown_name("maj@k", {"k": 4}), shown_name("accuracy", {"k": 4})] == [
        "maj@4",
        "accuracy",
    ]
