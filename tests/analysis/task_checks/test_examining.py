"""Tasks are checked without a model: gold answers, constants, repeated questions, and scorers
that fail.
"""

from __future__ import annotations

from typing import Any

import pytest

from evalwright import scorer
from evalwright.analysis.task_checks.examining import examine
from evalwright.analysis.task_checks.material import preview_requests
from evalwright.core.ask import Ask
from evalwright.core.requests import Generate, LogLikelihood, RollingLogLikelihood
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import Task
from evalwright.tasks.loading import task_from_definition


def a_task(targets: list[str] | None = None, **more: Any) -> Task:
    targets = targets or ["Paris", "Rome", "Lima"]
    rows = [
        {"id": str(i), "input": f"Question {i}?", "target": target}
        for i, target in enumerate(targets)
    ]
    return task_from_definition({"task": "t", "dataset": {"rows": rows}, **more})


def faults(task: Task) -> list[str]:
    return [
        finding.text
        for part in examine([task])
        for finding in part.findings
        if not finding.ok
    ]


def test_a_scorer_that_fails_is_a_fault_and_no_traceback() -> None:
    @scorer("test-fragile")
    def fragile(sample: Sample, answer: Answer) -> Score:
        return Score(1.0 / len(answer.text))

    @scorer("test-formless")
    def formless(sample: Sample, answer: Answer) -> Score:
        return "good"  # type: ignore[return-value]

    assert any(
        "ZeroDivisionError" in text for text in faults(a_task(scorers=["test-fragile"]))
    )
    assert any(
        "must give a Score, a number, True or False, not str" in text
        for text in faults(a_task(scorers=["test-formless"]))
    )


def test_what_needs_a_model_or_a_likelihood_is_not_judged() -> None:
    @scorer("test-asks")
    async def asks(sample: Sample, answer: Answer, ask: Ask) -> Score:
        return Score(1.0)

    task = a_task(scorers=["test-asks"])
    reason = "test-asks uses a model or runs programs, so it cannot be checked here"
    own, constants = examine([task])
    assert reason in [
        finding.text for finding in own.findings if finding.verdict == "skipped"
    ]
    assert [finding.text for finding in constants.findings] == [f"t: {reason}"]
    assert faults(a_task(answer={"mode": "perplexity"})) == []


CHOICES = {"sample": {"choices": ["Paris", "Rome", "Lima"]}}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"answer": {"max_tokens": 9, "stop": []}}, [Generate("Question 1?", max_tokens=9)]),
        ({"answer": {"mode": "likelihood"}, **CHOICES}, [LogLikelihood("Question 1?", f" {c}") for c in ("Paris", "Rome", "Lima")]),
        ({"answer": {"mode": "continuation"}}, [LogLikelihood("Question 1?", " Rome")]),
        ({"answer": {"mode": "perplexity"}}, [RollingLogLikelihood("Question 1?")]),
    ],
)  # fmt: skip
def test_a_preview_is_what_would_be_asked(
    more: dict[str, Any], expected: list[Any]
) -> None:
    found = preview_requests(a_task(**more), 1)
    assert found == expected
