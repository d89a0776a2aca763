"""Who is asking what, across processes and hosts: a claim is a row `key -> owner`, and an owner has
a lease in the store.

Every open store that sends is an owner. Its lease is renewed while the store is open, by the
store's own clock, and what a dead owner claimed is free when its lease has run out. An owner on the
same host is looked for among the running processes instead, by number and time of start: what a
killed one claimed is free at once.
"""

from __future__ import annotations

import os
import platform
import secrets
import subprocess
import sys
import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_LINUX = platform.system() == "Linux"
LEASE = 60.0
"""Seconds that an owner's claims hold without a renewal. Time in which the store's server was down
does not count.
"""
RENEWAL = 10.0
"""Seconds between two renewals."""
OPEN: set[str] = set()
"""The owners of this process whose stores are open.

One that is closed claims nothing any more, though the process runs.
"""


@dataclass(frozen=True, slots=True)
class Owner:
    """An open store's right to claim. host: what tells this host, as its processes see it, from
    others; "" unknown.

    started: when the process started, as the system tells it; "" unknown.
    """

    id: str
    host: str
    pid: int
    started: str

    @classmethod
    def new(cls) -> Owner:
        """Another owner in this process."""
        pid = os.getpid()
        name = f"{pid}@{platform.node() or 'host'}-{secrets.token_hex(6)}"
        OPEN.add(name)
        return cls(name, this_host(), pid, started(pid) or "")

    def end(self) -> None:
        """Its store is closed."""
        OPEN.discard(self.id)


def is_running(host: str, pid: int, start: str) -> bool | None:
    """Whether another process runs; None where it cannot be known here: it is on another host, or
    its start is unknown.
    """
    if not host or not start or host != this_host():
        return None
    return pid != os.getpid() and started(pid) == start


def process_of(owner: str) -> str:
    """The process in an owner's id, for messages: "123 on node-7"."""
    return owner.rpartition("-")[0].replace("@", " on ", 1) or owner


@cache
def this_host() -> str:
    """The same for all processes whose numbers can be compared with this one's: not for those in
    another container.
    """
    if _LINUX:
        try:
            boot = (
                Path("/proc/sys/kernel/random/boot_id")
                .read_text(encoding="ascii")
                .strip()
            )
            return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
        except OSError:
            return ""
    node = uuid.getnode()
    return (
        "" if node >> 40 & 1 else f"{platform.node()} {node:x}"
    )  # a random number has this bit


def started(pid: int) -> str | None:
    """When a process of this host started, in the system's own words; None where it has ended."""
    if _LINUX:
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        # One that has ended, and that its parent has not noticed yet, answers nothing any more.
        return None if fields[0] in (b"Z", b"X") else fields[19].decode()
    if sys.platform == "win32":
        return _started_on_windows(pid)
    done = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    state, _, start = done.stdout.strip().partition(" ")
    return None if not start or state.startswith("Z") else start.strip()


if sys.platform == "win32":
    import ctypes

    def _started_on_windows(pid: int) -> str | None:
        kernel = ctypes.windll.kernel32
        query = 0x1000
        running = 259
        process = kernel.OpenProcess(query, False, pid)
        if not process:
            return None
        try:
            code = ctypes.c_ulong()
            times = [ctypes.c_ulonglong() for _ in range(4)]
            if (
                not kernel.GetExitCodeProcess(process, ctypes.byref(code))
                or code.value != running
            ):
                return None
            return (
                str(times[0].value)
                if kernel.GetProcessTimes(process, *map(ctypes.byref, times))
                else None
            )
        finally:
            kernel.CloseHandle(process)
