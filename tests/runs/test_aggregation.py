"""From records to numbers: equal to a computation written out by hand, in whatever order the
records come.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import Failure
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.core.tasks import MetricSpec
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.results import TaskResult
from evalwright.runs.score_tables import MOST_VALUES
from evalwright.statistics import mean_interval

LOST = Failure("timed out", "provider", "No answer within 5 s.", retryable=True)
BROKEN = Failure("scorer error", "scorer", "ValueError: no")
ACCURACY = [MetricSpec("accuracy", "accuracy", "s")]


def a_record(
    index: int,
    value: float | None,
    *,
    draw: int = 0,
    cluster: str = "",
    metadata: dict[str, Any] | None = None,
    parts: dict[str, float] | None = None,
    scorer_failed: bool = False,
) -> SampleRecord:
    """A record scored by "s"; a value of None is a failed answer, or with `scorer_failed` a
    failed scorer.
    """
    sample = Sample(id=f"item {index}", metadata=metadata or {}, cluster=cluster)
    if value is None:
        answer = Answer("text") if scorer_failed else None
        failures = {"s": BROKEN} if scorer_failed else {}
        failure = None if scorer_failed else LOST
        return SampleRecord("t", index, draw, sample, answer, {}, failure, failures)
    scores = {"s": Score(value, parts=parts or {})}
    return SampleRecord("t", index, draw, sample, Answer("text"), scores)


def tallied(
    records: Sequence[SampleRecord],
    metrics: Sequence[MetricSpec] = ACCURACY,
    slices: Sequence[str] = ("domain",),
    scorers: Sequence[str] = ("s",),
) -> TaskResult:
    tally = TaskTally(scorers, slices)
    for record in records:
        tally.add(record)
    return tally.result("t", "1", metrics)


def text_of(result: TaskResult) -> str:
    """Everything in the result, in its order."""
    return json.dumps(result.as_dict(), allow_nan=False)


VALUES = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 0.1, 0.7]))


@given(
    st.lists(
        st.tuples(VALUES, VALUES, st.sampled_from("abc"), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_any_order_gives_the_same_result_to_the_bit(
    rows: list[Any], chance: Any
) -> None:
    records = []
    for index, (first, second, word, failed) in enumerate(rows):
        for draw, value in enumerate((first, second)):
            parts = (
                {}
                if value is None or word == "b"
                else {"length": value * 3.1, "extra": 1.0 / (index + 1)}
            )
            records.append(
                a_record(
                    index,
                    value,
                    draw=draw,
                    cluster=word if index % 2 else "",
                    metadata={"domain": word},
                    parts=parts,
                    scorer_failed=failed,
                )
            )
    metrics = [*ACCURACY, MetricSpec("mean", "mean", "s")]
    expected = text_of(tallied(records, metrics))
    for _ in range(3):
        chance.shuffle(records)
        assert text_of(tallied(records, metrics)) == expected


def test_numbers_are_those_of_a_brute_force_computation() -> None:
    rng = np.random.default_rng(4)
    draws = rng.random((30, 3)).round(2)
    draws[rng.random((30, 3)) < 0.2] = math.nan
    clusters = rng.integers(0, 8, 30)
    domains = ["physics", "law", "art"]
    records = [
        a_record(
            i,
            None if math.isnan(draws[i, k]) else float(draws[i, k]),
            draw=k,
            cluster=f"passage {clusters[i]}",
            metadata={"domain": domains[i % 3]},
        )
        for k in (2, 0, 1)
        for i in rng.permutation(30).tolist()
    ]
    result = tallied(records)
    whole = mean_interval(draws, clusters=clusters)
    found = result.metrics[0].estimate
    kept = ~np.isnan(draws).all(axis=1)
    means = [np.nanmean(row) for row in draws[kept]]
    assert found.value == pytest.approx(np.mean(means))
    assert (found.n, found.n_missing) == (kept.sum(), (~kept).sum())
    assert (found.low, found.high, found.n_clusters) == pytest.approx(
        (whole.low, whole.high, whole.n_clusters)
    )
    assert result.n_samples == 30
    assert result.n_missing == (~kept).sum()
    assert result.failures == {"timed out": int(np.isnan(draws).sum())}
    for number, domain in enumerate(domains):
        part = result.slices["domain"][domain][0].estimate
        rows = draws[number::3]
        there = ~np.isnan(rows).all(axis=1)
        assert part.value == pytest.approx(
            np.mean([np.nanmean(row) for row in rows[there]])
        )
        assert part.n + part.n_missing == 10
    assert list(result.slices["domain"]) == sorted(domains)


def test_an_item_is_failed_if_any_scorer_has_nothing_for_it() -> None:
    sample = [Sample(id=str(i)) for i in range(3)]
    both = {"s": Score(1.0), "other": Score(0.0)}
    records = [
        SampleRecord("t", 0, 0, sample[0], Answer(), both),
        SampleRecord(
            "t", 1, 0, sample[1], Answer(), {"s": Score(1.0)}, None, {"other": BROKEN}
        ),
        SampleRecord(
            "t", 2, 0, sample[2], Answer(), {"other": Score(0.0)}, None, {"s": BROKEN}
        ),
    ]
    metrics = [*ACCURACY, MetricSpec("mean", "mean", "other")]
    result = tallied(records, metrics, scorers=("s", "other"))
    assert [metric.estimate.n_missing for metric in result.metrics] == [1, 1]
    assert result.n_missing == 2
    # A scorer that no metric shows counts too: the record has a hole.
    assert tallied(records, ACCURACY, scorers=("s", "other")).n_missing == 2


def test_parts_with_gaps_keep_their_rows() -> None:
    """A part that only some scores have stands in the right rows, wherever the gaps are."""
    tally = TaskTally(["s"], [])
    rows: list[dict[str, float] | None] = [
        None,
        {"a": 1.0},
        {},
        {"b": 5.0},
        {"a": 4.0, "b": 6.0},
        None,
        {"b": 8.0},
        {},
    ]
    for index, parts in enumerate(rows):
        tally.add(a_record(index, None if parts is None else 0.5, parts=parts))
    column = tally.column("s", np.arange(8))
    nan = math.nan
    assert column.parts["a"].tolist() == pytest.approx(
        [1.0, nan, nan, 4.0, nan, nan], nan_ok=True
    )
    assert column.parts["b"].tolist() == pytest.approx(
        [nan, nan, 5.0, 6.0, 8.0, nan], nan_ok=True
    )
    assert column.n_missing == 2
    assert column.draws is None
    assert column.part_draws == {}


def test_classes_of_several_draws_are_not_averaged() -> None:
    """Balanced accuracy over two draws an item: classes 0 and 2 do not make a class 1."""
    records = [
        a_record(
            i,
            float(said == i % 3),
            draw=draw,
            parts={"gold": float(i % 3), "predicted": float(said)},
        )
        for i in range(12)
        for draw, said in enumerate(((i % 3), (i + 1) % 3 if i < 6 else i % 3))
    ]
    found = (
        tallied(records, [MetricSpec("balanced accuracy", "balanced-accuracy", "s")])
        .metrics[0]
        .estimate
    )
    assert found.value == pytest.approx(np.mean([(6 * 0.5 + 6) / 12] * 3))
    assert found.n == 12


def test_slices_need_two_values_and_not_too_many() -> None:
    same = [a_record(i, 1.0, metadata={"domain": "law"}) for i in range(5)]
    assert tallied(same).slices == {}
    some = [
        a_record(i, 1.0, metadata={"domain": i % 2, "year": 2024} if i else {})
        for i in range(5)
    ]
    result = tallied(some, slices=("domain", "year", "absent"))
    assert {
        value: metrics[0].estimate.n
        for value, metrics in result.slices["domain"].items()
    } == {
        "0": 2,
        "1": 2,
    }
    assert list(result.slices) == ["domain"]
    for count, left_out in (
        (MOST_VALUES, ()),
        (MOST_VALUES + 1, ("domain",)),
        (MOST_VALUES + 50, ("domain",)),
    ):
        many = [a_record(i, 1.0, metadata={"domain": f"d{i}"}) for i in range(count)]
        result = tallied(many)
        assert result.slices_left_out == left_out
        assert ("domain" in result.slices) is (left_out == ())
        assert len(result.slices.get("domain", {})) == (0 if left_out else MOST_VALUES)


def test_lone_surrogates_in_ids_and_clusters_do_no_harm() -> None:
    sample = Sample(id="\ud800", cluster="\udfff", metadata={"domain": "\ud801"})
    result = tallied([SampleRecord("t", 0, 0, sample, Answer(), {"s": Score(1.0)})])
    assert result.metrics[0].estimate.n == 1


def test_results_survive_json() -> None:
    records = [
        a_record(i, None if i == 3 else i % 2, metadata={"domain": "ab"[i % 2]})
        for i in range(9)
    ]
    result = tallied(records)
    again = TaskResult.from_dict(json.loads(text_of(result)))
    assert again == result
    assert again.main == result.metrics[0]


def test_memory_is_a_few_dozen_bytes_a_record() -> None:
    import tracemalloc

    tally = TaskTally(["s"], ["domain"])
    for i in range(2000):
        tally.add(a_record(i, 1.0, metadata={"domain": "a"}))
    tracemalloc.start()
    for i in range(2000, 12_000):
        tally.add(a_record(i, 1.0, metadata={"domain": "a"}))
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown / 10_000 < 100


def test_a_metric_that_cannot_be_computed_says_why_and_loses_nothing() -> None:
    tally = TaskTally(["exact-match"], [])
    for index in range(3):
        tally.add(
            SampleRecord(
                "t",
                index,
                0,
                Sample(str(index)),
                Answer("x"),
                {"exact-match": Score(1.0)},
            )
        )
    specs = [
        MetricSpec("accuracy", "accuracy", "exact-match"),
        MetricSpec("f1", "macro-f1", "exact-match"),
    ]
    accuracy, f1 = tally.result("t", "1", specs).metrics
    assert accuracy.estimate.value == 1.0
    assert math.isnan(f1.estimate.value)
    assert "scorer 'choice'" in f1.estimate.method


# -- a scorer with nothing to say
# ---------------------------------------------------------------------------------------


def nothing_said(index: int, draw: int = 0) -> SampleRecord:
    """A record of an answer that the scorer has nothing to say of."""
    return SampleRecord(
        "t", index, draw, Sample(id=f"item {index}"), Answer("I cannot."), {}
    )


def test_nothing_said_in_one_draw_and_a_failure_in_another() -> None:
    records = [
        nothing_said(0), a_record(0, None, draw=1), nothing_said(1), a_record(1, 1.0, draw=1),
        nothing_said(2), nothing_said(2, draw=1), a_record(3, None), a_record(3, 0.0, draw=1),
    ]  # fmt: skip
    result = tallied(records)
    estimate = result.metrics[0].estimate
    assert (estimate.n, estimate.n_missing, estimate.value) == (2, 1, 0.5)
    assert result.n_missing == 1


@given(
    st.lists(
        st.sampled_from(["right", "wrong", "lost", "broken", "silent"]), max_size=12
    )
)
def test_every_sample_is_scored_failed_or_passed_over(kinds: list[str]) -> None:
    makers: dict[str, Callable[[int], SampleRecord]] = {
        "right": lambda i: a_record(i, 1.0),
        "wrong": lambda i: a_record(i, 0.0),
        "lost": lambda i: a_record(i, None),
        "broken": lambda i: a_record(i, None, scorer_failed=True),
        "silent": nothing_said,
    }
    result = tallied([makers[kind](place) for place, kind in enumerate(kinds)])
    estimate = result.metrics[0].estimate
    assert estimate.n == sum(kind in ("right", "wrong") for kind in kinds)
    assert (
        estimate.n_missing
        == result.n_missing
        == sum(kind in ("lost", "broken") for kind in kinds)
    )
