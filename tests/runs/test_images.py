"""The images of a run beside its record: what is kept, what is said where it is not, and what a
run folder of others may not.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.images import Image
from evalwright.runs import images
from evalwright.runs.images import (
    ImageKeeper,
    KeptImages,
    image_faults,
    images_sentence,
)
from evalwright.runs.pictures import NO_PILLOW
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RunWriter, is_running
from support.image_files import image_bytes, keep_images, noise_bytes
from support.runs import edited, make_run


def image_of(colour: str = "red", **options: Any) -> Image:
    return Image.read(image_bytes(colour=colour, **options), f"{colour}.png")


RED = image_of("red")
BLUE = image_of("blue")
GREEN = image_of("green")


def run_with(folder: Path, *kept: Image, wanted: bool = True, name: str = "a") -> Run:
    """A finished run whose prompts had these images."""
    return keep_images(
        make_run(folder, scores=[1], name=name), *kept, store_images=wanted
    )


def only_picture(run: Run) -> Path:
    (picture,) = [
        file for file in (run.folder / "images").iterdir() if file.suffix == ".png"
    ]
    return picture


def test_an_image_is_kept_once_under_the_digest_of_its_picture(tmp_path: Path) -> None:
    run = run_with(tmp_path, RED, BLUE, RED)
    kept_images = KeptImages(run)
    assert {*kept_images.entries} == {
        RED.digest,
        BLUE.digest,
    } and not kept_images.problem
    for image in (RED, BLUE):
        picture = kept_images.read(image.digest)
        assert picture is not None
        assert (
            kept_images.entries[image.digest]["file"]
            == f"{hashlib.sha256(picture).hexdigest()}.png"
        )
        assert kept_images.entries[image.digest]["width"] == 40
    assert kept_images.read("0" * 64) is None
    assert images_sentence(run) == "2 kept in images/"
    assert image_faults(run) == ({}, [])
    if os.name == "posix" and not os.environ.get("EVALWRIGHT_SHARED"):
        assert {
            file.stat().st_mode & 0o077 for file in (run.folder / "images").iterdir()
        } == {0}


def test_a_run_without_images_has_no_folder_and_says_nothing(tmp_path: Path) -> None:
    run = run_with(tmp_path)
    assert "images" not in run.data and not (run.folder / "images").exists()
    assert images_sentence(run) == ""
    assert KeptImages(run).why_missing == "not kept by that version"


def test_store_images_false_keeps_nothing_and_says_so(tmp_path: Path) -> None:
    run = run_with(tmp_path, RED, BLUE, wanted=False)
    assert not (run.folder / "images").exists()
    assert run.data["images"] == {
        "kept": 0,
        "bytes": 0,
        "left_out": {"store_images is false": 2},
    }
    assert KeptImages(run).why_missing == "store_images is false"


def test_beyond_the_limits_of_a_run_images_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "MOST_RUN_PICTURES", 1)
    run = run_with(tmp_path, RED, BLUE, GREEN)
    assert (
        run.data["images"]["kept"] == 1
        and sum(run.data["images"]["left_out"].values()) == 2
    )
    monkeypatch.setattr(images, "MOST_RUN_PICTURES", 100)
    noise = [Image.read(noise_bytes(seed=seed), "noise") for seed in range(3)]
    monkeypatch.setattr(images, "MOST_RUN_BYTES", 3 * len(noise[0].data) // 2)
    run = run_with(tmp_path, *noise, name="b")
    assert run.data["images"]["bytes"] <= images.MOST_RUN_BYTES
    assert images_sentence(run).startswith(
        "1 kept in images/, 2 not kept (2: a run keeps at most"
    )


def test_without_pillow_nothing_is_kept_and_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shades = [image_bytes(size=(1 + shade, 1)) for shade in range(100)]
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    run = run_with(tmp_path, RED)
    assert not (run.folder / "images").exists()
    assert "pip install 'evalwright[images]'" in KeptImages(run).why_missing

    async def bring_many() -> ImageKeeper:
        keeper = ImageKeeper(tmp_path)
        keeper.add(Image.read(shades[shade], "a shade") for shade in range(100))
        await keeper.has_room()
        return keeper

    facts = asyncio.run(bring_many()).finish()
    assert facts is not None and facts["left_out"] == {NO_PILLOW: 100}


def test_images_that_wait_are_few_while_all_else_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who brings images faster than they are drawn waits without holding up anything, and may be
    cancelled.
    """
    may_go = threading.Event()

    def slow(image: Image) -> str:
        may_go.wait(30)
        return "slow"

    monkeypatch.setattr(images, "draw", slow)
    monkeypatch.setattr(images, "_MOST_WAITING", 4)
    keeper = ImageKeeper(tmp_path)
    waiting: list[int] = []

    async def bring(first: int) -> None:
        for shade in range(first, first + 10):
            keeper.add([Image.read(image_bytes(size=(1 + shade, 1)), "a shade")])
            waiting.append(len(keeper._waiting))
            await keeper.has_room()

    async def steps() -> None:
        cancelled = asyncio.create_task(bring(100))
        bringing = asyncio.create_task(bring(0))
        for _ in range(20):
            await asyncio.sleep(0.01)  # the loop turns although no image is drawn
        assert max(waiting) <= 6 and not bringing.done()
        cancelled.cancel()
        may_go.set()
        await bringing

    asyncio.run(steps())
    assert max(waiting) <= 6
    facts = keeper.finish()
    assert facts is not None and facts["left_out"]["slow"] == len(keeper._seen) >= 10
    assert not (tmp_path / "images").exists()


def test_images_that_were_not_begun_are_dropped_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Image] = []
    may_go = threading.Event()

    def slow(image: Image) -> str:
        may_go.wait(30)
        drawn.append(image)
        return "slow"

    monkeypatch.setattr(images, "draw", slow)
    keeper = ImageKeeper(tmp_path)
    keeper.add(
        Image.read(image_bytes(size=(1 + shade, 1)), "a shade") for shade in range(20)
    )
    threading.Timer(0.2, may_go.set).start()
    keeper.close()
    assert len(drawn) <= 2


def test_a_replaced_run_leaves_no_picture_behind(tmp_path: Path) -> None:
    first = run_with(tmp_path, RED, BLUE)
    assert len(KeptImages(first).entries) == 2
    folder = first.folder / "images"
    dead = folder / ".00.png.99999999.partial"
    alive = folder / f".00.png.{os.getppid()}.partial"
    for file in (dead, alive, folder / "notes.txt"):
        file.write_text("x")
    keeper = ImageKeeper(first.folder)
    keeper.add([GREEN])
    keeper.finish()
    keeper.sweep(is_running)
    left = {file.name for file in folder.iterdir()}
    assert dead.name not in left and {alive.name, "notes.txt", "index.jsonl"} < left
    assert len([name for name in left if name.endswith(".png")]) == 1


def test_the_writer_takes_the_place_of_what_the_source_had_kept(tmp_path: Path) -> None:
    """A run that is made from another one's record does not claim that one's images."""
    source = run_with(tmp_path, RED, name="source")
    with RunWriter(tmp_path / "without") as writer:
        writer.finish(source.data)
    assert "images" not in open_run(tmp_path / "without").data
    with RunWriter(tmp_path / "with") as writer:
        writer.keep_images_of(source)
        writer.finish(source.data)
    copy = open_run(tmp_path / "with")
    assert (
        KeptImages(copy).read(RED.digest)
        == KeptImages(source).read(RED.digest)
        is not None
    )


# -- run folders of others
# -------------------------------------------------------------------------------------------------


def rewrite_index(run: Run, *entries: object) -> Run:
    """Another index, with the digest that `run.json` then says of it, as its author could."""
    index = "".join(json.dumps(entry) + "\n" for entry in entries).encode()
    (run.folder / "images").mkdir(exist_ok=True)
    (run.folder / "images" / "index.jsonl").write_bytes(index)
    with edited(run.folder) as record:
        record["images"] = {
            "kept": len(entries),
            "bytes": 1,
            "index_sha256": hashlib.sha256(index).hexdigest(),
        }
    return open_run(run.folder)


@pytest.mark.parametrize(
    "file",
    [
        "../run.json",
        "/etc/passwd",
        "..",
        f"../{'0' * 64}.png",
        f"sub/{'0' * 64}.png",
        f"{'0' * 64}.svg",
        f"{'0' * 64}.png\0",
        f"{'0' * 64}.png\n",
        f"{'0' * 63}/.png",
        "C:\\secret.png",
        7,
        None,
        ["a"],
    ],
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, file: object) -> None:
    run = rewrite_index(
        run_with(tmp_path, RED),
        {"image": RED.digest, "file": file, "width": 1, "height": 1},
    )
    kept_images = KeptImages(run)
    assert not kept_images.entries and kept_images.read(RED.digest) is None
    assert "line 1 names no image" in kept_images.why_missing


@pytest.mark.parametrize(
    "entry",
    [[], "text", {"image": 1}, {"image": "0" * 64, "file": f"{'0' * 64}.png"}, 10**400],
)
def test_an_index_of_something_else_is_no_index(tmp_path: Path, entry: object) -> None:
    kept_images = KeptImages(rewrite_index(run_with(tmp_path, RED), entry))
    assert not kept_images.entries and kept_images.problem


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    run = run_with(tmp_path, RED)
    picture = only_picture(run)
    elsewhere = tmp_path / "elsewhere.png"
    picture.replace(elsewhere)
    picture.symlink_to(elsewhere)
    assert KeptImages(run).read(RED.digest) is None
    picture.unlink()
    os.link(elsewhere, picture)
    assert KeptImages(run).read(RED.digest) is not None
    (run.folder / "images").replace(tmp_path / "moved")
    (run.folder / "images").symlink_to(tmp_path / "moved")
    kept_images = KeptImages(run)
    assert not kept_images.entries and kept_images.read(RED.digest) is None


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[1], name="a")
    target = tmp_path / "target"
    target.mkdir()
    (run.folder / "images").symlink_to(target)
    keeper = ImageKeeper(run.folder)
    with pytest.raises(OSError, match="is a link"):
        keeper.add([RED])
        keeper.finish()
    keeper.sweep(is_running)
    assert not list(target.iterdir())


def test_a_pipe_and_a_device_do_not_hold_it_up(tmp_path: Path) -> None:
    run = run_with(tmp_path, RED)
    picture = only_picture(run)
    picture.unlink()
    os.mkfifo(picture)
    assert KeptImages(run).read(RED.digest) is None
    index = run.folder / "images" / "index.jsonl"
    index.unlink()
    os.mkfifo(index)
    assert not KeptImages(run).entries


def test_bytes_that_are_not_those_of_the_name_are_not_shown(tmp_path: Path) -> None:
    run = run_with(tmp_path, RED)
    picture = only_picture(run)
    picture.write_bytes(image_bytes(colour="blue"))
    assert KeptImages(run).read(RED.digest) is None
    assert image_faults(run) == (
        {RED.digest[:16]: "its file is missing or was changed"},
        [],
    )
    picture.unlink()
    assert KeptImages(run).read(RED.digest) is None


@pytest.mark.parametrize(
    "content",
    [
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
        b"<!doctype html><script>alert(1)</script>",
        image_bytes("GIF"),
        image_bytes("PNG", size=(3000, 10)),
        image_bytes("PNG") + b"<script>alert(1)</script>",
    ],
    ids=["svg", "page", "gif", "large", "behind"],
)
def test_what_this_program_would_not_have_written_is_not_shown(
    tmp_path: Path, content: bytes
) -> None:
    """Whoever makes the folder can make the digests fit; the file must be a picture all the
    same.
    """
    run = run_with(tmp_path, RED)
    name = f"{hashlib.sha256(content).hexdigest()}.png"
    (run.folder / "images" / name).write_bytes(content)
    run = rewrite_index(
        run, {"image": RED.digest, "file": name, "width": 40, "height": 30}
    )
    assert KeptImages(run).entries and KeptImages(run).read(RED.digest) is None


def test_an_index_that_was_changed_or_left_behind_is_said(tmp_path: Path) -> None:
    run = run_with(tmp_path, RED)
    index = run.folder / "images" / "index.jsonl"
    index.write_bytes(index.read_bytes() + b" ")
    assert KeptImages(run).why_missing == "images/index.jsonl was changed after the run"
    assert image_faults(run)[0]
    index.unlink()
    assert "copied without them" in KeptImages(run).why_missing
    assert image_faults(run) == ({}, [f"Its images: {KeptImages(run).why_missing}."])


@pytest.mark.parametrize(
    "record",
    [None, [], "x", {}, {"kept": -1}, {"kept": "many"}, {"kept": 2, "index_sha256": [1]}, {"left_out": [3]},
     {"left_out": {"\x1b[31m" + "y" * 9999: 3, "z": True, "w": -3}}],
)  # fmt: skip
def test_a_record_of_something_else_is_read_without_a_fault(
    tmp_path: Path, record: object
) -> None:
    sound = make_run(tmp_path, scores=[1], name="a")
    run = Run(sound.folder, {**sound.data, "images": record})
    kept_images = KeptImages(run)
    assert not kept_images.entries and kept_images.why_missing
    assert "\x1b" not in images_sentence(run) and len(images_sentence(run)) < 1000
    image_faults(run)
