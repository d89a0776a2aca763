"""A process that is shut in, seen from outside: bytes to it and from it, within a time and a size,
and its end.
"""

from __future__ import annotations

import json
import os
import select
import struct
import time
from typing import Any, Literal

from evalwright.core.errors import Party, ScoringError

HEADER = struct.Struct("!cI")
"""A frame's letter and length; its body follows."""
MAX_BYTES = 16 << 20
"""Bytes that wait between two processes, and that a program may write as its output."""


class NoSandbox(ScoringError):
    """This machine cannot shut a program in, so none is run."""

    party: Party = "sandbox"


class Process:
    """One process that is shut in: the ends of its standard streams that are ours."""

    def __init__(self, stdin: int, stdout: int, stderr: int) -> None:
        self.stdin: int | None = stdin
        self.stdout: int | None = stdout
        self.stderr: int | None = stderr
        self.outgoing = bytearray()
        for descriptor in (stdin, stdout, stderr):
            os.set_blocking(descriptor, False)

    def write(self) -> None:
        """Write what waits, as far as it is taken."""
        assert self.stdin is not None
        try:
            del self.outgoing[
                : os.write(self.stdin, memoryview(self.outgoing)[: 1 << 20].tobytes())
            ]
        except BlockingIOError:
            return
        except OSError:
            self.outgoing.clear()
            self.close("stdin")

    def read(self, stream: Literal["stdout", "stderr"]) -> bytes:
        """What is there; the stream is closed at its end."""
        try:
            received = os.read(getattr(self, stream), 1 << 18)
        except BlockingIOError:
            return b""
        except OSError:
            received = b""
        if not received:
            self.close(stream)
        return received

    def close(self, *streams: str) -> None:
        """Close our ends."""
        for stream in streams:
            if (descriptor := getattr(self, stream)) is not None:
                os.close(descriptor)
                setattr(self, stream, None)

    def missing(self) -> str:
        """Why it did not start, in the words of what was to start it."""
        raise NotImplementedError

    def wait(self, deadline: float) -> int | None:
        """The exit status, negative for a signal; None where it has not ended in time."""
        raise NotImplementedError

    def end(self) -> None:
        """End it, however it stands."""
        self.close("stdin", "stdout", "stderr")


def _wait_ready(
    deadline: float, events_by_descriptor: dict[int | None, int]
) -> set[int] | None:
    """The descriptors that are ready; None at the deadline."""
    poll = select.poll()
    for descriptor, events in events_by_descriptor.items():
        if descriptor is not None and events:
            poll.register(descriptor, events)
    left = deadline - time.monotonic()
    return (
        {descriptor for descriptor, _ in poll.poll(left * 1000)} if left > 0 else None
    )


def relay(tests: Process, program: Process, deadline: float) -> dict[str, Any] | None:
    """Pass messages on between tests and program: the tests' verdict, {} where they ended without
    one, None at the deadline.

    What the program writes goes to the tests and is not looked at; only a frame of the tests' own
    can be a verdict.
    """
    tests.close("stderr")
    program.close("stderr")
    received = bytearray()
    while True:
        events_by_descriptor: dict[int | None, int] = {}
        for process, peer in ((tests, program), (program, tests)):
            events_by_descriptor[process.stdout] = (
                select.POLLIN if len(peer.outgoing) < MAX_BYTES else 0
            )
            events_by_descriptor[process.stdin] = (
                select.POLLOUT if process.outgoing else 0
            )
        ready = _wait_ready(deadline, events_by_descriptor)
        if ready is None:
            return None
        for process in (tests, program):
            if process.stdin in ready:
                process.write()
        if program.stdout in ready:
            tests.outgoing += program.read("stdout")
        if program.stdout is None and not tests.outgoing:
            tests.close("stdin")
        if tests.stdout in ready:
            received += tests.read("stdout")
        while len(received) >= HEADER.size:
            letter, length = HEADER.unpack_from(received)
            if length > MAX_BYTES:
                return {}
            if len(received) < HEADER.size + length:
                break
            if letter == b"v":
                return _read_verdict(received[HEADER.size : HEADER.size + length])
            program.outgoing += received[: HEADER.size + length]
            del received[: HEADER.size + length]
        if tests.stdout is None:
            return {}


def _read_verdict(body: bytes | bytearray) -> dict[str, Any]:
    """What the tests' process says; tests come with data sets, so that may be anything."""
    try:
        verdict = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return verdict if isinstance(verdict, dict) else {}


def collect(
    process: Process, deadline: float
) -> tuple[Literal["ended", "late", "long"], bytes, bytes]:
    """What a process writes, and the last of its errors, until both are closed, the deadline, or
    more than `MOST` bytes.
    """
    written = bytearray()
    errors = bytearray()
    while process.stdout is not None or process.stderr is not None:
        if not process.outgoing:
            process.close("stdin")
        events_by_descriptor: dict[int | None, int] = {
            process.stdout: select.POLLIN,
            process.stderr: select.POLLIN,
        }
        events_by_descriptor[process.stdin] = select.POLLOUT
        ready = _wait_ready(deadline, events_by_descriptor)
        if ready is None:
            return "late", bytes(written), bytes(errors)
        if process.stdin in ready:
            process.write()
        if process.stdout in ready:
            written += process.read("stdout")
        if process.stderr in ready:
            errors += process.read("stderr")
            del errors[:-4000]
        if len(written) > MAX_BYTES:
            return "long", bytes(written), bytes(errors)
    return "ended", bytes(written), bytes(errors)
