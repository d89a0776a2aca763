"""Hashes of files, computed once for a content: large files' are noted with the file's state.

Only on file systems that change a file's state with its content, which those of memory, of images
and of other machines' files do not always do.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from evalwright.core.notes import read_note, write_note
from evalwright.core.private import check_ordinary

NOTED_FROM_BYTES = 1 << 20
"""Smaller files are hashed faster than a note is read."""
SETTLED_SECONDS = 2.0
"""A file that was written later than this may change again within one step of the clock."""
_NOTES = "hashes"
_MOUNTS = Path("/proc/self/mountinfo")
_WITHOUT_CHANGE_TIMES = frozenset(
    [
        # Writes through a mapping leave no time behind after the first.
        *("tmpfs", "ramfs", "hugetlbfs"),
        # The change time is the modification time, which a copy may keep.
        *("squashfs", "erofs", "cramfs", "iso9660", "udf", "vfat", "msdos", "exfat"),
        # What the times mean is up to a program, or to another machine.
        *("fuse", "9p"),
    ]
)


def file_state(file: Path | int) -> list[int]:
    """Return numbers that change whenever a file's content changes, but for mapped files.

    Even if its size and modification time are restored, its change time differs. What is written
    through a mapping shows once `write_back` was called before.

    Args:
        file: its path, or the descriptor of the open file.

    Raises:
        OSError: there is no such file.
    """
    status = os.fstat(file) if isinstance(file, int) else file.stat()
    return [
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_dev,
    ]


def hash_file(path: Path, *, prefix: str = "", digest_size: int = 16) -> str:
    """Return the BLAKE2b hash of a file, from a note if there is one.

    Args:
        path: the file.
        prefix: text that is hashed before the file.
        digest_size: bytes of the hash.

    Returns:
        The hash in hexadecimal digits.

    Raises:
        OSError: it cannot be read, or is a pipe or a device, which may never end.
    """
    state = file_state(check_ordinary(path))
    is_noted = state[0] >= NOTED_FROM_BYTES
    if is_noted and (noted := noted_hash(path, prefix, digest_size)):
        return noted
    digest = hashlib.blake2b(prefix.encode(), digest_size=digest_size)
    with path.open("rb") as file:
        if is_noted:
            write_back(file.fileno())
            state = file_state(path)
        hashlib.file_digest(file, lambda: digest)
    content_hash = digest.hexdigest()
    if is_noted:
        note_hash(path, state, content_hash, prefix)
    return content_hash


def noted_hash(path: Path, prefix: str = "", digest_size: int = 16) -> str:
    """Return the noted hash of a file that has not changed since; "" if there is none.

    Args:
        path: the file.
        prefix: text that was hashed before the file.
        digest_size: bytes of the hash.

    Raises:
        OSError: there is no such file.
    """
    state = file_state(path)
    if not _has_change_times(state[-1]):
        return ""
    noted = read_note(_NOTES, [str(path.resolve()), prefix], state)
    is_hash = isinstance(noted, str) and len(noted) == 2 * digest_size
    return noted if is_hash else ""


def note_hash(
    path: Path, state: Sequence[int], content_hash: str, prefix: str = ""
) -> None:
    """Note the hash of a large file, unless it has changed or may be about to.

    Args:
        path: the file.
        state: its state (`file_state`) after `write_back`, before it was read.
        content_hash: the hash.
        prefix: text that was hashed before the file.

    Raises:
        OSError: there is no such file.
    """
    last_change_seconds = max(state[1:3]) / 1e9
    is_settled = time.time() - last_change_seconds > SETTLED_SECONDS
    if state[0] < NOTED_FROM_BYTES or not is_settled:
        return
    if not _has_change_times(state[-1]):
        return
    if file_state(path) == list(state):
        write_note(_NOTES, [str(path.resolve()), prefix], list(state), content_hash)


def write_back(handle: int) -> None:
    """Let the system write what it holds of an open file.

    A process that has mapped the file writes to a page of it unseen until the page was written
    back; the next write to it then sets the file's times.
    """
    write = getattr(os, "fdatasync", os.fsync)
    with suppress(OSError):  # a file system without it, or a file only open for reading
        write(handle)


@cache
def _has_change_times(device: int) -> bool:
    """Tell whether a device's file system sets a file's change time whenever it is written.

    True where it is not known.
    """
    numbers = f"{os.major(device)}:{os.minor(device)}" if os.name == "posix" else ""
    with suppress(OSError):
        for line in _MOUNTS.read_text(errors="replace").splitlines():
            mount, _, file_system = line.partition(" - ")
            if mount.split()[2:3] == [numbers]:
                kind = file_system.partition(" ")[0]
                return kind.partition(".")[0] not in _WITHOUT_CHANGE_TIMES
    return True
