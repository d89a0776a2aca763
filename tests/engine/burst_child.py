"""A process whose model's replies all arrive together, and that is killed among them.

    python burst_child.py HOME REPLIES KILLED_AT

It kills itself as reply number KILLED_AT is handed over.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from engine.support import Remote, question
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.models.model_interface import Pacing


async def main(home: Path, count: int, killed_at: int) -> None:
    all_sent = asyncio.Event()
    replies = 0

    async def reply(request: Request) -> Response:
        nonlocal replies
        if len(model.asked) == count:
            all_sent.set()
        await all_sent.wait()
        replies += 1
        if replies == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return Response(text="yes")

    pacing = Pacing(start_concurrency=count, max_concurrency=count, careful=False)
    model = Remote(reply, pacing)
    with open_store(home) as store:
        async with Engine(store) as engine:
            door = engine.door({"target": model})
            await asyncio.gather(*(door("target", question(n)) for n in range(count)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
