"""Who is asking what, across processes: a claim is a row `key -> owner`, and an owner is a locked file.

Every open store is an owner with a file `<home>/owners/<id>.lock` that it holds an operating-system lock on. The kernel
gives the lock up when the process ends, however it ends, so a claim of a dead process is recognised at once and never
by a timeout.
"""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

from evalwright.core.private import private_folder

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        # flock, not lockf: it belongs to the open file, so two stores in one process see each other too.
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


class Owner:
    """The right of one open store to claim requests; ends with `close` or with the process."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError where the folder cannot be written."""
        private_folder(folder)
        self._folder = folder
        while True:
            self.id = f"{os.getpid()}-{secrets.token_hex(6)}"
            self._path = folder / f"{self.id}.lock"
            self._file = self._path.open("xb")
            # A sweep in another process may have met the file before it was locked, and removed it.
            if _try_lock(self._file) and self._path.exists():
                break
            self._file.close()
        self._sweep()

    def is_alive(self, owner: str) -> bool:
        """Whether that owner's process still holds its lock. Removes the file of a dead one."""
        if owner == self.id:
            return True
        path = self._folder / f"{owner}.lock"
        try:
            file = _open(path)
        except FileNotFoundError:
            return False
        except OSError:
            # It cannot be opened, so it cannot be known to be dead.
            return True
        with file:
            if not _try_lock(file):
                return True
            _remove(path)
        _remove(path)
        return False

    def close(self) -> None:
        """Give up every claim of this owner."""
        self._file.close()
        _remove(self._path)

    def _sweep(self) -> None:
        for path in self._folder.glob("*.lock"):
            self.is_alive(path.stem)


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("r+b")
    except PermissionError:
        return path.open("rb")  # another user's; a lock can be tried all the same


def process_of(owner: str) -> str:
    """The process number in an owner's id, for messages."""
    return owner.partition("-")[0]


def _remove(path: Path) -> None:
    # Windows cannot remove a file that is open; the next sweep does it.
    with suppress(OSError):
        path.unlink()
