"""The steps of a record: which turn is which reply, what calls gave, and two aligned."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.runs.step_alignment import align_steps
from evalwright.runs.transcripts import Step, Transcript, read_transcript
from support.trajectory_runs import (
    Acted,
    Call,
    Reply,
    bash,
    fixing,
    record_trajectory,
)


def recorded(acted: Acted) -> dict[str, Any]:
    row: dict[str, Any] = {}
    record_trajectory(row, acted)
    return row


def read(row: dict[str, Any]) -> Transcript:
    transcript = read_transcript(row)
    assert transcript is not None
    return transcript


def test_steps_have_their_calls_results_and_sums() -> None:
    transcript = read(recorded(fixing()))
    assert [turn[0] for turn in transcript.opening] == ["system", "user"]
    assert [[use.name for use in step.uses] for step in transcript.steps] == [
        ["bash"],
        ["bash"],
        ["read_file", "write_file"],
        ["bash"],
        ["submit"],
    ]
    failed = transcript.steps[1].uses[0]
    assert (failed.exit_code, failed.is_error, failed.seconds) == (1, True, 0.4)
    assert failed.result is not None
    assert failed.result.startswith("tests/test_0.py")
    assert transcript.steps[2].uses[1].is_replayed
    assert transcript.steps[3].compacted == (4, "The file was written.", 0.0003)
    total = transcript.steps[-1].total
    assert total.model_seconds == pytest.approx(6.0)
    assert total.tool_seconds == pytest.approx(2.4)
    assert (total.input_tokens, total.output_tokens) == (4500, 200)
    assert total.dollars == pytest.approx(0.005)
    assert transcript.started_anew == ((3, "The snapshot was damaged", 0.02),)
    assert (transcript.ended, transcript.attempts, transcript.sandbox) == (
        "submit",
        2,
        "jail",
    )


def test_an_unknown_price_makes_the_sum_unknown() -> None:
    acted = Acted([Reply("a", [bash("ls", "x")]), Reply("b", cost=None)])
    steps = read(recorded(acted)).steps
    assert steps[0].total.dollars == pytest.approx(0.001)
    assert steps[1].total.dollars is None


EXAMPLES: tuple[list[Any], ...] = (
    ["user", "An example"],
    ["assistant", "", {"tool_calls": [{"name": "bash", "arguments": "{}", "id": "e"}]}],
    ["tool", "example result", {"tool_call_id": "e", "tool_name": "bash"}],
    ["assistant", "The example is done."],
    ["user", "Now you."],
)


@pytest.mark.parametrize("holds_last", [True, False])
@pytest.mark.parametrize("opening", [EXAMPLES, EXAMPLES[-1:]])
def test_examples_in_the_prompt_are_no_steps(
    holds_last: bool, opening: tuple[list[Any], ...]
) -> None:
    acted = Acted(
        [
            Reply("one", [bash("ls", "first")]),
            Reply("two", [bash("ls", "second")]),
            Reply("last"),
        ],
        opening=opening,
        holds_last=holds_last,
        ended="answer",
    )
    transcript = read(recorded(acted))
    assert len(transcript.opening) == len(opening)
    assert [step.text for step in transcript.steps] == ["one", "two", "last"]
    assert [use.result for step in transcript.steps for use in step.uses] == [
        "first",
        "second",
    ]
    assert transcript.after == ()


def test_the_turns_of_a_user_stand_before_the_reply_to_them() -> None:
    row = recorded(Acted([Reply("Hello"), Reply("Bye")], ended="answer"))
    row["prompt"].insert(3, ["user", "Thanks"])
    steps = read(row).steps
    assert [turn[1] for turn in steps[1].before] == ["Thanks"]


def test_calls_that_a_limit_left_undone_have_no_result() -> None:
    acted = Acted([Reply("", [bash("ls", None)])], ended="messages")
    [use] = read(recorded(acted)).steps[0].uses
    assert use.result is None


def test_results_with_one_id_for_all_are_taken_in_their_order() -> None:
    row = recorded(Acted([Reply("", [bash("a", "of a"), bash("b", "of b")])]))
    for turn in row["prompt"][3:]:
        turn[2]["tool_call_id"] = "same"
    for call in row["responses"][0]["tool_calls"]:
        call["id"] = "same"
    uses = read(row).steps[0].uses
    assert [use.result for use in uses] == ["of a", "of b"]


def test_a_reply_that_is_no_turn_is_known_by_itself() -> None:
    row = recorded(fixing())
    row["prompt"] = "only a text"
    transcript = read(row)
    assert len(transcript.steps) == 5
    assert transcript.steps[0].uses[0].result is None


@pytest.mark.parametrize(
    "strategy",
    [
        {"ended": "submit", "steps": 10**12, "tool_calls": "none"},
        {"ended": "submit", "steps": -3, "tool_calls": [None, 3, {"step": "x"}]},
        {"ended": "", "started_anew": [7], "compacted": {"a": 1}, "sandbox": "jail"},
        {"tool_calls": [{"step": 0, "seconds": "long", "name": None}]},
    ],
)
def test_damaged_records_are_read_as_far_as_they_go(strategy: dict[str, Any]) -> None:
    row = recorded(fixing())
    row["strategy"] = strategy
    row["timing"] = {"latency": None}
    row["prompt"].append(["assistant"])
    row["prompt"].append("no turn")
    row["responses"].append("no response")
    assert read(row).steps


@pytest.mark.parametrize(
    "row", [{}, {"strategy": None}, {"strategy": {"name": "vote", "draws": []}}]
)
def test_other_records_have_no_steps(row: dict[str, Any]) -> None:
    assert read_transcript(row) is None


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ("out\n[exit code 3]", 3),
        ("Exit code: 127\nsh: no", 127),
        ("exit status 1", 1),
        ("a text on exit codes 5 and more\nthe end", None),
        ("", None),
    ],
)
def test_an_exit_code_is_read_from_the_ends_of_a_result(
    result: str, code: int | None
) -> None:
    acted = Acted([Reply("", [Call("bash", {}, result)])])
    assert read(recorded(acted)).steps[0].uses[0].exit_code == code


def steps_of(*commands: str) -> tuple[Step, ...]:
    acted = Acted([Reply("", [bash(command, "x")]) for command in commands])
    return read(recorded(acted)).steps


def aligned(a: str, b: str) -> list[tuple[int | None, int | None, bool]]:
    return align_steps(steps_of(*a), steps_of(*b))


def test_equal_calls_stand_beside_each_other() -> None:
    assert aligned("abc", "abc") == [(0, 0, True), (1, 1, True), (2, 2, True)]
    assert aligned("abd", "acd") == [(0, 0, True), (1, 1, False), (2, 2, True)]
    assert aligned("ad", "abcd") == [
        (0, 0, True),
        (None, 1, False),
        (None, 2, False),
        (1, 3, True),
    ]
    assert aligned("xaby", "zzab") == [
        (0, 0, False),
        (None, 1, False),
        (1, 2, True),
        (2, 3, True),
        (3, None, False),
    ]
    assert align_steps((), ()) == []


def test_every_step_is_in_one_row_and_in_order() -> None:
    a, b = "abcabcaabbcc", "cbacbacbabab"
    rows = aligned(a, b)
    assert [row[0] for row in rows if row[0] is not None] == list(range(len(a)))
    assert [row[1] for row in rows if row[1] is not None] == list(range(len(b)))
    for place_a, place_b, is_same in rows:
        if is_same:
            assert place_a is not None
            assert place_b is not None
            assert a[place_a] == b[place_b]


def test_spaces_in_arguments_are_no_difference() -> None:
    spaced = read(recorded(Acted([Reply("", [Call("f", '{"b":1,  "a":2}', "")])])))
    plain = read(recorded(Acted([Reply("", [Call("f", '{"a": 2, "b": 1}', "")])])))
    assert align_steps(spaced.steps, plain.steps) == [(0, 0, True)]
