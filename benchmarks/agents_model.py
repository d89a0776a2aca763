"""A chat server that plays each terminal task's reference solution, for measuring agents.

    python agents_model.py ROWS [--seconds 0]

It keeps nothing of a conversation: the first user turn says which task it is, the number of the
assistant's turns says which step. The first step asks for the working folder, and later ones name
that folder where the solution says /work. `GET /counts` has the number of each request.

Prints its port and runs until it is stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

from aiohttp import web

from measuring import serve_forever

SOLUTION = "SOLUTION"
STEPS = (
    "pwd",
    "ls -la",
    "find . -type f -not -path '*/.*' | sort | head -50",
    'for name in $(ls -p | grep -v / | head -3); do echo "== $name"; head -n 20 "$name"; done',
    "wc -l $(ls -p | grep -v /) < /dev/null | tail -n 1",
    "git -C repo log --oneline 2> /dev/null | wc -l",
    SOLUTION,
    "find . -type f -not -path '*/.*' | sort | head -50",
    'for name in $(ls -p | grep -v / | head -3); do echo "== $name"; head -n 20 "$name"; done',
    "ls -p | wc -l",
    "python3 --version",
)
"""What the model does before it submits: it looks, does the job, and looks again."""
N_REQUESTS = len(STEPS) + 1
"""The requests of one task."""


class Player:
    """Answers requests.

    Args:
        solutions: by the instruction of each task, its solution.
        seconds: how long a reply takes.
    """

    def __init__(self, solutions: dict[str, str], seconds: float) -> None:
        self._solutions = solutions
        self._seconds = seconds
        self.counts: Counter[str] = Counter()

    async def chat(self, request: web.Request) -> web.Response:
        """Play the next step of a conversation."""
        body = await request.json()
        messages: list[dict[str, Any]] = body["messages"]
        asked = "\n".join(_text(turn) for turn in messages if turn["role"] == "user")
        instruction = next(text for text in self._solutions if text in asked)
        step = sum(turn["role"] == "assistant" for turn in messages)
        self.counts[f"{list(self._solutions).index(instruction)} {step}"] += 1
        if self._seconds:
            await asyncio.sleep(self._seconds)
        return web.json_response(_reply(self._call(instruction, step, messages), step))

    def _call(
        self, instruction: str, step: int, messages: list[dict[str, Any]]
    ) -> tuple[str, dict[str, str]]:
        if step >= len(STEPS):
            return "submit", {"answer": "Done."}
        command = STEPS[step]
        if command == SOLUTION:
            folder = next(_text(turn) for turn in messages if turn["role"] == "tool")
            folder = folder.strip().splitlines()[0]
            command = self._solutions[instruction].replace("/work", folder)
        return "bash", {"command": command}

    async def show_counts(self, request: web.Request) -> web.Response:
        """The number of requests: of each step of each task, or of all."""
        if "short" in request.query:
            return web.json_response({"received": self.counts.total()})
        return web.json_response(self.counts)

    async def forget(self, request: web.Request) -> web.Response:
        """Begin to count anew."""
        self.counts.clear()
        return web.json_response({})


def _text(turn: dict[str, Any]) -> str:
    content = turn.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def _reply(call: tuple[str, dict[str, str]], step: int) -> dict[str, Any]:
    name, arguments = call
    function = {"name": name, "arguments": json.dumps(arguments)}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": f"call_{step}", "type": "function", "function": function}
        ],
    }
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "player",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960},
    }


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=Path)
    parser.add_argument("--seconds", type=float, default=0.0)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.rows.open(encoding="utf-8")]
    solutions = {row["instruction"].strip(): row["solution"] for row in rows}
    player = Player(solutions, options.seconds)
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/chat/completions", player.chat)
    app.router.add_get("/counts", player.show_counts)
    app.router.add_post("/forget", player.forget)
    await serve_forever(app)


if __name__ == "__main__":
    asyncio.run(main())
