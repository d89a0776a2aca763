"""Decides which process sends which request, across hosts: a claim is a row `key -> owner`.

Every open store that sends requests is an owner with a lease in the store. The lease is renewed
while the store is open, by the store's own clock, and the claims of a dead owner are free once
its lease has run out. An owner on the same host is looked up among the running processes
instead, by process id and start time: the claims of a killed process are free at once.
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
LEASE_SECONDS = 60.0
"""How long claims hold without a renewal; downtime of the store's server does not count."""
RENEWAL_SECONDS = 10.0
"""Time between two renewals."""
OPEN_OWNERS: set[str] = set()
"""The owners of this process whose stores are open; a closed one makes no more claims."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An open store's right to claim.

    Attributes:
        id: unique over all hosts.
        host: identifies this host, as its processes see it; "" if unknown.
        pid: the process.
        started: when the process started, as the system tells it; "" if unknown.
    """

    id: str
    host: str
    pid: int
    started: str

    @classmethod
    def new(cls) -> Owner:
        """Register another owner in this process."""
        pid = os.getpid()
        name = f"{pid}@{platform.node() or 'host'}-{secrets.token_hex(6)}"
        OPEN_OWNERS.add(name)
        return cls(name, this_host(), pid, process_start(pid) or "")

    def end(self) -> None:
        """Unregister: the store is closed."""
        OPEN_OWNERS.discard(self.id)


def is_running(host: str, pid: int, start: str) -> bool | None:
    """Return whether another process runs; None on another host or if its start is unknown."""
    if not host or not start or host != this_host():
        return None
    return pid != os.getpid() and process_start(pid) == start


def process_of(owner: str) -> str:
    """Return the process in an owner's id, for messages: "123 on node-7"."""
    return owner.rpartition("-")[0].replace("@", " on ", 1) or owner


@cache
def this_host() -> str:
    """Return an id shared by all processes whose process ids can be compared with this one's.

    Processes in another container have another id.
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
    )  # `uuid.getnode` sets this bit in a random number that stands in for a hardware address


def process_start(pid: int) -> str | None:
    """Return when a process of this host started, as the system writes it; None if it has ended."""
    if _LINUX:
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        # A process that has ended but was not reaped by its parent yet never answers again.
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
