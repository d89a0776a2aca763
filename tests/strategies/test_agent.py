"""`agent`: what the model is sent, what is carried out, what ends it, and what is recorded."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import evalwright
from evalwright import load_task, tool
from evalwright.core.errors import (
    ConfigurationError,
    ModelError,
    PromptTooLong,
    RequestFailed,
)
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response, Usage
from evalwright.sandboxes.protocol import SandboxFailed, Snapshot
from evalwright.strategies import agent_sandbox
from evalwright.strategies.agent_loop import AgentRun
from evalwright.strategies.limits import Limits
from evalwright.tools.task_tools import TaskTools
from strategies.asking import asked
from support.acting import (
    Reply,
    Script,
    act,
    after,
    agent,
    bash,
    calls,
    interrupted,
    plan,
    submit,
    texts,
    turns_of,
)
from support.folder_sandbox import FolderBackend, folder_sandboxes

noted: list[str] = []


@tool
def note(text: str) -> str:
    """Write a note."""
    noted.append(text)
    return f"noted {text}"


@pytest.fixture(autouse=True)
def nothing_noted() -> None:
    noted.clear()


@pytest.fixture(autouse=True)
def snapshots_by_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have snapshots fall due by the number of actions only, on a machine of any speed."""
    monkeypatch.setattr(agent_sandbox, "SNAPSHOT_SECONDS", math.inf)
    monkeypatch.setattr(agent_sandbox, "CHEAP_SECONDS", math.inf)
    monkeypatch.setattr(agent_sandbox, "_idle_processes", {})


@pytest.fixture
def backend() -> Iterator[FolderBackend]:
    with folder_sandboxes() as made:
        yield made


WITH_NOTES = TaskTools(functions=[note], sandbox_tools=["bash", "submit"])


def test_tools_act_in_the_sandbox(backend: FolderBackend, tmp_path: Path) -> None:
    script = after(
        bash("cat in.txt setup.txt; echo out > out.txt; echo oops >&2; exit 3"),
        calls(("write_file", {"path": "/work/a/b.txt", "content": "x\ny\ny\n"})),
        calls(
            ("edit_file", {"path": "a/b.txt", "old": "y", "new": "z"}),
            ("edit_file", {"path": "a/b.txt", "old": "x\n", "new": "w\n"}),
            ("read_file", {"path": "a/b.txt", "first_line": 1, "last_line": 2}),
            ("read_file", {"path": "missing.txt"}),
        ),
        calls(("list_files", {"path": "."}), ("python", {"code": "print(6 * 7)"})),
        calls(("bash", {"cmd": "ls"}), ("bash", {"command": 3}), ("nope", {})),
        submit("42"),
    )
    made = agent(sandbox=plan(("/work/in.txt", "in\n"), setup="echo set > setup.txt"))
    acted = act(made, script, tmp_path)
    assert acted.results == [
        "in\nset\n[errors]\noops\n[exit code 3]",
        "Written: 6 bytes.",
        "Nothing was replaced: the text to replace is there 2 times.",
        "Replaced.",
        "w\ny\n",
        "'missing.txt': No such file or directory.",
        "a/\nin.txt\nout.txt\nsetup.txt",
        "42",
        "The argument 'command' is missing.",
        "The argument 'command' is a text, not 3.",
        "There is no tool 'nope'. The tools are: bash, python, read_file, write_file,"
        " edit_file, list_files, submit.",
        "Submitted.",
    ]
    assert [call["is_error"] for call in acted.calls] == [
        *(True, False, True, False, False, True),
        *(False, False, True, True, True, False),
    ]
    strategy = acted.answer.strategy
    assert acted.answer.text == "42" and acted.answer.outcome == "answered"
    assert (strategy["name"], strategy["steps"], strategy["ended"]) == (
        "agent",
        6,
        "submit",
    )
    assert strategy["attempts"] == 1 and "started_anew" not in strategy
    assert strategy["sandbox"]["backend"] == "folder"
    kept = (
        tmp_path / "sandboxes" / "folder" / strategy["sandbox"]["snapshot"]["reference"]
    )
    assert kept.exists()
    assert strategy["seconds"]["model"] == 3.0 and strategy["seconds"]["tools"] > 0
    turns = acted.answer.prompt
    assert isinstance(turns, tuple)
    assert [turn.role for turn in turns[:3]] == ["system", "user", "assistant"]
    assert "sandbox, without a network. Commands start in /work." in turns[0].text
    told = [turn for event in acted.events for turn in event.get("turns", ())]
    assert [turn[0] for turn in told] == [turn.role for turn in turns]
    assert acted.events[-1] == {
        "task": "t", "id": "s1", "draw": 0, "attempt": 1, "ended": True
    }  # fmt: skip


def test_an_answer_without_calls_ends_it(
    backend: FolderBackend, tmp_path: Path
) -> None:
    acted = act(agent(), after(bash("true"), "It is done."), tmp_path)
    assert acted.answer.text == "It is done."
    assert acted.answer.strategy["ended"] == "answer"
    empty = act(agent(), after(Response("", finish_reason="stop")), tmp_path / "b")
    assert empty.answer.text == "" and empty.answer.strategy["ended"] == "answer"
    assert empty.answer.strategy["sandbox"]["snapshot"] is not None


def test_calls_behind_submit_are_not_carried_out(
    backend: FolderBackend, tmp_path: Path
) -> None:
    reply = calls(("submit", {"answer": "a"}), ("bash", {"command": "touch b"}))
    acted = act(agent(), after(reply), tmp_path)
    assert acted.answer.text == "a" and acted.calls[1]["is_error"]
    assert "submitted before it" in acted.results[1]
    assert backend.executed == []


@pytest.mark.parametrize(
    ("limits", "ended", "n_replies"),
    [
        (Limits(messages=2), "messages", 2),
        (Limits(messages=None, tokens=250), "tokens", 3),
        (Limits(dollars=0.02), "dollars", 2),
        (Limits(seconds=1200), "seconds", 3),
    ],
)
def test_limits_end_it(
    backend: FolderBackend,
    tmp_path: Path,
    limits: Limits,
    ended: str,
    n_replies: int,
) -> None:
    script: Script = lambda n, request: bash(  # noqa: E731
        f"echo {n} >> log.txt", cost=0.01, latency=500.0
    )
    acted = act(agent(limits=limits), script, tmp_path)
    assert acted.answer.strategy["ended"] == ended
    assert acted.answer.strategy["steps"] == n_replies == len(acted.asked)
    assert acted.answer.outcome == "answered"
    again = act(agent(limits=limits), script, tmp_path)
    assert again.asked == [] and again.answer.strategy["ended"] == ended


@pytest.mark.parametrize(
    ("limits", "warning"),
    [
        (Limits(messages=3, dollars=0.01), "`limits.dollars`"),
        (Limits(messages=3, tokens=1), "`limits.tokens`"),
    ],
)
def test_a_limit_that_cannot_be_counted_warns(
    backend: FolderBackend,
    tmp_path: Path,
    limits: Limits,
    warning: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evalwright.strategies.limits._warned", set())
    script: Script = lambda n, request: bash("true", usage=Usage())  # noqa: E731
    acted = act(agent(limits=limits), script, tmp_path)
    assert acted.answer.strategy["ended"] == "messages"
    assert [record.message.split()[0] for record in caplog.records] == [warning]


def test_a_call_is_cut_by_what_is_left_of_the_seconds(
    backend: FolderBackend, tmp_path: Path
) -> None:
    script = after(
        calls(("bash", {"command": "sleep 30"}), ("bash", {"command": "touch b"}))
    )
    acted = act(agent(limits=Limits(seconds=0.8)), script, tmp_path)
    assert acted.results == ["[The command was stopped: its time was over.]"]
    assert acted.answer.strategy["ended"] == "seconds"


# -- interruptions


def in_steps(n_steps: int, command: str) -> Script:
    """So many calls of bash, with their number, then the log is submitted."""

    def script(n_replies: int, request: Generate) -> Reply:
        if n_replies < n_steps:
            return bash(command.format(n=n_replies))
        if n_replies == n_steps:
            return bash("cat log.txt")
        return submit(turns_of(request)[-1].text)

    return script


def test_what_is_stored_is_replayed_and_done_again_in_a_new_sandbox(
    backend: FolderBackend, tmp_path: Path
) -> None:
    script = in_steps(4, "echo {n} $(wc -l < log.txt) >> log.txt; tail -n 1 log.txt")
    made = agent(sandbox=plan(("/work/log.txt", "begun\n")))
    whole = act(made, script, tmp_path / "whole")
    n_executed = len(backend.executed)
    home = tmp_path / "home"
    for n_replies in (1, 3):
        with pytest.raises(RequestFailed):
            act(made, interrupted(n_replies, script), home)
    assert backend.starts == [None, None, None]
    resumed = act(made, script, home)
    assert resumed.answer.text == whole.answer.text == "begun\n0 1\n1 2\n2 3\n3 4"
    assert resumed.results == whole.results
    assert len(resumed.asked) == 3  # those that had failed
    assert [call.get("replayed", False) for call in resumed.calls] == [
        True, True, True, False, False, False
    ]  # fmt: skip
    assert backend.starts == [None] * 4
    assert n_executed < len(backend.executed)
    assert resumed.answer.strategy["attempts"] == 1
    assert (
        resumed.answer.strategy["sandbox"]["snapshot"]
        == whole.answer.strategy["sandbox"]["snapshot"]
    )


def test_a_finished_trajectory_needs_no_sandbox(
    backend: FolderBackend, tmp_path: Path
) -> None:
    script = in_steps(2, "echo {n} >> log.txt")
    first = act(agent(), script, tmp_path)
    backend.starts.clear()
    second = act(agent(), script, tmp_path)
    assert second.asked == [] and backend.starts == []
    assert second.answer.text == first.answer.text
    assert second.answer.strategy["sandbox"] == first.answer.strategy["sandbox"]
    for snapshot in (tmp_path / "sandboxes" / "folder").iterdir():
        snapshot.unlink()
    third = act(agent(), script, tmp_path)
    assert backend.starts == [None]
    assert third.answer.strategy["sandbox"] == first.answer.strategy["sandbox"]
    assert any((tmp_path / "sandboxes" / "folder").iterdir())


def test_a_sandbox_goes_on_from_its_last_snapshot(
    backend: FolderBackend, tmp_path: Path
) -> None:
    script = in_steps(14, "echo {n} >> log.txt; date +%N > time.txt")
    with pytest.raises(RequestFailed):
        act(agent(), interrupted(12, script), tmp_path)
    backend.executed.clear()
    resumed = act(agent(), script, tmp_path)
    assert isinstance(backend.starts[-1], Snapshot)
    commands = [command[-1] for command in backend.executed if "echo" in command[-1]]
    redone = [command for command in commands if "log.txt" in command][:2]
    assert [command.split()[1] for command in redone] == ["10", "11"]
    assert resumed.answer.text == "\n".join(str(n) for n in range(14))
    assert resumed.answer.strategy["attempts"] == 1


@pytest.mark.parametrize(("cheap_seconds", "n_redone"), [(math.inf, 0), (-1.0, 2)])
def test_time_of_actions_makes_a_snapshot_due_where_it_is_cheap(
    backend: FolderBackend,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cheap_seconds: float,
    n_redone: int,
) -> None:
    """The first is always taken: nobody knows yet what it costs."""
    monkeypatch.setattr(agent_sandbox, "SNAPSHOT_SECONDS", 0.0)
    monkeypatch.setattr(agent_sandbox, "CHEAP_SECONDS", cheap_seconds)
    monkeypatch.setattr(agent_sandbox, "MAX_SNAPSHOT_SHARE", 0.0)
    script = in_steps(4, "echo {n} >> log.txt")
    with pytest.raises(RequestFailed):
        act(agent(), interrupted(3, script), tmp_path)
    backend.executed.clear()
    resumed = act(agent(), script, tmp_path)
    assert isinstance(backend.starts[-1], Snapshot)
    commands = [command[-1] for command in backend.executed if "echo" in command[-1]]
    assert len(commands) == n_redone + 1
    assert resumed.answer.text == "0\n1\n2\n3"


def test_a_snapshot_without_what_still_runs_is_not_taken(
    backend: FolderBackend, tmp_path: Path
) -> None:
    def script(n_replies: int, request: Generate) -> Reply:
        backend.n_processes = 3 if n_replies > 3 else 2  # one that was left behind
        return in_steps(14, "echo {n} >> log.txt")(n_replies, request)

    backend.n_processes = 2
    with pytest.raises(RequestFailed):
        act(agent(), interrupted(12, script), tmp_path)
    resumed = act(agent(), script, tmp_path)
    assert backend.starts == [
        None,
        None,
    ]  # all was done again, the process started, too
    assert resumed.answer.text == "\n".join(str(n) for n in range(14))


def test_a_sample_starts_anew_where_its_state_cannot_be_had_again(
    backend: FolderBackend, tmp_path: Path
) -> None:
    def script(n_replies: int, request: Generate) -> Reply:
        replies = (
            calls(("note", {"text": "a"}), cost=0.01),
            bash("date +%s%N", cost=0.01),
            bash("echo b > b.txt", cost=0.01),
            submit("done"),
        )
        return replies[n_replies]

    made = agent(tools=WITH_NOTES)
    with pytest.raises(RequestFailed):
        act(made, interrupted(2, script), tmp_path)
    assert noted == ["a"]
    resumed = act(made, script, tmp_path)
    strategy = resumed.answer.strategy
    assert strategy["attempts"] == 2
    assert strategy["started_anew"] == [
        {
            "after_calls": 2,
            "why": "a call of 'bash' that was done again gave another result",
            "dollars": pytest.approx(0.03),
        }
    ]
    assert noted == ["a"]  # what was done outside is not done again
    assert [call.get("replayed", False) for call in resumed.calls] == [
        True, False, False, False
    ]  # fmt: skip
    assert {event["attempt"] for event in resumed.events} == {1, 2}
    again = act(made, script, tmp_path)
    assert again.asked == []
    assert again.answer.strategy["started_anew"] == strategy["started_anew"]
    assert again.answer.prompt == resumed.answer.prompt


def test_a_network_cannot_be_used_again(
    backend: FolderBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = in_steps(3, "echo {n} >> log.txt")
    made = agent(sandbox=plan(network=True))
    with pytest.raises(RequestFailed):
        act(made, interrupted(2, script), tmp_path)
    resumed = act(made, script, tmp_path)  # there is a snapshot after each action
    assert isinstance(backend.starts[-1], Snapshot)
    assert resumed.answer.strategy["attempts"] == 1
    home = tmp_path / "other"
    with pytest.raises(RequestFailed):
        act(made, interrupted(2, script), home)
    for snapshot in (home / "sandboxes" / "folder").iterdir():
        snapshot.unlink()
    anew = act(made, script, home)
    assert anew.answer.text == "0\n1\n2"
    assert anew.answer.strategy["started_anew"][0]["why"] == (
        "there is no snapshot of a sandbox whose actions reached the network"
    )


def test_a_sandbox_that_fails_is_no_fault_of_the_model(
    backend: FolderBackend, tmp_path: Path
) -> None:
    backend.refusal = "There are no folders today."
    made = agent()
    with pytest.raises(SandboxFailed, match="no folders"):
        act(made, after("never asked"), tmp_path)
    backend.refusal = ""
    backend.is_broken = True
    with pytest.raises(SandboxFailed):
        act(made, after(bash("ls")), tmp_path)
    backend.is_broken = False
    failing = agent(sandbox=plan(setup="echo why >&2; exit 4"))
    with pytest.raises(SandboxFailed, match=r"exit code 4.*why"):
        act(failing, after(bash("ls")), tmp_path)
    assert act(made, after(bash("ls"), "ok"), tmp_path).answer.text == "ok"


def test_without_a_store_it_acts_too(backend: FolderBackend) -> None:
    replies = iter([bash("echo a > a.txt; cat a.txt"), submit("a")])
    answer, sent = asked(agent(), lambda role, request: next(replies))
    assert answer.text == "a" and len(sent) == 2
    assert answer.strategy["sandbox"]["snapshot"]["backend"] == "folder"


# -- long conversations


def test_old_results_are_left_out_and_then_summed_up(
    backend: FolderBackend, tmp_path: Path
) -> None:
    def script(n_replies: int, request: Generate) -> Reply:
        if request.tool_choice == "none":
            return Response("I listed.", usage=Usage(700, 20), finish_reason="stop")
        n_chars = sum(len(turn.text) for turn in turns_of(request))
        usage = Usage(n_chars // 3, 10)
        if len(backend.executed) > 30:
            return submit("done", usage=usage)
        return bash("seq 1 300", usage=usage)

    made = agent({"compaction": {"tokens": 2_000}}, limits=Limits(messages=40))
    acted = act(made, script, tmp_path)
    strategy = acted.answer.strategy
    assert strategy["ended"] == "submit"
    sizes = [sum(map(len, texts(turns_of(request)))) for request in acted.asked]
    assert max(sizes) < 10_000
    assert len(acted.answer.prompt) == 2 + 2 * strategy["steps"]  # all of it is kept
    assert "" not in acted.results and min(map(len, acted.results[:-1])) > 1_000
    summaries = [entry for entry in strategy["compacted"] if "summary" in entry]
    assert summaries and summaries[0]["summary"] == "I listed."
    assert summaries[0]["usage"] == {"input_tokens": 700, "output_tokens": 20}
    left_out = [
        request for request in acted.asked if "was left out.]" in str(turns_of(request))
    ]
    assert left_out
    summed_up = [
        request
        for request in acted.asked
        if "You summed it up" in str(turns_of(request))
    ]
    assert summed_up and all(
        turns_of(request)[1].text.count("You summed it up") == 1
        for request in summed_up
    )
    again = act(made, script, tmp_path)
    assert again.asked == [] and again.answer.prompt == acted.answer.prompt


def test_a_request_that_was_too_long_is_made_shorter(
    backend: FolderBackend, tmp_path: Path
) -> None:
    def script(n_replies: int, request: Generate) -> Reply:
        if sum(map(len, texts(turns_of(request)))) > 9_000:
            return PromptTooLong("It has too many tokens.")
        if n_replies > 8:
            return submit("done")
        return bash("seq 1 300", usage=Usage())

    acted = act(agent(), script, tmp_path)
    assert acted.answer.strategy["ended"] == "submit"
    assert acted.answer.strategy["compacted"]
    alone = act(
        agent(), lambda n, request: PromptTooLong("Too many tokens."), tmp_path / "b"
    )
    assert alone.answer.outcome == "too_long"


# -- functions of a task's own


async def two_commands(agent: AgentRun) -> None:
    """A loop that says something, and submits by itself."""
    reply = await agent.ask()
    for call in reply.tool_calls:
        await agent.call(call)
    agent.say("And now?")
    last = await agent.ask()
    agent.submit(f"{last.text} after {len(agent.messages)} turns")


async def last_turns(agent: AgentRun) -> Any:
    """A compaction that keeps the question and the last four turns."""
    return (
        (*agent.messages[:2], *agent.messages[-4:]) if len(agent.messages) > 8 else None
    )


async def careless(agent: AgentRun) -> None:
    await agent.ask()
    await agent.ask()


def test_a_loop_of_a_tasks_own(backend: FolderBackend, tmp_path: Path) -> None:
    acted = act(agent({"loop": two_commands}), after(bash("ls"), "All."), tmp_path)
    assert acted.answer.text == "All. after 5 turns"
    assert acted.answer.strategy["ended"] == "submit"
    ignored = act(agent({"loop": careless}), after(bash("ls"), "b"), tmp_path / "b")
    assert ignored.results == ["The call was not carried out."]
    with pytest.raises(RuntimeError, match="say something first"):
        act(agent({"loop": careless}), after("a", "b"), tmp_path / "c")


def test_a_compaction_of_a_tasks_own(backend: FolderBackend, tmp_path: Path) -> None:
    script = in_steps(6, "echo {n} >> log.txt")
    made = agent({"compaction": last_turns})
    acted = act(
        made,
        lambda n, request: (
            script(
                len([t for t in turns_of(request) if t.role == "assistant"]),
                request,
            )
            if len(turns_of(request)) < 8
            else submit("short")
        ),
        tmp_path,
    )
    assert acted.answer.text == "short"
    assert max(len(turns_of(request)) for request in acted.asked) <= 9


def test_further_questions_and_a_system_prompt(
    backend: FolderBackend, tmp_path: Path
) -> None:
    def render(sample: Any) -> tuple[Message, ...]:
        return (Message("system", "Be quick."), Message("user", "One?"))

    made = agent({"system": "Rules."}, render=render, turns=lambda sample: ("Two?",))
    acted = act(made, after("First.", "Second."), tmp_path)
    assert acted.answer.text == "Second."
    assert texts(turns_of(acted.asked[1])) == [
        "Rules.\n\nBe quick.",
        "One?",
        "First.",
        "Two?",
    ]
    none = act(agent({"system": ""}), after("x"), tmp_path / "b")
    assert [turn.role for turn in turns_of(none.asked[0])] == ["user"]


@pytest.mark.parametrize(
    ("options", "settings", "words"),
    [
        ({}, {"sandbox": None}, "needs a sandbox or tools"),
        ({}, {"sandbox": None, "tools": WITH_NOTES}, "'bash' acts in a sandbox"),
        ({"call_seconds": 0}, {}, "'call_seconds' of 'agent'"),
        ({"result_chars": 1.5}, {}, "'result_chars' of 'agent'"),
        ({"compaction": {"tokens": 3}}, {}, "'compaction.tokens' of 'agent'"),
        ({"compaction": {"chars": 3}}, {}, "{tokens: N}"),
        ({"compaction": "nothing.here"}, {}, "--plugin"),
        ({"loop": "nothing.here"}, {}, "--plugin"),
        ({"system": 3}, {}, "'system' of 'agent' is a text"),
    ],
)
def test_options_out_of_range(
    options: dict[str, Any], settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        agent(options, **settings)
    assert words in str(refused.value)


def test_agents_without_a_sandbox(tmp_path: Path) -> None:
    tools = TaskTools(functions=[note], sandbox_tools=["submit"])
    script = after(calls(("note", {"text": "a"})), submit("b"))
    with pytest.raises(RequestFailed):
        act(agent(sandbox=None, tools=tools), interrupted(1, script), tmp_path)
    acted = act(agent(sandbox=None, tools=tools), script, tmp_path)
    assert acted.answer.text == "b" and noted == ["a"]
    assert "sandbox" not in acted.answer.strategy
    assert json.dumps(acted.answer.strategy)


def test_a_model_that_fails_is_missing(backend: FolderBackend, tmp_path: Path) -> None:
    with pytest.raises(RequestFailed) as failed:
        act(agent(), lambda n, request: ModelError("It is down."), tmp_path)
    assert failed.value.failure.kind == "model error"


# -- whole runs


@evalwright.model(name="acts", fingerprint="acts-1")
def acts(
    messages: list[dict[str, Any]], *, tools: Any = (), tool_choice: Any = None
) -> dict[str, Any]:
    """Writes a file, reads it, and submits what it read."""
    step = sum(turn["role"] == "assistant" for turn in messages)
    made = (
        ("bash", {"command": "echo 42 > a.txt"}),
        ("read_file", {"path": "a.txt"}),
        ("submit", {"answer": str(messages[-1]["content"]).strip()}),
    )
    name, arguments = made[step]
    return {"tool_calls": [{"name": name, "arguments": arguments, "id": f"c{step}"}]}


def test_a_run_is_recorded_and_can_be_replayed(
    backend: FolderBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = {
        "task": "acts",
        "dataset": {
            "rows": [{"id": "a", "question": "Six times seven?", "answer": "42"}]
        },
        "sample": {"input": "{{ question }}", "target": "{{ answer }}"},
        "prompt": {"user": "{{ question }}"},
        "sandbox": "folder",
        "strategy": "agent",
        "scorers": ["exact-match"],
    }
    path = tmp_path / "acts.yaml"
    path.write_text(yaml.safe_dump(definition))
    monkeypatch.chdir(tmp_path)
    runs: list[evalwright.Run] = []
    for name, model in (
        ("first", acts),
        ("second", acts),
        ("third", "replay/runs/first"),
    ):
        runs += evalwright.evaluate(load_task(str(path)), model, name=name, home="home")
    rows = [next(iter(run.rows())) for run in runs]
    assert [row["scores"]["exact-match"]["value"] for row in rows] == [1, 1, 1]
    assert rows[0]["prompt"] == rows[1]["prompt"] == rows[2]["prompt"]
    assert rows[0] == {**rows[1], "timing": rows[0]["timing"]}
    assert rows[1]["timing"]["replayed"] == [0, 1]
    assert runs[0].data["usage"]["answers"]["trajectories"] == {"ended": {"submit": 1}}
    by_label = {metric.label: metric for metric in runs[0].tasks[0].metrics}
    assert by_label["steps"].estimate.value == 3
    assert not (tmp_path / "runs" / "first" / "live.jsonl").exists()
