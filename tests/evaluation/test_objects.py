"""What a call in Python may be given: what a file of settings could say in other types is taken,
anything else is named at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright import (
    Callback,
    Score,
    compare,
    evaluate,
    metric,
    open_run,
    scorer,
    strategy,
)
from evalwright.core.errors import UsageError
from evalwright.evaluation.configuration import ModelSpec
from evalwright.evaluation.configuration_file import read_settings
from evalwright.evaluation.objects import Objects, settings_from_python
from evalwright.evaluation.opening import open_roles, open_under_test
from evalwright.models.model_interface import Model
from evalwright.models.registry import open_model
from evalwright.models.scripted import ScriptedModel
from evalwright.runs.reader import Run
from support.command import write_questions
from support.openai_server import serving


@pytest.fixture(autouse=True)
def _questions(own_folder: Path) -> None:
    write_questions(own_folder, 3)


def test_numbers_of_numpy_paths_and_generators_are_taken() -> None:
    (run,) = evaluate(
        (task for task in [Path("questions.yaml")]),
        (model for model in ["scripted/echo"]),
        limit=np.int64(2),
        seed=np.int32(3),
        name=Path("mine"),
        out=Path("other folder/'é'"),
        overrides={"answer.max_tokens": np.int64(5)},
        home=None,
        callbacks=Callback(),
    )
    assert (run.id, run.data["configuration"]["limit"], len(list(run.samples()))) == (
        "mine",
        2,
        2,
    )
    assert run.record("questions")["definition"]["answer"]["max_tokens"] == 5


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"limt": 2}, "Did you mean 'limit'"),
        (
            {"limit": True},
            "'limit' must be a whole number, or a share below 1, not true or false",
        ),
        ({"limit": "2"}, "not text"),
        ({"seed": 1.5}, "'seed' must be a whole number, not a number"),
        ({"name": 3}, "'name' must be text"),
        ({"name": "x" * 300}, "at most 200 bytes"),
        ({"budget": np.float32(0.5)}, "'budget' must be a budget in quotes"),
        ({"where": [1]}, "'where' must be a filter"),
        ({"overrides": ["a=b"]}, "'overrides' must be a mapping"),
        ({"roles": "scripted/echo"}, "'roles' must be a mapping"),
        ({"callbacks": [3]}, "has one of the methods"),
        ({"callbacks": [Callback]}, r"write Callback\(\)"),
    ],
)
def test_settings_of_another_kind_are_named_before_anything_is_sent(
    settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        evaluate("questions.yaml", "scripted/echo", **settings)
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    "tasks, models",
    [
        (None, "scripted/echo"),
        (3, "scripted/echo"),
        ("questions.yaml", None),
        ("questions.yaml", [7]),
    ],
)
def test_what_is_no_task_or_model_is_said(tasks: Any, models: Any) -> None:
    with pytest.raises(UsageError, match=r"^A (task|model) is a name"):
        evaluate(tasks, models)


def test_a_callback_that_would_have_to_be_awaited_is_refused() -> None:
    class Waits:
        async def run_finished(self, run: Any) -> None: ...

    with pytest.raises(UsageError, match=r"run_finished is `async def`"):
        evaluate("questions.yaml", "scripted/echo", callbacks=[Waits()])


def test_a_list_is_compared_as_its_elements_are() -> None:
    several = evaluate("questions.yaml", ["scripted/echo", "scripted/hash"])
    assert compare(several).as_dict() == compare(*several).as_dict()
    assert compare(run for run in several).as_dict() == compare(*several).as_dict()
    with pytest.raises(UsageError, match="not nothing"):
        open_run(None)  # type: ignore[arg-type]


def test_a_decorator_without_a_name_is_refused() -> None:
    for decorator in (scorer, metric, strategy):
        with pytest.raises(UsageError, match="is registered under a name: write @"):
            decorator(lambda *given: None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "made, says",
    [
        (lambda: None, "must give a Score"),
        (lambda: Score(1.0, 3), "must be text"),  # type: ignore[arg-type]
        (lambda: exec("raise SystemExit(3)"), "SystemExit"),
    ],
)
def test_what_a_scorer_gives_wrongly_fails_its_sample(
    made: Callable[[], Any], says: str
) -> None:
    scorer("gives")(lambda sample, answer: made())
    (run,) = evaluate(
        "questions.yaml",
        "scripted/echo",
        overrides={"scorers": ["gives"], "metrics": ["mean"]},
    )
    assert run.n_missing == 3
    assert all(
        says in record.score_failures["gives"].message for record in run.samples()
    )


def test_a_score_of_numpy_is_a_number() -> None:
    scorer("of-numpy")(lambda sample, answer: Score(np.float32(0.5)))  # type: ignore[arg-type]
    (run,) = evaluate(
        "questions.yaml",
        "scripted/echo",
        overrides={"scorers": ["of-numpy"], "metrics": ["mean"]},
    )
    assert [record.scores["of-numpy"].value for record in run.samples()] == [0.5] * 3


def test_a_metric_or_strategy_that_gives_something_else_costs_no_run() -> None:
    metric("half")(lambda column: 0.5)  # type: ignore[type-var]

    @strategy("gives-nothing")  # type: ignore[type-var]
    async def gives_nothing(sample: Any, ask: Any, draw: int, setup: Any) -> None: ...

    (run,) = evaluate(
        "questions.yaml",
        "scripted/echo",
        overrides={"metrics": ["half"]},
        name="metric",
    )
    assert "must give an Estimate, not float" in str(run.data["tasks"][0]["metrics"])
    (run,) = evaluate(
        "questions.yaml",
        "scripted/echo",
        overrides={"strategy": "gives-nothing"},
        name="strategy",
    )
    assert run.n_missing == 3
    assert all("not an Answer" in str(record.failure) for record in run.samples())


def judged(model: Model, judge: Model) -> Run:
    """One question of the file, its answer read by the judge."""
    overrides = {"scorers": [{"judge-correct": {}}], "metrics": ["accuracy"]}
    (run,) = evaluate(
        "questions.yaml", model, roles={"judge": judge}, overrides=overrides, limit=1
    )
    return run


def test_a_judge_may_have_the_name_of_the_model_under_test() -> None:
    with serving() as first, serving() as second:

        def opened(url: str) -> Model:
            return open_model("openai/m", {"base_url": url})

        judged(opened(first.url), opened(first.url))  # equal objects are one model
        sent = sum(first.received.values())
        assert sent >= 2 and not second.received

        run = judged(opened(first.url), opened(second.url))
        assert sum(first.received.values()) == sent, "the answer is in the store"
        assert sum(second.received.values()) >= 1
    assert run.data["model"]["name"] == run.data["roles"]["judge"]["name"] == "openai/m"
    assert run.data["model"]["fingerprint"] != run.data["roles"]["judge"]["fingerprint"]


def test_equal_objects_are_opened_once(tmp_path: Path) -> None:
    objects = Objects()
    first, second, third = (ScriptedModel(text, name="m") for text in ("a", "a", "b"))
    under_test = objects.name_model(first)
    same = objects.name_model(second, role=True)
    another = objects.name_model(third, role=True)
    assert open_under_test(under_test, objects.models, home=tmp_path) is first
    judges = open_roles(
        {"same": same, "another": another, "named": ModelSpec("m")},
        objects.models,
        home=tmp_path,
    )
    assert judges["same"] is first and judges["named"] is first
    assert judges["another"] is third
    assert another.as_dict() == {"model": "m"}
    with pytest.raises(UsageError, match="Two different models are named 'm'"):
        objects.name_model(third)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"format": "chatt"}, "Unknown format 'chatt'. Did you mean 'chat'"),
        ({"tree": {"part": ["factual"]}}, "Unknown key 'part'. Did you mean 'parts'"),
        ({"tree": {"parts": []}}, "needs 'parts', a list"),
    ],
)
def test_values_are_checked_in_python_as_in_a_file(
    tmp_path: Path, setting: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as in_python:
        settings_from_python("factual", "demo/small", setting)
    assert message in str(in_python.value)
    suite = tmp_path / "suite.yaml"
    suite.write_text(json.dumps({"tasks": "factual", **setting}))
    with pytest.raises(UsageError) as in_file:
        read_settings(str(suite), {})
    assert message in str(in_file.value) and "suite.yaml" in str(in_file.value)
