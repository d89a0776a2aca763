"""The HTML leaderboard in a real browser: it asks nobody anything, sorts, and runs nothing that
a name contains.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from evalwright.analysis.board import make_board
from evalwright.core.errors import Failure
from support.browser import IN_BROWSER, Tab, in_new_tab
from support.hostile import HOSTILE
from support.runs import make_run
from support.shown import board_html

pytestmark = IN_BROWSER

LABELS = "[...document.querySelectorAll('#board tbody th.head .name')].map(a => a.textContent)"
HEADS = "[...document.querySelectorAll('#board thead th')]"


def _page(
    folder: Path,
    models: Mapping[str, Sequence[float | None]],
    *,
    ratings: bool = False,
    **more: Any,
) -> str:
    runs = [
        make_run(
            folder,
            model=model,
            name=f"run-{i}",
            scores={"factual": scores, "other": scores},
            **more,
        )
        for i, (model, scores) in enumerate(models.items())
    ]
    return board_html(make_board(runs, ratings=ratings), runs)


def _three(folder: Path, *, ratings: bool = False) -> str:
    return _page(
        folder,
        ratings=ratings,
        models={
            "b/best": [1.0] * 38 + [0.0] * 2,
            "c/middle": [1.0] * 20 + [0.0] * 19 + [None],
            "a/worst": [1.0] * 2 + [0.0] * 38,
        },
        domains=["x", "y"],
    )


@contextmanager
def _served(html: str) -> Iterator[tuple[str, list[str]]]:
    """The page on a loopback server, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(html.encode("utf-8"))

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/board", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _in_browser(
    tmp_path: Path, html: str, steps: Callable[[Tab, str], Coroutine[Any, Any, None]]
) -> list[str]:
    with _served(html) as (url, asked):
        in_new_tab(lambda tab: steps(tab, url))
    return asked


def _troubles(tab: Tab) -> list[Any]:
    """Script errors, policy violations and failed loads that the browser told of."""
    return [
        parameters
        for method, parameters in tab.events
        if method
        in (
            "Runtime.exceptionThrown",
            "Log.entryAdded",
            "Network.loadingFailed",
            "Page.javascriptDialogOpening",
        )
    ]


def test_asks_the_network_for_nothing_but_itself(tmp_path: Path) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        requested = [
            p["request"]["url"]
            for m, p in tab.events
            if m == "Network.requestWillBeSent"
        ]
        assert [found for found in requested if not found.startswith("data:")] == [url]
        assert _troubles(tab) == []

    assert _in_browser(tmp_path, _three(tmp_path), steps) == ["/board"]


# Of each table with drawn intervals: where the axis of its head is, where each bar is, and how far
# the numbers reach over the model's name.
DRAWN = """[...document.querySelectorAll('table')].filter((t) => t.querySelector('svg.axis')).map((t) => {
  const at = (one) => { const box = one.getBoundingClientRect(); return [box.left, box.right]; };
  const names = [...t.querySelectorAll('tbody .head')].map((one) => at(one)[1]);
  const numbers = [...t.querySelectorAll('tbody .pair .numbers')].map((one) => at(one)[0]);
  return {axis: at(t.querySelector('svg.axis')), bars: [...t.querySelectorAll('tbody svg.bar')].map(at), over: Math.max(...names) - Math.min(...numbers)};
})"""


def test_bars_stand_under_their_axis_and_no_name_covers_a_number(
    tmp_path: Path,
) -> None:
    async def steps(tab: Tab, url: str) -> None:
        for width in (1600, 1280):
            size = {
                "width": width,
                "height": 900,
                "deviceScaleFactor": 1,
                "mobile": False,
            }
            await tab.send("Emulation.setDeviceMetricsOverride", **size)
            await tab.open(url)
            board, ratings = await tab.evaluate(DRAWN)
            for table in (board, ratings):
                assert table["bars"] and table["over"] <= 0, (width, table)
                for bar in table["bars"]:
                    gap = max(
                        abs(one - other)
                        for one, other in zip(bar, table["axis"], strict=True)
                    )
                    assert gap < 2, (width, table)

    assert _in_browser(tmp_path, _three(tmp_path, ratings=True), steps)


def test_sorts_on_click_and_by_keyboard(tmp_path: Path) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        assert await tab.evaluate(LABELS) == ["b/best", "c/middle", "a/worst"]
        sorts = f"{HEADS}.map(h => h.getAttribute('aria-sort'))"
        # rank, model, overall, factual, other, items, missing, date
        assert await tab.evaluate(sorts) == ["ascending"] + [None] * 7
        await tab.evaluate(f"{HEADS}[1].querySelector('button').click()")
        assert await tab.evaluate(LABELS) == ["a/worst", "b/best", "c/middle"]
        assert await tab.evaluate(sorts) == [None, "ascending"] + [None] * 6
        said = "document.getElementById('said').textContent"
        assert await tab.evaluate(said) == "Sorted by Model, ascending."
        await tab.evaluate(f"{HEADS}[1].querySelector('button').click()")
        assert await tab.evaluate(LABELS) == ["c/middle", "b/best", "a/worst"]
        await tab.evaluate(f"{HEADS}[6].querySelector('button').focus()")
        await tab.press("Enter", 13, "\r")
        assert await tab.evaluate(LABELS) == ["c/middle", "b/best", "a/worst"]
        assert (
            await tab.evaluate(f"{HEADS}[6].getAttribute('aria-sort')") == "descending"
        )
        # the button that was pressed is another one now, and still has the focus
        await tab.press(" ", 32, " ")
        assert (await tab.evaluate(LABELS))[-1] == "c/middle"
        assert _troubles(tab) == []

    _in_browser(tmp_path, _three(tmp_path), steps)


def test_what_has_no_number_stays_last(tmp_path: Path) -> None:
    run = make_run(tmp_path, model="half", name="half", scores=[1.0, 0.0])
    whole = [
        make_run(
            tmp_path,
            model=f"whole-{i}",
            name=f"whole-{i}",
            scores={"factual": [1.0, i], "other": [1.0, 0.0]},
        )
        for i in range(2)
    ]
    runs = [run, *whole]
    html = board_html(make_board(runs), runs)

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        for _ in range(2):
            await tab.evaluate(f"{HEADS}[2].querySelector('button').click()")
            assert (await tab.evaluate(LABELS))[-1] == "half"

    _in_browser(tmp_path, html, steps)


def test_hostile_names_do_not_act(tmp_path: Path) -> None:
    models = {name or f"empty-{i}": [1.0, 0.0, None] for i, name in enumerate(HOSTILE)}
    failure = Failure(
        "<b onclick=x>", "provider", "<script>document.title='hacked'</script>"
    )
    html = _page(tmp_path, models, domains=list(HOSTILE[:3]), failure=failure)

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        await tab.evaluate(
            "document.querySelectorAll('details').forEach(d => d.open = true)"
        )
        for i in range(await tab.evaluate(f"{HEADS}.length")):
            await tab.evaluate(f"{HEADS}[{i}].querySelector('button').click()")
        assert await tab.evaluate("document.title") == "Leaderboard"
        assert (
            await tab.evaluate(
                "document.querySelectorAll('script:not([type]), style, img, iframe, h1').length"
            )
            == 3
        )
        assert (
            await tab.evaluate(
                "[...document.querySelectorAll('*')].some(e => e.getAttributeNames().some(n => n.startsWith('on')))"
            )
            is False
        )
        hrefs = await tab.evaluate(
            "[...document.querySelectorAll('[href]')].map(a => a.getAttribute('href'))"
        )
        assert all(href.startswith("#") or href == "data:," for href in hrefs)
        assert await tab.evaluate("document.querySelectorAll('h1').length") == 1
        assert len(await tab.evaluate(LABELS)) == len(models)
        assert _troubles(tab) == []

    assert _in_browser(tmp_path, html, steps) == ["/board"]


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_is_cut_at_the_side(tmp_path: Path, width: int) -> None:
    tasks: dict[str, list[float | None]] = {
        f"a_task_with_a_name_that_is_longer_than_a_telephone_is_wide_{i}": [
            1.0,
            0.0,
            None,
        ]
        * 12
        for i in range(12)
    }
    runs = [
        make_run(
            tmp_path, model=f"{'long/' * 20}model-{i}", name=f"run-{i}", scores=tasks
        )
        for i in range(3)
    ]
    html = board_html(make_board(runs), runs, title="t" * 200)

    async def steps(tab: Tab, url: str) -> None:
        await tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=False,
        )
        await tab.open(url)
        await tab.evaluate(
            "document.querySelectorAll('details').forEach(d => d.open = true)"
        )
        await tab.evaluate("dispatchEvent(new Event('resize'))")
        assert await tab.evaluate("document.documentElement.scrollWidth") <= width
        wide = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
        assert await tab.evaluate(wide) == 0
        # a phone shows the headline and one task, and all of them where a row is unfolded
        numbers = "document.querySelectorAll('#board td.number .value').length"
        is_phone = width < 720
        assert await tab.evaluate(numbers) == 3 * (1 if is_phone else len(tasks))
        sideways = (
            "(s => s.scrollWidth > s.clientWidth + 1)(document.getElementById('sheet'))"
        )
        assert await tab.evaluate(sideways) == (not is_phone)
        await tab.evaluate("document.querySelector('.fold').click()")
        listed = "document.querySelectorAll('.numbers-of li').length"
        assert await tab.evaluate(listed) == 1 + len(tasks)
        assert await tab.evaluate("document.documentElement.scrollWidth") <= width
        edges = "Math.max(...[...document.querySelectorAll('.numbers-of li > *')].map(e => e.getBoundingClientRect().right))"
        assert await tab.evaluate(edges) <= width

    _in_browser(tmp_path, html, steps)
