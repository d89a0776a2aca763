"""A model that acts in a jail, watched while it does, and looked at afterwards."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright import evaluate, model
from evalwright.reports.explorer.page import write_page
from evalwright.runs.open_trajectories import LiveRun, text_of
from evalwright.runs.transcripts import read_transcript
from support.browser import IN_BROWSER, Tab, in_new_tab, until
from support.left_states import needs_jail
from support.typed import typed

pytestmark = [needs_jail, pytest.mark.usefixtures("own_folder"), *IN_BROWSER]

COMMANDS = ("echo one > a.txt; ls", "cat missing", "seq 1 2000", "")
WATCHED: dict[str, Any] = {}
"""What was seen of the run while the model acted."""


@model(name="typist", fingerprint="1")
def typist(
    messages: Sequence[dict[str, Any]], *, tools: Any = (), **settings: Any
) -> dict[str, Any]:
    """Types one command after another, then submits."""
    n_replies = sum(turn["role"] == "assistant" for turn in messages)
    if n_replies == 2:
        watch()
    command = COMMANDS[n_replies]
    name, arguments = (
        ("bash", {"command": command}) if command else ("submit", {"answer": "typed"})
    )
    call = {"id": f"call_{n_replies}", "name": name, "arguments": arguments}
    return {"text": f"reply {n_replies}", "tool_calls": [call]}


def watch() -> None:
    """Look at what goes on, as `evalwright runs live` does."""
    live = LiveRun(Path("runs/typed"))
    for _ in range(30_000):
        live.look()
        trajectories = [*live.open.values()]
        if trajectories and trajectories[0].n_turns >= 6:
            WATCHED["turns"] = [
                (turn[0], text_of(turn)) for turn in trajectories[0].turns
            ]
            break
        time.sleep(0.02)
    WATCHED["command"] = typed("runs", "live", "typed", "--once").out
    live.close()


def test_a_trajectory_is_seen_while_it_goes_on_and_after() -> None:
    definition = {
        "task": "typing",
        "dataset": {"rows": [{"id": "one", "question": "Type."}]},
        "sample": {"input": "{{ question }}"},
        "prompt": {"user": "{{ question }}"},
        "sandbox": "jail",
        "strategy": "agent",
        "scorers": [{"files": {"/work/a.txt": "one\n"}}],
    }
    Path("typing.yaml").write_text(yaml.safe_dump(definition))
    [run] = evaluate("typing.yaml", typist, name="typed")

    roles = [role for role, _ in WATCHED["turns"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert "1 open trajectory" in WATCHED["command"]
    assert not (run.folder / "live.jsonl").exists()

    [row] = run.rows()
    transcript = read_transcript(row)
    assert transcript is not None
    assert transcript.ended == "submit"
    assert transcript.sandbox == "jail"
    uses = [use for step in transcript.steps for use in step.uses]
    assert [use.name for use in uses] == ["bash", "bash", "bash", "submit"]
    assert [use.exit_code for use in uses[:3]] == [None, 1, None]
    assert all(use.seconds is not None for use in uses)
    assert transcript.steps[-1].total.tool_seconds > 0
    assert uses[0].result is not None
    assert "a.txt" in uses[0].result

    shown = typed("runs", "samples", "typed", "one")
    assert "Result of bash (exit code 1" in shown.out, shown.text
    assert "--whole shows them]" in shown.out
    assert "The model submitted its answer." in shown.out

    page = Path("page.html").resolve()
    write_page([run], page, title="Typed", progress=lambda _: None)

    async def steps(tab: Tab) -> None:
        await tab.open(f"{page.as_uri()}#/run/typed/sample/typing/one/0?step=2")
        await until(tab, "document.querySelectorAll('.step').length === 4")
        main = await tab.evaluate("document.querySelector('main').innerText")
        for words in (
            "exit code 1",
            "sandbox: jail",
            "The model submitted its answer.",
        ):
            assert words in main

    in_new_tab(steps)
