"""Runs a program that a model wrote in a process of its own that is shut in before it starts: see `_jail` for what it cannot do."""

from __future__ import annotations

import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal, NamedTuple

from evalwright.core.errors import Party, ScoringError

_JAIL = Path(__file__).with_name("_jail.py")
_MOST_BYTES = 65_536


class NoSandbox(ScoringError):
    """This machine cannot shut a program in, so none is run."""

    party: Party = "sandbox"


class Outcome(NamedTuple):
    """What became of a program, and why in its own words."""

    label: Literal["passed", "failed", "timed out", "ended early"]
    why: str = ""


def run(program: str, *, seconds: float = 10.0, megabytes: int = 1024) -> Outcome:
    """Run a program to its end. "passed" only where it came to its last line.

    seconds: of wall time, beside one for starting; processor time is bounded a little above it. megabytes: of address space.
    Blocks for that long at the most. Raises NoSandbox where the system has not what it takes.
    """
    if sys.platform != "linux":
        raise NoSandbox("Programs that models write are run only on Linux, where they can be sandboxed.")
    word = secrets.token_hex(16)
    job = json.dumps({"program": program, "word": word, "seconds": int(seconds) + 3, "megabytes": megabytes})
    with tempfile.TemporaryDirectory(prefix="evalwright-") as folder:
        jail = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", str(_JAIL)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        try:
            said = _exchange(jail, job.encode("utf-8", "surrogatepass"), time.monotonic() + seconds + 1.0)
        finally:
            jail.kill()
            ended_by = -jail.wait()
            for stream in (jail.stdin, jail.stdout):
                if stream is not None:
                    stream.close()
    if said is None or ended_by == signal.SIGXCPU:
        return Outcome("timed out", f"after {seconds:g} seconds")
    return _read(said, word)


def _exchange(jail: subprocess.Popen[bytes], job: bytes, deadline: float) -> bytes | None:
    """Hand the job over and take the answer; None where it did not come in time."""
    assert jail.stdin is not None and jail.stdout is not None
    try:
        jail.stdin.write(job)
        jail.stdin.close()
    except BrokenPipeError:
        return b""
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(jail.stdout, selectors.EVENT_READ)
        while len(said) < _MOST_BYTES:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                return None
            piece = os.read(jail.stdout.fileno(), _MOST_BYTES)
            if not piece:
                break
            said += piece
    return said


def _read(said: bytes, word: str) -> Outcome:
    """The line that has the word in it; a program that ended otherwise has none."""
    for line in said.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and found.get("word") == word:
            if found["outcome"] == "no sandbox":
                raise NoSandbox(f"This system cannot sandbox a program, so none is run: {found['why']}.")
            if found["outcome"] == "passed":
                return Outcome("passed")
            return Outcome("failed", str(found["why"]))
    return Outcome("ended early", "it ended, or was ended at a limit, before its last line")
