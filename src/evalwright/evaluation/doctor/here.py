"""Checks that send nothing: versions, libraries, the store, keys, sandboxes, devices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from evalwright.core.errors import ConfigurationError, EvalwrightError, reason_of
from evalwright.core.private import home_folder
from evalwright.engine.opening import open_store
from evalwright.evaluation.doctor.checks import Check
from evalwright.evaluation.doctor.devices import known_devices
from evalwright.models.remote import providers
from evalwright.models.remote.keys import find_key
from evalwright.runs.environment import environment
from evalwright.sandboxes.backends import refusal_of
from evalwright.sandboxes.protocol import SandboxSettings

_LIBRARIES = (
    ("torch", "hf", "local models (hf/...)"),
    ("transformers", "hf", "local models (hf/...)"),
    ("datasets", "hub", "data sets of the hub"),
    ("matplotlib", "plot", "figures"),
    ("pyarrow", "parquet", "Parquet files"),
    ("botocore", "s3", "runs in buckets (s3://...)"),
)
"""Library, the extra that installs it, and what needs it."""


def check_here() -> Iterator[Check]:
    """Yield the checks. Of the heavy libraries only torch is imported, for devices."""
    versions = environment()
    libraries = ", ".join(
        f"{name} {version}" for name, version in versions["libraries"].items()
    )
    yield Check(
        "here",
        "Python",
        versions["python"],
        "works",
        f"{versions['platform']}; {libraries}",
        facts=versions,
    )
    for library, extra, purpose in _LIBRARIES:
        if find_spec(library) is None:
            yield Check(
                "here",
                "library",
                library,
                "skipped",
                f"not installed; for {purpose}: pip install 'evalwright[{extra}]'",
            )
    yield _store()
    names = [name for name in providers.names() if has_key(name)]
    why = f"set for {', '.join(names)}" if names else "no provider's key is set"
    yield Check(
        "here",
        "keys",
        "providers",
        "works" if names else "look",
        why,
        facts={"providers": names},
    )
    yield _sandbox()
    devices = known_devices()
    yield Check(
        "here",
        "devices",
        "torch",
        "works" if devices else "skipped",
        ", ".join(devices) or "torch is not installed",
    )


def has_key(provider: str) -> bool:
    """Return whether the key of a provider's row is set; a server on this machine has none."""
    row = providers.find(provider)
    if row is None or not row.key:
        return False
    with suppress(ConfigurationError):
        return any(find_key(variable) is not None for variable in row.key)
    return False


def _store() -> Check:
    home = home_folder()
    try:
        if not home.exists():
            free = os.access(_nearest(home), os.W_OK)
            why = (
                "will be made by the first run"
                if free
                else "cannot be made: its folder is not yours to write"
            )
            return Check("here", "store", "folder", "works" if free else "fails", why)
        with open_store(home) as store:
            return Check(
                "here",
                "store",
                "folder",
                "works",
                f"{len(store):,} stored responses",
                facts={"responses": len(store)},
            )
    except (EvalwrightError, OSError) as error:
        return Check("here", "store", "folder", "fails", reason_of(error))


def _sandbox() -> Check:
    settings = SandboxSettings()
    refusal = refusal_of(settings)
    why = refusal or "programs of agents can run without a container"
    return Check(
        "here", "sandbox", settings.backend, "look" if refusal else "works", why
    )


def _nearest(folder: Path) -> Path:
    """Return the closest folder above that exists."""
    return next(parent for parent in folder.absolute().parents if parent.exists())
