"""The tree of a leaderboard: a node for every number, with a number or a reason for every model."""

from __future__ import annotations

from pathlib import Path

from evalwright.analysis.board import Board, make_board
from evalwright.analysis.board_tree import find_in
from support.board_checks import check_nodes, node_of
from support.runs import make_run


def ids(board: Board) -> list[str]:
    return [node.id for node in find_in(board.tree)]


def test_tasks_without_a_tree_are_parts_of_the_overall_score(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, scores={"x": [0, 1, 1], "y": [1, 0]}, model="demo/a"),
        make_run(tmp_path, scores={"x": [1, 1, 1]}, model="demo/b"),
    ]
    board = make_board(runs)
    check_nodes(board)
    assert ids(board) == ["overall", "overall/x", "overall/y"]
    assert board.rank_by == "overall"
    overall = board.tree[0]
    assert overall.estimates == tuple(row.overall for row in board.rows)
    assert overall.metric == "mean of 2 tasks"
    assert overall.reasons == {1: "1 of 2 tasks; missing: y"}
    assert overall.ranks == tuple(row.ranks for row in board.rows)
    assert node_of(board, "overall/y").reasons == {1: "the run does not have this task"}


def test_a_single_task_is_the_root(tmp_path: Path) -> None:
    board = make_board([make_run(tmp_path, scores=[1, 0, None])])
    check_nodes(board)
    (root,) = board.tree
    assert (root.id, root.kind, root.parts) == ("factual", "task", ())
    assert root.ranks == ((1, 1),)


def test_tasks_in_other_units_are_further_roots(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        scores={"quiz": [1, 0], "trivia": [1, 1], "prose": [-5.0, -4.0]},
        metric={"prose": "token-perplexity"},
    )
    board = make_board([run])
    check_nodes(board)
    assert ids(board) == ["overall", "overall/quiz", "overall/trivia", "prose"]
    assert board.tree[1].lower_is_better and not board.tree[1].bounded


def test_nodes_without_any_number_say_why(tmp_path: Path) -> None:
    board = make_board([make_run(tmp_path, scores={"x": [None], "y": [None]})])
    check_nodes(board)
    assert {node.reasons[0] for node in find_in(board.tree)} >= {
        "all answers are missing"
    }
