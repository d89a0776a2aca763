"""`evalwright runs live`: what goes on in a run, in lines and on a screen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.runs.live import LIVE_FILE
from support.command import environment
from support.hostile import ACTIVE, HOSTILE
from support.shown import in_a_terminal
from support.trajectory_runs import fixing, record_trajectory, trajectory_run
from support.typed import typed

SCRIPT = "import sys; from evalwright.cli import main; sys.exit(main(sys.argv[1:]))"


def event(folder: Path, *turns: Any, **more: Any) -> None:
    line = {"task": "shell", "id": "fix-0", "draw": 0, "attempt": 1, "turns": turns}
    with (folder / LIVE_FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps({**line, **more}) + "\n")


def turns() -> list[Any]:
    row: dict[str, Any] = {}
    record_trajectory(row, fixing())
    prompt: list[Any] = row["prompt"]
    return prompt


@pytest.fixture
def going(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A run folder, and the process that is said to write it."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    folder = tmp_path / "runs" / "going"
    folder.mkdir(parents=True)
    (folder / f".samples.jsonl.{process.pid}.partial").touch()
    about = json.dumps({"model": "demo/small", "expected": 3})
    (folder / f".samples.jsonl.{process.pid}.about").write_text(about)
    yield folder, process
    process.kill()
    process.communicate()


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def test_once_shows_what_is_open(
    going: tuple[Path, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    folder, _ = going
    event(folder, *turns()[:5])
    event(folder, ["user", "Else."], id="fix-1", draw=1)
    done = typed("runs", "live", "going", "--once", folder=tmp_path)
    assert done.code == 0, done.text
    assert "2 open trajectories" in done.out
    assert "fix-0: 2 steps, 5 turns" in done.out
    assert 'assistant: bash({"command": "python3 -m pytest -q"})' in done.out
    assert "fix-1 #1: 0 steps, 1 turns" in done.out
    one = typed("runs", "live", "going", "--once", "--id", "fix-1", folder=tmp_path)
    assert "1 open trajectory" in one.out


def test_off_a_terminal_each_turn_is_a_line_until_the_run_ends(
    going: tuple[Path, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    folder, process = going
    for text in HOSTILE:
        event(folder, ["assistant", text], id=text or "empty")
    event(folder, *turns())
    event(folder, *turns()[:3], attempt=2)
    event(folder, ended=True, attempt=2)
    timer = threading.Timer(1.0, end, [process])
    timer.start()
    done = typed("runs", "live", "going", folder=tmp_path)
    timer.join()
    assert done.code == 0, done.text
    for line in (
        "fix-0  user: Make the tests pass.\n",
        "fix-0  starts again (attempt 2)\n",
        "fix-0  done\n",
        "The run has ended.\n",
    ):
        assert line in done.out, done.out
    assert not {*ACTIVE} & {*done.text}


def test_on_a_terminal_it_is_one_screen(
    going: tuple[Path, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    folder, process = going
    event(folder, *turns()[:5], ["assistant", HOSTILE[13]])
    timer = threading.Timer(3.0, end, [process])
    timer.start()
    code, shown, _ = in_a_terminal(
        SCRIPT,
        "runs",
        "live",
        str(folder),
        stream="stdout",
        environment={
            **environment(),
            "TERM": "xterm",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )
    timer.join()
    assert code == 0, shown
    assert "fix-0: 3 steps, 6 turns" in shown
    assert "The run has ended." in shown
    assert "\x1b]8" not in shown


def test_a_run_that_is_done_or_absent_says_so(tmp_path: Path) -> None:
    trajectory_run(tmp_path / "runs", [fixing()])
    done = typed("runs", "live", "acting", folder=tmp_path)
    assert done.code == 0
    assert "Nothing is going on in 'acting'" in done.out
    absent = typed("runs", "live", "absent", folder=tmp_path)
    assert absent.code == 2
    assert "There is no run 'absent'" in absent.text
