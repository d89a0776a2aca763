"""Redraws an image from its pixels alone, and checks that a file is such a picture.

A picture is a PNG or a baseline JPEG that has its pixels and nothing else: no place, no camera,
no text, no colour profile, no second frame, no byte behind its end. `draw` makes one;
`is_picture` is what a file has to pass before it is shown, whoever wrote it.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from evalwright.core.images import MOST_PIXELS, Image

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels

LONGEST_EDGE_PIXELS = 1600
"""Longest edge of a picture, enough to fill a page."""
MOST_PICTURE_BYTES = 4 << 20

NO_PILLOW = (
    "Pillow, which decodes them, is not installed: pip install 'evalwright[images]'"
)
NOT_DECODED = "they could not be decoded"
TOO_LARGE = f"a picture of them has more than {MOST_PICTURE_BYTES >> 20} MiB"

_JPEG_QUALITY = 85
_LOSSLESS_BYTES = 1 << 20
"""A picture whose PNG would be larger becomes a JPEG, unless it has transparent parts."""
_PNG_LEVEL = 1
"""PNG compression level: three times as fast as the usual 6 on photos, 7% larger on screenshots."""
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
_LOSSY_WEBP = b"VP8 "
_BITS_OF_DEEP_GREY = 16
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Channels by colour type: grey, RGB, palette, grey with alpha, RGB with alpha."""
_PNG_CHUNKS = frozenset((b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"))
_JPEG_MARKERS = frozenset((0xE0, 0xDB, 0xC4, 0xC0, 0xDA, 0xDD))
"""Allowed markers: the JFIF header, tables, a baseline frame, scans and the restart interval."""
_JPEG_BASELINE_FRAME = 0xC0
_JPEG_JFIF = 0xE0
_JPEG_SCAN = 0xDA
_JFIF_BYTES = 16
_MOST_SCANS = 4
_SCAN_END = re.compile(rb"\xff[^\x00\xd0-\xd7]")


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as it is shown.

    Attributes:
        data: the file's bytes.
        suffix: "png" or "jpg".
        width: of the image as sent, in pixels.
        height: likewise.
    """

    data: bytes
    suffix: str
    width: int
    height: int

    @property
    def file(self) -> str:
        """The picture's file name."""
        return f"{hashlib.sha256(self.data).hexdigest()}.{self.suffix}"


def draw(image: Image) -> Picture | str:
    """Redraw an image upright from its pixels, or say why that is impossible.

    An animation is reduced to its first frame. Raises ImportError without Pillow.
    """
    import PIL.Image  # noqa: F401

    try:
        return _drawn(image)
    except Exception:  # a decoder may raise anything on untrusted bytes
        return NOT_DECODED


def _drawn(image: Image) -> Picture | str:
    import PIL.Image
    import PIL.ImageOps

    with PIL.Image.open(BytesIO(image.data), formats=_FORMATS) as source:
        width, height = source.size
        if (
            width * height > MOST_PIXELS
        ):  # a decoder may read another size than `Image.read` did
            return NOT_DECODED
        source.draft("RGB", (LONGEST_EDGE_PIXELS, LONGEST_EDGE_PIXELS))
        pixels = PIL.ImageOps.exif_transpose(_in_8_bits(source))
    pixels.thumbnail((LONGEST_EDGE_PIXELS, LONGEST_EDGE_PIXELS))
    is_lossy = image.data.startswith(b"\xff\xd8") or image.data[12:16] == _LOSSY_WEBP
    encoded, suffix = _written(pixels, is_lossy=is_lossy)
    if len(encoded) > MOST_PICTURE_BYTES:
        return TOO_LARGE
    return (
        Picture(encoded, suffix, width, height) if is_picture(encoded) else NOT_DECODED
    )


def _in_8_bits(source: Pixels) -> Pixels:
    """Convert the first frame to 8 bits per channel, keeping its orientation tag."""
    if source.mode.startswith("I"):  # would be clipped to white
        return (
            source.convert("I")
            .point(lambda grey: grey / (1 << (_BITS_OF_DEEP_GREY - 8)))
            .convert("L")
        )
    is_see_through = "A" in source.getbands() or "transparency" in source.info
    pixels = source.convert("RGBA" if is_see_through else "RGB")
    pixels.info["exif"] = source.info.get("exif", b"")
    return pixels


def _written(pixels: Pixels, *, is_lossy: bool) -> tuple[bytes, str]:
    """Encode a picture; returns its bytes and the file's suffix."""
    pixels.info.clear()
    if not is_lossy:
        png = BytesIO()
        pixels.save(png, "PNG", compress_level=_PNG_LEVEL)
        if png.tell() <= _LOSSLESS_BYTES or pixels.mode == "RGBA":
            return png.getvalue(), "png"
    jpeg = BytesIO()
    pixels.save(jpeg, "JPEG", quality=_JPEG_QUALITY)
    return jpeg.getvalue(), "jpg"


def is_picture(data: bytes) -> bool:
    """Tell whether these bytes are a picture as `draw` writes it.

    It has pixels only, within the allowed size, and nothing around them.
    """
    if len(data) > MOST_PICTURE_BYTES:
        return False
    if data.startswith(_PNG_SIGNATURE):
        return _is_plain_png(data)
    return data.startswith(b"\xff\xd8") and _is_plain_jpeg(data)


def media_type(data: bytes) -> str:
    """Return the media type of a picture."""
    return "image/png" if data.startswith(_PNG_SIGNATURE) else "image/jpeg"


def _is_plain_png(data: bytes) -> bool:
    head = b""
    packed = bytearray()
    offset = len(_PNG_SIGNATURE)
    chunk_type = b""
    while chunk_type != b"IEND":
        length = int.from_bytes(data[offset : offset + 4], "big")
        chunk_type = data[offset + 4 : offset + 8]
        body = data[offset + 8 : offset + 8 + length]
        checksum = data[offset + 8 + length : offset + 12 + length]
        is_whole = len(body) == length and checksum == zlib.crc32(
            chunk_type + body
        ).to_bytes(4, "big")
        if (
            chunk_type not in _PNG_CHUNKS
            or not is_whole
            or (chunk_type == b"IHDR") != (not head)
        ):
            return False
        if chunk_type == b"IHDR":
            head = body
        elif chunk_type == b"IDAT":
            packed += body
        offset += 12 + length
    return offset == len(data) and _has_pixels_of(head, bytes(packed))


def _has_pixels_of(head: bytes, packed: bytes) -> bool:
    """Tell whether the pixels of a PNG unpack to exactly the size in its header."""
    if len(head) != 13:
        return False
    width = int.from_bytes(head[:4], "big")
    height = int.from_bytes(head[4:8], "big")
    depth, colour_type, compression, filtering, interlace = head[8:13]
    if (
        not _fits(width, height)
        or colour_type not in _PNG_CHANNELS
        or depth not in (1, 2, 4, 8)
    ):
        return False
    if compression or filtering or interlace:
        return False
    row_bytes = 1 + (width * _PNG_CHANNELS[colour_type] * depth + 7) // 8
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(packed, row_bytes * height + 1)
    except zlib.error:
        return False
    return (
        len(unpacked) == row_bytes * height
        and unpacker.eof
        and not unpacker.unused_data
    )


def _is_plain_jpeg(data: bytes) -> bool:
    if not data.endswith(b"\xff\xd9"):
        return False
    end = len(data) - 2
    offset = 2
    n_frames = 0
    n_scans = 0
    while offset < end:
        if data[offset] != 0xFF or data[offset + 1] not in _JPEG_MARKERS:
            return False
        marker = data[offset + 1]
        length = int.from_bytes(data[offset + 2 : offset + 4], "big")
        if length < 2 or offset + 2 + length > end:
            return False
        if marker == _JPEG_JFIF and (
            length != _JFIF_BYTES or data[offset + 4 : offset + 9] != b"JFIF\0"
        ):
            return False
        if marker == _JPEG_BASELINE_FRAME:
            n_frames += 1
            height = int.from_bytes(data[offset + 5 : offset + 7], "big")
            width = int.from_bytes(data[offset + 7 : offset + 9], "big")
            if not _fits(width, height):
                return False
        offset += 2 + length
        if marker == _JPEG_SCAN:
            n_scans += 1
            next_marker = _SCAN_END.search(data, offset)
            if next_marker is None:
                return False
            offset = next_marker.start()
    return offset == end and n_frames == 1 and 1 <= n_scans <= _MOST_SCANS


def _fits(width: int, height: int) -> bool:
    return 1 <= width <= LONGEST_EDGE_PIXELS and 1 <= height <= LONGEST_EDGE_PIXELS
