"""The page to label on, in a real browser: clicks and keys become a table, no text acts, nobody
is asked anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from evalwright.analysis.judge_validation.drawing import SheetRow
from evalwright.analysis.judge_validation.labels import read_label_files
from evalwright.reports.labelling import label_html
from support.browser import IN_BROWSER, Tab, in_new_tab
from support.hostile import HOSTILE

pytestmark = IN_BROWSER

TEXT = "document.getElementById('text').value"
SHOWN = "[...document.querySelectorAll('article')].filter(a => !a.hidden).map(a => a.dataset.row)"
Steps = Callable[[Tab, str], Coroutine[Any, Any, None]]


def rows(texts: Sequence[str]) -> list[SheetRow]:
    return [
        SheetRow(f"s0000000a-{i + 1}", "asked", text, "0", text, text, text, text, text)
        for i, text in enumerate(texts)
    ]


def in_browser(tmp_path: Path, html: str, steps: Steps) -> None:
    page = tmp_path / "page.html"
    page.write_text(html, encoding="utf-8")

    in_new_tab(lambda tab: steps(tab, page.as_uri()))


def troubles(tab: Tab) -> list[Any]:
    bad = (
        "Runtime.exceptionThrown",
        "Log.entryAdded",
        "Network.loadingFailed",
        "Page.javascriptDialogOpening",
    )
    return [parameters for method, parameters in tab.events if method in bad]


async def downloaded(tab: Tab, folder: Path) -> Path:
    await tab.send(
        "Browser.setDownloadBehavior",
        behavior="allow",
        downloadPath=str(folder),
        **tab.person,
    )
    await tab.evaluate("document.getElementById('download').click()")
    for _ in range(600):
        found = list(folder.glob("*.csv"))
        if found:
            return found[0]
        await asyncio.sleep(0.1)
    raise AssertionError("nothing was downloaded")


def test_clicks_and_keys_become_a_table(tmp_path: Path) -> None:
    (tmp_path / "got").mkdir()

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        assert await tab.evaluate(SHOWN) == ["s0000000a-1"]
        await tab.evaluate("document.getElementById('labeller').focus()")
        for key in "=Zoë 1":
            await tab.press(key, ord(key.upper()), key)
        await tab.evaluate("document.activeElement.blur()")
        await tab.evaluate(
            "document.querySelector('article:not([hidden]) button[data-value=\"1\"]').click()"
        )
        assert await tab.evaluate(SHOWN) == ["s0000000a-2"]
        await tab.press("0", 48, "0")
        await tab.press("x", 88, "x")
        await tab.press("ArrowLeft", 37)
        await tab.press("ArrowLeft", 37)
        assert await tab.evaluate(SHOWN) == ["s0000000a-2"]
        pressed = "[...document.querySelectorAll('article:not([hidden]) button')].map(b => b.getAttribute('aria-pressed'))"
        assert await tab.evaluate(pressed) == ["false", "true", "false"]
        await tab.press("u", 85, "u")
        assert await tab.evaluate(SHOWN) == ["s0000000a-4"]
        assert (
            await tab.evaluate("document.getElementById('progress').textContent")
            == "2 of 4 labelled"
        )
        wanted = [
            f"s0000000a-{i + 1},{label},'=Zoë 1"
            for i, label in enumerate(("1", "0", "", ""))
        ]
        # A text area shows CRLF as LF.
        assert (await tab.evaluate(TEXT)).split("\n") == [
            "row,label,labeller",
            *wanted,
            "",
        ]
        file = await downloaded(tab, tmp_path / "got")
        assert file.name == "my-run.Zoë-1.csv"
        assert file.read_bytes().startswith(b"\xef\xbb\xbfrow,label,labeller\r\n")
        (read,) = read_label_files([file])
        assert [(x.number, x.value, x.labeller) for x in read.labels[:2]] == [
            (0, 1.0, "=Zoë 1"),
            (1, 0.0, "=Zoë 1"),
        ]
        assert troubles(tab) == []

    in_browser(tmp_path, label_html(rows(["a", "b", "c", "d"]), name="my-run"), steps)


def test_labels_survive_a_reload_and_people_are_kept_apart(tmp_path: Path) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        await tab.press("4", 52, "4")
        set_name = "(n => { const i = document.getElementById('labeller'); i.value = n; i.dispatchEvent(new Event('input')); })"
        await tab.evaluate(f"{set_name}('Bob')")
        await tab.press("1", 49, "1")
        assert (await tab.evaluate(TEXT)).split("\n")[1:3] == [
            "s0000000a-1,,Bob",
            "s0000000a-2,0.25,Bob",
        ]
        name = ""
        for _ in range(
            20
        ):  # the browser writes down what a page keeps when it has time
            tab.events.clear()
            await tab.open(url)
            name = await tab.evaluate("document.getElementById('labeller').value")
            if name:
                break
        assert name == "Bob"
        assert (await tab.evaluate(TEXT)).split("\n")[2] == "s0000000a-2,0.25,Bob"
        await tab.evaluate(f"{set_name}('')")
        assert (await tab.evaluate(TEXT)).split("\n")[1:3] == [
            "s0000000a-1,1,",
            "s0000000a-2,,",
        ]
        assert troubles(tab) == []

    in_browser(tmp_path, label_html(rows(["a", "b"]), graded=True), steps)


def test_hostile_texts_do_not_act_and_nobody_is_asked(tmp_path: Path) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        for _ in HOSTILE:
            await tab.press("1", 49, "1")
        assert await tab.evaluate("document.title") == f"Label {len(HOSTILE)} answers"
        assert (
            await tab.evaluate(
                "document.querySelectorAll('script, style, img, iframe, h1, a').length"
            )
            == 3
        )
        attributes = (
            "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
        )
        assert not [
            name for name in await tab.evaluate(attributes) if name.startswith("on")
        ]
        answers = await tab.evaluate(
            "[...document.querySelectorAll('dd.answer')].map(d => d.textContent)"
        )
        assert "<script>document.title='hacked'</script>" in answers
        assert "# heading\n\n- list\n> quote" in answers
        requested = [
            p["request"]["url"]
            for m, p in tab.events
            if m == "Network.requestWillBeSent"
        ]
        assert [found for found in requested if not found.startswith("data:")] == [url]
        assert troubles(tab) == []
        tried = "fetch('http://127.0.0.1:9/').then(() => 'asked', error => error.name)"
        refused = await tab.send(
            "Runtime.evaluate", expression=tried, awaitPromise=True, returnByValue=True
        )
        assert refused["result"]["value"] == "TypeError"
        assert "Content Security Policy" in str(troubles(tab))

    in_browser(tmp_path, label_html(rows(HOSTILE), name=HOSTILE[0]), steps)
