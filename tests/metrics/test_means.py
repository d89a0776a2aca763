"""Means and shares: the numbers of `statistics`, with draws, clusters and failures passed on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.metrics.means import (
    accuracy,
    answer_rate,
    hallucination_rate,
    handled,
    outcome_share,
    stress_share,
)
from evalwright.metrics.registry import Column, compute, registry
from evalwright.scorers.outcome import OUTCOMES
from evalwright.scorers.stress.rules import CLASSES
from evalwright.statistics import mean_interval, wilson

VALUES = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
EMPTY = np.zeros(0)


@pytest.mark.parametrize("kind", ["accuracy", "exact-match"])
def test_accuracy_is_the_mean_with_bounds(kind: str) -> None:
    found = compute(kind, Column(VALUES, {}, n_missing=2))
    assert found == mean_interval(VALUES, n_missing=2)
    assert found.bounds == pytest.approx((wilson(3, 7)[0], wilson(5, 7)[1]))


@pytest.mark.parametrize("kind", ["accuracy", "exact-match", "mean"])
def test_a_part_stands_for_the_scores_and_an_item_without_it_is_missing(
    kind: str,
) -> None:
    column = Column(
        np.array([7.0, 3.0, 5.0]), {"right": np.array([1.0, np.nan, 0.0])}, n_missing=1
    )
    found = compute(kind, column, {"part": "right"})
    assert (found.value, found.n, found.n_missing) == (0.5, 2, 2)
    with pytest.raises(UnknownName, match=r"There are: right\."):
        compute(kind, column, {"part": "rihgt"})


def test_draws_and_clusters_count_as_units() -> None:
    draws = np.array([[1.0, 0.0], [1.0, np.nan], [0.0, 0.0], [1.0, 1.0]])
    clusters = np.array([0, 0, 1, 2])
    found = compute(
        "accuracy",
        Column(np.nanmean(draws, axis=1), {}, clusters=clusters, draws=draws),
    )
    assert found == mean_interval(draws, clusters=clusters)
    assert (found.n, found.n_clusters) == (4, 3)
    assert found.value == pytest.approx((0.5 + 1 + 0 + 1) / 4)


def test_a_mean_of_any_scores_knows_no_range_unless_told() -> None:
    column = Column(np.array([3.0, 5.0, 10.0]), {}, n_missing=1)
    assert compute("mean", column).bounds is None
    scores = [3.0, 5.0, 10.0]
    limits = (0.0, 10.0)
    ends = [mean_interval([*scores, end], value_range=limits) for end in limits]
    low = min(one.low for one in (*ends, mean_interval(scores, value_range=limits)))
    assert compute("mean", column, {"value_range": [0, 10]}).bounds == pytest.approx(
        (low, 10.0), abs=0.5
    )
    with pytest.raises(ConfigurationError, match="value_range"):
        compute("mean", column, {"value_range": [10, 0]})
    with pytest.raises(ConfigurationError, match="cannot be computed"):
        compute("mean", column, {"value_range": [0, 5]})
    with pytest.raises(UnknownName, match="value_range"):
        compute("mean", column, {"valuerange": [0, 1]})


OF_ALL_ASKED = {"answer-rate": {}, "outcome-share": {"outcome": "refused"}}
"""Metrics in which a failed request counts, with the options that they must have."""


@pytest.mark.parametrize("kind", OF_ALL_ASKED)
def test_nothing_but_failures_where_they_count(kind: str) -> None:
    found = compute(kind, Column(EMPTY, {}, n_missing=3), OF_ALL_ASKED[kind])
    assert math.isnan(found.value) and (found.n, found.n_missing) == (0, 3)
    assert found.bounds == pytest.approx((0.0, 1.0))


NEEDED: dict[str, dict[str, object]] = {
    "label-share": {"label": "correct"}, "maj@k": {"k": 2}, "part-mean": {"part": "clear"}, "pass@k": {"k": 2}, "pass^k": {"k": 2},
    "chance-normalised": {"chance": 0.25}, "macro": {"over": "language"}, "macro-score": {"over": "language"},
}  # fmt: skip
"""Options that there must be."""


@pytest.mark.parametrize(
    "kind", sorted({*registry.names()} - {*OF_ALL_ASKED, "answer-class-share"})
)
def test_nothing_scored_is_no_crash(kind: str) -> None:
    found = compute(kind, Column(EMPTY, {}, n_missing=3), NEEDED.get(kind, {}))
    assert math.isnan(found.value)
    assert (found.n, found.n_missing) == (0, 3)
    assert "nothing was scored" in found.method


def test_it_mirrors_the_share() -> None:
    column = Column(np.array([1.0, 1.0, 0.0, 1.0]), {}, n_missing=1)
    found = hallucination_rate(column)
    share = accuracy(column)
    assert found.value == 0.25
    assert (found.low, found.high) == pytest.approx(wilson(1, 4))
    assert (found.n, found.n_missing, found.standard_error) == (
        4,
        1,
        share.standard_error,
    )
    assert found.bounds == pytest.approx((wilson(1, 5)[0], wilson(2, 5)[1]))
    assert compute("hallucination-rate", column, {"level": 0.9}).high < found.high


# -- over everything that was asked
# -------------------------------------------------------------------------------------


def test_the_answer_rate_counts_failed_requests_as_no_answer_and_bounds_them() -> None:
    column = Column(np.array([1.0, 1.0, 0.0, 1.0]), {}, n_missing=4)
    found = answer_rate(column)
    assert found.value == 3 / 8
    assert (found.low, found.high) == pytest.approx(wilson(3, 8))
    assert found.bounds == pytest.approx((wilson(3, 8)[0], wilson(7, 8)[1]))
    assert (found.n, found.n_missing) == (4, 4)
    assert "of all 8 asked; the 4 that failed count as 0" in found.method
    # What is lost never makes a model look better.
    assert found.value < answer_rate(Column(column.values, {})).value


def test_the_answer_rate_without_failures_is_the_share() -> None:
    column = Column(np.array([1.0, 0.0, 1.0]), {})
    assert answer_rate(column) == accuracy(column)


def test_nobody_answered_where_everything_failed() -> None:
    found = answer_rate(Column(np.zeros(0), {}, n_missing=5))
    assert math.isnan(found.value) and (found.n, found.n_missing) == (0, 5)
    assert found.bounds == pytest.approx((0.0, 1.0))


def test_shares_of_outcomes_add_up() -> None:
    labels = ["answered", "refused", "refused", "empty", "truncated", "answered"]
    parts = {
        name: np.where(np.array(labels) == name, 1.0, np.nan) for name in set(labels)
    }
    column = Column(
        np.array([float(label == "answered") for label in labels]), parts, n_missing=2
    )
    shares = {name: outcome_share(column, outcome=name).value for name in OUTCOMES}
    assert shares["refused"] == 2 / 8
    assert shares["too short"] == 0.0
    assert sum(shares.values()) == pytest.approx(6 / 8)
    assert answer_rate(column).value == shares["answered"]


def test_draws_and_clusters_keep_their_units() -> None:
    draws = np.array([[1.0, 0.0], [1.0, 1.0], [np.nan, 1.0]])
    column = Column(
        np.nanmean(draws, axis=1),
        {},
        np.array([7, 7, -3]),
        1,
        draws,
        {"refused": 1 - draws},
    )
    found = answer_rate(column)
    assert found.value == pytest.approx((0.5 + 1 + 1 + 0) / 4)
    assert found.n_clusters == 3
    assert outcome_share(column, outcome="refused").value == pytest.approx(
        (0.5 + 0 + 0 + 0) / 4
    )


def test_an_outcome_that_there_is_not() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'refused'"):
        outcome_share(Column(np.zeros(1), {}), outcome="refusd")


@given(st.lists(st.booleans(), max_size=30), st.integers(0, 10))
def test_bounds_hold_the_value(answers: list[bool], failed: int) -> None:
    found = answer_rate(Column(np.array(answers, float), {}, n_missing=failed))
    if failed and not answers:
        assert math.isnan(found.value) and found.bounds == (0.0, 1.0)
    elif failed:
        assert found.bounds is not None
        assert (
            found.bounds[0]
            <= found.low
            <= found.value
            <= found.high
            <= found.bounds[1]
            <= 1 + 1e-12
        )
        assert found.value == pytest.approx(sum(answers) / (len(answers) + failed))


# -- classes of stress answers
# --------------------------------------------------------------------------------------------

LABELS = ["refusal", "correction", "partial", "fabricated", "fabricated", "empty"]


def stress_column(n_missing: int = 0) -> Column:
    parts = {
        name: np.array([1.0 if label == name else math.nan for label in LABELS])
        for name in set(LABELS)
    }
    return Column(np.zeros(len(LABELS)), parts, n_missing=n_missing)


def test_refused_and_corrected_are_handled_and_partial_is_not() -> None:
    found = handled(stress_column(n_missing=2))
    assert found.value == pytest.approx(2 / 6)
    assert (found.low, found.high) == pytest.approx(wilson(2, 6))
    assert (found.n, found.n_missing) == (6, 2)
    assert found.bounds == pytest.approx((wilson(2, 8)[0], wilson(4, 8)[1]))


def test_each_class_has_its_share_also_one_that_nobody_is_of() -> None:
    shares = {
        name: stress_share(stress_column(), outcome=name).value for name in CLASSES
    }
    assert shares["fabricated"] == pytest.approx(2 / 6)
    assert shares["premise accepted"] == 0.0
    assert sum(shares.values()) == pytest.approx(1.0)
    with pytest.raises(UnknownName, match="fabricated"):
        stress_share(stress_column(), outcome="fabricatd")


def test_several_draws_of_an_item_are_one_unit() -> None:
    parts = {"refusal": np.array([[1.0, math.nan], [1.0, 1.0], [math.nan, math.nan]])}
    found = handled(
        Column(np.array([0.5, 1.0, 0.0]), {}, draws=np.zeros((3, 2)), part_draws=parts)
    )
    assert found.value == pytest.approx(0.5)
    assert found.n == 3
