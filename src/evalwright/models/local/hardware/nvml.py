"""Reads NVIDIA's cards through NVML, the driver's library; needs neither torch nor a program.

The functions and units are those of NVIDIA's NVML API reference: memory in bytes, energy in
millijoules since the driver was loaded (cards from Volta on).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

LIBRARY = "libnvidia-ml.so.1"


class _Memory(ctypes.Structure):
    _fields_ = [
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


@dataclass(frozen=True, slots=True)
class Card:
    """One graphics card; a value is None if the driver does not report it.

    Memory is in bytes, energy in joules since the driver was loaded.
    """

    name: str
    memory: int | None = None
    free: int | None = None
    driver: str = ""
    energy: float | None = None


def cards(library: str = LIBRARY) -> tuple[Card, ...]:
    """List the cards of this machine in the driver's order; none without a driver."""
    with _opened(library) as nvml:
        if nvml is None:
            return ()
        count = ctypes.c_uint(0)
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return ()
        driver = ctypes.create_string_buffer(80)
        has_version = nvml.nvmlSystemGetDriverVersion(driver, ctypes.c_uint(80)) == 0
        version = driver.value.decode("utf-8", "replace") if has_version else ""
        return tuple(
            card
            for i in range(count.value)
            if (card := _card(nvml, i, version)) is not None
        )


@contextmanager
def _opened(library: str) -> Iterator[Any]:
    try:
        nvml = ctypes.CDLL(library)
        ready = nvml.nvmlInit_v2() == 0
    except (OSError, AttributeError):
        yield None
        return
    try:
        yield nvml if ready else None
    finally:
        if ready:
            nvml.nvmlShutdown()


def _card(nvml: Any, index: int, driver: str) -> Card | None:
    handle = ctypes.c_void_p()
    if (
        nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle))
        != 0
    ):
        return None
    name = ctypes.create_string_buffer(96)
    named = nvml.nvmlDeviceGetName(handle, name, ctypes.c_uint(96)) == 0
    memory = _Memory()
    energy = ctypes.c_ulonglong(0)
    sized = nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0
    try:
        metered = (
            nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(energy)) == 0
        )
    except AttributeError:  # the driver is older than this function
        metered = False
    return Card(
        name=name.value.decode("utf-8", "replace") if named else "unknown",
        memory=int(memory.total) if sized else None,
        free=int(memory.free) if sized else None,
        driver=driver,
        energy=energy.value / 1000 if metered else None,
    )
