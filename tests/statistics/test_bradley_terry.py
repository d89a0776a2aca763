"""Bradley-Terry ratings against statsmodels' logit with clustered errors, in closed form, and
where there is no maximum.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm

from evalwright.statistics.bradley_terry import Scored, bradley_terry


def _scores(models: int, items: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    ease = rng.normal(0, 1, items)
    return np.round(
        ease + rng.normal(np.arange(models)[:, None] / 3, 1, (models, items))
    )


def test_fit_and_sandwich_are_those_of_statsmodels() -> None:
    scores = _scores(4, 90)
    units = np.arange(90) // 3
    found = bradley_terry([Scored(scores, units)])
    rows = []
    outcomes = []
    groups = []
    for a in range(4):
        for b in range(a + 1, 4):
            for item in range(90):
                row = np.zeros(4)
                row[a], row[b] = 1, -1
                gap = scores[a, item] - scores[b, item]
                rows.append(row[1:])
                outcomes.append(0.5 + 0.5 * np.sign(gap))
                groups.append(units[item])
    fit = sm.GLM(np.array(outcomes), np.array(rows), family=sm.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(groups)}
    )
    theta = np.append(0.0, fit.params)
    assert found.strengths == pytest.approx(theta - theta.mean(), abs=1e-7)
    n = len(outcomes)  # statsmodels has (n - 1) / (n - parameters) more
    centre = np.vstack([np.full(3, -0.25), np.eye(3) - 0.25])
    covariance = centre @ (np.asarray(fit.cov_params()) * (n - 3) / (n - 1)) @ centre.T
    assert found.errors == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-5)
    assert (found.games, found.ties, found.units) == (n, outcomes.count(0.5), 30)
    assert not found.unbounded


def test_two_models_in_closed_form() -> None:
    first = np.array([1.0] * 24 + [0.0] * 10 + [0.5] * 6)
    scores = np.vstack([first, np.where(first == 0.5, 0.5, 1 - first)])
    found = bradley_terry([Scored(scores, np.arange(40))])
    assert found.strengths[0] - found.strengths[1] == pytest.approx(
        math.log(27 / 13), abs=1e-9
    )
    assert found.wins == pytest.approx([27 / 40, 13 / 40])
    # Scores that differ by rounding alone are ties.
    assert (
        bradley_terry([Scored(scores + np.array([[0.0], [5e-5]]), np.arange(40))]).ties
        == 6
    )


def test_a_task_counts_as_its_weight_whatever_its_size() -> None:
    once = _scores(3, 40, 1)
    many = np.arange(40)
    other = _scores(3, 25, 2)[::-1]
    plain = bradley_terry(
        [Scored(once, many, 2.0), Scored(other, 100 + np.arange(25), 1.0)]
    )
    doubled = bradley_terry(
        [
            Scored(np.tile(once, 3), np.tile(many, 3), 2.0),
            Scored(other, 100 + np.arange(25), 1.0),
        ]
    )
    assert doubled.strengths == pytest.approx(plain.strengths, abs=1e-9)
    # The same items three times over, in one unit each, say nothing more; nor does the same task
    # twice.
    assert doubled.errors == pytest.approx(plain.errors, rel=1e-9)
    alone = bradley_terry([Scored(once, many)])
    twice = bradley_terry([Scored(once, many), Scored(once, many)])
    assert twice.errors == pytest.approx(alone.errors, rel=1e-9)
    apart = bradley_terry([Scored(once, many), Scored(once, 100 + many)])
    assert apart.errors == pytest.approx(alone.errors / math.sqrt(2), rel=1e-9)


def test_no_certainty_where_one_model_always_wins_or_all_tie() -> None:
    wins = bradley_terry(
        [Scored(np.vstack([np.ones(30), _scores(2, 30) - 9]), np.arange(30))]
    )
    assert wins.unbounded
    assert np.isfinite([wins.low, wins.high]).all()
    assert wins.strengths[0] > wins.strengths[1:].max() + 1
    tied = bradley_terry([Scored(np.ones((2, 50)), np.arange(50))])
    assert tied.unbounded
    assert tied.low[0] < -0.1 < 0.1 < tied.high[0]
    assert tied.strengths == pytest.approx([0, 0], abs=1e-12)


def test_models_meet_where_both_have_a_score() -> None:
    scores = _scores(3, 60)
    scores[0, :30] = scores[2, 30:] = np.nan
    found = bradley_terry([Scored(scores, np.arange(60))])
    assert found.games == 60
    scores[1] = np.nan
    with pytest.raises(ValueError, match="two items in common"):
        bradley_terry([Scored(scores, np.arange(60))])
    four = np.full((4, 40), np.nan)
    four[:2, :20], four[2:, 20:] = _scores(2, 20), _scores(2, 20)
    with pytest.raises(ValueError, match="no common scale"):
        bradley_terry([Scored(four, np.arange(40))])
    for tasks in (
        [],
        [Scored(_scores(1, 9), np.arange(9))],
        [Scored(_scores(3, 1), np.arange(1))],
    ):
        with pytest.raises(ValueError, match="at least two"):
            bradley_terry(tasks)
