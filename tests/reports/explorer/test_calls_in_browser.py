"""Calls of tools and their results in the explorer and in `runs samples`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalwright.reports.explorer.page import write_page
from evalwright.runs.reader import open_run
from support.browser import IN_BROWSER, Tab, in_new_tab, until
from support.calling_runs import HOSTILE_TEXT, calling_run
from support.typed import typed

CALLS = "[...document.querySelectorAll('.use-head')].map(one => one.innerText)"


@pytest.mark.usefixtures("own_folder")
def test_calls_results_and_tools_are_in_the_terminal() -> None:
    run = calling_run(Path.cwd())
    done = typed("runs", "samples", str(run.folder), "tide")
    assert done.code == 0, done.text
    for line in (
        "Transcript: 3 steps",
        "Call of look_up\n    tide",
        "Result of look_up (",
        "Result of look_up (failed",
        "Call of look_up\n    ebb",
        "The call was not carried out.",
        "the limit of steps was reached",
        "look_up: Look a word up.",
        'Expected\n    look_up({"word": "ebb"})',
        "3, 2 calls of tools, 1 failed",
    ):
        assert line in done.out, done.out
    assert "\x1b" not in done.out
    table = typed("runs", "samples", str(run.folder), "--where", "answer~ebb")
    assert table.out.count('look_up({"word": "ebb"})') == 2, table.out
    assert "Expected" in table.out
    for condition in ("target~ebb", "steps>2", "failed_calls=1", "ended=max_steps"):
        found = typed("runs", "samples", str(run.folder), "--where", condition)
        assert "tide" in found.out, condition
    found = typed("runs", "samples", str(run.folder), "--where", "steps>3")
    assert "No samples match" in found.out


@pytest.mark.usefixtures("own_folder")
def test_an_analysis_shows_calls_and_what_was_expected() -> None:
    run = calling_run(Path.cwd())
    done = typed("runs", "show", str(run.folder), "--analysis")
    assert 'Target: look_up({"word": "ebb"})' in done.out, done.out
    assert 'Answer: look_up({"word": "ebb"})' in done.out, done.out


@pytest.mark.usefixtures("own_folder")
class TestInBrowser:
    pytestmark = IN_BROWSER

    def test_a_conversation_with_calls(self) -> None:
        run = calling_run(Path.cwd())
        file = Path("page.html").resolve()
        write_page([run], file, title="Calls", progress=lambda _: None)
        page = file.as_uri() + "#/run/calling/sample/calling/tide/0"

        async def steps(tab: Tab) -> None:
            await tab.open(page)
            await until(tab, f"{CALLS}.length === 3")
            title = await tab.evaluate("document.title")
            assert "hacked" not in title
            calls = await tab.evaluate(CALLS)
            words = [" ".join(call.split()) for call in calls]
            assert words[0].startswith("look_up tide Copy")
            assert words[1].endswith("failed")
            assert words[2].endswith("not carried out")
            shown = await tab.evaluate("document.querySelector('main').innerText")
            assert HOSTILE_TEXT.split("\n")[0] in shown
            assert (
                await tab.evaluate("document.querySelectorAll('main script').length")
                == 0
            )
            await tab.evaluate(
                "[...document.querySelectorAll('summary')]"
                ".find(one => one.innerText.startsWith('Tools offered')).click()"
            )
            await until(tab, "document.body.innerText.includes('Look a word up.')")
            assert await tab.evaluate("document.title") == title

        in_new_tab(steps)

    def test_two_runs_side_by_side_show_calls_the_question_and_what_was_expected(
        self,
    ) -> None:
        run = calling_run(Path.cwd())
        copy = Path("runs/copy")
        shutil.copytree(run.folder, copy)
        file = Path("page.html").resolve()
        write_page([run, open_run(copy)], file, title="Calls", progress=lambda _: None)

        async def steps(tab: Tab) -> None:
            await tab.open(
                file.as_uri() + "#/compare/calling/copy?task=calling&id=tide"
            )
            await until(tab, "document.querySelector('.answer-b') !== null")
            text = "document.querySelector('.pair-of-samples').innerText"
            shown = await tab.evaluate(text)
            assert shown.count('look_up({"word": "ebb"})') == 3, shown
            assert "Expected" in shown
            assert "What is a tide?" in shown
            assert "(empty)" not in shown
            await tab.open(file.as_uri() + "#/run/calling/samples")
            await until(tab, "document.body.innerText.includes('What is a tide?')")

        in_new_tab(steps)
