"""`effort`: what answers took, as numbers with intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from evalwright import load_task
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Sample
from evalwright.metrics.registry import Column, compute, direction_of
from evalwright.scorers.effort import effort

SAMPLE = Sample("1")
STRATEGY = {
    "name": "agent",
    "tool_calls": [
        {"step": 0, "name": "bash", "is_error": True, "seconds": 0.5},
        {"step": 0, "name": "bash", "is_error": False, "seconds": 1.5},
    ],
    "seconds": {"model": 4.0, "tools": 2.0},
    "compacted": [
        {"step": 1, "turns": 3},
        {"step": 2, "turns": 3, "usage": {"input_tokens": 7}, "dollars": 0.5},
    ],
}


def _replies(*costs: float | None) -> tuple[Response, ...]:
    return tuple(
        Response("a", usage=Usage(10, 5), latency=2.0, cost=cost) for cost in costs
    )


def test_a_trajectory_in_numbers() -> None:
    score = effort(SAMPLE, Answer("a", responses=_replies(0.1, 0.2), strategy=STRATEGY))
    assert score.value == 2
    assert score.parts == {
        "steps": 2,
        "calls": 2,
        "errors": 1,
        "tokens": 37,
        "seconds": 6,
        "model seconds": 4,
        "tool seconds": 2,
        "dollars": pytest.approx(0.8),
    }


def test_an_answer_without_a_trajectory_has_an_effort_too() -> None:
    score = effort(SAMPLE, Answer("a", responses=_replies(None, 0.2)))
    assert score.parts["seconds"] == 4 and score.parts["tokens"] == 30
    assert "dollars" not in score.parts  # the price of a reply is not known


def test_the_seconds_of_a_program_are_those_of_tools() -> None:
    strategy = {"name": "agent-command", "seconds": {"model": 4.0, "tools": 3.0}}
    score = effort(SAMPLE, Answer("a", responses=_replies(0.1), strategy=strategy))
    assert score.parts["tool seconds"] == 3 and score.parts["seconds"] == 7


def test_a_reply_that_counts_no_tokens_leaves_them_unknown() -> None:
    replies = (*_replies(0.1), Response("a", latency=2.0))
    assert "tokens" not in effort(SAMPLE, Answer("a", responses=replies)).parts
    refused = Response(finish_reason="too_long")  # sent, and nothing came
    score = effort(SAMPLE, Answer("a", responses=(*_replies(0.1), refused)))
    assert score.parts["tokens"] == 15


def test_its_metric_is_a_mean_of_which_less_is_better() -> None:
    steps = np.array([2.0, 4.0, 6.0])
    column = Column(steps, {"steps": steps, "tokens": 10 * steps})
    estimate = compute("effort", column)
    assert estimate.value == 4 and estimate.low < 4 < estimate.high and estimate.n == 3
    assert compute("effort", column, {"part": "tokens"}).value == 40
    unknown = compute("effort", column, {"part": "dollars"})
    assert np.isnan(unknown.value)
    assert direction_of("effort", {}) == "lower"


def _agent_task(folder: Path, **more: object) -> list[tuple[str, str, str]]:
    definition = {
        "task": "acts",
        "dataset": {"rows": [{"id": "1", "question": "Do it.", "answer": "a"}]},
        "sample": {"input": "{{ question }}", "target": "{{ answer }}"},
        "prompt": {"user": "{{ question }}"},
        "sandbox": "jail",
        "strategy": "agent",
        **more,
    }
    path = folder / "acts.yaml"
    path.write_text(yaml.safe_dump(definition))
    task = load_task(str(path))
    return [(metric.label, metric.kind, metric.scorer) for metric in task.metrics]


def test_tasks_of_agents_show_it(tmp_path: Path) -> None:
    shown = [
        (part, "effort", "effort") for part in ("steps", "tokens", "dollars", "seconds")
    ]
    accuracy = ("accuracy", "accuracy", "exact-match")
    assert _agent_task(tmp_path) == [accuracy, *shown]
    assert _agent_task(tmp_path, scorers=["exact-match"]) == [accuracy, *shown]
    assert _agent_task(tmp_path, metrics=["accuracy"]) == [accuracy]
    of_calls = {"name": "calls", "use": "effort", "part": "calls"}
    named = _agent_task(tmp_path, metrics=["accuracy", of_calls])
    assert named == [accuracy, ("calls", "effort", "effort")]
