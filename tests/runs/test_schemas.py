"""What runs write is what the published schemas say, with every kind of record that there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evalwright.runs
from evalwright import ScriptedModel, evaluate, scorer
from evalwright.core.errors import RateLimited
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import Task
from evalwright.models.model_interface import Pacing
from evalwright.runs.reader import Run
from evalwright.runs.records import record_row
from evalwright.tasks.loading import task_from_definition

jsonschema = pytest.importorskip("jsonschema")

SCHEMAS = Path(evalwright.runs.__file__).parent / "schemas"


pytestmark = pytest.mark.usefixtures("own_folder")


def validator(name: str) -> Any:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def valid_rows(run: Run) -> list[dict[str, Any]]:
    """The run's lines, after both files were found to be as their schemas say."""
    validator("run").validate(
        strict((run.folder / "run.json").read_text(encoding="utf-8"))
    )
    line = validator("sample")
    rows = [
        strict(text)
        for text in (run.folder / "samples.jsonl")
        .read_text(encoding="utf-8")
        .split("\n")[:-1]
    ]
    for row in rows:
        line.validate(row)
    assert [record_row(record) for record in run.samples()] == rows
    return rows


def small_task(**more: Any) -> Task:
    days = enumerate(("2026-01-02", None, "2026-03-04", "2026-05-06"))
    asked = [
        {"id": str(i), "input": f"Question {i}?", "target": str(i), "day": day}
        for i, day in days
    ]
    rows = [{**row, "options": ["0", "1", "2", "3"]} for row in asked]
    metadata = {"created_at": "{{ day }}", "domain": "numbers"}
    sample = {"cluster": "c{{ id | int // 2 }}", "metadata": metadata}
    return task_from_definition(
        {"task": "small", "dataset": {"rows": rows}, "sample": sample, **more}
    )


def test_the_bundled_benchmark_with_a_real_model() -> None:
    (run,) = evaluate("factual", "demo/small", limit=6)
    rows = valid_rows(run)
    assert len(rows) == 6 * len(run.tasks) == 42
    assert any("passages" in row for row in rows)
    assert any("cluster" in row for row in rows)
    assert all(isinstance(row["prompt"], str) for row in rows)


def test_chat_prompts_reasoning_usage_and_cost() -> None:
    def says(request: Any) -> Response:
        return Response(
            "<think>Hm.</think>Paris",
            finish_reason="stop",
            usage=Usage(5, 3, 1, 1),
            cost=0.01,
            model="m-1",
        )

    (run,) = evaluate("factual-closed-book", ScriptedModel(says), limit=4)
    rows = valid_rows(run)
    assert rows[0]["prompt"][0][0] == "system"
    assert rows[0]["reasoning"] == "Hm."
    assert rows[0]["responses"][0]["cost"] == 0.01
    assert run.data["usage"]["cost"] == pytest.approx(0.04)


def test_failures_of_models_and_scorers() -> None:
    @scorer("test-schema-picky")
    def picky(sample: Sample, answer: Answer) -> Score:
        if sample.target == "2":
            raise ValueError("no")
        return Score(0.5, "half", "because", {"length": 3.0})

    def ill(request: Any, asked: int) -> RateLimited | None:
        return (
            RateLimited("Slow down.", status=429)
            if request.prompt == "Question 1?"
            else None
        )

    model = ScriptedModel("\ud800 odd", failures=ill, pacing=Pacing(max_attempts=1))
    (run,) = evaluate(
        small_task(scorers=["test-schema-picky"], metrics=["mean"]), model
    )
    rows = valid_rows(run)
    assert [sorted(set(row) & {"failure", "score_failures"}) for row in rows] == [
        [],
        ["failure"],
        ["score_failures"],
        [],
    ]
    assert rows[0]["answer"] == "\ud800 odd"
    assert run.n_missing == 2


@pytest.mark.parametrize("mode", ["likelihood", "letter", "continuation", "perplexity"])
def test_every_way_of_answering_by_likelihood(mode: str) -> None:
    sample = {"choices": "{{ options }}"} if mode in ("likelihood", "letter") else {}
    (run,) = evaluate(small_task(sample=sample, answer={"mode": mode}), "scripted/hash")
    rows = valid_rows(run)
    assert all(row["log_likelihoods"] for row in rows)
    if mode in ("likelihood", "letter"):
        assert all(row["choices"][row["choice"]] == row["answer"] for row in rows)


def test_a_log_likelihood_of_minus_infinity_is_recorded() -> None:
    model = ScriptedModel(
        lambda request: float("-inf") if "' 0'" in repr(request) else -1.0
    )
    task = small_task(
        sample={"choices": "{{ options }}"}, answer={"mode": "likelihood"}
    )
    (run,) = evaluate(task, model)
    assert valid_rows(run)[0]["log_likelihoods"][0] == float("-inf")
    assert run.n_missing == 0


def test_the_schemas_refuse_what_is_not_theirs() -> None:
    (run,) = evaluate(small_task(), "scripted/echo")
    data = dict(run.data)
    for broken in (
        {**data, "extra": 1},
        {key: data[key] for key in data if key != "usage"},
        {**data, "schema": 3},
    ):
        with pytest.raises(jsonschema.ValidationError):
            validator("run").validate(broken)
    row = next(run.rows())
    for bad in (
        {**row, "extra": 1},
        {**row, "index": "0"},
        {**row, "scores": {"s": {}}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            validator("sample").validate(bad)


def test_stopping_rules_and_budgets() -> None:
    """A rule about two models, one about each, a budget; a run that a rule ended, one that the
    budget ended, one of both.
    """
    models = [ScriptedModel("1", name="one"), ScriptedModel("2", name="two")]
    until = ["A beats B", "A differs from B or not by 0.3", "accuracy +-0.4"]
    for more in (
        {"until": until},
        {"budget": "3 requests"},
        {"until": until, "budget": ["1 USD"], "price": ["1/2"]},
    ):
        for run in evaluate(small_task(), models, **more):
            valid_rows(run)
            assert "stopping" in run.data
            if "until" in more:
                validator("plan").validate(
                    strict((run.folder / "plan.json").read_text(encoding="utf-8"))
                )
