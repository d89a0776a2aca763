"""Which columns a board is published with, whoever recorded its runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.analysis.board import Board, make_board
from evalwright.reports.columns import as_of, is_hallucination_board, score_columns
from evalwright.reports.documents.board import readme_document
from evalwright.reports.markdown import to_markdown
from evalwright.runs.reader import Run
from support.runs import make_run
from support.shown import board_markdown


def readme_markdown(board: Board, *more: Any) -> str:
    return to_markdown(readme_document(board, *more), 0)


def hallucination_run(
    folder: Path,
    name: str,
    *,
    joined: str = "-",
    more: bool = True,
    started: str = "2026-11-20",
) -> Run:
    """A run with the metrics of the hallucination leaderboard, made by anybody; words in labels
    are joined as said.
    """
    scores = [1.0] * 18 + [0.0] * 2
    run = make_run(
        folder,
        name=name,
        model=f"acme/{name}",
        scores=scores,
        metric="hallucination-rate",
        more_metrics=("accuracy", "mean") if more else (),
        started=f"{started}T09:30:00+00:00",
    )
    labels = ["hallucination rate", "factual consistency rate", "mean words"]
    for metric, label in zip(run.data["tasks"][0]["metrics"], labels, strict=False):
        metric["label"] = label.replace(" ", joined)
    return run


@pytest.mark.parametrize("joined", ["-", " ", "_"])
def test_hallucination_columns_are_found_by_kind_and_label(
    tmp_path: Path, joined: str
) -> None:
    board = make_board(
        [hallucination_run(tmp_path, name, joined=joined) for name in ("a", "b")]
    )
    assert is_hallucination_board(board)
    columns = score_columns(board)
    assert [(column.title, column.measure) for column in columns] == [
        ("Hallucination rate", "%"),
        ("Factual consistency rate", "%"),
        ("Average summary length", "words"),
    ]
    assert [
        round(estimate.value, 6) for estimate in columns[0].estimates if estimate
    ] == [0.1, 0.1]
    assert [
        round(estimate.value, 6) for estimate in columns[1].estimates if estimate
    ] == [0.9, 0.9]
    head = board_markdown(board).splitlines()[0]
    assert (
        "| Hallucination rate (%, lower is better) | Factual consistency rate (%) |"
        in head
    )
    assert "Average summary length (words) |" in head


def test_a_run_without_the_other_metrics_has_no_empty_columns(tmp_path: Path) -> None:
    board = make_board([hallucination_run(tmp_path, "a", more=False)])
    assert [column.name for column in score_columns(board)] == ["hallucination_rate"]
    mixed = make_board(
        [hallucination_run(tmp_path, "b"), hallucination_run(tmp_path, "c", more=False)]
    )
    row = next(line for line in board_markdown(mixed).splitlines() if "acme/c" in line)
    assert row.count("n/a") == 2


def test_the_day_is_that_of_the_newest_run(tmp_path: Path) -> None:
    runs = [
        hallucination_run(tmp_path, "a", started="2026-02-01"),
        hallucination_run(tmp_path, "b", started="2026-03-01"),
    ]
    board = make_board(runs)
    assert as_of(board) == "2026-03-01"
    assert readme_markdown(board).startswith(
        "2 models; the newest run is of 2026-03-01.\n\n| Rank |"
    )
    with_picture = readme_markdown(
        board, ["x.html", "y.html"], "img/a%20b.svg", "My ](board"
    )
    assert (
        "![My &#93;(board: a bar for each model, with its interval](img/a%20b.svg)"
        in with_picture
    )
    assert "[`acme/a`](x.html)" in with_picture
