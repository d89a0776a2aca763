"""Hashes of files, computed once for a content: large files' are noted with the file's state."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from evalwright.core.notes import read_note, write_note
from evalwright.core.private import check_ordinary

NOTED_FROM_BYTES = 1 << 20
"""Smaller files are hashed faster than a note is read."""
SETTLED_SECONDS = 2.0
"""A file that was written later than this may change again within one step of the clock."""
_NOTES = "hashes"


def file_state(file: Path | int) -> list[int]:
    """Return numbers that change whenever a file's content changes.

    Even if its size and modification time are restored, its change time differs.

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
    noted = read_note(_NOTES, [str(path.resolve()), prefix], file_state(path))
    is_hash = isinstance(noted, str) and len(noted) == 2 * digest_size
    return noted if is_hash else ""


def note_hash(
    path: Path, state: Sequence[int], content_hash: str, prefix: str = ""
) -> None:
    """Note the hash of a large file, unless it has changed or may be about to.

    Args:
        path: the file.
        state: its state (`file_state`) before it was read.
        content_hash: the hash.
        prefix: text that was hashed before the file.

    Raises:
        OSError: there is no such file.
    """
    last_change_seconds = max(state[1:3]) / 1e9
    is_settled = time.time() - last_change_seconds > SETTLED_SECONDS
    if state[0] < NOTED_FROM_BYTES or not is_settled:
        return
    if file_state(path) == list(state):
        write_note(_NOTES, [str(path.resolve()), prefix], list(state), content_hash)
