"""Calls as texts: those of a reply, and those that were expected."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.runs.recorded_answers import (
    expected_calls,
    loop_words,
    recorded_uses,
    whole_answer,
)

SCORED = {"tool-calls": {"value": 0.0}}
PARIS = {"name": "weather", "arguments": {"city": "Paris"}}


@pytest.mark.parametrize(
    ("calls", "written"),
    [
        ([], "no call"),
        ([PARIS], 'weather({"city": "Paris"})'),
        ([PARIS, {"name": "now"}], 'weather({"city": "Paris"})\nnow()'),
        (
            [{**PARIS, "optional": ["city"], "alternatives": {}}],
            'weather({"city": "Paris"}) [optional ["city"]]',
        ),
        ([[], [PARIS, {"name": "now"}]], 'turn 1: no call\nturn 2: weather({"city": "Paris"}) now()'),
        ([3, {"city": "東京"}], '3\n{"city": "東京"}'),
    ],
)  # fmt: skip
def test_expected_calls(calls: list[Any], written: str) -> None:
    row = {"metadata": {"calls": calls}, "scores": SCORED}
    assert expected_calls(row) == written


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"metadata": {"calls": [PARIS]}, "scores": {"exact-match": {}}},
        {"metadata": {"calls": "a column of that name"}, "scores": SCORED},
    ],
)
def test_a_record_that_says_nothing_of_calls(row: dict[str, Any]) -> None:
    assert expected_calls(row) is None


def acted(**more: Any) -> dict[str, Any]:
    calls = [{"step": 0, "name": "bash", "is_error": True}, {"name": "submit"}]
    strategy = {"name": "agent", "steps": 2, "ended": "submit", "tool_calls": calls}
    return {"strategy": {**strategy, **more}, "answer": "done"}


def test_how_a_trajectory_went_in_words() -> None:
    assert loop_words(acted()) == (
        "2 steps, 2 calls of tools (bash, submit), 1 failed, ended by submit"
    )
    one = acted(steps=1, tool_calls=[{"name": "f"}], ended="")
    assert loop_words(one) == "1 step, 1 call of a tool (f)"
    assert loop_words(acted(tool_calls=[])) == (
        "2 steps, 0 calls of tools, ended by submit"
    )
    assert loop_words({"strategy": {"name": "vote"}}) == ""


def test_times_of_calls_stand_apart_in_a_record() -> None:
    row = {**acted(), "timing": {"tool_calls": [0.5, 0.25], "replayed": [1]}}
    first, second = recorded_uses(row)
    assert (first["seconds"], "replayed" in first) == (0.5, False)
    assert (second["seconds"], second["replayed"]) == (0.25, True)


def test_a_submitted_answer_is_whole_without_its_call() -> None:
    responses = [{"tool_calls": [{"name": "submit", "arguments": "{}"}]}]
    row = {**acted(), "responses": responses}
    assert whole_answer(row) == "done"
    assert whole_answer({**row, "answer": ""}) == "submit()"
    other = acted(ended="messages")
    assert whole_answer({**other, "responses": responses}) == "done\nsubmit()"
