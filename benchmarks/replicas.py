"""How much of what a pool of unequal endpoints allows is used, while one of them dies.

    python -m benchmarks replicas [--rates 20,50,100] [--dies 1] [--seconds 60] [--burst 1]
        [--repeats 1]

Each endpoint is a server process (remote_server.py) with a limit of so many requests a second, told
in headers (as a token limit, in OpenAI's form) and kept with 429s; a bucket holds `--burst`
seconds' worth. Answers come after a log-normal time of 200 ms in the mean. The endpoint number
`--dies` (from 0; -1 for none) is killed in the middle. What is allowed: for each endpoint its rate
times the seconds that it lived, from the first request to the last answer, and its bucket. The
store must hold each response once.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from measuring import Table, option_parser
from overhead import ours, questions
from remote_server import TOKENS

HERE = Path(__file__).resolve().parent


def serve(rate: float, burst: float) -> tuple[subprocess.Popen[str], str]:
    """Start a rate-limited server process; returns it and its address."""
    limit = ["--tokens-per-minute", str(rate * 60 * TOKENS), "--burst", str(burst)]
    server = subprocess.Popen(
        [sys.executable, str(HERE / "remote_server.py"), *limit],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    return server, f"http://127.0.0.1:{int(server.stdout.readline())}"


def counts(address: str) -> dict[str, Any]:
    """Fetch a server's counts."""
    with urllib.request.urlopen(f"{address}/counts?short") as reply:
        books: dict[str, Any] = json.load(reply)
    return books


def run_pool(
    rates: list[float], dies: int, seconds: float, burst: float
) -> tuple[float, list[tuple[str, ...]]]:
    """One run: the share of what was allowed that was used, and a row for each endpoint."""
    total_rate = sum(rates)
    lost = rates[dies] if dies >= 0 else 0.0
    n = int((total_rate + (total_rate - lost)) * seconds / 2 + total_rate * burst)
    servers = [serve(rate, burst) for rate in rates]
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            questions(folder / "questions.jsonl", n)
            urls = ",".join(address for _, address in servers)
            _, *arguments = ours(
                folder, ["--model", "openai/measured", "-M", f"replicas={urls}"]
            )
            command = [sys.executable, "-m", "evalwright", *arguments, "--name", "pool"]
            with (folder / "log").open("w+") as log:
                run = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
                died = 0.0
                before: dict[str, dict[str, Any]] = {}
                while run.poll() is None:
                    time.sleep(0.05)
                    began = min(
                        (counts(url)["first"] or 1e18)
                        for _, url in servers
                        if url not in before
                    )
                    if (
                        dies >= 0
                        and not before
                        and time.monotonic() - began >= seconds / 2
                    ):
                        died = time.monotonic()
                        before[servers[dies][1]] = counts(servers[dies][1])
                        servers[dies][0].kill()
                log.seek(0)
                assert run.returncode == 0, log.read()
            books = [before.get(url) or counts(url) for _, url in servers]
            began = min(server_books["first"] for server_books in books)
            ended = max(server_books["last"] for server_books in books)
            with closing(
                sqlite3.connect(folder / ".evalwright" / "store.sqlite")
            ) as store:
                (stored,) = store.execute("select count(*) from responses").fetchone()
            assert stored == n, f"{stored} of {n} responses are stored"
            replica_records = json.loads(
                (folder / "runs" / "pool" / "run.json").read_text()
            )["model"]["replicas"]
    finally:
        for server, _ in servers:
            server.kill()
            server.wait()
    lived = [(died if place == dies else ended) - began for place in range(len(rates))]
    allowed = [rate * (alive + burst) for rate, alive in zip(rates, lived, strict=True)]
    rows: list[tuple[str, ...]] = [
        (
            f"{rate:g}",
            f"{alive:.1f}",
            f"{its['answered']:,}",
            f"{its['answered'] / most:.0%}",
            str(its["refused"]),
            f"{record['requests']:,} sent, {record['failures']} failed",
        )
        for rate, alive, its, most, record in zip(
            rates, lived, books, allowed, replica_records, strict=True
        )
    ]
    return n / sum(allowed), rows


def main(words: Sequence[str] | None = None) -> int:
    parser = option_parser(__doc__)
    parser.add_argument(
        "--rates", default="20,50,100", help="requests a second of each endpoint"
    )
    parser.add_argument(
        "--dies", type=int, default=1, help="which is killed in the middle; -1: none"
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--burst", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args(words)
    rates = [float(rate) for rate in options.rates.split(",")]
    shares = ("answered", "of what was allowed", "refused")
    table = Table(["allowed a second", "lived, s", *shares, "the run's own record"])
    for _ in range(options.repeats):
        used, rows = run_pool(rates, options.dies, options.seconds, options.burst)
        for row in rows:
            table.add(*row)
        table.add("all", "", "", f"**{used:.1%}**", "", "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
