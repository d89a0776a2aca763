"""What a run says of its trajectories, and of what an interruption cost."""

from __future__ import annotations

from typing import Any

from evalwright.core.samples import Answer, Sample, SampleRecord
from evalwright.runs.aggregation import AnswersUsage
from evalwright.runs.records import record_from, record_row
from evalwright.runs.trajectories import (
    TrajectoryTally,
    interruption_sentences,
    trajectory_words,
)


def _record(**strategy: Any) -> SampleRecord:
    answer = Answer("a", strategy=strategy)
    return SampleRecord("t", 0, 0, Sample("1"), answer, {})


def _tally(*records: SampleRecord) -> dict[str, Any]:
    tally = TrajectoryTally()
    for record in records:
        tally.add(record)
    return tally.as_dict()


AGENT = {"name": "agent", "ended": "submit", "attempts": 1}
GIVEN_UP = {"after_calls": 2, "why": "it differs", "dollars": 0.25}


def test_what_ended_them() -> None:
    tally = _tally(
        _record(**AGENT), _record(**AGENT), _record(**{**AGENT, "ended": "tokens"})
    )
    assert tally == {"ended": {"submit": 2, "tokens": 1}}
    assert trajectory_words(tally) == "2 submitted, 1 at the limit of tokens"
    assert interruption_sentences(tally) == []


def test_runs_without_trajectories_say_nothing() -> None:
    tally = _tally(
        _record(name="tool-loop", ended="answer", tool_calls=[]),
        SampleRecord("t", 0, 0, Sample("1"), None, {}),
    )
    assert tally == {} and trajectory_words(tally) == ""
    usage = AnswersUsage()
    usage.add(_record(name="tool-loop", ended="answer"))
    assert "trajectories" not in usage.as_dict()


def test_what_an_interruption_cost() -> None:
    anew = {
        **AGENT,
        "attempts": 3,
        "started_anew": [GIVEN_UP, {**GIVEN_UP, "dollars": None}],
    }
    again = {"name": "tool-loop", "tool_calls": [{"name": "note", "again": True}]}
    usage = AnswersUsage()
    usage.add(_record(**anew))
    usage.add(_record(**again))
    tally = usage.as_dict()["trajectories"]
    assert tally["started_anew"] == {"samples": 1, "dollars": 0.25, "unpriced": 1}
    assert interruption_sentences(tally) == [
        "1 sample was started again from the beginning, because the state of an interrupted"
        " trajectory could not be restored.",
        "The replies until then had cost $0.2500; those that fit were used again.",
        "1 call of a tool had been begun when the run was interrupted, and was carried out"
        " again.",
    ]


def test_times_and_what_was_replayed_are_in_timing() -> None:
    calls = [
        {
            "step": 0,
            "name": "bash",
            "is_error": False,
            "replayed": True,
            "seconds": 0.5,
        },
        {"step": 1, "name": "bash", "is_error": True, "seconds": 0.25},
    ]
    strategy = {**AGENT, "tool_calls": calls, "seconds": {"model": 1.0, "tools": 0.75}}
    record = _record(**strategy)
    row = record_row(record)
    assert row["timing"] == {
        "latency": [],
        "tool_calls": [0.5, 0.25],
        "replayed": [0],
        "seconds": {"model": 1.0, "tools": 0.75},
    }
    assert "seconds" not in row["strategy"]
    assert "seconds" not in row["strategy"]["tool_calls"][0]
    rebuilt = record_from(row).answer
    assert rebuilt is not None and rebuilt.strategy == strategy
    without_calls = _record(**AGENT, seconds={"model": 1.0, "tools": 0.0})
    rebuilt = record_from(record_row(without_calls)).answer
    assert rebuilt is not None and rebuilt.strategy == {
        **AGENT, "seconds": {"model": 1.0, "tools": 0.0}
    }  # fmt: skip
