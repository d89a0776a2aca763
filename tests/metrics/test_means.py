"""Means: the numbers of `statistics`, with draws, clusters and failures passed on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.metrics.registry import Column, compute, registry
from evalwright.statistics import mean_interval, wilson

VALUES = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
EMPTY = np.zeros(0)


@pytest.mark.parametrize("kind", ["accuracy", "exact-match"])
def test_accuracy_is_the_mean_with_bounds(kind: str) -> None:
    found = compute(kind, Column(VALUES, {}, n_failed=2))
    assert found == mean_interval(VALUES, n_failed=2)
    assert found.bounds == pytest.approx((wilson(3, 7)[0], wilson(5, 7)[1]))


def test_draws_and_clusters_count_as_units() -> None:
    draws = np.array([[1.0, 0.0], [1.0, np.nan], [0.0, 0.0], [1.0, 1.0]])
    clusters = np.array([0, 0, 1, 2])
    found = compute("accuracy", Column(np.nanmean(draws, axis=1), {}, clusters=clusters, draws=draws))
    assert found == mean_interval(draws, clusters=clusters)
    assert (found.n, found.n_clusters) == (4, 3)
    assert found.value == pytest.approx((0.5 + 1 + 0 + 1) / 4)


def test_a_mean_of_any_scores_knows_no_range_unless_told() -> None:
    column = Column(np.array([3.0, 5.0, 10.0]), {}, n_failed=1)
    assert compute("mean", column).bounds is None
    scores, limits = [3.0, 5.0, 10.0], (0.0, 10.0)
    ends = [mean_interval([*scores, end], value_range=limits) for end in limits]
    low = min(one.low for one in (*ends, mean_interval(scores, value_range=limits)))
    assert compute("mean", column, {"value_range": [0, 10]}).bounds == pytest.approx((low, 10.0), abs=0.5)
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
    found = compute(kind, Column(EMPTY, {}, n_failed=3), OF_ALL_ASKED[kind])
    assert (found.value, found.n, found.n_failed) == (0.0, 0, 3)
    assert found.bounds == pytest.approx((0.0, 1.0))


NEEDED: dict[str, dict[str, object]] = {
    "label-share": {"label": "correct"}, "maj@k": {"k": 2}, "part-mean": {"part": "clear"}, "pass@k": {"k": 2}, "pass^k": {"k": 2},
    "chance-normalised": {"chance": 0.25}, "macro": {"over": "language"}, "macro-score": {"over": "language"},
}  # fmt: skip
"""Options that there must be."""


@pytest.mark.parametrize("kind", sorted({*registry.names()} - {*OF_ALL_ASKED, "answer-class-share"}))
def test_nothing_scored_is_no_crash(kind: str) -> None:
    found = compute(kind, Column(EMPTY, {}, n_failed=3), NEEDED.get(kind, {}))
    assert math.isnan(found.value)
    assert (found.n, found.n_failed) == (0, 3)
    assert "nothing was scored" in found.method
