"""What goes on in a run, read from a file that grows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from evalwright.runs import open_trajectories as live
from evalwright.runs.live import LIVE_FILE, LiveFile
from evalwright.runs.open_trajectories import LiveRun, text_of

KEY = ("shell", "fix-0", 0)


def write(folder: Path, *turns: Any, **more: Any) -> None:
    event = {"task": "shell", "id": "fix-0", "draw": 0, "attempt": 1, "turns": turns}
    with (folder / LIVE_FILE).open("a") as file:
        file.write(json.dumps({**event, **more}) + "\n")


def test_turns_are_added_until_the_sample_is_done(tmp_path: Path) -> None:
    run = LiveRun(tmp_path)
    assert run.look() == []
    assert not run.exists
    write(tmp_path, ["user", "Go."])
    [event] = run.look()
    assert event.turns == (["user", "Go."],)
    assert run.look() == []
    version = run.version
    write(tmp_path, ["assistant", "I go."])
    write(tmp_path, ["user", "Other."], id="fix-1")
    assert len(run.look()) == 2
    assert run.version > version
    trajectory = run.open[KEY]
    assert (trajectory.n_turns, trajectory.n_replies) == (2, 1)
    assert {key[1] for key in run.open} == {"fix-0", "fix-1"}
    write(tmp_path, ended=True)
    [event] = run.look()
    assert event.ended
    assert {key[1] for key in run.open} == {"fix-1"}
    run.close()


def test_a_trajectory_that_starts_anew_has_no_turns_of_before(tmp_path: Path) -> None:
    run = LiveRun(tmp_path)
    write(tmp_path, ["user", "a"], ["assistant", "b"])
    write(tmp_path, ["user", "a"], attempt=2)
    first, second = run.look()
    assert not first.starts_anew
    assert second.starts_anew
    assert [*run.open[KEY].turns] == [["user", "a"]]
    run.close()


def test_a_long_text_says_how_much_of_it_the_run_left_out(tmp_path: Path) -> None:
    writer = LiveFile(tmp_path)
    event = {"task": "shell", "id": "fix-0", "draw": 0, "attempt": 1}
    writer.add({**event, "turns": [["tool", "x" * 50_000]]})
    run = LiveRun(tmp_path)
    run.look()
    [turn] = run.open[KEY].turns
    assert text_of(turn) == f"{'x' * 20_000}\n[30,000 more characters]"
    run.close()
    writer.close()


def test_turns_as_mappings_are_read_too(tmp_path: Path) -> None:
    run = LiveRun(tmp_path)
    calls = [{"name": "bash", "arguments": "{}"}]
    turn = {"role": "assistant", "content": "x", "tool_calls": calls, "reasoning": ""}
    write(tmp_path, turn)
    [event] = run.look()
    assert event.turns == (["assistant", "x", {"tool_calls": calls}],)
    run.close()


def test_a_half_written_line_waits_and_a_damaged_one_is_passed_over(
    tmp_path: Path,
) -> None:
    run = LiveRun(tmp_path)
    file = tmp_path / LIVE_FILE
    for damaged in (b"no json\n", b"[]\n", b"{}\n", b'{"task":1}\n', b"\xff\xfe\n"):
        with file.open("ab") as handle:
            handle.write(damaged)
    write(tmp_path, ["user", "whole"], 7)  # a turn that is none
    write(tmp_path, ["user", "whole"])
    line = json.dumps({"task": "t", "id": "i", "draw": 0, "turns": [["user", "x"]]})
    with file.open("a") as handle:
        handle.write(line[:20])
    assert [event.turns for event in run.look()] == [(["user", "whole"],)]
    with file.open("a") as handle:
        handle.write(line[20:] + "\n")
    assert [event.trajectory.id for event in run.look()] == ["i"]
    run.close()


def test_another_file_or_none_ends_what_was_open(tmp_path: Path) -> None:
    run = LiveRun(tmp_path)
    write(tmp_path, ["user", "a"])
    run.look()
    replaced = tmp_path / "new"
    replaced.mkdir()
    write(replaced, ["user", "of the new one"])
    (replaced / LIVE_FILE).replace(tmp_path / LIVE_FILE)
    run.look()
    assert [text_of(turn) for turn in run.open[KEY].turns] == ["of the new one"]
    (tmp_path / LIVE_FILE).unlink()
    version = run.version
    assert run.look() == []
    assert run.open == {}
    assert run.version > version


def test_a_file_that_is_written_anew_tells_nothing_twice(tmp_path: Path) -> None:
    run = LiveRun(tmp_path)
    writer = LiveFile(tmp_path)

    def add(sample: str, text: str) -> None:
        turns = [["user", text]]
        event = {"task": "t", "id": sample, "draw": 0, "attempt": 1, "turns": turns}
        writer.add(event)

    for n in range(120):
        add(f"done-{n}", "x" * 19_000)
    add("open", "first")
    run.look()
    number = run.open["t", "open", 0].number
    inode = (tmp_path / LIVE_FILE).stat().st_ino
    for n in range(119):
        writer.done("t", f"done-{n}", 0)
    assert (tmp_path / LIVE_FILE).stat().st_ino != inode
    add("open", "second")
    events = run.look()
    assert [event.turns for event in events if event.turns] == [(["user", "second"],)]
    assert sum(event.ended for event in events) >= 100
    assert run.open["t", "open", 0].number == number
    assert run.open["t", "open", 0].n_turns == 2
    writer.close()
    assert run.look() == []
    assert not run.exists


def test_a_link_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write(outside, ["user", "secret"])
    (tmp_path / LIVE_FILE).symlink_to(outside / LIVE_FILE)
    run = LiveRun(tmp_path)
    assert run.look() == []
    (tmp_path / LIVE_FILE).unlink()
    os.mkfifo(tmp_path / LIVE_FILE)
    assert run.look() == []


def test_memory_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_LINE_BYTES", 3_000_000)
    run = LiveRun(tmp_path)
    for n in range(live.MAX_KEPT_TURNS + 30):
        write(tmp_path, ["assistant", f"{n} " + "x" * live.MAX_TEXT_CHARS])
    write(tmp_path, ["user", "y" * 5_000_000])
    write(tmp_path, ["user", "after the long line"])
    run.look()
    trajectory = run.open[KEY]
    assert len(trajectory.turns) == live.MAX_KEPT_TURNS
    assert trajectory.n_turns == live.MAX_KEPT_TURNS + 31
    assert max(len(text_of(turn)) for turn in trajectory.turns) < 21_000
    assert text_of(trajectory.turns[-1]) == "after the long line"
    assert "yyy" not in text_of(trajectory.turns[-2])
    run.close()
