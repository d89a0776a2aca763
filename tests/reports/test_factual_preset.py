"""`leaderboard --preset factual`: accuracy leads, whatever a model gains by never answering."""

from __future__ import annotations

from pathlib import Path

import evalwright as ew
from evalwright.analysis.board import make_board
from evalwright.cli.board_presets import settle_preset, show_preset
from evalwright.reports.columns import shown_columns
from evalwright.reports.presets import find_preset

TASKS = ["factual-closed-book", "factual-grounded", "factual-stress"]
LIMIT = 12


def never_answers(prompt: str) -> str:
    return "I don't know. There is no answer to that."


def test_accuracy_leads_and_a_model_that_never_answers_is_last(tmp_path: Path) -> None:
    runs = ew.evaluate(
        TASKS,
        {"silent": never_answers, "large": "demo/large"},
        limit=LIMIT,
        name="facts",
        out=tmp_path / "runs",
        home=tmp_path / "home",
    )
    preset = find_preset("factual")
    params = {"metric": None, "by": "", "rank_by": None}
    settled = settle_preset(params, preset, runs)
    assert settled["rank_by"] == "Accuracy"
    board = make_board(
        runs, rank_by=settled["rank_by"], means=settled["means"], ranks_below=True
    )
    board = show_preset(board, runs, preset, [])
    # By the mean over all tasks the model that never answers leads.
    overall = {row.label: row.overall.value for row in board.rows if row.overall}
    assert overall["silent"] > overall["large"]
    assert [row.label for row in board.rows] == ["large", "silent"]
    assert board.headline.title == "Accuracy"
    assert board.headline.tasks == ("factual-closed-book", "factual-grounded")
    titles = [column.title for column in shown_columns(board).columns]
    assert titles == ["Accuracy", "Hallucinated", "Refused or corrected"]
    assert any(column.name == "tokens_per_second" for column in board.extra_columns)
