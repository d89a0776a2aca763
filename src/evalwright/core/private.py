"""Where what is kept between runs lies, folders and files that only their owner can read, and files that can be read to their end.

Stores and run folders hold prompts, answers and what a server said, so they are made for their owner alone, whatever the umask.
EVALWRIGHT_SHARED=1 leaves their permissions to the umask; a folder that is there already keeps its own.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from evalwright.core.errors import ConfigurationError, StoreError

HOME = ".evalwright"


def home_folder(given: str | Path | None = None) -> Path:
    """Where the store and caches lie: as given, else $EVALWRIGHT_HOME, else `.evalwright` in the working folder.

    Raises ConfigurationError where the last one is another user's: what lies in it would be taken for answers of models.
    """
    named = given or os.environ.get("EVALWRIGHT_HOME")
    if named:
        return Path(named)
    home = Path(HOME)
    if not _is_own(home):
        raise ConfigurationError(
            f"The folder '{home.absolute()}' belongs to another user, and stored answers in it would be used as they are. Name it "
            f"with --home or EVALWRIGHT_HOME if you trust them, or name another folder."
        )
    return home


def private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone. Raises OSError."""
    if _is_shared():
        folder.mkdir(parents=True, exist_ok=True)
        return
    for one in reversed((folder, *folder.parents)):
        if not one.exists():
            one.mkdir(mode=0o700, exist_ok=True)
            one.chmod(0o700)  # whatever the umask took away
    folder.mkdir(exist_ok=True)


def open_private(path: Path, mode: str = "wb", **options: Any) -> IO[Any]:
    """Open a file for writing; where it is new, only its owner can read it. Raises OSError."""
    if _is_shared() or path.exists():
        return path.open(mode, **options)

    def opener(name: str, flags: int) -> int:
        handle = os.open(name, flags, 0o600)
        if os.name == "posix":
            os.fchmod(handle, 0o600)
        return handle

    return open(path, mode, opener=opener, **options)


def ordinary(path: Path) -> Path:
    """The path, for reading. Raises OSError where a pipe or a device stands there: reading one may never end."""
    mode = _mode(path.stat)
    if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "it is no ordinary file")
    return path


def _mode(status: Callable[[], os.stat_result]) -> int:
    """What kind of file it is, asked once, as another process may remove it meanwhile; 0 where there is none."""
    try:
        return status().st_mode
    except OSError:
        return 0


def own_database(path: Path) -> Path:
    """The path of a SQLite file of a home folder. Raises StoreError where a link, a pipe or a device stands there, or beside it."""
    for end in ("", "-wal", "-shm", "-journal"):
        file = path.with_name(path.name + end)
        mode = _mode(file.lstat)
        if stat.S_ISLNK(mode):
            # Who brought the folder may have put it there, to have another file written or another store believed.
            raise StoreError(
                f"{file} is a link to '{os.path.realpath(file)}' and is not followed. Remove it, and name the folder that is "
                f"meant with --home or EVALWRIGHT_HOME."
            )
        if mode and not stat.S_ISREG(mode):
            raise StoreError(f"{file} is no ordinary file: remove it, or name another folder with --home.")
    return path


def _is_shared() -> bool:
    return os.environ.get("EVALWRIGHT_SHARED", "").lower() in ("1", "true", "yes")


def _is_own(folder: Path) -> bool:
    """Whether a folder, and the link that leads to it, belongs to who runs this; True where there is none."""
    if os.name != "posix":
        return True
    try:
        return {folder.lstat().st_uid, folder.stat().st_uid} == {os.geteuid()}
    except OSError:
        return True
