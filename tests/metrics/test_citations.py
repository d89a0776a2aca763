"""Metrics of grounded answers: sums before ratios, classes as shares, and what is missing said plainly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.metrics.registry import Column, compute
from evalwright.statistics import wilson

PARTS = {
    "cited": np.array([1.0, 2.0, 0.0]),
    "supporting": np.array([1.0, 1.0, 0.0]),
    "claims": np.array([1.0, 3.0, 1.0]),
    "supported": np.array([1.0, 1.0, 0.0]),
    "unsupported": np.array([math.nan, 1.0, 1.0]),
}
COLUMN = Column(np.array([1.0, 0.0, 0.0]), PARTS, n_failed=1)


def test_precision_recall_and_f1_are_pooled() -> None:
    assert compute("citation-precision", COLUMN).value == pytest.approx(2 / 3)
    assert compute("citation-recall", COLUMN).value == pytest.approx(2 / 5)
    assert compute("citation-f1", COLUMN).value == pytest.approx(0.5)
    assert compute("citation-f1", COLUMN).n_failed == 1


def test_an_answer_whose_citations_are_open_counts_as_failed() -> None:
    parts = {name: np.where([False, True, False], math.nan, values) for name, values in PARTS.items()}
    found = compute("citation-recall", Column(COLUMN.values, parts, n_failed=1))
    assert (found.value, found.n, found.n_failed) == (0.5, 2, 2)


def test_the_share_of_a_class_and_its_bounds() -> None:
    found = compute("answer-class-share", COLUMN, {"outcome": "unsupported"})
    assert found.value == pytest.approx(2 / 3)
    assert found.bounds == pytest.approx((wilson(2, 4)[0], wilson(3, 4)[1]))
    assert compute("answer-class-share", COLUMN, {"outcome": "answered-wrong"}).value == 0.0


def test_of_several_draws_the_mean_share_of_an_item_counts() -> None:
    draws = np.array([[1.0, 0.0], [0.0, 0.0]])
    classes = {"unsupported": np.array([[math.nan, 1.0], [1.0, 1.0]])}
    column = Column(draws.mean(axis=1), {}, draws=draws, part_draws=classes)
    assert compute("answer-class-share", column, {"outcome": "unsupported"}).value == 0.75


def test_what_cannot_be_computed_says_why() -> None:
    with pytest.raises(UnknownName, match="unsupported"):
        compute("answer-class-share", COLUMN, {"outcome": "unsuported"})
    with pytest.raises(ConfigurationError, match=r"'supporting'.*'grounding'"):
        compute("citation-precision", Column(np.array([1.0]), {}))
    assert math.isnan(compute("citation-f1", Column(np.zeros(0), {})).value)
