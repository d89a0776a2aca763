"""Images are told by their bytes: what is one, how large it unpacks, and a sentence for
everything else.
"""

from __future__ import annotations

import base64
import struct
import zlib
from io import BytesIO

import pytest

from evalwright.core.errors import DatasetError
from evalwright.core.images import MOST_BYTES, Image
from evalwright.core.requests import (
    Generate,
    Message,
    images_of,
    prompt_from,
    prompt_payload,
)
from support.bounds import assert_grows_linearly

Pictures = pytest.importorskip("PIL.Image")


def encoded(kind: str, size: tuple[int, int] = (30, 20), **how: object) -> bytes:
    data = BytesIO()
    Pictures.new("RGB", size, "teal").save(data, kind, **how)
    return data.getvalue()


def png(width: int, height: int) -> bytes:
    """A PNG that claims a size, with next to nothing in it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("kind", "how", "media_type"),
    [
        ("PNG", {}, "image/png"),
        ("JPEG", {}, "image/jpeg"),
        ("JPEG", {"progressive": True}, "image/jpeg"),
        ("JPEG", {"exif": b"Exif\0\0" + b"x" * 2000}, "image/jpeg"),
        ("GIF", {}, "image/gif"),
        ("WEBP", {}, "image/webp"),
        ("WEBP", {"lossless": True}, "image/webp"),
        ("WEBP", {"exif": b"Exif\0\0more"}, "image/webp"),
    ],
)
def test_formats_are_told_by_their_bytes(
    kind: str, how: dict[str, object], media_type: str
) -> None:
    from evalwright.core import images

    data = encoded(kind, (301, 202), **how)
    assert Image.read(data, "a").media_type == media_type
    assert images.size_of(data) == (media_type, 301, 202)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "(it is empty)"),
        (b"hello", "is not an image that models take: use PNG, JPEG, GIF or WebP"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "SVG, which can contain scripts"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<svg/>", "SVG"),
        (b"<!DOCTYPE html><html></html>", "(it is a web page)"),
        (b"%PDF-1.7", "is not an image"),
        (b"BM\x00\x00", "is not an image"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "is not an image"),
        (b"\x89PNG\r\n\x1a\n", "is damaged: its header (image/png) names no size"),
        (b"\xff\xd8\xff", "is damaged"),
        (b"\xff\xd8\xff\xe0" + b"\x00\x02" * 1000, "is damaged"),
        (b"GIF89a", "is damaged"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "is damaged"),
        (png(100_000, 100_000), "unpacks to 100,000 x 100,000 pixels"),
        (png(8_001, 8_000), "unpacks to 8,001 x 8,000 pixels"),
        (b"GIF89a\xff\xff\xff\xff\x00\x00\x00;", "unpacks to 65,535 x 65,535 pixels"),
        (b"\x89PNG\r\n\x1a\n" + b"x" * MOST_BYTES, "bytes, more than the 20,000,000 allowed"),
    ],
)  # fmt: skip
def test_what_is_no_image_is_a_sentence(data: bytes, says: str) -> None:
    with pytest.raises(DatasetError) as caught:
        Image.read(data, "a.png")
    assert (
        says in str(caught.value)
        and "a.png" in str(caught.value)
        and "\n" not in str(caught.value)
    )


@pytest.mark.parametrize(
    "piece", [b"\xff\xe0\x00\x02", b"\xff"], ids=["segments", "fill"]
)
def test_bytes_of_others_take_no_time(piece: bytes) -> None:
    """A JPEG of nothing but segments, and one that fills without end."""

    def read(data: bytes) -> None:
        with pytest.raises(DatasetError):
            Image.read(data, "a.jpg")

    assert_grows_linearly(
        read,
        lambda length: b"\xff\xd8" + piece * (length // len(piece)),
        (60_000, 1_000_000),
    )


def test_data_urls() -> None:
    data = encoded("PNG")
    text = base64.b64encode(data).decode()
    image = Image.from_data_url(f"data:image/png;base64,{text}")
    assert (
        image == Image.read(data, "elsewhere")
        and image.data_url() == f"data:image/png;base64,{text}"
    )
    # What it says it is counts for nothing.
    assert (
        Image.from_data_url(f"data:text/html;charset=x;base64,{text}").media_type
        == "image/png"
    )
    for url in (
        "data:image/png,abc",
        "data:image/png;base64,a*b",
        "data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=",
        "data:",
    ):
        with pytest.raises(DatasetError):
            Image.from_data_url(url)
    with pytest.raises(DatasetError, match="an image may have 20,000,000 bytes"):
        Image.from_data_url("data:image/png;base64," + "A" * (2 * MOST_BYTES))


def test_a_record_has_the_hash_and_not_the_bytes() -> None:
    image = Image.read(encoded("PNG", (600, 600)), "cats/1.png")
    prompt = (
        Message("system", "Be brief."),
        Message("user", ("What is", image, "this?")),
    )
    recorded = prompt_payload(prompt, recorded=True)
    assert recorded[1][1][1] == {
        "image": image.digest,
        "media_type": "image/png",
        "source": "cats/1.png",
    }
    assert prompt_payload(prompt)[1][1][1] == {
        "image": image.digest,
        "media_type": "image/png",
    }
    again = prompt_from(recorded)
    assert prompt_payload(again, recorded=True) == recorded
    (read,) = images_of(Generate(again))
    assert (read.data, read.source, read.digest) == (b"", "cats/1.png", image.digest)
    assert prompt[1].text == "What isthis?" and prompt[1].images == (image,)
    assert "data" not in repr(image)
