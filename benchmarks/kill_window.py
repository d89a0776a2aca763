"""Which replies a `kill -9` loses: their number, their age and how many came after them.

    python -m benchmarks kill_window [--kills 20] [--burst 68] [--load 0,18] [--postgres]
        [--trees BEFORE/src AFTER/src]

A server holds the requests of a run until so many are in flight, answers them all at once, and
notes when each reply's last byte left, and how much CPU time the client had used by then. After a
random CPU time of the client, it is stopped, then killed. A reply is lost if it is not in the
store; "unread" are lost replies that the client had not read from its sockets. Ages are from the
last byte to the kill, in seconds and in CPU time of the client: on a loaded machine a client may
wait most of the time for a core. "Later" counts the replies that left after the oldest lost one
and that the client had read.

--load runs so many busy loops beside the client, only from shortly before a burst to the kill.
--trees compares two states of evalwright's own source, interleaved. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from measuring import Table, option_parser
from overhead import command_of_tree, ours, questions
from remote_server import _BODY, _reply

HERE = Path(__file__).resolve().parent
WARM_UP = 400
"""Replies without delay before the burst, by which the client learns that many may be sent."""
IDLE_SECONDS = 0.5
"""Without using CPU time for so long, the client is waiting: it is killed then."""
BUSY_LOOP = """\
import os
parent = os.getppid()
while os.getppid() == parent:
    pass
"""
READ_STORE = """\
import json, sys
from pathlib import Path
from evalwright.engine.opening import open_database, store_location
from evalwright.engine.store_rows import unpack
for page in open_database(store_location(Path(sys.argv[1]))).pages():
    for row in page:
        print(json.loads(unpack(row[2]))["generate"][0][1])
"""


@dataclass(frozen=True)
class SentReply:
    """A reply that left: the question, the client's port, when, and the client's CPU time then."""

    question: str
    port: int
    sent_at: float
    client_cpu: float


@dataclass(frozen=True)
class LostReply:
    """A lost reply: age in seconds and in CPU seconds of the client, and whether it was read."""

    age: float
    cpu_age: float
    is_read: bool
    later: int


@dataclass
class Burst:
    """A server's side of one client run."""

    size: int
    held: list[tuple[str, asyncio.Transport]] = field(default_factory=list)
    sent: list[SentReply] = field(default_factory=list)
    warmed_up: int = 0
    is_full: asyncio.Event = field(default_factory=asyncio.Event)

    def receive(self, question: str, transport: asyncio.Transport) -> None:
        """Answer a request of the warm-up; hold all later ones."""
        if self.warmed_up < WARM_UP:
            self.warmed_up += 1
            transport.write(_reply("200 OK", _BODY))
            return
        self.held.append((question, transport))
        if len(self.held) >= self.size:
            self.is_full.set()

    def release(self, pid: int) -> None:
        """Answer everything that is held."""
        held = self.held
        self.held = []
        reply = _reply("200 OK", _BODY)
        for question, transport in held:
            port = transport.get_extra_info("peername")[1]
            transport.write(reply)
            self.sent.append(
                SentReply(question, port, time.monotonic(), cpu_seconds(pid))
            )


class Connection(asyncio.Protocol):
    """One connection of the client."""

    def __init__(self, burst: Burst) -> None:
        self.burst = burst
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, separator, body = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(body) >= length:
            self.buffer = body[length:]
            messages = json.loads(body[:length])["messages"]
            self.burst.receive(messages[0]["content"], self.transport)


def cpu_seconds(pid: int) -> float:
    """CPU time of all living threads of a process, to the nanosecond."""
    nanoseconds = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        nanoseconds += int((task / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def wait_for_cpu(pid: int, limit: float) -> None:
    """Wait until a process has used so much CPU time, or uses none for a while."""
    used = cpu_seconds(pid)
    used_at = time.monotonic()
    while used < limit and time.monotonic() < used_at + IDLE_SECONDS:
        time.sleep(0.0005)
        if (now := cpu_seconds(pid)) > used:
            used = now
            used_at = time.monotonic()


def unread_ports(server_port: int) -> set[int]:
    """Local ports of connections to the server with bytes that the client has not read."""
    ports = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if int(remote.split(":")[1], 16) == server_port and int(
            queues.split(":")[1], 16
        ):
            ports.add(int(local.split(":")[1], 16))
    return ports


def start(
    command: Sequence[str], folder: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a process of usual priority."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.setpriority(os.PRIO_PROCESS, process.pid, 0)
    return process


class BusyLoops:
    """Processes that each keep a core busy while they are let run."""

    def __init__(self, count: int) -> None:
        self.processes = [
            start([sys.executable, "-c", BUSY_LOOP]) for _ in range(count)
        ]
        self._signal(signal.SIGSTOP)

    @contextmanager
    def running(self) -> Iterator[None]:
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._signal(signal.SIGSTOP)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def _signal(self, number: signal.Signals) -> None:
        for process in self.processes:
            process.send_signal(number)


async def kill_once(
    command: Sequence[str], folder: Path, size: int, loops: BusyLoops, cpu_limit: float
) -> tuple[list[LostReply], int]:
    """Run a client, kill it after a burst; return the lost replies and how many were sent."""
    burst = Burst(size)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(
        lambda: Connection(burst), "127.0.0.1", 0, backlog=4096
    )
    port = listening.sockets[0].getsockname()[1]
    process = start([word.replace("PORT", str(port)) for word in command], folder)
    try:
        await asyncio.wait_for(burst.is_full.wait(), 60)
        await asyncio.sleep(0.3)
        with loops.running():
            if loops.processes:
                await asyncio.sleep(0.3)
            burst.release(process.pid)
            wait_for_cpu(process.pid, burst.sent[0].client_cpu + cpu_limit)
            process.send_signal(signal.SIGSTOP)
            stopped_at = time.monotonic()
            cpu = cpu_seconds(process.pid)
            unread = unread_ports(port)
    finally:
        process.kill()
        process.wait()
        listening.close()
    await asyncio.sleep(0.2)  # a server's transaction may still end
    reading = subprocess.run(
        [*command[:2], sys.executable, "-c", READ_STORE, str(folder / ".evalwright")],
        check=True,
        capture_output=True,
        text=True,
    )
    stored = set(reading.stdout.splitlines())
    read = [reply for reply in burst.sent if reply.port not in unread]
    lost = [
        LostReply(
            age=stopped_at - reply.sent_at,
            cpu_age=cpu - reply.client_cpu,
            is_read=reply.port not in unread,
            later=sum(other.sent_at > reply.sent_at for other in read),
        )
        for reply in burst.sent
        if reply.question not in stored
    ]
    return lost, len(burst.sent)


def describe(outcomes: Sequence[tuple[list[LostReply], int]]) -> tuple[str, ...]:
    """The figures of a row."""
    lost = [reply for replies, _ in outcomes for reply in replies]
    read = [reply for reply in lost if reply.is_read]
    counts = [len(replies) for replies, _ in outcomes]
    read_counts = [sum(reply.is_read for reply in replies) for replies, _ in outcomes]
    ages = [reply.age for reply in lost] or [0.0]
    cpu_ages = [reply.cpu_age for reply in read] or [0.0]
    later = max((reply.later for reply in read), default=0)
    sent = sum(count for _, count in outcomes)
    median = statistics.median
    return (
        str(len(outcomes)),
        str(sent),
        f"{len(lost)} (median {median(counts):.0f}, max {max(counts)})",
        f"{len(read)} (median {median(read_counts):.0f}, max {max(read_counts)})",
        f"{1000 * median(ages):.0f} / {1000 * max(ages):.0f}",
        f"{1000 * median(cpu_ages):.1f} / {1000 * max(cpu_ages):.1f}",
        str(later),
    )


async def measure_kills(
    trees: dict[str, Path], load: int, options: argparse.Namespace, table: Table
) -> None:
    """Kill each tree's client so many times, interleaved, and print a row for each tree."""
    chance = random.Random(options.seed)
    outcomes: dict[str, list[tuple[list[LostReply], int]]] = {
        name: [] for name in trees
    }
    loops = BusyLoops(load)
    try:
        for _ in range(options.kills):
            cpu_limit = chance.uniform(0, options.window / 1000)
            for name, tree in trees.items():
                with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
                    folder = Path(place)
                    if options.url:
                        stack.enter_context(new_database(options.url))
                    questions(folder / "questions.jsonl", WARM_UP + 3 * options.burst)
                    model = ["--model", "openai/measured", "-M"]
                    model += ["base_url=http://127.0.0.1:PORT/v1", "-M"]
                    model += [f"max_concurrency={options.burst}"]
                    command = [*command_of_tree(tree), *ours(folder, model)[1:]]
                    outcomes[name].append(
                        await kill_once(
                            command, folder, options.burst, loops, cpu_limit
                        )
                    )
    finally:
        loops.end()
    for name, kills in outcomes.items():
        table.add(name, load, *describe(kills))


@contextmanager
def new_database(url: str) -> Iterator[None]:
    """An empty store on the server, named by EVALWRIGHT_STORE."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS evalwright CASCADE")
    os.environ["EVALWRIGHT_STORE"] = url
    yield


COLUMNS = (
    "source",
    "busy loops",
    "kills",
    "replies",
    "lost",
    "of these read",
    "age, ms: median / max",
    "age of read ones, CPU ms",
    "later",
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--burst", type=int, default=68)
    parser.add_argument("--load", default="0,18", help="busy loops beside the client")
    parser.add_argument(
        "--window", type=float, default=60.0, help="most CPU ms from burst to kill"
    )
    parser.add_argument("--postgres", action="store_true", help="a server of its own")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trees", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    options = parser.parse_args(arguments)
    trees = {"evalwright": HERE.parent / "src"}
    if options.trees:
        trees = dict(zip(("before", "after"), options.trees, strict=True))
    os.environ.pop("EVALWRIGHT_STORE", None)
    os.environ.setdefault("OPENAI_API_KEY", "not-a-key")
    with suppress(PermissionError):
        os.setpriority(
            os.PRIO_PROCESS, 0, -10
        )  # so that the notes are exact under load
    with ExitStack() as stack:
        options.url = None
        if options.postgres:
            sys.path.insert(0, str(HERE.parent / "tests"))
            from support.postgres import running

            options.url = stack.enter_context(running(durable=True)).url()
        table = Table(COLUMNS)
        for load in options.load.split(","):
            asyncio.run(measure_kills(trees, int(load), options, table))


if __name__ == "__main__":
    main()
