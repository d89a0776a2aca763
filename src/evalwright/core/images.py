"""An image in a prompt: its bytes, named by their hash, and what their first bytes say of it.

Only formats that all providers of vision models take, told by their content and never by a name.
Nothing is decoded here: width and height stand in the header, so an image that would unpack to more
than `MOST_PIXELS` is refused unopened.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from evalwright.core.errors import DatasetError

MOST_BYTES = 20 * 10**6
MOST_PIXELS = 64 * 10**6
"""Of one image: more is taken by no provider."""

_DATA_URL = re.compile(
    r"data:([\w.+-]+/[\w.+-]+)?(;[\w.+-]+=[^;,]*)*;base64,", re.ASCII
)
_JPEG_SIZES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""Markers of a JPEG's frames, which name its size."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image, equal to every other image with the same bytes.

    Args:
        data: the bytes; empty for an image read from a record.
        media_type: such as "image/png".
        source: where it comes from, for people and records.
        digest: SHA-256 of the bytes in hexadecimal; computed where it is not given.
    """

    data: bytes = field(repr=False)
    media_type: str
    source: str = field(default="", compare=False)
    digest: str = ""

    def __post_init__(self) -> None:
        if not self.digest:
            object.__setattr__(self, "digest", hashlib.sha256(self.data).hexdigest())

    @classmethod
    def read(cls, data: bytes, source: str) -> Self:
        """The image of these bytes.

        Raises DatasetError, with a sentence, for what is no PNG, JPEG, GIF or WebP, or too large.
        """
        if len(data) > MOST_BYTES:
            raise DatasetError(
                f"The image '{source}' has {len(data):,} bytes, more than the"
                f" {MOST_BYTES:,} allowed: make it smaller."
            )
        media_type, width, height = size_of(data)
        if not media_type:
            raise DatasetError(
                f"'{source}' is not an image that models take{_found(data)}: use PNG,"
                " JPEG, GIF or WebP."
            )
        if width < 1 or height < 1:
            raise DatasetError(
                f"The image '{source}' is damaged: its header ({media_type}) names no"
                " size."
            )
        if width * height > MOST_PIXELS:
            raise DatasetError(
                f"The image '{source}' unpacks to {width:,} x {height:,} pixels, more"
                f" than the {MOST_PIXELS:,} allowed: make it smaller."
            )
        return cls(data, media_type, source)

    @classmethod
    def from_data_url(cls, url: str, source: str = "a data URL") -> Self:
        """The image in a `data:` URL with base64. Raises DatasetError as `read` does."""
        head = _DATA_URL.match(url[:200])
        if head is None:
            raise DatasetError(
                "The data URL of an image has no base64: write data:image/png;base64,"
                " and the bytes."
            )
        text = url[head.end() :]
        if len(text) > MOST_BYTES * 3 // 2:
            raise DatasetError(
                f"The data URL of an image has {len(text):,} characters: an image may"
                f" have {MOST_BYTES:,} bytes."
            )
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise DatasetError(
                "The data URL of an image is not valid base64."
            ) from None
        return cls.read(data, source)

    @classmethod
    def recorded(cls, part: Mapping[str, Any]) -> Self:
        """As `named` wrote it: without bytes."""
        return cls(b"", part["media_type"], part.get("source", ""), part["image"])

    def named(self, with_source: bool = False) -> dict[str, str]:
        """A plain mapping for JSON: hash and media type, and for records where it is from."""
        more = {"source": self.source} if with_source and self.source else {}
        return {"image": self.digest, "media_type": self.media_type, **more}

    def base64(self) -> str:
        """Its bytes as interfaces take them."""
        return base64.b64encode(self.data).decode()

    def data_url(self) -> str:
        """Its bytes as a `data:` URL."""
        return f"data:{self.media_type};base64,{self.base64()}"


def size_of(data: bytes) -> tuple[str, int, int]:
    """(media type, width, height) as the header says; type "" for no format that is known, 0 where
    no size stands.
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        named = data[12:16] == b"IHDR" and len(data) >= 24
        return "image/png", *(
            (_big(data[16:20]), _big(data[20:24])) if named else (0, 0)
        )
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif", _little(data[6:8]), _little(data[8:10])
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp", *_webp_size(data)
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg", *_jpeg_size(data)
    return "", 0, 0


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """From the first frame's header, over the segments before it."""
    place = 2
    while place + 9 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker in _JPEG_SIZES:
            return _big(data[place + 7 : place + 9]), _big(data[place + 5 : place + 7])
        # Fill bytes and markers without a length are passed over.
        bare = marker == 0x01 or 0xD0 <= marker <= 0xD8
        place += (
            1
            if marker == 0xFF
            else 2
            if bare
            else 2 + _big(data[place + 2 : place + 4])
        )
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    """From the first chunk: extended, lossless or lossy."""
    kind = data[12:16]
    body = data[20:30]
    if kind == b"VP8X" and len(body) == 10:
        return _little(body[4:7]) + 1, _little(body[7:10]) + 1
    if kind == b"VP8L" and body[:1] == b"\x2f" and len(body) >= 5:
        bits = _little(body[1:5])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and body[3:6] == b"\x9d\x01\x2a":
        return _little(body[6:8]) & 0x3FFF, _little(body[8:10]) & 0x3FFF
    return 0, 0


def _found(data: bytes) -> str:
    """What it is instead, where that is plain."""
    start = data[:1000].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not data:
        return " (it is empty)"
    if start.startswith((b"<svg", b"<?xml")) and b"<svg" in data[:10000].lower():
        return " (it is SVG, which can contain scripts)"
    return " (it is a web page)" if start.startswith((b"<!doctype", b"<html")) else ""


def _big(part: bytes) -> int:
    return int.from_bytes(part, "big")


def _little(part: bytes) -> int:
    return int.from_bytes(part, "little")
