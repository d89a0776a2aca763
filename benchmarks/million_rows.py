"""How long a run of a million rows takes until its first request, cold and warm.

    python -m benchmarks million_rows [--rows 1000000] [--formats jsonl,csv,parquet]
        [--source FOLDER] [--source FOLDER] [--repeats 3] [--limit N] [--folder DIR]

A file of questions of about 500 bytes each is written, and evaluated with a model behind a server
on loopback, which notes when the first request comes and what it is, and never answers; the run is
then killed. `cold` starts with an empty home folder, `warm` with that of the run before. Shown are
the seconds from the start of the process to the first request, the CPU seconds (user and system) of
the process until it was killed, and its peak memory. --limit passes `--limit N` to the run. Several
--source folders (of `evalwright`'s source) are measured interleaved, and must send the same first
request; by default it is the one beside this file. The files are kept in --folder, if one is named.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from measuring import Table, option_parser

ROOT = Path(__file__).resolve().parent.parent
LONGEST_WAIT_SECONDS = 900.0
TOPICS = 57
WORDS = (
    "river",
    "mountain",
    "engine",
    "letter",
    "harvest",
    "signal",
    "window",
    "garden",
)


@dataclass(frozen=True, slots=True)
class Start:
    """A run until its first request.

    Attributes:
        wall: seconds from the start of the process to the first request.
        cpu: user and system seconds of the process.
        peak_mib: its peak resident memory.
        prompt: digest of the first request's messages.
    """

    wall: float
    cpu: float
    peak_mib: float
    prompt: str


def rows_of(count: int) -> Iterator[dict[str, Any]]:
    """Yield questions of about 500 bytes.

    Args:
        count: how many.
    """
    rng = random.Random(0)
    for number in range(count):
        text = " ".join(rng.choices(WORDS, k=58))
        yield {
            "id": f"question-{number:07}",
            "question": f"What is the last number of these? {text} {number}",
            "answer": str(number),
            "topic": f"topic {number % TOPICS}",
            "difficulty": number % 5,
        }


def write_rows(path: Path, count: int) -> None:
    """Write the questions in the format that the file's suffix says, unless they are there.

    Args:
        path: a .jsonl, .csv or .parquet file.
        count: the number of rows.
    """
    if path.exists():
        return
    partial = path.with_name(f"partial-{path.name}")
    if path.suffix == ".jsonl":
        with partial.open("w", encoding="utf-8") as file:
            for row in rows_of(count):
                file.write(json.dumps(row) + "\n")
    elif path.suffix == ".csv":
        import csv

        with partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(next(rows_of(1))))
            writer.writeheader()
            writer.writerows(rows_of(count))
    else:
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.Table.from_pylist(list(rows_of(count)))
        pyarrow.parquet.write_table(table, partial)
    partial.replace(path)


class FirstRequests:
    """A chat server that notes when the first request came, and leaves all without an answer."""

    def __init__(self) -> None:
        self.came = threading.Event()
        self.time = 0.0
        self.prompts: list[str] = []
        requests = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                if not requests.came.is_set():
                    requests.time = time.perf_counter()
                requests.prompts.append(json.dumps(body["messages"], sort_keys=True))
                requests.came.set()
                self.rfile.read()  # waits until the client is gone

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def first_requests() -> Iterator[FirstRequests]:
    """Serve until the block ends."""
    server = FirstRequests()
    try:
        yield server
    finally:
        server.close()


def start_run(
    source: Path, data_file: Path, home: Path, arguments: Sequence[str] = ()
) -> Start:
    """Start a run of the data in a process, and kill it once its first request has come.

    Args:
        source: the folder with the package `evalwright`.
        data_file: the data file.
        home: the home folder.
        arguments: more arguments of `evalwright run`.

    Raises:
        RuntimeError: no request came.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "EVALWRIGHT_HOME": str(home),
        "OPENAI_API_KEY": "none",
    }
    with first_requests() as server, tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "evalwright", "run", str(data_file)]
        command += ["--model", "openai/measured", "-M", f"base_url={server.url}"]
        command += ["-M", "max_concurrency=1", "--out", out, *arguments]
        log = Path(out) / "log"
        began = time.perf_counter()
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, env=environment, stdout=file, stderr=file, cwd=out
            )
        while not server.came.wait(0.2):
            waited = time.perf_counter() - began
            if process.poll() is not None or waited > LONGEST_WAIT_SECONDS:
                raise RuntimeError(f"No request came:\n{log.read_text()[-2000:]}")
        process.send_signal(signal.SIGKILL)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = -signal.SIGKILL
        digest = hashlib.sha256(server.prompts[0].encode()).hexdigest()
        return Start(
            wall=server.time - began,
            cpu=usage.ru_utime + usage.ru_stime,
            peak_mib=usage.ru_maxrss / 1024,
            prompt=digest[:12],
        )


def measure(
    sources: Sequence[Path], data_file: Path, repeats: int, arguments: Sequence[str]
) -> dict[tuple[str, Path], list[Start]]:
    """Measure cold and warm starts of every source, interleaved.

    Returns:
        The starts by ("cold" or "warm", source).
    """
    starts: dict[tuple[str, Path], list[Start]] = {}
    for _ in range(repeats):
        for source in sources:
            with tempfile.TemporaryDirectory(dir=data_file.parent) as home:
                for state in ("cold", "warm"):
                    start = start_run(source, data_file, Path(home), arguments)
                    starts.setdefault((state, source), []).append(start)
    return starts


def median(starts: Sequence[Start], of: Callable[[Start], float]) -> float:
    """The median of one of the figures of some starts."""
    return statistics.median(map(of, starts))


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--formats", default="jsonl,csv,parquet")
    parser.add_argument("--source", type=Path, action="append")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(arguments)
    sources = [path.resolve() for path in options.source or [ROOT / "src"]]
    limit = [] if options.limit is None else ["--limit", str(options.limit)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True, parents=True)
        print(f"{options.rows:,} rows, {os.cpu_count()} cores, load", end=" ")
        print(f"{os.getloadavg()[0]:.1f}")
        table = Table(
            ["format", "start", "source", "first request, s", "CPU s", "peak MiB"]
        )
        for suffix in options.formats.split(","):
            data_file = folder / f"rows-{options.rows}.{suffix}"
            # A process has at least the peak memory of the one that started it.
            writer = multiprocessing.get_context("fork").Process(
                target=write_rows, args=(data_file, options.rows)
            )
            writer.start()
            writer.join()
            starts = measure(sources, data_file, options.repeats, limit)
            prompts = {
                start.prompt for repeated in starts.values() for start in repeated
            }
            if len(prompts) > 1:
                raise RuntimeError("The sources sent different first requests.")
            for (state, source), repeated in starts.items():
                table.add(
                    suffix,
                    state,
                    source,
                    f"{median(repeated, lambda start: start.wall):.2f}",
                    f"{median(repeated, lambda start: start.cpu):.2f}",
                    f"{median(repeated, lambda start: start.peak_mib):.0f}",
                )


if __name__ == "__main__":
    main()
