"""The bundled terminal tasks: the reference solutions score 1, doing nothing and tempting wrong
solutions score 0.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright import Generate, Response, ScriptedModel, evaluate
from evalwright.core.requests import Request
from evalwright.core.tasks import Task
from evalwright.core.tool_calls import ToolCall
from evalwright.tasks.index import LIBRARY
from evalwright.tasks.loading import load_task
from support.left_states import needs_jail

FOLDER = LIBRARY / "terminal"
WRONG = Path(__file__).parent.parent / "support" / "terminal_wrong"
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (FOLDER / "rows.jsonl").read_text(encoding="utf-8").splitlines()
]
IDS = [row["id"] for row in ROWS]


def agent_with(scripts: Mapping[str, str]) -> ScriptedModel:
    """A model that runs the script of its row's instruction and submits."""

    def reply(request: Request) -> Response:
        assert isinstance(request, Generate)
        assert not isinstance(request.prompt, str)
        turns = [turn for turn in request.prompt if turn.role != "system"]
        if len(turns) > 1:
            call = ToolCall("submit", json.dumps({"answer": "Done."}), "2")
        else:
            command = scripts[turns[0].text]
            call = ToolCall("bash", json.dumps({"command": command}), "1")
        return Response("", tool_calls=(call,), finish_reason="tool_calls")

    return ScriptedModel(reply)


def scores(task: Task, scripts: Mapping[str, str]) -> dict[str, Any]:
    """The score of each sample, and why."""
    by_instruction = {
        row["instruction"]: scripts.get(row["id"], "true") for row in ROWS
    }
    (run,) = evaluate(task, agent_with(by_instruction))
    outcomes = {}
    for record in run.samples():
        assert record.failure is None, record.failure
        score = record.scores["command"]
        outcomes[record.sample.id] = (score.value, score.explanation)
    return outcomes


@pytest.fixture
def task() -> Task:
    return load_task("terminal", chat=True)


def test_there_are_forty_of_three_difficulties() -> None:
    assert len(ROWS) == len(set(IDS)) == 40
    assert set(IDS) == {path.name for path in (FOLDER / "_tasks").iterdir()}
    difficulties = Counter(row["difficulty"] for row in ROWS)
    assert set(difficulties) == {"easy", "medium", "hard"}
    assert min(difficulties.values()) >= 5
    assert len({row["category"] for row in ROWS}) >= 10
    assert len(list(WRONG.iterdir())) >= 15


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_says_what_is_checked_and_shows_no_check(row: dict[str, Any]) -> None:
    assert "hecked" in row["instruction"] or "must" in row["instruction"]
    assert "/tests" not in row["instruction"] + row["setup"] + row["solution"]
    folder = FOLDER / "_tasks" / row["id"]
    assert {path.name for path in folder.iterdir()} == {"files", "tests"}
    check = (folder / "tests" / "check.py").read_text(encoding="utf-8")
    assert re.search(r"^main\(\)$", check, re.MULTILINE)
    # What a model wrote runs in processes of its own.
    assert not re.search(r"sys\.path\.insert\(0, ./work", check)


@needs_jail
@pytest.mark.parametrize(
    ("scripts_of", "value"),
    [
        pytest.param(
            lambda: {row["id"]: row["solution"] for row in ROWS}, 1.0, id="solutions"
        ),
        pytest.param(dict, 0.0, id="nothing", marks=pytest.mark.slow),
        pytest.param(
            lambda: {path.stem: path.read_text("utf-8") for path in WRONG.iterdir()},
            0.0,
            id="wrong-solutions",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_scores(
    task: Task, scripts_of: Callable[[], dict[str, str]], value: float, own_folder: Path
) -> None:
    outcomes = scores(task, scripts_of())
    assert set(outcomes) == set(IDS)
    wrong = {name: why for name, (worth, why) in outcomes.items() if worth != value}
    assert not wrong
