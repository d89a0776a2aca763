"""Tasks with a sandbox from file to score: hidden files by row, scoring again, what is missing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright import evaluate, model, score_run
from evalwright.runs.reader import Run
from support.left_states import needs_jail

pytestmark = [needs_jail, pytest.mark.usefixtures("own_folder")]

ROWS = [
    {"id": "double", "question": "Write double.py.", "factor": 2, "expected": "2 4"},
    {"id": "triple", "question": "Write triple.py.", "factor": 3, "expected": "3 6"},
]
CHECK = """import subprocess, sys
reply = subprocess.run(
    [sys.executable, '/work/{name}.py'], capture_output=True, text=True
)
sys.exit(reply.stdout.split() != [{numbers}])
"""


def write_task(folder: Path, **changes: Any) -> Path:
    """A task whose hidden tests are a folder for each row."""
    folder.mkdir()
    for row in ROWS:
        tests = folder / "tests" / str(row["id"])
        tests.mkdir(parents=True)
        numbers = ", ".join(f"'{number}'" for number in str(row["expected"]).split())
        (tests / "check.py").write_text(CHECK.format(name=row["id"], numbers=numbers))
    definition = {
        "task": "multiples",
        "dataset": {"rows": ROWS},
        "sample": {"input": "{{ question }}"},
        "prompt": {"user": "{{ question }}"},
        "sandbox": {"backend": "jail", "environment": {"FACTOR": "{{ factor }}"}},
        "files": {"/work/README": "Write {{ id }}.py."},
        "solution": "echo 'import os; f = int(os.environ[\"FACTOR\"]); print(f, 2 * f)'"
        " > {{ id }}.py",
        "strategy": "agent",
        "scorers": [
            {
                "command": {
                    "run": "python3 /tests/check.py",
                    "files": {"/tests": {"from": "tests/{{ id }}"}},
                }
            },
            {"files": {"/work/out.txt": "{{ expected }}"}},
        ],
        "metrics": [
            {"accuracy": {"scorer": "command"}},
            {"mean": {"scorer": "files", "name": "file"}},
        ],
        **changes,
    }
    path = folder / "task.yaml"
    path.write_text(yaml.safe_dump(definition))
    return path


@model(name="writer", fingerprint="1")
def writer(
    messages: Sequence[dict[str, Any]], *, tools: Any = (), **settings: Any
) -> dict[str, Any]:
    """Writes the program of the first row rightly, and the file of the second."""
    question = next(turn["content"] for turn in messages if turn["role"] == "user")
    n_replies = sum(turn["role"] == "assistant" for turn in messages)
    if n_replies == 0 and "double" in question:
        command = "ls / > seen.txt; echo 'print(2, 4)' > double.py"
    elif n_replies == 0:
        command = "echo 'print(1)' > triple.py; echo 3 6 > out.txt; ls /tests"
    else:
        return {"tool_calls": [{"name": "submit", "arguments": {"answer": "done"}}]}
    return {"tool_calls": [{"name": "bash", "arguments": {"command": command}}]}


def by_id(run: Run) -> dict[str, dict[str, float]]:
    return {
        record.sample.id: {name: score.value for name, score in record.scores.items()}
        for record in run.samples()
    }


RIGHT = {
    "double": {"command": 1.0, "files": 0.0},
    "triple": {"command": 0.0, "files": 1.0},
}


def test_a_task_is_scored_and_scored_again(own_folder: Path) -> None:
    path = write_task(own_folder / "task")
    (run,) = evaluate(path, writer, name="first")
    assert by_id(run) == RIGHT
    texts = (run.folder / "samples.jsonl").read_text()
    definition = json.dumps(run.data["tasks"][0]["definition"])
    assert "subprocess" not in texts + definition  # no hidden test in the record
    assert str(own_folder) not in definition

    # Scoring again needs neither the model nor the task's folder.
    shutil.rmtree(own_folder / "task")
    again = score_run("first", name="second")
    assert by_id(again) == RIGHT
    one = score_run(
        "first", scorers=[{"command": {"run": "test -e seen.txt"}}], name="x"
    )
    assert {name: scores["command"] for name, scores in by_id(one).items()} == {
        "double": 1.0,
        "triple": 0.0,
    }


def test_hidden_files_and_states_that_are_gone_are_said(own_folder: Path) -> None:
    path = write_task(own_folder / "task")
    evaluate(path, writer, name="first")
    hidden = own_folder / "home" / "sandboxes" / "hidden"
    (archive,) = hidden.iterdir()
    archive.write_bytes(b"x" + archive.read_bytes()[1:])
    again = score_run("first", name="second")
    failures = [record.score_failures for record in again.samples()]
    assert all("hidden files" in each["command"].message for each in failures)
    assert [scores.get("files") for scores in by_id(again).values()] == [0.0, 1.0]
    archive.unlink()
    shutil.rmtree(own_folder / "home" / "sandboxes" / "jail")
    gone = score_run("first", name="third")
    failures = [record.score_failures for record in gone.samples()]
    assert all("not on this machine" in each["files"].message for each in failures)
    assert gone.n_missing == 2


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_state_that_is_damaged_is_made_again(own_folder: Path, is_cut: bool) -> None:
    path = write_task(own_folder / "task")
    evaluate(path, writer, name="first")
    for archive in (own_folder / "home" / "sandboxes" / "jail").iterdir():
        content = archive.read_bytes()
        archive.write_bytes(content[:-9] if is_cut else content[:-9] + b"damaged!!")
    scored = score_run("first", name="second")
    for record in scored.samples():
        messages = [failure.message for failure in record.score_failures.values()]
        assert all("not on this machine" in message for message in messages)
        assert any("is damaged" in message for message in messages)
    (run,) = evaluate(path, writer, name="first")
    assert by_id(run) == RIGHT
    assert by_id(score_run("first", name="third")) == RIGHT


def test_a_set_up_that_fails_is_missing(own_folder: Path) -> None:
    path = write_task(own_folder / "task", setup="test {{ id }} != triple")
    (run,) = evaluate(path, writer, name="first")
    assert by_id(run) == {"double": RIGHT["double"], "triple": {}}
    records = {record.sample.id: record for record in run.samples()}
    failure = records["triple"].failure
    assert failure is not None
    assert failure.party == "sandbox"
    assert "set-up" in failure.message


def test_a_record_decides_on_no_options_and_no_network(own_folder: Path) -> None:
    path = write_task(own_folder / "task")
    evaluate(path, writer, name="first")
    file = own_folder / "runs" / "first" / "run.json"
    record = json.loads(file.read_text())
    record["tasks"][0]["definition"]["sandbox"]["options"] = {"read_only": ["/root"]}
    file.write_text(json.dumps(record))
    again = score_run("first", name="second")
    failures = [record.score_failures for record in again.samples()]
    assert all("read_only" in each["command"].message for each in failures)
