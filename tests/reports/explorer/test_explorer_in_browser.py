"""The explorer in a real browser, opened as a file: hostile texts do nothing, keys are enough,
and no serious fault of accessibility.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evalwright import open_run
from evalwright.analysis.comparison import compare_runs
from evalwright.core.errors import RunError
from evalwright.core.samples import Score
from evalwright.reports.explorer.page import write_page
from evalwright.runs.reader import Run
from support.browser import IN_BROWSER, Tab, in_new_tab, until
from support.command import ROOT
from support.hostile import HOSTILE
from support.runs import edited, make_run, rewrite

AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = IN_BROWSER

REASON = "The answer names Lyon; the capital of France is Paris."
END = "</script></style></textarea><!--</template>]]>"
TRAPS = "\n".join((*HOSTILE, END, "السعر 12 \u202eهنا\u2066 שלום", "ไทย မြန်မာ 中文"))
LINE = "<b>&amp;" + "0123456789" * 100_000
STACK = "z" + "\u0301" * 10_000 + "!"


def page_of(folder: Path, *runs: Run) -> str:
    file = folder / "page.html"
    write_page(runs, file, title="Two models", progress=lambda _: None)
    return file.as_uri()


async def go(tab: Tab, address: str) -> None:
    await tab.evaluate(f"location.hash = {json.dumps(address)}")
    await until(tab, "!!document.querySelector('main h1')")


def complaints(tab: Tab) -> list[Any]:
    """What the browser told of errors, dialogs, and anything fetched but the page and what it
    holds.
    """
    kinds = (
        "Runtime.exceptionThrown",
        "Runtime.consoleAPICalled",
        "Log.entryAdded",
        "Page.javascriptDialogOpening",
        "Network.loadingFailed",
    )
    told = [event for event in tab.events if event[0] in kinds]
    urls = [
        told["request"]["url"]
        for method, told in tab.events
        if method == "Network.requestWillBeSent"
    ]
    return [
        *told,
        *(
            url
            for url in urls
            if not url.startswith(("file:", "data:", "blob:")) and url != "about:blank"
        ),
    ]


# -- hostile samples
# -----------------------------------------------------------------------------------------------------


def hostile(row: dict[str, Any], place: int) -> None:
    """Every field of the second sample holds what strangers may write, the third is very long,
    the first is as it was.
    """
    if place == 0:
        return
    text = {1: TRAPS, 2: LINE, 3: STACK}[place]
    turn = [
        "user",
        [
            text,
            {
                "image": "a" * 64,
                "media_type": text[:90],
                "source": "javascript:alert(1)",
            },
        ],
    ]
    judged = {
        "role": text[:90],
        "request": {"generate": [turn]},
        "response": {"text": text, "reasoning": text},
    }
    row |= {
        "id": text[:200] + str(place), "input": text, "targets": [text, text], "answer": text, "reasoning": text, "cluster": text[:90],
        "prompt": [["system", text], turn], "passages": [{"id": text[:90], "text": text}],
        "metadata": {text[:90]: text[:2000], "language": text[:90]},
        "responses": [{"text": text + " ", "reasoning": text, "finish_reason": text[:90], "model": text[:90], "tokens": [[text[:90], -0.1]]}],
        "scores": {text[:90]: {"value": 0.0, "label": text[:90], "explanation": text, "parts": {text[:90]: 1.0}}},
        "score_failures": {"other": {"kind": text[:90], "party": text[:90], "message": text, "attempts": 2}},
        "exchanges": {text[:90]: [judged]},
    }  # fmt: skip


FRAME = "JSON.stringify([...document.querySelectorAll('.shell, .runbar, .way')].map(e => [e.getBoundingClientRect().toJSON()]))"
CENSUS = (
    "[...document.querySelectorAll('body *')].filter(e => !(e instanceof HTMLScriptElement && e.type === 'application/x-evalwright')"
    " && (['SCRIPT','IFRAME','OBJECT','EMBED','FORM','LINK','META','BASE','STYLE','TEXTAREA','TEMPLATE'].includes(e.tagName)"
    " || [...e.attributes].some(a => a.name.startsWith('on') || (['href','src'].includes(a.name)"
    " && !a.value.startsWith('#')))) && !e.closest('head')).length"
)
LOOSE = (
    "(() => { const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); while (walk.nextNode()) {"
    " const at = walk.currentNode; if (!at.parentElement.closest('script, style, noscript, .special')"
    " && /[\\0-\\x08\\x1b\\x80-\\x9f\\u202a-\\u202e\\u2066-\\u2069]|\\p{Surrogate}|\\p{Mn}{9}/u.test(at.data))"
    " found.push([at.parentElement.outerHTML.slice(0, 99)]); } return found; })()"
)
TEXTS = "[...document.querySelectorAll('main .said')].map(e => e.textContent)"


def test_a_hostile_sample_is_text_and_nothing_else(tmp_path: Path) -> None:
    """Nothing runs, nothing leaves its box, the rest of the page stands where it stood, and the
    text is what was recorded.
    """
    run = rewrite(
        make_run(tmp_path, scores=[1, 0, 0, 0], label="<script>alert(1)</script>"),
        hostile,
    )
    page = page_of(tmp_path, run)

    async def steps(tab: Tab) -> None:
        await tab.open(page)
        await tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=1280,
            height=800,
            deviceScaleFactor=1,
            mobile=False,
        )
        await go(tab, f"#/run/{run.name}/samples")
        await until(tab, "document.querySelectorAll('.table-rows .row').length === 4")
        census = await tab.evaluate(CENSUS)
        links = await tab.evaluate(
            "[...document.querySelectorAll('.table-rows a')].map(a => a.getAttribute('href'))"
        )
        frame = ""
        for place, (link, text) in enumerate(
            zip(links, ("an answer", TRAPS, LINE, STACK), strict=True)
        ):
            await go(tab, link)
            await until(tab, "document.querySelectorAll('main .part').length > 3")
            await tab.evaluate(
                "document.querySelectorAll('main details').forEach(d => d.open = true)"
            )
            await asyncio.sleep(0.2)
            # The frame above the sample stands where it stands for a harmless one.
            now = await tab.evaluate(FRAME)
            if not place:
                frame = now
            assert now == frame
            assert await tab.evaluate(
                "document.documentElement.scrollWidth <= innerWidth"
            )
            assert await tab.evaluate("[...document.querySelectorAll('main h2')].every(e => { e.scrollIntoView({block: 'center'}); "
                                      "const r = e.getBoundingClientRect(); return e.contains(document.elementFromPoint(r.x + 5, r.y + r.height / 2)); })")  # fmt: skip
            assert await tab.evaluate(CENSUS) == census
            assert await tab.evaluate(LOOSE) == []
            if place:
                texts = await tab.evaluate(TEXTS)
                start = text if len(text) < 4000 else text[:4000]
                assert sum(one == start for one in map(surrogates, texts)) >= 12
            assert (
                await tab.evaluate(
                    "document.querySelectorAll('main mark, main img').length"
                )
                == 0
            )
        # The whole of the line, a step at a time.
        await go(tab, links[2])
        last = "[...document.querySelectorAll('main section')].find(e => e.innerText.startsWith('Answer')).querySelector('.said-box:last-of-type')"
        await until(tab, f"!!{last}")
        for _ in range(3):
            await tab.evaluate(
                f"[...{last}.querySelectorAll('button')].find(b => b.innerText.startsWith('Show'))?.click()"
            )
            await asyncio.sleep(0.2)
        assert await until(
            tab, f"{last}.querySelector('.said').textContent.length === {len(LINE)}"
        )
        assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert await tab.evaluate("!/\\p{C}/u.test(document.title)")
        assert not complaints(tab)

    in_new_tab(steps)


def surrogates(text: str) -> str:
    """A text from the browser's protocol, where half of a pair may come as a replacement."""
    return text.replace("\ufffd", "\udc80")


# -- keys alone
# ----------------------------------------------------------------------------------------------------------

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowDown": 40}


async def press(tab: Tab, *keys: str) -> None:
    for key in keys:
        await tab.press(
            key,
            KEYS.get(key) or ord(key.upper()),
            {"Enter": "\r"}.get(key, key if len(key) == 1 else ""),
        )


async def tab_to(tab: Tab, words: str) -> None:
    """Press Tab until what has the focus says these words."""
    for _ in range(90):
        if words in (
            await tab.evaluate(
                "document.activeElement.matches('a, button, summary') && document.activeElement.innerText"
            )
            or ""
        ):
            return
        await press(tab, "Tab")
    raise AssertionError(f"'{words}' is not reached with Tab")


def judged_runs(folder: Path) -> tuple[Run, Run]:
    """Two models on eight items; the judge's words to the second are recorded."""
    right = Score(1.0, "correct", "It names Paris.")
    wrong = Score(0.0, "incorrect", REASON)
    small = make_run(
        folder,
        scores=[right, wrong, wrong, right, None, wrong, right, right],
        model="demo/small",
        domains=["a", "b"],
        text="Lyon",
    )
    large = make_run(
        folder,
        scores=[right, wrong, right, right, right, wrong, right, right],
        model="demo/large",
        domains=["a", "b"],
        text="Paris",
    )

    def exchange(row: dict[str, Any], place: int) -> None:
        turns = [
            ["system", "Judge the answer."],
            ["user", f"Is it right? Item {place}"],
        ]
        row["exchanges"] = {
            "score": [
                {
                    "role": "judge",
                    "request": {"generate": turns},
                    "response": {"text": f"INCORRECT. {REASON}"},
                }
            ]
        }

    return rewrite(small, exchange), large


def test_keys_alone_lead_to_the_judges_reason_and_a_link(tmp_path: Path) -> None:
    """From the first page to a wrong answer of one model that the other got right, the judge's
    words, and the copied link.
    """
    page = page_of(tmp_path, *judged_runs(tmp_path))

    async def steps(tab: Tab) -> None:
        await tab.open(page)
        await tab.send(
            "Browser.grantPermissions",
            permissions=["clipboardReadWrite", "clipboardSanitizedWrite"],
            **tab.person,
        )
        await until(tab, "document.querySelectorAll('main a').length > 1")
        await tab_to(tab, "Compare")
        await press(tab, "Enter")
        await until(
            tab,
            "location.hash.startsWith('#/compare/') && !!document.querySelector('.pair-of-samples .answer')",
        )
        lost = (
            "B lost"
            if await tab.evaluate("decodeURIComponent(location.hash).endsWith('small')")
            else "A lost"
        )
        await tab_to(tab, lost)
        await press(tab, "Enter")
        await until(
            tab,
            f"document.querySelector('.pair-of-samples')?.innerText?.includes({REASON!r})",
        )
        await tab_to(tab, "The whole sample")
        if lost == "B lost":
            await press(tab, "Tab")
            await tab_to(tab, "The whole sample")
        await press(tab, "Enter")
        await until(tab, "location.hash.includes('/sample/factual/item-2/0')")
        await until(
            tab, f"document.querySelector('main')?.innerText?.includes({REASON!r})"
        )
        await tab_to(tab, "was sent and replied")
        await press(tab, "Enter")
        await until(
            tab,
            "document.querySelector('main')?.innerText?.includes('Is it right? Item 2')",
        )
        assert await tab.evaluate(
            f"document.querySelector('main').innerText.includes('INCORRECT. ' + {REASON!r})"
        )
        await press(tab, "c")
        await until(
            tab,
            "document.querySelector('[role=status].message')?.innerText === 'Link copied.'",
        )
        address = await tab.evaluate("location.href")
        pasted = await tab.send(
            "Runtime.evaluate",
            expression="navigator.clipboard.readText()",
            awaitPromise=True,
            returnByValue=True,
        )
        assert pasted["result"]["value"] == address
        # The link holds after a reload, and the list is one key away, with the sample marked in it.
        await tab.evaluate("window.before = 1, location.reload()")
        await until(
            tab,
            f"!window.before && document.querySelector('main')?.innerText?.includes({REASON!r})",
        )
        await press(tab, "u")
        await until(
            tab,
            "document.querySelector('.row.active')?.innerText?.includes('Question 2')",
        )
        await press(tab, "/")
        await until(tab, "document.activeElement?.tagName === 'INPUT'")
        await press(tab, *"item-5")
        await until(
            tab, "document.querySelector('.status')?.innerText?.startsWith('1 of 8')"
        )
        await press(tab, "Enter", "Enter")
        await until(tab, "location.hash.includes('/sample/factual/item-5/0')")
        await press(tab, "?")
        await until(
            tab,
            "document.querySelector('dialog[open]')?.innerText?.includes('Next sample')",
        )
        await press(tab, "Escape", "j")
        await until(tab, "!document.querySelector('dialog')")
        assert not complaints(tab)

    in_new_tab(steps)


# -- for those who hear the page, and contrast
# ---------------------------------------------------------------------------

RUN_AXE = (
    "axe.run(document, {{resultTypes: ['violations'], {only}}}).then(found => JSON.stringify(found.violations"
    ".filter(one => ['serious', 'critical'].includes(one.impact)).map(one => [one.id, one.nodes.map(node => node.html.slice(0, 200))])))"
)


def test_two_runs_that_compare_refuses_say_why_and_stay_side_by_side(
    tmp_path: Path,
) -> None:
    small, large = judged_runs(tmp_path)
    with edited(small.folder) as run:
        run["tasks"][0]["scorers"][0]["name"] = "another"
    small = open_run(small.folder)
    with pytest.raises(RunError, match="was scored by") as refused:
        compare_runs(large, small)  # the better one is A
    page = page_of(tmp_path, small, large)

    async def steps(tab: Tab) -> None:
        await tab.open(page)
        await go(tab, f"#/compare/{small.name}/{large.name}")
        await until(tab, "!!document.querySelector('.pair-of-samples .answer')")
        said = await tab.evaluate(
            "document.querySelector('main .note')?.innerText ?? ''"
        )
        assert str(refused.value).replace("`", "") in said

    in_new_tab(steps)


@pytest.mark.skipif(
    not AXE.is_file(), reason="web/node_modules is absent: npm install there brings axe"
)
def test_no_serious_fault_in_either_theme(tmp_path: Path) -> None:
    """axe on every page: all rules in the light theme, contrast in the dark one."""
    small, large = judged_runs(tmp_path)
    page = page_of(tmp_path, small, large)

    async def steps(tab: Tab) -> None:
        await tab.open(page)
        await tab.evaluate(AXE.read_text(encoding="utf-8") + ";0")
        pages = {
            "#/": "main table",
            f"#/run/{small.name}": "main table",
            f"#/run/{small.name}/samples?q=lyon": ".table-rows .row",
            f"#/run/{small.name}/sample/factual/item-1/0": "main .score",
            f"#/run/{small.name}/sample/factual/item-4/0": "main .failure",
            f"#/compare/{small.name}/{large.name}": ".pair-of-samples .answer",
            f"#/answers?run={small.name}&run={large.name}&show=all": ".answers-grid td",
            "#/plots": "main h2",
            "#/labels": "main h1",
        }
        faults = {}
        for theme in ("light", "dark"):
            await tab.send(
                "Emulation.setEmulatedMedia",
                features=[{"name": "prefers-color-scheme", "value": theme}],
            )
            only = "" if theme == "light" else "runOnly: ['color-contrast']"
            for address, there in pages.items():
                await go(tab, address)
                await until(tab, f"!!document.querySelector({there!r})")
                await tab.evaluate(
                    "document.querySelectorAll('main details').forEach(d => d.open = true)"
                )
                await asyncio.sleep(0.1)
                found = await tab.send(
                    "Runtime.evaluate",
                    expression=RUN_AXE.format(only=only),
                    awaitPromise=True,
                    returnByValue=True,
                )
                if serious := json.loads(found["result"]["value"]):
                    faults[theme, address] = serious
        assert not faults, json.dumps(
            [[*where, *what] for where, what in faults.items()], indent=1
        )

    in_new_tab(steps)
