"""The state of a jail's files as one compressed tar file, written and read by its keeper.

Everything in the jail's own filesystem is in it; what is mounted there (programs of the machine,
/proc, /dev) is not. Equal states give equal bytes.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

_PIECE_BYTES = 1 << 18
_DIGEST_BYTES = 16
_GZIP = 31
"""The window bits of a gzip stream."""
_MOST_PATH_BYTES = 4000
"""Deeper files cannot be opened by their path, nor need anybody read them: they are left out."""
_SKIPPED = ("dev", "proc")
_ENTRIES_PER_LOOK = 64
_MOUNTED_OVER = frozenset(
    (
        errno.EBUSY,
        errno.EEXIST,
        errno.EISDIR,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EROFS,
        errno.EXDEV,
    )
)
"""Errors where a part of the machine is mounted."""


class Damaged(Exception):
    """A stored state is not what was stored."""


class Stored(NamedTuple):
    """What was stored: the digest of the compressed bytes, and their number."""

    digest: str
    n_bytes: int


class _Writer:
    """A file that compresses what is written and counts and digests what comes out."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
        self._digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self._n_bytes = 0
        self._waiting = bytearray()

    def write(self, piece: bytes) -> None:
        self._waiting += piece
        if len(self._waiting) >= _PIECE_BYTES:
            self._put(self._compressor.compress(self._waiting))
            self._waiting.clear()

    def finish(self) -> Stored:
        self._put(self._compressor.compress(self._waiting))
        self._put(self._compressor.flush())
        return Stored(self._digest.hexdigest(), self._n_bytes)

    def _put(self, compressed: bytes) -> None:
        self._digest.update(compressed)
        self._n_bytes += len(compressed)
        view = memoryview(compressed)
        while view:
            view = view[os.write(self._descriptor, view) :]


class _Reader:
    """A file that decompresses what is read and digests what goes in."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decompressor = zlib.decompressobj(_GZIP)
        self._digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self._position = 0

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        """Go on to a later position."""
        if position < self._position:
            raise Damaged("its parts overlap")
        while self._position < position:
            if not self.read(min(_PIECE_BYTES, position - self._position)):
                return

    def read(self, n_bytes: int) -> bytes:
        pieces = []
        while n_bytes > 0 and not self._decompressor.eof:
            compressed = self._decompressor.unconsumed_tail
            if not compressed:
                compressed = os.read(self._descriptor, _PIECE_BYTES)
                self._digest.update(compressed)
                if not compressed:
                    break
            piece = self._decompressor.decompress(compressed, n_bytes)
            n_bytes -= len(piece)
            self._position += len(piece)
            pieces.append(piece)
        return b"".join(pieces)

    def finish(self) -> str:
        """Read what is left, and return the digest of everything."""
        while piece := os.read(self._descriptor, _PIECE_BYTES):
            self._digest.update(piece)
        return self._digest.hexdigest()


def keep(descriptor: int, look_after: Callable[[], None]) -> Stored:
    """Write the state of all files to an open file.

    Args:
        descriptor: the open file.
        look_after: called now and then, so that limits hold meanwhile.
    """
    writer = _Writer(descriptor)
    links: dict[int, str] = {}
    for number, (path, status) in enumerate(_walk()):
        if number % _ENTRIES_PER_LOOK == 0:
            look_after()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            _add(writer, path, status, links)
    writer.write(bytes(2 * tarfile.BLOCKSIZE))
    return writer.finish()


def _write_head(writer: _Writer, entry: tarfile.TarInfo) -> None:
    """Write the head of an entry, in the short old form where that can hold it."""
    if not entry.pax_headers:
        with contextlib.suppress(ValueError):
            head = entry.tobuf(tarfile.USTAR_FORMAT, "utf-8", "surrogateescape")
            writer.write(head)
            return
    writer.write(entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))


def _walk() -> Iterator[tuple[str, os.stat_result]]:
    """Go through everything in the root's filesystem, in an order that is always the same."""
    device = os.stat("/").st_dev
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            names = _names_in(f"/{folder}")
        except OSError:
            continue
        below = []
        for name in names:
            path = f"{folder}/{name}" if folder else name
            if path in _SKIPPED or len(os.fsencode(path)) > _MOST_PATH_BYTES:
                continue
            try:
                status = os.lstat(f"/{path}")
            except OSError:
                continue
            if status.st_dev != device:
                continue
            yield path, status
            if stat.S_ISDIR(status.st_mode):
                below.append(path)
        folders += reversed(below)


def _names_in(folder: str) -> list[str]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder, flags)
    try:
        return sorted(os.listdir(descriptor))
    finally:
        os.close(descriptor)


def _add(
    writer: _Writer,
    path: str,
    status: os.stat_result,
    links: dict[int, str],
) -> None:
    entry = tarfile.TarInfo(path)
    entry.mode = stat.S_IMODE(status.st_mode)
    entry.mtime = status.st_mtime_ns // 1_000_000_000
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        entry.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(mode):
        entry.type = tarfile.SYMTYPE
        entry.linkname = os.readlink(f"/{path}")
    elif stat.S_ISFIFO(mode):
        entry.type = tarfile.FIFOTYPE
    elif not stat.S_ISREG(mode):
        return
    elif status.st_ino in links:
        entry.type = tarfile.LNKTYPE
        entry.linkname = links[status.st_ino]
    else:
        if status.st_nlink > 1:
            links[status.st_ino] = path
        _add_content(writer, path, entry)
        return
    _write_head(writer, entry)


def _add_content(writer: _Writer, path: str, entry: tarfile.TarInfo) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(f"/{path}", flags)
    except OSError:
        return
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return
        size = status.st_size
        segments = [(0, size)]
        table = b""
        if status.st_blocks * 512 < size:
            segments = list(_data_segments(file, size))
            table = _describe_sparse(entry, path, size, segments)
        entry.size = len(table) + sum(length for _, length in segments)
        _write_head(writer, entry)
        writer.write(table)
        for start, length in segments:
            _copy(file, start, length, writer)
        writer.write(bytes(-entry.size % tarfile.BLOCKSIZE))
    finally:
        os.close(file)


def _data_segments(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Go through the parts of a file that are not holes: (start, length)."""
    position = 0
    while position < size:
        try:
            start = os.lseek(file, position, os.SEEK_DATA)
        except OSError:  # no more data
            return
        position = min(os.lseek(file, start, os.SEEK_HOLE), size)
        if start < position:
            yield start, position - start


def _describe_sparse(
    entry: tarfile.TarInfo, path: str, size: int, segments: list[tuple[int, int]]
) -> bytes:
    """Make an entry one of a file with holes, in the form "GNU sparse 1.0".

    Returns:
        What goes before its content: a table of its parts.
    """
    numbers = [len(segments)]
    for start, length in segments:
        numbers += [start, length]
    table = "".join(f"{number}\n" for number in numbers)
    table += "\0" * (-len(table) % 512)
    entry.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": path,
        "GNU.sparse.realsize": str(size),
    }
    return table.encode()


def _copy(file: int, start: int, length: int, writer: _Writer) -> None:
    """Copy a part of a file; where the file became shorter meanwhile, zeros."""
    end = start + length
    while start < end:
        piece = os.pread(file, min(_PIECE_BYTES, end - start), start)
        piece = piece or bytes(min(_PIECE_BYTES, end - start))
        writer.write(piece)
        start += len(piece)


def restore(descriptor: int, digest: str) -> None:
    """Make the files of a stored state.

    Raises:
        Damaged: it is not what was stored.
        OSError: there is no room for it.
    """
    reader = _Reader(descriptor)
    folders: list[tarfile.TarInfo] = []
    try:
        with tarfile.TarFile(
            fileobj=reader,  # type: ignore[arg-type]  # it goes forward only
            mode="r",
            encoding="utf-8",
            errors="surrogateescape",
        ) as archive:
            while (entry := archive.next()) is not None:
                with _machine_wins():
                    _make(archive, reader, entry)
                if entry.isdir():
                    folders.append(entry)
                archive.members.clear()  # type: ignore[attr-defined]
    except (tarfile.TarError, zlib.error, ValueError, EOFError) as error:
        raise Damaged(str(error)) from None
    except OSError as error:
        if reader.finish() != digest:
            raise Damaged(str(error)) from None
        raise
    if reader.finish() != digest:
        raise Damaged("its content is not what its name says")
    for folder in reversed(folders):
        path = f"/{folder.name}"
        with _machine_wins():
            os.chmod(path, folder.mode)
            os.utime(path, (folder.mtime, folder.mtime))


@contextlib.contextmanager
def _machine_wins() -> Iterator[None]:
    """Leave out what is where a part of the machine is mounted.

    A program inside can move the folder above such a part away and put another in its place; a
    sandbox that starts from that state has the machine's part again.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _MOUNTED_OVER:
            raise


def _make(archive: tarfile.TarFile, reader: _Reader, entry: tarfile.TarInfo) -> None:
    path = f"/{entry.name}"
    if entry.isdir():
        os.makedirs(path, exist_ok=True)
    elif entry.issym():
        os.symlink(entry.linkname, path)
        times = (entry.mtime, entry.mtime)
        os.utime(path, times, follow_symlinks=False)
    elif entry.islnk():
        os.link(f"/{entry.linkname}", path, follow_symlinks=False)
    elif entry.isfifo():
        os.mkfifo(path)
        os.chmod(path, entry.mode)
        os.utime(path, (entry.mtime, entry.mtime))
    elif entry.isreg():
        _make_file(archive, reader, entry, path)


def _make_file(
    archive: tarfile.TarFile, reader: _Reader, entry: tarfile.TarInfo, path: str
) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    try:
        segments: list[tuple[int, int]] | None = entry.sparse  # type: ignore[assignment]
        if segments is None:
            reader.seek(entry.offset_data)
            _fill(file, reader, 0, entry.size)
        else:
            source = archive.extractfile(entry)
            if source is None:
                raise Damaged(f"{entry.name} has no content")
            for start, length in segments:
                source.seek(start)
                _fill(file, source, start, length)
            os.ftruncate(file, entry.size)
        os.fchmod(file, entry.mode)
        os.utime(file, (entry.mtime, entry.mtime))
    finally:
        os.close(file)


def _fill(file: int, source: IO[bytes] | _Reader, start: int, length: int) -> None:
    """Write a part of a file."""
    end = start + length
    while start < end:
        piece = source.read(min(_PIECE_BYTES, end - start))
        if not piece:
            raise Damaged("it ends too early")
        view = memoryview(piece)
        while view:
            n_written = os.pwrite(file, view, start)
            view = view[n_written:]
            start += n_written


if sys.platform != "linux":
    raise ImportError("only on Linux")
