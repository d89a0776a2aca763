"""What the page reads is what was recorded: every record, filter and search of the page against
the same made in Python.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from evalwright.reports.explorer.following import Follower
from evalwright.reports.explorer.page import write_page, write_site
from evalwright.reports.explorer.server import Server
from evalwright.runs.reader import Run
from evalwright.runs.writer import RunWriter
from reports.explorer.test_following import ABOUT, record
from support.browser import IN_BROWSER, Tab, in_new_tab
from support.hostile import HOSTILE
from support.runs import make_run, rewrite

pytestmark = IN_BROWSER

QUESTION = (
    "What is the capital of the country whose king wrote ไทย 中文 \U0001f600? " * 2
)
TEXTS = (
    *HOSTILE, "\x01e\x010", "\ud800 alone", "line\u2028separator\r\n\t\x00", "a \"quoted phrase\" here", "x" * 100_000, "\x010" + QUESTION,
    QUESTION + QUESTION, "straße STRASSE", "e\u0301" * 50, "",
)  # fmt: skip


def odd_run(folder: Path) -> Run:
    """A run whose records hold what is hard to carry over."""

    def change(row: dict[str, Any], place: int) -> None:
        text = TEXTS[place % len(TEXTS)]
        row |= {
            "input": QUESTION,
            "answer": text,
            "reasoning": QUESTION + text,
            "prompt": [["user", f"Q: {QUESTION}\n{text}"]],
        }
        row["responses"] = [
            {"text": text + QUESTION, "usage": {"output_tokens": place}}
        ]
        row["metadata"] = {
            "__proto__": text,
            "constructor": [text, {"deep": text}],
            "language": ["en", "th", ""][place % 3],
            "n": place,
        }
        row["targets"] = [text, str(place)]

    return rewrite(
        make_run(folder, scores=[float(place % 2) for place in range(300)], name="odd"),
        change,
    )


async def ask(tab: Tab, expression: str) -> Any:
    """What a promise of the page comes to, with the page's data as `data`."""
    code = f"(async () => {{ while (!window.explorerData) await new Promise((go) => setTimeout(go, 10)); const data = window.explorerData; {expression} }})()"
    found = await tab.send(
        "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
    )
    assert "exceptionDetails" not in found, found
    return json.loads(found["result"]["value"])


ALL = "const all = run.filter({categories: {}, numbers: {}});"
RECORDS = "const run = await data.run('0'); const rows = []; for (let i = 0; i < run.size; i++) rows.push((await run.sample(i)).raw); return JSON.stringify(rows);"
CHOSEN = "const run = await data.run('0'); return JSON.stringify(Array.from(run.filter({categories: {language: ['th', '']}, numbers: {n: [50, 200], score: [1, 1]}})));"
SORTED = f"const run = await data.run('0'); {ALL} return JSON.stringify(Array.from(run.sort(all, 'tokens', true)));"


def searched(query: str) -> str:
    return (
        f"const run = await data.run('0'); {ALL} const hits = []; await run.search({json.dumps(query)}, all, (found) => hits.push(...found), "
        "new AbortController().signal); return JSON.stringify(hits);"
    )


def likely_hits(query: str) -> str:
    return (
        "const run = await data.run('0');"
        f" return JSON.stringify(Array.from(run.likelyHits({json.dumps(query)})));"
    )


def having(rows: list[dict[str, Any]], *words: str) -> list[int]:
    def texts(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [text for part in value.values() for text in texts(part)]
        return (
            [text for part in value for text in texts(part)]
            if isinstance(value, list)
            else [value]
            if isinstance(value, str)
            else []
        )

    found = []
    for place, row in enumerate(rows):
        own = texts(
            [
                row[name]
                for name in (
                    "id",
                    "input",
                    "targets",
                    "metadata",
                    "answer",
                    "reasoning",
                    "prompt",
                    "responses",
                )
            ]
        )
        if all(any(word.lower() in text.lower() for text in own) for word in words):
            found.append(place)
    return found


def test_records_filters_and_searches_are_those_of_the_run(tmp_path: Path) -> None:
    run = odd_run(tmp_path)
    rows = list(run.rows())
    write_page([run], tmp_path / "page.html", title="odd", progress=lambda _: None)

    async def steps(tab: Tab) -> None:
        await tab.open((tmp_path / "page.html").as_uri())
        assert await ask(tab, RECORDS) == rows
        wanted = [p for p in range(300) if p % 3 and 50 <= p <= 200 and p % 2]
        assert await ask(tab, CHOSEN) == wanted
        assert await ask(tab, SORTED) == [*range(299, 0, -1), 0]
        assert await ask(tab, searched('"quoted phrase" HERE')) == having(
            rows, "quoted phrase", "here"
        )
        assert await ask(tab, searched("中文 คงไม่มี")) == []
        for word in (
            "Capital",
            "<script>",
            "e\u0301",
            "\\",
            "separator",
            "299",
            "\ud800",
        ):
            found = await ask(tab, searched(word))
            assert found == having(rows, word), word
            assert found, word
            likely = await ask(tab, likely_hits(word))
            assert set(likely) <= set(found), word
        assert await ask(tab, likely_hits("299")), "an id is known before any record"
        assert not [
            event
            for event in tab.events
            if event[0] in ("Runtime.exceptionThrown", "Log.entryAdded")
        ]

    in_new_tab(steps)


def test_a_site_and_a_server_give_the_same_and_what_grows_is_seen(
    tmp_path: Path,
) -> None:
    run = odd_run(tmp_path)
    rows = list(run.rows())
    write_site([run], tmp_path / "site", title="odd", progress=lambda _: None)
    folder = tmp_path / "growing"
    with RunWriter(folder, ABOUT) as writer:
        writer.add(0, record(0))
        writer.show()
        follower = Follower([run.folder, folder], "odd")
        server = Server(follower)
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.02}
        ).start()
        follower.start()

        async def steps(tab: Tab) -> None:
            await tab.open(server.url)
            grown = "const run = await data.run('1'); return JSON.stringify([data.catalog.runs[1].state, run.size, run.id(run.size - 1)]);"
            complete = "while ((await data.run('0')).size < 300) await new Promise((go) => setTimeout(go, 50));"
            assert await ask(tab, complete + RECORDS) == rows
            assert await ask(tab, grown) == ["running", 1, "item-0"]
            writer.add(1, record(1))
            writer.show()
            more = "while ((await data.run('1')).size < 2) await new Promise((go) => setTimeout(go, 50));"
            assert await ask(tab, more + grown) == ["running", 2, "item-1"]
            writer.discard()
            ended = "while (data.catalog.runs[1].state === 'running') await new Promise((go) => setTimeout(go, 50));"
            assert await ask(tab, ended + grown) == ["stopped", 2, "item-1"]
            server.shutdown()
            server.server_close()
            gone = "while (data.catalog.live) await new Promise((go) => setTimeout(go, 50)); return JSON.stringify(1);"
            assert await ask(tab, gone) == 1

        try:
            in_new_tab(steps)
        finally:
            server.shutdown()
            server.server_close()
            follower.stop()
