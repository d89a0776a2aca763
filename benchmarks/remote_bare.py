"""The yardstick of `remote.py`: the loop that one writes by hand with aiohttp. It keeps nothing and
scores nothing.

    python remote_bare.py URL QUESTIONS.jsonl CONCURRENCY

Its semaphore is at the server's capacity, which it is told; a 429 is asked again after the
Retry-After, or else after a random time that doubles, as is usual.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path

import aiohttp


async def main(url: str, questions: Path, concurrency: int) -> None:
    places = asyncio.Semaphore(concurrency)
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask(text: str) -> str:
            payload = {
                "model": "measured",
                "messages": [{"role": "user", "content": text}],
                "max_tokens": 8,
            }
            payload["temperature"] = 0.0
            pause = 0.5
            while True:
                async with (
                    places,
                    session.post(f"{url}/chat/completions", json=payload) as reply,
                ):
                    if reply.status == 200:
                        data = await reply.json()
                        return str(data["choices"][0]["message"]["content"])
                    await reply.read()
                    after = reply.headers.get("Retry-After")
                await asyncio.sleep(float(after) if after else random.uniform(0, pause))
                pause = min(2 * pause, 30.0)

        with questions.open() as lines:
            texts = [json.loads(line)["input"] for line in lines]
        answers = await asyncio.gather(*map(ask, texts))
    assert len(answers) == len(texts) and set(answers) == {"4"}


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
