"""Every number on a page has its interval and the number of its items, or says why not: on the page
of a board at each node and in each view, without scripts, on models' pages, in the embedded table
and in the README. Of four boards: of summaries, languages, categories and facts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evalwright.analysis.board import Board, make_board
from evalwright.analysis.board_tree import find_in
from evalwright.analysis.extra_columns import ExtraColumn
from evalwright.reports.board_embed import board_embed
from evalwright.reports.board_page import leaderboard_page
from evalwright.reports.documents.board import readme_document
from evalwright.reports.markdown import to_markdown
from evalwright.reports.model_pages import write_pages
from evalwright.reports.presets import apply_preset, find_preset
from evalwright.runs.reader import Run
from evalwright.statistics import Estimate
from reports.test_presets import hallucination_runs
from support.browser import IN_BROWSER, Tab, in_new_tab
from support.number_walk import lacking_in_markdown, walk_board, walk_page
from support.tagged_runs import make_tagged_run

pytestmark = IN_BROWSER

Boards = tuple[Board, list[Run]]


def _runs(folder: Path, metadata: dict[str, dict[str, str]]) -> list[Run]:
    """Three models, of which the last has no number of the first task."""
    runs = []
    for place, name in enumerate(("small", "large", "shy")):
        scores: dict[str, list[float | None]] = {
            task: [float((i * i + place * j) % 5 > 1) for i in range(20)]
            for j, task in enumerate(metadata)
        }
        if name == "shy":
            scores[next(iter(metadata))] = [None] * 20
        run = make_tagged_run(
            folder,
            scores,
            metadata,
            model=f"acme/{name}",
            name=name,
            domains=("a", "b"),
        )
        runs.append(run)
    return runs


def _summaries(folder: Path) -> Boards:
    folder.mkdir()
    runs = hallucination_runs(folder)
    return apply_preset(make_board(runs), runs, find_preset("hhem")), runs


def _languages(folder: Path) -> Boards:
    metadata = {
        f"{language}-{competency}-{i}": {"language": language, "competency": competency}
        for language in ("th", "id", "ta")
        for competency in ("nlu", "safety")
        for i in range(2)
    }
    runs = _runs(folder, metadata)
    return make_board(runs, by=["language", "competency"]), runs


def _categories(folder: Path) -> Boards:
    metadata = {name: {"category": name.title()} for name in ("law", "medicine")}
    runs = _runs(folder, metadata)
    return make_board(runs, by=["category", "domain"]), runs


def _facts(folder: Path) -> Boards:
    runs = _runs(folder, {"facts": {}, "choices": {}})
    speed = Estimate(40.5, 38.0, 43.0, 0.95, 20, 0, None, None, "t")
    once = replace(speed, low=math.nan, high=math.nan, method="")
    columns = (
        ExtraColumn(name="machine", title="Machine", texts=("x86", "x86", "remote")),
        ExtraColumn(
            name="speed",
            title="Tokens a second",
            estimates=(speed, once, None),
            lower_is_better=False,
            reasons={1: "no interval: measured once", 2: "a remote model"},
        ),
    )
    return replace(make_board(runs), extra_columns=columns), runs


BOARDS = [_summaries, _languages, _categories, _facts]


@pytest.mark.parametrize("make", BOARDS)
def test_every_number_has_its_interval_and_n_or_says_why_not(
    tmp_path: Path, make: Callable[[Path], Boards]
) -> None:
    board, runs = make(tmp_path / "runs")
    links = [f"models/{i}.html" for i in range(len(board.rows))]
    page = tmp_path / "board.html"
    page.write_text(leaderboard_page(board, runs, links=links), encoding="utf-8")
    static = tmp_path / "static.html"
    text = page.read_text(encoding="utf-8")
    static.write_text(re.sub(r"<script\b.*?</script>", "", text, flags=re.S))
    embedded = tmp_path / "embedded.html"
    embedded.write_text(board_embed(board, "Board"), encoding="utf-8")
    model_pages = write_pages(board, runs, tmp_path / "models")
    ids = [node.id for node in find_in(board.tree)]

    async def steps(tab: Tab) -> None:
        await tab.send(
            "Emulation.setDeviceMetricsOverride",
            width=1280,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        n_models = len(board.rows)
        assert await walk_board(tab, page.as_uri(), ids) > 4 * n_models
        for file in (static, embedded, *model_pages):
            assert await walk_page(tab, file.as_uri()) > 0, file

    in_new_tab(steps)
    readme = to_markdown(readme_document(board))
    assert "[" in readme and lacking_in_markdown(readme) == []


def test_what_a_preset_adds_is_shown_with_its_interval_or_reason(
    tmp_path: Path,
) -> None:
    board, runs = _facts(tmp_path / "runs")
    page = tmp_path / "board.html"
    page.write_text(leaderboard_page(board, runs), encoding="utf-8")
    column = "[...document.querySelectorAll('#board thead th .sort')].findIndex(e => e.textContent === 'Tokens a second')"
    cells = f"[...document.querySelectorAll('#board tbody tr[data-index]')].map(r => r.cells[{column}].textContent.replace(/\\s+/g, ' '))"

    async def steps(tab: Tab) -> None:
        await tab.open(page.as_uri())
        shown = await tab.evaluate(cells)
        assert sorted(shown) == [
            "40.50no interval: measured once n 20",
            "40.5[38.0, 43.0] n 20",
            "n/aa remote model",
        ]
        await tab.evaluate("document.querySelector('.fold').click()")
        unfolded = await tab.evaluate("document.querySelector('.detail').innerText")
        assert "Machine" in unfolded and "Tokens a second" in unfolded

    in_new_tab(steps)
