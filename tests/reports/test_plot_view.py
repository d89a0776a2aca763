"""What a picture shows: the best models in the board's order, those left out named, those that
lead marked.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.hhem.hhem_trees import REFUSAL, Line, Model, text_of
from evalwright.analysis.board import Board, make_board
from evalwright.compat.hhem.importing import import_hhem
from evalwright.core.errors import ConfigurationError
from evalwright.reports.plot_view import answer_rate, plot_view
from support.runs import make_run


def _hallucinations(folder: Path) -> Board:
    """Three models; refused: 0, 2 and 10 of 40."""
    for name, refused, wrong in (
        ("acme/one", 0, 30),
        ("acme/two", 2, 2),
        ("acme/shy", 10, 1),
    ):
        lines = [
            Line(
                i,
                REFUSAL if i <= refused else text_of(i),
                0.1 if i > 40 - wrong else 0.9,
            )
            for i in range(1, 41)
        ]
        Model(name=name).write(folder / "tree", lines)
    return make_board(import_hhem(folder / "tree", folder / "runs")[0])


def test_the_best_are_shown_in_order_and_the_rest_is_said(tmp_path: Path) -> None:
    runs = [
        make_run(
            tmp_path, name=f"r{i}", model=f"m{i}", scores=[1.0] * (9 - i) + [0.0] * i
        )
        for i in range(5)
    ]
    view = plot_view(make_board(runs), "T", best=3)
    assert [row.label for row in view.rows] == ["m0", "m1", "m2"]
    assert [row.value for row in view.rows] == pytest.approx(
        [100, 100 * 8 / 9, 100 * 7 / 9]
    )
    assert view.notes == ("The best 3 of 5 models.", "Newest run: 2026-11-20.")
    assert view.subtitle == "factual: accuracy, points of 100 · higher is better"


def test_models_that_may_be_the_best_are_those_whose_rank_may_be_the_first(
    tmp_path: Path,
) -> None:
    scores = {
        "top": [1.0] * 38 + [0.0] * 2,
        "near": [1.0] * 37 + [0.0] * 3,
        "far": [1.0] * 5 + [0.0] * 35,
    }
    runs = [
        make_run(tmp_path, name=name, model=name, scores=each)
        for name, each in scores.items()
    ]
    board = make_board(runs)
    view = plot_view(board, "T")
    assert {row.label: row.leads for row in view.rows} == {
        "top": True,
        "near": True,
        "far": False,
    }
    assert [row.leads for row in view.rows] == [
        bool(row.ranks and row.ranks[0] == 1) for row in board.rows
    ]
    assert not plot_view(make_board(runs[:1]), "T").ranked


def test_models_that_answered_little_are_left_out_and_named(tmp_path: Path) -> None:
    board = _hallucinations(tmp_path)
    assert [answer_rate(board, row) for row in board.rows] == [0.75, 0.95, 1.0]
    assert [row.label for row in plot_view(board, "T").rows] == [
        "acme/shy",
        "acme/two",
        "acme/one",
    ]
    view = plot_view(board, "T", least_answered=95)
    assert [row.label for row in view.rows] == ["acme/two", "acme/one"]
    assert (
        view.notes[0]
        == "Left out because they answered less than 95%: acme/shy (75.0%)."
    )
    assert view.subtitle == "Hallucination rate, % · lower is better"
    with pytest.raises(ConfigurationError, match="answered enough"):
        plot_view(make_board_of(board, tmp_path), "T", least_answered=99)


def make_board_of(board: Board, folder: Path) -> Board:
    """The board of its first model alone."""
    from evalwright.runs.reader import open_run

    return make_board([open_run(folder / "runs" / board.rows[0].run)])
