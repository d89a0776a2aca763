"""The calls around finished runs take runs, folders and names alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright import compare, leaderboard, open_run
from evalwright.core.errors import RunError, UnknownName
from support.runs import make_run


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, scores in (("a", [1, 1, 0]), ("b", [0, 1, 0])):
        make_run(Path("runs"), scores=scores, name=name, model=f"demo/{name}")


def test_runs_folders_and_names() -> None:
    run = open_run("a")
    assert open_run(run) is run
    assert open_run("runs/a").data == open_run(Path("runs/a/run.json")).data == run.data
    assert (
        compare("a", Path("runs/b")).as_dict() == compare(run, open_run("b")).as_dict()
    )
    assert [row.run for row in leaderboard(["b", run]).rows] == ["a", "b"]


def test_one_run_needs_no_list() -> None:
    assert [row.run for row in leaderboard("a").rows] == ["a"]
    assert [row.run for row in leaderboard(open_run("b")).rows] == ["b"]


def test_another_folder() -> None:
    Path("runs").rename("results")
    assert open_run("a", "results").id == "a"
    assert compare("a", "b", runs_folder="results").b == "b"
    assert len(leaderboard(["a", "b"], runs_folder=Path("results")).rows) == 2
    with pytest.raises(UnknownName, match=r"Unknown run 'c'"):
        compare("a", "c", runs_folder="results")


def test_a_board_of_nothing() -> None:
    with pytest.raises(RunError):
        leaderboard([])
