"""A `.evalwright` that came with somebody else's files decides nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalwright.core.notes import write_note
from evalwright.evaluation.task_choice import sample_order
from evalwright.tasks.datasets import checked
from evalwright.tasks.datasets.kept_copies import note_own_copy
from evalwright.tasks.loading import load_task

FORGED_ROW = b'{"question": "An easy question?", "target": "yes"}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / ".evalwright"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config of the forger"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".evalwright"


def test_an_order_that_came_with_a_folder_is_not_drawn(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = sample_order(100_000, 3, 3)
    easy = [7, 8, 9]
    write_note("orders", [100_000, 3, 3], 1, easy)
    assert sample_order(100_000, 3, 3).tolist() == easy  # the forger's own machine
    monkeypatch.setenv("XDG_CONFIG_HOME", os.path.realpath("config"))
    assert sample_order(100_000, 3, 3) == expected


def test_rows_that_came_with_a_folder_are_not_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("hard.csv").write_text("question,target\nA hard question?,42\n")
    assert [sample.input for sample in load_task("hard.csv").samples] == [
        "A hard question?"
    ]
    [copy] = (home / "datasets").iterdir()
    copy.write_bytes(FORGED_ROW)
    note_own_copy(copy)
    assert [sample.input for sample in load_task("hard.csv").samples] == [
        "An easy question?"
    ]
    monkeypatch.setenv("XDG_CONFIG_HOME", os.path.realpath("config"))
    assert [sample.input for sample in load_task("hard.csv").samples] == [
        "A hard question?"
    ]


def test_rows_that_somebody_else_checked_are_checked_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checked, "SMALLEST", 0)
    Path("d.jsonl").write_text('{"question": "q", "target": "t"}\n')
    for _ in range(2):
        load_task("d.jsonl")
    [of_the_forger] = (home / "checked").iterdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", os.path.realpath("config"))
    load_task("d.jsonl")
    [own] = set((home / "checked").iterdir()) - {of_the_forger}
    own.write_bytes(of_the_forger.read_bytes())
    assert checked.CHECKED.read(own.name) is None
    assert len(load_task("d.jsonl").samples) == 1
