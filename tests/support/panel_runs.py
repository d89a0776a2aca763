"""Summaries of an article, judged by panels: a good one, an invented one, and a good one with an
invented sentence.
"""

from __future__ import annotations

from typing import Any

from evalwright import ScriptedModel, evaluate
from evalwright.core.errors import ModelError
from evalwright.core.requests import Classify, Request
from evalwright.core.tasks import Task
from evalwright.runs.reader import Run
from evalwright.tasks.loading import task_from_definition

ARTICLE = (
    "The Harrowmere bridge reopened on Tuesday. Its repair cost 3.1 million crowns, the harbour"
    " board said.\n\nLorries above 18 tonnes must use the northern road."
)
GOOD = "The Harrowmere bridge reopened on Tuesday. Lorries above 18 tonnes must use the northern road."
BAD = "Pilots praised a shiny aeroplane yesterday evening. Cows celebrated quietly nearby."
SUMMARIES = [GOOD, BAD, f"{GOOD} Seven cows celebrated."]


def summaries_task(**scorer: Any) -> Task:
    rows = [{"id": str(index), "text": ARTICLE} for index in range(len(SUMMARIES))]
    return task_from_definition(
        {
            "task": "summaries",
            "dataset": {"rows": rows},
            "sample": {"input": "{{ id }}", "passages": "{{ [text] }}"},
            "scorers": [{"consistency": scorer}] if scorer else ["consistency"],
            "metrics": [
                "hallucination-rate",
                {"name": "consistent", "use": "accuracy"},
            ],
        }
    )


def writer() -> ScriptedModel:
    def answer(request: Request) -> str:
        prompt: Any = request.payload()["generate"]
        text = prompt if isinstance(prompt, str) else prompt[-1][1]
        return SUMMARIES[int(text)]

    return ScriptedModel(answer, name="writer", version="1")


class CountingJudge(ScriptedModel):
    """A classifier that always gives one probability; fails on answers with a word."""

    def __init__(self, name: str, probability: float, fails_on: str = "") -> None:
        self.pairs: list[Classify] = []

        def judge(request: Request) -> list[float] | ModelError:
            assert isinstance(request, Classify)
            self.pairs.append(request)
            if fails_on and fails_on in request.hypothesis:
                return ModelError("It cannot be read.")
            return [1 - probability, probability]

        super().__init__(judge, name=name, version="1", abilities=["classify"])


def judge_all(judge: Any, name: str, task: Task | None = None, **settings: Any) -> Run:
    (run,) = evaluate(
        task or summaries_task(), writer(), judge=judge, name=name, **settings
    )
    return run


def rates(run: Run) -> dict[str, float]:
    return {
        metric.label: round(metric.estimate.value, 3)
        for metric in run.task("summaries").metrics
    }
