"""What the commands on runs say of a run whose process was killed, or that is going on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import environment
from support.typed import typed

KILLED = """
import os, signal
from evalwright import LocalModel, model

@model("killed")
class Killed(LocalModel):
    heavy = False

    def __init__(self, name):
        self.name = name
        self.abilities = frozenset({"generate"})
        self.fingerprint = f"killed/{name}"

    def load(self):
        pass

    def answer_batch(self, requests):
        os.kill(os.getpid(), signal.SIGKILL)
"""
COMMAND = ("run", "mine.csv", "--plugin", "killed.py", "--model", "killed/x")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `runs/half`, whose process was killed while its model answered."""
    (tmp_path / "killed.py").write_text(KILLED, encoding="utf-8")
    (tmp_path / "mine.csv").write_text("question,answer\nWhat is 2+2?,4\n")
    ended = subprocess.run(
        [sys.executable, "-m", "evalwright", *COMMAND, "--name", "half"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "show", "half"),
        ("runs", "show", "runs/half"),
        ("runs", "samples", "half"),
        ("compare", "half", "half"),
    ],
)
def test_an_interrupted_run_is_said_to_be_one(
    folder: Path, words: tuple[str, ...]
) -> None:
    done = typed(*words, folder=folder)
    assert done.code == 2
    assert done.err.strip() == (
        "Error: The run 'half' was interrupted before it was finished. Start the same"
        " command again to continue it: answers that it had received are kept."
        " `evalwright view runs/half` shows those so far."
    )


def test_the_list_has_it(folder: Path) -> None:
    done = typed("runs", "list", folder=folder)
    assert done.code == 0
    assert [row.split()[:3] for row in done.out.splitlines() if "half" in row] == [
        ["half", "killed/x", "interrupted"]
    ]
    assert "Start the same command again" in " ".join(done.out.split()).replace(
        "start", "Start"
    )
    assert "half" not in typed("runs", "list", "--json", folder=folder).out

    assert typed("run", "factual-choice-names", "--model", "demo/small", "--limit", "2",
                 "--name", "whole", folder=folder).code == 0  # fmt: skip
    listed = typed("runs", "list", folder=folder).out
    assert listed.index("whole") < listed.index("half")


def test_one_that_is_going_on(folder: Path) -> None:
    (partial,) = (folder / "runs/half").glob(".*.partial")
    for file in (partial, partial.with_suffix(".about")):
        _, samples, suffix, _, number, ending = file.name.split(".")
        file.rename(
            file.with_name(f".{samples}.{suffix}.{os.getpid()}.{number}.{ending}")
        )
    said = typed("runs", "show", "half", folder=folder).err
    assert "The run 'half' is still going on" in said
    assert "going on" in typed("runs", "list", folder=folder).out


def test_a_folder_without_any_run(tmp_path: Path) -> None:
    (tmp_path / "runs/empty").mkdir(parents=True)
    said = typed("runs", "show", "empty", folder=tmp_path).err
    assert "it is not a finished run" in said and "same command again" in said
