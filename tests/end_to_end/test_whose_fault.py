"""Whose fault decides what counts, with a server that does each thing: what the model did is
wrong, what it never got is missing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.command import record, records, write_questions
from support.openai_faults import Faults
from support.openai_server import OpenAIServer, serving
from support.typed import typed

MODELS_OWN = {
    "empty": ("empty", 2),
    "cut": ("cut", 1),
    "refused": ("refused", 1),
    "reply filtered": ("filtered", 1),
    "tool call": ("tool_call", 1),
    "too-long": ("too_long", 1),
    "still-writing": ("unfinished", 1),
}
"""What the model does, by question: its outcome, and how often the request is sent."""

NOT_THE_MODELS = {
    "429": ("rate limited", 2),
    "500": ("server error", 2),
    "reset": ("connection failed", 2),
    "content-type": ("bad reply", 2),
    "still-silent": ("timed out", 2),
    "filtered": ("filtered", 1),
    "400": ("request rejected", 1),
}
"""What is no fault of the model: the kind of failure."""

KINDS = [*MODELS_OWN, *NOT_THE_MODELS]
N_GOOD = 6


def number(body: Mapping[str, Any]) -> int:
    """Which question a request asks; -1 for none."""
    words = json.dumps(body).partition("Question ")[2]
    return int(words[:5]) if words else -1


def sent(server: OpenAIServer) -> Counter[int]:
    """How often each question was sent."""
    return Counter(
        number(entry["body"])
        for entry in server.log or ()
        if isinstance(entry.get("body"), dict)
    )


def script(body: Mapping[str, Any], before: int) -> str | None:
    kind = KINDS[number(body)] if 0 <= number(body) < len(KINDS) else ""
    return (
        kind
        if kind in ("empty", "too-long", "still-writing", *NOT_THE_MODELS)
        else None
    )


def edit(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    kind = KINDS[number(body)] if 0 <= number(body) < len(KINDS) else ""
    choice = reply["choices"][0]
    if kind == "cut":
        choice |= {
            "finish_reason": "length",
            "message": {"role": "assistant", "content": "", "reasoning_content": "Hm"},
        }
    if kind == "refused":
        choice["message"] |= {"content": None, "refusal": "I will not."}
    if kind == "reply filtered":
        choice |= {
            "finish_reason": "content_filter",
            "message": {"role": "assistant", "content": ""},
        }
    if kind == "tool call":
        choice |= {
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": None, "tool_calls": [{}]},
        }
    return reply


@pytest.fixture(autouse=True)
def _folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "EVALWRIGHT_TASKS", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def test_each_fault_is_scored_or_missing_and_only_the_missing_are_sent_again(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, len(KINDS) + N_GOOD)
    with serving(
        lambda prompt: "a long answer",
        faults=Faults(script=script, retry_after=0.1),
        edit=edit,
    ) as server:
        command = (
            "run", "questions.yaml", "--model", f"openai/{server.url}#m", "--name", "r", "-M", "max_attempts=2",
            "-M", "timeout=1.5", "-M", "stream=true", "-M", "deadline=60",
        )  # fmt: skip
        done = typed(*command)
        rows = {int(row["id"][1:]): row for row in records(Path("runs/r"))}
        for place, (kind, (outcome, sendings)) in enumerate(MODELS_OWN.items()):
            row = rows[place]
            score = row["scores"]["exact-match"]
            assert (row["outcome"], score["value"], score["label"]) == (
                outcome,
                0.0,
                outcome,
            ), kind
            assert "failure" not in row, kind
            assert row["answer"] == ("I will not." if kind == "refused" else ""), kind
            assert sent(server)[place] == sendings, kind
        for place, (kind, (failure, attempts)) in enumerate(
            NOT_THE_MODELS.items(), len(MODELS_OWN)
        ):
            row = rows[place]
            assert (row["failure"]["kind"], row["failure"]["attempts"]) == (
                failure,
                attempts,
            ), (
                kind,
                row["failure"],
            )
            assert not row["scores"], kind
        (task,) = record(Path("runs/r"))["tasks"]
        n_scored = len(MODELS_OWN) + N_GOOD
        accuracy = task["metrics"][0]
        assert (accuracy["n"], accuracy["n_missing"]) == (n_scored, len(NOT_THE_MODELS))
        assert task["outcomes"] == dict(
            answered=N_GOOD, failed=len(NOT_THE_MODELS), filtered=1,
            **Counter(outcome for outcome, _ in MODELS_OWN.values() if outcome != "filtered"),
        )  # fmt: skip
        assert done.code == 1
        lines = done.err.strip().splitlines()
        assert lines[-1].startswith(f"{len(NOT_THE_MODELS)} answers are missing: ")
        assert lines[-1].endswith("Run the same command again: only these are sent.")
        assert (
            f"{len(MODELS_OWN)} replies were no answer" in done.err
            and "count as wrong" in done.err
        )

        before = sent(server)
        assert typed(*command).code == 1
        again = sent(server)
        # A prompt that was too long cost nothing, and is asked again with those that are missing.
        too_long = KINDS.index("too-long")
        assert set(again - before) == {*range(len(MODELS_OWN), len(KINDS)), too_long}
        assert typed(*command, "-M", "timeout=2", "--replace").code == 1
        assert KINDS.index("still-writing") in sent(server) - again, (
            "with more time it is sent again"
        )


def test_what_was_paid_for_a_reply_without_an_answer_is_in_the_record(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, 3)
    with serving(faults=Faults(script=lambda body, before: "empty")) as server:
        price = ("--price", "1/2")
        done = typed(
            "run",
            "questions.yaml",
            "--model",
            f"openai/{server.url}#m",
            "--name",
            "r",
            *price,
        )
    assert done.code == 0, done.text
    data = record(Path("runs/r"))
    assert data["tasks"][0]["outcomes"] == {"empty": 3}
    assert all(
        row["responses"][0]["usage"] and row["responses"][0]["cost"] > 0
        for row in records(Path("runs/r"))
    )
    assert (
        data["usage"]["answers"]["cost"] == pytest.approx(data["usage"]["cost"])
        and data["usage"]["cost"] > 0
    )


def test_a_fault_in_the_second_turn_ends_the_sample_and_keeps_the_first_reply(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, 2)
    task = Path("questions.yaml")
    text = task.read_text(encoding="utf-8").replace(
        'user: "{{ input }}"', 'user: ["{{ input }}", "Are you sure?"]'
    )
    task.write_text(text, encoding="utf-8")

    def second_turn(body: Mapping[str, Any], before: int) -> str | None:
        return "too-long" if len(body.get("messages", ())) > 1 else None

    with serving(lambda prompt: "7", faults=Faults(script=second_turn)) as server:
        done = typed(
            "run", "questions.yaml", "--model", f"openai/{server.url}#m", "--name", "r"
        )
    assert done.code == 0, done.text
    for row in records(Path("runs/r")):
        assert (
            row["outcome"] == "too_long"
            and row["scores"]["exact-match"]["value"] == 0.0
        )
        assert [response.get("text", "") for response in row["responses"]] == ["7", ""]
        assert row["responses"][0]["usage"]
