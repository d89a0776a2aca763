"""What the proxy costs beside a relay that only forwards: processor time and requests per second.

    python -m benchmarks proxy [--requests 6000] [--at-once 128] [--rounds 3]

Both stand in front of the same chat server, which answers at once, and get the same load: requests
with different prompts, none of them in the store. The relay is an aiohttp server and an aiohttp
client that pass bytes on, with connections kept alive; it stores nothing. Rounds alternate, and
processor time is that of the relay's or the proxy's process alone, after a warm-up. A last round
asks the proxy everything again, from its store.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp import web

from measuring import (
    Table,
    add_numbers,
    cpu_of_process,
    option_parser,
    serve_forever,
    started_server,
)

HERE = Path(__file__).resolve().parent
TOKEN = "a-token-of-this-benchmark"
WARM_UP_REQUESTS = 300
CHARS = 400
"""Length of a prompt."""


async def relay(target: str) -> None:
    """Serve a relay to `target`; print its port."""
    client = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), auto_decompress=False
    )

    async def forward(request: web.Request) -> web.Response:
        body = await request.read()
        headers = {"Content-Type": request.headers.get("Content-Type", "")}
        async with client.post(
            target + request.path, data=body, headers=headers
        ) as reply:
            content = await reply.read()
            return web.Response(
                body=content,
                status=reply.status,
                headers={"Content-Type": reply.headers["Content-Type"]},
            )

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/{path:.*}", forward)
    await serve_forever(app)


async def load(address: str, path: str, first: int, count: int, at_once: int) -> float:
    """Send requests and return the seconds that they took."""
    numbers = iter(range(first, first + count))
    headers = {"Authorization": f"Bearer {TOKEN}"}

    async def worker(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            text = f"Question {number}: " + "x" * CHARS
            body = {
                "model": "instant",
                "temperature": 0,
                "max_tokens": 16,
                "messages": [{"role": "user", "content": text}],
            }
            async with session.post(address + path, json=body) as reply:
                answer = await reply.json()
                assert reply.status == 200, answer
                assert answer["choices"][0]["message"]["content"] == "4"

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        started = time.perf_counter()
        await asyncio.gather(*(worker(session) for _ in range(at_once)))
        return time.perf_counter() - started


def restart(address: str) -> None:
    """Have the proxy count the benchmark's draws from 1 again."""
    request = urllib.request.Request(f"{address}/t/benchmark/restart", b"")
    request.add_header("Authorization", f"Bearer {TOKEN}")
    urllib.request.urlopen(request).close()


@contextmanager
def proxy(server: str, home: Path) -> Iterator[tuple[int, str]]:
    """Start the proxy; yield its process id and address."""
    command = [sys.executable, "-m", "evalwright", "proxy", "--home", str(home)]
    command += ["--model", f"openai/{server}/v1#instant"]
    environment = {
        **os.environ,
        "EVALWRIGHT_PROXY_TOKEN": TOKEN,
        "OPENAI_API_KEY": "sk-benchmark",
    }
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = line.partition(" at ")[2].partition(",")[0]
        assert address.startswith("http"), line
        yield process.pid, address
    finally:
        process.terminate()
        process.wait()


@dataclass
class Measure:
    """Of one round: processor time for a request, and requests per second."""

    cpu: float
    speed: float


def measure(
    pid: int, address: str, path: str, first: int, options: argparse.Namespace
) -> Measure:
    """Send one round to a server."""
    before = cpu_of_process(pid)
    seconds = asyncio.run(load(address, path, first, options.requests, options.at_once))
    used = cpu_of_process(pid) - before
    return Measure(used / options.requests, options.requests / seconds)


def measure_rounds(options: argparse.Namespace) -> dict[str, list[Measure]]:
    """Measure relay and proxy in turns, then the proxy from its store."""
    path = "/v1/chat/completions"
    below = f"/t/benchmark{path}"
    firsts = [10**6 * (number + 1) for number in range(options.rounds)]
    rows: dict[str, list[Measure]] = {"relay": [], "proxy": [], "proxy, stored": []}
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        command = [sys.executable, str(HERE / "instant_server.py")]
        _, server = stack.enter_context(started_server(command))
        command = [sys.executable, __file__, "--relay", server]
        relay_pid, relay_at = stack.enter_context(started_server(command))
        proxy_pid, proxy_at = stack.enter_context(proxy(server, home))
        asyncio.run(load(relay_at, path, 0, WARM_UP_REQUESTS, options.at_once))
        asyncio.run(load(proxy_at, below, 0, WARM_UP_REQUESTS, options.at_once))
        for first in firsts:
            rows["relay"].append(measure(relay_pid, relay_at, path, first, options))
            rows["proxy"].append(measure(proxy_pid, proxy_at, below, first, options))
        restart(proxy_at)
        for first in firsts:
            stored = measure(proxy_pid, proxy_at, below, first, options)
            rows["proxy, stored"].append(stored)
    return rows


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    add_numbers(parser, requests=6000, at_once=128, rounds=3)
    parser.add_argument("--relay", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.relay:
        asyncio.run(relay(options.relay))
        return 0
    rows = measure_rounds(options)
    ratios = [
        ours.cpu / theirs.cpu
        for ours, theirs in zip(rows["proxy"], rows["relay"], strict=True)
    ]
    table = Table(
        ["server", "CPU ms a request", "times the relay", "requests a second"]
    )
    base = statistics.median(each.cpu for each in rows["relay"])
    for name, measures in rows.items():
        cpu = statistics.median(each.cpu for each in measures)
        speed = statistics.median(each.speed for each in measures)
        table.add(name, f"{cpu * 1e3:.3f}", f"{cpu / base:.2f}", f"{speed:.0f}")
    print(f"\nProxy beside relay, by round: {min(ratios):.2f} to {max(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
