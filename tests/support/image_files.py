"""Image files made on the spot, with what a camera or a stranger may have put into them."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import Any

import pytest

from evalwright.core.images import Image
from evalwright.runs.images import ImageKeeper
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import is_running
from support.runs import edited

Pictures = pytest.importorskip("PIL.Image")

SECRET = b"SECRET-PLACE"
UPRIGHT_AFTER_A_QUARTER_TURN = 6
_ORIENTATION = 0x0112
_CAMERA = 0x010F
_GPS = 0x8825
_LATITUDE_REFERENCE = 1


def image_bytes(
    kind: str = "PNG",
    *,
    size: tuple[int, int] = (40, 30),
    colour: str = "red",
    mode: str = "RGB",
    **options: Any,
) -> bytes:
    """A file of one colour. kind: as Pillow names formats; options: of its writer."""
    file = BytesIO()
    Pictures.new("RGB", size, colour).convert(mode).save(file, kind, **options)
    return file.getvalue()


def noise_bytes(
    kind: str = "PNG", *, size: tuple[int, int] = (40, 30), seed: int = 0
) -> bytes:
    """A file that no format makes small."""
    import numpy as np

    pixels = np.random.default_rng(seed).integers(
        0, 256, (size[1], size[0], 3), dtype=np.uint8
    )
    file = BytesIO()
    Pictures.fromarray(pixels).save(file, kind)
    return file.getvalue()


def camera_data() -> Any:
    """EXIF with a place, a camera and a quarter turn."""
    exif = Pictures.Exif()
    exif[_ORIENTATION] = UPRIGHT_AFTER_A_QUARTER_TURN
    exif[_CAMERA] = SECRET.decode()
    exif.get_ifd(_GPS)[_LATITUDE_REFERENCE] = SECRET.decode()
    return exif


def png_bytes(*chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG of these chunks, whatever they are."""
    parts = [b"\x89PNG\r\n\x1a\n"]
    for kind, body in chunks:
        checksum = zlib.crc32(kind + body)
        parts.append(
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)
        )
    return b"".join(parts)


def png_head(
    width: int, height: int, depth: int = 8, colour_type: int = 0
) -> tuple[bytes, bytes]:
    """The chunk that says how large a PNG is."""
    return b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, 0)


def keep_images(run: Run, *images: Image, store_images: bool = True) -> Run:
    """The run with these images kept beside its record, as if its prompts had had them."""
    keeper = ImageKeeper(run.folder, keeps_images=store_images)
    keeper.add(images)
    facts = keeper.finish()
    keeper.sweep(is_running)
    with edited(run.folder) as record:
        record |= {"images": facts} if facts else {}
    return open_run(run.folder)
