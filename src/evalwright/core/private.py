"""The folders for data kept between runs, private files, and reading with size limits.

Stores and run folders hold prompts, answers and server replies, so they are created for their
owner alone, whatever the umask. EVALWRIGHT_SHARED=1 leaves permissions to the umask; an
existing folder keeps its own.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, AnyStr

from evalwright.core.errors import ConfigurationError, StoreError
from evalwright.core.local_paths import check_local, why_not_local

HOME = ".evalwright"


def home_folder(folder: str | Path | None = None) -> Path:
    """Return the folder of the store and caches.

    Args:
        folder: the folder that the user named; by default $EVALWRIGHT_HOME, else `.evalwright` in
            the working folder.

    Returns:
        The folder, which may not exist yet.

    Raises:
        ConfigurationError: it is an address such as s3://bucket, or `.evalwright` belongs to
            another user, who could have put forged model answers there.
    """
    location = folder or os.environ.get("EVALWRIGHT_HOME")
    if location:
        check_local(location, "--home" if folder else "EVALWRIGHT_HOME")
        return Path(location)
    home = Path(HOME)
    if not _is_own(home):
        raise ConfigurationError(
            f"The folder '{home.absolute()}' belongs to another user, and stored"
            " answers in it would be used as they are. Name it with --home or"
            " EVALWRIGHT_HOME if you trust them, or name another folder."
        )
    return home


def config_folder() -> Path:
    """Return the folder of a user's own settings.

    $XDG_CONFIG_HOME/evalwright, or ~/.config/evalwright. It does not depend on the working folder.
    """
    named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    base = named if named.is_absolute() else Path("~/.config").expanduser()
    return base / "evalwright"


def cache_folder() -> Path:
    """Return the cache folder: $EVALWRIGHT_HOME or an existing `.evalwright`, else the user's own.

    Commands that only read thus leave no new folder behind.
    """
    with suppress(ConfigurationError):  # another user's folder is skipped
        home = home_folder()
        if ("EVALWRIGHT_HOME" in os.environ and not home.exists()) or os.access(
            home, os.W_OK
        ):
            return home
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "evalwright"


def private_folder(folder: Path) -> None:
    """Create a folder, with its missing parents, that only its owner can read. Raises OSError."""
    if why := why_not_local(folder):
        raise OSError(errno.EINVAL, why)
    if _is_shared():
        folder.mkdir(parents=True, exist_ok=True)
        return
    for parent in reversed((folder, *folder.parents)):
        if not parent.exists():
            parent.mkdir(mode=0o700, exist_ok=True)
            parent.chmod(0o700)  # set again because the umask may have removed bits
    folder.mkdir(exist_ok=True)


def open_private(path: Path, mode: str = "wb", **options: Any) -> IO[Any]:
    """Open a file for writing; a new file is readable by its owner only. Raises OSError."""
    if _is_shared() or path.exists():
        return path.open(mode, **options)

    def opener(name: str, flags: int) -> int:
        handle = os.open(name, flags, 0o600)
        if os.name == "posix":
            os.fchmod(handle, 0o600)
        return handle

    return open(path, mode, opener=opener, **options)


LONGEST_LINE = 1 << 27
"""Longest line, cell or element that is read, in bytes or characters.

Longer ones only fill memory.
"""
LARGEST_DOCUMENT = 1 << 28
"""Largest file that is read into memory at once, in bytes."""


def check_ordinary(path: Path, most: int | None = None) -> Path:
    """Check that reading a path will end: no pipe, no device, not too large.

    Args:
        path: a file or a folder.
        most: the largest allowed size in bytes; None for any size.

    Returns:
        The path, so that `check_ordinary(path).read_text()` works. A missing path passes, and
        opening it raises the error.

    Raises:
        OSError: it is a pipe or a device, which may never end, or the file is larger.
    """
    try:
        status = path.stat()
    except OSError:  # removed by another process; opening it says why it is missing
        return path
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise OSError(errno.EINVAL, "it is no ordinary file")
    if most is not None and status.st_size > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB")
    return path


def no_file(path: Path) -> str:
    """Say why a path is not a file, as the end of a sentence."""
    if path.is_dir():
        return "is a folder, not a file"
    if path.exists():
        return "is no ordinary file"
    return "is a link that leads to no file" if path.is_symlink() else "does not exist"


def lines_of(file: IO[AnyStr]) -> Iterator[AnyStr]:
    """Iterate over the lines of an open file, with a limit on their length.

    Raises:
        OSError: a line is longer than `LONGEST_LINE`; the message has its number.
    """
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise OSError(
                errno.EFBIG, f"line {number:,} is longer than {LONGEST_LINE >> 20} MiB"
            )
        yield line


def _mode(status: Callable[[], os.stat_result]) -> int:
    """Return the mode bits of a file; 0 where there is none.

    Read once, since another process may remove the file in between.
    """
    try:
        return status().st_mode
    except OSError:
        return 0


def own_database(path: Path) -> Path:
    """Check the path of a SQLite file in a home folder, and return it.

    Raises:
        StoreError: the path, or a file beside it, is a link, a pipe or a device.
    """
    for end in ("", "-wal", "-shm", "-journal"):
        file = path.with_name(path.name + end)
        mode = _mode(file.lstat)
        if stat.S_ISLNK(mode):
            # Whoever supplied the folder may have put a link there, to have another file
            # overwritten or a forged store read.
            raise StoreError(
                f"{file} is a link to '{os.path.realpath(file)}' and is not followed."
                " Remove it, and name the folder that is meant with --home or"
                " EVALWRIGHT_HOME."
            )
        if mode and not stat.S_ISREG(mode):
            raise StoreError(
                f"{file} is no ordinary file: remove it, or name another folder with"
                " --home."
            )
    return path


def _is_shared() -> bool:
    return os.environ.get("EVALWRIGHT_SHARED", "").lower() in ("1", "true", "yes")


def _is_own(folder: Path) -> bool:
    """Tell whether a folder, and a link to it, belong to the current user.

    True if it is missing.
    """
    if os.name != "posix":
        return True
    try:
        return {folder.lstat().st_uid, folder.stat().st_uid} == {os.geteuid()}
    except OSError:
        return True
