"""The page of a leaderboard in a real browser: ranks at any node, parts in place, filters, pivot and
plot, by pointer, keyboard and address; on a phone; and with 500 models.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from evalwright.reports.board_page import board_page
from support.board_records import board_record
from support.browser import IN_BROWSER, Tab, in_new_tab
from support.hostile import HOSTILE

pytestmark = IN_BROWSER

NAMES = (
    "[...document.querySelectorAll('#board tbody .head .name')].map(e => e.textContent)"
)
HEADS = "[...document.querySelectorAll('#board thead th .sort')].map(e => e.textContent.replaceAll('\\u00ad', ''))"
RANKS = "[...document.querySelectorAll('#board tbody td.rank')].map(e => e.firstChild.textContent)"
CAPTION = "document.querySelector('#board caption').textContent"
SAID = "document.getElementById('said').textContent"


def show(
    folder: Path,
    record: dict[str, Any],
    steps: Callable[[Tab, str], Coroutine[Any, Any, None]],
    *,
    width: int = 1280,
) -> None:
    """Do some steps with the page of a record in a new tab; nothing may fail in it."""
    file = folder / "board.html"
    file.write_text(board_page(record), encoding="utf-8")

    async def with_page(tab: Tab) -> None:
        await tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        await steps(tab, file.as_uri())
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening")  # fmt: skip
        assert [event for event in tab.events if event[0] in kinds] == []

    in_new_tab(with_page)


def click(selector: str, index: int = 0) -> str:
    return f"document.querySelectorAll({selector!r})[{index}].click()"


def type_into(selector: str, text: str) -> str:
    return (
        f"(e => {{ e.value = {text!r}; e.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
        f"(document.querySelector({selector!r})), 0"
    )


def in_points(number: float) -> str:
    return f"{100 * number:.1f}"


def test_ranks_at_any_node_and_says_where_there_are_none(tmp_path: Path) -> None:
    record = board_record(models=8)
    thai = next(node for node in record["nodes"] if node["title"] == "Thai")
    best_in_thai = max(range(8), key=lambda row: thai["value"][row])
    unranked = next(node for node in record["nodes"] if node["title"] == "Vietnamese")
    unranked["rank"] = [None] * 8

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        labels = [model["label"] for model in record["models"]]
        assert await tab.evaluate(NAMES) == labels
        heads = await tab.evaluate(HEADS)
        assert heads[:6] == ["Rank", "Model", "Overall", "Thai", "Vietnamese", "Indonesian"]  # fmt: skip
        await tab.evaluate(click(".tabs button", 1))
        assert await tab.evaluate(SAID) == "Ranked by Thai."
        assert (await tab.evaluate(HEADS))[2] == "Thai"
        assert (await tab.evaluate(NAMES))[0] == labels[best_in_thai]
        low, high = thai["rank"][best_in_thai]
        shown = str(low) if low == high else f"{low}–{high}"
        assert (await tab.evaluate(RANKS))[0] == shown
        trail = (
            "document.querySelector('.trail').textContent.replace(/\\s+/g, ' ').trim()"
        )
        assert await tab.evaluate(trail) == "Overall › Thai"
        await tab.evaluate(type_into("#rank-by", str(record["nodes"].index(unranked))))
        assert (await tab.evaluate(HEADS))[0] == "Order"
        assert await tab.evaluate(RANKS) == [str(i + 1) for i in range(8)]
        await tab.evaluate(click(".trail button"))
        assert await tab.evaluate(NAMES) == labels
        # the head's own button ranks by a part
        await tab.evaluate(click("#board thead .rank-by", 2))
        assert (await tab.evaluate(HEADS))[2] == "Indonesian"

    show(tmp_path, record, steps)


def test_a_column_unfolds_into_its_parts_in_place(tmp_path: Path) -> None:
    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        await tab.evaluate("document.querySelector('#board thead .unfold').focus(), 0")
        await tab.press("Enter", 13, "\r")
        heads = await tab.evaluate(HEADS)
        assert heads[3:8] == ["Thai", "Understanding", "Generation", "Reasoning", "Vietnamese"]  # fmt: skip
        state = "[...document.querySelectorAll('#board thead .unfold')].map(e => e.ariaExpanded)"
        assert (await tab.evaluate(state))[0] == "true"
        assert await tab.evaluate(SAID) == "3 parts of Thai shown."
        assert "open=Overall%2FThai" in await tab.evaluate("location.hash")
        focus = "document.activeElement.className"
        assert await tab.evaluate(focus) == "unfold"
        await tab.press("Enter", 13, "\r")
        assert (await tab.evaluate(HEADS))[3:5] == ["Thai", "Vietnamese"]

    show(tmp_path, board_record(models=4), steps)


def test_filters_by_facts_and_text(tmp_path: Path) -> None:
    record = board_record(models=40)
    facts = [model["facts"] for model in record["models"]]
    labels = [model["label"] for model in record["models"]]

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        await tab.evaluate(type_into("[data-fact=size] [data-end=from]", "7"))
        await tab.evaluate(type_into("[data-fact=size] [data-end=to]", "14"))
        sized = [i for i, fact in enumerate(facts) if fact["size"] and 7 <= fact["size"] <= 14]  # fmt: skip
        assert await tab.evaluate(NAMES) == [labels[i] for i in sized]
        assert (await tab.evaluate(CAPTION)).startswith(f"{len(sized)} of 40 models; ranks are among all")  # fmt: skip
        await tab.evaluate(click("[data-fact=licence] input"))
        chosen = await tab.evaluate("document.querySelector('[data-fact=licence] input').value")  # fmt: skip
        both = [i for i in sized if facts[i]["licence"] == chosen]
        assert await tab.evaluate(NAMES) == [labels[i] for i in both]
        number = "document.querySelector('#filters .number-of').textContent"
        assert await tab.evaluate(number) == "(2)"
        await tab.evaluate(click("#filters [data-clear]"))
        assert await tab.evaluate(NAMES) == labels
        await tab.evaluate(type_into("[data-fact=released] [data-end=from]", "2026"))
        recent = [i for i, fact in enumerate(facts) if fact["released"] >= "2026"]
        assert await tab.evaluate(NAMES) == [labels[i] for i in recent]
        await tab.evaluate(click("#filters [data-clear]"))
        await tab.evaluate(type_into("#search", "ACME 7b"))
        found = [label for label in labels if "acme" in label and "7b" in label]
        assert await tab.evaluate(NAMES) == found
        await tab.evaluate(type_into("#search", "no such model"))
        empty = "document.querySelector('#board tbody').textContent"
        assert "No models match" in await tab.evaluate(empty)
        await tab.evaluate(click("#board [data-clear]"))
        assert await tab.evaluate(NAMES) == labels

    show(tmp_path, record, steps)


def test_the_address_holds_the_view(tmp_path: Path) -> None:
    record = board_record(models=20, languages=2)

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        await tab.evaluate(click(".tabs button", 1))
        await tab.evaluate(click("#board thead .unfold"))
        await tab.evaluate(type_into("#search", "a"))
        await tab.evaluate(click("[data-fact=open] input"))
        await tab.evaluate("document.getElementById('columns').open = true; dispatchEvent(new Event('x')); 0")  # fmt: skip
        await tab.evaluate("document.getElementById('intervals').click()")
        await tab.evaluate(click("#board thead .sort", 4))
        columns = "document.querySelectorAll('#columns-inside input').length"
        assert await tab.evaluate(columns) > 5
        await tab.evaluate("document.querySelector('[data-column-key=\"fact:size\"]').click()")  # fmt: skip
        await tab.evaluate("document.querySelector('[data-column-key=items]').click()")
        view = f"[{NAMES}, {HEADS}, document.getElementById('board').className, document.querySelectorAll('[aria-sort]').length]"
        before = await tab.evaluate(view)
        assert "Size" in before[1] and "Items" not in before[1]
        address = await tab.evaluate("location.href")
        await tab.open("about:blank")
        await tab.open(address)
        assert await tab.evaluate(view) == before
        # what the address says of no node, fact or column is nothing
        await tab.open("about:blank")
        await tab.open(f"{url}#by=nothing&open=x&sort=y&on=z&fact.size=a..b&view=q&model=no&rows=r")  # fmt: skip
        assert (await tab.evaluate(HEADS))[2] == "Overall"

    # wide enough that no column is folded
    show(tmp_path, record, steps, width=1920)


def test_pivot_of_any_two_dimensions(tmp_path: Path) -> None:
    record = board_record(models=5, languages=2, tasks=6)
    numbers = {
        (node["keys"].get("language"), node["keys"].get("competency")): node["value"]
        for node in record["nodes"]
        if "task" not in node["keys"]
    }
    cells = "[...document.querySelectorAll('#board tbody tr')].map(r => [r.querySelector('.name').textContent, ...[...r.querySelectorAll('td')].map(e => e.firstChild.textContent)])"

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        await tab.evaluate(click("[data-view=pivot]"))
        heads = await tab.evaluate(HEADS)
        assert heads == ["Language", "All", "Understanding", "Generation", "Reasoning"]
        rows = await tab.evaluate(cells)
        assert rows[1] == ["Thai"] + [
            in_points(numbers["thai", key][0])
            for key in (None, "understanding", "generation", "reasoning")
        ]
        assert rows[0][2:] == ["–"] * 3
        why = "document.querySelectorAll('#board tbody tr')[0].querySelectorAll('td')[1].textContent"
        assert await tab.evaluate(why) == "–not averaged on this board"
        await tab.evaluate(type_into("#pivot-model", "3"))
        assert (await tab.evaluate(cells))[2][2] == in_points(numbers["vietnamese", "understanding"][3])  # fmt: skip
        heat = "[...document.querySelectorAll('#board td')].map(e => e.className.includes('heat-')).filter(Boolean).length"
        assert await tab.evaluate(heat) == 9
        # models by language, in one competency
        await tab.evaluate(type_into("#pivot-rows", "model"))
        await tab.evaluate(type_into("#pivot-columns", "language"))
        await tab.evaluate(type_into("[data-fixed=competency]", "generation"))
        assert await tab.evaluate(HEADS) == ["Model", "Thai", "Vietnamese"]
        rows = await tab.evaluate(cells)
        assert [row[0] for row in rows] == [model["label"] for model in record["models"]]  # fmt: skip
        assert [row[2] for row in rows] == [in_points(value) for value in numbers["vietnamese", "generation"]]  # fmt: skip
        await tab.evaluate(click("#board thead .sort", 1))
        ordered = [float(row[1]) for row in await tab.evaluate(cells)]
        assert ordered == sorted(ordered, reverse=True)
        # two axes never have one dimension
        await tab.evaluate(type_into("#pivot-rows", "language"))
        assert await tab.evaluate("document.getElementById('pivot-columns').value") == "model"  # fmt: skip

    show(tmp_path, record, steps)


def test_opens_as_the_pivot_that_was_asked_for(tmp_path: Path) -> None:
    record = board_record(models=3, languages=2, tasks=4)
    for node in record["nodes"]:
        if node["kind"] == "task":
            node["tasks"] = [node["title"]]
            del node["keys"]["task"]
    tasks = [[f"task-{i}", f"task-{i}"] for i in range(1, 5)]
    record["dimensions"].append({"key": "task", "title": "Task", "values": tasks})
    record["view"] = {"view": "pivot", "rows": "model", "columns": "task"}

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        assert await tab.evaluate(HEADS) == ["Model", "All"]
        # tasks are of a language and a competency here
        await tab.evaluate(type_into("[data-fixed=language]", "thai"))
        await tab.evaluate(type_into("[data-fixed=competency]", "understanding"))
        assert await tab.evaluate(HEADS) == ["Model", "All", "task-1"]
        await tab.evaluate(click("[data-view=table]"))
        address = await tab.evaluate("location.href")
        assert "view=table" in address and "rows=" not in address
        await tab.open("about:blank")
        await tab.open(address)
        assert (await tab.evaluate(HEADS))[0] == "Rank"

    show(tmp_path, record, steps)


def test_each_number_has_its_interval_and_n_or_says_why_not(tmp_path: Path) -> None:
    record = board_record(models=6, languages=2, missing_share=0.4, pages=True, corrected=True, seed=3)  # fmt: skip
    nodes = record["nodes"]
    task = next(
        node for node in nodes if node["kind"] == "task" and None in node["value"]
    )
    inner = next(node for node in nodes if node["id"] == task["parent"])
    lacking = task["value"].index(None)
    nodes[1]["low"][0] = nodes[1]["high"][0] = None
    nodes[1]["reasons"]["0"] = "no interval: one item"
    shown = "[...document.querySelectorAll('#board tbody .number, #board tbody .drawn')].map(e => e.innerText.replace(/\\s+/g, ' ').trim())"

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(f"{url}#intervals=1&by={inner['id']}")
        for text in await tab.evaluate(shown):
            assert text.startswith("n/a no answer to any") or ("[" in text and "n " in text), text  # fmt: skip
        await tab.open("about:blank")
        await tab.open(f"{url}#intervals=1")
        assert any("no interval: one item" in text for text in await tab.evaluate(shown))  # fmt: skip
        # the same on focus, one after the other by arrows
        await tab.open("about:blank")
        await tab.open(f"{url}#by={inner['id']}")
        tip = "(t => t.hidden ? '' : t.innerText.replace(/\\s+/g, ' '))(document.getElementById('tip'))"
        await tab.evaluate("document.querySelector('#board td[tabindex=\"0\"]').focus()")  # fmt: skip
        assert "Best rank" in await tab.evaluate(tip)
        await tab.press("ArrowRight", 39)
        said = await tab.evaluate(tip)
        assert "95% interval [" in said and "Items" in said and "Rank" in said
        assert await tab.evaluate("document.activeElement.getAttribute('aria-describedby')") == "tip"  # fmt: skip
        await tab.press("ArrowRight", 39)
        for _ in range(record_order(record, inner).index(lacking)):
            await tab.press("ArrowDown", 40)
        assert "no answer to any of its questions" in await tab.evaluate(tip)
        await tab.press("Escape", 27)
        assert await tab.evaluate(tip) == ""

    show(tmp_path, record, steps)


def record_order(record: dict[str, Any], node: dict[str, Any]) -> list[int]:
    rows = range(len(record["models"]))
    return sorted(rows, key=lambda row: -node["value"][row])


def test_numbers_link_to_their_place_on_the_models_page(tmp_path: Path) -> None:
    record = board_record(models=3, languages=2, pages=True)
    (tmp_path / "models").mkdir()
    (tmp_path / "models/model-2.html").write_text("<title>page</title>")
    links = "[...document.querySelectorAll('#board tbody tr')].map(r => [...r.querySelectorAll('a')].map(a => a.getAttribute('href')))"

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        places = {node["id"]: i for i, node in enumerate(record["nodes"])}
        page = "models/model-1.html"
        assert (await tab.evaluate(links))[0] == [
            page,
            f"{page}#n-0",
            f"{page}#n-{places['Overall/Thai']}",
            f"{page}#n-{places['Overall/Vietnamese']}",
        ]
        await tab.evaluate("document.querySelector('#board tr[data-index=\"1\"] td[data-column=\"2\"]').focus()")  # fmt: skip
        await tab.press("Enter", 13, "\r")
        for _ in range(100):
            there = await tab.evaluate("location.href")
            if "model-2" in there:
                break
        assert there.endswith("models/model-2.html#n-0")

    show(tmp_path, record, steps)


def test_a_phone_shows_a_row_without_sideways_reading(tmp_path: Path) -> None:
    record = board_record(models=96, languages=9, tasks=54, pages=True)

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        assert await tab.evaluate(HEADS) == ["Rank", "Model", "Overall", "Thai"]
        right = "Math.max(...[...document.querySelectorAll('#board *, #controls *')].filter(e => e.offsetParent && !e.closest('.unseen, .more, .menu')).map(e => e.getBoundingClientRect().right))"
        assert await tab.evaluate(right) <= 390
        assert await tab.evaluate("document.documentElement.scrollWidth") == 390
        await tab.evaluate(type_into("#second", "node:Overall/Khmer"))
        assert (await tab.evaluate(HEADS))[3] == "Khmer"
        await tab.evaluate(click(".fold"))
        listed = "document.querySelectorAll('.numbers-of li').length"
        assert await tab.evaluate(listed) == 1 + 9 + len(record["nodes"])
        await tab.evaluate("document.querySelector('.detail details').open = true")
        assert await tab.evaluate(right) <= 390
        assert await tab.evaluate("document.documentElement.scrollWidth") == 390
        # rows come as the page is scrolled
        await tab.evaluate("scrollTo(0, document.body.scrollHeight), 0")
        await tab.evaluate("new Promise(done => setTimeout(done, 300)), 0")
        last = record["models"][-1]["label"]
        for _ in range(100):
            if last in await tab.evaluate(NAMES):
                break
        assert last in await tab.evaluate(NAMES)

    show(tmp_path, record, steps, width=390)


def test_of_500_models_all_names_and_the_numbers_on_the_screen_are_drawn(
    tmp_path: Path,
) -> None:
    record = board_record(models=500, languages=10, tasks=60, tasks_below_root=True)
    labels = [model["label"] for model in record["models"]]
    drawn_rows = "[...new Set([...document.querySelectorAll('#board td[data-column]')].map(e => Number(e.parentElement.dataset.index)))]"

    async def wait_for_row(tab: Tab, index: int) -> None:
        for _ in range(200):
            if index in await tab.evaluate(drawn_rows):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"row {index} is not drawn")

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        assert len(await tab.evaluate(drawn_rows)) < 60
        assert await tab.evaluate("document.getElementById('board').ariaRowCount") == "501"  # fmt: skip
        # the browser's search finds a name far below, where its row will be
        assert len(await tab.evaluate(NAMES)) < 60
        assert await tab.evaluate(f"window.find({labels[400]!r})")
        await tab.evaluate("document.getElementById('sheet').scrollTop += getSelection().getRangeAt(0).getBoundingClientRect().top - 300, 0")  # fmt: skip
        await wait_for_row(tab, 400)
        place = (
            "document.querySelector('tr[data-index=\"400\"]').getBoundingClientRect()"
        )
        assert abs(await tab.evaluate(f"{place}.top + {place}.height / 2") - 310) < 30
        assert len(await tab.evaluate(drawn_rows)) < 60
        await tab.evaluate("document.getElementById('sheet').scrollTop = 0")
        await wait_for_row(tab, 0)
        # by arrows to columns and rows that were not drawn
        await tab.evaluate("document.querySelector('#board td[data-column]').focus()")
        for _ in range(30):
            await tab.press("ArrowRight", 39)
        for _ in range(40):
            await tab.press("ArrowDown", 40)
        place = "[document.activeElement.closest('tr').ariaRowIndex, document.activeElement.ariaColIndex]"
        assert await tab.evaluate(place) == ["42", "32"]
        shown = await tab.evaluate("document.activeElement.firstChild.textContent")
        assert shown == in_points(record["nodes"][29]["value"][40])
        # all of it where it is printed
        await tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert len(await tab.evaluate(drawn_rows)) == 500

    show(tmp_path, record, steps)


def test_columns_fold_until_they_fit_and_what_is_further_right_is_announced(
    tmp_path: Path,
) -> None:
    record = board_record(models=12, languages=6, tasks=24)
    wide = board_record(models=12, tasks=30, tasks_below_root=True)
    further = "(e => e.hidden ? '' : e.textContent)(document.getElementById('further'))"
    over = "(e => e.scrollWidth - e.clientWidth)(document.getElementById('sheet'))"
    edge = "getComputedStyle(document.getElementById('frame'), '::after').opacity"

    async def fits(tab: Tab, url: str) -> None:
        await tab.open(url)
        heads = await tab.evaluate(HEADS)
        assert heads[:9] == ["Rank", "Model", "Overall", "Thai", "Vietnamese", "Indonesian", "Tamil", "Filipino", "Malay"]  # fmt: skip
        assert "Run on" not in heads
        assert await tab.evaluate(over) <= 2 and await tab.evaluate(further) == ""
        # what is folded is in the menu, and in each row
        await tab.evaluate("document.querySelector('#columns').open = true")
        await tab.evaluate("new Promise(done => setTimeout(done, 50)), 0")
        await tab.evaluate(click("[data-column-key=date]"))
        assert "Run on" in await tab.evaluate(HEADS)
        await tab.evaluate(click(".fold"))
        assert "Run on" in await tab.evaluate("document.querySelector('.detail').textContent")  # fmt: skip

    async def does_not_fit(tab: Tab, url: str) -> None:
        await tab.open(url)
        shown = await tab.evaluate(further)
        assert shown.endswith("more columns →") and int(shown.split()[0]) > 5
        before = await tab.evaluate("document.getElementById('sheet').scrollLeft")
        await tab.evaluate(click("#further"))
        assert await tab.evaluate("document.getElementById('sheet').scrollLeft") > before  # fmt: skip
        await tab.evaluate("document.getElementById('sheet').scrollLeft = 1e6")
        for _ in range(200):
            if await tab.evaluate(further) == "" and await tab.evaluate(edge) == "0":
                return
            await asyncio.sleep(0.05)
        raise AssertionError("the hint stays at the end")

    show(tmp_path, record, fits)
    show(tmp_path, wide, does_not_fit)


@pytest.mark.parametrize("rows", [1, 3])
def test_units_of_any_kind(tmp_path: Path, rows: int) -> None:
    record = board_record(models=rows, languages=1, tasks=1, facts=False)
    root, *others = record["nodes"]
    root |= {"scale": "words", "measure": "words", "lower_is_better": True}
    root["value"] = [-1234.5678, 12.25, 99999999.0][:rows]
    root["low"] = [-1300.0, 12.0, None][:rows]
    root["high"] = [-1200.0, 12.5, None][:rows]
    others[0]["value"] = [-0.0625, 0.0, 0.5][:rows]
    others[0]["low"] = [-0.1, -0.1, 0.45][:rows]
    others[0]["high"] = [0.1, 0.1, 0.55][:rows]
    values = "[...document.querySelectorAll('#board tbody tr')].map(r => [...r.querySelectorAll('.value')].map(e => e.textContent))"
    wanted = [["-1,235", "-6.2"], ["12.25", "0.0"], ["1.000e+08", "50.0"]][:rows]

    async def steps(tab: Tab, url: str) -> None:
        # scripts off: as Python writes them
        await tab.send("Emulation.setScriptExecutionDisabled", value=True)
        await tab.open(url)
        assert await tab.evaluate(values) == wanted
        await tab.send("Emulation.setScriptExecutionDisabled", value=False)
        await tab.open("about:blank")
        await tab.open(url)
        assert await tab.evaluate("document.getElementById('controls').hidden") is False
        assert await tab.evaluate(values) == wanted
        await tab.evaluate(click("#board thead .sort", 2))
        assert await tab.evaluate("document.querySelectorAll('#board thead th')[2].ariaSort") == "ascending"  # fmt: skip

    show(tmp_path, record, steps)


def test_no_model_with_a_number(tmp_path: Path) -> None:
    record = board_record(models=3, languages=1, tasks=1)
    for node in record["nodes"]:
        for name in ("value", "low", "high", "rank", "n"):
            node[name] = [None] * 3
        node["reasons"] = dict.fromkeys("012", "all answers are missing")

    async def steps(tab: Tab, url: str) -> None:
        for view in ("table", "pivot", "plot"):
            await tab.open("about:blank")
            await tab.open(f"{url}#view={view}&intervals=1")
            if view == "table":
                text = await tab.evaluate("document.getElementById('board').innerText")
                assert text.count("all answers are missing") == 6

    show(tmp_path, record, steps)


def test_hostile_names_are_names_in_every_view(tmp_path: Path) -> None:
    labels = [name or "empty" for name in HOSTILE]
    labels += ["y" * 10_000, "مرحبا/نموذج-7b", "<!--<script>", "👩‍🚀/🌍"]
    record = board_record(models=len(labels), languages=2, labels=labels, names=labels[:9], slices=1)  # fmt: skip
    for model, label in zip(record["models"], labels, strict=True):
        model["facts"] |= {"provider": label, label: label, "url": "javascript:alert(1)"}  # fmt: skip
    dimension = record["dimensions"][0]
    dimension["values"][0][1] = labels[0]
    elements = "document.querySelectorAll('#board img, #board script, #controls img, script:not([type])').length"
    acting = "[...document.querySelectorAll('*')].some(e => e.getAttributeNames().some(n => n.startsWith('on')) || /^javascript/i.test(e.getAttribute('href') || ''))"

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        for step in (
            click(".fold"),
            click(".fold", 5),
            "document.getElementById('columns').open = true",
            click("#board thead .unfold"),
            click("[data-view=pivot]"),
            click("[data-view=plot]"),
            click("[data-view=table]"),
            "document.querySelectorAll('#board td[data-column]')[1].focus()",
        ):
            await tab.evaluate(f"{step}, 0")
            assert await tab.evaluate(elements) == 1
            assert await tab.evaluate(acting) is False
        assert await tab.evaluate("document.title") == record["title"]
        assert await tab.evaluate("document.documentElement.scrollWidth") <= 1280
        heights = "[...document.querySelectorAll('#board tr[data-index]')].map(e => e.offsetHeight)"
        assert max(await tab.evaluate(heights)) < 80

    show(tmp_path, record, steps)


def test_keys_that_every_object_inherits_are_keys_like_others(tmp_path: Path) -> None:
    record = board_record(models=3, languages=2)
    inherited = ("constructor", "toString", "hasOwnProperty")
    for key in inherited:
        record["models"][0]["facts"][key] = key
    facts = "document.querySelectorAll('#filters fieldset').length"

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(url)
        n_facts = await tab.evaluate(facts)
        assert n_facts >= len(inherited)
        wanted = "&".join(f"fact.{key}={key}" for key in inherited)
        await tab.open("about:blank")
        await tab.open(f"{url}#{wanted}&at.__proto__=x")
        rows = "document.querySelectorAll('#board tr[data-index]').length"
        for _ in range(200):
            if await tab.evaluate(rows):  # the page has come again
                break
            await asyncio.sleep(0.05)
        assert await tab.evaluate(rows) >= 1
        await tab.evaluate(f"{click('[data-clear]')}, 0")
        assert await tab.evaluate("({}).polluted === undefined")

    show(tmp_path, record, steps)


def test_plots_the_score_against_a_fact(tmp_path: Path) -> None:
    record = board_record(models=30, pages=True)
    sized = [model for model in record["models"] if model["facts"]["size"]]

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(f"{url}#view=plot")
        marks = "[...document.querySelectorAll('#plot a')].map(e => e.getAttribute('aria-label'))"
        shown = await tab.evaluate(marks)
        assert len(shown) == len(sized)
        assert shown[0].startswith(f"{sized[0]['label']}: ") and "[" in shown[0]
        await tab.evaluate(type_into("#across", "released"))
        assert len(await tab.evaluate(marks)) == 30
        assert "across=released" in await tab.evaluate("location.hash")

    show(tmp_path, record, steps)


def test_marks_corrections_and_errors_have_columns_where_there_are_some(
    tmp_path: Path,
) -> None:
    plain = board_record(models=3, languages=2)
    record = board_record(models=8, languages=2, corrected=True)
    record["models"][1]["other_judge"] = True
    record["models"][2]["faults"] = {"Empty": 2}
    record["models"][0]["simultaneous"] = [0.1, 0.9]
    judged = f"{record['nodes'][0]['title']}, by the judge"
    errors = ["Judge's false alarms", "Judge's misses", "Labels"]
    names = [judged, *errors, "Empty"]

    async def without(tab: Tab, url: str) -> None:
        await tab.open(url)
        assert not {*names, "Simultaneous"} & {*await tab.evaluate(HEADS)}

    async def steps(tab: Tab, url: str) -> None:
        await tab.open(f"{url}#on=simultaneous&on=fault:Empty")
        heads = await tab.evaluate(HEADS)
        assert [head for head in heads if head in names] == names, heads
        cells = await tab.evaluate("[...document.querySelectorAll('#board tbody tr')].map(r => r.innerText)")  # fmt: skip
        assert "[10.0, 90.0]" in cells[0] and "200, pooled" in cells[1]
        ranks = await tab.evaluate("[...document.querySelectorAll('#board td.rank')].map(e => e.textContent)")  # fmt: skip
        assert ranks[1].endswith(" †") and ranks[5].endswith(" *")
        # the correction is that of the headline alone
        await tab.evaluate(click(".tabs button", 2))
        assert judged not in await tab.evaluate(HEADS)

    show(tmp_path, plain, without)
    show(tmp_path, record, steps)
