"""Caches in the home folder that only this user can have written, because they are sealed.

Whoever hands over a folder of runs or of tasks may put a forged `.evalwright` beside it. So every
file here begins with a keyed hash of its name and content, and the key is in the user's own
settings (`sealing.key`), which are never part of what is handed over. A file without a valid seal
is ignored, and its content computed again.

Files that were not used for long are removed when another one is written, and so are the
temporary files of processes that were killed.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import os
import re
import secrets
import stat
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from evalwright.core.private import (
    check_ordinary,
    config_folder,
    home_folder,
    open_private,
    private_folder,
)
from evalwright.core.processes import has_ended, process_mark

KEY_FILE = "sealing.key"
KEY_BYTES = 32
SEAL_BYTES = 32
MAX_FILE_BYTES = 1 << 32
"""Largest file that is read into memory."""
MAX_SWEPT_BYTES = 1 << 33
"""Most bytes whose seals one sweep checks: files of others, sparse ones too, may be huge."""
BLOCK_BYTES = 1 << 20
TEMPORARY = ".tmp"
_TEMPORARY_NAME = re.compile(r"\..+\.(?P<mark>\d+(-[0-9a-f]*){0,2})\.\d+\.tmp")
DAY_SECONDS = 86_400
UNUSED_DAYS = 60
"""A file that was not used for so long is removed."""
SWEEP_EVERY_COMMITS = 32
"""A process sweeps a folder when it writes there first, and after so many files again."""
ABANDONED_DAYS = 7
"""A temporary file of this age is removed if its process is unknown here."""


class SealBroken(Exception):
    """A file under a name has no valid seal: it is damaged, cut off, or not of this user."""


@dataclass(frozen=True, slots=True)
class SealedFolder:
    """A folder of sealed files.

    Attributes:
        folder_name: its name within the home folder.
        home: returns the home folder.
        max_files: most files in it; the least recently used ones are removed.
        max_bytes: most bytes in it, likewise.
    """

    folder_name: str
    home: Callable[[], Path] = home_folder
    max_files: int | None = None
    max_bytes: int | None = None

    @property
    def path(self) -> Path:
        """Return the folder, which may not exist yet."""
        return self.home() / self.folder_name

    def read_about(
        self, subject: bytes, max_bytes: int = MAX_FILE_BYTES
    ) -> bytes | None:
        """Return the content about a subject; None without a file that has this user's seal."""
        key = _key(make=False)
        return self.read(self._name_of(subject, key), max_bytes) if key else None

    def write_about(self, subject: bytes, content: bytes) -> None:
        """Store content about a subject. If the folder cannot be written, nothing is stored."""
        key = _key(make=True)
        if key:
            self.write(self._name_of(subject, key), content)

    def _name_of(self, subject: bytes, key: bytes) -> str:
        """Return a name that several users of one home folder do not share."""
        of_folder = self.folder_name.encode() + b"\0" + subject
        return hmac.new(key, of_folder, hashlib.sha256).hexdigest()[:32]

    def read(self, name: str, max_bytes: int = MAX_FILE_BYTES) -> bytes | None:
        """Return the content under a name; None without a file that has this user's seal."""
        try:
            check_ordinary(self.path / name, max_bytes)
            # Checks the seal first, so that a forged file does not fill the memory.
            file = self.open(name)
        except (OSError, SealBroken):
            return None
        if file is None:
            return None
        try:
            return file.read(0, file.size)
        except OSError:
            return None
        finally:
            file.close()

    def write(self, name: str, content: bytes) -> None:
        """Store content under a name. If the folder cannot be written, nothing is stored."""
        with suppress(OSError, RuntimeError):
            writer = SealedWriter(self, name)
            try:
                writer.write(content)
                writer.commit()
            finally:
                writer.close()

    def open(self, name: str) -> SealedFile | None:
        """Open the file under a name, after its seal was checked; None where there is none.

        Raises:
            SealBroken: there is one, without a valid seal of this user.
        """
        path = self.path / name
        try:
            file = check_ordinary(path).open("rb", buffering=0)
        except OSError:
            return None
        key = _key(make=False)
        try:
            seal = file.read(SEAL_BYTES)
            if key is None or not hmac.compare_digest(
                seal, _file_seal(key, name, file)
            ):
                raise SealBroken(name)
            size = file.tell() - SEAL_BYTES
        except SealBroken:
            file.close()
            raise
        except OSError:
            file.close()
            return None
        _mark_used(path)
        return SealedFile(file, size)

    def trim(self, ending: str, max_bytes: int) -> None:
        """Remove the least recently used files with an ending until they have so many bytes.

        The most recently used one stays, whatever its size, and so do files without this user's
        seal.
        """
        with suppress(OSError):
            states = {
                path: state
                for path, state in _states(self.path).items()
                if path.name.endswith(ending)
            }
            _remove_sealed(_exceeding(states, None, max_bytes), states)

    def sweep(self) -> None:
        """Remove what was not used for long, what is too much, and what killed processes left.

        Only files with this user's seal, or with the room for one, are removed: the folder may be a
        link to somewhere else.
        """
        with suppress(OSError):
            for path in self.path.glob(f".*{TEMPORARY}"):
                if _is_abandoned(path):
                    _remove(path)
            states = _states(self.path)
            oldest = time.time() - UNUSED_DAYS * DAY_SECONDS
            used_states = {
                path: state
                for path, state in states.items()
                if state.st_mtime >= oldest
            }
            unused = [path for path in states if path not in used_states]
            exceeding = _exceeding(used_states, self.max_files, self.max_bytes)
            _remove_sealed(unused + exceeding, states)


class SealedFile:
    """A sealed file of any size, of which pieces are read when they are needed.

    Its seal was checked when it was opened (`SealedFolder.open`); a later writer of the same name
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


class SealedWriter:
    """Writes a sealed file of any size piece by piece; the pieces can be read meanwhile.

    The file appears under its name with `commit`, whole; until then it is a temporary file that
    `close` removes. Nothing is flushed to the disk on purpose: the seal shows what a crash of the
    machine left unwritten, and the content can be computed again.

    Args:
        folder: the folder.
        name: the name under which the file is kept.

    Raises:
        OSError: it cannot be written.
    """

    def __init__(self, folder: SealedFolder, name: str) -> None:
        self._folder = folder
        self._path = folder.path / name
        key = _key(make=True)
        if key is None:
            raise OSError("there is no key to seal it with")
        private_folder(self._path.parent)
        self._temporary = self._path.with_name(
            f".{name}.{process_mark()}.{next(_numbers)}{TEMPORARY}"
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
        number = _n_commits[self._path.parent]
        _n_commits[self._path.parent] = number + 1
        if number % SWEEP_EVERY_COMMITS == 0:
            self._folder.sweep()

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
_n_commits: Counter[Path] = Counter()
"""How often this process has written to a folder."""


def _mark_used(path: Path) -> None:
    """Set the time of a file's last use, unless it was set today."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY_SECONDS:
            os.utime(path)


def _states(folder: Path) -> dict[Path, os.stat_result]:
    """Return the files of a folder that are not temporary, with their states."""
    states = {}
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        with suppress(OSError):  # another process has just removed it
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                states[path] = status
    return states


def _exceeding(
    states: dict[Path, os.stat_result], max_files: int | None, max_bytes: int | None
) -> list[Path]:
    """Return the least recently used files that are too many or have too many bytes.

    The most recently used one is not among them, whatever its size.
    """
    exceeding = []
    n_bytes = 0
    by_use = sorted(states, key=lambda path: states[path].st_mtime_ns, reverse=True)
    for index, path in enumerate(by_use):
        n_bytes += states[path].st_size
        is_one_too_many = max_files is not None and index >= max_files
        is_too_large = max_bytes is not None and index > 0 and n_bytes > max_bytes
        if is_one_too_many or is_too_large:
            exceeding.append(path)
    return exceeding


def _remove_sealed(paths: list[Path], states: dict[Path, os.stat_result]) -> None:
    """Remove those of some files that have this user's seal, the smallest first."""
    n_bytes = 0
    for path in sorted(paths, key=lambda path: states[path].st_size):
        n_bytes += states[path].st_size
        if n_bytes > MAX_SWEPT_BYTES:
            return
        if _has_seal(path, path.name):
            _remove(path)


def _remove(path: Path) -> None:
    with suppress(OSError):  # of another user, or open on Windows
        path.unlink(missing_ok=True)


def _is_abandoned(temporary: Path) -> bool:
    """Tell whether a `SealedWriter` wrote a file whose process will not go on with it."""
    parts = _TEMPORARY_NAME.fullmatch(temporary.name)
    if parts is None or not _has_room_for_seal(temporary):
        return False
    is_ended = has_ended(parts["mark"])
    if is_ended is not None:
        return is_ended
    with suppress(OSError):
        age_seconds = time.time() - temporary.lstat().st_mtime
        return age_seconds > ABANDONED_DAYS * DAY_SECONDS
    return False


def _has_room_for_seal(temporary: Path) -> bool:
    """Tell whether a file begins as those that are to be sealed do, with zeros."""
    with suppress(OSError), _open_ordinary(temporary) as file:
        return not any(file.read(SEAL_BYTES))
    return False


def _has_seal(path: Path, name: str) -> bool:
    """Tell whether a file has this user's seal for a name."""
    key = _key(make=False)
    with suppress(OSError), _open_ordinary(path) as file:
        seal = file.read(SEAL_BYTES)
        return key is not None and hmac.compare_digest(
            seal, _file_seal(key, name, file)
        )
    return False


def _open_ordinary(path: Path) -> IO[bytes]:
    """Open a file that is neither a link nor without end. Raises OSError."""
    if path.is_symlink():
        raise OSError("it is a link")
    return check_ordinary(path).open("rb", buffering=0)


def _file_seal(key: bytes, name: str, file: IO[bytes]) -> bytes:
    """Compute the seal of a file from where it stands to its end."""
    seal = hmac.new(key, name.encode() + b"\0", hashlib.sha256)
    while block := file.read(BLOCK_BYTES):
        seal.update(block)
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
