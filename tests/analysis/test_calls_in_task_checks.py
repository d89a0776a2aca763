"""`tasks check` of tasks whose answers are calls: what makes a gold call impossible is a fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright.analysis.task_checks.examining import examine
from evalwright.tasks.loading import load_task

TOOL = {
    "name": "weather",
    "description": "Weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"type": "string", "enum": ["c", "f"]},
        },
        "required": ["city"],
    },
}


def faults_of(folder: Path, calls: Any, **keys: Any) -> list[str]:
    rows = [
        {"id": "a", "input": "Weather in Seoul?", "tools": [TOOL], "calls": calls},
        {"id": "b", "input": "Hello!", "tools": [TOOL], "calls": []},
        {"id": "c", "input": "What is a storm?", "tools": [TOOL], "calls": []},
    ]
    if "strategy" in keys:
        rows = [{**row, "results": []} for row in rows]
    task = {
        "task": "t",
        "dataset": {"rows": rows},
        "tools": "{{ tools }}",
        "scorers": ["tool-calls"],
        **keys,
    }
    path = folder / "t.yaml"
    path.write_text(yaml.safe_dump(task), encoding="utf-8")
    first, *_ = examine([load_task(str(path))])
    return [finding.text for finding in first.findings if not finding.ok]


def call(name: str = "weather", **keys: Any) -> dict[str, Any]:
    return {"name": name, "arguments": {"city": "Seoul"}, **keys}


def test_a_gold_call_that_fits_is_no_fault(tmp_path: Path) -> None:
    calls = [call(alternatives={"city": ["서울"]}, optional=["unit"])]
    assert faults_of(tmp_path, calls) == []


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        (call("forecast"), "forecast is not offered"),
        (call(arguments={}), "city"),
        (call(arguments={"city": 5}), "not of type string"),
        (call(arguments={"city": "Seoul", "unit": "k"}), "none of"),
        (call(arguments={"city": "Seoul", "when": "now"}), "no argument 'when'"),
        (call(optional=["city"]), "'city' is required"),
        (call(alternatives={"city": [5]}), "an alternative of 'city'"),
    ],
)
def test_a_gold_call_that_does_not_fit_its_tools_is_one(
    tmp_path: Path, gold: dict[str, Any], reason: str
) -> None:
    (fault,) = faults_of(tmp_path, [gold])
    assert "gold calls do not fit the tools of 1 sample ('a'" in fault
    assert reason in fault


def test_gold_calls_without_results_in_a_loop_are_one(tmp_path: Path) -> None:
    strategy = {"name": "tool-loop", "results": "{{ results }}"}
    (fault,) = faults_of(tmp_path, [call()], strategy=strategy)
    assert "gold calls get an error as their result on 1 sample" in fault


def test_a_task_that_wants_no_calls_at_all_is_to_be_read_beside_others(
    tmp_path: Path,
) -> None:
    assert faults_of(tmp_path, []) == []
    *_, ignoring = examine([load_task(str(tmp_path / "t.yaml"))])
    verdicts = {finding.verdict for finding in ignoring.findings}
    assert verdicts == {"ok", "note"}
    assert any("read scores beside" in finding.text for finding in ignoring.findings)


def test_malformed_expected_calls_are_one(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, [{"arguments": {}}])
    assert "is a mapping with the `name`" in fault


def _doubling(levels: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2}
        for level in range(levels)
    }
    return {**definitions, f"d{levels}": {"type": "string"}}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"city": {"type": "string", "pattern": "^(a+)+$"}}},
        {"properties": {"city": {"$ref": "#/$defs/d0"}}, "$defs": _doubling(40)},
    ],
    ids=["pattern", "references"],
)
def test_a_schema_without_end_is_a_fault(
    tmp_path: Path, schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TOOL, "parameters", {"type": "object", **schema})
    gold = {"name": "weather", "arguments": {"city": "a" * 60 + "!"}}
    (fault,) = faults_of(tmp_path, [gold])
    assert "its schema cannot be checked: it takes more than" in fault
