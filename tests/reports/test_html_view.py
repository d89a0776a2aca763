from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.analysis.board import make_board
from evalwright.reports import html_view
from evalwright.reports.html import board_html
from evalwright.reports.html_view import make_page
from support.runs import make_run


def test_rank_strips_cover_the_range_of_ranks(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, name="a", scores=[1.0] * 40),
        make_run(tmp_path, name="b", scores=[1.0] * 20 + [0.0] * 20),
        make_run(tmp_path, name="c", scores=[0.0] * 20 + [1.0] * 20),
        make_run(tmp_path, name="d", scores=[0.0] * 40),
    ]
    page = make_page(make_board(runs), runs, "t")
    assert [(row.ranks, row.tied, row.strip) for row in page.rows] == [
        ("1", False, ("0.00%", "25.00%")),
        ("2–3", True, ("25.00%", "50.00%")),
        ("2–3", True, ("25.00%", "50.00%")),
        ("4", False, ("75.00%", "25.00%")),
    ]


def test_slices_are_cut_where_a_page_would_be_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    domains = [f"d{i}" for i in range(20)]
    runs = [make_run(tmp_path, name=f"r{i}", scores=[1.0, 0.0] * 40, domains=domains) for i in range(2)]
    board = make_board(runs)
    (table,) = make_page(board, runs, "t").runs[0].slices
    assert len(table.rows) == 20 and table.left_out == ""
    monkeypatch.setattr(html_view, "MOST_SLICE_ROWS", 20)
    (table,) = make_page(board, runs, "t").runs[0].slices
    assert len(table.rows) == 10 and table.left_out == "The 10 largest of 20; run.json has all."
    monkeypatch.setattr(html_view, "MOST_SLICE_ROWS", 8)
    view = make_page(board, runs, "t").runs[0]
    assert view.slices == () and "run.json has them" in view.left_out


def test_runs_that_asked_differently_are_pointed_out(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, name=f"r{i}", scores=[1.0, 0.0]) for i in range(2)]
    board = make_board(runs)
    assert make_page(board, runs, "t").asked[0].warning == ""
    runs[1].data["tasks"][0]["content_hash"] = "other"
    runs[1].data["tasks"][0]["definition"] = {"prompt": "other"}
    assert (
        make_page(board, runs, "t").asked[0].warning
        == "Not all runs asked the same: data and prompts or settings differ."
    )


def test_sort_keys_are_exact_values_and_empty_where_there_is_none(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, name="a", scores=[1.0, 1.0, 0.0]), make_run(tmp_path, name="b", scores=[None])]
    rows = make_page(make_board(runs), runs, "t").rows
    assert float(rows[0].headline.sort) == 2 / 3
    assert rows[1].headline.sort == "" and rows[1].headline.bar is None


def test_ties_simultaneous_intervals_and_coverage(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, name="a", scores=[1.0] * 40),
        make_run(tmp_path, name="b", scores=[1.0] * 20 + [0.0] * 19 + [None]),
        make_run(tmp_path, name="c", scores=[0.0] * 20 + [1.0] * 20),
    ]
    page = make_page(make_board(runs), runs, "t")
    assert page.has_ties and page.has_together
    assert [row.letters for row in page.rows] == ["a", "b", "b"]
    assert [(row.items, row.asked) for row in page.rows] == [("40", ""), ("39", "of 40"), ("40", "")]
    for row in page.rows:
        own, together = (
            [float(end) for end in text.strip("[]").split(", ")]
            for text in (row.headline.interval, row.together)
        )
        assert together[0] < own[0] and own[1] <= together[1]
    html = board_html(make_board(runs), runs)
    assert html.count('class="letters"') == 3
    assert html.count('class="together"') == 3
    alone = make_page(make_board(runs[:1]), runs[:1], "t")
    assert not alone.has_ties and not alone.has_together
