"""The images of prompts in the explorer, in a real browser: shown from pictures that a run kept,
and why not where it has none.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from evalwright.core.images import Image
from evalwright.reports.explorer.following import Follower
from evalwright.reports.explorer.page import (
    WITHOUT_IMAGES,
    page_policy,
    write_page,
    write_site,
)
from evalwright.reports.explorer.server import Server
from evalwright.runs.images import KeptImages
from evalwright.runs.reader import Run, open_run
from support.browser import IN_BROWSER, Tab, in_new_tab, until
from support.image_files import SECRET, camera_data, image_bytes, keep_images
from support.runs import edited, make_run, rewrite

pytestmark = IN_BROWSER

PHOTOGRAPH = Image.read(
    image_bytes("JPEG", size=(600, 400), exif=camera_data()), "a photograph.jpg"
)
WIDE = Image.read(image_bytes(size=(3000, 300), colour="blue"), "wide.png")
LOST = Image.read(image_bytes(colour="green"), "lost.png")
IMAGES = "[...document.querySelectorAll('main .picture img')]"
SIZES = f"{IMAGES}.filter(i => i.complete && i.naturalWidth).map(i => [i.naturalWidth, i.naturalHeight])"
NOTES = "[...document.querySelectorAll('main .messages .note')].map(e => e.innerText)"
WIDTHS = (1440, 390)


def run_with_images(folder: Path, name: str = "seen", *, kept: bool = True) -> Run:
    """Three samples: a photograph, a wide image, and both with one that is not kept between
    them.
    """
    prompts = [[PHOTOGRAPH], [WIDE], [WIDE, LOST, PHOTOGRAPH]]

    def change(row: dict[str, Any], place: int) -> None:
        row["prompt"] = [
            ["user", [*(image.named(True) for image in prompts[place]), "What is it?"]]
        ]

    run = rewrite(make_run(folder, scores=[1, 0, 1], name=name), change)
    return keep_images(run, PHOTOGRAPH, WIDE) if kept else run


def see(
    folder: Path, page: str, steps: Callable[[Tab], Coroutine[Any, Any, None]]
) -> None:
    """Do some steps on a page that may say nothing wrong."""

    async def opened(tab: Tab) -> None:
        await tab.open(page)
        await steps(tab)
        kinds = (
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
        )
        assert not [event for event in tab.events if event[0] in kinds]

    in_new_tab(opened)


async def go(tab: Tab, place: int, name: str = "seen") -> None:
    """To a sample of a run."""
    await tab.evaluate(f"location.hash = '#/run/{name}/sample/factual/item-{place}/0'")
    await until(tab, f"document.querySelector('main h1')?.innerText === 'item-{place}'")


async def see_all_images(tab: Tab) -> None:
    """The samples one after the other, each with its own images."""
    await go(tab, 0)
    # as the camera was held
    assert await until(tab, f"(s => s.length === 1 && s)({SIZES})") == [[400, 600]]
    await go(tab, 1)
    await until(
        tab, f"{IMAGES}[0]?.alt.endsWith('wide.png') && {SIZES}[0]?.[0] === 1600"
    )
    await go(tab, 2)
    assert await until(tab, f"(s => s.length === 2 && s)({SIZES})") == [
        [1600, 160],
        [400, 600],
    ]
    notes = await until(tab, f"(n => n.length === 1 && n)({NOTES})")
    assert (
        notes[0]
        == "Image lost.png (image/png), not shown: their files are missing or were changed."
    )


async def see_it_fit(tab: Tab) -> None:
    """Neither a phone nor a wide screen scrolls sideways, in both themes."""
    for width in WIDTHS:
        for theme in ("light", "dark"):
            await tab.send(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=900,
                deviceScaleFactor=1,
                mobile=width < 500,
            )
            await tab.send(
                "Emulation.setEmulatedMedia",
                features=[{"name": "prefers-color-scheme", "value": theme}],
            )
            await go(tab, 2)
            await until(tab, f"{SIZES}.length === 2")
            assert await tab.evaluate(
                "document.documentElement.scrollWidth <= innerWidth"
            )
            assert await tab.evaluate(
                f"{IMAGES}.every(i => i.width <= innerWidth && i.width >= 100)"
            )


def test_a_page_of_one_file_has_images_only_where_they_were_asked_for(
    tmp_path: Path,
) -> None:
    run = run_with_images(tmp_path)
    pictures = [
        base64.b64encode(KeptImages(run.folder, run.data).read(image.digest) or b"")
        for image in (PHOTOGRAPH, WIDE)
    ]
    page = tmp_path / "page.html"
    write_page([run], page, title="Seen", progress=lambda _: None)
    assert not any(picture in page.read_bytes() for picture in pictures)

    async def without(tab: Tab) -> None:
        await go(tab, 2)
        notes = await until(tab, f"(n => n.length === 3 && n)({NOTES})")
        assert notes[0] == f"Image wide.png (image/png), not shown: {WITHOUT_IMAGES}."
        assert await tab.evaluate(f"{IMAGES}.length") == 0

    see(tmp_path / "first", page.as_uri(), without)
    write_page([run], page, title="Seen", progress=lambda _: None, with_images=True)
    content = page.read_bytes()
    assert all(picture in content for picture in pictures)
    assert (
        SECRET not in content and base64.b64encode(PHOTOGRAPH.data)[:400] not in content
    )

    async def shown(tab: Tab) -> None:
        await see_all_images(tab)
        await see_it_fit(tab)

    see(tmp_path / "second", page.as_uri(), shown)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Any web server, over a folder."""

    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Silent, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def test_a_site_has_images_only_where_they_were_asked_for(tmp_path: Path) -> None:
    run = run_with_images(tmp_path)
    site = tmp_path / "site"
    write_site([run], site, title="Seen", progress=lambda _: None)
    assert not list(site.rglob("image/*"))
    write_site([run], site, title="Seen", progress=lambda _: None, with_images=True)
    assert len(list(site.rglob("image/*/*.bin"))) == 2

    async def steps(tab: Tab) -> None:
        await go(tab, 0)
        await until(tab, f"{SIZES}.length === 1")

    with serving(site) as address:
        see(tmp_path, address, steps)


@contextmanager
def viewing(*folders: Path) -> Iterator[Server]:
    follower = Follower(folders, "Runs")
    server = Server(follower)
    follower.start()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        follower.stop()


def test_the_page_that_is_served_shows_what_is_kept_and_says_what_older_runs_did_not(
    tmp_path: Path,
) -> None:
    run = run_with_images(tmp_path)
    older = run_with_images(tmp_path, "older", kept=False)

    async def steps(tab: Tab) -> None:
        await see_all_images(tab)
        await go(tab, 0, "older")
        notes = await until(tab, f"(n => n.length === 1 && n)({NOTES})")
        assert notes == [
            "Image a photograph.jpg (image/jpeg), not shown: not kept by that version."
        ]
        await tab.evaluate("location.hash = '#/run/seen'")
        await until(
            tab,
            "document.querySelector('main').innerText.includes('2 kept in images/')",
        )

    with viewing(run.folder, older.folder) as server:
        see(tmp_path, server.url, steps)


def test_the_server_gives_pictures_alone(tmp_path: Path) -> None:
    """As bytes that no browser takes for a page, and none but those that the run kept."""
    run = run_with_images(tmp_path)
    with viewing(run.folder) as server:
        with urlopen(f"{server.url}part/image/0/{PHOTOGRAPH.digest}") as reply:
            assert reply.read().startswith(b"\xff\xd8")
            assert reply.headers["Content-Type"] == "application/octet-stream"
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
        for name in (
            LOST.digest,
            "0" * 64,
            "run",
        ):  # no error in the console, and nothing to see
            with urlopen(f"{server.url}part/image/0/{name}") as reply:
                assert reply.read() == b""
        for name in ("..", "0/1", f"{PHOTOGRAPH.digest}/x", "../../run.json"):
            with pytest.raises(OSError, match="404"):
                urlopen(f"{server.url}part/image/0/{name}")
        with pytest.raises(OSError, match="404"):
            urlopen(f"{server.url}part/image/1/{PHOTOGRAPH.digest}")
    for source in ("embedded", "fetched", "live"):
        policy = page_policy(source)
        assert "img-src data: blob:;" in policy and "unsafe" not in policy


def test_a_run_folder_of_others_shows_nothing_but_pictures(tmp_path: Path) -> None:
    """An SVG, a page and a file elsewhere, under digests and in an index that fit: none is
    shown, none is sent to the browser.
    """
    run = run_with_images(tmp_path)
    (tmp_path / "secret.png").write_bytes(image_bytes())
    svg = b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><script>alert(1)</script></svg>"
    digest = hashlib.sha256(svg).hexdigest()
    (run.folder / "images" / f"{digest}.png").write_bytes(svg)
    link = hashlib.sha256(image_bytes()).hexdigest()
    (run.folder / "images" / f"{link}.png").symlink_to(tmp_path / "secret.png")
    entries = [
        {"image": image.digest, "file": f"{name}.png", "width": 9, "height": 9}
        for image, name in ((PHOTOGRAPH, digest), (WIDE, link))
    ]
    index = "".join(json.dumps(entry) + "\n" for entry in entries).encode()
    (run.folder / "images" / "index.jsonl").write_bytes(index)
    with edited(run.folder) as record:
        record["images"] = {
            "kept": 2,
            "bytes": 2,
            "index_sha256": hashlib.sha256(index).hexdigest(),
        }
    page = tmp_path / "page.html"
    write_page(
        [open_run(run.folder)],
        page,
        title="x",
        progress=lambda _: None,
        with_images=True,
    )
    assert base64.b64encode(svg) not in page.read_bytes()

    async def steps(tab: Tab) -> None:
        await go(tab, 2)
        notes = await until(tab, f"(n => n.length === 3 && n)({NOTES})")
        assert all("their files are missing or were changed" in note for note in notes)
        await asyncio.sleep(0.2)
        assert await tab.evaluate("document.images.length") == 0

    see(tmp_path / "a", page.as_uri(), steps)


def test_a_hostile_name_is_text(tmp_path: Path) -> None:
    """Where an image is from is what a row said: it is read, and does nothing."""
    source = "<img src=x onerror=alert(1)>\u202egnp.exe" + "x" * 5000
    named = {**PHOTOGRAPH.named(), "source": source}
    run = rewrite(
        make_run(tmp_path, scores=[1], name="seen"),
        lambda row, place: row.update(prompt=[["user", [named]]]),
    )
    run = keep_images(run, PHOTOGRAPH)
    page = tmp_path / "page.html"
    write_page([run], page, title="x", progress=lambda _: None, with_images=True)

    async def steps(tab: Tab) -> None:
        await tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=390,
            height=800,
            deviceScaleFactor=1,
            mobile=True,
        )
        await go(tab, 0)
        await until(tab, f"{SIZES}.length === 1")
        assert await tab.evaluate("document.images.length") == 1
        assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (
            await tab.evaluate(
                "document.querySelectorAll('figcaption .special').length"
            )
            == 1
        )
        assert await tab.evaluate("document.images[0].alt.length") < 1000

    see(tmp_path, page.as_uri(), steps)
