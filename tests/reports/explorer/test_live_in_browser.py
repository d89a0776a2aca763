"""What goes on in a run, in a real browser: trajectories that grow, end and begin without a reload;
and what the server gives of them.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalwright.reports.explorer.following import MOST_OPEN, Follower
from evalwright.reports.explorer.server import Server
from evalwright.runs.live import LIVE_FILE
from evalwright.runs.open_trajectories import MAX_KEPT_TURNS
from support.browser import IN_BROWSER, Tab, in_new_tab, until
from support.hostile import HOSTILE
from support.trajectory_runs import fixing, record_trajectory

STEPS = "document.querySelectorAll('.live-steps .step').length"
LISTED = "[...document.querySelectorAll('.live .list a')].map(e => e.innerText)"
MAIN = "(document.querySelector('main')?.innerText ?? '')"


def going_run(folder: Path) -> Path:
    """A run that this process is said to write."""
    run = folder / "going"
    run.mkdir()
    (run / f".samples.jsonl.{os.getpid()}.partial").touch()
    about = json.dumps({"model": "demo/small", "expected": 3})
    (run / f".samples.jsonl.{os.getpid()}.about").write_text(about)
    return run


def event(run: Path, *turns: Any, **more: Any) -> None:
    line = {"task": "shell", "id": "fix-0", "draw": 0, "attempt": 1, "turns": turns}
    with (run / LIVE_FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps({**line, **more}) + "\n")


def turns() -> list[Any]:
    row: dict[str, Any] = {}
    record_trajectory(row, fixing())
    prompt: list[Any] = row["prompt"]
    return prompt


@contextmanager
def served(run: Path) -> Iterator[Server]:
    follower = Follower([run], "Live")
    follower.start()
    server = Server(follower)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        follower.stop()


def part(follower: Follower, key: str) -> Any:
    packed = follower.part(key, None)
    return None if packed is None else json.loads(zlib.decompress(packed, -15))


def test_what_the_server_gives_is_bounded(tmp_path: Path) -> None:
    run = going_run(tmp_path)
    for n in range(MOST_OPEN + 5):
        event(run, ["user", "Go."], id=f"s{n}")
    for n in range(MAX_KEPT_TURNS + 10):
        event(run, ["assistant" if n % 2 else "user", f"turn {n}"], id="s0")
    follower = Follower([run], "Live")
    try:
        overview = part(follower, "live/0")
        assert len(overview["open"]) == MOST_OPEN
        assert overview["more"] == 5
        first = overview["open"][0]
        assert first["turns"] == MAX_KEPT_TURNS + 11
        assert first["last"] == f"assistant: turn {MAX_KEPT_TURNS + 9}"
        shown = part(follower, f"live/0/{first['number']}")
        assert len(shown["tail"]) == MAX_KEPT_TURNS
        assert (shown["dropped"], shown["droppedReplies"]) == (11, 5)
        for absent in ("live/7", "live/0/99999", "live/7/0", "live"):
            assert part(follower, absent) is None, absent
        stamp = part(follower, "state")["live"]
        assert [*stamp] == ["0"]
        (run / LIVE_FILE).unlink()
        follower.runs["0"].look()
        assert part(follower, "state")["live"] == {}
        assert part(follower, "live/0") == {"open": [], "more": 0}
    finally:
        follower.stop()


class TestInBrowser:
    pytestmark = IN_BROWSER

    def test_trajectories_grow_and_end_without_a_reload(self, tmp_path: Path) -> None:
        run = going_run(tmp_path)
        event(run, *turns()[:5])
        event(run, ["user", "Else."], id="fix-1")

        async def steps(tab: Tab) -> None:
            await tab.open(server.url)
            await tab.evaluate("location.hash = '#/run/going'; window.kept = 1")
            live = "[...document.querySelectorAll('.runbar a')].find(e => e.innerText === 'Live')"
            await until(tab, f"{live} !== undefined")
            await tab.evaluate(f"{live}.click()")
            await until(tab, f"{STEPS} === 2")
            assert "running" in await tab.evaluate(MAIN)
            listed = await tab.evaluate(LISTED)
            assert [name.split()[0] for name in listed] == ["fix-0", "fix-1"]
            event(run, *turns()[5:])
            await until(tab, f"{STEPS} === 5")
            event(run, ["user", "New."], id="fix-2")
            await until(tab, f"{LISTED}.length === 3")
            event(run, ended=True)
            await until(tab, f"{MAIN}.includes('This trajectory has ended.')")
            # What one reads stays, and the others are listed.
            assert await tab.evaluate(STEPS) == 5
            await tab.press("j", 74, "j")
            await until(tab, f"{MAIN}.includes('Else.')")
            event(run, ["user", "Anew."], id="fix-1", attempt=2)
            await until(
                tab, f"{MAIN}.includes('attempt 2') && {MAIN}.includes('Anew.')"
            )
            assert "Else." not in await tab.evaluate(
                "document.querySelector('.live-steps').innerText"
            )
            assert await tab.evaluate("window.kept") == 1

        with served(run) as server:
            in_new_tab(steps)

    def test_hostile_turns_stay_texts(self, tmp_path: Path) -> None:
        run = going_run(tmp_path)
        for text in HOSTILE:
            calls = [{"name": text, "arguments": text, "id": text}]
            event(
                run,
                ["assistant", text, {"tool_calls": calls}],
                ["tool", text, {"tool_name": text, "tool_call_id": text}],
                id="x",
            )
            event(run, ["user", text], id=text)

        async def steps(tab: Tab) -> None:
            await tab.open(f"{server.url}#/run/going/live")
            await until(tab, f"{STEPS} > 10")
            assert "hacked" not in await tab.evaluate("document.title")
            for forbidden in ("script", "img", "svg", "h1 ~ h1", "style"):
                found = f"document.querySelectorAll('main {forbidden}').length"
                assert await tab.evaluate(found) == 0, forbidden

        with served(run) as server:
            in_new_tab(steps)
