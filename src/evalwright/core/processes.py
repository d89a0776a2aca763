"""Identifies processes across hosts and restarts: by host, process id and start time."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path

_LINUX = sys.platform == "linux"
_HASH_BYTES = 6


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
    import platform
    import uuid

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
    import subprocess

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


def process_mark() -> str:
    """Return what identifies this process in the names of its temporary files."""
    return _own_mark(os.getpid())


def has_ended(mark: str) -> bool | None:
    """Tell whether the process with a mark has ended; None if that cannot be known here.

    Args:
        mark: what `process_mark` returned in that process.
    """
    pid, *hashes = mark.split("-")
    if len(hashes) != 2 or not all(hashes) or not pid.isdecimal() or len(pid) > 10:
        return None
    if hashes[0] != _hash(this_host()):
        return None
    return _mark(int(pid)) != mark


@cache
def _own_mark(pid: int) -> str:
    """Return the mark of this process, whose id it has until it forks."""
    return _mark(pid)


def _mark(pid: int) -> str:
    return f"{pid}-{_hash(this_host())}-{_hash(process_start(pid) or '')}"


def _hash(text: str) -> str:
    """Hash a text; "" stays as it is."""
    if not text:
        return ""
    return hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()
