"""Runs of different tasks and metrics, opened together: each shows its own, on every page."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalwright.reports.explorer.catalog import board_of, run_info
from evalwright.reports.explorer.following import Follower
from evalwright.reports.explorer.parts import _question
from evalwright.reports.explorer.server import Server
from evalwright.runs.reader import Run, open_run
from support.browser import IN_BROWSER, Tab, in_new_tab, until
from support.runs import edited, make_run, rewrite

TEXT = "(document.querySelector('main')?.innerText ?? '')"
CELLS = (
    "[...document.querySelectorAll('.grid tbody tr')]"
    ".map(row => [...row.querySelectorAll('td.number .value, td.number > .quiet')]"
    ".map(cell => cell.innerText))"
)
HEADS = (
    "[...document.querySelectorAll('.table-head [role=columnheader]')]"
    ".map(head => head.innerText.replace('\\n', ' ').trim())"
)


def make_mixed_runs(folder: Path) -> tuple[Run, ...]:
    """A choice task, a graded one by two metrics, and one run with both kinds of tasks."""
    graded = [0.25, 0.5, 0.75, 1.0]
    return (
        make_run(
            folder,
            scores={"choice": [1.0, 0.0, 1.0, 1.0]},
            name="choices",
            model="demo/a",
            domains=("north", "south"),
        ),
        make_run(
            folder,
            scores={"summaries": graded},
            metric="mean",
            name="overlap",
            model="demo/b",
        ),
        make_run(
            folder,
            scores={"summaries": graded},
            metric="accuracy",
            name="shares",
            model="demo/c",
        ),
        make_run(
            folder,
            scores={"choice": [1.0, 1.0, 1.0, 0.0], "summaries": graded},
            metric={"summaries": "mean"},
            name="both",
            model="demo/d",
        ),
    )


def keyed(runs: tuple[Run, ...]) -> list[tuple[str, Run]]:
    return [(str(index), run) for index, run in enumerate(runs)]


def test_a_board_without_ranks_has_a_column_for_each_metric_of_a_task(
    tmp_path: Path,
) -> None:
    board = board_of(keyed(make_mixed_runs(tmp_path)))
    assert board is not None
    assert [(column["name"], column["note"]) for column in board["columns"]] == [
        ("choice", "accuracy"),
        ("summaries", "mean"),
        ("summaries", "accuracy"),
    ]
    values = [
        [cell and round(cell["value"], 3) for cell in row["cells"]]
        for row in board["rows"]
    ]
    assert values == [
        [0.75, None, None],
        [None, 0.625, None],
        [None, None, 0.625],
        [0.75, 0.625, None],
    ]
    assert all(row["ranks"] is None and row["overall"] is None for row in board["rows"])
    (note,) = board["notes"]
    assert "different metrics (mean and accuracy)" in note


def test_ranks_of_one_unit_are_not_those_of_runs_without_it(tmp_path: Path) -> None:
    choices, overlap, _, both = make_mixed_runs(tmp_path)
    board = board_of(keyed((choices, overlap)))
    assert board is not None
    assert [row["ranks"] for row in board["rows"]] == [None, None]
    assert board["notes"][0] == (
        "The tasks have different units or directions. There are no ranks, as some runs"
        " have no task of the same unit."
    )
    assert not any("rank is a range" in note for note in board["notes"])
    board = board_of(keyed((choices, both)))
    assert board is not None
    assert None not in [row["ranks"] for row in board["rows"]]
    assert board["notes"][0].endswith("Ranks are by choice.")
    assert not any("no overall score" in note for note in board["notes"])


def test_an_imported_run_without_scores_says_what_is_missing_and_why(
    tmp_path: Path,
) -> None:
    run = make_run(tmp_path, scores=[None, None], name="failed")
    with edited(run.folder) as record:
        record["tasks"][0] |= {"metrics": [], "n_missing": 0}
        record["configuration"]["imported"] = {
            "format": "inspect_ai",
            "file": "a.eval",
            "notes": ["Its status is 'error'."],
        }
    info = run_info("0", open_run(run.folder), 2)
    assert info["tasks"][0]["missing"] == 2
    assert ("Imported from", "inspect_ai, a.eval") in info["facts"]
    assert ("Noted at import", "Its status is 'error'.") in info["facts"]


@pytest.mark.parametrize("imported", [None, 3, {"notes": "x"}, {"format": None}])
def test_what_an_import_wrote_in_another_form_breaks_nothing(
    tmp_path: Path, imported: Any
) -> None:
    run = make_run(tmp_path, scores=[1.0], name="odd")
    with edited(run.folder) as record:
        record["configuration"]["imported"] = imported
    facts = run_info("0", open_run(run.folder), 1)["facts"]
    assert not [name for name, _ in facts if name in ("Imported from", "Noted")]


def test_an_image_in_an_imported_question_is_one_word_in_the_list() -> None:
    words = f"What is this?[image image/png, SHA-256 {'0f' * 32}]"
    assert _question({"input": words}).split() == ["What", "is", "this?", "[image]"]
    plain = "See [image of a cat, SHA-256 unknown]."
    assert _question({"input": plain}) == plain


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    follower = Follower((), "Runs", runs_folder=folder)
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


def on_home(folder: Path, steps: Callable[[Tab], Coroutine[Any, Any, None]]) -> None:
    """Do the steps in the page of all runs of the folder; the page logs no error."""

    async def opened(tab: Tab) -> None:
        await tab.open(server.url)
        await set_width(tab, 1440)
        await steps(tab)
        errors = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        assert not [event for event in tab.events if event[0] in errors]

    with serving(folder) as server:
        in_new_tab(opened)


async def set_width(tab: Tab, width: int) -> None:
    await tab.send(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    await until(tab, f"innerWidth === {width}")


class TestInBrowser:
    pytestmark = IN_BROWSER

    def test_a_board_shows_each_run_its_own_at_every_width(
        self, tmp_path: Path
    ) -> None:
        make_mixed_runs(tmp_path)

        async def steps(tab: Tab) -> None:
            await tab.evaluate(
                "location.hash = '#/board?run=choices&run=overlap&run=shares&run=both'"
            )
            await until(tab, f"{TEXT}.includes('There is no board of these runs')")
            assert await tab.evaluate(CELLS) == [
                ["75.0", "–", "–", "0"],
                ["–", "0.6", "–", "0"],
                ["–", "–", "62.5", "0"],
                ["75.0", "0.6", "–", "0"],
            ]
            # Only the run that has slices is in the table of slices.
            slices = "[...document.querySelectorAll('.slices tbody th')].map(e => e.innerText)"
            assert await tab.evaluate(slices) == ["demo/a"]
            # Too narrow for the columns: each run lists its own, and nothing is cut.
            await set_width(tab, 390)
            scores = "[...document.querySelectorAll('.grid .task-score .value')].map(e => e.innerText)"
            await until(tab, f"{scores}.length === 5")
            assert await tab.evaluate(scores) == [
                "75.0",
                "0.6",
                "62.5",
                "75.0",
                "0.6",
            ]
            assert await tab.evaluate(
                "document.documentElement.scrollWidth <= innerWidth"
            )
            assert not await tab.evaluate(
                "[...document.querySelectorAll('.task-score-name')].filter(e => e.scrollWidth > e.clientWidth).length"
            )
            # Another board offers its own runs to compare.
            await tab.evaluate("location.hash = '#/board?run=shares&run=both'")
            chosen = "[...document.querySelectorAll('.pick select')].map(e => e.selectedOptions[0]?.text)"
            await until(tab, f'JSON.stringify({chosen}) === \'["demo/c","demo/d"]\'')

        on_home(tmp_path, steps)

    def test_a_comparison_shows_what_only_one_run_has(self, tmp_path: Path) -> None:
        make_mixed_runs(tmp_path)
        own = "[...document.querySelectorAll('.alone .side')].map(e => e.innerText.split('\\n').filter(Boolean))"

        async def steps(tab: Tab) -> None:
            await tab.evaluate("location.hash = '#/compare/choices/overlap'")
            await until(tab, f"{TEXT}.includes('have no task in common')")
            sides = await tab.evaluate(own)
            assert [side[1:3] for side in sides] == [
                ["choice", "accuracy"],
                ["summaries", "mean"],
            ]
            # One unit that is no share has an axis of its own.
            await tab.evaluate("location.hash = '#/compare/overlap/both'")
            await until(
                tab, "!!document.querySelector('.differences tbody .drawn .point')"
            )
            ticks = await tab.evaluate(
                "[...document.querySelectorAll('.differences .axis text')].map(e => e.textContent)"
            )
            assert "100" not in ticks
            (side,) = await tab.evaluate(own)
            assert side[1:3] == ["choice", "accuracy"]

        on_home(tmp_path, steps)

    def test_further_scores_have_columns_and_only_shares_are_right_or_wrong(
        self, tmp_path: Path
    ) -> None:
        run = make_run(tmp_path, scores=[1.0, 0.0], name="two-scorers")

        def scored_twice(row: dict[str, Any], place: int) -> None:
            row["scores"] = {
                "length": {"value": 12.0 + place},
                "score": row["scores"]["score"],
            }
            row["metadata"] = {"origin": {"file": "a.jsonl", "line": 40 * "1"}}

        rewrite(run, scored_twice)
        with edited(run.folder) as record:
            for metric in record["tasks"][0]["metrics"]:
                metric["scorer"] = "length"
        dots = (
            "[...document.querySelectorAll('.table-rows .dot')].map(e => e.className)"
        )

        async def steps(tab: Tab) -> None:
            await tab.evaluate("location.hash = '#/run/two-scorers/samples'")
            await until(tab, f"{HEADS}.length > 3 && {dots}.length === 2")
            heads = await tab.evaluate(HEADS)
            assert heads[:3] == ["Outcome", "Score length", "score: score"]
            assert await tab.evaluate(dots) == ["dot plain", "dot plain"]
            await tab.evaluate(
                "location.hash = '#/run/two-scorers/sample/factual/item-1/0'"
            )
            await until(tab, f"{TEXT}.includes('Download the record')")
            tones = "[...document.querySelectorAll('.score .verdict')].map(e => e.className)"
            assert await tab.evaluate(tones) == ["verdict plain", "verdict bad"]
            # A fact that is JSON is folded, and readable when it is opened.
            fold = "[...document.querySelectorAll('.pairs .fold summary')]"
            assert await tab.evaluate(f"{fold}.length") == 1
            await tab.evaluate(f"{fold}[0].click()")
            await until(tab, f'{TEXT}.includes(\'"file": "a.jsonl"\')')
            # The record can be taken away.
            await tab.evaluate(
                "window.saved = [], HTMLAnchorElement.prototype.click = function () {"
                " saved.push(this.download);"
                " new Response(window.lastBlob).text().then(t => saved.push(t)); },"
                " URL.createObjectURL = (blob) => { window.lastBlob = blob; return 'blob:x'; },"
                " [...document.querySelectorAll('.download button')][0].click()"
            )
            name, text = await until(tab, "saved.length === 2 && saved")
            assert name == "factual-item-1.json"
            assert json.loads(text)["id"] == "item-1"

        on_home(tmp_path, steps)

    def test_keys_and_orders_of_the_list_of_runs(self, tmp_path: Path) -> None:
        for name, score, day in (("x", 0.0, 1), ("y", 1.0, 2), ("z", 0.5, 3)):
            make_run(
                tmp_path,
                scores=[score, score, None],
                name=name,
                model=f"demo/{name}",
                started=f"2026-11-0{day}T00:00:00+00:00",
            )
        names = "[...document.querySelectorAll('.home-runs .home-who > a')].map(e => e.innerText.slice(5)).join('')"
        marked = (
            "document.querySelector('.home-runs > [aria-current] a')?.innerText ?? ''"
        )

        async def steps(tab: Tab) -> None:
            assert await until(tab, names) == "zyx"
            assert "3 samples · 96 tokens · 12 s · 1 missing" in await tab.evaluate(
                TEXT
            )
            for order, ordered in (
                ("task", "yzx"),
                ("oldest", "xyz"),
                ("model", "xyz"),
                ("newest", "zyx"),
            ):
                await tab.evaluate(
                    f"(select => {{ select.value = {order!r}; select.dispatchEvent(new Event('change', {{bubbles: true}})); }})"
                    "(document.querySelector('.home-tools select'))"
                )
                await until(tab, f"{names} === {ordered!r}")
            assert await tab.evaluate("location.hash") == "#/"
            await tab.press("j", 74, "j")
            await until(tab, f"{marked} === 'demo/z'")
            await tab.press("x", 88, "x")
            await until(tab, f"{TEXT}.includes('1 run chosen')")
            await tab.press("j", 74, "j")
            await until(tab, f"{marked} === 'demo/y'")
            await tab.press("x", 88, "x")
            await until(tab, f"{TEXT}.includes('2 runs chosen')")
            await tab.press("v", 86, "v")
            await until(tab, "location.hash.startsWith('#/compare/')")
            await tab.press("b", 66, "b")
            await until(tab, f"{names} === 'zyx'")
            await tab.press("ArrowDown", 40)
            await until(tab, f"{marked} === 'demo/z'")
            await tab.press("s", 83, "s")
            await until(tab, "location.hash === '#/run/z/samples'")
            await tab.evaluate("history.back()")
            await until(tab, f"{names} === 'zyx'")
            await tab.press("ArrowDown", 40)
            await until(tab, f"{marked} === 'demo/z'")
            await tab.press("Enter", 13, "\r")
            await until(tab, "location.hash === '#/run/z'")
            await tab.press("Enter", 13, "\r")
            await until(tab, "location.hash === '#/run/z/samples'")

        on_home(tmp_path, steps)

    def test_words_are_searched_in_the_samples_of_all_runs(
        self, tmp_path: Path
    ) -> None:
        make_run(tmp_path, scores=[1.0] * 8, name="many", text="It is in Lima.")
        make_run(tmp_path, scores=[0.0, 1.0], name="few", text="It is in Oslo.")
        rows = "document.querySelectorAll('.search-hits li').length"

        async def steps(tab: Tab) -> None:
            await tab.evaluate("location.hash = '#/search'")
            await until(tab, "document.activeElement.type === 'search'")
            await tab.send("Input.insertText", text="in lima")
            await until(tab, f"{TEXT}.includes('8 samples in 1 run') && {rows} === 5")
            assert await tab.evaluate("location.hash") == "#/search?q=in+lima"
            await tab.press("Escape", 27)
            await tab.send("Input.insertText", text="in")
            await until(tab, f"{TEXT}.includes('10 samples in 2 runs') && {rows} === 7")
            await tab.evaluate(
                "[...document.querySelectorAll('.search-page section a')].find(a => a.innerText === 'All 8 samples').click()"
            )
            await until(tab, "location.hash === '#/run/many/samples?q=in'")

        on_home(tmp_path, steps)
