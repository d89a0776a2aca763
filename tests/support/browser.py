"""A real headless Chromium, driven over its DevTools protocol: enough to load a page, click, and
see what it did.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-port=0",
)  # fmt: skip

DRAWN = """new Promise(done =>
  requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(done))))"""
DRAWING_SECONDS = 0.3
"""Most that a page gets for it."""


def chromium() -> str | None:
    """The browser's path, None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


IN_BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine"),
]
"""Marks of the tests that need one."""


class Tab:
    """One open page. events: what the browser told, as (method, parameters). person: whose tab
    it is, as a parameter of the methods that ask for it.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.person: dict[str, str] = {}
        self._socket = socket
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            event = message.json()
            if "id" in event:
                waiting = self._waiting.pop(event["id"])
                if not waiting.done():  # nobody waits for it any more
                    waiting.set_result(event)
            else:
                self.events.append((event["method"], event["params"]))

    async def send(self, method: str, **parameters: Any) -> Any:
        """Call a DevTools method and return its result."""
        number = len(self._waiting) + 1 + getattr(self, "_sent", 0)
        self._sent = number
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json(
            {"id": number, "method": method, "params": parameters}
        )
        reply = await asyncio.wait_for(self._waiting[number], 1800)
        assert "error" not in reply, reply
        return reply["result"]

    async def open(self, url: str) -> None:
        """Load a page and wait until it and what it loads are there."""
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.send(f"{domain}.enable")
        await self.send("Page.setLifecycleEventsEnabled", enabled=True)
        # The page before may tell only now that it was loaded; without a loader it is the same
        # page, scrolled elsewhere.
        loader = (await self.send("Page.navigate", url=url)).get("loaderId")
        for _ in range(36_000):
            if loader is None or any(
                event.get("loaderId") == loader and event.get("name") == "load"
                for _, event in self.events
            ):
                await self._draw()
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{url} was not loaded in half an hour")

    async def _draw(self) -> None:
        """Wait until the page has drawn what its scripts made of it and has nothing to do; a page
        that draws nothing, or goes on to another, gets a moment.
        """
        drawn = self.send("Runtime.evaluate", expression=DRAWN, awaitPromise=True)
        with contextlib.suppress(TimeoutError, AssertionError):
            await asyncio.wait_for(drawn, DRAWING_SECONDS)

    async def evaluate(self, expression: str) -> Any:
        """The JSON value of a JavaScript expression in the page; asked again where a navigation
        cut it off.
        """
        for left in reversed(range(50)):
            try:
                reply = await self.send(
                    "Runtime.evaluate", expression=expression, returnByValue=True
                )
                break
            except AssertionError as error:
                if "navigated" not in str(error) or not left:
                    raise
                await asyncio.sleep(0.1)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    async def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key as a person does."""
        for kind in ("keyDown", "keyUp"):
            await self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=code,
                text=text if kind == "keyDown" else "",
            )

    async def close(self) -> None:
        await self._socket.close()
        await self._reader


class _Browser:
    """A running browser whose profile is an empty folder; `port` is that of its DevTools."""

    def __init__(self, profile: Path) -> None:
        path = chromium()
        assert path is not None
        self.port = 0
        self._profile = profile
        self._process = subprocess.Popen(
            [path, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    async def find_port(self) -> None:
        file = self._profile / "DevToolsActivePort"
        for _ in range(18_000):
            assert self.runs, "the browser ended"
            if file.exists() and (lines := file.read_text().splitlines()):
                self.port = int(lines[0])
                return
            await asyncio.sleep(0.1)
        raise AssertionError("the browser did not start in half an hour")

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        # A browser that is killed leaves its folder in /tmp.
        if (link := self._profile / "SingletonSocket").is_symlink():
            shutil.rmtree(link.readlink().parent, ignore_errors=True)


_running: list[_Browser] = []
_folders: list[tempfile.TemporaryDirectory[str]] = []


@atexit.register
def end_browser() -> None:
    """End the browser of this process, where there is one."""
    while _running:
        _running.pop().end()
        _folders.pop().cleanup()


async def _browser() -> _Browser:
    """The browser of this process, started for the first tab: it takes seconds to start."""
    if _running and not _running[-1].runs:
        end_browser()
    if not _running:
        _folders.append(
            tempfile.TemporaryDirectory(
                prefix="evalwright-browser-", ignore_cleanup_errors=True
            )
        )
        _running.append(_Browser(Path(_folders[-1].name)))
        await _running[-1].find_port()
    return _running[-1]


@asynccontextmanager
async def _connected(session: aiohttp.ClientSession, url: str) -> AsyncIterator[Tab]:
    async with session.ws_connect(url, max_msg_size=0) as socket:
        tab = Tab(socket)
        try:
            yield tab
        finally:
            await tab.close()


@asynccontextmanager
async def open_tab(profile: Path) -> AsyncIterator[Tab]:
    """A tab of a browser of its own, whose profile is the empty folder `profile`."""
    browser = _Browser(profile)
    try:
        await browser.find_port()
        async with _new_tab(browser) as tab:
            yield tab
    finally:
        browser.end()


@asynccontextmanager
async def _new_tab(browser: _Browser) -> AsyncIterator[Tab]:
    """A tab that shares no storage, cookies or cache with the tabs before it."""
    address = f"127.0.0.1:{browser.port}"
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://{address}/json/version") as reply:
            control_url = (await reply.json())["webSocketDebuggerUrl"]
        async with _connected(session, control_url) as control:
            person = await control.send("Target.createBrowserContext")
            target = await control.send(
                "Target.createTarget", url="about:blank", **person
            )
            page = f"ws://{address}/devtools/page/{target['targetId']}"
            try:
                async with _connected(session, page) as tab:
                    tab.person = person
                    yield tab
            finally:
                await control.send("Target.disposeBrowserContext", **person)


def in_new_tab(steps: Callable[[Tab], Coroutine[Any, Any, None]]) -> None:
    """Do some steps in a new tab of this process's browser, as in a browser that is new."""

    async def run() -> None:
        async with _new_tab(await _browser()) as tab:
            await steps(tab)

    asyncio.run(run())


async def until(tab: Tab, expression: str) -> Any:
    """The value of an expression as soon as it is true."""
    for _ in range(36_000):
        if evaluated := await tab.evaluate(expression):
            return evaluated
        await asyncio.sleep(0.05)
    raise AssertionError(
        f"{expression} never held; the page says: {await tab.evaluate('document.body.innerText')}"
    )
