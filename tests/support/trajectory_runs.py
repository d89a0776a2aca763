"""Finished runs of models that acted with tools, written by hand as a strategy records them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright import Run
from support.runs import make_run, rewrite


@dataclass(frozen=True)
class Call:
    """A call and its result; None where it was not carried out."""

    name: str
    arguments: dict[str, Any] | str
    result: str | None = ""
    is_error: bool = False
    seconds: float = 0.4
    replayed: bool = False


@dataclass(frozen=True)
class Reply:
    """One reply of the model."""

    text: str = ""
    calls: Sequence[Call] = ()
    reasoning: str = ""
    seconds: float = 1.2
    tokens: tuple[int, int] = (900, 40)
    cost: float | None = 0.001


@dataclass(frozen=True)
class Acted:
    """A whole trajectory.

    strategy: what is recorded beside the steps, such as `started_anew`. holds_last: whether the
    last reply is a turn of the conversation too.
    """

    replies: Sequence[Reply]
    ended: str = "submit"
    answer: str = "done"
    opening: Sequence[list[Any]] = (
        ["system", "You are at a shell."],
        ["user", "Make the tests pass."],
    )
    strategy: dict[str, Any] = field(default_factory=dict)
    holds_last: bool = True


def record_trajectory(row: dict[str, Any], acted: Acted) -> None:
    """Write a trajectory into a record."""
    prompt: list[Any] = [*acted.opening]
    responses: list[dict[str, Any]] = []
    uses: list[dict[str, Any]] = []
    seconds: list[float] = []
    replayed: list[int] = []
    for step, reply in enumerate(acted.replies):
        calls = [
            {
                "name": call.name,
                "arguments": call.arguments
                if isinstance(call.arguments, str)
                else json.dumps(call.arguments),
                "id": f"call_{step}_{index}",
            }
            for index, call in enumerate(reply.calls)
        ]
        responses.append(
            {
                "text": reply.text,
                "finish_reason": "tool_calls" if calls else "stop",
                "usage": {
                    "input_tokens": reply.tokens[0],
                    "output_tokens": reply.tokens[1],
                },
                **({"cost": reply.cost} if reply.cost is not None else {}),
                **({"reasoning": reply.reasoning} if reply.reasoning else {}),
                **({"tool_calls": calls} if calls else {}),
            }
        )
        is_last = step + 1 == len(acted.replies)
        if is_last and not acted.holds_last:
            continue
        prompt.append(
            ["assistant", reply.text, *([{"tool_calls": calls}] if calls else [])]
        )
        for call, recorded in zip(reply.calls, calls, strict=True):
            if call.result is None:
                continue
            extras = {"tool_call_id": recorded["id"], "tool_name": call.name}
            prompt.append(
                [
                    "tool",
                    call.result,
                    {**extras, **({"is_error": True} if call.is_error else {})},
                ]
            )
            if call.replayed:
                replayed.append(len(uses))
            uses.append({"step": step, "name": call.name, "is_error": call.is_error})
            seconds.append(call.seconds)
    row["prompt"] = prompt
    row["input"] = str(acted.opening[-1][1])
    row["answer"] = acted.answer
    row["responses"] = responses
    row["timing"] = {
        "latency": [reply.seconds for reply in acted.replies],
        "tool_calls": seconds,
        **({"replayed": replayed} if replayed else {}),
        "seconds": {
            "model": sum(reply.seconds for reply in acted.replies),
            "tools": sum(seconds),
        },
    }
    row["strategy"] = {
        "name": "agent",
        "steps": len(responses),
        "ended": acted.ended,
        "tool_calls": uses,
        **acted.strategy,
    }


def trajectory_run(
    folder: Path, trajectories: Sequence[Acted], *, name: str = "acting"
) -> Run:
    """Write a run with one sample for each trajectory; those that submit are right."""
    scores = [float(acted.ended == "submit") for acted in trajectories]
    run = make_run(
        folder, scores={"shell": scores}, name=name, label=name, ids="fix-{}"
    )
    return rewrite(run, lambda row, place: record_trajectory(row, trajectories[place]))


def bash(command: str, result: str | None, exit_code: int = 0, **more: Any) -> Call:
    """A call of `bash`, whose result ends with the exit code where it is not 0."""
    if result is not None and exit_code:
        result = f"{result}\n[exit code {exit_code}]"
    return Call("bash", {"command": command}, result, is_error=bool(exit_code), **more)


def fixing(*, first: str = "ls") -> Acted:
    """A trajectory with what a transcript has to show."""
    long_output = "\n".join(f"tests/test_{n}.py::test_{n} PASSED" for n in range(400))
    program = "\n".join(f"line_{n} = {n}" for n in range(60))
    return Acted(
        [
            Reply("I look around first.", [bash(first, "app.py\ntests")]),
            Reply(
                "",
                [bash("python3 -m pytest -q", f"{long_output}\n1 failed", 1)],
                reasoning="The tests say what is wrong. needle",
            ),
            Reply(
                "Two calls at once.",
                [
                    Call("read_file", {"path": "/work/app.py"}, "def add(a, b):"),
                    Call(
                        "write_file",
                        {"path": "/work/app.py", "content": program},
                        "Written.",
                        replayed=True,
                    ),
                ],
            ),
            Reply("", [bash("python3 -m pytest -q", "2 passed needle")]),
            Reply("It passes.", [Call("submit", {"answer": "done"}, "Submitted.")]),
        ],
        strategy={
            "attempts": 2,
            "started_anew": [
                {"after_calls": 3, "why": "The snapshot was damaged", "dollars": 0.02}
            ],
            "compacted": [
                {
                    "step": 3,
                    "turns": 4,
                    "summary": "The file was written.",
                    "dollars": 0.0003,
                }
            ],
            "sandbox": {"backend": "jail", "fingerprint": "ab", "snapshot": None},
        },
    )
