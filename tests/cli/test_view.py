"""`evalwright view` and `evalwright export site`, as a person runs them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
import zlib
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from evalwright.cli import main
from support.command import start
from support.runs import make_run


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        make_run(
            tmp_path / "runs", scores=[1.0, 0.0, None], name=name, model=f"demo/{name}"
        )


@pytest.mark.parametrize(
    "words",
    [
        ("export", "site"),
        ("view", "--html", "page.html"),
        ("leaderboard", "--html", "page.html"),
    ],
)
def test_in_a_terminal_the_line_of_progress_is_cleared_and_shows_no_codes(
    words: tuple[str, ...],
) -> None:
    """On a terminal, where what clears a line is a control sequence of ours and must not be
    shown as text.
    """
    ours, theirs = os.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "evalwright", *words, "a", "b"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # what reading says once nobody holds the other end
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    assert done.wait() == 0
    assert b"Written: " in shown
    assert b"\x1b[K" in shown and b"\\x1b" not in shown


def parts_of(page: Path) -> dict[str, bytes]:
    import base64

    found = re.findall(
        r'<script type="application/x-evalwright" id="([^"]*)">([^<]*)</script>',
        page.read_text(),
    )
    return {key: base64.b64decode(text) for key, text in found}


def test_one_file_has_everything_in_the_order_in_which_it_is_needed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["view", "a", "b", "--html", "page.html", "--title", "A <b> & B"]) == 0
    assert "Written: page.html" in capsys.readouterr().err
    page = Path("page.html")
    keys = list(parts_of(page))
    assert keys[:3] == ["catalog", "run/0/index", "run/1/index"]
    assert keys[-3:] == ["run/0/block/0", "run/1/block/0", "end"]
    assert "compare/0/1" in keys
    text = page.read_text()
    assert "<title>A &lt;b&gt; &amp; B</title>" in text
    assert text.index("<script>") < text.index('id="catalog"'), (
        "the page paints before its parts are read"
    )
    assert "connect-src 'none'" in text
    assert not re.search(r"(src|href)=[\"']?https?:", text[: text.index("<script>")])
    catalog = json.loads(zlib.decompress(parts_of(page)["catalog"], -15))
    assert [run["label"] for run in catalog["runs"]] == ["demo/a", "demo/b"]
    assert len(catalog["board"]["rows"]) == 2
    assert [
        path.name for path in Path().iterdir() if path.name.startswith(".page")
    ] == []


def test_a_file_that_cannot_be_made_leaves_the_old_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("page.html").write_text("old")
    samples = Path("runs/a/samples.jsonl")
    samples.write_bytes(samples.read_bytes() + b"{broken\n")
    assert main(["view", "a", "--html", "page.html"]) == 2
    assert "line 4 is not valid JSON" in capsys.readouterr().err
    assert Path("page.html").read_text() == "old"
    assert not list(Path().glob(".page*"))
    assert main(["view", "b", "--html", "runs"]) == 2
    assert main(["view", "nothing"]) == 2
    assert "Unknown run 'nothing'" in capsys.readouterr().err
    assert main(["view", "a", "--html", "x.html", "--port", "1"]) == 2


def test_a_site_is_changed_at_once_and_keeps_what_is_not_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("site").mkdir()
    Path("site/CNAME").write_text("example.org")
    assert main(["export", "site", "a", "--out", "site"]) == 0
    [first] = Path("site").glob("evalwright-*")
    assert main(["export", "site", "a", "b", "--out", "site"]) == 0
    [data] = Path("site").glob("evalwright-*")
    assert data != first
    assert f'data-root="{data.name}/"' in Path("site/index.html").read_text()
    assert zlib.decompress((data / "run/1/block/0.bin").read_bytes(), -15).startswith(
        b"[0,1,2]\n"
    )
    assert Path("site/CNAME").read_text() == "example.org"
    Path("site/index.html").write_text("mine")
    assert main(["export", "site", "a", "--out", "site"]) == 2
    assert "is not a page of evalwright" in capsys.readouterr().err


def test_serving_ends_quietly(tmp_path: Path) -> None:
    process = start(["view", "a", "--no-browser"], tmp_path)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    with urllib.request.urlopen(f"{url}part/catalog", timeout=60) as reply:
        catalog = json.loads(zlib.decompress(reply.read(), -15))
    assert [run["name"] for run in catalog["runs"]] == ["a"]
    os.kill(process.pid, signal.SIGINT)
    try:
        out, said = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, said) == (130, "", "Ctrl-C ends it.\n")


def test_ctrl_c_in_the_middle_of_connections_ends_it(tmp_path: Path) -> None:
    process = start(["view", "a", "--no-browser"], tmp_path)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            with suppress(OSError, HTTPException):
                urllib.request.urlopen(f"{url}part/catalog", timeout=60).close()

    browsers = [threading.Thread(target=ask) for _ in range(4)]
    for browser in browsers:
        browser.start()
    try:
        with urllib.request.urlopen(url, timeout=60) as reply:
            assert reply.status == 200
        os.kill(process.pid, signal.SIGINT)
        assert process.communicate(timeout=120) == ("", "Ctrl-C ends it.\n")
        assert process.returncode == 130
    finally:
        ended.set()
        process.kill()
        process.wait()
        for browser in browsers:
            browser.join()


def test_a_site_into_a_link_stays_within_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "work" / "inside").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    Path("in").symlink_to("inside")
    Path("out").symlink_to(tmp_path / "outside")
    run = str(tmp_path / "runs" / "a")
    for _ in range(2):  # the second time it is ours already
        assert main(["export", "site", run, "--out", "in"]) == 0
    assert sorted(path.name for path in Path("inside").iterdir())[1:] == ["index.html"]
    assert Path("in").is_symlink()
    capsys.readouterr()
    assert main(["export", "site", run, "--out", "out"]) == 2
    assert "a link leads to" in capsys.readouterr().err
    assert list((tmp_path / "outside").iterdir()) == []
    assert main(["export", "site", run, "--out", str(tmp_path / "outside")]) == 0, (
        "as it is told to do"
    )
