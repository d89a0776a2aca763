"""Pictures of a run's images: what is kept of a photograph, what is not, and what a folder that somebody handed over may not do."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from evalwright import open_run
from evalwright.core.errors import RunError
from evalwright.core.images import Image
from evalwright.reports.explorer.following import Follower
from evalwright.runs import images
from evalwright.runs.images import ImageKeeper, KeptImages, draw_anew

Pictures = pytest.importorskip("PIL.Image")

SECRET = "52.5200N 13.4050E"


def sent(
    size: tuple[int, int] = (300, 200), colour: Any = "red", kind: str = "PNG", **settings: Any
) -> Image:
    out = BytesIO()
    Pictures.new("RGBA" if isinstance(colour, tuple) else "RGB", size, colour).save(out, kind, **settings)
    return Image.read(out.getvalue(), f"{colour}.{kind.lower()}")


def photograph() -> Image:
    exif = Pictures.Exif()
    exif[0x010E] = SECRET
    exif[0x0112] = 6  # lies on its side
    return sent((3000, 2000), "green", "JPEG", exif=exif, comment=SECRET)


def run_with(folder: Path, *shown: Image, **settings: Any) -> Path:
    """A run's folder with nothing in it but what images need."""
    keeper = ImageKeeper(folder, **settings)
    keeper.add(shown)
    record = keeper.finish()
    keeper.sweep()
    (folder / "run.json").write_text(json.dumps({"images": record}))
    return folder


class Handed:
    """A run as `KeptImages` reads one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = json.loads((folder / "run.json").read_text())


def kept(folder: Path) -> KeptImages:
    return KeptImages(Handed(folder))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_every_kind_is_kept_as_pixels_alone(tmp_path: Path, kind: str) -> None:
    image = sent(kind=kind)
    folder = run_with(tmp_path, image, image)
    found = kept(folder)
    data = found.read(image.digest)
    assert data is not None
    assert found.media_type(image.digest) == "image/png"
    with Pictures.open(BytesIO(data)) as shown:
        assert shown.size == (300, 200) and shown.convert("RGB").getpixel((9, 9))[0] > 240
        assert not shown.info
    assert found.said["kept"] == 1 and found.said["bytes"] == len(data)
    assert ((folder / "images" / found.entries[image.digest]["file"]).stat().st_mode & 0o077) == 0


def test_a_photograph_loses_its_place_and_stands_upright() -> None:
    picture = draw_anew(photograph())
    assert not isinstance(picture, str)
    assert SECRET.encode() not in picture.data
    assert (picture.width, picture.height) == (3000, 2000), "as sent"
    with Pictures.open(BytesIO(picture.data)) as shown:
        assert shown.height > shown.width and max(shown.size) <= images.LONGEST_EDGE_PIXELS
        assert not shown.getexif()


def test_what_is_transparent_stays_so_and_noise_becomes_a_jpeg() -> None:
    glass = draw_anew(sent(colour=(10, 20, 30, 40)))
    assert not isinstance(glass, str)
    with Pictures.open(BytesIO(glass.data)) as shown:
        assert shown.getpixel((5, 5)) == (10, 20, 30, 40)
    out = BytesIO()
    Pictures.frombytes("RGB", (1500, 1500), os.urandom(3 * 1500 * 1500)).save(out, "PNG")
    noise = draw_anew(Image.read(out.getvalue(), "noise"))
    assert (
        not isinstance(noise, str) and noise.ending == "jpg" and len(noise.data) < images.MOST_PICTURE_BYTES
    )


def test_what_cannot_be_decoded_is_counted(tmp_path: Path) -> None:
    whole = sent()
    cut = Image.read(whole.data[:60], "cut")
    bomb = Image.read(
        whole.data[:16] + b"\0\0\x1f\x40\0\0\x1f\x40" + whole.data[24:], "8000 x 8000 by its header"
    )
    found = kept(run_with(tmp_path, whole, cut, bomb))
    assert list(found.entries) == [whole.digest]
    assert found.left_out == {images.NOT_DECODED: 2}


def test_limits_of_a_run_and_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three = [sent(colour=colour) for colour in ("red", "green", "blue")]
    (tmp_path / "off").mkdir()
    found = kept(run_with(tmp_path / "off", *three, wanted=False))
    assert found.left_out == {images.TURNED_OFF: 3}
    assert not (tmp_path / "off" / "images").exists()
    monkeypatch.setattr(images, "MOST_RUN_PICTURES", 2)
    (tmp_path / "few").mkdir()
    found = kept(run_with(tmp_path / "few", *three))
    assert len(found.entries) == 2 and found.left_out == {images.TOO_MANY: 1}


def test_a_run_that_is_made_again_leaves_no_old_picture(tmp_path: Path) -> None:
    run_with(tmp_path, sent(colour="red"))
    (tmp_path / "images" / "notes.txt").write_text("a person's own")
    (tmp_path / "images" / ".x.png.1.partial").write_text("half")
    run_with(tmp_path, sent(colour="blue"))
    names = sorted(file.suffix for file in (tmp_path / "images").iterdir())
    assert names == [".jsonl", ".png", ".txt"]


def test_shards_give_what_they_kept(tmp_path: Path) -> None:
    both = sent(colour="red"), sent(colour="blue")
    for name, image in zip("ab", both, strict=True):
        (tmp_path / name).mkdir()
        run_with(tmp_path / name, image)
    (tmp_path / "whole").mkdir()
    keeper = ImageKeeper(tmp_path / "whole")
    for name in "ab":
        keeper.add_kept(kept(tmp_path / name))
    record = keeper.finish()
    assert record is not None and record["kept"] == 2
    (tmp_path / "whole" / "run.json").write_text(json.dumps({"images": record}))
    whole = kept(tmp_path / "whole")
    assert all(
        whole.read(image.digest) == kept(tmp_path / name).read(image.digest)
        for name, image in zip("ab", both, strict=True)
    )


# --- a folder that somebody handed over ------------------------------------------------------------------------------


def with_index(folder: Path, *entries: dict[str, Any]) -> Path:
    """The folder with an index of somebody's own, which `run.json` vouches for."""
    data = "".join(json.dumps(entry) + "\n" for entry in entries).encode()
    (folder / "images").mkdir(exist_ok=True)
    (folder / "images" / "index.jsonl").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    (folder / "run.json").write_text(
        json.dumps({"images": {"kept": len(entries), "bytes": 1, "index_sha256": digest}})
    )
    return folder


def entry_of(data: bytes, ending: str = "png") -> dict[str, Any]:
    digest = hashlib.sha256(data).hexdigest()
    return {"image": "a" * 64, "file": f"{digest}.{ending}", "width": 3, "height": 3}


@pytest.mark.parametrize(
    "file",
    [
        "../run.json",
        "/etc/passwd",
        "index.jsonl",
        f"{'a' * 64}.svg",
        f"{'a' * 64}.png/../x",
        f"{'a' * 63}.png",
    ],
)
def test_no_name_leads_elsewhere(tmp_path: Path, file: str) -> None:
    with pytest.raises(RunError, match="line 1 names no image"):
        kept(with_index(tmp_path, {**entry_of(b"x"), "file": file}))


def test_only_pictures_of_our_size_with_their_own_digest_are_shown(tmp_path: Path) -> None:
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    huge = sent((1700, 10)).data
    gif = sent(kind="GIF").data
    for data in (svg, huge, gif):
        folder = with_index(tmp_path, entry_of(data))
        (folder / "images" / entry_of(data)["file"]).write_bytes(data)
        assert kept(folder).read("a" * 64) is None
    right = sent((30, 30)).data
    folder = with_index(tmp_path, entry_of(right))
    file = folder / "images" / entry_of(right)["file"]
    file.write_bytes(right)
    assert kept(folder).read("a" * 64) == right
    file.write_bytes(sent((30, 30), "blue").data)
    assert kept(folder).read("a" * 64) is None
    assert kept(folder).read("../../run") is None


@pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX")
def test_no_link_is_followed_and_no_pipe_is_read(tmp_path: Path) -> None:
    right = sent((30, 30)).data
    outside = tmp_path / "outside"
    outside.mkdir()
    name = entry_of(right)["file"]
    (outside / name).write_bytes(right)
    run = tmp_path / "run"
    run.mkdir()
    file = with_index(run, entry_of(right)) / "images" / name
    file.symlink_to(outside / name)
    assert kept(run).read("a" * 64) is None
    file.unlink()
    os.mkfifo(file)
    assert kept(run).read("a" * 64) is None
    shutil.copy(run / "images" / "index.jsonl", outside)
    shutil.rmtree(run / "images")
    (run / "images").symlink_to(outside)
    with pytest.raises(RunError, match="cannot be read"):
        kept(run)
    keeper = ImageKeeper(run)
    with pytest.raises(NotADirectoryError):
        keeper.add([sent()])
        keeper.finish()


def test_a_changed_index_is_refused(tmp_path: Path) -> None:
    folder = run_with(tmp_path, sent())
    (folder / "images" / "index.jsonl").write_text("{}\n")
    with pytest.raises(RunError, match="was changed after the run"):
        kept(folder)


def test_older_runs_say_that_they_kept_none(tmp_path: Path) -> None:
    older = Path(__file__).resolve().parents[1] / "data" / "records_1"
    run = next(file.parent for file in sorted(older.rglob("run.json")))
    assert not KeptImages(open_run(run)).entries
    follower = Follower([run], "an older run")
    assert follower.part(f"image/0/{'a' * 64}", None) is None
    follower.stop()
