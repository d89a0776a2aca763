"""What pages take from samples, against plain loops over the same records."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compat.hhem.hhem_trees import PLACEHOLDERS, REFUSAL, Line, Model, text_of
from evalwright import ScriptedModel, evaluate
from evalwright.compat.hhem.importing import import_hhem
from evalwright.core.requests import Classify
from evalwright.core.samples import Score
from evalwright.reports.documents.model_page import LONGEST_TEXT_CHARS, sample_texts
from evalwright.reports.model_samples import (
    DISPUTED,
    LOW,
    LOWEST_OF_SLICE,
    UNSURE,
    SliceKeys,
    read_samples,
)
from evalwright.runs.reader import Run
from evalwright.tasks.loading import task_from_definition
from support.runs import make_run


def test_outcomes_and_the_surest_inconsistencies(tmp_path: Path) -> None:
    rng = random.Random(0)
    texts = [REFUSAL, PLACEHOLDERS[0], "too short"]
    lines = [
        Line(
            i,
            rng.choice(texts) if rng.random() < 0.3 else text_of(i),
            round(rng.random(), 2),
        )
        for i in range(1, 201)
    ]
    Model().write(tmp_path / "tree", lines)
    (run,) = import_hhem(tmp_path / "tree", tmp_path / "runs")[0]
    rows = list(run.rows())
    (samples,) = read_samples(run, 7).values()
    found = {
        (outcome.task, outcome.scorer): dict(outcome.counts)
        for outcome in samples.outcomes
    }
    labels = Counter(row["scores"]["answered"]["label"] for row in rows)
    assert found == {("summary-faithfulness", "answered"): dict(labels)}
    wrong = [
        row for row in rows if row["scores"].get("consistency", {}).get("value") == 0
    ]
    wanted = sorted(
        wrong,
        key=lambda row: (row["scores"]["consistency"]["parts"]["score"], row["index"]),
    )[:7]
    examples = samples.samples
    assert [example.id for example in examples] == [row["id"] for row in wanted]
    assert sample_texts(examples[0]) == (("Answer", wanted[0]["answer"]),)
    (verdict,) = examples[0].verdicts
    assert "HHEM" in verdict.judge and not verdict.passes
    assert not samples.n_judged  # one judge has nobody to disagree with
    assert read_samples(run, 0)["summary-faithfulness"].samples == ()


def test_examples_of_questions_and_their_texts(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, scores=[1, 0, None, 0], text="z" * (LONGEST_TEXT_CHARS + 50)
    )
    (samples,) = read_samples(run, 5).values()
    examples = samples.samples
    assert samples.outcomes[0].counts == (("incorrect", 2), ("correct", 1))
    assert [example.id for example in examples] == ["item-1", "item-3"]
    texts = dict(sample_texts(examples[0]))
    assert (texts["Input"], texts["Target"]) == ("Question 1 of factual?", "yes")
    assert texts["Answer"] == "z" * LONGEST_TEXT_CHARS + " …"


def test_unsure_samples_and_the_lowest_of_each_slice(tmp_path: Path) -> None:
    scores: list[Score | float | None] = [
        Score(1.0, "correct"),
        Score(1.0, "correct", unsure="two numbers"),
        0.0,
        Score(0.0, "incorrect", unsure="a hedge"),
        None,
        0.0,
    ]
    run = make_run(tmp_path, scores=scores, domains=["law", "art"])
    slices = [
        SliceKeys(domain, "factual", {"domain": domain}) for domain in ("law", "art")
    ]
    (samples,) = read_samples(run, 1, slices).values()
    reasons = {sample.id: sample.reasons for sample in samples.samples}
    assert reasons == {
        "item-2": (LOW, LOWEST_OF_SLICE),
        "item-3": (UNSURE, LOWEST_OF_SLICE),
    }
    lowest = {
        name: samples.samples[index].id
        for name, index in samples.lowest_by_slice.items()
    }
    assert lowest == {"law": "item-2", "art": "item-3"}
    assert {sample.id: sample.unsure for sample in samples.samples}["item-3"] == "a hedge"  # fmt: skip


def test_a_page_of_many_tasks_has_fewer_samples_of_each(tmp_path: Path) -> None:
    scores = [Score(1.0, "correct", unsure="why")] * 10
    run = make_run(tmp_path, name="r", scores={f"task-{i}": scores for i in range(60)})
    samples = read_samples(run, 5)
    assert {len(of_task.samples) for of_task in samples.values()} == {1}


A = [0.9, 0.8, 0.2, 0.5, 0.1, 0.7]
B = [0.8, 0.4, 0.3, 0.6, 0.2, 0.1]
C = [0.7, 0.1, 0.4, 0.9, 0.6, 0.2]


def panel_run(**panels: list[float]) -> Run:
    """A run whose answers several classifiers judge, the n-th with the n-th number."""

    def judge(name: str, numbers: list[float]) -> ScriptedModel:
        def script(request: Any) -> list[float]:
            assert isinstance(request, Classify)
            number = numbers[int(request.premise.split()[-1])]
            return [1 - number, number]

        return ScriptedModel(
            script, name=name, version=repr(numbers), abilities=["classify"]
        )

    rows = [
        {"id": f"{i}", "input": str(i), "text": f"Article {i}"} for i in range(len(A))
    ]
    task = task_from_definition(
        {
            "task": "summaries",
            "dataset": {"rows": rows},
            "sample": {"passages": ["{{ text }}"]},
            "scorers": [{"consistency": {"judges": [*panels], "only_answered": False}}],
            "metrics": ["hallucination-rate"],
        }
    )
    judges = {role: judge(f"judge-{role}", panel) for role, panel in panels.items()}
    (run,) = evaluate(
        task,
        ScriptedModel("A summary of six whole words.", name="m"),
        roles=judges,
        name="run",
    )
    return run


@pytest.mark.usefixtures("own_folder")
def test_disputes_of_judges_are_counted_and_the_widest_shown_first() -> None:
    (samples,) = read_samples(panel_run(a=A, b=B, c=C), 2).values()
    votes = [[number >= 0.5 for number in numbers] for numbers in (A, B, C)]
    columns = list(zip(*votes, strict=True))
    assert samples.n_judged == 6
    assert samples.n_disputed == sum(len(set(column)) == 2 for column in columns) == 3
    for counts, own_votes in zip(samples.judges, votes, strict=True):
        assert (counts.n, counts.n_passed) == (6, sum(own_votes))
        assert counts.n_alone == sum(
            column.count(vote) == 1
            for vote, column in zip(own_votes, columns, strict=True)
        )
    assert [counts.judge for counts in samples.judges] == [
        "judge-a",
        "judge-b",
        "judge-c",
    ]
    widest = sorted(
        (i for i in range(6) if len(set(columns[i])) == 2),
        key=lambda i: min(A[i], B[i], C[i]) - max(A[i], B[i], C[i]),
    )[:2]
    disputed = [sample for sample in samples.samples if DISPUTED in sample.reasons]
    assert {sample.id for sample in disputed} == {str(i) for i in widest}
    for sample in disputed:
        numbers = [panel[int(sample.id)] for panel in (A, B, C)]
        assert [verdict.number for verdict in sample.verdicts] == numbers
