"""What installed packages offer and which versions they have, read once until that changes."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import (
    EntryPoints,
    PackageNotFoundError,
    entry_points,
    version,
)
from pathlib import Path

MAX_KEPT = 64


def points_of(group: str) -> EntryPoints:
    """Return the entry points of a group.

    All metadata of all packages is read for it, which takes tens of milliseconds, and a run asks
    many times. It is read again after the import path, or a folder of it, has changed.

    Args:
        group: such as "evalwright.scorers".
    """
    return _read_points(group, _import_path())


def version_of(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    return _read_version(package, _import_path())


@lru_cache(maxsize=MAX_KEPT)
def _read_points(group: str, import_path: tuple[tuple[str, int], ...]) -> EntryPoints:
    return entry_points(group=group)


@lru_cache(maxsize=MAX_KEPT)
def _read_version(package: str, import_path: tuple[tuple[str, int], ...]) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _import_path() -> tuple[tuple[str, int], ...]:
    return tuple(_state_of(folder) for folder in sys.path)


def _state_of(folder: str) -> tuple[str, int]:
    """Return what is another value after a package was installed into a folder."""
    try:
        return folder, Path(folder or ".").stat().st_mtime_ns
    except OSError:
        return folder, 0
