"""Runs are renamed and deleted: what is written, what is left, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright import open_run
from evalwright.core.errors import ConfigurationError, RunError, UnknownName
from evalwright.runs.confirmed import doubts
from evalwright.runs.housekeeping import delete_run, removable_folder, rename_run
from evalwright.runs.writer import RunWriter
from support.runs import make_run
from support.typed import typed


@pytest.fixture
def runs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs"
    for name in ("a", "b"):
        make_run(folder, scores=[1.0, 0.0], name=name, model=f"demo/{name}")
    return folder


def test_a_renamed_run_has_its_new_name_everywhere(runs_folder: Path) -> None:
    before = open_run("a").tasks
    assert rename_run("a", "better", runs_folder) == runs_folder / "better"
    run = open_run("better")
    assert (run.id, run.name, run.tasks) == ("better", "better", before)
    assert doubts(run) == []
    run.verify()
    with pytest.raises(UnknownName):
        open_run("a")


@pytest.mark.parametrize("name", ["b", "", "../b", "x/y", "."])
def test_a_name_that_is_taken_or_none_is_refused(runs_folder: Path, name: str) -> None:
    with pytest.raises(ConfigurationError):
        rename_run("a", name, runs_folder)
    assert open_run("a").id == "a"


def test_a_deleted_run_leaves_what_it_did_not_write(runs_folder: Path) -> None:
    notes = runs_folder / "a" / "notes.txt"
    notes.write_text("mine")
    assert delete_run(removable_folder("a", runs_folder)) == [notes]
    assert [path.name for path in (runs_folder / "a").iterdir()] == ["notes.txt"]
    assert delete_run(removable_folder("b", runs_folder)) == []
    assert not (runs_folder / "b").exists()


def test_a_run_that_is_being_made_is_not_touched(runs_folder: Path) -> None:
    folder = runs_folder / "new"
    with (
        RunWriter(folder, {"id": "new"}) as writer,
        pytest.raises(RunError, match="being made"),
    ):
        writer.show()
        removable_folder("new", runs_folder)


def test_a_link_is_not_followed(runs_folder: Path) -> None:
    (runs_folder / "link").symlink_to(runs_folder / "a")
    with pytest.raises(RunError, match="link"):
        removable_folder("link", runs_folder)


def test_the_commands(runs_folder: Path) -> None:
    done = typed("runs", "rename", "a", "c")
    assert (done.code, json.loads((runs_folder / "c/run.json").read_text())["id"]) == (
        0,
        "c",
    )
    assert typed("runs", "delete", "c").code != 0, "without an answer nothing goes"
    assert (runs_folder / "c").exists()
    done = typed("runs", "delete", "c", "b", "--yes")
    assert done.code == 0 and list(runs_folder.iterdir()) == []
    assert typed("runs", "delete", "c", "--yes").code == 2
