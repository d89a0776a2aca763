"""The explorer's pages of runs in a real browser: two runs item by item, words that differ, and
labels that become a table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from evalwright.analysis.judge_validation.drawing import draw_set, write_set
from evalwright.analysis.judge_validation.labels import read_label_files
from evalwright.analysis.judge_validation.verdicts import read_verdicts
from evalwright.core.samples import Score
from evalwright.reports.explorer.page import write_page
from evalwright.runs.reader import Run, open_run
from support.browser import IN_BROWSER, Tab, in_new_tab, until
from support.runs import edited, make_run, rewrite

pytestmark = IN_BROWSER

TEXT = "(document.querySelector('main')?.innerText ?? '')"
MARKED = "[...document.querySelectorAll('.answer')].map(e => [...e.querySelectorAll('mark')].map(m => m.textContent))"
TABLE = "document.querySelector('main textarea').value"


def in_browser(
    folder: Path,
    runs: tuple[Run, ...],
    address: str,
    steps: Callable[[Tab], Coroutine[Any, Any, None]],
) -> None:
    file = folder / "page.html"
    write_page(runs, file, title="Runs", progress=lambda _: None)

    async def opened(tab: Tab) -> None:
        await tab.open(f"{file.as_uri()}{address}")
        await steps(tab)
        kinds = (
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
        )
        assert not [event for event in tab.events if event[0] in kinds]

    in_new_tab(opened)


def two_runs(folder: Path) -> tuple[Run, Run]:
    """Six items: on item-2 B alone is right, on item-4 A alone; item-0 both wrong."""
    right = Score(1.0, "correct")
    wrong = Score(0.0, "incorrect", "It names another city.")
    a = make_run(
        folder,
        scores=[wrong, right, wrong, right, right, right],
        name="a",
        model="demo/a",
    )
    b = make_run(
        folder,
        scores=[wrong, right, right, right, wrong, right],
        name="b",
        model="demo/b",
    )
    words = (
        "It is the city of Lyon in France.",
        "It is the old city of Paris in France.",
    )
    return (
        rewrite(a, lambda row, place: row.update(answer=words[0])),
        rewrite(b, lambda row, place: row.update(answer=words[1])),
    )


def test_items_that_one_run_lost_come_first_with_the_words_that_differ(
    tmp_path: Path,
) -> None:
    async def steps(tab: Tab) -> None:
        await until(tab, f"{TEXT}.includes('1 of 2: A lost')")
        await until(tab, f"{MARKED}.length === 2")
        assert await tab.evaluate(MARKED) == [["Lyon"], ["old ", "Paris"]]
        assert "It names another city." in await tab.evaluate(TEXT)
        await tab.press("j", 74, "j")
        await until(
            tab, f"{TEXT}.includes('2 of 2: B lost') && {TEXT}.includes('item-4')"
        )
        await tab.press("j", 74, "j")  # the last one
        assert "2 of 2" in await tab.evaluate(TEXT)
        # The place is in the address: a reload shows it again.
        place = await tab.evaluate("location.hash")
        await tab.evaluate("window.before = 1, location.reload()")
        await until(
            tab,
            f"!window.before && document.readyState === 'complete' && location.hash === {place!r} && {TEXT}.includes('2 of 2: B lost')",
        )
        await tab.evaluate(
            "[...document.querySelectorAll('.kinds a')].find(a => a.innerText.startsWith('Both wrong')).click()"
        )
        await until(
            tab, f"{TEXT}.includes('1 of 1: both wrong') && {TEXT}.includes('item-0')"
        )
        await tab.press("s", 83, "s")
        await until(tab, "location.hash.startsWith('#/compare/b/a')")

    in_browser(tmp_path, two_runs(tmp_path), "#/compare/a/b", steps)


def test_an_item_that_both_got_right_opens_by_its_address(tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await until(
            tab, f"{TEXT}.includes('both right') && {TEXT}.includes('factual · item-3')"
        )

    in_browser(
        tmp_path, two_runs(tmp_path), "#/compare/a/b?task=factual&id=item-3", steps
    )


def test_a_link_to_an_item_that_no_run_has_says_so_and_keys_lead_on(
    tmp_path: Path,
) -> None:
    async def steps(tab: Tab) -> None:
        await until(tab, f"{TEXT}.includes(\"These runs have no item 'zzz'\")")
        assert not await tab.evaluate("!!document.querySelector('.pair-of-samples')")
        await tab.press("j", 74, "j")
        await until(
            tab,
            f"{TEXT}.includes('1 of 2: A lost') && document.querySelectorAll('.answer').length === 2",
        )
        top = "document.querySelector('.pair-of-samples').getBoundingClientRect().top"
        at, high = await tab.evaluate(f"[{top}, innerHeight]")
        assert 0 <= at < high - 100
        await tab.press("o", 79, "o")
        await until(tab, "location.hash === '#/run/a/sample/factual/item-2/0'")

    in_browser(tmp_path, two_runs(tmp_path), "#/compare/a/b?task=factual&id=zzz", steps)


def test_a_narrow_board_begins_with_the_overall_score(tmp_path: Path) -> None:
    runs = tuple(
        make_run(
            tmp_path, scores={"one": [1.0, 0.0] * 9, "two": [1.0, x] * 9}, name=name
        )
        for name, x in (("a", 0.0), ("b", 1.0))
    )

    async def steps(tab: Tab) -> None:
        await until(
            tab, "document.querySelector('.grid thead')?.innerText.includes('Items')"
        )
        cells = "[...document.querySelectorAll('.grid tbody tr')].map(e => [...e.cells].slice(-2).map(e => e.innerText))"
        assert await tab.evaluate(cells) == [["36", "0"]] * 2
        await tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=390,
            height=844,
            deviceScaleFactor=1,
            mobile=False,
        )
        await until(
            tab,
            "document.querySelector('.grid.narrow thead')?.innerText?.includes('Overall')",
        )
        assert "Column 1 of 3" in await tab.evaluate(TEXT)

    in_browser(tmp_path, runs, "#/", steps)


def test_labels_become_the_table_of_the_set_that_was_drawn(tmp_path: Path) -> None:
    run, _ = two_runs(tmp_path)
    drawn = draw_set(read_verdicts(run), 3, "random", 0)
    write_set(run.folder, drawn)

    async def steps(tab: Tab) -> None:
        await until(
            tab,
            f"{TEXT}.includes('0 of 3 labelled') && {TEXT}.includes('city of Lyon')",
        )
        assert "correct" not in await tab.evaluate(TEXT)  # nothing of the verdict
        await tab.evaluate("document.querySelector('main input').focus()")
        await tab.send("Input.insertText", text="=1+Ada")
        await tab.evaluate("document.activeElement.blur()")
        await tab.press("1", 49, "1")
        await until(tab, f"{TEXT}.includes('2 of 3\\n')")
        await tab.press("0", 48, "0")
        await until(tab, f"{TEXT}.includes('2 of 3 labelled')")
        table = tmp_path / "labels.csv"
        table.write_text(
            "\ufeff" + await tab.evaluate(TABLE), encoding="utf-8", newline=""
        )
        (file,) = read_label_files([table])
        assert [(label.set, label.number, label.labeller) for label in file.labels] == [
            (drawn.name, n, "=1+Ada") for n in range(3)
        ]
        assert [label.value for label in file.labels][:2] == [1.0, 0.0]
        # They are there again after a reload.
        await tab.evaluate("location.reload()")
        await until(
            tab,
            f"document.readyState === 'complete' && {TEXT}.includes('2 of 3 labelled')",
        )

    in_browser(tmp_path, (run,), "#/labels", steps)


def test_every_plot_of_two_runs_is_drawn_or_says_why_not(tmp_path: Path) -> None:
    runs = tuple(
        rewrite(
            make_run(tmp_path, scores=[1.0, 0.0, 1.0] * 20, name=name),
            lambda row, place: row.update(answer="x" * (1 + place)),
        )
        for name in ("a", "b")
    )

    async def steps(tab: Tab) -> None:
        for plot, words in (
            ("scores", "66.7"), ("differences", "0.0"), ("length", "run by run"), ("latency", "enough scored answers"), ("cost", "enough answers with a cost"),
            ("date", "2026-11-20"), ("confidence", "No answer says how sure"), ("agreement", "No run has the verdicts of two judges"),
        ):  # fmt: skip
            await tab.evaluate(f"location.hash = '#/plots?plot={plot}'")
            await until(tab, f"{TEXT}.includes({words!r})")
        times = "[...document.querySelectorAll('.chart text')].filter(e => /\\d\\d:\\d\\d/.test(e.textContent)).length"
        await tab.evaluate("location.hash = '#/plots?plot=date'")
        assert await until(tab, times) >= 2  # the runs began at the same moment
        await tab.evaluate("location.hash = '#/plots?plot=length'")
        assert (
            await until(tab, "document.querySelectorAll('.chart circle').length") >= 6
        )

    in_browser(tmp_path, runs, "#/plots", steps)


def test_many_tasks_are_shown_in_steps_and_the_skip_link_is_no_address(
    tmp_path: Path,
) -> None:
    run = make_run(
        tmp_path, scores={f"task-{place}": [1.0, 0.0] for place in range(150)}, name="a"
    )
    rows = "document.querySelectorAll('.scores tbody tr').length"

    async def steps(tab: Tab) -> None:
        await until(tab, f"{rows} === 100 && {TEXT}.includes('100 of 150 rows')")
        assert not await tab.evaluate(
            "document.querySelectorAll('details.task .metric').length"
        )
        await tab.evaluate(
            "[...document.querySelectorAll('button')].find(b => b.innerText.startsWith('Show all')).click()"
        )
        await until(tab, f"{rows} === 150")
        await tab.evaluate("location.hash = '#main'")
        await asyncio.sleep(0.3)
        assert await tab.evaluate(rows) == 150

    in_browser(tmp_path, (run,), "#/run/a", steps)


def test_thousands_of_parts_of_one_sample_are_shown_in_steps(tmp_path: Path) -> None:
    def large(row: dict[str, Any], place: int) -> None:
        row |= {
            "choices": [f"choice {n}" for n in range(3000)],
            "prompt": [["user", f"message {n}"] for n in range(3000)],
            "passages": [{"id": "p", "text": f"passage {n}"} for n in range(3000)],
            "responses": [{"text": f"reply {n}"} for n in range(3000)],
            "scores": {
                f"scorer {n}": {"value": 1.0, "explanation": "why"} for n in range(3000)
            },
        }

    a = rewrite(make_run(tmp_path, scores=[1.0, 0.0], name="a", model="demo/a"), large)
    b = rewrite(make_run(tmp_path, scores=[1.0, 0.0], name="b", model="demo/b"), large)

    async def steps(tab: Tab) -> None:
        for what in ("messages", "choices", "scores"):
            await until(tab, f"{TEXT}.includes(' of 3,000 {what}')")
        await tab.evaluate(
            "document.querySelectorAll('details.fold').forEach(e => { e.open = true; })"
        )
        for what in ("replies", "passages"):
            await until(tab, f"{TEXT}.includes('50 of 3,000 {what}')")
        assert await tab.evaluate("document.querySelectorAll('*').length") < 8000
        more = "[...document.querySelectorAll('.paging button')].find(e => e.innerText.includes('choices'))"
        await tab.evaluate(f"{more}.click()")
        await until(
            tab,
            f"{TEXT}.includes('choice 999') && {TEXT}.includes('1,000 of 3,000 choices')",
        )
        await tab.evaluate("location.hash = '#/compare/a/b?task=factual&id=item-1'")
        await until(
            tab,
            f"{TEXT}.includes('100 of 3,000 choices') && {TEXT}.includes('of 3,000 reasons')",
        )
        assert await tab.evaluate("document.querySelectorAll('*').length") < 8000

    in_browser(tmp_path, (a, b), "#/run/a/sample/factual/item-1/0", steps)


def test_the_sentence_of_two_runs_has_the_sign_of_their_table_at_every_width(
    tmp_path: Path,
) -> None:
    """The better run is A, whatever order they were given in; between a phone and a screen
    nothing is wider than the page.
    """
    names = ("worse", 2), ("better", 3)
    runs = tuple(
        make_run(tmp_path, scores={"one": [1.0] * n + [0.0] * (5 - n), "two": [1.0, 0.0] * 3}, name=name, model=f"demo/{name}")
        for name, n in names
    )  # fmt: skip

    async def steps(tab: Tab) -> None:
        await until(tab, "!!document.querySelector('.pick select')")
        await tab.evaluate("document.querySelector('.pick button').click()")
        await until(
            tab,
            "document.querySelector('details.more')?.textContent.includes('demo/better minus demo/worse: +10.0 points')",
        )
        assert "No significant difference between demo/better and demo/worse" in (
            await tab.evaluate("document.querySelector('.conclusion').innerText")
        )
        assert "+10.0" in await tab.evaluate(
            "document.querySelector('.differences tr.group').innerText"
        )
        for width in (390, 721, 800, 993, 1280):
            await tab.send("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)  # fmt: skip
            await until(tab, f"innerWidth === {width}")
            assert (
                await tab.evaluate("document.documentElement.scrollWidth - innerWidth")
                <= 0
            ), width

    in_browser(tmp_path, runs, "#/", steps)


def test_the_range_of_dates_is_given_in_days(tmp_path: Path) -> None:
    def dated(row: dict[str, Any], place: int) -> None:
        row["metadata"] = {"created_at": f"2026-01-0{place + 1}T12:00:00+00:00"}

    run = rewrite(make_run(tmp_path, scores=[1.0, 0.0] * 3, name="a"), dated)
    ends = "[...document.querySelectorAll('input[type=date]')]"

    async def steps(tab: Tab) -> None:
        await tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=1280,
            height=1200,
            deviceScaleFactor=1,
            mobile=False,
        )
        await until(
            tab, f"{TEXT}.includes('2 of 6 samples') && {ends}.length === 2"
        )  # the last day belongs to it
        assert await tab.evaluate(f"{ends}.map(e => e.value)") == [
            "2026-01-02",
            "2026-01-03",
        ]
        await tab.evaluate(
            f"{ends}[1].value = '2026-01-05', {ends}[1].dispatchEvent(new Event('change', {{bubbles: true}}))"
        )
        await until(tab, f"{TEXT}.includes('4 of 6 samples')")
        assert "range.date=2026-01-02..2026-01-05" in await tab.evaluate(
            "location.hash"
        )

    in_browser(
        tmp_path, (run,), "#/run/a/samples?range.date=2026-01-02..2026-01-03", steps
    )


def test_a_sample_with_a_very_long_id_is_opened_by_its_link(tmp_path: Path) -> None:
    run = rewrite(
        make_run(tmp_path, scores=[1.0, 0.0], name="a"),
        lambda row, place: row.update(id="x" * 1_000_000 + str(place)),
    )

    async def steps(tab: Tab) -> None:
        links = "[...document.querySelectorAll('[role=grid] a')].map(e => e.getAttribute('href'))"
        await until(tab, f"{links}.length === 2")
        first, second = await tab.evaluate(links)
        assert first != second
        assert len(first) < 600
        await tab.evaluate(f"location.hash = {second!r}")
        await until(tab, f"{TEXT}.includes('2 of 2') && {TEXT}.includes('Scores')")

    in_browser(tmp_path, (run,), "#/run/a/samples", steps)


@pytest.mark.parametrize(
    "value", ["1", [1], True, {"x": "<img src=x onerror=alert(1)>"}]
)
def test_a_score_that_is_no_number_is_warned_of_and_breaks_no_page(
    tmp_path: Path, value: Any
) -> None:
    a, b = two_runs(tmp_path)
    b = rewrite(
        b,
        lambda row, place: (
            row["scores"]["score"].update(value=value) if place == 3 else None
        ),
    )

    async def steps(tab: Tab) -> None:
        await until(tab, f"{TEXT}.includes('Impossible records: record 4: the score')")
        await tab.evaluate("location.hash = '#/run/b/samples'")
        await until(
            tab,
            f"{TEXT}.includes('6 samples') && {TEXT}.includes('Question 3 of factual?')",
        )
        await tab.evaluate("location.hash = '#/run/b/sample/factual/item-3/0'")
        await until(
            tab,
            f"{TEXT}.includes('Raw reply') && {TEXT}.includes('Question 3 of factual?')",
        )
        await tab.evaluate("location.hash = '#/'")
        await until(tab, f"{TEXT}.includes('There is no board of these runs')")
        assert (
            await tab.evaluate(
                "document.querySelectorAll('tbody a[href^=\"#/run/\"]').length"
            )
            >= 2
        )

    in_browser(tmp_path, (a, b), "#/run/b", steps)


def test_a_score_worse_than_guessing_is_drawn_left_of_zero(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        scores={"factual": [1.0, 0.0] * 3, "other": [1.0, 0.0] * 3},
        name="low",
    )
    with edited(run.folder) as data:
        data["tasks"][0]["metrics"][0].update(
            kind="chance-normalised", value=-0.5, low=-0.8, high=-0.2
        )

    async def steps(tab: Tab) -> None:
        await until(tab, f"{TEXT}.includes('-50.0')")
        places = "[...document.querySelectorAll('circle.point')].map(e => parseFloat(e.getAttribute('cx')))"
        first, second = await tab.evaluate(places)
        assert 0 < first < second

    in_browser(tmp_path, (open_run(run.folder),), "#/run/low", steps)


def test_a_template_is_folded_among_the_facts_of_a_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[1.0, 0.0], name="a")
    with edited(run.folder) as data:
        data["tasks"][0]["definition"] = {
            "prompt": {"system": "Be brief.", "user": "Q: {{ input }}\nA:"}
        }
        data["environment"]["git_commit"] = "0123456789abcdef"
    folded = "document.querySelector('.facts details')"

    async def steps(tab: Tab) -> None:
        await until(tab, f"{TEXT}.includes('0123456789abcdef')")
        assert not await tab.evaluate(f"{folded}.open")
        await tab.evaluate(f"{folded}.querySelector('summary').click()")
        await until(tab, f"{folded}.innerText.includes('Q: {{{{ input }}}}')")

    in_browser(tmp_path, (open_run(run.folder),), "#/run/a", steps)
