"""The way of one request is short: few of our frames stand between `ask` and the HTTP library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import evalwright
from evalwright import evaluate
from evalwright.tasks.loading import task_from_definition
from support.openai_server import serving

OURS = str(Path(evalwright.__file__).parent)
MOST = 8


@pytest.mark.parametrize("budget", [None, "100 requests"])
@pytest.mark.parametrize("provider", ["openai", "deepseek"])
def test_from_ask_to_the_http_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str, budget: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    stacks: list[list[str]] = []
    connect = aiohttp.TCPConnector.connect

    async def connecting(connector: aiohttp.TCPConnector, *arguments: Any) -> Any:
        frame: Any = sys._getframe()
        stack = []
        while frame is not None:
            stack.append(f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}")
            frame = frame.f_back
        stacks.append(stack)
        return await connect(connector, *arguments)

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", connecting)
    task = task_from_definition(
        {
            "task": "t",
            "dataset": {"rows": [{"input": "2 + 2?", "target": "4"}]},
            "scorers": ["exact-match"],
        }
    )
    with serving(answer=lambda prompt: "4") as server:
        evaluate(task, f"{provider}/{server.url}#m", budget=budget)
    (stack,) = stacks
    ours = [place.rpartition("/")[2] for place in stack if place.startswith(OURS)]
    # Most requests take a connection that is open: what opens one does not count.
    way = ours[ours.index("http_pool.py:Pool.open") :]
    ask = way.index("engine.py:RoleClient.__call__")
    assert ask + 1 <= MOST, way[: ask + 1]
