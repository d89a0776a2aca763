"""The processes in a jail, as its keeper sees them, and the last step before a program runs."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_NOT_FOUND = 127
NOT_RUNNABLE = 126


class Process(NamedTuple):
    """A process inside, as /proc shows it.

    Attributes:
        number: its number inside.
        parent: that of its parent.
        started: when it started, in ticks of the kernel's clock.
        folder: where /proc shows its memory.
    """

    number: int
    parent: int
    started: int
    folder: str


def processes() -> Iterator[Process]:
    """Go through the processes inside that have not ended."""
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        folder = f"/proc/{name}"
        try:
            with open(f"{folder}/stat", "rb") as file:
                text = file.read()
            fields = text[text.rfind(b")") + 2 :].split()
            if fields[0] in (b"Z", b"X"):
                folder = _folder_of_thread(folder, n_threads=int(fields[17]))
            process = Process(int(name), int(fields[1]), int(fields[19]), folder)
        except (OSError, IndexError, ValueError):
            continue  # it has just ended
        if folder:
            yield process


def _folder_of_thread(folder: str, n_threads: int) -> str:
    """Return where /proc shows a living thread of a process whose first thread has ended.

    Without threads, the process has ended, and only its parent has not noticed: "".
    """
    if n_threads <= 1:
        return ""
    for name in os.listdir(f"{folder}/task"):
        thread = f"{folder}/task/{name}"
        try:
            with open(f"{thread}/stat", "rb") as file:
                text = file.read()
        except OSError:
            continue
        if text[text.rfind(b")") + 2 :][:1] not in (b"Z", b"X"):
            return thread
    return ""


def resident_bytes(folder: str) -> int:
    """Return the memory of a process, what it shares counted whole: at least what it uses."""
    return _sum_kilobytes(f"{folder}/status", (b"VmRSS:", b"VmSwap:", b"VmPTE:")) << 10


def used_bytes(folder: str) -> int:
    """Return the memory of a process, with its share of what it shares with others."""
    used = _sum_kilobytes(
        f"{folder}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:")
    )
    return (used + _sum_kilobytes(f"{folder}/status", (b"VmPTE:",))) << 10


def _sum_kilobytes(path: str, names: tuple[bytes, ...]) -> int:
    n_kilobytes = 0
    try:
        with open(path, "rb") as file:
            for row in file:
                if row.startswith(names):
                    n_kilobytes += int(row.split()[1])
    except (OSError, IndexError, ValueError):
        return 0  # it has just ended
    return n_kilobytes


def kill(number: int) -> None:
    """End a process inside, by its number inside."""
    try:
        handle = os.open(f"/proc/{number}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    with contextlib.suppress(OSError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)


def execute(argv: list[bytes], environment: Mapping[bytes, bytes], folder: str) -> None:
    """Replace this process by a program, or say on its standard error why that cannot be."""
    try:
        os.chdir(folder)
    except OSError as error:
        os.write(2, f"{folder}: {error.strerror}\n".encode("utf-8", "replace"))
        os._exit(NOT_RUNNABLE)
    try:
        os.execvpe(argv[0], argv, environment)
    except FileNotFoundError:
        os.write(2, argv[0] + b": command not found\n")
        os._exit(_NOT_FOUND)
    except OSError as error:
        os.write(2, argv[0] + f": {error.strerror}\n".encode())
        os._exit(NOT_RUNNABLE)


if sys.platform != "linux":
    raise ImportError("only on Linux")
