"""Workers of one run as real processes, killed, stopped and started at any moment, against a
provider that keeps a log and a bill of its own.

    with worker_trial(folder, url, count=200) as trial:
        trial.start()
        ...
        trial.check()
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from evalwright.engine.opening import open_database
from evalwright.engine.store_rows import unpack
from support.billing_server import PRICE, BillingServer
from support.command import environment, record, records, write_questions

NAME = "together"
AT_ONCE = 8
FATAL = ("kill", "term", "pause")


class Process(Protocol):
    """A worker's process."""

    pid: int

    @property
    def returncode(self) -> int | None:
        """The exit code; None until it has ended."""

    def poll(self) -> int | None:
        """The exit code, where it has ended."""

    def wait(self) -> int:
        """The exit code, once it has ended."""

    def kill(self) -> None:
        """End it at once."""

    def send_signal(self, number: int) -> None:
        """Send it a signal."""


Starter = Callable[[list[str], Path, Mapping[str, str]], Process]
"""Starts `python ARGUMENTS` in a folder with an environment."""


def start_process(
    arguments: list[str], folder: Path, variables: Mapping[str, str]
) -> Process:
    """Start a process from nothing."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def serving_in_thread(server: BillingServer) -> Iterator[BillingServer]:
    """The server, in an event loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def answer_of(prompt: str) -> str:
    """The right answer of two questions in three."""
    number = int("".join(filter(str.isdigit, prompt)))
    return str(number if number % 3 else number + 1)


@dataclass
class Trial:
    """One run of `count` questions, made by workers.

    Attributes:
        folder: where the workers run.
        store: the address of the PostgreSQL store; "" for the file in the folder.
        count: number of questions.
        server: the provider.
        options: options of the command beside these that all trials have.
        processes: all workers so far.
        received_when_stored: by question, how often it had been sent when it was seen to be stored.
    """

    folder: Path
    store: str
    count: int
    server: BillingServer
    options: tuple[str, ...] = ()
    starter: Starter = start_process
    processes: list[Process] = field(default_factory=list)
    received_when_stored: dict[str, int] = field(default_factory=dict)

    @property
    def run(self) -> Path:
        """The folder of the run."""
        return self.folder / "runs" / NAME

    def command(self, *options: str) -> list[str]:
        """The command of every worker, or of one undisturbed process without --worker."""
        return [
            *("-m", "evalwright", "run", "questions.yaml"),
            *("--model", "openai/m", "-M", f"base_url={self.server.url}"),
            *("-M", f"max_concurrency={AT_ONCE}", "--price", PRICE, "--name", NAME),
            *self.options,
            *options,
        ]

    def environment(self) -> dict[str, str]:
        """The environment of every worker."""
        store = {"EVALWRIGHT_STORE": self.store} if self.store else {}
        return environment({"OPENAI_API_KEY": "k", "EVALWRIGHT_GRACE": "10", **store})

    def start(self, *options: str) -> Process:
        """Start a worker."""
        command = self.command("--worker", "--log-file", "workers.log", *options)
        process = self.starter(command, self.folder, self.environment())
        self.processes.append(process)
        return process

    def log(self) -> str:
        """What all workers have logged."""
        return (self.folder / "workers.log").read_text(errors="replace")

    def running(self) -> list[Process]:
        """The workers that have not ended."""
        return [process for process in self.processes if process.poll() is None]

    def wait(self) -> None:
        """Wait until all workers have ended."""
        for process in self.processes:
            process.wait()

    def alone(self, folder: Path) -> None:
        """Make the same run by one undisturbed process, in another folder with another store."""
        folder.mkdir(exist_ok=True)
        write_questions(folder, self.count)
        subprocess.run(
            [sys.executable, *self.command()],
            cwd=folder,
            env={**self.environment(), "EVALWRIGHT_STORE": ""},
            check=True,
            capture_output=True,
        )

    def stored(self) -> set[str]:
        """The questions whose answers are in the store."""
        database = open_database(self.store or self.folder / ".evalwright")
        try:
            rows = database.rows("SELECT request FROM responses")
        finally:
            database.close()
        requests = [json.loads(unpack(bytes(request))) for (request,) in rows]
        return {
            request["generate"][0][1] for request in requests if "generate" in request
        }

    def note_stored(self) -> None:
        """Note how often each question had been sent when its answer is in the store."""
        for prompt in self.stored():
            if prompt not in self.received_when_stored:
                self.received_when_stored[prompt] = self.server.received[prompt]

    def sent_again(self) -> list[str]:
        """The questions that were sent although their answers were stored."""
        return [
            prompt
            for prompt, times in self.received_when_stored.items()
            if self.server.received[prompt] > times
        ]

    def dollars(self) -> float:
        """The provider's bill."""
        return self.server.dollars()


@contextmanager
def worker_trial(
    folder: Path,
    store: str = "",
    *,
    count: int,
    options: Sequence[str] = (),
    seconds: float = 0.02,
    starter: Starter = start_process,
) -> Iterator[Trial]:
    """A trial whose workers end with the block. seconds: of each reply of the provider."""
    folder.mkdir(exist_ok=True)
    write_questions(folder, count)
    server = BillingServer(answer=answer_of)
    server.seconds = seconds
    with serving_in_thread(server):
        trial = Trial(folder, store, count, server, tuple(options), starter)
        try:
            yield trial
        finally:
            for process in trial.running():
                process.kill()
                process.wait()


@dataclass
class Disturber:
    """Kills, stops, pauses and starts workers, each time when some more requests have come.

    Attributes:
        trial: the trial.
        workers: how many are to work.
        chance: draws what happens.
        events: what happened, by name.
        at_risk: the most questions whose paid replies the kills can have lost.
    """

    trial: Trial
    workers: int
    chance: random.Random
    events: Counter[str] = field(default_factory=Counter)
    at_risk: int = 0
    paused: list[Process] = field(default_factory=list)

    def disturb(self, events: int, within: float = 1.0) -> None:
        """Let so many things happen, spread over the run, or over its first part."""
        trial = self.trial
        last = int(within * trial.count)
        places = sorted(
            self.chance.randrange(trial.count // 50, last) for _ in range(events)
        )
        self._start_missing()
        for place in places:
            self._wait_for_requests(place)
            if not trial.running():
                self._start_missing()
            self._happen()

    def end(self) -> None:
        """Let the run be written by whoever is left, or by one more worker."""
        self._wake()
        if not self.trial.running():
            self.trial.start()
        self.trial.wait()
        self.trial.note_stored()

    def _happen(self) -> None:
        trial = self.trial
        victim = self.chance.choice(trial.running())
        event = self.chance.choice(FATAL)
        self.events[event] += 1
        if event == "kill":
            # Nobody takes the claims of a worker that only stands still: what was sent and is not
            # stored now is the most that its end can lose. Some is still on its way to the provider.
            victim.send_signal(signal.SIGSTOP)
            received = len(trial.server.received)
            self.at_risk += received - len(trial.stored()) + AT_ONCE
            victim.kill()
            victim.wait()
        elif event == "term":
            victim.send_signal(signal.SIGTERM)
        else:
            victim.send_signal(signal.SIGSTOP)
            self.paused.append(victim)
        trial.note_stored()
        if self.chance.random() < 0.5:
            self._wake()
        if self.chance.random() < 0.8:
            self._start_missing()

    def _start_missing(self) -> None:
        while len(self.trial.running()) < self.workers:
            self.trial.start()
            self.events["start"] += 1

    def _wake(self) -> None:
        for process in self.paused:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
        self.paused.clear()

    def _wait_for_requests(self, count: int) -> None:
        """Wait for so many requests, or until no worker is left that could send them."""
        trial = self.trial
        while len(trial.server.received) < count and trial.running():
            if len(self.paused) == len(trial.running()):
                self._wake()
            time.sleep(0.005)


def comparable(run: Path) -> dict[str, Any]:
    """What must be equal in two records of a run: numbers and samples, without times and workers."""
    run_record = record(run)
    usage = {
        key: run_record["usage"][key] for key in ("requested", "failed", "answers")
    }
    return {
        **{key: run_record[key] for key in ("id", "identity", "model", "roles")},
        "configuration": run_record["configuration"],
        "tasks": run_record["tasks"],
        "usage": usage,
        "samples": [_without_times(row) for row in records(run)],
    }


def _without_times(content: Any) -> Any:
    if isinstance(content, dict):
        return {
            key: _without_times(inner)
            for key, inner in content.items()
            if key not in ("latency", "seconds", "started")
        }
    if isinstance(content, list):
        return [_without_times(inner) for inner in content]
    return content
