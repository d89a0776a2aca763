"""Images in prompts: their bytes, their hash, and what their header says.

Only formats that all providers of vision models accept, recognised by content, never by file
name. Nothing is decoded: width and height are in the header, so an image that would unpack to
more than `MOST_PIXELS` is rejected without unpacking it.
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
"""Limits for one image, in bytes and pixels; no provider accepts more."""

_DATA_URL = re.compile(
    r"data:([\w.+-]+/[\w.+-]+)?(;[\w.+-]+=[^;,]*)*;base64,", re.ASCII
)
_JPEG_SIZES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""JPEG markers of the frame headers, which hold the image's size."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image; two images with the same bytes are equal.

    Attributes:
        data: the bytes; empty for an image read from a record.
        media_type: such as "image/png".
        source: the file or URL it came from, for people and records.
        digest: SHA-256 of the bytes in hexadecimal.
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
        """Read an image from its bytes.

        Args:
            data: the bytes of the file.
            source: the file or URL they came from, for messages and records.

        Raises:
            DatasetError: the bytes are not PNG, JPEG, GIF or WebP, or the image is too large.
        """
        if len(data) > MOST_BYTES:
            raise DatasetError(
                f"The image '{source}' has {len(data):,} bytes, more than the"
                f" {MOST_BYTES:,} allowed: make it smaller."
            )
        media_type, width, height = size_of(data)
        if not media_type:
            raise DatasetError(
                f"'{source}' is not an image that models take{_describe_unknown(data)}: use PNG,"
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
        """Read an image from a base64 `data:` URL. Raises DatasetError as `read` does."""
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
        """Rebuild an image from what `named` wrote to a record; its bytes are not there."""
        return cls(b"", part["media_type"], part.get("source", ""), part["image"])

    def named(self, with_source: bool = False) -> dict[str, str]:
        """Return the image as a mapping for JSON: hash, media type, optionally its source."""
        origin = {"source": self.source} if with_source and self.source else {}
        return {"image": self.digest, "media_type": self.media_type, **origin}

    def base64(self) -> str:
        """Encode the bytes in base64, as APIs expect."""
        return base64.b64encode(self.data).decode()

    def data_url(self) -> str:
        """Return the image as a base64 `data:` URL."""
        return f"data:{self.media_type};base64,{self.base64()}"


def size_of(data: bytes) -> tuple[str, int, int]:
    """Read media type, width and height in pixels from an image's header.

    Returns:
        "" as the media type of an unknown format; 0 for a size that the header lacks.
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        named = data[12:16] == b"IHDR" and len(data) >= 24
        return "image/png", *(
            (_big_endian(data[16:20]), _big_endian(data[20:24])) if named else (0, 0)
        )
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif", _little_endian(data[6:8]), _little_endian(data[8:10])
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp", *_webp_size(data)
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg", *_jpeg_size(data)
    return "", 0, 0


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Read width and height from the first frame header, skipping the segments before it."""
    offset = 2
    while offset + 9 <= len(data) and data[offset] == 0xFF:
        marker = data[offset + 1]
        if marker in _JPEG_SIZES:
            return _big_endian(data[offset + 7 : offset + 9]), _big_endian(
                data[offset + 5 : offset + 7]
            )
        # Skip fill bytes, and markers that have no length field.
        has_no_length = marker == 0x01 or 0xD0 <= marker <= 0xD8
        offset += (
            1
            if marker == 0xFF
            else 2
            if has_no_length
            else 2 + _big_endian(data[offset + 2 : offset + 4])
        )
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    """Read width and height from the first chunk, which is extended, lossless or lossy."""
    chunk_type = data[12:16]
    body = data[20:30]
    if chunk_type == b"VP8X" and len(body) == 10:
        return _little_endian(body[4:7]) + 1, _little_endian(body[7:10]) + 1
    if chunk_type == b"VP8L" and body[:1] == b"\x2f" and len(body) >= 5:
        bits = _little_endian(body[1:5])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk_type == b"VP8 " and body[3:6] == b"\x9d\x01\x2a":
        return _little_endian(body[6:8]) & 0x3FFF, _little_endian(body[8:10]) & 0x3FFF
    return 0, 0


def _describe_unknown(data: bytes) -> str:
    """Say in brackets what a file is that is not a supported image, where that is easy to tell."""
    start = data[:1000].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not data:
        return " (it is empty)"
    if start.startswith((b"<svg", b"<?xml")) and b"<svg" in data[:10000].lower():
        return " (it is SVG, which can contain scripts)"
    return " (it is a web page)" if start.startswith((b"<!doctype", b"<html")) else ""


def _big_endian(encoded: bytes) -> int:
    return int.from_bytes(encoded, "big")


def _little_endian(encoded: bytes) -> int:
    return int.from_bytes(encoded, "little")
