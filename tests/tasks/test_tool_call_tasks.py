"""The bundled tasks on calls of tools: how many items, of which kinds, and that all can be solved."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalwright import Generate, Response, ScriptedModel, evaluate, score_run
from evalwright.analysis.task_checks.examining import examine
from evalwright.analysis.task_checks.expected_calls import expected_turns, gold_reply
from evalwright.core.requests import Request
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import Task
from evalwright.core.tool_calls import ToolCall
from evalwright.scorers.registry import bind
from evalwright.scorers.tool_calls.expected import read_expected
from evalwright.tasks.loading import load_task, task_from_definition

LANGUAGES = ("en", "id", "ko", "th")
SCRIPTS = {"en": "[A-Za-z]", "id": "[A-Za-z]", "ko": "[가-힣]", "th": "[ก-๛]"}
N_ITEMS = {"en": (30, 8), "id": (29, 8), "ko": (30, 8), "th": (29, 8)}


@pytest.fixture(scope="module")
def tasks() -> dict[str, Task]:
    names = [f"tool-{part}-{code}" for part in ("calls", "turns") for code in LANGUAGES]
    return {name: load_task(name) for name in names}


def test_counts(tasks: dict[str, Task]) -> None:
    assert sum(len(task.samples) for task in tasks.values()) == 150
    for code, (n_calls, n_turns) in N_ITEMS.items():
        assert len(tasks[f"tool-calls-{code}"].samples) == n_calls
        assert len(tasks[f"tool-turns-{code}"].samples) == n_turns
        kinds = Counter(
            sample.metadata["kind"] for sample in tasks[f"tool-calls-{code}"].samples
        )
        assert kinds == {"single": 14, "parallel": 8, "none": n_calls - 22}


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_item_is_in_its_language_and_offers_three_to_five_tools(
    tasks: dict[str, Task], code: str
) -> None:
    names = set()
    for part in ("calls", "turns"):
        for sample in tasks[f"tool-{part}-{code}"].samples:
            offered = [tool["name"] for tool in sample.row["tools"]]
            names |= set(offered)
            assert 3 <= len(offered) <= 8
            assert len(set(offered)) == len(offered)
            letters = re.findall(r"[^\W\d_]", sample.input)
            of_script = [
                letter for letter in letters if re.match(SCRIPTS[code], letter)
            ]
            assert len(of_script) >= 0.6 * len(letters), sample.input
    assert 8 <= len(names) <= 20


@pytest.mark.parametrize("code", LANGUAGES)
def test_gold_calls_score_1_and_answers_that_ignore_the_question_score_at_chance(
    tasks: dict[str, Task], code: str
) -> None:
    parts = [tasks[f"tool-calls-{code}"], tasks[f"tool-turns-{code}"]]
    examinations = list(examine(parts))
    faults = [
        finding.text
        for examination in examinations
        for finding in examination.findings
        if not finding.ok
    ]
    assert not faults
    texts = [finding.text for finding in examinations[-1].findings]
    assert any("empty answers: 0%" in text for text in texts)


def _with_arguments(
    entries: list[Any], name: str, **changes: Any
) -> tuple[ToolCall, ...]:
    """Gold calls of a turn, those of one tool with other arguments."""
    expected = read_expected(entries, "the row").turns[-1]
    calls = []
    for call in expected:
        arguments = call.gold_arguments()
        if call.name == name:
            arguments |= changes
        calls.append(ToolCall(call.name, json.dumps(arguments, ensure_ascii=False)))
    return tuple(calls)


@pytest.mark.parametrize(
    ("sample_id", "name", "changes", "value"),
    [
        ("en-single-001", "create_event", {"title": "Dental check-up"}, 1),
        (
            "en-single-010",
            "search_recipes",
            {"ingredients": ["spinach", "chickpea"]},
            1,
        ),
        ("en-parallel-020", "send_message", {"text": "I'll be 120 minutes late"}, 0),
        ("en-multiturn-026", "send_message", {"text": "I had to cancel it."}, 1),
        ("ko-parallel-021", "send_message", {"recipient": "수진님"}, 1),
        ("ko-parallel-021", "send_message", {"text": "회의는 19시예요."}, 0),
        ("ko-multiturn-028", "send_message", {"text": "죽 먹을래?"}, 0),
        ("id-single-002", "pesan_ojek", {"tujuan": "Mal Kota Kasablanka"}, 1),
        ("id-single-011", "pesan_makanan", {"catatan": "Sambalnya dicampur."}, 0),
        ("id-multiturn-024", "kirim_pesan", {"isi": "Aku ikut arisan, ya."}, 0),
        ("id-multiturn-028", "pasang_alarm", {"hari": []}, 1),
        ("id-multiturn-028", "pasang_alarm", {"hari": ["rabu"]}, 0),
        ("th-single-014", "order_food", {"note": "ไม่ใส่น้ำจิ้ม"}, 0),
        ("th-multiturn-024", "send_message", {"text": "พรุ่งนี้ไปตัดผมกันนะ"}, 0),
    ],
)
def test_other_wordings_are_right_and_other_meanings_are_wrong(
    tasks: dict[str, Task],
    sample_id: str,
    name: str,
    changes: dict[str, Any],
    value: float,
) -> None:
    samples = {
        sample.row["id"]: sample for task in tasks.values() for sample in task.samples
    }
    entries = samples[sample_id].row["calls"]
    last_turn = entries[-1] if isinstance(entries[-1], list) else entries
    calls = _with_arguments(last_turn, name, **changes)
    response = Response("", "", "stop", tool_calls=calls)
    sample = Sample(sample_id, metadata={"calls": last_turn})
    verdict = bind("tool-calls", {}).function(sample, Answer("", responses=(response,)))
    assert isinstance(verdict, Score)
    assert verdict.value == value


def test_dates_of_the_expected_calls_are_within_a_year_of_the_day(
    tasks: dict[str, Task],
) -> None:
    for task in tasks.values():
        for sample in task.samples:
            for year in re.findall(r"\b(20\d\d)-\d\d-\d\d", str(sample.row["calls"])):
                assert year == "2026", sample.id


def test_a_user_turn_that_renders_empty_is_left_out(tmp_path: Path) -> None:
    """A task's conversations may differ in their number of turns."""
    rows = [{"id": "a", "turns": ["One?", "Two?"]}, {"id": "b", "turns": ["One?"] * 3}]
    task = {
        "task": "t",
        "dataset": {"rows": rows},
        "sample": {"input": "{{ turns[0] }}", "target": "x"},
        "prompt": {
            "user": [
                "{{ turns[0] }}",
                "{{ turns[1] }}",
                "{{ turns[2] | default('') }}",
            ]
        },
    }
    model = ScriptedModel("x", record=True)
    evaluate(task_from_definition(task, chat=True), model, out=tmp_path)
    assert model.requests is not None
    longest = max(len(request.prompt) for request in model.requests)  # type: ignore[union-attr]
    assert (len(model.requests), longest) == (5 - 1, 5)


@pytest.mark.parametrize("name", ["tool-turns-ko", "tool-calls-th"])
def test_a_run_with_gold_calls_is_right_and_stays_so_when_scored_again(
    tasks: dict[str, Task], name: str, tmp_path: Path
) -> None:
    task = tasks[name]
    (scorer,) = task.scorers
    replies = {
        sample.input.split("\n")[0]: gold_reply(expected_turns(scorer, sample))
        for sample in task.samples
    }

    def reply(request: Request) -> Response:
        assert isinstance(request, Generate)
        assert not isinstance(request.prompt, str)
        question = next(turn.text for turn in request.prompt if turn.role == "user")
        return replies[question](0, request)

    (run,) = evaluate(task, ScriptedModel(reply), out=tmp_path)
    again = score_run(run)
    for scored in (run, again):
        assert scored.tasks[0].metrics[0].estimate.value == 1
        scores = [record.scores["tool-calls"] for record in scored.samples()]
        assert {score.label for score in scores} == {"correct"}
        assert all(score.parts["calls"] == 1 for score in scores)
