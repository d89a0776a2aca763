"""The rate of what should not happen is one minus the share of what should, interval and bounds mirrored."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import UnknownName
from evalwright.metrics.means import accuracy
from evalwright.metrics.rates import answer_rate, hallucination_rate, outcome_share
from evalwright.metrics.registry import BOUNDED, LOWER_IS_BETTER, Column, compute
from evalwright.scorers.outcome import OUTCOMES
from evalwright.statistics import wilson


def test_it_mirrors_the_share() -> None:
    column = Column(np.array([1.0, 1.0, 0.0, 1.0]), {}, n_failed=1)
    found, share = hallucination_rate(column), accuracy(column)
    assert found.value == 0.25
    assert (found.low, found.high) == pytest.approx(wilson(1, 4))
    assert (found.n, found.n_failed, found.standard_error) == (4, 1, share.standard_error)
    assert found.bounds == pytest.approx((wilson(1, 5)[0], wilson(2, 5)[1]))
    assert compute("hallucination-rate", column, {"level": 0.9}).high < found.high


def test_nothing_scored_is_no_number() -> None:
    assert np.isnan(hallucination_rate(Column(np.zeros(0), {})).value)


def test_it_is_known_as_a_rate_of_which_less_is_better() -> None:
    assert "hallucination-rate" in BOUNDED & LOWER_IS_BETTER


# -- over everything that was asked -------------------------------------------------------------------------------------


def test_the_answer_rate_counts_failed_requests_as_no_answer_and_bounds_them() -> None:
    column = Column(np.array([1.0, 1.0, 0.0, 1.0]), {}, n_failed=4)
    found = answer_rate(column)
    assert found.value == 3 / 8
    assert (found.low, found.high) == pytest.approx(wilson(3, 8))
    assert found.bounds == pytest.approx((wilson(3, 8)[0], wilson(7, 8)[1]))
    assert (found.n, found.n_failed) == (4, 4)
    assert "of all 8 asked; the 4 that failed count as 0" in found.method
    # What is lost never makes a model look better.
    assert found.value < answer_rate(Column(column.values, {})).value


def test_the_answer_rate_without_failures_is_the_share() -> None:
    column = Column(np.array([1.0, 0.0, 1.0]), {})
    assert answer_rate(column) == accuracy(column)


def test_nobody_answered_where_everything_failed() -> None:
    found = answer_rate(Column(np.zeros(0), {}, n_failed=5))
    assert (found.value, found.n, found.n_failed) == (0.0, 0, 5)
    assert found.bounds == pytest.approx((0.0, 1.0))


def test_shares_of_outcomes_add_up() -> None:
    labels = ["answered", "refused", "refused", "empty", "truncated", "answered"]
    parts = {name: np.where(np.array(labels) == name, 1.0, np.nan) for name in set(labels)}
    column = Column(np.array([float(label == "answered") for label in labels]), parts, n_failed=2)
    shares = {name: outcome_share(column, outcome=name).value for name in OUTCOMES}
    assert shares["refused"] == 2 / 8
    assert shares["too short"] == 0.0
    assert sum(shares.values()) == pytest.approx(6 / 8)
    assert answer_rate(column).value == shares["answered"]


def test_draws_and_clusters_keep_their_units() -> None:
    draws = np.array([[1.0, 0.0], [1.0, 1.0], [np.nan, 1.0]])
    column = Column(np.nanmean(draws, axis=1), {}, np.array([7, 7, -3]), 1, draws, {"refused": 1 - draws})
    found = answer_rate(column)
    assert found.value == pytest.approx((0.5 + 1 + 1 + 0) / 4)
    assert found.n_clusters == 3
    assert outcome_share(column, outcome="refused").value == pytest.approx((0.5 + 0 + 0 + 0) / 4)


def test_an_outcome_that_there_is_not() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'refused'"):
        outcome_share(Column(np.zeros(1), {}), outcome="refusd")


@given(st.lists(st.booleans(), max_size=30), st.integers(0, 10))
def test_bounds_hold_the_value(answers: list[bool], failed: int) -> None:
    found = answer_rate(Column(np.array(answers, float), {}, n_failed=failed))
    if failed:
        assert found.bounds is not None
        assert found.bounds[0] <= found.low <= found.value <= found.high <= found.bounds[1] <= 1 + 1e-12
        assert found.value == pytest.approx(sum(answers) / (len(answers) + failed))
