"""Aggregations and their standard errors, against plain loops over Python's own generator and
against scikit-learn.
"""

from __future__ import annotations

import math
import random
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.compat.lm_eval.tasks import aggregation, estimates, labels

LABELS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40
)


def by_loop(function: Any, items: list[Any], iterations: int) -> float:
    """The published bootstrap as it is written down: chunk i is drawn by Random(i)."""
    size = min(1_000, iterations)
    found = []
    for chunk in range(iterations // size):
        chance = random.Random(chunk)
        found += [function(chance.choices(items, k=len(items))) for _ in range(size)]
    return float(statistics.stdev(found))


@pytest.mark.parametrize("iterations", [100, 2_000, 2_500])
@pytest.mark.parametrize(
    "name", ["perplexity", "median", "nanmean", "matthews_corrcoef", "f1"]
)
def test_bootstrap_draws_are_those_of_python(name: str, iterations: int) -> None:
    chance = random.Random(name)
    items: list[Any] = [chance.uniform(-9, 0) for _ in range(23)]
    if name in ("matthews_corrcoef", "f1"):
        items = [(chance.randrange(2), chance.randrange(2)) for _ in range(23)]
    if name == "nanmean":
        items[3] = math.nan
    found = aggregation.standard_error(name, items, name, iterations)
    assert found == pytest.approx(
        by_loop(aggregation.BUILT_IN[name], items, iterations), rel=1e-9
    )


def test_the_error_of_a_mean_has_n_minus_one() -> None:
    items = [0.0, 1.0, 1.0, 1.0]
    wanted = statistics.stdev(items) / math.sqrt(4)
    assert aggregation.standard_error("mean", items, "acc", 100) == pytest.approx(
        wanted, rel=1e-15
    )
    assert aggregation.standard_error("mean", [1.0], "acc", 100) is None
    assert aggregation.standard_error("mean", items, "acc", 0) is None
    assert (
        aggregation.standard_error(
            "weighted_perplexity", [(1.0, 2), (1.0, 2)], "x", 100
        )
        is None
    )


@pytest.mark.filterwarnings("ignore:A single label")
@given(LABELS)
def test_labels_agree_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    golds, predicted = zip(*pairs, strict=True)
    wanted = {
        "matthews_corrcoef": metrics.matthews_corrcoef(golds, predicted),
        "macro_f1": metrics.f1_score(
            golds, predicted, average="macro", zero_division=0.0
        ),
        "weighted_f1": metrics.f1_score(
            golds, predicted, average="weighted", zero_division=0.0
        ),
    }
    for kind, value in wanted.items():
        assert labels.label_metric(kind, pairs) == pytest.approx(value, abs=1e-12)
    binary = [(gold % 2, one % 2) for gold, one in pairs]
    value = metrics.f1_score(*zip(*binary, strict=True), zero_division=0.0)
    assert labels.label_metric("f1", binary) == pytest.approx(value, abs=1e-12)
    if len({label for pair in pairs for label in pair}) > 2:
        with pytest.raises(ValueError, match="needs the labels 0 and 1"):
            labels.label_metric("f1", pairs)


PAIRS = [(-30.0, 12.0), (-55.0, 20.0), (-12.0, 7.0), (-80.0, 31.0)]
BRIER = [
    (0, [0.7, 0.2, 0.1]),
    (1, [0.3, 0.3, 0.4]),
    (2, [0.1, 0.1, 0.8]),
    (0, [0.2, 0.5, 0.3]),
]


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("brier_score", BRIER),
        ("perplexity", [-1.0, -2.5, -0.7, -1.9]),
        ("weighted_perplexity", PAIRS),
        ("bits_per_byte", PAIRS),
    ],
)
def test_corrected_scores_have_the_published_value_and_an_interval(
    name: str, items: list[Any]
) -> None:
    found = estimates.INTERVALS[name](items, 2)
    assert found.value == pytest.approx(aggregation.BUILT_IN[name](items))
    assert found.low < found.value < found.high
    assert (found.n, found.n_missing) == (4, 2)


def test_a_brier_score_stays_within_0_and_2() -> None:
    found = estimates.INTERVALS["brier_score"](
        [(0, [0.0, 1.0]), (0, [0.1, 0.9])] * 3, 0
    )
    assert 0.5 < found.low < found.value < found.high <= 2.0
