"""What is said of replies without an answer depends on what the metric makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.reports.documents.summary import run_summary
from evalwright.reports.endings import remarks
from evalwright.reports.markdown import to_markdown
from evalwright.runs.reader import open_run
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
