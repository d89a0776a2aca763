"""A process that asks through a store, for the tests that need several of them or have to kill one.

    python child.py HOME LOG ACKNOWLEDGED COUNT LATENCY

LOG gets a line for every request that the model is asked, ACKNOWLEDGED one for every answer that
`ask` returned. At the end it prints its counts as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from engine.support import FileCounting, question
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store


async def main(
    home: Path, log: Path, acknowledged: Path, count: int, latency: float
) -> None:
    model = FileCounting(log, latency)
    with open_store(home) as store, acknowledged.open("ab", buffering=0) as done:
        async with Engine(store) as engine:
            door = engine.door({"target": model})
            numbers = iter(range(count))

            async def work() -> None:
                for number in numbers:
                    response = await door("target", question(number))
                    assert response.text == f"answer {number}"
                    done.write(f"{number}\n".encode())

            await asyncio.gather(*(work() for _ in range(32)))
            print(json.dumps(door.counts.as_dict()), flush=True)


if __name__ == "__main__":
    asyncio.run(
        main(
            Path(sys.argv[1]),
            Path(sys.argv[2]),
            Path(sys.argv[3]),
            int(sys.argv[4]),
            float(sys.argv[5]),
        )
    )
