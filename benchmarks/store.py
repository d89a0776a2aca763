"""Stored responses replayed through the engine, from a file and from a PostgreSQL server: rate,
memory, size.

    python -m benchmarks store [--responses 1000000] [--at-once 512] [--only sqlite,postgres]
        [--url postgresql://...]

Responses to arithmetic questions (100 characters, with usage) are stored first, a thousand at a
time, as many of a run's would be (rate of writing). Then a process of its own asks for every one of
them through the engine's door, so many at once, and gets each from the store (rate of reading, peak
memory of that process, CPU seconds of the process). Without --url a server of its own is started in
a temporary folder.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from measuring import Table, option_parser

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from evalwright.core.requests import Generate  # noqa: E402
from evalwright.core.responses import Response, Usage  # noqa: E402
from evalwright.engine.engine import Engine  # noqa: E402
from evalwright.engine.key import KeyMaker, canonical  # noqa: E402
from evalwright.engine.opening import open_database, open_store, store_location  # noqa: E402
from evalwright.engine.store_rows import Row, row_of  # noqa: E402
from evalwright.models.scripted import ScriptedModel  # noqa: E402


def question(number: int) -> Generate:
    """A different request for each number."""
    return Generate(f"What is {number} + {number % 7}?", max_tokens=8)


def row(make: KeyMaker, fingerprint: str, number: int) -> Row:
    """The stored response to a request."""
    payload = canonical(question(number).payload())
    text = f"{number} + {number % 7} is {number + number % 7}. ".ljust(100, "x")
    return row_of(
        make.key(payload),
        fingerprint,
        payload,
        Response(text=text, usage=Usage(12, 30), latency=0.2),
    )


async def fill(home: Path, count: int) -> float:
    """Store the responses; returns how many a second."""
    model = ScriptedModel("4")
    make = KeyMaker(model.fingerprint)
    spent = 0.0
    with open_store(home) as store:
        for start in range(0, count, 1000):
            rows = [
                row(make, model.fingerprint, number)
                for number in range(start, min(start + 1000, count))
            ]
            began = time.perf_counter()
            await asyncio.gather(*map(store.outbox().put, rows))
            spent += time.perf_counter() - began
    return count / spent


async def replay(home: Path, count: int, at_once: int) -> dict[str, float]:
    """Request every response again; returns the rate, CPU time and memory."""
    with open_store(home) as store:
        async with Engine(store) as engine:
            door = engine.door({"target": ScriptedModel("4")})
            began = time.perf_counter()
            numbers = iter(range(count))

            async def work() -> None:
                for number in numbers:
                    await door("target", question(number))

            await asyncio.gather(*(work() for _ in range(at_once)))
            seconds = time.perf_counter() - began
            assert door.counts.stored == count, door.counts
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "a second": count / seconds,
        "cpu": used.ru_utime + used.ru_stime,
        "memory": used.ru_maxrss / 1024,
    }


def measure_store(
    kind: str, home: Path, options: argparse.Namespace, table: Table
) -> None:
    """Fill and replay one kind of store, and print its row."""
    written = asyncio.run(fill(home, options.responses))
    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        "--replay",
        str(home),
        "--at-once",
        str(options.at_once),
    ]
    done = subprocess.run(
        [*command, "--responses", str(options.responses)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    replay_usage = json.loads(done.stdout)
    database = open_database(store_location(home))
    size = database.size()
    database.close()
    table.add(
        kind,
        f"{options.responses:,}",
        f"{written:,.0f}",
        f"{replay_usage['a second']:,.0f}",
        f"{1e6 * replay_usage['cpu'] / options.responses:.0f}",
        f"{replay_usage['memory']:.0f}",
        f"{size / options.responses:.0f}",
        f"{size / 1e6:,.0f}",
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = option_parser(__doc__)
    parser.add_argument("--responses", type=int, default=1_000_000)
    parser.add_argument("--at-once", type=int, default=512)
    parser.add_argument("--only", default="sqlite,postgres")
    parser.add_argument("--url", help="an empty database of a server that runs")
    parser.add_argument("--replay", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.replay is not None:
        print(
            json.dumps(
                asyncio.run(replay(options.replay, options.responses, options.at_once))
            )
        )
        return 0
    rates = ("written a second", "read a second", "CPU us a read")
    sizes = ("peak MiB", "bytes each", "MB")
    table = Table(["store", "responses", *rates, *sizes])
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ.pop("EVALWRIGHT_STORE", None)
        kinds = options.only.split(",")
        if "sqlite" in kinds:
            measure_store("sqlite", home / "sqlite", options, table)
        if "postgres" in kinds:
            if options.url is None:
                from support.postgres import running

                options.url = stack.enter_context(running(durable=True)).url()
            os.environ["EVALWRIGHT_STORE"] = options.url
            measure_store("postgres", home / "postgres", options, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
