"""Random access to the rows of JSONL files, with only an array of byte offsets in memory.

Lines are read with `pread`, so many readers can share a file. Blank lines are not rows. A row knows
its number in its file (counted over non-blank lines from 1), which errors name.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import math
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from evalwright.core.errors import DatasetError
from evalwright.core.private import LONGEST_LINE
from evalwright.tasks.safe_files import failing_as
from evalwright.tasks.yaml_files import kind_of, shown_path

Row = dict[str, Any]

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 20


class FileSource:
    """A file on disk, opened once however many tasks read it.

    Attributes:
        label: the name in errors, if the file is a copy that was made here.
        checked: whether every line was read once and is a row.
    """

    def __init__(self, path: Path, label: str = "") -> None:
        self.path = path
        self.is_copy = bool(label)
        self.label = label or shown_path(path)
        self.checked = False
        self._handle: int | None = None
        self._stamp: tuple[int, int] | None = None
        self._content = ""

    @property
    def size(self) -> int:
        """Return the size in bytes; 0 if the file no longer exists."""
        return self.path.stat().st_size if self.path.exists() else 0

    def content(self) -> str:
        """Return the hash of the file's content, computed once, while its lines are read or now."""
        if not self._content:
            for _ in self._chunks():
                pass
        return self._content

    def _chunks(self) -> Iterator[bytes]:
        """Yield the whole file; later reads require that its state is unchanged."""
        digest = hashlib.blake2b(digest_size=16)
        handle = self._open()
        with os.fdopen(handle, "rb", buffering=0) as file:
            self._stamp = _stamp(handle)
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                yield chunk
        self._content = digest.hexdigest()

    def read(self, offset: int, length: int) -> bytes:
        """Read `length` bytes from `offset`.

        Raises:
            DatasetError: the file has changed since it was scanned.
        """
        if self._handle is None:
            self._handle = self._open()
            if self._stamp not in (None, _stamp(self._handle)):
                raise DatasetError(
                    f"{self.label}: the file changed during the run; run again."
                )
        return os.pread(self._handle, length, offset)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield every line with the offset of its first byte."""
        offset = 0
        chunks: list[bytes] = []
        for chunk in self._chunks():
            *complete, remainder = chunk.split(b"\n")
            for line in complete:
                chunks.append(line)
                full = b"".join((*chunks, b"\n"))
                chunks.clear()
                yield offset, full
                offset += len(full)
            if remainder:
                chunks.append(remainder)
                if len(chunks) * _CHUNK > LONGEST_LINE:
                    raise DatasetError(
                        f"{self.label}: a line from byte {offset:,} on is longer than"
                        f" {LONGEST_LINE >> 20} MiB, the longest that a row may be."
                    )
        if chunks:
            yield offset, b"".join(chunks)

    def _open(self) -> int:
        with failing_as(DatasetError, f"The data file '{self.label}' cannot be read"):
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
            return os.open(
                self.path,
                os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0),
            )

    def __del__(self) -> None:
        if self._handle is not None:
            os.close(self._handle)


_open_files: WeakValueDictionary[tuple[Any, ...], FileSource] = WeakValueDictionary()


def file_source(path: Path, label: str = "") -> FileSource:
    """Return the FileSource of a path.

    A file is opened only once, so 57 tasks over one file hold one handle.
    """
    with failing_as(
        DatasetError, f"The data file '{label or shown_path(path)}' cannot be read"
    ):
        status = path.stat()
    key = (path.resolve(), label, status.st_ino, status.st_size, status.st_mtime_ns)
    source = _open_files.get(key)
    if source is None:
        source = _open_files[key] = FileSource(path, label)
    return source


class InlineSource:
    """Rows that are written in the task file."""

    def __init__(self, rows: Sequence[Row], label: str) -> None:
        self.label = label
        self.checked = False
        lines = [
            as_json(row, f"{label}, row {number}") for number, row in enumerate(rows, 1)
        ]
        self._data = b"".join(lines)
        self.size = len(self._data)
        self._lengths = [len(line) for line in lines]

    def content(self) -> str:
        return hashlib.blake2b(self._data, digest_size=16).hexdigest()

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]

    def lines(self) -> Iterator[tuple[int, bytes]]:
        offset = 0
        for length in self._lengths:
            yield offset, self._data[offset : offset + length]
            offset += length


Source = FileSource | InlineSource


class Rows:
    """Rows of one or more sources in order.

    They are built by `scan`, which keeps those that its caller wants.

    Attributes:
        total: how many rows the sources have, kept or not.
        added: for each source, columns for its rows that have none of that name.
    """

    def __init__(
        self, sources: Sequence[Source], added: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.sources = tuple(sources)
        self.added = tuple(added) if any(added) else ()
        self._offsets = array("Q")
        self._lengths = array("I")
        self._starts: list[int] = []
        self.total = 0

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, index: int) -> Row:
        source_index = bisect_right(self._starts, index) - 1
        source = self.sources[source_index]
        line = source.read(self._offsets[index], self._lengths[index])
        try:
            row: Row = json.loads(line)
        except ValueError:
            raise DatasetError(
                f"{source.label}: the file changed during the run; run again."
            ) from None
        return {**self.added[source_index], **row} if self.added else row

    @property
    def label(self) -> str:
        """Return the sources' names, for errors."""
        names = [source.label for source in self.sources]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    def scan(
        self, skip: Callable[[bytes], bool] | None = None
    ) -> Iterator[tuple[Row, bytes, str, Callable[[], None]]]:
        """Read everything once: yield (row, its line, "file, row 1,234", keep).

        Calling `keep()` makes it one of these rows. `skip` may drop a line unread.

        Raises:
            DatasetError: a line is not a JSON object; the message has file and row.
        """
        for source_index, source in enumerate(self.sources):
            self._starts.append(len(self._offsets))
            number = 0
            for line_number, (offset, raw) in enumerate(source.lines(), 1):
                if offset == 0:
                    offset, raw = _without_bom(raw, source.label)
                line = raw.strip()
                if not line:
                    continue
                number += 1
                self.total += 1
                if skip is not None and skip(line):
                    continue
                where = f"{source.label}, row {number:,}"
                if line_number != number:
                    where = f"{where} (line {line_number:,})"
                row = parse(
                    line,
                    where,
                    is_copy=isinstance(source, FileSource) and source.is_copy,
                )
                if self.added:
                    row = {**self.added[source_index], **row}
                start = offset + raw.index(line[:1]) if raw[:1] != line[:1] else offset

                def keep(start: int = start, length: int = len(line)) -> None:
                    self._offsets.append(start)
                    self._lengths.append(length)

                yield row, line, where, keep

    def where(self, index: int) -> str:
        """Return "file, row 1,234" of a kept row, for errors: it reads the file up to that row."""
        source = self.sources[bisect_right(self._starts, index) - 1]
        target = self._offsets[index]
        number = 0
        for offset, line in source.lines():
            if line.strip(_BOM + b" \t\r\n"):
                number += 1
            if offset + len(line) > target:
                break
        return f"{source.label}, row {number:,}"

    def places(self) -> tuple[array[int], array[int], Sequence[int]]:
        """Return the kept rows' positions: offsets, lengths, and the first row of each source."""
        return self._offsets, self._lengths, self._starts

    def restore(
        self,
        offsets: array[int],
        lengths: array[int],
        starts: Sequence[int],
        total: int,
    ) -> None:
        """Restore what `places` returned before, for the same sources."""
        self._offsets = offsets
        self._lengths = lengths
        self._starts = list(starts)
        self.total = total

    def drop(self, indices: set[int]) -> None:
        """Remove kept rows again."""
        counts = [*self._starts, len(self._offsets)]
        self._starts = [
            start - sum(index < start for index in indices) for start in counts[:-1]
        ]
        self._offsets = array(
            "Q", (v for i, v in enumerate(self._offsets) if i not in indices)
        )
        self._lengths = array(
            "I", (v for i, v in enumerate(self._lengths) if i not in indices)
        )


def as_json(row: Row, where: str) -> bytes:
    """Encode a row as a line of JSONL. Times become ISO 8601, bytes base64, decimals text."""
    try:
        return json.dumps(row, ensure_ascii=False, default=_plain).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"{where}: the row cannot be kept as JSON: {error}."
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")


class NotData(ValueError):
    """JSON that Python would read but that is ambiguous as data.

    The message completes a sentence: "it has ...".
    """


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NotData(f"it has the number {text[:40]}, which is too large to be one")
    return number


def _no_constant(name: str) -> float:
    raise NotData(
        f"it has {name}, which is no JSON; leave the column out, or write null"
    )


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise NotData(f"it has the key '{twice[:60]}' twice")
    return row


DECODER = json.JSONDecoder(
    parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_distinct
)
"""Reads JSON data strictly.

Raises NotData for what Python alone would accept: NaN, 1e999, a repeated key.
"""


def parse(line: bytes, where: str, *, is_copy: bool = False) -> Row:
    """Parse one line as a row.

    `is_copy` says that it was written here, from a table that may have NaN.

    Raises:
        DatasetError: the line is not a row; the message says what is wrong.
    """
    try:
        text = line.decode()
        row = json.loads(text) if is_copy else DECODER.decode(text)
    except NotData as error:
        raise DatasetError(f"{where}: this line is no row: {error}.") from None
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{where}: byte {error.start + 1} of the line is not UTF-8 text; save the"
            " file as UTF-8."
        ) from None
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{where}: this line is not JSON: {error.msg[0].lower()}{error.msg[1:]} at"
            f" character {error.colno}."
        ) from None
    except (ValueError, RecursionError):
        raise DatasetError(
            f"{where}: this line has a number or a nesting that is too large to read."
        ) from None
    if not isinstance(row, dict):
        raise DatasetError(
            f'{where}: a row must be an object of columns ({{"question": ...}}), not'
            f" {kind_of(row)}."
        )
    if b"\\ud" in line or b"\\uD" in line:
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise DatasetError(
                f"{where}: the text has half of a surrogate pair (\\ud8xx without its"
                " partner)."
            ) from None
    return row


def _without_bom(raw: bytes, label: str) -> tuple[int, bytes]:
    if raw.startswith(_BOM):
        return len(_BOM), raw[len(_BOM) :]
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DatasetError(f"{label}: the file is UTF-16, not UTF-8; save it as UTF-8.")
    return 0, raw


def _stamp(handle: int) -> tuple[int, int]:
    status = os.fstat(handle)
    return status.st_size, status.st_mtime_ns
