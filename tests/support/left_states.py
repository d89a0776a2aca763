"""Answers of agents that left their sandbox in a state, and scorers of that state, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from evalwright.core.requests import Message, Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.sandboxes.backends import refusal_of, started
from evalwright.sandboxes.plan import PlannedFile, put_files
from evalwright.sandboxes.protocol import SandboxSettings, Snapshot
from evalwright.sandboxes.snapshot_home import snapshot_home
from evalwright.scorers.registry import bind
from evalwright.scorers.sandbox.state import acted_in

needs_jail = pytest.mark.skipif(
    bool(refusal_of(SandboxSettings())), reason="this system gives no jail"
)


async def no_model(role: str, request: Request) -> Response:
    raise AssertionError("no model is asked")


async def left_by(
    script: str,
    files: Mapping[str, str | bytes] | None = None,
    settings: SandboxSettings | None = None,
) -> Snapshot:
    """The state in which a script leaves a sandbox."""
    planned = [
        PlannedFile(path, text.encode() if isinstance(text, str) else text)
        for path, text in (files or {}).items()
    ]
    async with started(settings or SandboxSettings(), snapshot_home(None)) as sandbox:
        await put_files(sandbox, planned)
        executed = await sandbox.exec(["bash", "-c", script])
        assert executed.exit_code == 0, executed
        return await sandbox.snapshot()


def answer_with(snapshot: Snapshot | None, **changes: Any) -> Answer:
    """An answer of the strategy `agent`."""
    sandbox = {
        "backend": "jail",
        "fingerprint": "x",
        "snapshot": None if snapshot is None else snapshot.as_dict(),
    }
    settings: dict[str, Any] = {
        "text": "Done.",
        "prompt": (Message("user", "Do it."),),
        "responses": (Response("Done.", finish_reason="stop"),),
        "strategy": {"name": "agent", "sandbox": sandbox},
    }
    return Answer(**{**settings, **changes})


async def scored(
    kind: str,
    options: Mapping[str, Any],
    answer: Answer,
    sample: Sample | None = None,
) -> Score:
    """The score of an answer by a scorer with options."""
    scorer = bind(kind, options)
    outcome: Any = scorer.function(sample or Sample("a"), answer, no_model)
    score = await outcome
    assert not isinstance(score, NoScore)
    assert isinstance(score, Score)
    return score


def command_on(
    script: str,
    run: str,
    *,
    files: Mapping[str, Any] | None = None,
    before: Mapping[str, str | bytes] | None = None,
    settings: SandboxSettings | None = None,
    **options: Any,
) -> Score:
    """The score of `command` on what a script leaves, in a sandbox with the same settings."""
    settings = settings or SandboxSettings()

    async def work() -> Score:
        answer = answer_with(await left_by(script, before, settings))
        named = {"run": run, **({} if files is None else {"files": files}), **options}
        with acted_in(settings):
            return await scored("command", named, answer)

    return asyncio.run(work())


def files_on(script: str, expected: Mapping[str, Any], **options: Any) -> Score:
    """The score of `files` on what a script leaves."""

    async def work() -> Score:
        answer = answer_with(await left_by(script))
        return await scored("files", {"expected": dict(expected), **options}, answer)

    return asyncio.run(work())
