"""The simulated user of `agent`: its options, its script, the model that plays it, and resuming."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright import Generate, Response, ScriptedModel, evaluate
from evalwright.core.errors import ConfigurationError, TaskError, UsageError
from evalwright.core.requests import Request
from evalwright.core.tool_calls import ToolCall
from evalwright.strategies.simulated_user import (
    END_MARK,
    INSTRUCTIONS,
    ScriptedUser,
    read_script,
)
from evalwright.tasks.loading import task_from_definition
from support.left_states import needs_jail
from support.patience import within_growing_seconds

PROGRAM = """
import json, sys
arguments = json.load(sys.stdin)
with open("/desk/log.txt", "a") as file:
    file.write(sys.argv[1] + " " + str(arguments.get("text")) + "\\n")
if arguments.get("text") == "break":
    sys.exit("It is broken.")
if arguments.get("text") == "hang":
    import time
    time.sleep(600)
print("noted", open("/desk/log.txt").read().count("\\n"))
"""
NOTE = {
    "name": "note",
    "description": "Note something.",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
}
SCRIPT = [
    {"when": "name", "say": "Ada.", "to": "known"},
    {"in": "known", "when": ["sure", "Confirm"], "say": "Yes."},
    {"in": "known", "when": "Done", "ends": True},
    {"say": "Pardon?", "again": True},
]


def definition(**changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "task": "desk",
        "dataset": {"rows": [{"id": "a", "question": "Hello.", "script": SCRIPT}]},
        "sample": {"input": "{{ question }}"},
        "prompt": {"system": "Policy.", "user": "{{ question }}"},
        "sandbox": "jail",
        "files": {"/desk/desk.py": PROGRAM},
        "tools": [{"command": ["python3", "/desk/desk.py"], "tools": [NOTE]}],
        "strategy": {"name": "agent", "user": {"script": "{{ script }}"}},
        "scorers": [{"files": {"/desk/log.txt": "note one"}}],
    }
    return {**content, **changes}


class Agent:
    """A model that goes through a list of replies: texts, and arguments of `note`."""

    def __init__(self, *replies: str | dict[str, Any]) -> None:
        self.replies = replies
        self.n_requests = 0
        self.model = ScriptedModel(self._reply)

    def _reply(self, request: Request) -> Response:
        assert isinstance(request, Generate)
        assert not isinstance(request.prompt, str)
        self.n_requests += 1
        if request.prompt[0].text.startswith(INSTRUCTIONS):
            n_said = sum(turn.role == "assistant" for turn in request.prompt)
            return Response(["Ada.", END_MARK][n_said - 1], finish_reason="stop")
        step = sum(turn.role == "assistant" for turn in request.prompt)
        reply = self.replies[step]
        if isinstance(reply, str):
            return Response(reply, finish_reason="stop")
        call = ToolCall("note", json.dumps(reply), f"c{step}")
        return Response("", tool_calls=(call,), finish_reason="tool_calls")


def record_of(agent: Agent, content: dict[str, Any], **settings: Any) -> Any:
    task = task_from_definition(content, chat=True)
    (run,) = evaluate(task, agent.model, **settings)
    (record,) = run.samples()
    return record


REPLIES: tuple[Any, ...] = (
    "Your name?", "What?", {"text": "one"}, "Are you sure?", "Done.",
)  # fmt: skip


@needs_jail
def test_a_script_has_states_and_conditions(own_folder: Path) -> None:
    record = record_of(Agent(*REPLIES), definition())
    assert record.failure is None, record.failure
    turns = [turn.text for turn in record.answer.prompt if turn.role == "user"]
    assert turns == ["Hello.", "Ada.", "Pardon?", "Yes."]
    assert record.answer.strategy["user"] == {"turns": 3, "ended": "user"}
    assert record.answer.text == "Done."
    assert record.scores["files"].value == 1.0


@needs_jail
def test_the_user_stops_at_the_limit_of_turns(own_folder: Path) -> None:
    user = {"script": [{"say": "Why?", "again": True}], "turns": 2}
    record = record_of(
        Agent("A.", "B.", "C."), definition(strategy={"name": "agent", "user": user})
    )
    assert record.answer.strategy["user"] == {"turns": 2, "ended": "turns"}
    assert record.answer.text == "C."


@needs_jail
def test_what_was_stored_is_not_asked_for_again(own_folder: Path) -> None:
    user = {"prompt": "{{ question }} You are Ada."}
    content = definition(strategy={"name": "agent", "user": user})
    agent = Agent("Your name?", {"text": "one"}, "Done.")
    for n_requests in (5, 5):
        record = record_of(agent, content, roles={"user": agent.model}, replace=True)
        assert record.failure is None, record.failure
        assert record.answer.strategy["user"] == {"turns": 1, "ended": "user"}
        assert agent.n_requests == n_requests
    assert record.answer.strategy["tool_calls"][0]["replayed"]
    assert record.scores["files"].value == 1.0


@needs_jail
def test_a_program_that_fails_or_hangs_is_a_result(own_folder: Path) -> None:
    replies = ({"text": "break"}, {"text": "hang"}, {"text": "ü"}, "Done.")

    def check(seconds: float) -> None:
        sandbox = {"backend": "jail", "limits": {"seconds": seconds}}
        content = definition(strategy="agent", scorers=["outcome"], sandbox=sandbox)
        record = record_of(Agent(*replies), content, replace=True)
        results = [turn for turn in record.answer.prompt if turn.role == "tool"]
        assert [turn.is_error for turn in results] == [True, True, False]
        assert results[0].text == "It is broken."
        assert "ran out of seconds" in results[1].text
        assert results[2].text == "noted 3"

    within_growing_seconds(check, (2.0, 20.0, 120.0))


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("ada", "is a mapping of `script`"),
        ({}, "either `script`"),
        ({"script": [], "prompt": "x"}, "either `script`"),
        ({"script": [], "role": "user"}, "leave out `role`"),
        ({"script": [], "turns": 0}, "from 1 to 1,000"),
        ({"prompt": "x", "role": 3}, "is a name"),
        ({"scripts": []}, "Did you mean 'script'"),
    ],
)
def test_options_are_checked(user: Any, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        task_from_definition(
            definition(strategy={"name": "agent", "user": user}), chat=True
        )


def test_a_loop_speaks_for_the_user_itself() -> None:
    strategy = {"name": "agent", "user": {"script": []}, "loop": "mine.loop"}
    with pytest.raises(TaskError, match="both 'loop' and 'user'"):
        task_from_definition(definition(strategy=strategy), chat=True)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("hello", "is a list"),
        (["hello"], "Rule 1 .* is not a mapping"),
        ([{"say": "x"}, {"says": "y"}], "Did you mean 'say'"),
        ([{"say": "x", "ends": True}], "either `say` or"),
        ([{}], "either `say` or"),
        ([{"say": 3}], "are texts"),
        ([{"say": "x", "again": "yes"}], "true or false"),
        ([{"say": "x", "when": [3]}], "`when` and `in`"),
    ],
)
def test_rules_are_checked(script: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_script(script)


async def answers(user: ScriptedUser, *texts: str) -> list[str | None]:
    return [await user.answer(None, text) for text in texts]  # type: ignore[arg-type]


def test_a_rule_is_used_once_unless_it_says_so() -> None:
    import asyncio

    user = ScriptedUser(
        read_script([{"say": "a"}, {"when": "x", "say": "b", "again": True}])
    )
    assert asyncio.run(answers(user, "X", "X", "xx", "y")) == ["a", "b", "b", None]


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([{"command": "python3", "tools": [NOTE]}], "a list such as"),
        ([{"command": [], "tools": [NOTE]}], "a list such as"),
        ([{"command": ["a"]}], "needs `tools`"),
        ([{"command": ["a"], "tool": [NOTE]}], "Did you mean 'tools'"),
        ([{"command": ["a"], "tools": [NOTE]}, NOTE], "Two tools"),
    ],
)
def test_tools_of_a_program_are_checked(tools: Any, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        task_from_definition(definition(tools=tools), chat=True)


def test_a_program_needs_a_sandbox() -> None:
    content = definition(tools=[{"command": ["a"], "tools": [NOTE]}])
    del content["sandbox"], content["files"]
    with pytest.raises((TaskError, ConfigurationError), match="sandbox"):
        task_from_definition({**content, "scorers": ["words"]}, chat=True)
