"""The table of backends, and the start of a sandbox by its settings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

from evalwright.core.errors import ConfigurationError, EvalwrightError
from evalwright.core.registry import Registry
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


def _check_backend(name: str, backend_class: type[SandboxBackend]) -> None:
    is_class = isinstance(backend_class, type)
    if not is_class or not issubclass(backend_class, SandboxBackend):
        raise ConfigurationError(
            f"The sandbox backend '{name}' is no class that extends `SandboxBackend`, but"
            f" {backend_class!r:.100}."
        )


registry: Registry[type[SandboxBackend]] = Registry(
    "sandbox backend", BUNDLED, _check_backend, plural="sandboxes"
)


def register_backend(name: str, backend_class: type[SandboxBackend]) -> None:
    """Add a backend under a name that task files can use.

    Installed packages add theirs by the entry point group `evalwright.sandboxes` instead.

    Args:
        name: the name.
        backend_class: the class; it is made without arguments, once in a process.

    Raises:
        ConfigurationError: it is no class of a backend.
    """
    registry.register(name, backend_class)
    _backends.pop(name, None)


def backend_of(name: str) -> SandboxBackend:
    """Return the backend of a name.

    Raises:
        UnknownName: there is none.
        ConfigurationError: it cannot be loaded.
    """
    backend = _backends.get(name)
    if backend is None:
        try:
            backend = registry.get(name)()
        except EvalwrightError:
            raise
        except Exception as error:  # whatever a package of others raises
            raise ConfigurationError(
                f"The sandbox backend '{name}' cannot be loaded: {type(error).__name__}:"
                f" {error}."
            ) from error
        backend.name = name
        _backends[name] = backend
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
