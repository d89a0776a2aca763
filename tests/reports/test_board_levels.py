"""Tables of large boards: one level of the tree at a time, never cut in pieces by position."""

from __future__ import annotations

import csv
import io
import re
from itertools import pairwise
from pathlib import Path

import pytest

from evalwright.analysis.board import Board, make_board
from evalwright.reports.board_files import board_csv, board_json
from evalwright.reports.columns import MOST_COLUMNS, score_columns, shown_columns
from evalwright.reports.documents.board import board_document, readme_document
from evalwright.reports.latex import to_latex
from evalwright.reports.markdown import to_markdown
from evalwright.reports.paper_tables import board_latex
from evalwright.reports.pdf import to_pdf
from evalwright.reports.terminal import lay_out
from evalwright.runs.reader import Run
from support.runs import make_run
from support.tagged_runs import make_tagged_run

N_TASKS = 54
TASKS = [f"task-{i:02}" for i in range(N_TASKS)]
METADATA = {
    name: {"language": ("th", "vi", "id")[i % 3], "source": f"s{i % 27}"}
    for i, name in enumerate(TASKS)
}


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """54 tasks without a tree, of six models."""
    return make_board(large_runs(tmp_path_factory.mktemp("runs")))


def large_runs(folder: Path, n_models: int = 6) -> list[Run]:
    return [
        make_tagged_run(
            folder,
            {name: [1, 0, int(i > j), 1] for i, name in enumerate(TASKS)},
            METADATA,
            model=f"demo/model-{j}",
            name=f"m{j}",
        )
        for j in range(n_models)
    ]


def terminal(board: Board, width: int) -> list[str]:
    return [
        "".join(text for text, _ in line)
        for line in lay_out(board_document(board, costs=True), width)
    ]


def heads(lines: list[str]) -> list[str]:
    """The line of titles of each table."""
    return [line for line, rule in pairwise(lines) if set(rule.strip()) == {"-", " "}]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_flat_list_shows_what_fits_and_how_to_see_the_rest(
    board: Board, width: int
) -> None:
    lines = terminal(board, width)
    assert all(len(line) <= width for line in lines)
    tables = heads(lines)
    assert sum("task-" in head for head in tables) <= 1
    assert sum("Overall" in head for head in tables) == 1
    text = re.sub(r"\s+", " ", " ".join(lines))
    assert "The table has the overall score with 8 of 54 parts." in text
    assert "`--rank-by NAME` shows another node" in text
    assert "`--by KEY` groups tasks (language, source)" in text
    assert "`--csv FILE` has all 55 scores" in text
    shown = max(head.count("task-") for head in tables)
    if shown < MOST_COLUMNS:
        left_out = f"No room here for task-{shown:02}"
        assert left_out in text


def test_few_models_are_columns_where_there_is_no_room(tmp_path: Path) -> None:
    lines = terminal(make_board(large_runs(tmp_path, 3)), 80)
    assert not any("No room here" in line for line in lines)
    assert sum(line.strip().startswith("task-") for line in lines) == MOST_COLUMNS


def test_csv_and_json_have_all(board: Board) -> None:
    (header, *_) = csv.reader(io.StringIO(board_csv(board)))
    assert {*TASKS} <= {*header}
    names = {column["name"] for column in board_json(board, "Board")["columns"]}
    assert {*TASKS} <= names
    assert len(score_columns(board)) == 1 + N_TASKS


def test_markdown_and_readme_have_one_table(board: Board) -> None:
    for document in (board_document(board), readme_document(board)):
        text = to_markdown(document)
        assert text.count("| Rank |") == 1
        assert text.count("`task-") == MOST_COLUMNS
        assert "`--csv FILE` has all 55 scores" in text


def test_latex_has_one_table_of_scores(board: Board) -> None:
    text = board_latex(board, "Board")
    assert text.count("Overall") == 1
    assert 0 < text.count("task-") <= MOST_COLUMNS + 6
    assert "No room here for" in text
    assert "The table has the overall score with 8 of 54 parts." in text
    assert to_latex(board_document(board)).count("Overall") == 1


def test_pdf_is_made(board: Board) -> None:
    assert to_pdf(board_document(board)).startswith(b"%PDF")


def test_groups_stand_for_their_tasks(tmp_path: Path) -> None:
    runs = large_runs(tmp_path)
    board = make_board(runs, by=["language"])
    shown = shown_columns(board)
    assert [column.title for column in shown.columns] == [
        "Overall",
        "Thai",
        "Vietnamese",
        "Indonesian",
    ]
    assert "the overall score and its parts" in shown.note
    thai = make_board(runs, by=["language"], rank_by="Thai")
    titles = [column.title for column in shown_columns(thai).columns]
    assert titles[:3] == ["Thai", "Overall", "task-00"]
    assert len(titles) == 1 + MOST_COLUMNS
    lines = terminal(board, 120)
    assert [line for line in heads(lines) if "Thai" in line and "Indonesian" in line]


def test_a_board_of_eight_tasks_shows_them_all(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores={name: [1, 0] for name in TASKS[:8]})
    shown = shown_columns(make_board([run]))
    assert len(shown.columns) == 9
    assert not shown.is_level and not shown.note


def test_columns_that_do_not_fit_are_folded_for_each_unit(tmp_path: Path) -> None:
    prose = {f"prose-{i:02}": [-5.0, -4.0] for i in range(20)}
    run = make_run(
        tmp_path,
        scores={"quiz": [1, 0], **prose},
        metric=dict.fromkeys(prose, "token-perplexity"),
    )
    board = make_board([run])
    (further,) = board.more
    shown = shown_columns(further)
    assert len(shown.columns) == 1 + MOST_COLUMNS
    assert "8 of 19 parts" in shown.note


def test_what_has_no_number_says_why(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, scores={"x": [1, 0], "y": [1, 1]}, model="demo/all"),
        make_run(tmp_path, scores={"x": [1, 1]}, model="demo/part"),
        make_run(tmp_path, scores={"x": [1, 1], "y": [None]}, model="demo/failed"),
    ]
    text = " ".join(terminal(make_board(runs), 200))
    assert "'y' of demo/part: the run does not have this task." in text
    assert "'y' of demo/failed: all answers are missing." in text
