"""`evalwright runs samples` of models that acted with tools: the transcript, a step of it, the calls
of a tool, and two trajectories aligned.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.hostile import ACTIVE, HOSTILE
from support.runs import rewrite
from support.trajectory_runs import (
    Acted,
    Call,
    Reply,
    bash,
    fixing,
    record_trajectory,
    trajectory_run,
)
from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")

LOOP = Acted([Reply("again", [bash("ls", "a")])] * 3, ended="messages", answer="")


def make_runs() -> None:
    trajectory_run(Path("runs"), [fixing(), LOOP])
    trajectory_run(Path("runs"), [fixing(first="ls -la"), LOOP], name="other")


def test_a_transcript_in_80_columns() -> None:
    make_runs()
    done = typed("runs", "samples", "acting", "fix-0", extra={"COLUMNS": "80"})
    assert done.code == 0, done.text
    for line in (
        "Transcript: 5 steps, 8.4 s, 4,700 tokens, $0.005\n",
        "Started again after 3 calls: The snapshot was damaged.",
        "  Sent, system\n    You are at a shell.\n",
        "Step 1 of 5: 1.2 s, 400 ms in tools, 900 tokens in, 40 out, $0.001\n",
        "so far 3.2 s, 1,880 tokens",
        "  Call of bash\n    python3 -m pytest -q\n",
        "  Result of bash (exit code 1, 400 ms)\n",
        "[... 388 lines, 13,426 characters more: --whole shows them]",
        "    1 failed\n    [exit code 1]\n",
        "Result of write_file (400 ms, replayed)",
        "in place of 4 turns.",
        "The model submitted its answer.",
        "Ended by  submit",
    ):
        assert line in done.out, (line, done.out)
    assert "test_200.py" not in done.out
    whole = typed("runs", "samples", "acting", "fix-0", "--whole")
    assert "test_200.py" in whole.out
    assert "--whole" not in whole.out


def test_one_step_and_the_calls_of_one_tool() -> None:
    make_runs()
    step = typed("runs", "samples", "acting", "fix-0", "--step", "4")
    assert "Step 4 of 5" in step.out
    assert "Step 3" not in step.out
    tool = typed("runs", "samples", "acting", "fix-0", "--tool", "write_file")
    assert "Call of write_file" in tool.out
    assert "Call of read_file" not in tool.out
    assert "Step 4" not in tool.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fix-0", "--step", "9"), "There is no step 9: the sample has 5 steps."),
        (("fix-0", "--tool", "bsh"), "Did you mean 'bash'?"),
        (("--step", "2"), "--step needs a sample"),
        (("--tool", "bash"), "--where tool=NAME"),
        (("fix-0", "--step", "1", "--tool", "bash"), "exclude each other"),
        (("fix-0", "--beside", "acting"), "has one repeat of 'fix-0'"),
        (("fix-0", "--beside", "absent"), "absent"),
    ],
)
def test_what_cannot_be_shown_is_said(arguments: tuple[str, ...], message: str) -> None:
    make_runs()
    done = typed("runs", "samples", "acting", *arguments)
    assert done.code == 2
    assert message in done.text
    assert "Traceback" not in done.text


def test_two_runs_step_by_step() -> None:
    make_runs()
    done = typed("runs", "samples", "acting", "fix-0", "--beside", "other")
    assert done.code == 0, done.text
    assert "4 of 5 steps are the same; they part at step 1." in done.out
    assert "≠  1: bash ls (400 ms)  1: bash ls -la (400 ms)" in done.out
    assert "=  2-5: the same        2-5: the same" in done.out
    whole = typed("runs", "samples", "acting", "fix-0", "--beside", "other", "--whole")
    assert "5: submit done" in whole.out
    as_json = typed("runs", "samples", "acting", "fix-0", "--beside", "other", "--json")
    record = json.loads(as_json.out)
    assert record["runs"] == ["acting", "other"]
    assert len(record["samples"]) == 2


def test_two_repeats_step_by_step() -> None:
    run = trajectory_run(Path("runs"), [LOOP, LOOP])

    def repeat(row: dict[str, object], place: int) -> None:
        row["id"] = "fix-0"
        row["draw"] = place
        if place:
            record_trajectory(row, Acted([Reply("", [bash("ls", "b")])]))

    rewrite(run, repeat)
    done = typed("runs", "samples", "acting", "fix-0", "--beside", "acting")
    assert "repeat 0" in done.out, done.text
    assert "repeat 1" in done.out
    assert "~  1: bash ls" in done.out
    assert "A  2: bash ls" in done.out


def test_samples_are_found_by_their_tools() -> None:
    make_runs()
    for condition, matching in (
        ("tool=submit", ["fix-0"]),
        ("tool=bash", ["fix-0", "fix-1"]),
        ("failed_tool=bash", ["fix-0"]),
        ("ended=messages", ["fix-1"]),
    ):
        done = typed("runs", "samples", "acting", "--where", condition, "--json")
        found = [sample["record"]["id"] for sample in json.loads(done.out)["samples"]]
        assert found == matching, condition
    none = typed("runs", "samples", "acting", "--where", "tool=sbmit")
    assert "Did you mean 'submit'?" in none.text


def test_a_submitted_answer_is_shown_without_the_call() -> None:
    make_runs()
    done = typed("runs", "samples", "acting")
    assert "submit(" not in done.out


def test_hostile_texts_reach_no_terminal() -> None:
    replies = [
        Reply(
            text,
            [Call(text, {text: text}, text), Call("bash", text, text)],
            reasoning=text,
        )
        for text in HOSTILE
    ]
    acted = Acted(replies, ended=HOSTILE[8], strategy={"sandbox": {"backend": "x"}})
    trajectory_run(Path("runs"), [acted])
    trajectory_run(Path("runs"), [LOOP], name="other")
    for arguments in (("--whole",), ("--step", "9"), ("--beside", "other"), ()):
        done = typed("runs", "samples", "acting", "fix-0", *arguments)
        assert done.code == 0, done.text
        assert not {*ACTIVE} & {*done.text}, arguments


def test_a_sample_without_steps_says_so() -> None:
    trajectory_run(Path("runs"), [LOOP, LOOP])
    run = trajectory_run(Path("runs"), [LOOP], name="plain")
    rewrite(run, lambda row, _: row.pop("strategy"))
    step = typed("runs", "samples", "plain", "fix-0", "--step", "1")
    assert "This sample has no steps" in step.out
    both = typed("runs", "samples", "acting", "fix-0", "--beside", "plain")
    assert "no steps to compare" in both.out
