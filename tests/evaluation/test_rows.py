"""Rows in Python as a task: lists of mappings and data frames, scorers that are functions, and
arguments that do not fit.
"""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate, evaluate_async
from evalwright.core.errors import (
    ConfigurationError,
    DatasetError,
    RunError,
    UnknownName,
)
from evalwright.evaluation.call_settings import EvaluationSettings
from evalwright.evaluation.configuration import Configuration

ROWS = [
    {"question": f"{number} + {number}?", "target": str(2 * number), "topic": "sums"}
    for number in range(6)
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def prompts_of(run: Any) -> list[str]:
    return [str(row["prompt"]) for row in run.rows()]


def test_a_list_of_mappings_is_a_task() -> None:
    (run,) = evaluate(ROWS, ScriptedModel("4"), prompt="Q: {{ input }}\nA:")
    (task,) = run.tasks
    assert (task.name, task.n_samples) == ("rows", 6)
    assert task.main is not None and task.main.estimate.value == pytest.approx(1 / 6)
    assert "Q: 0 + 0?\\nA:" in prompts_of(run)[0]
    assert next(iter(run.rows()))["metadata"]["topic"] == "sums"


def test_columns_are_named_where_their_names_do_not_say() -> None:
    rows = [{"a": "Say yes.", "b": "yes"}]
    (run,) = evaluate(rows, ScriptedModel("yes"), input="a", target="b", task_name="x")
    assert run.tasks[0].name == "x" and run.score.value == 1.0
    with pytest.raises(DatasetError, match="input="):
        evaluate(rows, ScriptedModel("yes"))
    with pytest.raises(DatasetError, match="no column 'c'"):
        evaluate(rows, ScriptedModel("yes"), input="c")


def test_functions_score_and_each_has_a_metric() -> None:
    def short(sample: Any, answer: Any) -> bool:
        return len(answer.text) < 3

    def length(sample: Any, answer: Any) -> int:
        return len(answer.text)

    (run,) = evaluate(
        ROWS, ScriptedModel("four"), scorers=["exact-match", short, length]
    )
    values = {metric.label: metric.estimate.value for metric in run.tasks[0].metrics}
    assert values == {"accuracy": 0.0, "short": 0.0, "length": 4.0}
    shares = {metric.label: metric.estimate.low for metric in run.tasks[0].metrics}
    assert shares["short"] == 0.0, "True or False: a share, whose range is known"
    (run,) = evaluate(ROWS, ScriptedModel("four"), scorers=length, replace=True)
    assert run.score.value == 4.0


def test_options_are_asked_with_letters() -> None:
    rows = [{"question": "Which?", "choices": ["x", "y"], "target": "B"}]
    (run,) = evaluate(rows, ScriptedModel("B"))
    assert run.score.value == 1.0
    assert "B. y" in prompts_of(run)[0]


def test_data_frames_are_rows() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(ROWS)
    frame.loc[0, "topic"] = None
    (run,) = evaluate(frame, ScriptedModel("4"))
    assert run.tasks[0].n_samples == 6
    polars = pytest.importorskip("polars", reason="polars is not installed")
    (run,) = evaluate(polars.DataFrame(ROWS), ScriptedModel("4"), replace=True)
    assert run.tasks[0].n_samples == 6


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"prompt": "x"}, "prompts="),
        ({"scorers": ["exact-match"]}, "overrides"),
        ({"target": "answer"}, "for rows"),
    ],
)
def test_arguments_of_rows_are_refused_for_tasks(settings: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        evaluate("factual-choice", "demo/small", **settings)


def test_a_mistyped_setting_comes_with_the_closest() -> None:
    with pytest.raises(UnknownName, match="limit"):
        evaluate(ROWS, "demo/small", limt=3)  # type: ignore[call-arg]


def test_a_notebook_sees_every_setting_by_its_name() -> None:
    shown = inspect.signature(evaluate).parameters
    assert {"limit", "roles", "prompts", "budget", "input"} <= set(shown)
    assert "settings" not in shown
    fields = set(Configuration.__dataclass_fields__) - {"tasks", "models"}
    of_calls = {"on", "replicas", "gpus_per_replica", "judge", "worker", "push"}
    assert set(EvaluationSettings.__annotations__) == fields | of_calls


def test_in_an_event_loop() -> None:
    async def two() -> list[Any]:
        return list(
            await asyncio.gather(
                evaluate_async(ROWS, ScriptedModel("2"), name="a"),
                evaluate_async(ROWS, ScriptedModel("4"), name="b", task_name="other"),
            )
        )

    first, second = asyncio.run(two())
    assert (first[0].name, second[0].name) == ("a", "b")


def test_a_run_has_a_score_and_its_tasks_by_name() -> None:
    (run,) = evaluate(ROWS, ScriptedModel("4"), task_name="sums")
    assert run.score == run["sums"].metrics[0].estimate
    with pytest.raises(UnknownName, match="sums"):
        run["sum"]
    (grouped,) = evaluate("factual-choice", "demo/small", limit=2, tree={}, name="tree")
    assert grouped.score == grouped.groups[-1].metrics[0].estimate
    (several,) = evaluate("factual-choice", "demo/small", limit=2, name="several")
    if not several.groups and len(several.tasks) > 1:
        with pytest.raises(RunError, match="no mean"):
            _ = several.score
