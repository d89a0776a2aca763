"""One HTTP/1.1 reply out of the bytes of a connection, however they are cut: its head, and its body by length, by chunks
or up to the end of the connection (RFC 9112), unpacked where it is compressed.

It is pure: bytes in, a `Received` out. It takes what real servers send and nothing that could be read in two ways.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Literal

LARGEST_HEAD = 64 * 1024
"""Bytes that a reply's head, or the line before a chunk, may have."""

ENCODINGS = "gzip, deflate"
"""What may be sent as Accept-Encoding."""

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: [^\r\n]*)?\r?")
_END = re.compile(rb"\r?\n\r?\n")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")

RawHeaders = list[tuple[bytes, bytes]]


class NotHttp(ValueError):
    """What came is not a reply of HTTP/1.1."""


class TooLarge(ValueError):
    """The reply is larger than allowed."""


@dataclass(slots=True)
class Received:
    """A whole reply. raw_headers: names in lower case. keep: whether the connection can carry another."""

    status: int
    raw_headers: RawHeaders
    body: bytes
    keep: bool

    @property
    def headers(self) -> dict[str, str]:
        """By name in lower case; of equal names the first."""
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(self.raw_headers)}


class ReplyReader:
    """Reads one reply. largest: bytes that its body may have, packed and unpacked.

    Both methods raise NotHttp for what cannot be a reply, and TooLarge as soon as it is known.
    """

    __slots__ = ("_body", "_head", "_largest", "_rest", "began")

    def __init__(self, largest: int) -> None:
        self.began = False
        """Whether any byte has come."""
        self._largest = largest
        self._rest = b""
        self._head: _Head | None = None
        self._body: _Sized | _Chunked | _Open | None = None

    def feed(self, data: bytes) -> Received | None:
        """The next bytes; the reply once it is whole."""
        self.began = True
        if self._body is None:
            whole = self._begin(self._rest + data if self._rest else data)
            if whole is None:
                return None
            data = whole
        head, body = self._head, self._body
        assert head is not None and body is not None
        if not body.feed(data):
            return None
        return self._received(head, body, keep=head.keep and not body.surplus)

    def end(self) -> Received | None:
        """The connection has ended; the reply if that makes it whole."""
        if self._head is None or not isinstance(self._body, _Open):
            return None
        return self._received(self._head, self._body, keep=False)

    def _begin(self, data: bytes) -> bytes | None:
        """Read the head; what follows it, or None where it is not whole yet."""
        while True:
            found = _END.search(data)
            if found is None:
                if len(data) > LARGEST_HEAD or not data.startswith(b"HTTP/1."[: len(data)]):
                    raise NotHttp
                self._rest = data
                return None
            head = _Head(data[: found.start()])
            data = data[found.end() :]
            if head.status >= 200:
                break
            if head.status == 101:
                raise NotHttp  # nobody asked for another protocol
        self._head, self._rest = head, b""
        if head.chunked:
            self._body = _Chunked(self._largest)
        elif head.length is not None:
            self._body = _Sized(head.length, self._largest)
        else:
            self._body = _Open(self._largest)
            head.keep = False
        return data

    def _received(self, head: _Head, body: _Sized | _Chunked | _Open, keep: bool) -> Received:
        return Received(
            head.status, head.headers, _unpacked(body.content, head.encoding, self._largest), keep
        )


class _Head:
    """The status line and the headers, and what they say about the body and the connection."""

    __slots__ = ("chunked", "encoding", "headers", "keep", "length", "status")

    def __init__(self, data: bytes) -> None:
        first, *lines = data.split(b"\n")
        status = _STATUS.fullmatch(first)
        if status is None:
            raise NotHttp
        self.status = int(status[2])
        self.keep = status[1] == b"1"
        self.length: int | None = None
        self.chunked = False
        self.encoding = b""
        self.headers: RawHeaders = []
        for line in lines:
            name, colon, value = line.partition(b":")
            if not colon or _NAME.fullmatch(name) is None:
                raise NotHttp
            name, value = name.lower(), value.strip()
            self.headers.append((name, value))
            if name in _FRAMING:
                self._heed(name, value)
        if self.status in (204, 304):
            self.length, self.chunked = 0, False

    def _heed(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            if not value.isdigit() or len(value) > 15 or self.length not in (None, int(value)):
                raise NotHttp
            self.length = int(value)
        elif name == b"transfer-encoding":
            if value.lower() != b"chunked" or self.chunked:
                raise NotHttp
            self.chunked = True
        elif name == b"connection":
            words = {word.strip() for word in value.lower().split(b",")}
            self.keep = b"close" not in words and (self.keep or b"keep-alive" in words)
        else:
            self.encoding = value.lower()


_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"connection", b"content-encoding"})


class _Sized:
    """A body of known length."""

    __slots__ = ("_left", "_parts", "surplus")

    def __init__(self, length: int, largest: int) -> None:
        if length > largest:
            raise TooLarge
        self._left = length
        self._parts: list[bytes] = []
        self.surplus = False

    def feed(self, data: bytes) -> bool:
        """Whether the body is whole."""
        if len(data) > self._left:
            data, self.surplus = data[: self._left], True
        self._left -= len(data)
        self._parts.append(data)
        return self._left == 0

    @property
    def content(self) -> bytes:
        """The body."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


class _Open:
    """A body that ends with the connection."""

    __slots__ = ("_largest", "_parts", "_size", "surplus")

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._parts: list[bytes] = []
        self._size = 0
        self.surplus = False

    def feed(self, data: bytes) -> bool:
        """Never whole by itself."""
        self._size += len(data)
        if self._size > self._largest:
            raise TooLarge
        self._parts.append(data)
        return False

    @property
    def content(self) -> bytes:
        """The body so far."""
        return b"".join(self._parts)


class _Chunked:
    """A body in chunks, each after a line with its size; a size of 0 and perhaps trailers end it."""

    __slots__ = ("_at", "_largest", "_left", "_parts", "_rest", "_size", "surplus")

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._parts: list[bytes] = []
        self._size = 0
        self._left = 0
        self._rest = b""
        self._at: Literal["size", "end of chunk", "trailers"] = "size"
        """What the next line is."""
        self.surplus = False

    def feed(self, data: bytes) -> bool:
        """Whether the body is whole."""
        data = self._rest + data if self._rest else data
        self._rest = b""
        place = 0
        while True:
            if self._left:
                part = data[place : place + self._left]
                self._parts.append(part)
                self._left -= len(part)
                place += len(part)
                if self._left:
                    return False
            end = data.find(b"\n", place)
            if end < 0:
                self._rest = data[place:]
                if len(self._rest) > LARGEST_HEAD:
                    raise NotHttp
                return False
            line = data[place:end].removesuffix(b"\r")
            place = end + 1
            if self._at == "trailers" and not line:
                self.surplus = place < len(data)
                return True
            self._heed(line)

    def _heed(self, line: bytes) -> None:
        if self._at == "trailers":
            return
        if self._at == "end of chunk":
            if line:
                raise NotHttp
            self._at = "size"
            return
        found = _SIZE.fullmatch(line)
        if found is None:
            raise NotHttp
        self._left = int(found[1], 16)
        self._size += self._left
        if self._size > self._largest:
            raise TooLarge
        self._at = "end of chunk" if self._left else "trailers"

    @property
    def content(self) -> bytes:
        """The body without its framing."""
        return b"".join(self._parts)


def _unpacked(body: bytes, encoding: bytes, largest: int) -> bytes:
    """The body without its compression."""
    if encoding in (b"", b"identity") or not body:
        return body
    if encoding in (b"gzip", b"x-gzip"):
        ways = [zlib.MAX_WBITS | 16]
    elif encoding == b"deflate":
        ways = [zlib.MAX_WBITS, -zlib.MAX_WBITS]  # some servers leave out zlib's own header
    else:
        raise NotHttp
    for way in ways:
        unpacker = zlib.decompressobj(way)
        try:
            content = unpacker.decompress(body, largest + 1)
        except zlib.error:
            continue
        if len(content) > largest:
            raise TooLarge
        if unpacker.eof:
            return content
    raise NotHttp
