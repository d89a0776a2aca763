"""The snapshots in a home folder, for whoever looks after its space."""

from __future__ import annotations

import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evalwright.sandboxes.backends import SNAPSHOTS_FOLDER


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """The file of a snapshot.

    Args:
        path: the file.
        n_bytes: its size.
        modified: when it was last taken, in seconds since 1970.
    """

    path: Path
    n_bytes: int
    modified: float

    def delete(self) -> None:
        """Delete the file. Another process may have done so."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def kept_snapshots(home: Path) -> list[KeptSnapshot]:
    """List the snapshots that are files of a home folder, in the order of their names.

    Args:
        home: the home folder.
    """
    snapshots: list[KeptSnapshot] = []
    for path in sorted((home / SNAPSHOTS_FOLDER).glob("*/*")):
        with suppress(OSError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and not path.name.startswith("."):
                snapshots.append(KeptSnapshot(path, status.st_size, status.st_mtime))
    return snapshots
