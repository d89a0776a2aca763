"""Pictures: the pixels of an image and nothing else, and the check that no other file passes."""

from __future__ import annotations

import random
import zlib
from io import BytesIO

import pytest

from evalwright.core.images import Image
from evalwright.runs import pictures
from evalwright.runs.pictures import (
    LONGEST_EDGE_PIXELS,
    NOT_DECODED,
    Picture,
    draw,
    is_picture,
    media_type,
)
from support.image_files import (
    SECRET,
    Pictures,
    camera_data,
    image_bytes,
    noise_bytes,
    png_bytes,
    png_head,
)


def picture_of(file: bytes) -> Picture:
    picture = draw(Image.read(file, "a file"))
    assert isinstance(picture, Picture), picture
    return picture


def pixels_of(picture: Picture) -> tuple[str, tuple[int, int], tuple[int, ...]]:
    """Format, size and the colour in the middle."""
    with Pictures.open(BytesIO(picture.data)) as decoded:
        size = decoded.size
        colour = decoded.convert("RGBA").getpixel((size[0] // 2, size[1] // 2))
        return decoded.format, size, colour


RED = (255, 0, 0, 255)


@pytest.mark.parametrize(
    "file",
    [
        image_bytes("PNG"),
        image_bytes("PNG", mode="RGBA"),
        image_bytes("PNG", mode="P"),
        image_bytes("GIF"),
        image_bytes("WEBP", lossless=True),
        image_bytes("WEBP"),
        image_bytes("JPEG"),
        image_bytes("JPEG", progressive=True),
        image_bytes("JPEG", mode="CMYK"),
    ],
    ids=[
        "png",
        "see-through",
        "palette",
        "gif",
        "webp-lossless",
        "webp",
        "jpeg",
        "progressive",
        "cmyk",
    ],
)
def test_every_format_that_models_take_becomes_a_png_or_a_jpeg(file: bytes) -> None:
    picture = picture_of(file)
    kind, size, colour = pixels_of(picture)
    assert (
        kind in ("PNG", "JPEG") and media_type(picture.data) == f"image/{kind.lower()}"
    )
    assert size == (40, 30) == (picture.width, picture.height)
    assert all(abs(seen - meant) <= 12 for seen, meant in zip(colour, RED, strict=True))
    assert is_picture(picture.data)


@pytest.mark.parametrize(
    "file",
    [
        image_bytes("JPEG", exif=camera_data(), comment=SECRET),
        image_bytes("JPEG", icc_profile=SECRET * 20),
        image_bytes(
            "WEBP", exif=camera_data(), xmp=b"<x:xmpmeta>" + SECRET + b"</x:xmpmeta>"
        ),
        image_bytes("PNG", exif=camera_data(), dpi=(300, 300)),
        image_bytes("GIF", comment=SECRET),
    ],
    ids=["exif", "profile", "xmp", "png", "gif"],
)
def test_what_a_camera_or_a_person_wrote_into_it_is_gone(file: bytes) -> None:
    assert SECRET in file or b"pHYs" in file
    picture = picture_of(file)
    assert SECRET not in picture.data and b"Exif" not in picture.data
    with Pictures.open(BytesIO(picture.data)) as decoded:
        assert not decoded.getexif()
        assert {*decoded.info} <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


def test_text_chunks_are_gone() -> None:
    from PIL.PngImagePlugin import PngInfo

    texts = PngInfo()
    texts.add_text("Author", SECRET.decode())
    texts.add_itxt("Place", SECRET.decode(), zip=True)
    file = image_bytes("PNG", pnginfo=texts)
    assert SECRET in file and not is_picture(file)
    assert SECRET not in picture_of(file).data


def test_a_photograph_stands_as_its_camera_was_held() -> None:
    assert pixels_of(picture_of(image_bytes("JPEG", exif=camera_data())))[1] == (30, 40)


def test_of_one_that_moves_the_first_frame_is_kept() -> None:
    second = Pictures.new("RGB", (40, 30), "blue")
    for kind in ("GIF", "PNG", "WEBP"):
        moving = image_bytes(kind, save_all=True, append_images=[second])
        colour = pixels_of(picture_of(moving))[2]
        assert all(
            abs(seen - meant) <= 12 for seen, meant in zip(colour, RED, strict=True)
        )
        assert not is_picture(moving)


def test_a_large_one_is_made_smaller_and_says_its_size() -> None:
    picture = picture_of(image_bytes("PNG", size=(4000, 1000)))
    assert pixels_of(picture)[1] == (LONGEST_EDGE_PIXELS, 400)
    assert (picture.width, picture.height) == (4000, 1000)


def test_deep_grey_keeps_its_shades() -> None:
    file = BytesIO()
    Pictures.new("I;16", (20, 20), 0x8000).save(file, "PNG")
    assert pixels_of(picture_of(file.getvalue()))[2][0] == 0x80


def test_noise_becomes_a_jpeg_and_one_too_large_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image = Image.read(noise_bytes(size=(700, 700)), "noise")
    picture = draw(image)
    assert isinstance(picture, Picture) and picture.suffix == "jpg"
    monkeypatch.setattr(pictures, "MOST_PICTURE_BYTES", 1000)
    assert draw(image) == pictures.TOO_LARGE


def test_what_cannot_be_decoded_is_no_picture() -> None:
    cut = image_bytes("JPEG", size=(300, 300))[:400]
    assert draw(Image.read(cut, "cut")) == NOT_DECODED
    # The header of a GIF names its screen, and a frame may be larger.
    frame = (
        b"GIF89a"
        + b"\1\0\1\0\x80\0\0"
        + b"\0" * 6
        + b"\x2c\0\0\0\0\xff\xff\xff\xff\0"
        + b"\2\2\x44\1\0;"
    )
    assert draw(Image.read(frame, "a frame of 65,535 x 65,535")) == NOT_DECODED
    bomb = png_bytes(
        png_head(8000, 8000),
        (b"iCCP", b"x\0\0" + zlib.compress(bytes(50_000_000))),
        (b"IEND", b""),
    )
    assert draw(Image.read(bomb, "a profile that unpacks to 50 MB")) == NOT_DECODED


GREY_ROW = b"\0" + bytes(4)


@pytest.mark.parametrize(
    ("why", "file"),
    [
        ("svg", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"),
        ("a page", b"<!doctype html><script>alert(1)</script>"),
        ("a gif", image_bytes("GIF")),
        ("webp", image_bytes("WEBP")),
        ("empty", b""),
        ("a page behind a png", image_bytes("PNG") + b"<script>alert(1)</script>"),
        ("an archive behind a jpeg", image_bytes("JPEG") + b"PK\3\4" + b"\xff\xd9"),
        ("exif in a jpeg", image_bytes("JPEG", exif=camera_data())),
        ("a comment in a jpeg", image_bytes("JPEG", comment=SECRET)),
        ("scans that repeat", image_bytes("JPEG", progressive=True)),
        ("dimensions of a PNG", image_bytes("PNG", dpi=(72, 72))),
        ("too many pixels", image_bytes("PNG", size=(LONGEST_EDGE_PIXELS + 1, 1))),
        ("pixels that are not there", png_bytes(png_head(1600, 1600), (b"IDAT", zlib.compress(b"\0")), (b"IEND", b""))),
        ("more pixels than it says", png_bytes(png_head(4, 1), (b"IDAT", zlib.compress(bytes(10**8))), (b"IEND", b""))),
        ("16 bits", png_bytes(png_head(1, 1, depth=16), (b"IDAT", zlib.compress(b"\0\0\0")), (b"IEND", b""))),
        ("two heads", png_bytes(png_head(4, 1), png_head(4, 1), (b"IDAT", zlib.compress(GREY_ROW)), (b"IEND", b""))),
        ("no head", png_bytes((b"IDAT", zlib.compress(GREY_ROW)), (b"IEND", b""))),
        ("a chunk of text", png_bytes(png_head(4, 1), (b"tEXt", SECRET), (b"IDAT", zlib.compress(GREY_ROW)), (b"IEND", b""))),
        ("a wrong checksum", png_bytes(png_head(4, 1), (b"IDAT", zlib.compress(GREY_ROW)), (b"IEND", b""))[:-1] + b"\0"),
    ],
)  # fmt: skip
def test_nothing_else_is_a_picture(why: str, file: bytes) -> None:
    assert not is_picture(file), why


def test_a_plain_png_is_one() -> None:
    """What the refusals above are told from."""
    assert is_picture(
        png_bytes(png_head(4, 1), (b"IDAT", zlib.compress(GREY_ROW)), (b"IEND", b""))
    )


def test_no_bytes_make_the_check_fail() -> None:
    random_bytes = random.Random(31)
    files = [picture_of(image_bytes(kind)).data for kind in ("PNG", "JPEG")]
    for file in files:
        for _ in range(2000):
            changed = bytearray(file)
            for _ in range(random_bytes.randint(1, 5)):
                changed[random_bytes.randrange(len(changed))] = random_bytes.randrange(
                    256
                )
            is_picture(bytes(changed[: random_bytes.randrange(len(changed) + 1)]))
