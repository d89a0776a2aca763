"""The record says on what a run was made and how fast it was; what came from the store was not
fast, it was not asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import evalwright.runs
from evalwright import ScriptedModel, evaluate, score_run
from evalwright.core.responses import Response, Usage
from evalwright.core.tasks import Task
from evalwright.runs.reader import open_run
from evalwright.tasks.loading import task_from_definition
from support.runs import edited

jsonschema = pytest.importorskip("jsonschema")
SCHEMA = Path(evalwright.runs.__file__).parent / "schemas" / "run.schema.json"


pytestmark = pytest.mark.usefixtures("own_folder")


def task() -> Task:
    rows = [{"id": str(i), "input": f"Question {i}?", "target": "1"} for i in range(20)]
    return task_from_definition({"task": "digits", "dataset": {"rows": rows}})


def model() -> ScriptedModel:
    return ScriptedModel(
        lambda request: Response(
            "1",
            usage=Usage(10, 2),
            latency=0.25 if "7" in str(request.payload()) else 0.125,
        ),
        name="scripted/timed",
    )


def checked(data: Mapping[str, Any]) -> dict[str, Any]:
    jsonschema.validate(dict(data), json.loads(SCHEMA.read_text(encoding="utf-8")))
    found: dict[str, Any] = data["hardware"]
    return found


def test_what_was_asked_is_timed_and_what_was_stored_is_not() -> None:
    asked = model()
    (run,) = evaluate(task(), asked, name="first", hardware="bench 1")
    found = checked(run.data)
    assert found["label"] == run.data["configuration"]["hardware"] == "bench 1"
    assert found["model"]["local"] is False
    assert found["throughput"]["answers"] == found["latency"]["n"] == 20
    rates = found["throughput"]
    assert rates["input_tokens_per_second"] == pytest.approx(
        5 * rates["output_tokens_per_second"], rel=1e-3
    )
    assert found["latency"]["p50"] == pytest.approx(0.125, rel=0.01)
    assert found["latency"]["longest"] == 0.25
    assert found["memory"]["peak_rss_bytes"] > 10_000_000
    (again,) = evaluate(task(), asked, name="again")
    assert again.data["identity"] == run.data["identity"]
    stored = checked(again.data)
    assert "label" not in stored
    assert stored["throughput"] is stored["latency"] is None


def test_scoring_again_keeps_what_the_answers_were_made_on() -> None:
    (run,) = evaluate(task(), model(), name="first", hardware="bench 1")
    again = score_run(run, name="again")
    assert checked(again.data) == run.data["hardware"]


def test_a_record_without_it_still_opens() -> None:
    (run,) = evaluate(task(), model(), name="first")
    with edited(run.folder) as data:
        del data["hardware"]
    jsonschema.validate(data, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert open_run(run.folder).tasks == run.tasks
