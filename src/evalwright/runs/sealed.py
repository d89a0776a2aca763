"""A cache of results computed from runs, in the home folder, protected by a seal.

Whoever hands over a folder of runs may put a forged `.evalwright` beside it. So every file here
begins with a keyed hash of its name and content, and the key is in the user's own settings
(`sealing.key`), which are never part of what is handed over. A file without a valid seal is
ignored, and the samples are read again.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from evalwright.core.private import (
    cache_folder,
    check_ordinary,
    config_folder,
    private_folder,
)
from evalwright.tasks.safe_files import write_bytes

KEY_FILE = "sealing.key"
KEY_BYTES = 32
SEAL_BYTES = 32
FOLDER = "scores"
LARGEST_FILE = 1 << 32
"""Largest file that is read into memory, in bytes."""


def read_sealed(name: str) -> bytes | None:
    """Read the content kept under a name; None without a file that has this machine's seal."""
    key = _key(make=False)
    if key is None:
        return None
    try:
        sealed = check_ordinary(_sealed_path(name), LARGEST_FILE).read_bytes()
    except OSError:
        return None
    seal = sealed[:SEAL_BYTES]
    content = sealed[SEAL_BYTES:]
    return content if hmac.compare_digest(seal, _seal(key, name, content)) else None


def write_sealed(name: str, content: bytes) -> None:
    """Store content under a name. If the folder cannot be written, nothing is stored."""
    with suppress(OSError, RuntimeError):
        key = _key(make=True)
        if key is not None:
            path = _sealed_path(name)
            private_folder(path.parent)
            write_bytes(path, _seal(key, name, content) + content, private=True)


def _sealed_path(name: str) -> Path:
    return cache_folder() / FOLDER / name


def _seal(key: bytes, name: str, content: bytes) -> bytes:
    seal = hmac.new(key, name.encode() + b"\0", hashlib.sha256)
    seal.update(content)
    return seal.digest()


def _key(*, make: bool) -> bytes | None:
    """Read this user's key; None where there is none, or where other users may read it."""
    with suppress(OSError, RuntimeError):
        file = config_folder() / KEY_FILE
        if make and not file.exists():
            _make_key(file)
        with check_ordinary(file).open("rb") as opened:
            state = os.fstat(opened.fileno())
            key = opened.read(KEY_BYTES + 1)
        if hasattr(os, "getuid") and (
            state.st_uid != os.getuid() or stat.S_IMODE(state.st_mode) & 0o077
        ):
            return None
        return key if len(key) == KEY_BYTES else None
    return None


def _make_key(file: Path) -> None:
    """Write a new key. If two processes do so at once, both use the first one."""
    private_folder(file.parent)
    temporary = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(secrets.token_bytes(KEY_BYTES))
        try:
            os.link(temporary, file)
        except FileExistsError:
            pass
        except OSError:  # no hard links on this file system
            temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
