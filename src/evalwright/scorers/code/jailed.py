"""The processes that `_jail` starts, as seen from outside.

This process has one starter, which is checked before the first program runs.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from evalwright.scorers.code.processes import NoSandbox, Process

_START_SECONDS = 60.0
_STARTER = Path(__file__).with_name("_jail.py")
_HINT = (
    "set EVALWRIGHT_SANDBOX to a container, for example"
    " podman:docker.io/library/python:3.12-slim"
)


class Jailed(Process):
    """A process that `_jail` started; `line` is the socket to its keeper."""

    def __init__(self, line: socket.socket, *streams: int) -> None:
        super().__init__(*streams)
        self._line = line

    def missing(self) -> str:
        self._line.settimeout(5.0)
        try:
            report = self._line.recv(4096).decode("utf-8", "replace")
        except OSError:
            report = ""
        return (
            report[1:]
            if report.startswith("E")
            else "the process ended before it was ready"
        )

    def wait(self, deadline: float) -> int | None:
        self._line.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            report = self._line.recv(64)
        except OSError:
            return None
        return os.waitstatus_to_exitcode(int(report[1:])) if report[:1] == b"S" else 1

    def refuse(self) -> None:
        """Close our ends of a process that was never started."""
        super().end()
        self._line.close()

    def end(self) -> None:
        """End the process, and wait until its keeper says that it is gone."""
        super().end()
        with self._line as line, contextlib.suppress(OSError):
            line.settimeout(_START_SECONDS)
            line.shutdown(socket.SHUT_WR)
            while line.recv(4096):
                pass


class Jail:
    """The starter of sandboxed processes; this process has only one."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(_STARTER)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        self._control = ours
        ours.settimeout(_START_SECONDS)
        try:
            report = json.loads(
                ours.recv(65536)
                or b'{"missing": "the process that starts programs ended"}'
            )
        except (OSError, ValueError) as error:
            report = {
                "missing": f"the process that starts programs gave no answer ({error})"
            }
        self.missing: str = report.get("missing", "")
        self.layers: list[str] = report.get("layers", [])
        if self.missing:
            self.close()

    def start(self, seconds: float, megabytes: int) -> Process:
        """Start a process that sandboxes itself.

        Raises:
            OSError: the starter has ended.
        """
        theirs_in, stdin = os.pipe()
        stdout, theirs_out = os.pipe()
        stderr, theirs_err = os.pipe()
        line, theirs_line = socket.socketpair()
        process = Jailed(line, stdin, stdout, stderr)
        limits = json.dumps(
            {"seconds": int(seconds) + 1, "megabytes": megabytes}
        ).encode()
        try:
            socket.send_fds(
                self._control,
                [limits],
                [theirs_in, theirs_out, theirs_err, theirs_line.fileno()],
            )
        except OSError:
            process.refuse()
            raise
        finally:
            theirs_line.close()
            for descriptor in (theirs_in, theirs_out, theirs_err):
                os.close(descriptor)
        return process

    def close(self) -> None:
        """End the starter; the processes that it started end when their own lines close."""
        self._control.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_lock = threading.Lock()
_jail: Jail | None = None


def layers() -> list[str]:
    """List the optional layers that protect programs (docs/reference/unit-tests.md).

    Raises:
        NoSandbox: a required layer is missing.
    """
    return list(get_jail().layers)


def get_jail(stale: Jail | None = None) -> Jail:
    """Return this process's jail; it is started on first use, and again if `stale` has ended."""
    global _jail
    with _lock:
        if _jail is None or _jail is stale:
            if sys.platform != "linux":
                raise NoSandbox(
                    "Programs that models write are run only on Linux, where they can"
                    f" be sandboxed. Elsewhere, {_HINT}."
                )
            if _jail is None:
                atexit.register(_close_jail)
            else:
                _jail.close()
            _jail = Jail()
    if _jail.missing:
        raise NoSandbox(
            f"This system cannot sandbox a program, so none is run: {_jail.missing}."
            f" Mend that, or {_HINT}."
        )
    return _jail


def _close_jail() -> None:
    if _jail is not None:
        _jail.close()
