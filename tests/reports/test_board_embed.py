"""The fragment for other pages: one table, its own style, nothing that acts or loads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalwright.analysis.board import make_board
from evalwright.reports.board_embed import board_embed
from support.browser import Tab, chromium, in_new_tab
from support.hostile import ACTIVE, HOSTILE, as_task_name
from support.runs import make_run

HOST = """<!doctype html><html><head><meta charset="{}"><style>body {{ color: #222 }}</style>
</head><body><p id="before">before</p>{}<p id="after">after</p></body></html>"""


def fragments(folder: Path) -> list[str]:
    return [
        board_embed(
            make_board(
                [
                    make_run(
                        folder / "runs",
                        model=name or "x",
                        label=name,
                        name=f"run-{i}",
                        scores={as_task_name(name): [1.0, 0.0, 1.0]},
                    )
                ]
            ),
            name,
        )
        for i, name in enumerate(HOSTILE)
    ]


def test_scores_with_intervals_and_ranks(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, name="a", model="x/a", scores={"f": [1.0] * 40, "g": [1.0] * 40}),
        make_run(tmp_path, name="b", model="x/b", scores={"f": [0.0] * 40, "g": [1.0] * 40}),
    ]  # fmt: skip
    html = board_embed(make_board(runs), "My board")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.replace("<wbr>", "")))
    for wanted in ("My board", "x/a", "100.0", "50.0", "overall", "Missing", "80"):
        assert wanted in text, wanted
    assert "<iframe" in html.partition("-->")[0] and 'sandbox=""' in html


def test_nothing_in_it_acts_or_loads(tmp_path: Path) -> None:
    for html in fragments(tmp_path):
        body = html.partition("-->")[2]
        assert html.isascii() and not set(html) & set(ACTIVE)
        assert body.count("<style") == 1 and body.strip().endswith("</div>")
        assert not re.search(r"<(script|img|link|iframe|form|base|meta)\b", body)
        assert "url(" not in body and "@import" not in body and " id=" not in body
        assert not re.search(r"<[^>]*\son\w+=", re.sub(r'"[^"]*"', '""', body))
        assert body.count("<div") == body.count("</div")


def test_the_style_applies_below_its_own_class_alone(tmp_path: Path) -> None:
    (html, *_) = fragments(tmp_path)
    style = html.partition("<style>")[2].partition("</style>")[0]
    for rule in style.split("}"):
        if selector := rule.partition("{")[0].strip():
            assert selector.startswith(".evalwright"), selector


@pytest.mark.browser
@pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine")
def test_in_another_page_of_any_encoding(tmp_path: Path) -> None:
    html = "".join(fragments(tmp_path))
    pages = []
    for encoding in ("utf-8", "windows-1252"):
        page = tmp_path / f"{encoding}.html"
        page.write_text(HOST.format(encoding, html), encoding="ascii")
        pages.append(page)

    async def look(tab: Tab) -> None:
        for page in pages:
            tab.events.clear()
            await tab.open(page.as_uri())
            asked = [
                event["request"]["url"]
                for method, event in tab.events
                if method == "Network.requestWillBeSent"
            ]
            assert [url for url in asked if not url.startswith("data:")] == [
                page.as_uri()
            ]
            assert await tab.evaluate("document.title") == ""
            shown = await tab.evaluate("document.body.textContent")
            assert "日本語" in shown
            assert await tab.evaluate(
                "getComputedStyle(document.querySelector('#after')).color"
            ) == ("rgb(34, 34, 34)")
            assert (
                await tab.evaluate("document.querySelectorAll('.evalwright').length")
                == len(HOSTILE)
            )  # fmt: skip
            assert await tab.evaluate("document.body.lastElementChild.id") == "after"

    in_new_tab(look)
