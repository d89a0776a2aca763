"""Runs whose judge errs at known rates, and people who label: simulated, through the real
evaluation and the real files.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evalwright import Run, ScriptedModel, evaluate, scorer
from evalwright.core.ask import Ask
from evalwright.core.requests import Generate
from evalwright.core.samples import Answer, Sample, Score
from evalwright.tasks.loading import task_from_definition

SECRET = "the judge's own words"


@scorer("test-scripted-judge")
async def scripted_judge(
    sample: Sample, answer: Answer, ask: Ask, *, role: str = "judge"
) -> Score:
    """Asks the judge, whose reply is a number, and says why in words that people must not see."""
    reply = await ask(role, Generate(f"{sample.id}\n{answer.text}"))
    verdict, _, sure = reply.text.partition(" ")
    return Score(
        float(verdict),
        explanation=SECRET,
        parts={"confidence": float(sure)} if sure else {},
    )


def judged_run(
    answers: Mapping[str, str | Sequence[str]],
    verdict: Callable[[str, str], str],
    *,
    name: str,
    passages: Mapping[str, str] | None = None,
    cluster_size: int = 0,
    scorers: Sequence[str] = ("test-scripted-judge",),
) -> Run:
    """A run in the working folder's `runs`: `answers` by item (one, or one per draw), judged by
    `verdict(item, answer)`.
    """
    draws = max(
        1 if isinstance(answer_or_draws, str) else len(answer_or_draws)
        for answer_or_draws in answers.values()
    )
    rows = [
        {
            "id": answer,
            "input": f"Question about {answer}?",
            "target": "yes",
            "group": f"g{answer_index // cluster_size}" if cluster_size else "",
            **({"passage": passages[answer]} if passages else {}),
        }
        for answer_index, answer in enumerate(answers)
    ]
    sample: dict[str, Any] = {}
    if cluster_size:
        sample["cluster"] = "{{ group }}"
    if passages:
        sample["passages"] = [{"id": "1", "text": "{{ passage }}"}]
    answer = {"draws": draws, "temperature": 1.0} if draws > 1 else {}
    task = task_from_definition(
        {
            "task": "asked",
            "dataset": {"rows": rows},
            "prompt": {"user": "{{ id }}"},
            "scorers": list(scorers),
            "metrics": ["mean"],
            **({"sample": sample} if sample else {}),
            **({"answer": answer} if answer else {}),
        }
    )

    def says(request: Any) -> str:
        prompt = (
            request.prompt
            if isinstance(request.prompt, str)
            else request.prompt[-1].text
        )
        answer_or_draws = answers[prompt]
        return (
            answer_or_draws
            if isinstance(answer_or_draws, str)
            else answer_or_draws[request.draw]
        )

    def judges(request: Any) -> str:
        prompt = (
            request.prompt
            if isinstance(request.prompt, str)
            else request.prompt[-1].text
        )
        first_line, _, text = prompt.partition("\n")
        return verdict(first_line, text)

    model = ScriptedModel(says, name=f"model/{name}")
    judge = ScriptedModel(judges, name=f"judge/{name}")
    roles = {"judge": judge} if any(scorer.roles for scorer in task.scorers) else {}
    (run,) = evaluate(task, model, roles=roles, name=name)
    return run


def simulate(
    n: int, *, rate: float, false_yes: float, false_no: float, seed: int
) -> tuple[list[float], list[float]]:
    """What people would say of n answers, and what a judge with these error rates says."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < rate
    wrong = rng.random(n) < np.where(truth, false_no, false_yes)
    return truth.astype(float).tolist(), (truth ^ wrong).astype(float).tolist()


def read_table(path: str | Path) -> list[dict[str, str]]:
    """A table as a spreadsheet reads it."""
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill_in(
    rows: Sequence[Mapping[str, str]],
    label: Callable[[Mapping[str, str]], object],
    *,
    labeller: str = "",
    **dialect: Any,
) -> str:
    """The table with labels, as a spreadsheet writes it in some dialect of CSV."""
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, list(rows[0]), **{"lineterminator": "\n", **dialect})
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {**row, "label": label(row), "labeller": labeller or row["labeller"]}
        )
    return table.getvalue()
