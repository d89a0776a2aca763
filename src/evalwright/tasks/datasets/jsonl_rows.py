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
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from evalwright.core.errors import DatasetError
from evalwright.core.file_hashes import (
    NOTED_FROM_BYTES,
    file_state,
    note_hash,
    noted_hash,
    write_back,
)
from evalwright.core.private import LONGEST_LINE
from evalwright.tasks.datasets.kept_copies import hold_copy
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
            with failing_as(
                DatasetError, f"The data file '{self.label}' cannot be read"
            ):
                status = self.path.stat()
                self._content = noted_hash(self.path)
            if self._content:
                self._stamp = status.st_size, status.st_mtime_ns
        if not self._content:
            for _ in self._chunks():
                pass
        return self._content

    def _chunks(self) -> Iterator[bytes]:
        """Yield the whole file; later reads require that its state is unchanged."""
        digest = hashlib.blake2b(digest_size=16)
        handle = self._open()
        with os.fdopen(handle, "rb", buffering=0) as file:
            if self.size >= NOTED_FROM_BYTES:
                write_back(handle)
            self._stamp = _stamp(handle)
            state = file_state(self.path)
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                yield chunk
        self._content = digest.hexdigest()
        with suppress(OSError):
            note_hash(self.path, state, self._content)

    def read(self, offset: int, length: int) -> bytes:
        """Read `length` bytes from `offset`.

        Raises:
            DatasetError: the file has changed since it was scanned.
        """
        if self._handle is None:
            self._handle = self._open()
            if self.is_copy:
                hold_copy(self._handle)
            if self._stamp not in (None, _stamp(self._handle)):
                raise DatasetError(
                    f"{self.label}: the file changed during the run; run again."
                )
        return os.pread(self._handle, length, offset)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield every line, without its line feed, with the offset of its first byte."""
        offset = 0
        chunks: list[bytes] = []
        for chunk in self._chunks():
            *complete, remainder = chunk.split(b"\n")
            for line in complete:
                if chunks:
                    line = b"".join((*chunks, line))
                    chunks.clear()
                yield offset, line
                offset += len(line) + 1
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
            yield offset, self._data[offset : offset + length - 1]
            offset += length


Source = FileSource | InlineSource


@dataclass(slots=True)
class ScannedLine:
    """Where a scan is in a source.

    Attributes:
        label: the source's name in errors.
        row_number: counts lines that are not blank, from 1.
        line_number: counts all lines, from 1.
        offset: that of the row's first byte.
        length: bytes of the row.
    """

    label: str
    row_number: int = 0
    line_number: int = 0
    offset: int = 0
    length: int = 0

    def place(self) -> str:
        """Return "file, row 1,234", with the line's number if that is another."""
        place = f"{self.label}, row {self.row_number:,}"
        if self.line_number == self.row_number:
            return place
        return f"{place} (line {self.line_number:,})"


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
        self._scanned = ScannedLine("")
        self.total = 0

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, index: int) -> Row:
        source_index = bisect_right(self._starts, index) - 1
        source = self.sources[source_index]
        line = source.read(self._offsets[index], self._lengths[index])
        try:
            row = _parse_quickly(line.decode(), is_copy=True)
        except UnicodeDecodeError:
            row = None
        if row is None:
            raise DatasetError(
                f"{source.label}: the file changed during the run; run again."
            )
        return {**self.added[source_index], **row} if self.added else row

    @property
    def label(self) -> str:
        """Return the sources' names, for errors."""
        names = [source.label for source in self.sources]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    def scan(
        self, skip: Callable[[bytes], bool] | None = None
    ) -> Iterator[tuple[Row, bytes]]:
        """Read everything once: yield every row with its line.

        Until the next one is read, `keep` makes a row one of these rows, and `place` names it.
        `skip` may drop a line unread.

        Raises:
            DatasetError: a line is not a JSON object; the message has file and row.
        """
        for source_index, source in enumerate(self.sources):
            self._starts.append(len(self._offsets))
            self._scanned = ScannedLine(source.label)
            added = self.added[source_index] if self.added else {}
            yield from self._scan_source(source, self._scanned, added, skip)

    def _scan_source(
        self,
        source: Source,
        scanned: ScannedLine,
        added: Mapping[str, Any],
        skip: Callable[[bytes], bool] | None,
    ) -> Iterator[tuple[Row, bytes]]:
        """Scan one source; `scanned` is kept at its current line."""
        is_copy = isinstance(source, FileSource) and source.is_copy
        place = scanned.place
        for line_number, (offset, raw) in enumerate(source.lines(), 1):
            if offset == 0:
                offset, raw = _without_bom(raw, source.label)
            line = raw.strip()
            if not line:
                continue
            scanned.line_number = line_number
            scanned.row_number += 1
            self.total += 1
            if skip is not None and skip(line):
                continue
            length = len(line)
            if length != len(raw):
                offset += raw.index(line[:1])
            scanned.offset = offset
            scanned.length = length
            row = parse(line, place, is_copy)
            yield {**added, **row} if added else row, line

    def keep(self) -> None:
        """Make the row that `scan` yielded last one of these rows."""
        self._offsets.append(self._scanned.offset)
        self._lengths.append(self._scanned.length)

    def place(self) -> str:
        """Return "file, row 1,234" of the row that `scan` yielded last, for errors."""
        return self._scanned.place()

    def where(self, index: int) -> str:
        """Return "file, row 1,234" of a kept row, for errors: it reads the file up to that row."""
        source = self.sources[bisect_right(self._starts, index) - 1]
        target = self._offsets[index]
        number = 0
        for offset, line in source.lines():
            if line.strip(_BOM + b" \t\r\n"):
                number += 1
            if offset + len(line) >= target:
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
        return _ENCODER.encode(row).encode() + b"\n"
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


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_plain)

_UNESCAPED_BYTES = bytes(set(range(0x20, 0x100)) - set(b'"\\'))


def has_escapes(text: str) -> bool:
    """Tell whether JSON has some character of a text only as an escape."""
    # A tenth of the time of a regular expression.
    return bool(text.encode().translate(None, _UNESCAPED_BYTES))


def encode_cells(cells: Sequence[Any]) -> list[str]:
    """Encode cells as `as_json` does within their rows.

    Args:
        cells: cells of one column, which are encoded faster if all are of one type.

    Raises:
        TypeError: a cell cannot be kept as JSON.
        ValueError: likewise.
    """
    types = set(map(type, cells))
    if types == {str}:
        if has_escapes("".join(cells)):
            return list(map(encode_basestring, cells))
        return [f'"{cell}"' for cell in cells]
    if types == {int}:
        return list(map(repr, cells))
    return list(map(_ENCODER.encode, cells))


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


_LENIENT = json.JSONDecoder()
_LAST_KEY_WINS = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
"""Like DECODER, except that the last of repeated keys wins."""


def _parse_quickly(text: str, *, is_copy: bool) -> Row | None:
    """Parse a row as DECODER does, if it is flat and has no colon but those after its keys.

    A key of a JSON object is followed by a colon. So if a text has as many colons as the parsed row
    has keys, none is repeated, and looking at each pair can be left out.

    Returns:
        The row; None if it must be parsed by DECODER, or is broken.
    """
    try:
        row, end = (_LENIENT if is_copy else _LAST_KEY_WINS).raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if end != len(text) or type(row) is not dict:
        return None
    if is_copy or text.count(":") == len(row):
        parsed: Row = row
        return parsed
    return None


def parse(line: bytes, place: Callable[[], str], is_copy: bool = False) -> Row:
    """Parse one line as a row.

    Args:
        line: the line, without white space around it.
        place: returns which row it is, for errors.
        is_copy: whether it was written here, from a table that may have NaN.

    Raises:
        DatasetError: the line is not a row; the message says what is wrong.
    """
    row: Any = None
    try:
        text = line.decode()
        row = _parse_quickly(text, is_copy=is_copy)
        if row is None:
            row = json.loads(text) if is_copy else DECODER.decode(text)
    except NotData as error:
        raise DatasetError(f"{place()}: this line is no row: {error}.") from None
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{place()}: byte {error.start + 1} of the line is not UTF-8 text; save the"
            " file as UTF-8."
        ) from None
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{place()}: this line is not JSON: {error.msg[0].lower()}{error.msg[1:]} at"
            f" character {error.colno}."
        ) from None
    except (ValueError, RecursionError):
        raise DatasetError(
            f"{place()}: this line has a number or a nesting that is too large to read."
        ) from None
    if not isinstance(row, dict):
        raise DatasetError(
            f'{place()}: a row must be an object of columns ({{"question": ...}}), not'
            f" {kind_of(row)}."
        )
    if b"\\" in line and (b"\\ud" in line or b"\\uD" in line):
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise DatasetError(
                f"{place()}: the text has half of a surrogate pair (\\ud8xx without its"
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
