"""The yardstick of `remote.py`: the loop that one writes by hand. It keeps nothing and scores
nothing.

    python remote_bare.py URL QUESTIONS.jsonl CONCURRENCY [aiohttp|pyreqwest]

Its semaphore is at the server's capacity, which it is told; a 429 is asked again after the
Retry-After, or else after a random time that doubles, as is usual. The HTTP client is aiohttp, or
pyreqwest, which has to be installed.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

Post = Callable[[dict[str, Any]], Awaitable[tuple[int, Any, str | None]]]
"""Sends a body; returns the status, the reply's JSON (None unless it is 200), and Retry-After."""


@asynccontextmanager
async def aiohttp_client(url: str, concurrency: int) -> AsyncIterator[Post]:
    """Open a session of aiohttp."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def post(body: dict[str, Any]) -> tuple[int, Any, str | None]:
            async with session.post(url, json=body) as reply:
                if reply.status == 200:
                    return 200, await reply.json(), None
                await reply.read()
                return reply.status, None, reply.headers.get("Retry-After")

        yield post


@asynccontextmanager
async def pyreqwest_client(url: str, concurrency: int) -> AsyncIterator[Post]:
    """Open a client of pyreqwest."""
    pyreqwest = importlib.import_module("pyreqwest.client")
    builder = (
        pyreqwest.ClientBuilder().max_connections(concurrency).error_for_status(False)
    )
    async with builder.build() as client:

        async def post(body: dict[str, Any]) -> tuple[int, Any, str | None]:
            reply = await client.post(url).body_json(body).build().send()
            if reply.status == 200:
                return 200, await reply.json(), None
            await reply.bytes()
            return reply.status, None, reply.get_header("Retry-After")

        yield post


CLIENTS = {"aiohttp": aiohttp_client, "pyreqwest": pyreqwest_client}


async def main(url: str, questions: Path, concurrency: int, client: str) -> None:
    places = asyncio.Semaphore(concurrency)
    async with CLIENTS[client](f"{url}/chat/completions", concurrency) as post:

        async def ask(text: str) -> str:
            body = {
                "model": "measured",
                "messages": [{"role": "user", "content": text}],
                "max_tokens": 8,
                "temperature": 0.0,
            }
            pause = 0.5
            while True:
                async with places:
                    status, reply, after = await post(body)
                if status == 200:
                    return str(reply["choices"][0]["message"]["content"])
                await asyncio.sleep(float(after) if after else random.uniform(0, pause))
                pause = min(2 * pause, 30.0)

        with questions.open() as lines:
            texts = [json.loads(line)["input"] for line in lines]
        answers = await asyncio.gather(*map(ask, texts))
    assert len(answers) == len(texts) and set(answers) == {"4"}


if __name__ == "__main__":
    arguments = [*sys.argv[1:], "aiohttp"][:4]
    asyncio.run(main(arguments[0], Path(arguments[1]), int(arguments[2]), arguments[3]))
    # pyreqwest 0.15.1 often aborts the interpreter while that ends ("PyGILState_Release").
    os._exit(0)
