"""The calls that a task's scorer expects come from a column, and are in each sample's metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright.core.errors import UsageError
from evalwright.tasks.call_columns import with_expected_calls
from evalwright.tasks.loading import load_task

CALLS = [{"name": "weather", "arguments": {"city": "Seoul"}}]


def load(folder: Path, scorer: Any, column: str = "calls", **keys: Any) -> Any:
    row = {"id": "a", "input": "Weather in Seoul?", column: CALLS}
    task = {"task": "t", "dataset": {"rows": [row]}, "scorers": [scorer], **keys}
    path = folder / "t.yaml"
    path.write_text(yaml.safe_dump(task), encoding="utf-8")
    return load_task(str(path))


@pytest.mark.parametrize(
    ("scorer", "column"),
    [
        ("tool-calls", "calls"),
        ({"tool-calls": None}, "calls"),
        ({"tool-calls": {"order": "fixed"}}, "calls"),
        ({"tool-calls": {"expected": "{{ wanted }}"}}, "wanted"),
        ({"name": "right", "use": "tool-calls", "expected": "{{ wanted }}"}, "wanted"),
        ({"use": "tool-calls", "options": {"expected": "{{ wanted }}"}}, "wanted"),
    ],
)
def test_the_column_becomes_metadata(tmp_path: Path, scorer: Any, column: str) -> None:
    task = load(tmp_path, scorer, column)
    (sample,) = task.samples
    assert sample.metadata["calls"] == CALLS
    assert task.scorers[0].options.get("expected", "calls") == "calls"


def test_another_name_is_another_metadata(tmp_path: Path) -> None:
    task = load(tmp_path, {"tool-calls": {"expected": "gold"}}, "gold")
    assert next(iter(task.samples)).metadata == {"gold": CALLS}


def test_metadata_that_the_task_writes_itself_stays(tmp_path: Path) -> None:
    metadata = {"calls": "{{ wanted }}", "kind": "single"}
    task = load(tmp_path, "tool-calls", "wanted", sample={"metadata": metadata})
    assert next(iter(task.samples)).metadata == {"calls": CALLS, "kind": "single"}


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'calls'"):
        load(tmp_path, "tool-calls", "wanted")


@pytest.mark.parametrize(
    "file",
    [
        {"task": "t", "scorers": ["exact-match"]},
        {"task": "t", "scorers": [{"tool-calls": {"expected": CALLS}}]},
        {"task": "t", "scorers": "tool-calls"},
        {"task": "t", "scorers": [5, {"a": 1, "b": 2}]},
        {"task": "t", "scorers": ["tool-calls"], "sample": {"metadata": "x"}},
        {"task": "t", "scorers": ["tool-calls"], "sample": "x"},
        {"task": "t"},
        "text",
    ],
)
def test_other_files_stay_as_they_are(file: Any) -> None:
    assert with_expected_calls(file) is file
