"""Runs programs that models wrote where they can only compute, and judges them from outside.

A program runs in a process of its own. Tests run in another such process and call the program's
functions by messages, so the program sees neither the tests nor the expected values, and cannot
touch what judges it; the verdict comes only from the tests' process. A program that reads and
writes text gets the text, and the caller compares what it wrote. Processes come from `_jail` (its
docstring lists what they cannot do), or from the container that $EVALWRIGHT_SANDBOX names: a
setting of the user that no task file can change.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import time
from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

from evalwright.core.errors import ScoringError
from evalwright.scorers.code import containers
from evalwright.scorers.code.jailed import get_jail
from evalwright.scorers.code.processes import HEADER, NoSandbox, Process, collect, relay

VARIABLE = "EVALWRIGHT_SANDBOX"
_START_SECONDS = 60.0
"""Seconds in which a process must be ready; they do not count as the program's."""


class Outcome(NamedTuple):
    """The outcome of a program, and the reason."""

    label: Literal["passed", "failed", "timed out", "ended early"]
    why: str = ""


class Output(NamedTuple):
    """What a program wrote; `outcome` is "passed" if it ended well."""

    text: str
    outcome: Outcome


def run(
    program: str,
    tests: str = "",
    *,
    before: str = "",
    entry_point: str = "",
    seconds: float = 10.0,
    megabytes: int = 1024,
) -> Outcome:
    """Load a program and run `tests`, which call it; "passed" only if the tests reach their end.

    Args:
        program: Python source.
        tests: Python source of the tests.
        before: Python that the tests may use too, in their own copy.
        entry_point: a name that always means the program's.
        seconds: limit on wall time.
        megabytes: limit on the address space of each of the two processes.

    Returns:
        What became of it: `label` and `why`.

    Raises:
        NoSandbox: the system cannot sandbox programs.
        ScoringError: the tests are not Python, or need what cannot be sent to another process.
    """
    judge = {
        "role": "tests",
        "tests": tests,
        "before": before,
        "entry_point": entry_point,
    }
    started: list[Process] = []
    try:
        for job in (judge, {"role": "program", "source": program}):
            started.append(_start_process(job, seconds, megabytes))  # noqa: PERF401 - what was started is ended where the next fails
        verdict = relay(started[0], started[1], time.monotonic() + seconds)
    finally:
        for process in started:
            process.end()
    if verdict is None:
        return Outcome("timed out", f"after {seconds:g} seconds")
    label = verdict.get("label")
    why = _remove_folders(str(verdict.get("why", "")))[:300]
    if label == "untestable":
        raise ScoringError(f"This sample's tests cannot be run: {why}.")
    if label == "passed" or label == "failed":
        return Outcome(label, why)
    return Outcome(
        "ended early", why or "it ended, or was ended at a limit, before its last test"
    )


_FOLDERS_OF_A_MODULE = re.compile(r"(?:/[^\s/\"':]+)+/(?=[^\s/\"':]+\.py\b)")


def _remove_folders(text: str) -> str:
    """Remove the folders of this machine from an explanation that names modules."""
    return _FOLDERS_OF_A_MODULE.sub("", text)


def run_script(
    source: str, text: str, *, seconds: float = 10.0, megabytes: int = 1024
) -> Output:
    """Run a program that reads `text` as its standard input; limits and errors are as for `run`."""
    process = _start_process({"role": "script", "source": source}, seconds, megabytes)
    try:
        process.outgoing += text.encode("utf-8", "surrogateescape")
        deadline = time.monotonic() + seconds
        ending, written, errors = collect(process, deadline)
        status = process.wait(deadline) if ending == "ended" else None
    finally:
        process.end()
    last_errors = _remove_folders(errors.decode("utf-8", "replace").strip())[-300:]
    if ending == "long":
        outcome = Outcome("failed", "it wrote more than 16 MiB")
    elif status is None:
        outcome = Outcome("timed out", f"after {seconds:g} seconds")
    elif status < 0:
        outcome = Outcome(
            "ended early", last_errors or f"it was ended by the signal {-status}"
        )
    else:
        outcome = (
            Outcome("failed", last_errors or f"it ended with the exit status {status}")
            if status
            else Outcome("passed")
        )
    return Output(written.decode("utf-8", "replace"), outcome)


def _start_process(job: dict[str, str], seconds: float, megabytes: int) -> Process:
    """Start a process, wait until it is ready, and send it its job.

    Raises:
        NoSandbox: the process could not be started.
    """
    sandbox = os.environ.get(VARIABLE, "").strip()
    process: Process
    if sandbox and sandbox != "jail":
        process = containers.start(sandbox, seconds, megabytes)
    else:
        jail = get_jail()
        try:
            process = jail.start(seconds, megabytes)
        except OSError:
            process = get_jail(stale=jail).start(seconds, megabytes)
    assert process.stdout is not None
    ready = select.poll()
    ready.register(process.stdout, select.POLLIN)
    if not ready.poll(_START_SECONDS * 1000) or os.read(process.stdout, 1) != b"!":
        why = process.missing()
        process.end()
        raise NoSandbox(
            f"No sandbox for a program could be started, so it is not run: {why}."
        )
    body = json.dumps(job).encode()
    process.outgoing += HEADER.pack(b"j", len(body)) + body
    return process


_CONCURRENT_PROGRAMS = 4
"""Most programs that this process runs at the same time."""

_semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
    WeakKeyDictionary()
)


def program_slots() -> asyncio.Semaphore:
    """Limit how many programs run at once.

    Returns:
        The semaphore of the event loop: run a program within `async with program_slots()`.
    """
    return _semaphores.setdefault(
        asyncio.get_running_loop(), asyncio.Semaphore(_CONCURRENT_PROGRAMS)
    )
