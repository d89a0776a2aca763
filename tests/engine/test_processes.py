"""Several real processes on one store, and processes that are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("each_store")

_TESTS = Path(__file__).parent.parent
_CHILD = Path(__file__).parent / "child.py"
_CHILDREN: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    """Whatever a test did not end is ended."""
    yield
    while _CHILDREN:
        child = _CHILDREN.pop()
        if child.poll() is None:
            kill(child)
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()


def start(
    home: Path, log: Path, acknowledged: Path, count: int, latency: float
) -> subprocess.Popen[str]:
    """A child that asks `count` questions."""
    paths = [str(_TESTS), str(_TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    child = subprocess.Popen(
        [
            sys.executable,
            str(_CHILD),
            str(home),
            str(log),
            str(acknowledged),
            str(count),
            str(latency),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _CHILDREN.append(child)
    return child


def finish(child: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for a child that should end well; its counts."""
    out, err = child.communicate(timeout=1800)
    assert child.returncode == 0, err
    counts: dict[str, Any] = json.loads(out)
    return counts


def kill(child: subprocess.Popen[str]) -> None:
    """End it as no process would wish to end."""
    child.send_signal(signal.SIGKILL)
    child.communicate()


def lines(path: Path) -> list[str]:
    """The lines of a file that need not exist."""
    return path.read_text().split() if path.exists() else []


def wait_for_lines(path: Path, count: int) -> None:
    until = time.monotonic() + 300
    while len(lines(path)) < count:
        assert time.monotonic() < until, "the child does not get on"
        time.sleep(0.005)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_was_acknowledged_before_a_kill_is_never_asked_again(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    log = tmp_path / "log"
    acknowledged = tmp_path / "acknowledged"
    chance = random.Random(7)
    settled: set[str] = set()
    count = 600
    asked_for_settled = Counter[str]()
    for _ in range(4):
        before = len(lines(acknowledged))
        child = start(home, log, acknowledged, count, 0.004)
        wait_for_lines(acknowledged, before + chance.randrange(1, 60))
        time.sleep(chance.uniform(0, 0.01))
        kill(child)
        now_settled = set(lines(acknowledged))
        asked = Counter(lines(log))
        assert all(asked[number] == asked_for_settled[number] for number in settled)
        settled = now_settled
        asked_for_settled = asked
    counts = finish(start(home, log, acknowledged, count, 0.004))
    asked = Counter(lines(log))
    assert settled and all(
        asked[number] == asked_for_settled[number] for number in settled
    )
    assert set(asked) == {str(number) for number in range(count)}
    assert counts["asked"] + counts["stored"] == count
    assert counts["stored"] >= len(settled)
    assert finish(start(home, log, acknowledged, count, 0.004))["stored"] == count


def test_four_processes_ask_each_request_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    log = tmp_path / "log"
    names = ("first", "second", "third", "fourth")
    children = [start(home, log, tmp_path / name, 500, 0.02) for name in names]
    counts = [finish(child) for child in children]
    assert Counter(lines(log)) == Counter({str(number): 1 for number in range(500)})
    assert sum(count["asked"] for count in counts) == 500
    for count in counts:
        assert count["failed"] == 0
        assert count["asked"] + count["stored"] + count["joined"] == 500
    for name in names:
        assert sorted(lines(tmp_path / name), key=int) == [
            str(number) for number in range(500)
        ]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_the_claims_of_a_killed_process_are_taken_over_at_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    log = tmp_path / "log"
    # The first one never gets an answer, so that all it holds is claims.
    stuck = start(home, log, tmp_path / "stuck", 16, 600.0)
    wait_for_lines(log, 16)
    heir = start(home, log, tmp_path / "heir", 16, 0.001)
    time.sleep(0.6)  # time in which the heir could go wrong
    assert len(lines(log)) == 16, "a living process's claim was not respected"
    kill(stuck)
    counts = finish(heir)
    assert counts["asked"] == 16
    assert Counter(lines(log)) == Counter({str(number): 2 for number in range(16)})
