"""Sentences of a summary in the explorer: each judge's verdict, and where the source says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright import open_model, open_run
from evalwright.reports.explorer.page import write_page
from evalwright.runs.reader import Run
from support.browser import IN_BROWSER, Tab, in_new_tab, until
from support.hostile import HOSTILE
from support.openai_server import serving
from support.overlap_judge import OverlapModel
from support.panel_runs import judge_all, summaries_task
from support.runs import rewrite
from support.verdict_judges import citing

pytestmark = [*IN_BROWSER, pytest.mark.usefixtures("own_folder")]

SENTENCES = "[...document.querySelectorAll('.sentence-text')]"
MARKS = (
    "[...document.querySelectorAll('mark.supports, mark.contradicts, mark.nearest')]"
    ".map(mark => [mark.className, mark.innerText])"
)


def evidence_run() -> Run:
    with serving(answer=citing) as server:
        written = open_model("openai/judge", {"base_url": server.url})
        panel = [OverlapModel("strict"), written]
        return judge_all(panel, "evidence", summaries_task(evidence=True))


def address_of(run: Run, hash_text: str) -> str:
    file = Path("page.html").resolve()
    write_page([run], file, title="Panel", progress=lambda _: None)
    return file.as_uri() + hash_text


def test_a_selected_sentence_is_marked_in_the_article() -> None:
    page = address_of(evidence_run(), "#/run/evidence/sample/summaries/2/0")

    async def steps(tab: Tab) -> None:
        await tab.open(page)
        await until(tab, f"{SENTENCES}.length === 3")
        texts = await tab.evaluate(f"{SENTENCES}.map(one => one.innerText)")
        assert texts[0].startswith("The Harrowmere bridge reopened on Tuesday.")
        assert "judge supported" in texts[0]
        assert "judge-2 not supported 0.00" in " ".join(texts[2].split())
        assert await tab.evaluate(MARKS) == []
        await tab.evaluate(f"{SENTENCES}[0].click()")
        await until(tab, f"{MARKS}.length > 0")
        marks = await tab.evaluate(MARKS)
        assert {kind for kind, _ in marks} == {"supports"}
        assert (
            "".join(text for _, text in marks)
            == "The Harrowmere bridge reopened on Tuesday."
        )
        await tab.evaluate(f"{SENTENCES}[2].click()")
        await until(tab, f"{MARKS}.some(mark => mark[0].includes('contradicts'))")
        await tab.evaluate(f"{SENTENCES}[2].click()")
        await until(tab, f"{MARKS}.length === 0")

    in_new_tab(steps)


def test_answers_on_which_judges_differ_are_filtered() -> None:
    both = judge_all(
        {"panel": [OverlapModel("strict"), "scripted/hash"], "combine": "mean"}, "two"
    )
    differ = [
        row["id"]
        for row in both.rows()
        if row["scores"]["consistency"]["parts"]["judges differ"]
    ]
    assert 0 < len(differ) < 3
    page = address_of(both, "#/run/two/samples?in.judges=differ")

    async def steps(tab: Tab) -> None:
        await tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=1280,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        await tab.open(page)
        await until(
            tab,
            f"document.querySelectorAll('.table-rows .row').length === {len(differ)}",
        )
        facets = await tab.evaluate(
            "[...document.querySelectorAll('.facet summary')].map(one => one.textContent)"
        )
        assert any("Judges" in text for text in facets)

    in_new_tab(steps)


def test_hostile_sentences_show_nothing_and_do_nothing() -> None:
    run = evidence_run()

    def forged(row: dict[str, Any], place: int) -> None:
        row["scores"]["consistency"]["sentences"] = [
            {"span": [10**9, 5], "verdicts": {}},
            {"span": "all", "verdicts": []},
            "text",
            {
                "span": [0, 20],
                "verdicts": {
                    HOSTILE[0]: {
                        "supported": "yes",
                        "probability": "0.5",
                        "reason": "\n".join(HOSTILE),
                        "relation": "</mark>",
                        "evidence": [
                            {"passage": 99, "span": [0, 5]},
                            {"passage": 0, "span": [5, 10**12]},
                            {"passage": 0, "span": [-4, 3]},
                            {"passage": 0, "span": [0, 5]},
                            None,
                        ],
                        "refused": HOSTILE[1],
                    }
                },
            },
        ]

    rewrite(run, forged)
    run = open_run(run.folder)
    page = address_of(run, "#/run/evidence/sample/summaries/0/0")

    async def steps(tab: Tab) -> None:
        await tab.open(page)
        await until(tab, f"{SENTENCES}.length === 1")
        await tab.evaluate(f"{SENTENCES}[0].click()")
        await until(tab, f"{MARKS}.length === 1")
        assert [kind for kind, _ in await tab.evaluate(MARKS)] == ["nearest"]
        thrown = [
            event
            for event in tab.events
            if event[0] in ("Runtime.exceptionThrown", "Page.javascriptDialogOpening")
        ]
        assert not thrown, json.dumps(thrown)[:500]

    in_new_tab(steps)
