"""Agents in a test: a scripted model, a store in a folder, and a sandbox that is a folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.core.errors import ModelError
from evalwright.core.requests import Generate, Message, Request
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Strategy
from evalwright.core.tool_calls import ToolCall
from evalwright.engine.actions import StoredActions
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.models.model_interface import Pacing, RemoteModel
from evalwright.sandboxes.plan import PlannedFile, SandboxPlan
from evalwright.sandboxes.protocol import SandboxSettings
from evalwright.strategies.faults import StrategyAsk
from strategies.asking import strategy

SAMPLE = Sample("s1", input="Do it.")
Reply = Response | str | Exception
Script = Callable[[int, Generate], Reply]
"""(how many replies the conversation has, the request) -> the reply."""


def calls(*named: tuple[str, dict[str, Any]], **fields: Any) -> Response:
    """A reply that calls tools."""
    made = tuple(
        ToolCall(name, json.dumps(arguments), f"c{index}")
        for index, (name, arguments) in enumerate(named)
    )
    fields = {"usage": Usage(100, 10), "latency": 0.5, **fields}
    return Response(finish_reason="tool_calls", tool_calls=made, **fields)


def bash(command: str, **fields: Any) -> Response:
    """A reply that calls bash."""
    return calls(("bash", {"command": command}), **fields)


def submit(answer: str, **fields: Any) -> Response:
    """A reply that submits."""
    return calls(("submit", {"answer": answer}), **fields)


class ActingModel(RemoteModel):
    """Replies by a script, and counts."""

    name = "test/acting"
    abilities = frozenset({"generate", "chat"})
    carries = frozenset({"tools", "tool_choice"})

    def __init__(self, script: Script) -> None:
        self.fingerprint = "acting"
        self.script = script
        self.asked: list[Generate] = []
        self.pacing = Pacing(max_attempts=1)

    async def answer(self, request: Request) -> Response:
        assert isinstance(request, Generate)
        self.asked.append(request)
        n_replies = sum(turn.role == "assistant" for turn in turns_of(request))
        reply = self.script(n_replies, request)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            return Response(reply, finish_reason="stop", usage=Usage(100, 10))
        return reply


def after(*replies: Reply) -> Script:
    """A script whose k-th reply is the k-th of these."""
    return lambda n_replies, request: replies[n_replies]


def plan(*files: tuple[str, str], **settings: Any) -> Callable[[Sample], SandboxPlan]:
    """The plan of every sample's sandbox."""
    planned = tuple(PlannedFile(path, text.encode()) for path, text in files)
    setup = settings.pop("setup", "")
    made = SandboxPlan(SandboxSettings("folder", **settings), planned, setup)
    return lambda sample: made


@dataclass
class Acted:
    """What became of a trajectory."""

    answer: Answer
    asked: list[Generate]
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def calls(self) -> list[dict[str, Any]]:
        recorded: list[dict[str, Any]] = self.answer.strategy.get("tool_calls", [])
        return recorded

    @property
    def results(self) -> list[str]:
        """The results of all calls, in order."""
        assert not isinstance(self.answer.prompt, str)
        return [turn.text for turn in self.answer.prompt if turn.role == "tool"]


def agent(options: dict[str, Any] | None = None, **settings: Any) -> Strategy:
    """The strategy, with a sandbox unless the test says otherwise."""
    over_rows = lambda option: lambda sample: option  # noqa: E731
    settings = {"sandbox": plan(), "over_rows": over_rows, **settings}
    return strategy("agent", options, **settings)


def act(
    made: Strategy, script: Script, home: Path, *, draw: int = 0, task: str = "t"
) -> Acted:
    """Let the scripted model act once, over the store in `home`."""
    model = ActingModel(script)
    events: list[dict[str, Any]] = []

    async def work() -> Answer:
        with open_store(home) as store:
            async with Engine(store) as engine:
                door = engine.door({"target": model})
                door.watch(lambda event: events.append(dict(event)))
                return await made(SAMPLE, StrategyAsk(door, task), draw)

    return Acted(asyncio.run(work()), model.asked, events)


def interrupted(n_replies: int, script: Script) -> Script:
    """The script, of a model that fails from that reply on."""

    def until(before: int, request: Generate) -> Reply:
        is_down = before >= n_replies
        return ModelError("It is down.") if is_down else script(before, request)

    return until


async def with_log(home: Path, use: Callable[[StoredActions], Any]) -> Any:
    """Use the log of actions over the store in `home`."""
    with open_store(home) as store:
        async with Engine(store) as engine:
            door = engine.door({"target": ActingModel(after())})
            return await use(door.actions.of_task("t"))


def turns_of(request: Generate) -> tuple[Message, ...]:
    """The turns of a request."""
    assert not isinstance(request.prompt, str)
    return request.prompt


def texts(messages: Sequence[Any]) -> list[str]:
    """The texts of turns."""
    return [turn.text for turn in messages]
