"""The home folder in which a run keeps the snapshots of its sandboxes."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from evalwright.core.actions import ActionLog


def snapshot_home(log: ActionLog | None) -> Path:
    """Return the home folder in which snapshots are kept.

    Where nothing is stored, that is a folder which goes when this process ends: scorers read
    snapshots after the strategy.
    """
    return scratch_folder() if log is None else log.folder


def scratch_folder() -> Path:
    """Return a private folder that goes when this process ends."""
    folder = Path(_make_scratch_folder())
    folder.mkdir(mode=0o700, exist_ok=True)  # a machine may clean up during a long run
    return folder


@cache
def _make_scratch_folder() -> str:
    folder = mkdtemp(prefix="evalwright-")
    atexit.register(rmtree, folder, ignore_errors=True)
    return folder
