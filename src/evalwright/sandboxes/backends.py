"""The table of backends, and the start of a sandbox by its settings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from weakref import WeakKeyDictionary

from evalwright.core.errors import ConfigurationError, check_known
from evalwright.sandboxes.protocol import (
    Sandbox,
    SandboxBackend,
    SandboxFailed,
    SandboxSettings,
    Snapshot,
)

BUNDLED = {
    "docker": "evalwright.sandboxes.containers:DockerBackend",
    "jail": "evalwright.sandboxes.jail:JailBackend",
    "podman": "evalwright.sandboxes.containers:PodmanBackend",
}
"""Bundled backends: name -> "module:class"."""
AT_ONCE_VARIABLE = "EVALWRIGHT_SANDBOXES"
AT_ONCE = 16
"""Most sandboxes that this process has at a time, unless the variable says otherwise."""
SNAPSHOTS_FOLDER = "sandboxes"
"""The folder of the home folder that has snapshots."""

_backends: dict[str, SandboxBackend] = {}
_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
    WeakKeyDictionary()
)


def backend_of(name: str) -> SandboxBackend:
    """Return the backend of a name.

    Raises:
        UnknownName: there is none.
    """
    backend = _backends.get(name)
    if backend is None:
        check_known("sandbox backend", [name], BUNDLED)
        module, _, class_name = BUNDLED[name].partition(":")
        backend_class: type[SandboxBackend] = getattr(import_module(module), class_name)
        backend = _backends[name] = backend_class()
    return backend


def refusal_of(settings: SandboxSettings) -> str:
    """Return why there is no such sandbox on this machine, in a sentence; "" if there is."""
    return backend_of(settings.backend).refuses(settings)


def has_snapshot(home: Path, snapshot: Snapshot) -> bool:
    """Return whether a snapshot is on this machine, as far as a look can tell.

    Args:
        home: the home folder of the run.
        snapshot: the snapshot.
    """
    backend = backend_of(snapshot.backend)
    return backend.has(home / SNAPSHOTS_FOLDER / backend.name, snapshot)


@asynccontextmanager
async def started(
    settings: SandboxSettings, home: Path, snapshot: Snapshot | None = None
) -> AsyncIterator[Sandbox]:
    """Start a sandbox, when fewer than the most are running, and stop it at the end.

    Args:
        settings: what it is to be.
        home: the home folder of the run.
        snapshot: the state to begin with; None for an empty one.

    Raises:
        SandboxFailed: it cannot be started.
    """
    async with _slots_of_loop():
        backend = backend_of(settings.backend)
        refusal = backend.refuses(settings)
        if refusal:
            raise SandboxFailed(refusal)
        sandbox = await backend.start(
            settings, home / SNAPSHOTS_FOLDER / backend.name, snapshot
        )
        try:
            yield sandbox
        finally:
            await sandbox.stop()


def _slots_of_loop() -> asyncio.Semaphore:
    loop = asyncio.get_running_loop()
    slots = _slots.get(loop)
    if slots is None:
        slots = _slots[loop] = asyncio.Semaphore(_at_once())
    return slots


def _at_once() -> int:
    text = os.environ.get(AT_ONCE_VARIABLE, "").strip()
    if not text:
        return AT_ONCE
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise ConfigurationError(
            f"The variable {AT_ONCE_VARIABLE} is a whole number from 1 to 10,000, not"
            f" '{text[:40]}'."
        )
    return int(text)
