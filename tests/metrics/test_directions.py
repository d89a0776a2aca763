"""Which values of a metric are better, and what a conclusion says where that is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright import evaluate
from evalwright.analysis.comparison import Comparison
from evalwright.metrics.registry import _TABLE, direction_of
from evalwright.runs.reader import Run, open_run
from evalwright.scorers import outcome
from evalwright.scorers.grounding import outcome as grounding
from evalwright.scorers.stress import rules as stress
from support.shown import compare_two

MODELS = ["demo/small", "demo/large"]
CLASSES = {
    "answer-class-share": grounding.OUTCOMES,
    "outcome-share": outcome.OUTCOMES,
    "stress-share": stress.CLASSES,
}
UNKNOWN_CLASSES = {stress.REFUSAL, stress.CORRECTION, stress.PARTIAL}
"""Refusing and correcting are both right, so that more of the one is less of the other."""


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_of_answers_has_a_direction_or_is_known_to_have_none(
    kind: str,
) -> None:
    classes = set(CLASSES[kind])
    row = _TABLE[kind]
    lower = set(row["lower_classes"])
    higher = set(row.get("higher_classes", ()))
    assert lower | higher | (UNKNOWN_CLASSES & classes) == classes
    assert {direction_of(kind, {"outcome": name}) for name in lower} == {"lower"}
    assert {direction_of(kind, {"outcome": name}) for name in higher} <= {"higher"}


def test_directions_that_follow_from_no_class() -> None:
    assert direction_of("accuracy", {}) == "higher"
    assert direction_of("stress-share", {}) == "lower"  # fabricated by default
    assert direction_of("word-perplexity", {}) == "lower"
    assert direction_of("label-share", {"label": "not_attempted"}) == "unknown"
    assert direction_of("part-mean", {"part": "log length ratio"}) == "unknown"
    assert direction_of("a-metric-of-a-plug-in", {}) == "unknown"


@pytest.fixture(scope="module")
def stress_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("stress")
    small, large = evaluate(
        "factual-stress-languages", MODELS, out=folder / "runs", home=folder / "home"
    )
    return open_run(small.folder), open_run(large.folder)


def share_texts(comparison: Comparison) -> str:
    return " ".join(task.sentence for task in comparison.tasks)


def test_the_model_that_fabricates_less_is_better(
    stress_runs: tuple[Run, Run],
) -> None:
    text = share_texts(compare_two(*stress_runs))
    assert "'fabricated' (p < 0.001, demo/small is better)" in text


def test_a_share_without_a_direction_is_higher_not_better(tmp_path: Path) -> None:
    small, large = evaluate(
        "factual-stress", MODELS, out=tmp_path / "runs", home=tmp_path / "home"
    )
    text = share_texts(compare_two(small, large))
    assert "'corrected' (p = 0.019, demo/small is higher)" in text


def test_records_that_do_not_state_the_direction_have_it(
    stress_runs: tuple[Run, Run],
) -> None:
    by_label = {}
    for run in stress_runs:
        path = run.folder / "run.json"
        record = json.loads(path.read_text("utf-8"))
        for metric in record["tasks"][0]["metrics"]:
            by_label[metric["label"]] = metric.pop("lower_is_better", False)
        for by_value in record["tasks"][0]["slices"].values():
            for metrics in by_value.values():
                for metric in metrics:
                    metric.pop("lower_is_better", None)
        path.write_text(json.dumps(record), "utf-8")
    assert by_label["fabricated"] is True
    assert by_label["corrected"] is False
    older_runs = [open_run(run.folder) for run in stress_runs]
    fabricated = older_runs[0].tasks[0].metric("fabricated")
    assert fabricated is not None
    assert fabricated.less_is_better
    text = share_texts(compare_two(older_runs[0], older_runs[1]))
    assert "'fabricated' (p < 0.001, demo/small is better)" in text
