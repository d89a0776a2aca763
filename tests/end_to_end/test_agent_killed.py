"""Runs of agents that are killed at random moments: nothing stored is paid or done again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from evalwright.sandboxes.backends import refusal_of
from evalwright.sandboxes.protocol import SandboxSettings
from support.agent_runs import AgentRuns, faulty_server, kill_points


def check_killed_runs(
    folder: Path, n_rows: int, n_steps: int, n_kills: int, seed: int
) -> None:
    """Run once undisturbed and once with kills, and compare records, requests and actions."""
    refusal = refusal_of(SandboxSettings())
    if refusal:
        pytest.skip(refusal)
    with faulty_server(n_steps, seed=seed) as server:
        whole = AgentRuns(folder / "whole", n_rows, n_steps)
        whole.finish(server.url)
    with faulty_server(n_steps, seed=seed) as server:
        killed = AgentRuns(folder / "killed", n_rows, n_steps)
        points = kill_points(n_kills, n_rows * n_steps, seed)
        n_killed = sum(killed.kill_after(server, point) for point in points)
        stored = killed.stored()
        assert server.log is not None
        before = len(server.log)
        last = killed.finish(server.url)
        killed.check_unpaid(server, stored, before)
        outcomes = Counter(entry["outcome"] for entry in server.log)
    assert n_killed > 0 and outcomes["200"] >= n_rows * n_steps
    assert len(outcomes) > 1, "no request failed"
    assert killed.paid_again == []
    assert killed.records() == whole.records()
    assert all(row["answer"].startswith("begun\n") for row in killed.records().values())
    calls = {
        f"{row_id} {call['step']}": call
        for row_id, row in killed.raw_records().items()
        for call in row["strategy"]["tool_calls"]
        if call["name"] == "note"
    }
    notes = killed.notes_by_step()
    assert notes.keys() == calls.keys() == whole.notes_by_step().keys()
    twice = {step for step, count in notes.items() if count > 1}
    again = {step for step, call in calls.items() if call.get("again")}
    assert twice <= again, (
        "a call was carried out twice, and the record does not say so"
    )
    assert bool(again) == ("carried out again" in last)
    assert not (killed.folder / "runs" / "r" / "live.jsonl").exists()


def test_some_trajectories_killed_twice(tmp_path: Path) -> None:
    check_killed_runs(tmp_path, n_rows=4, n_steps=6, n_kills=2, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_fifty_trajectories_killed_twenty_times(tmp_path: Path, seed: int) -> None:
    check_killed_runs(tmp_path, n_rows=50, n_steps=12, n_kills=20, seed=seed)
