"""Tasks with tools from the file to the record: run, stored, killed in the middle, replayed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright import ScriptedModel, evaluate, load_task
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.requests import Generate, Request
from support.command import records
from support.typed import typed

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ROOT / "tests" / "tools" / "mcp_servers"
SCHEMA = json.loads(
    (ROOT / "src/evalwright/runs/schemas/sample.schema.json").read_text()
)
TOOLS = '''
from evalwright import tool

@tool
def get_weather(city: str) -> str:
    """Look up the weather of a city.

    Args:
        city: its name.
    """
    if city == "Atlantis":
        raise LookupError("no such city")
    return f"{city}: 21 degrees"
'''
BOT = """
def answer(messages, *, tools=()):
    last = messages[-1]
    if last["role"] == "user":
        city = last["content"].split()[-1]
        return {"tool_calls": [{"name": tools[0]["name"], "arguments": {"city": city}, "id": city}]}
    return "21" if "21" in last["content"] else "unknown"
"""
ROWS = [{"input": "Oslo", "target": "21"}, {"input": "Atlantis", "target": "unknown"}]


@pytest.fixture(autouse=True)
def folder(own_folder: Path) -> Path:
    (own_folder / "weather.py").write_text(TOOLS)
    (own_folder / "bot.py").write_text(BOT)
    return own_folder


def write(**changes: Any) -> str:
    task = {
        "task": "weather",
        "dataset": {"rows": ROWS},
        "prompt": {"user": "How warm is it in {{ input }}"},
        "tools": ["weather.py"],
        "strategy": "tool-loop",
        "scorers": ["exact-match"],
    }
    Path("task.yaml").write_text(yaml.safe_dump({**task, **changes}))
    return "task.yaml"


def rows_of(run: Any) -> list[dict[str, Any]]:
    text = (Path(run) / "samples.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        jsonschema.validate(row, SCHEMA)
    return rows


def test_a_run_with_tools_and_what_it_leaves(folder: Path) -> None:
    write()
    named = ("--model", "python/bot.py:answer", "--name")
    refused = typed("run", "task.yaml", *named, "refused", folder=folder)
    assert refused.code == 2 and "--trust '.'" in refused.err, refused.text
    first = typed("run", "task.yaml", *named, "first", "--trust", ".", folder=folder)
    assert first.code == 0 and "4 sent, 0 from the store" in first.text, first.text
    rows = rows_of(folder / "runs" / "first")
    assert [row["scores"]["exact-match"]["value"] for row in rows] == [1, 1]
    by_input = {row["input"]: row for row in rows}
    turns = by_input["Atlantis"]["prompt"]
    assert turns[1][2]["tool_calls"] == [
        {"name": "get_weather", "arguments": '{"city": "Atlantis"}', "id": "Atlantis"}
    ]
    assert turns[2] == [
        "tool",
        "LookupError: no such city",
        {"tool_call_id": "Atlantis", "tool_name": "get_weather", "is_error": True},
    ]
    assert len(by_input["Oslo"]["timing"]["tool_calls"]) == 1
    assert "tools" not in rows[0]  # the run's record lists them
    recorded = json.loads((folder / "runs" / "first" / "run.json").read_text())[
        "tasks"
    ][0]["definition"]["tools"]
    assert (
        recorded[0]["tools"][0]["parameters"]["properties"]["city"]["description"]
        == "its name."
    )
    again = typed("run", "task.yaml", *named, "again", "--trust", ".", folder=folder)
    assert "0 sent, 4 from the store" in again.text, again.text
    assert records(folder / "runs" / "again") == records(folder / "runs" / "first")
    replayed = typed(
        "run",
        "task.yaml",
        "--model",
        "replay/runs/first",
        "--name",
        "replayed",
        "--trust",
        ".",
        folder=folder,
    )
    assert replayed.code == 0, replayed.text
    assert records(folder / "runs" / "replayed") == records(folder / "runs" / "first")


def test_a_model_without_tools_is_refused_before_anything_is_sent(folder: Path) -> None:
    write(strategy="single-draw")
    (folder / "plain.py").write_text("def answer(messages):\n    raise SystemExit\n")
    done = typed(
        "run",
        "task.yaml",
        "--model",
        "python/plain.py:answer",
        "--trust",
        ".",
        folder=folder,
    )
    assert done.code == 2 and "does not take tools" in done.err, done.text
    demo = typed(
        "run", "task.yaml", "--model", "demo/small", "--trust", ".", folder=folder
    )
    assert demo.code == 2 and "chat" in demo.err, demo.text


def weather_bot(request: Request) -> Any:
    assert isinstance(request, Generate)
    last = request.prompt[-1]
    if last.role == "user":  # type: ignore[union-attr]
        city = last.text.split()[-1]  # type: ignore[union-attr]
        return {"tool_calls": [{"name": "get_weather", "arguments": {"city": city}}]}
    return "21" if "21" in last.text else "unknown"  # type: ignore[union-attr]


def test_what_was_asked_before_a_failure_is_not_asked_again() -> None:
    """The second request of a sample fails; the next run sends only that one."""
    broken = True

    def bot(request: Request) -> Any:
        if broken and request.prompt[-1].role == "tool":  # type: ignore[union-attr]
            raise RequestFailed(Failure("overloaded", "provider", "Try later."))
        return weather_bot(request)

    task = load_task(write(), trust=["."])
    model = ScriptedModel(bot, name="bot", version="1")
    (run,) = evaluate(task, model, name="first")
    assert run.n_missing == 2
    sent = model.asked
    broken = False
    (run,) = evaluate(task, ScriptedModel(bot, name="bot", version="1"), name="second")
    assert run.n_missing == 0
    assert sent == 4
    rows = rows_of(run.folder)
    assert [row["answer"] for row in rows] == ["21", "unknown"]


def test_scripted_results_of_rows() -> None:
    rows = [
        {
            **row,
            "results": [
                {
                    "name": "get_weather",
                    "arguments": {"city": row["input"]},
                    "result": {"degrees": 21},
                }
            ],
        }
        for row in ROWS[:1]
    ]
    definition = {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    task = load_task(
        write(
            dataset={"rows": [{**row, "offered": [definition]} for row in rows]},
            tools="{{ offered }}",
            strategy={"name": "tool-loop", "results": "{{ results }}"},
        )
    )
    (run,) = evaluate(task, ScriptedModel(weather_bot, name="bot", version="1"))
    (row,) = rows_of(run.folder)
    assert row["answer"] == "21"
    assert row["prompt"][2][1] == '{"degrees": 21}'
    assert row["tools"] == [definition]


@pytest.mark.parametrize("session", ["sample", "run"])
def test_a_task_with_an_mcp_server(session: str) -> None:
    pytest.importorskip("mcp")
    server = {
        "mcp": [sys.executable, str(SERVERS / "weather_server.py")],
        "env": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        "only": ["get_weather"],
        "session": session,
    }
    task = load_task(write(tools=[server]), trust=["."])
    (run,) = evaluate(task, ScriptedModel(weather_bot, name="bot", version=session))
    rows = rows_of(run.folder)
    assert [row["answer"] for row in rows] == ["21", "21"]
    assert rows[0]["tools"][0]["name"] == "get_weather"
    assert json.loads((Path(run.folder) / "run.json").read_text())["tasks"][0][
        "definition"
    ]["tools"][0]["env"] == ["PYTHONPATH"]


def test_a_server_that_cannot_be_used_leaves_samples_missing() -> None:
    pytest.importorskip("mcp")
    task = load_task(write(tools=[{"mcp": "no-such-program-here"}]), trust=["."])
    (run,) = evaluate(task, ScriptedModel(weather_bot, name="bot", version="1"))
    assert run.n_missing == 2
    failure = rows_of(run.folder)[0]["failure"]
    assert failure["party"] == "task" and "cannot be started" in failure["message"]
