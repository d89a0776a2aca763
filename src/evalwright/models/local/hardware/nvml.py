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
class Slice:
    """A part of a divided card (MIG): its identifier, and its memory in bytes."""

    uuid: str
    memory: int | None = None
    free: int | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """One graphics card; a value is None if the driver does not report it.

    Memory is in bytes, energy in joules since the driver was loaded. `uuid` identifies the card to
    the driver; it and the identifiers of its slices never go into a record.
    """

    name: str
    memory: int | None = None
    free: int | None = None
    driver: str = ""
    energy: float | None = None
    uuid: str = ""
    slices: tuple[Slice, ...] = ()


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
    total, free = _memory_of(nvml, handle)
    energy = ctypes.c_ulonglong(0)
    try:
        metered = (
            nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(energy)) == 0
        )
    except AttributeError:  # the driver is older than this function
        metered = False
    return Card(
        name=name.value.decode("utf-8", "replace") if named else "unknown",
        memory=total,
        free=free,
        driver=driver,
        energy=energy.value / 1000 if metered else None,
        uuid=_uuid_of(nvml, handle),
        slices=_slices_of(nvml, handle),
    )


def _memory_of(nvml: Any, handle: Any) -> tuple[int | None, int | None]:
    """Return the memory of a card or slice, and what is free of it, in bytes."""
    memory = _Memory()
    if nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) != 0:
        return None, None
    return int(memory.total), int(memory.free)


def _uuid_of(nvml: Any, handle: Any) -> str:
    """Return the identifier of a card or slice; "" if the driver does not report it."""
    uuid = ctypes.create_string_buffer(96)
    try:
        if nvml.nvmlDeviceGetUUID(handle, uuid, ctypes.c_uint(96)) != 0:
            return ""
    except AttributeError:
        return ""
    return uuid.value.decode("ascii", "replace")


def _slices_of(nvml: Any, handle: Any) -> tuple[Slice, ...]:
    """Return the slices of a card; none if it is not divided."""
    enabled = ctypes.c_uint(0)
    pending = ctypes.c_uint(0)
    most = ctypes.c_uint(0)
    try:
        if (
            nvml.nvmlDeviceGetMigMode(
                handle, ctypes.byref(enabled), ctypes.byref(pending)
            )
            != 0
            or not enabled.value
            or nvml.nvmlDeviceGetMaxMigDeviceCount(handle, ctypes.byref(most)) != 0
        ):
            return ()
    except AttributeError:
        return ()
    slices: list[Slice] = []
    for index in range(most.value):
        part = ctypes.c_void_p()
        # Places for slices may be empty.
        if (
            nvml.nvmlDeviceGetMigDeviceHandleByIndex(
                handle, ctypes.c_uint(index), ctypes.byref(part)
            )
            == 0
        ):
            slices.append(Slice(_uuid_of(nvml, part), *_memory_of(nvml, part)))
    return tuple(slices)
