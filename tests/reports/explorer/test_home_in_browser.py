"""`view` without names: the list of all runs of a folder, and what opens from it, in a browser."""

from __future__ import annotations

import json
import shutil
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalwright.cli import main
from evalwright.core.samples import Score
from evalwright.reports.explorer.following import Follower
from evalwright.reports.explorer.parts import _expected, _preview_text
from evalwright.reports.explorer.server import Server
from support.browser import Tab, chromium, in_new_tab, until
from support.runs import make_run

TEXT = "(document.querySelector('main')?.innerText ?? '')"
in_chromium = pytest.mark.skipif(
    chromium() is None, reason="no Chromium on this machine"
)
RIGHT = Score(1.0, "correct")
WRONG = Score(0.0, "incorrect")


@pytest.fixture
def runs_folder(tmp_path: Path) -> Path:
    """Three runs of six items; `a` and `b` differ on two of them."""
    folder = tmp_path / "runs"
    scores_by_run = {
        "a": [WRONG, RIGHT, WRONG, RIGHT, RIGHT, RIGHT],
        "b": [WRONG, RIGHT, RIGHT, RIGHT, WRONG, RIGHT],
        "c": [WRONG, WRONG, WRONG, WRONG, WRONG, RIGHT],
    }
    for name, scores in scores_by_run.items():
        make_run(folder, scores=scores, name=name, model=f"demo/{name}")
    (folder / "notes").mkdir()
    return folder


@contextmanager
def serving(runs_folder: Path) -> Iterator[Server]:
    follower = Follower((), "Runs", runs_folder=runs_folder)
    server = Server(follower)
    follower.start()
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        follower.stop()
        thread.join()


def part(server: Server, key: str) -> Any:
    content = server.follower.part(key, None)
    assert content is not None
    return json.loads(zlib.decompress(content, -15))


def test_samples_are_read_only_of_runs_that_are_looked_at(runs_folder: Path) -> None:
    with serving(runs_folder) as server:
        runs = part(server, "catalog")["runs"]
        assert [run["name"] for run in runs] == ["a", "b", "c"]
        assert [run["records"] for run in runs] == [6, 6, 6]
        follower = server.follower
        assert not any(followed.samples.size for followed in follower.runs.values())
        assert part(server, "run/1/index")["size"] > 0
        assert follower.runs["1"].samples.size > 0
        assert follower.runs["0"].samples.size == 0


def test_a_board_is_made_of_the_chosen_runs(runs_folder: Path) -> None:
    with serving(runs_folder) as server:
        board = part(server, "board/2/0")
        assert {row["run"] for row in board["rows"]} == {"0", "2"}
        assert server.follower.part("board/0/9", None) is None
        assert part(server, "board/0") is None, "one run is no board"


def test_runs_that_begin_or_are_removed_later_are_seen(
    runs_folder: Path, tmp_path: Path
) -> None:
    follower = Follower((), "Runs", runs_folder=runs_folder)
    make_run(tmp_path / "elsewhere", scores=[1.0], name="d", model="demo/d")
    shutil.copytree(tmp_path / "elsewhere" / "d", runs_folder / "d")
    shutil.rmtree(runs_folder / "a")
    assert follower._scan()
    names = [followed.folder.name for followed in follower.runs.values()]
    assert names == ["b", "c", "d"]
    assert list(follower.runs) == ["1", "2", "3"], "a key names one run for good"
    follower.stop()


def test_without_runs_the_command_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["view", "--no-browser"]) == 2
    assert "evalwright run" in capsys.readouterr().err
    assert main(["view", "--html", "page.html"]) == 2
    assert "--html" in capsys.readouterr().err


def _in_browser(server: Server, steps: Any) -> None:
    async def opened(tab: Tab) -> None:
        await tab.open(server.url)
        await steps(tab)
        errors = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        assert not [event for event in tab.events if event[0] in errors]

    in_new_tab(opened)


@in_chromium
@pytest.mark.browser
def test_runs_are_searched_chosen_and_opened(runs_folder: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        rows = "document.querySelectorAll('.home-runs > li').length"
        await until(tab, f"{rows} === 3 && {TEXT}.includes('3 runs')")
        await tab.press("/", 191, "/")
        await tab.send("Input.insertText", text="demo/c")
        await until(tab, f"{rows} === 1")
        await tab.press("Escape", 27)
        await until(tab, f"{rows} === 3 || document.activeElement.type !== 'search'")
        await tab.evaluate("location.hash = '#/'")
        await until(tab, f"{rows} === 3")
        choose = "document.querySelector(`[aria-label='Choose {}']`).click()"
        await tab.evaluate(choose.format("a"))
        await until(tab, f"{TEXT}.includes('1 run chosen')")
        await tab.evaluate(choose.format("b"))
        press = "[...document.querySelectorAll('.home-chosen button')].find(b => b.innerText === '{}').click()"
        await tab.evaluate(press.format("Compare"))
        await until(tab, "document.querySelectorAll('.answer').length === 2")
        headline = await until(tab, "document.querySelector('.conclusion')?.innerText")
        assert len(headline.split()) <= 25
        await tab.evaluate("location.hash = '#/board?run=a&run=b&run=c'")
        await until(
            tab,
            "document.querySelectorAll('.board-page tbody td.number .bar').length >= 3",
        )

    with serving(runs_folder) as server:
        _in_browser(server, steps)


@in_chromium
@pytest.mark.browser
def test_columns_are_chosen_and_the_choice_is_in_the_address(
    runs_folder: Path, tmp_path: Path
) -> None:
    heads = "[...document.querySelectorAll('.table-head [role=columnheader]')].map(e => e.innerText.trim())"

    async def steps(tab: Tab) -> None:
        await tab.send("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)  # fmt: skip
        await tab.evaluate("location.hash = '#/run/a/samples'")
        await until(tab, f"{heads}.includes('Expected')")
        usual = await tab.evaluate(heads)
        assert usual[:6] == [
            "Outcome",
            "Score",
            "ID",
            "Question",
            "Answer",
            "Expected",
        ]
        await until(tab, f"{TEXT}.includes('item-0')")
        toggle = "[...document.querySelectorAll('.chooser label')].find(l => l.textContent.trim() === '{}').querySelector('input').click()"
        await tab.evaluate(toggle.format("Expected"))
        await until(tab, f"!{heads}.includes('Expected')")
        await tab.evaluate("window.before = 1, location.reload()")
        await until(
            tab,
            f"!window.before && {heads}.length > 2 && !{heads}.includes('Expected')",
        )
        # Escape empties the search, then leaves it.
        await tab.press("/", 191, "/")
        await tab.send("Input.insertText", text="zzz")
        await until(tab, "document.activeElement.value === 'zzz'")
        await tab.press("Escape", 27)
        await until(tab, "document.querySelector('.search').value === ''")
        await tab.press("Escape", 27)
        await until(tab, "document.activeElement.type !== 'search'")

    with serving(runs_folder) as server:
        _in_browser(server, steps)


@in_chromium
@pytest.mark.browser
def test_the_choice_of_light_or_dark_is_kept(runs_folder: Path, tmp_path: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    button = "[...document.querySelectorAll('.shell-does button')].find(b => /^(Dark|Light)$/.test(b.innerText))"

    async def steps(tab: Tab) -> None:
        await until(tab, f"!!{button}")
        before = await tab.evaluate(background)
        await tab.evaluate(f"{button}.click()")
        await until(tab, f"{background} !== {json.dumps(before)}")
        chosen = await tab.evaluate(background)
        await tab.evaluate("window.before = 1, location.reload()")
        await until(tab, f"!window.before && !!{button}")
        assert await tab.evaluate(background) == chosen

    with serving(runs_folder) as server:
        _in_browser(server, steps)


def test_what_was_expected_is_in_the_preview_in_whole_words() -> None:
    assert _expected({"targets": ["Paris", "City of Light"]}) == "Paris | City of Light"
    assert _expected({"targets": [], "choices": ["x", "y"], "gold": [1, 7]}) == "y"
    assert _expected({}) == ""
    assert _preview_text("two   words", 20) == "two words"
    assert _preview_text("a long sentence of words", 12) == "a long…"
    assert _preview_text("x" * 30, 12) == "x" * 12 + "…"


@in_chromium
@pytest.mark.browser
def test_a_comparison_emphasises_its_claims_and_prints_its_conclusion_once(
    tmp_path: Path,
) -> None:
    counts = {
        "clear": (50, 5),
        "against": (10, 40),
        "doubtful": (13, 8),
        "none": (9, 9),
    }
    for side, name in enumerate("ab"):
        scores = {
            task: [1.0] * pair[side] + [0.0] * (60 - pair[side])
            for task, pair in counts.items()
        }
        make_run(tmp_path / "runs", scores=scores, name=name, model=f"demo/{name}")

    async def steps(tab: Tab) -> None:
        await until(tab, f"{TEXT}.includes('2 runs')")
        await tab.evaluate("location.hash = '#/compare/a/b'")
        await until(tab, "document.querySelector('.differences') !== null")
        text = await tab.evaluate(
            "document.querySelector('.compare-page section').textContent"
        )
        assert text.count("Over all tasks") == 1
        assert "95% interval" in await tab.evaluate(
            "document.querySelector('.conclusion').innerText"
        )
        strong_rows = await tab.evaluate(
            "[...document.querySelectorAll('.differences tr')]"
            ".filter(row => row.querySelector('.measure.strong'))"
            ".map(row => row.querySelector('th').innerText.trim().split(/\\s/)[0])"
        )
        assert set(strong_rows) & set(counts) == {"clear", "against"}
        assert "< 0.001" in text
        assert "< 0.0001" not in text

    with serving(tmp_path / "runs") as server:
        _in_browser(server, steps)


@in_chromium
@pytest.mark.browser
def test_repeats_are_answers_to_samples(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the log is compressed with zstandard")
    from evalwright.compat.inspect.importing import import_inspect

    logs = Path(__file__).parents[2] / "data" / "inspect"
    import_inspect(logs / "reduced.eval", tmp_path / "runs", "repeated")

    async def steps(tab: Tab) -> None:
        await until(tab, f"{TEXT}.includes('answers to 6 samples')")

    with serving(tmp_path / "runs") as server:
        _in_browser(server, steps)
