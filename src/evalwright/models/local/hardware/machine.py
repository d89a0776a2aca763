"""The machine of a run, and what affinity, cgroup and resource limits let this process use of it.

Plain data; never a host name, a serial number or a path.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.models.local.hardware import nvml

_UNLIMITED = 1 << 60
"""cgroups version 1 writes a number near 2^63 for no limit."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine. Memory is in bytes; None if it is not known.

    Attributes:
        cpu: the processor's name.
        cores: cores that this process may use; a fraction if its cgroup has a share.
        memory: main memory of the machine.
        memory_limit: limit by a cgroup or a resource limit; None for no limit.
        free: memory that may still be taken.
        gpus: NVIDIA's cards.
    """

    cpu: str | None
    cores: float
    memory: int | None
    memory_limit: int | None = None
    free: int | None = None
    gpus: tuple[nvml.Card, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return what the record keeps, without what changes from one moment to the next."""
        return {
            "cpu": self.cpu,
            "cores": self.cores,
            "memory_bytes": self.memory,
            "memory_limit_bytes": self.memory_limit,
            "gpus": [
                {"name": gpu.name, "memory_bytes": gpu.memory, "driver": gpu.driver}
                for gpu in self.gpus
            ],
        }


def find_machine(root: Path = Path("/"), library: str = nvml.LIBRARY) -> Machine:
    """Describe this machine.

    Args:
        root: where /proc and /sys are.
        library: NVIDIA's driver library.
    """
    total = total_memory(root)
    limit = memory_limit(root)
    return Machine(
        cpu=_cpu_model(root),
        cores=usable_cores(root),
        memory=total,
        memory_limit=(
            limit if limit is not None and (total is None or limit < total) else None
        ),
        free=free_memory(root),
        gpus=nvml.cards(library),
    )


def _cpu_model(root: Path) -> str | None:
    for line in read_text(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        # ARM processors have no model name; some state the board instead.
        if key.strip() in ("model name", "Model", "cpu model") and value.strip():
            return " ".join(value.split())
    return platform.processor() or platform.machine() or None


def usable_cores(root: Path = Path("/")) -> float:
    """Processors that this process may use, by its affinity and its cgroup's share."""
    try:
        cores = float(len(os.sched_getaffinity(0)))
    except (AttributeError, OSError):
        cores = float(os.cpu_count() or 1)
    return min([cores, *_quotas(root)])


def total_memory(root: Path = Path("/")) -> int | None:
    """Bytes of the machine's main memory; None if unknown."""
    total = _kilobytes(root / "proc/meminfo", "MemTotal")
    if total is not None:
        return total
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def memory_limit(root: Path = Path("/")) -> int | None:
    """Bytes that cgroups and resource limits allow this process; None for no limit."""
    limits = [
        limit
        for folder in _groups(root, "memory")
        if (limit := _limit_of(folder)) is not None
    ]
    address_space = _address_space()
    return min(
        [*limits, *([address_space] if address_space is not None else [])], default=None
    )


def free_memory(root: Path = Path("/")) -> int | None:
    """Bytes of main memory that this process may still take; None if unknown.

    File caches that a cgroup could give back count as free.
    """
    rooms = [
        room
        for folder in _groups(root, "memory")
        if (room := _room_of(folder)) is not None
    ]
    available = _kilobytes(root / "proc/meminfo", "MemAvailable")
    address_space = _address_space()
    used = _kilobytes(root / "proc/self/status", "VmSize")
    if address_space is not None and used is not None:
        rooms.append(max(0, address_space - used))
    return min([*rooms, *([available] if available is not None else [])], default=None)


_sharers = 1


def share_memory(processes: int) -> None:
    """Note that this process is one of several alike, each of which takes memory."""
    global _sharers
    _sharers = processes


def free_share() -> int | None:
    """Bytes of the free memory that are for this process; None if unknown."""
    free = free_memory()
    return None if free is None else free // _sharers


def peak_memory(root: Path = Path("/")) -> int | None:
    """Return the peak resident memory of this process in bytes; None if unknown."""
    peak = _kilobytes(root / "proc/self/status", "VmHWM")
    if peak is not None:
        return peak
    try:
        import resource
    except ImportError:  # Windows
        return None
    # Kilobytes, except on macOS. On Linux a new program inherits the peak of the one that started
    # it, so this is only the second choice.
    scale = 1 if os.uname().sysname == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def _address_space() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if soft == resource.RLIM_INFINITY else int(soft)


def _kilobytes(file: Path, name: str) -> int | None:
    """Return a line of /proc/meminfo or /proc/self/status, in bytes."""
    for line in read_text(file).splitlines():
        key, _, value = line.partition(":")
        words = value.split()
        if key == name and words and words[0].isdecimal():
            return int(words[0]) * 1024
    return None


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's cgroup and all groups above it, for both versions."""
    for line in read_text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0" and not controllers:
            top = root / "sys/fs/cgroup"
        elif controller in controllers.split(","):
            top = root / "sys/fs/cgroup" / controllers
            top = top if top.is_dir() else root / "sys/fs/cgroup" / controller
        else:
            continue
        segments = [segment for segment in path.split("/") if segment not in ("", "..")]
        # In a container the path may be the host's, so that only groups above it exist.
        for length in range(len(segments), -1, -1):
            yield top.joinpath(*segments[:length])


def _limit_of(folder: Path) -> int | None:
    limits = [
        read_number(folder / name) for name in ("memory.max", "memory.limit_in_bytes")
    ]
    return min(
        (limit for limit in limits if limit is not None and limit < _UNLIMITED),
        default=None,
    )


def _room_of(folder: Path) -> int | None:
    limit = _limit_of(folder)
    files = (folder / name for name in ("memory.current", "memory.usage_in_bytes"))
    used = next(
        (used_bytes for file in files if (used_bytes := read_number(file)) is not None),
        None,
    )
    if limit is None or used is None:
        return limit
    cached = 0
    for line in read_text(folder / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if (
            name in ("inactive_file", "total_inactive_file")
            and value.strip().isdecimal()
        ):
            cached = max(cached, int(value))
    return max(0, limit - max(0, used - cached))


def _quotas(root: Path) -> Iterator[float]:
    for folder in _groups(root, "cpu"):
        quota, period = (*read_text(folder / "cpu.max").split(), "", "")[:2]
        if not quota:
            quota, period = (
                read_text(folder / f"cpu.cfs_{field}_us").strip()
                for field in ("quota", "period")
            )
        if quota.isdecimal() and period.isdecimal() and int(quota) and int(period):
            yield max(math.ceil(100 * int(quota) / int(period)) / 100, 0.01)


def read_number(file: Path) -> int | None:
    """Return the whole number in a system file; None if there is none."""
    text = read_text(file).strip()
    return int(text) if text.isdecimal() else None


def read_text(file: Path) -> str:
    """Return the content of a system file; "" if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
