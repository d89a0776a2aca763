"""What is said of replies without an answer depends on what the metric makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright import evaluate
from evalwright.extend import task_from_definition
from evalwright.metrics.registry import Column, metric
from evalwright.reports.documents.summary import run_summary
from evalwright.reports.endings import remarks
from evalwright.reports.markdown import to_markdown
from evalwright.runs.reader import open_run
from evalwright.statistics import Estimate
from support.runs import edited, make_run


@pytest.mark.parametrize(
    ("scorer", "settings", "treatment", "end"),
    [
        ("consistency", {}, "left out of hallucination-rate", "have no score"),
        (
            "consistency",
            {"score_as_empty": ["empty"]},
            "left out of hallucination-rate",
            "have no score",
        ),
        ("short-answer", {}, "counted as wrong", "count as wrong"),
        (
            "short-answer",
            {"score_as_empty": ["empty"]},
            "counted as an empty answer",
            "count as an empty",
        ),
        (
            "short-answer",
            {"no_answer": "unscored"},
            "left out of hallucination-rate",
            "have no score",
        ),
    ],
)
def test_replies_without_an_answer_are_worded_by_the_metric(
    tmp_path: Path, scorer: str, settings: dict[str, object], treatment: str, end: str
) -> None:
    make_run(tmp_path, scores=[1.0, 0.0, 1.0], metric="hallucination-rate", name="a")
    with edited(tmp_path / "a") as data:
        (task,) = data["tasks"]
        task["outcomes"] = {"answered": 1, "empty": 2}
        task["scorers"][0]["kind"] = scorer
        task.update(settings)
    run = open_run(tmp_path / "a")
    assert f"No answer, {treatment}: 2 empty" in to_markdown(run_summary(run))
    assert any(
        f"2 replies were no answer (2 empty) and {end}" in remark
        for remark in remarks([run])
    )


def test_a_metric_that_raised_is_named_with_the_error_and_what_to_do(
    tmp_path: Path,
) -> None:
    @metric("half-of-nothing")
    def half_of_nothing(column: Column) -> Estimate:
        raise ZeroDivisionError("division by zero")

    task = task_from_definition(
        {
            "task": "capitals",
            "dataset": {"rows": [{"q": "The capital of Peru?", "a": "Lima"}]},
            "sample": {"input": "{{ q }}", "target": "{{ a }}"},
            "scorers": ["short-answer"],
            "metrics": ["accuracy", "half-of-nothing"],
        }
    )
    (run,) = evaluate(task, "demo/small", out=tmp_path, home=tmp_path / "home")
    error = "because it raised ZeroDivisionError: division by zero"
    summary = to_markdown(run_summary(run))
    assert f"half-of-nothing of capitals is n/a, {error}" in summary
    (last_line,) = remarks([run])
    assert last_line.startswith(
        "The metric 'half-of-nothing' of capitals has no number"
    )
    assert error in last_line
    assert last_line.endswith(f"evalwright aggregate {run.folder}")


def test_a_number_that_does_not_exist_is_no_error_of_the_metric(tmp_path: Path) -> None:
    make_run(tmp_path, scores=[1.0, 0.0], name="a")
    with edited(tmp_path / "a") as data:
        estimate = data["tasks"][0]["metrics"][0]
        estimate |= dict.fromkeys(("value", "low", "high"))
        estimate["method"] = "no number: nothing was attempted"
    assert not remarks([open_run(tmp_path / "a")])
