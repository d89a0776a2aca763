"""Where a run was made: the commit of the repository that the working folder is in."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from evalwright.runs.environment import environment


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_is_that_of_the_repository(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert environment()["git_commit"] is None
    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", "Start")
    inner = own_folder / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert environment()["git_commit"] == git("rev-parse", "HEAD")


def test_libraries_have_their_versions() -> None:
    import numpy

    assert environment()["libraries"]["numpy"] == numpy.__version__
