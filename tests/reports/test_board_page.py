"""The page of a leaderboard as HTML: what it says without scripts, and the record that it carries."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from evalwright.analysis.board import make_board
from evalwright.compat.hhem.importing import import_hhem
from evalwright.reports import board_page as module
from evalwright.reports.board_page import board_page, compact_record, leaderboard_page
from evalwright.reports.documents import board as board_document
from support.board_records import board_record
from support.hostile import ACTIVE, HOSTILE
from support.runs import make_run

BLOCK = re.compile(
    r'<script type="application/json" id="board-data">(.*?)</script>', re.DOTALL
)
HHEM = Path(__file__).resolve().parents[3] / "shared/data/hhem/v2"


def block_of(html: str) -> dict[str, Any]:
    """The record in a page, as its script reads it."""
    (text,) = BLOCK.findall(html)
    record: dict[str, Any] = json.loads(text)
    return record


def text_of(html: str) -> str:
    """The page's words without its scripts and style."""
    bare = re.sub(r"<(script|style).*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", "", bare)).split())


def test_the_same_record_gives_the_same_bytes() -> None:
    assert board_page(board_record()) == board_page(board_record())


def test_headline_parts_and_notes_are_read_without_scripts() -> None:
    record = board_record(models=3, missing_share=0.3)
    text = text_of(board_page(record, "3 models"))
    assert "3 models" in text
    for node in record["nodes"]:
        is_shown = node["parent"] in (None, "Overall")
        if is_shown:
            assert node["title"] in text
            for score, low, high in zip(
                node["value"], node["low"], node["high"], strict=True
            ):
                shown = f"{100 * score:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
                assert shown in text
    for note in record["notes"]:
        assert note in text
    for model in record["models"]:
        assert model["label"] in text


def test_a_missing_number_has_its_reason_without_scripts() -> None:
    record = board_record(models=2, languages=1, tasks=1)
    root = record["nodes"][0]
    root["value"][1] = root["low"][1] = root["high"][1] = None
    root["reasons"] = {"1": "all answers are missing"}
    root["low"][0] = root["high"][0] = None
    text = text_of(board_page(record))
    assert "n/a all answers are missing" in text
    assert "no interval" in text


def test_a_large_board_shows_the_headline_alone_without_scripts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = board_record(models=4, languages=2)
    cells = re.compile(r'<td class="number">')
    assert len(cells.findall(board_page(record))) == 4 * 3
    monkeypatch.setattr(module, "MAX_STATIC_CELLS", 7)
    assert len(cells.findall(board_page(record))) == 4


def test_the_page_carries_the_record_in_six_digits_and_less_of_it() -> None:
    record = board_record(models=3, pages=True, corrected=True)
    record["models"][0]["scores"] = {"overall": {"value": 0.5}}
    record["nodes"][0]["value"][0] = 0.123456789
    record["nodes"][0]["low"][0] = float("nan")
    record["nodes"][0]["high"][0] = 1.0
    copy = block_of(board_page(record))
    assert copy["nodes"][0]["value"][0] == 0.123457
    assert copy["nodes"][0]["low"][0] is None
    assert copy["nodes"][0]["high"][0] == 1
    assert "scores" not in copy["models"][0]
    assert copy["models"][0]["page"] == "models/model-1.html"
    assert copy["models"][0]["judge_errors"]["labels"] == 200
    for name in ("schema", "rank_by", "dimensions", "notes"):
        assert copy[name] == record[name]
    assert [node["id"] for node in copy["nodes"]] == [
        node["id"] for node in record["nodes"]
    ]


@pytest.mark.parametrize(
    ("number", "rounded"),
    [
        (0.123456789, 0.123457),
        (0.7774997490029, 0.777499749),  # 0.7775 would be shown as 77.8
        (0.77749999999, 0.77749999999),
        (0.125, 0.125),
        (1.0, 1),
        (-0.25, -0.25),
        (12345678.9, 12345700),
        (float("inf"), None),
    ],
)
def test_numbers_are_rounded_so_that_they_look_the_same(
    number: float, rounded: float | None
) -> None:
    record = board_record(models=1, languages=1, tasks=1)
    record["nodes"][0]["value"][0] = number
    assert block_of(board_page(record))["nodes"][0]["value"][0] == rounded


@pytest.mark.parametrize("name", [*HOSTILE, "x" * 10_000, "<!--<script>", "مرحبا 👩‍🚀"])
def test_no_name_ends_the_block_or_acts(name: str) -> None:
    name = name or "empty"
    record = board_record(models=2, languages=1, tasks=2, labels=[name], names=[name])
    record["title"] = name
    record["models"][0]["facts"] = {"provider": name, "licence": name}
    record["notes"] = [name]
    html = board_page(record)
    copy = block_of(html)
    assert not any(char in json.dumps(copy, ensure_ascii=False) for char in ACTIVE)
    assert html.count("<script") == html.count("</script>") == 2
    assert "<!--" not in html.split('id="board-data">')[1]
    assert len(re.findall(r"<h1", html)) == 1
    plain = board_page(board_record(models=2, languages=1, tasks=2))
    tags = re.compile(r"<(table|tr|td|th|ul|li|img|svg|style|a)\b")
    shown = list(tags.findall(plain))
    shown.remove("li")  # it has two notes
    assert sorted(tags.findall(html)) == sorted(shown)


def test_columns_without_a_node_are_roots(tmp_path: Path) -> None:
    if not HHEM.is_dir():
        pytest.skip("no recorded runs of the HHEM leaderboard here")
    runs = import_hhem(HHEM / "google", tmp_path / "runs")[0]
    board = make_board(runs)
    copy = block_of(leaderboard_page(board, runs, title="HHEM"))
    roots = [node["title"] for node in copy["nodes"] if node["parent"] is None]
    assert roots == [
        "Hallucination rate",
        "Factual consistency rate",
        "Answer rate",
        "Average summary length",
    ]
    length = copy["nodes"][-1]
    assert (length["measure"], length["scale"]) == ("words", "words")
    assert length["has_anchor"] is False
    assert "has_anchor" not in copy["nodes"][0]


def test_a_board_of_runs_has_what_its_page_had(tmp_path: Path) -> None:
    scores = [1.0] * 30 + [0.0] * 8 + [None] * 2
    runs = [
        make_run(tmp_path, model=f"demo/{name}", name=name, scores={"one": scores, "two": scores})
        for name in ("a", "b")
    ]  # fmt: skip
    board = make_board(runs)
    html = leaderboard_page(board, runs)
    text = text_of(html)
    assert "2 models, 2 tasks" in text and "The tasks of this board" in text
    assert html.count('<details id="run-') == 2
    assert "@software" in text or "@misc" in text
    # models' pages have the details
    html = leaderboard_page(board, runs, links=["a.html", "b.html"])
    assert 'href="a.html"' in html and '<details id="run-' not in html


def test_details_of_too_many_models_are_left_to_their_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        make_run(tmp_path, model=f"m{i}", name=f"r{i}", scores={"one": [1.0, 0.0], "two": [1.0, 0.0]})
        for i in range(2)
    ]  # fmt: skip
    monkeypatch.setattr(board_document, "MAX_TASKS_IN_FOLDS", 3)
    html = leaderboard_page(make_board(runs), runs)
    assert '<details id="run-' not in html
    assert "--pages DIR" in text_of(html)


def test_compact_record_leaves_the_record_as_it_is() -> None:
    record = board_record(models=2)
    before = json.dumps(record)
    compact_record(record)
    assert json.dumps(record) == before
