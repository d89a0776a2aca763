"""A cache of results computed from runs, in the home folder, protected by a seal.

Whoever hands over a folder of runs may put a forged `.evalwright` beside it. So every file here
begins with a keyed hash of its name and content, and the key is in the user's own settings
(`sealing.key`), which are never part of what is handed over. A file without a valid seal is
ignored, and the samples are read again.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO

from evalwright.core.private import (
    cache_folder,
    check_ordinary,
    config_folder,
    open_private,
    private_folder,
)
from evalwright.runs.writer import is_running
from evalwright.tasks.safe_files import write_bytes

KEY_FILE = "sealing.key"
KEY_BYTES = 32
SEAL_BYTES = 32
FOLDER = "scores"
LARGEST_FILE = 1 << 32
"""Largest file that is read into memory, in bytes."""
BLOCK_BYTES = 1 << 20
TEMPORARY = ".tmp"


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


class SealBroken(Exception):
    """A file under a name has no valid seal: it is damaged, cut off, or not of this user."""


class SealedFile:
    """A sealed file of any size, of which pieces are read when they are needed.

    Its seal was checked when it was opened (`open_sealed`); a later writer of the same name
    replaces the file and leaves this one as it is.

    Args:
        file: the open file.
        size: length of its content in bytes.
    """

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self.size = size

    def read(self, offset: int, length: int) -> bytes:
        """Read a piece of the content. Raises OSError where the file is shorter."""
        self._file.seek(SEAL_BYTES + offset)
        content = self._file.read(length)
        if len(content) != length:
            raise OSError("the file is shorter than when it was opened")
        return content

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_sealed(name: str) -> SealedFile | None:
    """Open the file kept under a name, after its seal was checked; None where there is none.

    Raises:
        SealBroken: there is one, without a valid seal of this user.
    """
    path = _sealed_path(name)
    try:
        file = check_ordinary(path).open("rb", buffering=0)
    except OSError:
        return None
    key = _key(make=False)
    try:
        seal = file.read(SEAL_BYTES)
        if key is None or not hmac.compare_digest(seal, _file_seal(key, name, file)):
            raise SealBroken(name)
        size = file.tell() - SEAL_BYTES
        # The least recently used files are the first that `trim_sealed` removes.
        os.utime(path)
    except SealBroken:
        file.close()
        raise
    except OSError:
        file.close()
        return None
    return SealedFile(file, size)


def _file_seal(key: bytes, name: str, file: IO[bytes]) -> bytes:
    """Compute the seal of a file from where it stands to its end."""
    seal = hmac.new(key, name.encode() + b"\0", hashlib.sha256)
    while block := file.read(BLOCK_BYTES):
        seal.update(block)
    return seal.digest()


class SealedWriter:
    """Writes a sealed file of any size piece by piece; the pieces can be read meanwhile.

    The file appears under its name with `commit`, whole; until then it is a temporary file that
    `close` removes. Nothing is flushed to the disk on purpose: the seal shows what a crash of the
    machine left unwritten, and the content can be computed again.

    Args:
        name: the name under which the file is kept.

    Raises:
        OSError: it cannot be written.
    """

    def __init__(self, name: str) -> None:
        self._path = _sealed_path(name)
        key = _key(make=True)
        if key is None:
            raise OSError("there is no key to seal it with")
        private_folder(self._path.parent)
        _sweep(self._path.parent)
        self._temporary = self._path.with_name(
            f".{name}.{os.getpid()}.{next(_numbers)}{TEMPORARY}"
        )
        self._temporary.unlink(missing_ok=True)
        self._file: IO[bytes] = open_private(self._temporary, "x+b", buffering=0)
        self._seal = hmac.new(key, name.encode() + b"\0", hashlib.sha256)
        self.size = 0
        """Length of what was written so far, in bytes."""
        try:
            self._write_at(0, bytes(SEAL_BYTES))
        except OSError:
            self.close()
            raise

    def write(self, content: bytes) -> int:
        """Append a piece and return where it begins. Raises OSError."""
        offset = self.size
        self._write_at(SEAL_BYTES + offset, content)
        self._seal.update(content)
        self.size += len(content)
        return offset

    def read(self, offset: int, length: int) -> bytes:
        """Read a piece that was written. Raises OSError."""
        self._file.seek(SEAL_BYTES + offset)
        return self._file.read(length)

    def commit(self) -> None:
        """Seal the file and put it in place of an earlier one. Raises OSError."""
        self._write_at(0, self._seal.digest())
        self._temporary.replace(self._path)

    def close(self) -> None:
        """Close the file, and remove it unless it was committed."""
        self._file.close()
        with suppress(OSError):
            self._temporary.unlink(missing_ok=True)

    def _write_at(self, position: int, content: bytes) -> None:
        self._file.seek(position)
        left = memoryview(content)
        while left:
            n_written = self._file.write(left)
            if not n_written:
                raise OSError("nothing more can be written")
            left = left[n_written:]


_numbers = itertools.count()


def trim_sealed(ending: str, most_bytes: int) -> None:
    """Remove the least recently used files with an ending until they have at most so many bytes.

    The most recently used one stays, whatever its size.
    """
    with suppress(OSError):
        stats = {
            path: path.lstat()
            for path in (cache_folder() / FOLDER).glob(f"*{ending}")
            if not path.name.startswith(".")
        }
        total = 0
        by_use = sorted(stats, key=lambda path: stats[path].st_mtime_ns, reverse=True)
        for number, path in enumerate(by_use):
            total += stats[path].st_size
            if number and total > most_bytes:
                path.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove the temporary files of processes that were killed."""
    for path in folder.glob(f".*{TEMPORARY}"):
        process = path.name.removesuffix(TEMPORARY).split(".")[-2]
        if os.name == "posix" and process.isdecimal() and not is_running(int(process)):
            with suppress(OSError):
                path.unlink(missing_ok=True)


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
