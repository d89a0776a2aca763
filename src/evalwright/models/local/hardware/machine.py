"""The machine that a run is made on, as plain data. Never a host name, a serial number or a path."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.models.local.hardware import limits, nvml


@dataclass(frozen=True, slots=True)
class Machine:
    """cores: that this process may use, a fraction where its control group is given a share. Memory in bytes.

    memory_limit: what a control group or a resource limit leaves of the memory; None where nothing limits it. free: what may
    still be taken. None: nothing says so.
    """

    cpu: str | None
    cores: float
    memory: int | None
    memory_limit: int | None = None
    free: int | None = None
    gpus: tuple[nvml.Card, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """What the record keeps: not what changes from one moment to the next."""
        return {
            "cpu": self.cpu,
            "cores": self.cores,
            "memory_bytes": self.memory,
            "memory_limit_bytes": self.memory_limit,
            "gpus": [
                {"name": gpu.name, "memory_bytes": gpu.memory, "driver": gpu.driver} for gpu in self.gpus
            ],
        }


def find_machine(root: Path = Path("/"), library: str = nvml.LIBRARY) -> Machine:
    """This machine. root: where /proc and /sys lie. library: that of NVIDIA's driver."""
    total, limit = limits.total_memory(root), limits.memory_limit(root)
    return Machine(
        cpu=_cpu_model(root),
        cores=limits.usable_cores(root),
        memory=total,
        memory_limit=limit if limit is not None and (total is None or limit < total) else None,
        free=limits.free_memory(root),
        gpus=nvml.cards(library),
    )


def _cpu_model(root: Path) -> str | None:
    for line in limits.read_text(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        # ARM processors have no model name; some say what board they are on.
        if key.strip() in ("model name", "Model", "cpu model") and value.strip():
            return " ".join(value.split())
    return platform.processor() or platform.machine() or None
