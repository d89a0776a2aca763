"""`live.jsonl`: the open samples of a run, bounded, and gone with the run."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from evalwright.runs import live
from evalwright.runs.live import LiveFile


def _event(sample: str, text: str, **more: Any) -> dict[str, Any]:
    turns = [["user", text]]
    return {"task": "t", "id": sample, "draw": 0, "attempt": 1, "turns": turns, **more}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_events_are_lines_until_the_run_ends(tmp_path: Path) -> None:
    file = LiveFile(tmp_path)
    assert not file.path.exists()  # runs without trajectories have none
    file.add(_event("a", "one\ntwo"))
    file.add(_event("b", "x" * 30_000))
    file.add({"task": "t", "id": "a", "draw": 0, "attempt": 1, "ended": True})
    lines = _lines(file.path)
    assert lines[0] == _event("a", "one\ntwo")
    assert lines[1]["turns"][0][1].endswith("\n[10,000 more characters]")
    assert lines[2]["ended"] is True
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    file.close()
    assert not file.path.exists()


def test_samples_that_are_done_leave_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_MIN_DEAD_BYTES", 2_000)
    file = LiveFile(tmp_path)
    for step in range(20):
        for sample in ("a", "b"):
            file.add(_event(sample, f"{sample} {step} " + "x" * 200))
    file.done("t", "a", 0)
    file.done("t", "nobody", 0)
    lines = _lines(file.path)
    assert [line["turns"][0][1][:4] for line in lines] == [
        f"b {n} "[:4] for n in range(20)
    ]
    file.add(_event("b", "last"))
    file.done("t", "b", 0)
    assert _lines(file.path) == []
    file.add(_event("c", "first"))
    assert _lines(file.path) == [_event("c", "first")]
    assert list(tmp_path.iterdir()) == [file.path]
    file.close()


def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_BYTES", 5_000)
    file = LiveFile(tmp_path)
    for step in range(100):
        file.add(_event("a", f"{step} " + "x" * 200))
    assert file.path.stat().st_size <= 5_000
    file.close()


def test_what_a_killed_run_left_goes(tmp_path: Path) -> None:
    (tmp_path / "live.jsonl").write_text("old")
    LiveFile(tmp_path)
    assert not (tmp_path / "live.jsonl").exists()


def test_a_disk_that_fails_ends_nothing_else(tmp_path: Path) -> None:
    file = LiveFile(tmp_path / "nowhere")
    file.add(_event("a", "one"))
    file.add(_event("a", "two"))
    file.done("t", "a", 0)
    file.close()
