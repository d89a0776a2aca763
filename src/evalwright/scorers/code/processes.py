"""A sandboxed process, as seen from outside: its limited input and output, and its end."""

from __future__ import annotations

import json
import os
import select
import struct
import time
from typing import Any, Literal

from evalwright.core.errors import Party, ScoringError

HEADER = struct.Struct("!cI")
"""The letter and the length of a frame; its body follows."""
MAX_BYTES = 16 << 20
"""Most bytes waiting between two processes, and most bytes of a program's output."""


class NoSandbox(ScoringError):
    """This machine cannot sandbox a program, so none is run."""

    party: Party = "sandbox"


class Process:
    """A sandboxed process: our ends of its standard streams."""

    def __init__(self, stdin: int, stdout: int, stderr: int) -> None:
        self.stdin: int | None = stdin
        self.stdout: int | None = stdout
        self.stderr: int | None = stderr
        self.outgoing = bytearray()
        for descriptor in (stdin, stdout, stderr):
            os.set_blocking(descriptor, False)

    def write(self) -> None:
        """Write as much of the waiting bytes as the process takes."""
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
        """Read the available bytes; the stream is closed at its end."""
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
            descriptor = getattr(self, stream)
            if descriptor is not None:
                os.close(descriptor)
                setattr(self, stream, None)

    def missing(self) -> str:
        """Return why the process did not start, as its starter reported it."""
        raise NotImplementedError

    def wait(self, deadline: float) -> int | None:
        """Wait for the exit status, negative for a signal; None if it has not ended in time."""
        raise NotImplementedError

    def end(self) -> None:
        """End the process, whatever its state."""
        self.close("stdin", "stdout", "stderr")


def _wait_ready(
    deadline: float, events_by_descriptor: dict[int | None, int]
) -> set[int] | None:
    """Wait until descriptors are ready, and return these; None at the deadline."""
    poll = select.poll()
    for descriptor, events in events_by_descriptor.items():
        if descriptor is not None and events:
            poll.register(descriptor, events)
    left = deadline - time.monotonic()
    return (
        {descriptor for descriptor, _ in poll.poll(left * 1000)} if left > 0 else None
    )


def relay(tests: Process, program: Process, deadline: float) -> dict[str, Any] | None:
    """Pass messages between tests and program until the tests give their verdict.

    What the program writes goes to the tests unread; only a frame of the tests can be a verdict.

    Returns:
        The verdict, {} if the tests ended without one, None at the deadline.
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
    """Read the verdict of the tests' process; tests come with datasets, so it may be anything."""
    try:
        verdict = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return verdict if isinstance(verdict, dict) else {}


def collect(
    process: Process, deadline: float
) -> tuple[Literal["ended", "late", "long"], bytes, bytes]:
    """Collect a process's output and the last of its errors.

    Stops when both streams are closed, at the deadline, or after more than `MAX_BYTES` bytes.
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
