"""Each bundled benchmark end to end, on synthetic rows in the hub's column shape: the gold
answer scores 1, a wrong one 0.

The rows stand in for what the hub would send; everything else is the way a real run goes, down to
the copies on disk.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.ask import Ask
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import Task
from evalwright.evaluation.evaluating import evaluate
from evalwright.evaluation.scoring import evaluate_sample
from evalwright.models.scripted import ScriptedModel
from evalwright.tasks.datasets import copies
from evalwright.tasks.index import LIBRARY, TaskIndex
from evalwright.tasks.loading import load_task
from support import sandbox
from support.hub_rows import CASES, Case, Key, Rows

OWN = (
    "/korean/",
    "/factual/",
    "/judge_consistency/",
    "/summary_faithfulness/",
    "/sea/",
    "/vision/",
    "/long_texts/",
    "/tool_calls/",
    "/terminal/",
    "/service/",
)
HUB = [
    entry
    for entry in TaskIndex().files()
    if not any(folder in entry.path for folder in OWN)
]


QUESTIONS = [
    "question", "problem", "ctx_a", "goal", "question_stem", "sentence", "text", "premise", "prompt",
    "problem_statement",
]  # fmt: skip
"""Columns that hold what is asked."""


def serve(monkeypatch: pytest.MonkeyPatch, rows: dict[Key, Rows]) -> list[Key]:
    """Let the hub have these rows and no others; returns the list of what is asked for."""
    asked: list[Key] = []

    def hub_rows(
        repository: str, revision: str, config: str | None, split: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        assert re.fullmatch(r"[0-9a-f]{40}", revision), (
            f"{repository} is not pinned to a commit: {revision}"
        )
        asked.append((repository, config, split))
        for number, row in enumerate(rows[repository, config, split], 1):
            yield f"{repository} ({split}), row {number}", row

    monkeypatch.setattr(copies, "_hub_rows", hub_rows)
    monkeypatch.setattr(
        "evalwright.tasks.compiling.first_fetched", lambda repository: "0" * 40
    )
    return asked


def answered(task: Task, reply: str | float) -> SampleRecord:
    """The first sample's record where the model says `reply`."""
    model = ScriptedModel(lambda request: reply)

    async def ask(role: str, request: Request) -> Response:
        return await model.answer(request)

    door: Ask = ask
    return asyncio.run(evaluate_sample(task, 0, task.samples[0], 0, door))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.task)
def test_gold_scores_one_wrong_scores_nought_and_the_prompt_holds_the_question(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = serve(monkeypatch, dict(case.rows))
    first = next(iter(case.rows.values()))[0]
    question = next(
        str(value) for name, value in first.items() if name.casefold() in QUESTIONS
    )
    for chat in (False, True):
        asked.clear()
        task = load_task(case.task, chat=chat)
        if task.scorers[0].kind == "unit-tests" and not sandbox.works():
            pytest.skip("this system cannot sandbox a program")
        assert chat or sorted(asked, key=str) == sorted(case.rows, key=str)
        for value, replies in ((1.0, case.right), (0.0, case.wrong)):
            for reply in replies:
                record = answered(task, reply)
                for scorer in {task.metrics[0].scorer, task.scorers[-1].name}:
                    found = record.scores[scorer]
                    assert found.value == value, (reply, record.failure, found)
                prompt = record.answer.prompt if record.answer is not None else None
                if isinstance(prompt, str):
                    assert "{{" not in prompt
                    assert (
                        question.split("_")[0].strip()[:20].casefold()
                        in prompt.casefold()
                    )
                assert chat or isinstance(prompt, str)


def test_wikitext_is_scored_as_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    page = " = Ada = \n\n Ada 's 2 @,@ 000 well @-@ known notes ( of 1843 ) , she said . \n"
    serve(
        monkeypatch,
        {
            ("EleutherAI/wikitext_document_level", "wikitext-2-raw-v1", "test"): [
                {"page": page}
            ]
        },
    )
    record = answered(load_task("wikitext"), -12.5)
    assert record.answer is not None
    assert "Ada's 2,000 well-known notes (of 1843), she said." in record.answer.text
    assert record.scores["perplexity"].parts["log_likelihood"] == -12.5


def test_every_case_is_of_a_bundled_task_and_every_file_has_one() -> None:
    tested = {case.task for case in CASES} | {"wikitext"}
    for entry in HUB:
        assert not entry.problem
        assert tested & set(entry.members), f"{entry.path} has no test"
        assert entry.description and "{{" not in entry.description
    assert tested <= {name for entry in HUB for name in entry.members}


def test_every_benchmark_names_its_source() -> None:
    from evalwright.tasks.validation import validated
    from tasks.conftest import read_definitions

    for path in sorted(LIBRARY.rglob("[!_]*.yaml")):
        for definition in read_definitions(path):
            file = validated(definition.document)
            if file.dataset.hub is None:
                continue
            assert re.fullmatch(
                r"[0-9a-f]{40}|first-fetch", file.dataset.revision or ""
            ), path
            assert {"licence", "citation", "homepage"} <= set(file.metadata), path
            assert file.dataset.hub in file.metadata["homepage"]


def test_a_local_file_takes_the_place_of_the_hub(tmp_path: Path) -> None:
    """A whole run, through the engine and its store, with a person's own copy of the data."""
    case = next(case for case in CASES if case.task == "gsm8k")
    local: dict[str, dict[str, Any]] = {}
    for (_, _, split), rows in case.rows.items():
        path = tmp_path / f"{split}.jsonl"
        path.write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
        local[split] = {
            "path": str(path),
            "hub": None,
            "revision": None,
            "config": None,
            "split": None,
        }
    task = load_task(
        "gsm8k",
        overrides={"dataset": local["test"], "prompt.few_shot.dataset": local["train"]},
    )
    for number, (reply, value) in enumerate(
        [(case.right[0], 1.0), (case.wrong[0], 0.0)]
    ):
        model = ScriptedModel(reply, name=f"always/{number}")
        run = evaluate(
            task, model, out=str(tmp_path / "runs"), home=str(tmp_path / "home")
        )[0]
        assert run.n_missing == 0
        main = run.tasks[0].main
        assert main is not None and main.estimate.value == value
