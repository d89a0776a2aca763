"""`entries publish`: the same results give the same bytes, and nothing else is needed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.boards import BoardFolder, add_up, make_board
from support.openai_server import serving
from support.typed import typed


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board with two results."""
    folder = tmp_path_factory.mktemp("boards") / "board"
    with serving(add_up) as right, serving(lambda _: "7") as wrong:
        board = make_board(folder, {"right": right.url, "wrong": wrong.url})
        assert board.run().code == 0
    return folder


@pytest.fixture
def board(finished: Path, tmp_path: Path) -> BoardFolder:
    """A clone of that board: what is in git, and nothing else."""
    folder = tmp_path / "clone"
    shutil.copytree(finished, folder, ignore=shutil.ignore_patterns(".evalwright"))
    return BoardFolder(folder)


def written(board: BoardFolder) -> dict[str, bytes]:
    return {
        str(path.relative_to(board.path)): path.read_bytes()
        for path in board.path.rglob("*")
        if path.is_file()
    }


def test_the_same_results_give_the_same_bytes(
    board: BoardFolder, tmp_path: Path
) -> None:
    other = BoardFolder(tmp_path / "other")
    shutil.copytree(board.path, other.path)
    shutil.rmtree(other.path / "entries")
    for name in ("sums.yaml", "sums.csv"):
        (other.path / name).unlink()
    done = board.entries("publish")
    assert done.code == 0, done.text
    assert "In git: results " in done.out and "kB" in done.out
    assert other.entries("publish").code == 0
    files, others = written(board), written(other)
    made = {name for name in files if name.startswith(("site/", "README"))}
    assert {"site/index.html", "site/board.json", "site/board.csv", "README.md"} < made
    assert all(files[name] == others[name] for name in made)
    again = board.entries("publish")
    assert "Unchanged: README.md" in again.err and written(board) == files


def test_pages_of_results_have_numbers_and_no_texts(board: BoardFolder) -> None:
    assert board.entries("publish").code == 0
    page = (board.path / "site" / "models" / "openai-right.html").read_text()
    assert "100.0" in page and "What is" not in page
    record = json.loads((board.path / "site" / "board.json").read_text())
    labels = [row["label"] for row in record["models"]]
    assert labels == ["openai/right", "openai/wrong"]


def test_pages_of_models_that_left_are_removed(board: BoardFolder) -> None:
    assert board.entries("publish").code == 0
    own_page = board.path / "site" / "models" / "about.html"
    own_page.write_text("<p>ours</p>")
    pages = board.path / "site" / "models"
    n_before = len([*pages.iterdir()])
    shutil.rmtree(board.path / "results" / "wrong")
    # Another title is another board for the marks of pages.
    board.change("board.yaml", "title: Sums", "title: New sums")
    done = board.entries("publish")
    assert done.code == 0 and "Removed: " in done.err, done.text
    assert len([*pages.iterdir()]) == n_before - 1 and own_page.exists()
    assert "# New sums" in (board.path / "README.md").read_text() or (
        "New sums" in (board.path / "site" / "index.html").read_text()
    )


@pytest.mark.parametrize(
    ("options", "n_models"),
    [
        ("{ratings: true, tasks_are: fixed, best: 1}", 2),
        ("{where: [open=true], facts: facts.yaml, examples: 2}", 1),
        ("{metric: sums.accuracy, ratings: false, least_answered: 50}", 2),
    ],
)
def test_options_of_the_board(board: BoardFolder, options: str, n_models: int) -> None:
    with (board.path / "board.yaml").open("a") as file:
        file.write(f"board: {options}\n")
    (board.path / "facts.yaml").write_text("openai/right: {open: yes}\n")
    done = board.entries("publish")
    assert done.code == 0, done.text
    record = json.loads((board.path / "site" / "board.json").read_text())
    assert len(record["models"]) == n_models
    assert ("ratings: true" in options) is bool(record["settings"].get("ratings"))


def test_without_results_nothing_is_published(tmp_path: Path) -> None:
    board = make_board(tmp_path / "empty", {"model": "http://127.0.0.1:9/v1"})
    done = board.entries("publish")
    assert done.code == 0 and "no results yet" in done.out
    assert (
        not (board.path / "site").exists() and not (board.path / "README.md").exists()
    )


def test_files_that_cannot_be_written(board: BoardFolder) -> None:
    (board.path / "site").write_text("a file in its place")
    done = board.entries("publish")
    assert done.code == 2 and "site" in done.err
    assert not (board.path / "README.md").exists()


def test_a_board_without_a_score_is_published_without_its_plot(tmp_path: Path) -> None:
    """As that of summaries with its example, which writes none: the workflow goes on."""
    assert typed("init", "--leaderboard", "hhem", folder=tmp_path).code == 0
    board = BoardFolder(tmp_path)
    board.change("board.yaml", "vectara/hhem_v2.3", "baseline/lexical")
    board.change("board.yaml", "  accept_failures", "  limit: 3\n  accept_failures")
    assert board.entries("run", "--quiet").code == 0
    done = board.entries("publish")
    assert done.code == 0, done.text
    assert "Not written: img/board.svg. There is nothing to plot" in done.err
    assert (tmp_path / "site" / "index.html").exists()


def test_results_of_a_deleted_entry_are_named(board: BoardFolder) -> None:
    assert "No entry" not in board.entries("publish").err
    (board.path / "entries" / "wrong.yaml").unlink()
    done = board.entries("publish")
    assert done.code == 0
    assert "No entry: results/wrong. What has none is shown" in done.err
