"""Metrics over labels, through the tally that a run makes and over columns written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.core.tasks import MetricSpec
from evalwright.metrics.registry import Column, compute
from evalwright.runs.aggregation import TaskTally
from evalwright.statistics import wilson

LABELS = [
    "correct",
    "correct",
    "incorrect",
    "not_attempted",
    "",
    "correct",
    "not_attempted",
    "incorrect",
]
SPECS = [
    MetricSpec("given", "accuracy-given-attempted", "s"),
    MetricSpec("f", "f-score", "s"),
    MetricSpec("right", "label-share", "s", {"label": "correct"}),
    MetricSpec("silent", "label-share", "s", {"label": "not_attempted"}),
    MetricSpec("odd", "label-share", "s", {"label": "corect"}),
]


def tallied(order: list[int], draws: int = 1) -> dict[str, float]:
    tally = TaskTally(["s"], [])
    for i in order:
        for draw in range(draws):
            score = Score(float(LABELS[i] == "correct"), LABELS[i])
            tally.add(
                SampleRecord(
                    "t", i, draw, Sample(f"item {i}"), Answer("x"), {"s": score}
                )
            )
    result = tally.result("t", "1", SPECS)
    assert "Did you mean 'correct'" in result.metrics[-1].estimate.method
    return {metric.label: metric.estimate.value for metric in result.metrics}


@pytest.mark.parametrize("draws", [1, 3])
@pytest.mark.parametrize("order", [list(range(8)), [7, 3, 0, 4, 1, 6, 2, 5]])
def test_a_run_counts_labels_in_any_order(order: list[int], draws: int) -> None:
    found = tallied(order, draws)
    # 3 right of 8, 6 attempted: the answer without a label counts as attempted.
    assert found["given"] == pytest.approx(3 / 6)
    assert found["f"] == pytest.approx(2 * (3 / 8) * (3 / 6) / (3 / 8 + 3 / 6))
    assert (found["right"], found["silent"]) == pytest.approx((3 / 8, 2 / 8))


def test_without_labels_everything_was_attempted() -> None:
    column = Column(np.array([1.0, 0.0, 0.0, 1.0]), {}, n_missing=1)
    found = compute("accuracy-given-attempted", column)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, *wilson(2, 4)))
    assert found.bounds == pytest.approx((wilson(2, 5)[0], wilson(3, 5)[1]))
    assert compute("f-score", column).value == pytest.approx(0.5)
    assert compute("label-share", column, {"label": "not_attempted"}).value == 0.0
    with pytest.raises(UnknownName, match="incorrect"):
        compute("label-share", column, {"label": "incorect"})


def test_another_label_may_be_the_one_of_silence() -> None:
    labels = np.array([[0], [1]], np.int32)
    column = Column(
        np.array([1.0, 1.0]), {}, labels=labels, label_names=("fine", "refused")
    )
    assert compute("f-score", column).value == 1.0
    assert compute(
        "f-score", column, {"not_attempted": "refused"}
    ).value == pytest.approx(2 / 3)


def test_nothing_attempted_is_no_number() -> None:
    labels = np.zeros((2, 1), np.int32)
    column = Column(np.zeros(2), {}, labels=labels, label_names=("not_attempted",))
    found = compute("accuracy-given-attempted", column)
    assert np.isnan(found.value)
    assert found.method == "no number: nothing was attempted"
    assert compute("f-score", column).value == 0.0


# -- metrics of grounded answers
# ----------------------------------------------------------------------------------------


PARTS = {
    "cited": np.array([1.0, 2.0, 0.0]),
    "supporting": np.array([1.0, 1.0, 0.0]),
    "claims": np.array([1.0, 3.0, 1.0]),
    "supported": np.array([1.0, 1.0, 0.0]),
    "unsupported": np.array([math.nan, 1.0, 1.0]),
}
COLUMN = Column(np.array([1.0, 0.0, 0.0]), PARTS, n_missing=1)


def test_precision_recall_and_f1_are_pooled() -> None:
    assert compute("citation-precision", COLUMN).value == pytest.approx(2 / 3)
    assert compute("citation-recall", COLUMN).value == pytest.approx(2 / 5)
    assert compute("citation-f1", COLUMN).value == pytest.approx(0.5)
    assert compute("citation-f1", COLUMN).n_missing == 1


def test_an_answer_without_counts_of_citations_is_missing() -> None:
    """Records of earlier versions have none where rules left citations open."""
    parts = {
        name: np.where([False, True, False], math.nan, values)
        for name, values in PARTS.items()
    }
    found = compute("citation-recall", Column(COLUMN.values, parts, n_missing=1))
    assert (found.value, found.n, found.n_missing) == (0.5, 2, 2)


def test_the_share_of_a_class_and_its_bounds() -> None:
    found = compute("answer-class-share", COLUMN, {"outcome": "unsupported"})
    assert found.value == pytest.approx(2 / 3)
    assert found.bounds == pytest.approx((wilson(2, 4)[0], wilson(3, 4)[1]))
    assert (
        compute("answer-class-share", COLUMN, {"outcome": "answered-wrong"}).value
        == 0.0
    )


def test_of_several_draws_the_mean_share_of_an_item_counts() -> None:
    draws = np.array([[1.0, 0.0], [0.0, 0.0]])
    classes = {"unsupported": np.array([[math.nan, 1.0], [1.0, 1.0]])}
    column = Column(draws.mean(axis=1), {}, draws=draws, part_draws=classes)
    assert (
        compute("answer-class-share", column, {"outcome": "unsupported"}).value == 0.75
    )


def test_what_cannot_be_computed_says_why() -> None:
    with pytest.raises(UnknownName, match="unsupported"):
        compute("answer-class-share", COLUMN, {"outcome": "unsuported"})
    with pytest.raises(ConfigurationError, match=r"'supporting'.*'grounding'"):
        compute("citation-precision", Column(np.array([1.0]), {}))
    assert math.isnan(compute("citation-f1", Column(np.zeros(0), {})).value)
