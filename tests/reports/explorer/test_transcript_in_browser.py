"""The transcript of a trajectory in a real browser: steps, outline, keys, search, two side by side,
filters, and texts that try to act.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalwright import Run
from evalwright.reports.explorer.page import write_page
from support.browser import IN_BROWSER, Tab, in_new_tab, until
from support.command import ROOT
from support.hostile import HOSTILE
from support.trajectory_runs import (
    Acted,
    Call,
    Reply,
    bash,
    fixing,
    trajectory_run,
)

pytestmark = IN_BROWSER

AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"

MAIN = "(document.querySelector('main')?.innerText ?? '')"
STEPS = "document.querySelectorAll('.step').length"
CURRENT = "document.querySelector('.step.current')?.id ?? ''"
OUTLINE = "[...document.querySelectorAll('.outline-row')].map(e => e.innerText.split(/\\s+/).join(' '))"
SEARCH = "document.querySelector('.transcript-search input')"
COUNT = "document.querySelector('.transcript-search [role=status]')?.textContent ?? ''"
HIT = "document.querySelector('mark.current-hit')"
PAIRS = (
    "[...document.querySelectorAll('.step-pair .pair-words')].map(e => e.textContent)"
)
SAMPLE = "#/run/acting/sample/shell/fix-0/0"
LOOP = Acted([Reply("again", [bash("ls", "a")])] * 3, ended="messages", answer="")


def in_browser(
    folder: Path,
    runs: Sequence[Run],
    address: str,
    steps: Callable[[Tab], Coroutine[Any, Any, None]],
) -> None:
    file = folder / "page.html"
    write_page(runs, file, title="Runs", progress=lambda _: None)

    async def opened(tab: Tab) -> None:
        await set_width(tab, 1280)
        await tab.open(f"{file.as_uri()}{address}")
        await steps(tab)
        kinds = (
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
        )
        assert not [event for event in tab.events if event[0] in kinds]

    in_new_tab(opened)


async def set_width(tab: Tab, width: int) -> None:
    await tab.send(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )


async def go(tab: Tab, address: str) -> None:
    await tab.evaluate(f"location.hash = {json.dumps(address)}")


async def type_words(tab: Tab, words: str) -> None:
    await tab.evaluate(
        f"(() => {{ const box = {SEARCH}; box.value = {json.dumps(words)};"
        " box.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


async def is_in_view(tab: Tab, element: str) -> bool:
    box = f"{element}.getBoundingClientRect()"
    return bool(await tab.evaluate(f"{box}.top >= 0 && {box}.top < innerHeight"))


def test_a_transcript_has_its_steps_marks_and_sums(tmp_path: Path) -> None:
    run = trajectory_run(tmp_path, [fixing()])

    async def steps(tab: Tab) -> None:
        await until(tab, f"{STEPS} === 5")
        shown = await tab.evaluate(MAIN)
        for words in (
            "5 steps",
            "4,700 tokens",
            "Started again after 3 calls: The snapshot was damaged. Its replies until then had cost $0.020.",
            "sandbox: jail · 2 attempts",
            "900 tokens in, 40 out",
            "so far 3.2 s · 1,880 tokens · $0.0020",
            "exit code 1",
            "replayed",
            "in place of 4 turns",
            "The model submitted its answer.",
        ):
            assert words in shown, (words, shown)
        assert await tab.evaluate(OUTLINE) == [
            "1 bash 1.6 s",
            "2 bash ✗ failed 1.6 s",
            "3 read_file, write_file 2 s",
            "4 ≡ bash 1.6 s",
            "5 submit 1.6 s",
        ]
        # The reasoning and long arguments are folded; of a long result the ends are shown.
        assert "The tests say what is wrong" not in shown
        assert "line_30 = 30" not in shown
        assert "test_0.py::test_0 PASSED" in shown
        assert "test_399.py::test_399 PASSED" in shown
        assert "test_200.py" not in shown
        await tab.evaluate("document.querySelector('.output-gap button').click()")
        await until(tab, f"{MAIN}.includes('test_200.py')")
        await tab.evaluate(
            "[...document.querySelectorAll('summary')]"
            ".find(e => e.textContent.startsWith('Arguments')).click()"
        )
        await until(tab, f"{MAIN}.includes('line_30 = 30')")

    in_browser(tmp_path, [run], SAMPLE, steps)


def test_keys_and_links_lead_to_steps(tmp_path: Path) -> None:
    run = trajectory_run(tmp_path, [fixing(), LOOP])

    async def steps(tab: Tab) -> None:
        await until(tab, f"{CURRENT} === 'step-4'")
        assert await is_in_view(tab, "document.querySelector('#step-4')")
        await tab.press("j", 74, "j")
        await until(tab, f"{CURRENT} === 'step-5'")
        assert (await tab.evaluate("location.hash")).endswith("?step=5")
        for _ in range(2):
            await tab.press("k", 75, "k")
        await until(tab, f"{CURRENT} === 'step-3'")
        await tab.press("Home", 36)
        await until(tab, f"{CURRENT} === 'step-1'")
        await tab.press("e", 69, "e")
        await until(tab, f"{CURRENT} === 'step-2'")
        await tab.evaluate("document.querySelectorAll('.outline-row a')[4].click()")
        await until(tab, f"{CURRENT} === 'step-5'")
        # Arrows still lead from sample to sample, and a limit is said at the top too.
        await tab.press("ArrowRight", 39)
        await until(tab, f"{MAIN}.includes('the limit of messages')")
        assert (await tab.evaluate(MAIN)).count("limit of messages was reached") == 2
        await go(tab, f"{SAMPLE}?step=99")
        await until(tab, f"{STEPS} === 5")

    in_browser(tmp_path, [run], f"{SAMPLE}?step=4", steps)


def test_what_is_copied_is_the_command(tmp_path: Path) -> None:
    run = trajectory_run(tmp_path, [fixing()])

    async def steps(tab: Tab) -> None:
        await until(tab, f"{STEPS} === 5")
        await tab.evaluate(
            "navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }"
        )
        await tab.evaluate("document.querySelector('#step-2 .use-head button').click()")
        assert await until(tab, "window.copied") == "python3 -m pytest -q"

    in_browser(tmp_path, [run], SAMPLE, steps)


def test_a_search_counts_hits_and_leads_to_them(tmp_path: Path) -> None:
    long_result = "x" * 3_000_000 + " Needle " + "y" * 1_000_000
    acted = Acted(
        [
            Reply("", [bash("ls", "needle here")], reasoning="a needle in thought"),
            Reply("", [bash("cat big", long_result)]),
            Reply("no such word"),
        ],
        ended="answer",
    )
    run = trajectory_run(tmp_path, [acted])

    async def steps(tab: Tab) -> None:
        await until(tab, f"{STEPS} === 3")
        await type_words(tab, "needle")
        await until(tab, f"{COUNT} === '3 hits in 2 steps'")
        assert (await tab.evaluate(OUTLINE))[0].startswith("1 bash 2 hits")
        await tab.evaluate(f"{SEARCH}.blur()")
        await tab.press("n", 78, "n")
        # The first is in folded reasoning, which opens.
        await until(tab, f"{HIT}?.closest('.fold') != null")
        assert await tab.evaluate(COUNT) == "1 of 3 hits in 2 steps"
        await tab.press("n", 78, "n")
        await tab.press("n", 78, "n")
        await until(tab, f"{HIT}?.textContent === 'Needle'")
        assert await is_in_view(tab, HIT)
        # Of four million characters, one piece is laid out.
        assert await tab.evaluate(f"{MAIN}.length") < 70_000
        await tab.press("N", 78, "N")
        await until(tab, f"{COUNT}.startsWith('2 of 3')")
        await type_words(tab, "nothing such")
        await until(tab, f"{COUNT} === '1 hit in 1 step'")
        await type_words(tab, "absent")
        await until(tab, f"{COUNT} === 'No hits in the steps.'")

    in_browser(tmp_path, [run], SAMPLE, steps)


def test_a_long_trajectory_lays_out_few_steps(tmp_path: Path) -> None:
    many = Acted(
        [Reply(f"thought {n}", [bash(f"echo {n}", f"{n}")]) for n in range(10_000)],
        ended="messages",
    )
    run = trajectory_run(tmp_path, [many])

    async def steps(tab: Tab) -> None:
        await until(tab, "document.querySelector('#step-9000.current') !== null")
        assert await is_in_view(tab, "document.querySelector('#step-9000')")
        assert await tab.evaluate("document.querySelectorAll('*').length") < 3_000
        await until(tab, "document.querySelector('.outline a[aria-current]') !== null")
        before = await tab.evaluate(STEPS)
        await tab.evaluate("document.querySelector('.more-steps button').click()")
        await until(tab, f"{STEPS} > {before}")
        await tab.press("End", 35)
        await until(tab, f"{CURRENT} === 'step-10000'")
        assert await tab.evaluate(STEPS) <= before
        await type_words(tab, '"thought 77"')
        await until(tab, f"{COUNT} === '111 hits in 111 steps'")

    in_browser(tmp_path, [run], f"{SAMPLE}?step=9000", steps)


def test_two_trajectories_are_aligned(tmp_path: Path) -> None:
    other = Acted(
        [*fixing(first="ls -la").replies[:3], *fixing().replies[4:]], answer="done"
    )
    a = trajectory_run(tmp_path, [fixing()])
    b = trajectory_run(tmp_path, [other], name="other")

    async def steps(tab: Tab) -> None:
        await until(tab, f"{STEPS} === 5")
        await tab.evaluate(
            "[...document.querySelectorAll('a')].find(e => e.textContent === 'step by step').click()"
        )
        await until(tab, f"{PAIRS}.length === 5")
        assert await tab.evaluate(PAIRS) == [
            "differs",
            "the same",
            "the same",
            "only in A",
            "the same",
        ]
        assert "they part at step 1" in await tab.evaluate(MAIN)
        await tab.press("j", 74, "j")
        await tab.press("j", 74, "j")
        await until(
            tab, "document.querySelector('.step-pair.current')?.id === 'pair-4'"
        )
        await tab.evaluate("document.querySelector('#pair-4 .fold summary').click()")
        await until(tab, "document.querySelector('#pair-4 .step') !== null")
        await tab.evaluate("document.querySelector('#pair-5 .pair-b a').click()")
        await until(tab, f"{CURRENT} === 'step-4'")
        await go(tab, "#/steps/acting/0/absent/0/shell/fix-0")
        await until(tab, f"{MAIN}.includes('no run called absent')")
        await go(tab, "#/steps/acting/0/other/7/shell/fix-0")
        await until(tab, f"{MAIN}.includes('does not have this sample')")
        await go(tab, "#/compare/acting/other?task=shell&id=fix-0&show=all")
        await until(tab, f"{MAIN}.includes('Both transcripts, step by step')")

    in_browser(tmp_path, [a, b], SAMPLE, steps)


def test_many_equal_steps_share_a_line(tmp_path: Path) -> None:
    replies = [Reply("", [bash(f"echo {n}", "x")]) for n in range(20)]
    a = trajectory_run(tmp_path, [Acted([*replies, Reply("a")])])
    b = trajectory_run(tmp_path, [Acted([*replies, Reply("b")])], name="other")

    async def steps(tab: Tab) -> None:
        await until(tab, f"{PAIRS}.length === 3")
        assert await tab.evaluate(PAIRS) == ["the same", "the same", "differs"]
        await tab.evaluate("document.querySelector('.pair-fold button').click()")
        await until(tab, f"{PAIRS}.length === 21")

    in_browser(tmp_path, [a, b], "#/steps/acting/0/other/0/shell/fix-0", steps)


def test_samples_are_filtered_by_what_models_did(tmp_path: Path) -> None:
    reading = Acted([Reply("", [Call("read_file", {"path": "a"}, "x")]), Reply("y")])
    run = trajectory_run(tmp_path, [fixing(), LOOP, reading])
    status = "document.querySelector('.status')?.textContent ?? ''"
    tools = (
        "[...document.querySelectorAll('.facet')]"
        ".find(e => e.innerText.startsWith('Tools used')).innerText.split(/\\s+/).join(' ')"
    )

    async def steps(tab: Tab) -> None:
        await until(tab, f"{status} === '3 samples'")
        shown = await tab.evaluate(tools)
        assert "bash 2" in shown
        assert "read_file 2" in shown
        assert "submit 1" in shown
        for query, matching in (
            ("in.tools=read_file", 2),
            ("in.tools=submit", 1),
            ("in.failed_tools=bash", 1),
            ("in.failed_tools=", 2),
            ("in.ended=messages", 1),
            ("range.steps=3..5", 2),
            ("in.tools=bash&in.ended=messages", 1),
        ):
            await go(tab, f"#/run/acting/samples?{query}")
            await until(tab, f"{status}.startsWith('{matching} of 3')")
        await go(tab, "#/run/acting/samples?in.tools=absent")
        await until(tab, f"{status}.startsWith('0 of 3')")

    in_browser(tmp_path, [run], "#/run/acting/samples", steps)


@pytest.mark.parametrize("width", [1440, 390])
def test_hostile_texts_stay_texts(tmp_path: Path, width: int) -> None:
    replies = [
        Reply(
            text,
            [
                Call(text, {text: text}, text, is_error=True),
                Call("bash", text, f"{text}\n[exit code 2]"),
            ],
            reasoning=text,
        )
        for text in HOSTILE
    ]
    last = "</script><script>document.title='hacked'</script>"
    marks = {
        "started_anew": [{"after_calls": 1, "why": last, "dollars": None}],
        "compacted": [{"step": n, "turns": 2, "summary": last} for n in range(3)],
        "sandbox": {"backend": last},
    }
    acted = Acted([*replies, Reply(last)], ended=last, answer=last, strategy=marks)
    run = trajectory_run(tmp_path, [acted])
    other = trajectory_run(tmp_path, [acted, LOOP], name="other")

    async def steps(tab: Tab) -> None:
        await set_width(tab, width)
        for address in (SAMPLE, "#/steps/acting/0/other/0/shell/fix-0"):
            await go(tab, address)
            await until(tab, f"{MAIN}.includes('Ended by')")
            await tab.evaluate(
                "document.querySelectorAll('main details').forEach(d => d.open = true)"
            )
            await asyncio.sleep(0.3)
            assert "hacked" not in await tab.evaluate("document.title")
            for forbidden in ("script", "img", "svg", "h1 ~ h1", "style"):
                found = f"document.querySelectorAll('main {forbidden}').length"
                assert await tab.evaluate(found) == 0, forbidden
            assert await tab.evaluate(
                "document.documentElement.scrollWidth <= innerWidth"
            )
        await go(tab, "#/run/acting/samples")
        await until(tab, f"{MAIN}.includes('Tools used')")
        assert "hacked" not in await tab.evaluate("document.title")

    in_browser(tmp_path, [run, other], SAMPLE, steps)


RUN_AXE = (
    "axe.run(document, {resultTypes: ['violations']}).then(done => JSON.stringify("
    "done.violations.filter(fault => ['serious', 'critical'].includes(fault.impact))"
    ".map(fault => [fault.id, fault.nodes.map(node => node.html.slice(0, 200))])))"
)


@pytest.mark.skipif(
    not AXE.is_file(), reason="web/node_modules is absent: npm install there brings axe"
)
def test_a_transcript_can_be_heard_and_read_in_both_themes(tmp_path: Path) -> None:
    run = trajectory_run(tmp_path, [fixing(), LOOP])
    other = trajectory_run(tmp_path, [fixing(first="pwd"), LOOP], name="other")

    async def steps(tab: Tab) -> None:
        await tab.evaluate(AXE.read_text(encoding="utf-8") + ";0")
        faults = {}
        for theme in ("light", "dark"):
            await tab.send(
                "Emulation.setEmulatedMedia",
                features=[{"name": "prefers-color-scheme", "value": theme}],
            )
            for address, shown in (
                (SAMPLE, "#step-5"),
                ("#/steps/acting/0/other/0/shell/fix-0", "#pair-5"),
            ):
                await go(tab, address)
                await until(tab, f"document.querySelector('{shown}') !== null")
                await tab.evaluate(
                    "document.querySelectorAll('main details').forEach(d => d.open = true)"
                )
                await asyncio.sleep(0.1)
                reply = await tab.send(
                    "Runtime.evaluate",
                    expression=RUN_AXE,
                    awaitPromise=True,
                    returnByValue=True,
                )
                if (fault := json.loads(reply["result"]["value"])) != []:
                    faults[theme, address] = fault
        assert faults == {}

    in_browser(tmp_path, [run, other], SAMPLE, steps)
