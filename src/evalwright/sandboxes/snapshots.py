"""Stored states of sandboxes: private files whose names are digests of their content."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path

from evalwright.sandboxes.protocol import SandboxFailed, Snapshot, SnapshotMissing

SUFFIX = ".tar.gz"
_REFERENCE = re.compile(r"[0-9a-f]{32}")


class SnapshotFile:
    """A snapshot that is being written. It exists under its name only when it is complete.

    Args:
        folder: where snapshots are; made if it does not exist, for this user alone.

    Raises:
        SandboxFailed: nothing can be written there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f".{os.getpid()}-{secrets.token_hex(8)}.partial"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.descriptor = os.open(
                self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise SandboxFailed(
                f"A snapshot of a sandbox cannot be written to {folder}: {error.strerror}."
            ) from None

    def publish(self, backend: str, reference: str) -> Snapshot:
        """Give the file its name, and return the snapshot.

        Args:
            backend: the backend that wrote it.
            reference: the digest of its content, which becomes its name.

        Raises:
            SandboxFailed: it cannot be stored.
        """
        try:
            os.fsync(self.descriptor)
            n_bytes = os.fstat(self.descriptor).st_size
            self._path.replace(self._folder / f"{reference}{SUFFIX}")
            self.close()
        except OSError as error:
            raise SandboxFailed(
                f"A snapshot of a sandbox cannot be stored in {self._folder}:"
                f" {error.strerror}."
            ) from None
        return Snapshot(backend, reference, n_bytes)

    def close(self) -> None:
        """Close the file, and remove it unless it was published. It may be called twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
        with contextlib.suppress(OSError):
            self._path.unlink()


def open_snapshot(folder: Path, snapshot: Snapshot) -> int:
    """Open a stored snapshot for reading, and return its descriptor.

    Raises:
        SnapshotMissing: there is none of this reference, or it is no file.
    """
    if not _REFERENCE.fullmatch(snapshot.reference):
        raise SnapshotMissing(
            f"'{snapshot.reference[:60]}' is no reference of a snapshot."
        )
    path = _path_of(folder, snapshot)
    try:
        # Without waiting for the other end of a pipe that somebody put there.
        descriptor = os.open(
            path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        )
    except OSError as error:
        raise _not_opened(snapshot, error.strerror, path) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_opened(snapshot, "it is not a file", path)
    return descriptor


def _not_opened(snapshot: Snapshot, why: str | None, path: Path) -> SnapshotMissing:
    return SnapshotMissing(
        f"The snapshot {snapshot.reference} of a sandbox cannot be opened ({why}):"
        f" {path}. Run the sample again."
    )


def remove_snapshot(folder: Path, snapshot: Snapshot) -> None:
    """Remove a stored snapshot whose content is not what its name says, where that is allowed."""
    with contextlib.suppress(OSError):
        _path_of(folder, snapshot).unlink()


def _path_of(folder: Path, snapshot: Snapshot) -> Path:
    return folder / f"{snapshot.reference}{SUFFIX}"
