"""The answers of several runs side by side, in a real browser: which items, and what each cell has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from evalwright import open_run
from evalwright.core.samples import Score
from evalwright.reports.explorer.page import write_page
from evalwright.runs.reader import Run
from support.browser import IN_BROWSER, Tab, in_new_tab, until
from support.hostile import HOSTILE
from support.openai_server import serving
from support.runs import make_run, rewrite
from support.typed import typed

pytestmark = IN_BROWSER

ADDRESS = "#/answers?run=a&run=b&run=c"
CELLS = (
    "JSON.stringify([...document.querySelectorAll('.answers-grid tbody tr')]"
    ".map(row => [...row.querySelectorAll('td')].map(cell => cell.innerText)))"
)
KINDS = "[...document.querySelectorAll('.kinds a')].map(a => a.innerText)"
RIGHT = Score(1.0, "correct")
WRONG = Score(0.0, "incorrect")


def in_browser(
    folder: Path,
    runs: tuple[Run, ...],
    address: str,
    steps: Callable[[Tab], Coroutine[Any, Any, None]],
) -> None:
    file = folder / "page.html"
    write_page(runs, file, title="Prompts", progress=lambda _: None)

    async def opened(tab: Tab) -> None:
        await tab.open(f"{file.as_uri()}{address}")
        await steps(tab)
        kinds = (
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
            "Page.javascriptDialogOpening",
        )
        assert not [event for event in tab.events if event[0] in kinds]

    in_new_tab(opened)


def three_runs(folder: Path) -> tuple[Run, ...]:
    """Five items: all right, all wrong, b alone right, a without a score, and one more."""
    scores: dict[str, list[Any]] = {
        "a": [RIGHT, WRONG, WRONG, None, RIGHT],
        "b": [RIGHT, WRONG, RIGHT, RIGHT, WRONG],
        "c": [RIGHT, WRONG, WRONG, RIGHT, RIGHT],
    }
    runs = [
        make_run(folder, scores=scores[name], name=name, model=f"demo/{name}")
        for name in scores
    ]
    return tuple(
        rewrite(run, lambda row, place: row.update(answer=f"{name} says {place}"))  # noqa: B023
        for name, run in zip(scores, runs, strict=True)
    )


async def cells(tab: Tab) -> list[list[str]]:
    shown: list[list[str]] = json.loads(await tab.evaluate(CELLS))
    return shown


def test_items_that_differ_come_first_with_every_runs_answer(tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await until(tab, f"{CELLS}.includes('a says 2')")
        assert await tab.evaluate(KINDS) == [
            "Scored differently 2",
            "All wrong 1",
            "All right 1",
            "Without a score 1",
            "All 5",
        ]
        first, second = await cells(tab)
        assert [cell.split("\n") for cell in first] == [
            ["wrong", "a says 2"],
            ["right", "b says 2"],
            ["wrong", "c says 2"],
        ]
        assert [cell.split("\n")[0] for cell in second] == ["right", "wrong", "right"]
        heads = "[...document.querySelectorAll('.answers-grid thead th a')]"
        assert await tab.evaluate(f"{heads}.map(a => a.innerText)") == [
            f"demo/{name}" for name in "abc"
        ]
        await tab.evaluate("document.querySelectorAll('.kinds a')[3].click()")
        await until(tab, f"{CELLS}.includes('no score')")
        (unscored,) = await cells(tab)
        assert unscored[0].startswith("no score")
        await tab.evaluate("document.querySelectorAll('.answers-grid td a')[1].click()")
        await until(tab, "location.hash.startsWith('#/run/b/sample/')")
        await until(tab, "document.body.innerText.includes('b says 3')")

    in_browser(tmp_path, three_runs(tmp_path), ADDRESS, steps)


def test_the_board_leads_to_it_and_a_phone_has_no_wider_page(tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        link = "[...document.querySelectorAll('main a')].find(a => a.innerText === 'Answers side by side')"
        await until(tab, f"!!{link}")
        await tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=390,
            height=800,
            deviceScaleFactor=1,
            mobile=False,
        )
        await tab.evaluate(f"{link}.click()")
        await until(tab, f"{CELLS}.includes('c says 2')")
        assert await tab.evaluate("location.hash") == ADDRESS
        wider = "document.documentElement.scrollWidth > innerWidth"
        assert not await tab.evaluate(wider)

    in_browser(tmp_path, three_runs(tmp_path), "#/", steps)


def test_what_the_address_names_wrongly_is_said(tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await until(tab, "document.body.innerText.includes('at least two runs')")

    in_browser(tmp_path, three_runs(tmp_path), "#/answers?run=a&run=none&run=a", steps)


def test_hostile_answers_stay_text_and_pages_turn(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, scores=[score] * 30, name=name, model=f"demo/{name}")
        for name, score in (("a", RIGHT), ("b", WRONG))
    ]
    text = HOSTILE[0]
    runs[1] = rewrite(runs[1], lambda row, place: row.update(answer=text))

    async def steps(tab: Tab) -> None:
        await until(tab, f"{CELLS}.includes('wrong\\\\n')")
        assert len(await cells(tab)) == 25
        assert (
            await tab.evaluate("document.querySelectorAll('td script, td img').length")
            == 0
        )
        await tab.evaluate(
            "[...document.querySelectorAll('.paging button')].at(-1).click()"
        )
        await until(tab, "document.body.innerText.includes('26 to 30 of 30')")
        assert len(await cells(tab)) == 5

    in_browser(tmp_path, tuple(runs), "#/answers?run=a&run=b&from=x", steps)


def test_prompts_and_the_judges_reasons_are_there_and_hashes_are_not(
    own_folder: Path,
) -> None:
    rows = "".join(f"What is number {place}?,{place}\n" for place in range(4))
    (own_folder / "numbers.csv").write_text(f"question,reference\n{rows}")
    (own_folder / "plain.txt").write_text("{{ input }}\n")
    (own_folder / "polite.txt").write_text("Please be brief.\n{{ input }}\n")

    def reply(prompt: str) -> str:
        mark = re.search(r'mark="(\w+)"', prompt)
        if mark is None:
            return "brief" if "brief" in prompt else "long"
        verdict = "met" if "\nbrief\n" in prompt else "not met"
        criterion = {"reason": f"it is {verdict} as I see it", "class": verdict}
        return json.dumps({"check": mark[1], "c1": criterion})

    with serving(answer=reply) as server:
        done = typed(
            "run", "numbers.csv", "--prompt", "plain.txt", "--prompt", "polite.txt",
            "--model", "openai/m", "-M", f"base_url={server.url}", "--rubric", "Brief.",
            "--judge", "openai/judge", "-R", f"judge.base_url={server.url}",
            "--name", "r", "--quiet",
        )  # fmt: skip
        assert done.code == 0, done.text
    runs = tuple(open_run(f"runs/r-{name}") for name in ("plain", "polite"))
    ids = [row["id"] for row in runs[0].rows()]
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in ids)

    async def steps(tab: Tab) -> None:
        await until(tab, f"{CELLS}.includes('as I see it')")
        for row in await cells(tab):
            assert ["it is not met as I see it" in cell for cell in row] == [
                True,
                False,
            ]
            assert ["it is met as I see it" in cell for cell in row] == [False, True]
        body = await tab.evaluate("document.querySelector('.answers-grid').innerText")
        assert not any(name in body for name in ids)
        assert "Please be brief." not in body, "prompts are folded"
        await tab.evaluate("document.querySelectorAll('th details')[1].open = true")
        body = await tab.evaluate("document.querySelector('.answers-grid').innerText")
        assert "Please be brief.\n{{ input }}" in body

    in_browser(own_folder, runs, "#/answers?run=r-plain&run=r-polite", steps)
