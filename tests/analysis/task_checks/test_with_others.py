"""The check with a model's context, with a run's answers, and on another framework's tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright import evaluate
from evalwright.analysis.task_checks.examining import examine
from evalwright.analysis.task_checks.findings import Finding
from evalwright.core.requests import Generate, Request
from evalwright.core.responses import Response
from evalwright.core.tasks import Task
from evalwright.models.registry import open_model
from evalwright.models.scripted import ScriptedModel
from evalwright.statistics import mean_interval
from evalwright.tasks.loading import load_tasks, task_from_definition


@pytest.fixture(autouse=True)
def _folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def a_task(rows: list[dict[str, Any]], **more: Any) -> Task:
    rows = [{"id": f"s{number}", **row} for number, row in enumerate(rows)]
    return task_from_definition({"task": "t", "dataset": {"rows": rows}, **more})


def found(task: Task, check: str, **more: Any) -> list[Finding]:
    return [
        finding
        for one in examine([task], **more)
        for finding in one.findings
        if finding.check == check
    ]


# -- a model's context
# --------------------------------------------------------------------------------------------------

LONG = "the river runs past the old mill " * 400
QUESTIONS = [
    {"input": f"{LONG if n == 2 else 'a river'} {n}", "target": f"mill {n}"}
    for n in range(4)
]


@pytest.mark.parametrize("mode", ["generate", "continuation"])
def test_what_does_not_fit_is_what_the_model_itself_refuses_or_cuts(mode: str) -> None:
    task = a_task(QUESTIONS, answer={"mode": mode})
    model = open_model("demo/small")
    (finding,) = found(task, "context", model=model)
    assert finding.verdict == "fault"
    assert finding.samples == ("s2",)
    assert "1 of 4 samples are cut or refused" in finding.text
    (run,) = evaluate(task, model)
    # A context that is cut on its left fills the window: 1,024 tokens go in, and one more is
    # predicted.
    bad = [
        record.sample.id
        for record in run.samples()
        if record.outcome == "too_long"
        or record.answer is None
        or record.answer.usage.input_tokens == 1025
    ]
    assert bad == ["s2"]


@pytest.mark.torch
def test_two_beginnings_of_a_text(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from support.tiny_models import make_tiny_model

    folder = tmp_path / "llama"
    make_tiny_model(folder, "llama")
    model = open_model(f"hf/{folder}")
    reader = model.reader()
    assert reader is not None
    bos = reader.encoder.decode([reader.rules.bos_token or 0], False)
    marked = a_task(
        [{"input": f"{bos}The river {n}", "target": f"x{n}"} for n in range(3)]
    )
    plain = a_task(
        [{"input": f"The river {n}", "target": f"x{n}"} for n in range(3)],
        answer={"max_tokens": 8},
    )
    told = [
        finding.text
        for finding in found(marked, "context", model=model)
        if not finding.ok
    ]
    assert any("3 prompts would begin with two BOS tokens" in text for text in told)
    assert not [
        finding for finding in found(plain, "context", model=model) if not finding.ok
    ]


# -- a run's answers
# ----------------------------------------------------------------------------------------------------


def lettered(n: int = 40) -> Task:
    rows = [
        {
            "input": f"{i}?",
            "choices": [f"ash {i}", f"elm {i}", f"oak {i}"],
            "target": "ABC"[i % 3],
        }
        for i in range(n)
    ]
    return a_task(
        rows, scorers=["choice"], prompt={"user": "{{ input }}\n{{ lettered }}"}
    )


def says(unread: int) -> ScriptedModel:
    def script(request: Request) -> Response:
        assert isinstance(request, Generate)
        number = int(str(request.prompt).split("?")[0])
        return Response(text="The weather is fine today." if number < unread else "B")

    return ScriptedModel(script, version=str(unread))


@pytest.mark.parametrize(
    ("unread", "verdict"), [(0, "ok"), (4, "ok"), (5, "fault"), (20, "fault")]
)
def test_the_share_of_answers_that_could_be_read(unread: int, verdict: str) -> None:
    task = lettered()
    (run,) = evaluate(task, says(unread))
    first, *examples = found(task, "extraction", run=run)
    share = mean_interval([0.0] * unread + [1.0] * (40 - unread))
    assert first.verdict == verdict
    told = f"reads {100 * share.value:.0f}% of answers (95%: {100 * share.low:.0f} to {100 * share.high:.0f}%, n = 40)"
    assert told in first.text
    assert len(examples) == min(3, unread)
    assert all("'The weather is fine today.'" in finding.text for finding in examples)


# -- another framework's tasks
# ------------------------------------------------------------------------------------------

CHOICE = """
task: even
dataset_path: json
dataset_kwargs: {data_files: {train: rows.jsonl, test: rows.jsonl}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{q}}"
doc_to_choice: options
doc_to_target: a
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
"""
WRITTEN = """
task: sums
dataset_path: json
dataset_kwargs: {data_files: {train: rows.jsonl, test: rows.jsonl}}
output_type: generate_until
test_split: test
doc_to_text: "{{q}} Answer:"
doc_to_target: "{{a}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 8}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


def foreign(text: str, rows: list[dict[str, Any]], **dialect: Any) -> Task:
    pytest.importorskip("datasets")
    folder = Path("tasks").resolve()
    folder.mkdir(exist_ok=True)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "task.yaml").write_text(
        text.replace("rows.jsonl", str(folder / "rows.jsonl"))
    )
    name = text.split()[1]
    (task,) = load_tasks(
        f"lm-eval:{name}", dialect={"task_root": [str(folder)], **dialect}
    )
    return task


EVEN: list[dict[str, Any]] = [
    {"q": f"Is the number {n} even?", "options": ["no", "yes"], "a": 1 - n % 2}
    for n in range(20)
]


def faults(task: Task) -> str:
    return "\n".join(
        finding.text
        for one in examine([task])
        for finding in one.findings
        if not finding.ok
    )


def test_a_foreign_choice_is_checked() -> None:
    task = foreign(CHOICE, EVEN)
    assert isinstance(next(iter(task.samples)).input, str)
    assert faults(task) == ""
    told = [finding.text for one in examine([task]) for finding in one.findings]
    assert any(
        "the gold option scores 1 on all samples, every other 0" in text
        for text in told
    )
    assert any("always the same option: at most 50%" in text for text in told)


def test_foreign_faults_are_found() -> None:
    twice = [*EVEN, {**EVEN[3], "a": 1}]
    assert "more than once with different gold answers" in faults(
        foreign(CHOICE, twice)
    )
    spaced = CHOICE.replace('"{{q}}"', '"{{q}} "')
    assert "two spaces meet" in faults(foreign(spaced, EVEN))
    assert "ends with a space" in faults(
        foreign(WRITTEN.replace("Answer:", "Answer: "), SUMS)
    )
    blind = CHOICE.replace('"{{q}}"', '"A number."')
    assert "1 question occurs more than once with different gold answers" in faults(
        foreign(blind, EVEN)
    )


SUMS = [{"q": f"How much is {n} plus {n}?", "a": str(2 * n)} for n in range(100, 120)]


def test_a_foreign_answer_is_checked_and_what_is_not_known_is_said() -> None:
    task = foreign(WRITTEN, SUMS)
    assert faults(task) == ""
    (run,) = evaluate(task, ScriptedModel("200"))
    (finding,) = found(task, "extraction", run=run)
    assert finding.verdict == "skipped"


def test_foreign_shots_from_the_evaluated_split() -> None:
    text = faults(foreign(CHOICE, EVEN, num_fewshot=2))
    assert "shots are drawn from the evaluated split 'test'" in text
    other = CHOICE.replace(
        "test_split: test", "test_split: test\ntraining_split: train"
    )
    assert "evaluated split" not in faults(foreign(other, EVEN, num_fewshot=2))
