"""What a model did in logs of agents becomes a trajectory of ours, that others can look at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.compat.inspect.exporting import export_inspect
from evalwright.compat.inspect.importing import import_inspect
from evalwright.compat.inspect.log_files import LoggedSample, read_log
from evalwright.compat.inspect.trajectories import read_trajectory
from evalwright.core.requests import Message
from evalwright.core.samples import Answer, SampleRecord
from evalwright.runs.reader import Run
from support.typed import typed

LOGS = Path(__file__).parents[2] / "data" / "inspect"
pytest.importorskip("pyarrow", reason="the logs are compressed with zstandard")


def imported(name: str, out: Path) -> Run:
    (run,), _ = import_inspect(LOGS / name, out)
    return run


def records(run: Run) -> dict[tuple[str, int], SampleRecord]:
    return {(sample.sample.id, sample.draw): sample for sample in run.samples()}


def answer_of(record: SampleRecord) -> Answer:
    assert record.answer is not None
    return record.answer


def turns_of(answer: Answer) -> tuple[Message, ...]:
    assert not isinstance(answer.prompt, str)
    return answer.prompt


def test_replies_calls_and_results(tmp_path: Path) -> None:
    run = imported("agents.eval", tmp_path)
    by_id = records(run)
    assert set(by_id) == {("one", 0), ("one", 1), ("two", 0), ("two", 1)}
    answer = answer_of(by_id["one", 0])
    assert answer.text.endswith("3")
    turns = turns_of(answer)
    assert [turn.role for turn in turns] == [
        *("system", "user", "assistant", "tool", "assistant", "tool")
    ]
    (call,) = turns[2].tool_calls
    assert (call.name, call.parsed()) == ("add", {"x": 1, "y": 2})
    assert (turns[3].tool_call_id, turns[3].tool_name) == (call.id, "add")
    assert (turns[3].text, turns[3].is_error) == ("3", False)
    assert (turns[5].text, turns[5].is_error) == ("thirteen is refused", True)
    assert [len(response.tool_calls) for response in answer.responses] == [1, 1, 0]
    usages = [
        (response.usage.input_tokens, response.usage.output_tokens)
        for response in answer.responses
    ]
    assert usages == [(10, 5), (20, 5), (30, 6)]
    strategy = dict(answer.strategy)
    assert (strategy["name"], strategy["steps"], strategy["ended"]) == (
        *("inspect_ai", 3, "submit"),
    )
    calls = [
        (call["step"], call["name"], call["is_error"])
        for call in strategy["tool_calls"]
    ]
    assert calls == [(0, "add", False), (1, "add", True)]
    assert all(call["seconds"] > 0 for call in strategy["tool_calls"])
    assert strategy["seconds"]["tools"] == pytest.approx(
        sum(call["seconds"] for call in strategy["tool_calls"])
    )


def test_a_limit_ends_it(tmp_path: Path) -> None:
    run = imported("agent_limited.eval", tmp_path)
    answer = answer_of(records(run)["one", 0])
    assert answer.strategy["ended"] == "messages"
    assert answer.strategy["steps"] == 3
    # The result of the last call is in the conversation, though no reply follows it.
    assert turns_of(answer)[-1].role == "tool"
    assert len(answer.responses) == 3
    assert answer.responses[-1].tool_calls
    assert answer.usage.input_tokens == 30


def test_a_sandbox(tmp_path: Path) -> None:
    run = imported("agent_sandbox.eval", tmp_path)
    answer = answer_of(records(run)["one", 0])
    assert answer.strategy["sandbox"] == {"backend": "local", "snapshot": None}
    first, second = (turn for turn in turns_of(answer) if turn.role == "tool")
    assert "hi" in first.text
    assert not second.is_error  # the command failed, the tool did not


def test_an_agent_that_failed_keeps_what_it_did(tmp_path: Path) -> None:
    log = read_log(LOGS / "agent_limited.eval")
    ((_, sample),) = log.samples()
    row: dict[str, Any] = sample.model_dump()
    row["error"] = {
        "message": "RuntimeError('the model broke')",
        "traceback": "",
        "traceback_ansi": "",
    }
    row["scores"], row["limit"] = {}, None
    document = {**log.header, "status": "error", "samples": [row]}
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(document))
    (run,), _ = import_inspect(path, tmp_path / "runs")
    record = records(run)["one", 0]
    assert record.failure is not None
    assert "the model broke" in record.failure.message
    messages = record.sample.metadata["inspect_ai"]["messages"]
    assert [message["role"] for message in messages][-2:] == ["assistant", "tool"]


def test_without_events_the_tokens_of_the_sample_are_kept() -> None:
    row = LoggedSample.of(
        {
            "id": "a",
            "epoch": 1,
            "input": "q",
            "messages": [
                {"role": "user", "content": "q"},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": "1", "function": "submit", "arguments": {}}],
                },
                {"role": "tool", "content": "x", "tool_call_id": "1", "function": "f"},
            ],
            "model_usage": {"m": {"input_tokens": 7, "output_tokens": 2}},
            "events": ["nonsense", {"event": "model", "output": {"choices": [None]}}],
        },
        "here",
    )
    trajectory = read_trajectory(row, "")
    assert trajectory is not None
    assert trajectory.responses[-1].usage.input_tokens == 7
    assert trajectory.strategy["ended"] == "submit"
    assert "sandbox" not in trajectory.strategy


@pytest.mark.parametrize("name", ["agents.eval", "agent_limited.eval"])
def test_round_trip(name: str, tmp_path: Path) -> None:
    run = imported(name, tmp_path / "first")
    (written,), _ = export_inspect([run], tmp_path / "logs")
    (again,), _ = import_inspect(written, tmp_path / "second")
    for key, record in records(run).items():
        copy = answer_of(records(again)[key])
        assert copy.text == answer_of(record).text
        roles: list[Mapping[str, Any]] = [
            {"role": turn.role, "calls": [call.name for call in turn.tool_calls]}
            for turn in turns_of(copy)
        ]
        assert roles == [
            {"role": turn.role, "calls": [call.name for call in turn.tool_calls]}
            for turn in turns_of(answer_of(record))
        ]


def test_it_is_compared_and_shown(tmp_path: Path) -> None:
    for name in ("a", "b"):
        done = typed(
            *("import", "inspect", str(LOGS / "agents.eval"), "--name", name),
            folder=tmp_path,
        )
        assert done.code == 0, done.text
    shown = typed("runs", "samples", "a", "one", folder=tmp_path)
    assert shown.code == 0, shown.text
    assert "thirteen is refused" in shown.text
    compared = typed("compare", "a", "b", folder=tmp_path)
    assert compared.code == 0, compared.text
