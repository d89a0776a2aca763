"""A run is ended from outside, or meets a damaged disk: no stored answer is lost or paid for twice,
a budget holds, and what is billed is in the ledger but for what was in flight.

Each case asks the same questions twice: with the fault and a budget, then with a sound server and
none. Faults of servers are in test_money.py.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evalwright import ModelSpec
from evalwright.core.errors import EvalwrightError
from evalwright.engine.store_rows import checksum_of, unpack
from evalwright.evaluation.evaluating import evaluate
from support.billing_server import EACH, PRICE, BillingServer, Fate
from support.command import environment, write_questions
from support.openai_server import running

pytestmark = pytest.mark.slow

QUESTIONS = 12
AT_ONCE = 4
BUDGET = 20 * EACH
STORE = Path("home") / "store.sqlite"
RECORD = Path("runs") / "run"
Command = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Ending:
    """How a command is ended from outside.

    Attributes:
        end: what is done once a third of the requests has come; None for nothing.
        fate: what becomes of requests.
        limit: called in the command's process before it starts.
    """

    end: Callable[[Command], None] | None = None
    fate: Fate = lambda prompt, before: "ok"
    limit: Callable[[], None] | None = None


@dataclass(frozen=True)
class Disk:
    """What happens to the folder between half of a run and all of it.

    Attributes:
        change: does it.
        may_lose: whether stored answers are lost by it.
    """

    change: Callable[[Path], None]
    may_lose: bool = True


def once(fate: str) -> Fate:
    """Each request meets this fate the first time."""
    return lambda prompt, before: fate if before == 0 else "ok"


def kill(number: signal.Signals) -> Callable[[Command], None]:
    """Send a signal."""
    return lambda process: process.send_signal(number)


def pause(process: Command) -> None:
    """Stop the process, and continue it."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.6)
    process.send_signal(signal.SIGCONT)


def interrupt_twice(process: Command) -> None:
    """Press Ctrl-C twice."""
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)


def hang_up(process: Command) -> None:
    """Close the pipes that the process prints to."""
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()
    process.stdout = process.stderr = None


def limit_file_size(size: int) -> Callable[[], None]:
    """Limit the size of every file, as a full disk would."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def overwrite_with_zeros(share: float) -> Callable[[Path], None]:
    """Overwrite 64 bytes of the store's file, at a share of its length."""

    def change(folder: Path) -> None:
        with (folder / STORE).open("r+b") as file:
            file.seek(int((folder / STORE).stat().st_size * share))
            file.write(bytes(64))

    return change


def cut(folder: Path) -> None:
    """Cut the store's file in half."""
    os.truncate(folder / STORE, (folder / STORE).stat().st_size // 2)


def leave_claims(folder: Path) -> None:
    """Leave claims of a program that no longer runs."""
    with closing(sqlite3.connect(folder / STORE)) as file, file:
        file.execute(
            "INSERT OR REPLACE INTO claims SELECT key, '1-dead' FROM responses"
        )
        file.execute("DELETE FROM responses WHERE id > 3")


def put_file_at(name: str) -> Callable[[Path], None]:
    """Put a file where a folder should be."""

    def change(folder: Path) -> None:
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).write_text("not a folder")

    return change


ENDINGS = {
    **{
        number.name: Ending(kill(number))
        for number in (
            signal.SIGKILL,
            signal.SIGINT,
            signal.SIGTERM,
            signal.SIGHUP,
            signal.SIGQUIT,
        )
    },
    "SIGKILL amid empty replies": Ending(kill(signal.SIGKILL), once("empty")),
    "SIGINT amid timeouts": Ending(kill(signal.SIGINT), once("hang")),
    "SIGINT twice": Ending(interrupt_twice),
    "paused": Ending(pause),
    "output closed": Ending(hang_up),
    "disk full at 60 kB": Ending(limit=limit_file_size(60_000)),
    "disk full at 20 kB": Ending(limit=limit_file_size(20_000)),
}
DISKS = {
    "zeros amid the store": Disk(overwrite_with_zeros(0.6)),
    "zeros at the store's beginning": Disk(overwrite_with_zeros(0.0)),
    "half of the store": Disk(cut),
    "claims of a dead program": Disk(leave_claims),
    "a file for the home folder": Disk(put_file_at("home")),
    "a file for the runs folder": Disk(put_file_at("runs"), may_lose=False),
    "no records": Disk(lambda folder: shutil.rmtree(folder / "runs"), may_lose=False),
}


def run_here(server: BillingServer, folder: Path, **settings: Any) -> None:
    """Run in this process; errors that a user would read are ignored."""
    arguments = {"timeout": 3, "max_attempts": 3, "max_concurrency": AT_ONCE}
    spec = ModelSpec(f"openai/{server.url}#m", arguments)
    places = {"home": str(folder / "home"), "out": str(folder / "runs")}
    with suppress(EvalwrightError):
        evaluate(
            str(folder / "questions.yaml"),
            spec,
            **{"price": PRICE, "name": "run", "replace": True, **places, **settings},
        )


def run_and_end(server: BillingServer, folder: Path, ending: Ending) -> None:
    """Run the command with a budget, and end it as the case says."""
    words = ["run", "questions.yaml", "--model", f"openai/{server.url}#m", "--replace"]
    words += ["-M", "timeout=3", "-M", "max_attempts=3"]
    words += ["-M", f"max_concurrency={AT_ONCE}", "--price", PRICE]
    words += ["--budget", f"{BUDGET} USD", "--home", "home", "--name", "run"]
    output = subprocess.PIPE if ending.end is hang_up else subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, "-m", "evalwright", *words],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        preexec_fn=ending.limit,
    )
    if ending.end is not None:
        while process.poll() is None and len(server.sendings) < QUESTIONS // 3:
            time.sleep(0.002)
        ending.end(process)
    process.communicate(timeout=60)


def read_stored(folder: Path) -> set[str]:
    """The questions with intact answers in the store."""
    questions = set()
    with suppress(sqlite3.Error), closing(sqlite3.connect(folder / STORE)) as file:
        rows = file.execute(
            "SELECT key, model, request, response, checksum FROM responses"
        )
        for *columns, checksum in rows:
            if checksum == checksum_of(*columns):
                questions.add(json.loads(unpack(columns[2]))["generate"][0][1])
    return questions


def ledger_dollars(folder: Path) -> float:
    """Dollars in the ledger."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(folder / STORE)) as file:
        query = "SELECT ifnull(sum(dollars), 0) FROM ledger"
        return float(file.execute(query).fetchone()[0])
    return 0.0


def mend(folder: Path) -> None:
    """Move the damaged file away, as a user would after an error that names it."""
    for path in (folder / "home", folder / "runs"):
        if path.is_file():
            path.unlink()
    with suppress(sqlite3.Error), closing(sqlite3.connect(folder / STORE)) as file:
        if file.execute("PRAGMA integrity_check").fetchone()[0] == "ok":
            return
    shutil.rmtree(folder / "home", ignore_errors=True)


def check_second_run(
    server: BillingServer, folder: Path, stored: dict[str, int], unrecorded: float
) -> None:
    """Ask everything again of a sound server: the record is complete, and nothing is paid twice.

    Args:
        server: the provider.
        folder: of the run.
        stored: by question that was stored, how often it had come by then.
        unrecorded: dollars that the ledger may lack.
    """
    server.fate = lambda prompt, before: "ok"
    server.seconds = 0.0
    mend(folder)
    for _ in range(2):
        run_here(server, folder, resend_empty=True)
    again = [text for text, times in stored.items() if server.received[text] > times]
    assert not again, "sent again although stored"
    assert len(read_stored(folder)) == QUESTIONS
    (task,) = json.loads((folder / RECORD / "run.json").read_text())["tasks"]
    lines = (folder / RECORD / "samples.jsonl").read_text().splitlines()
    assert (task["n_samples"], task["n_missing"]) == (QUESTIONS, 0)
    assert len({json.loads(line)["id"] for line in lines}) == len(lines) == QUESTIONS
    assert server.dollars() <= ledger_dollars(folder) + unrecorded + 1e-9


@pytest.mark.parametrize("name", ENDINGS)
def test_a_run_that_is_ended_loses_nothing(name: str, tmp_path: Path) -> None:
    write_questions(tmp_path, QUESTIONS)
    ending = ENDINGS[name]
    with running(BillingServer(ending.fate)) as server:
        server.seconds = 0.05
        run_and_end(server, tmp_path, ending)
        time.sleep(0.05)  # what was on its way comes in
        assert server.dollars() <= BUDGET + server.most_in_flight * EACH + 1e-9
        stored = {text: server.received[text] for text in read_stored(tmp_path)}
        # Sent and not yet on disk: what the server has, and what waits to be written.
        check_second_run(server, tmp_path, stored, 2 * AT_ONCE * EACH)


@pytest.mark.parametrize("name", DISKS)
def test_a_damaged_disk_costs_what_it_destroyed(name: str, tmp_path: Path) -> None:
    write_questions(tmp_path, QUESTIONS)
    disk = DISKS[name]
    with running(BillingServer()) as server:
        run_here(server, tmp_path, limit=QUESTIONS // 2, name="half")
        before = read_stored(tmp_path)
        assert len(before) == QUESTIONS // 2
        disk.change(tmp_path)
        unrecorded = server.dollars() - ledger_dollars(tmp_path)
        run_here(server, tmp_path, budget=f"{BUDGET} USD")
        after = read_stored(tmp_path)
        assert disk.may_lose or before <= after
        stored = {text: server.received[text] for text in after}
        check_second_run(server, tmp_path, stored, unrecorded + 2 * AT_ONCE * EACH)


def test_another_program_that_writes_and_reads_the_store_is_waited_for(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, QUESTIONS)
    with running(BillingServer()) as server:
        run_here(server, tmp_path, limit=QUESTIONS // 2, name="half")
        with closing(sqlite3.connect(tmp_path / STORE)) as file:
            file.execute("BEGIN IMMEDIATE")
            file.rollback()
            file.execute("BEGIN")
            file.execute("SELECT count(*) FROM responses").fetchone()
            run_here(server, tmp_path)
        stored = {text: server.received[text] for text in read_stored(tmp_path)}
        assert len(stored) == QUESTIONS
        check_second_run(server, tmp_path, stored, 0.0)
