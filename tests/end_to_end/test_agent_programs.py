"""Agents of others by `agent-command`, killed with SIGKILL at random moments and run again: the
record is that of an undisturbed run, and no stored reply is asked for again.

mini-swe-agent, inspect_ai and OpenAI's library run where EVALWRIGHT_AGENT_PACKAGES names a folder
that has them (`pip install --target FOLDER mini-swe-agent`).
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from evalwright.sandboxes.backends import refusal_of
from evalwright.sandboxes.protocol import SandboxSettings
from support.command import wait_until
from support.killed_programs import (
    WORK,
    finish,
    kill_and_resume,
    lines,
    programs,
    received,
    start,
    stored,
    write_task,
)
from support.killed_programs import model_of as model_for
from support.scripted_chat import scripted_chat

pytestmark = pytest.mark.skipif(
    bool(refusal_of(SandboxSettings())), reason="this system has no jail"
)
PACKAGES = os.environ.get("EVALWRIGHT_AGENT_PACKAGES", "")
KILLS = 3
NEEDED = {
    "urllib": "",
    "openai": "openai",
    "mini-swe-agent": "minisweagent",
    "inspect-react": "inspect_ai",
}


def _program_names() -> list[object]:
    """The agents, those that are not here with the reason why they are left out."""
    names: list[object] = []
    for name, package in NEEDED.items():
        is_here = not package or (Path(PACKAGES or "none") / package).is_dir()
        reason = f"EVALWRIGHT_AGENT_PACKAGES names no folder with {package}"
        mark = pytest.mark.skipif(not is_here, reason=reason)
        names.append(pytest.param(name, marks=mark))
    return names


@pytest.mark.parametrize("name", _program_names())
def test_killed_and_resumed(tmp_path: Path, name: str) -> None:
    program = programs(PACKAGES)[name]
    write_task(tmp_path, program)
    with scripted_chat(model_for(program), seconds=0.05) as calm:
        finish(tmp_path, calm, "calm")
        assert set(received(calm).values()) == {1}
    with scripted_chat(model_for(program), seconds=0.05) as server:
        known = kill_and_resume(tmp_path, server, KILLS, random.Random(5))
        final = received(server)
    assert not {
        request: (before, final[request])
        for request, before in known.items()
        if final[request] > before
    }
    assert known
    # Each of the tasks may have had one request in flight at each kill.
    assert sum(final.values()) <= len(received(calm)) + KILLS * len(WORK)
    assert lines(tmp_path, "killed") == lines(tmp_path, "calm")
    answers = lines(tmp_path, "calm")
    assert len(answers) == len(WORK)
    assert {row["strategy"]["ended"] for row in answers} == {"exit"}
    assert {row["strategy"]["attempts"] for row in answers} == {1}


def test_an_interruption_keeps_what_was_answered(tmp_path: Path) -> None:
    """Ctrl-C: what was sent is awaited and stored, and the run goes on from there."""
    program = programs("")["urllib"]
    write_task(tmp_path, program)
    with scripted_chat(model_for(program), seconds=0.3) as server:
        process = start(tmp_path, server, "interrupted")
        wait_until(lambda: len(server.bodies) >= 8, process)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 130, output
        assert set(received(server)) == stored(tmp_path / "interrupted")
        finish(tmp_path, server, "interrupted")
        assert set(received(server).values()) == {1}
