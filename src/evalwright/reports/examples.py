"""What a model's page takes from the samples: how many ended in which outcome, and the worst of them as examples.

One pass over the samples; memory holds counts and a few examples.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalwright.metrics.registry import BOUNDED
from evalwright.reports.columns import HALLUCINATION

if TYPE_CHECKING:
    from evalwright.runs.reader import Run
    from evalwright.runs.results import MetricResult

MOST_OUTCOMES = 20
"""Labels of one scorer; with more they are no classes."""
LONGEST = 700
"""Characters of a text on a page."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many samples of a task a scorer gave each label. counts: most frequent first."""

    task: str
    scorer: str
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Example:
    """One sample with a low score. texts: (what it is, the text), each shortened; score: in the scorer's unit."""

    task: str
    id: str
    label: str
    score: float
    texts: tuple[tuple[str, str], ...]


def read_samples(run: Run, most: int) -> tuple[list[Outcomes], list[Example]]:
    """The outcomes of a run's tasks, and its `most` worst samples for each task, by the scorer of the main metric.

    Examples are of bounded metrics alone, and are those with a score under 0.5, the lowest first: by the part `score` where a judge gave
    a number, else in the order of the task.
    """
    judges = {task.name: task.main for task in run.tasks if task.main and task.main.kind in BOUNDED}
    counts: dict[tuple[str, str], Counter[str]] = {}
    worst: dict[str, list[tuple[float, int, int, dict[str, Any]]]] = {name: [] for name in judges}
    for order, row in enumerate(run.rows()):
        task = str(row["task"])
        if row["draw"] == 0:
            _count(row, task, counts)
        if most and task in judges:
            _keep(row, judges[task].scorer, worst[task], most, order)
    outcomes = [
        Outcomes(task, scorer, tuple(sorted(found.items(), key=lambda each: (-each[1], each[0]))))
        for (task, scorer), found in counts.items()
        if len(found) <= MOST_OUTCOMES
    ]
    examples = [
        _example(task, judges[task], row)
        for task, heap in worst.items()
        for _, _, _, row in sorted(heap, key=lambda each: (-each[0], -each[1]))
    ]
    return outcomes, examples


def _count(row: Mapping[str, Any], task: str, counts: dict[tuple[str, str], Counter[str]]) -> None:
    for scorer, score in row["scores"].items():
        if score.get("label"):
            counts.setdefault((task, scorer), Counter())[str(score["label"])] += 1


def _keep(
    row: dict[str, Any],
    scorer: str,
    heap: list[tuple[float, int, int, dict[str, Any]]],
    most: int,
    order: int,
) -> None:
    score = row["scores"].get(scorer)
    value = score.get("value") if score else None
    if value is None or not value < 0.5:
        return
    entry = (-_sureness(score), -order, order, row)
    if len(heap) < most:
        heapq.heappush(heap, entry)
    else:
        heapq.heappushpop(heap, entry)


def _sureness(score: Mapping[str, Any]) -> float:
    """What examples are ordered by: the judge's own number, else the value."""
    parts: Mapping[str, Any] = score.get("parts", {})
    found = parts.get("score", score["value"])
    return float(found) if found is not None else 0.0


def _example(task: str, metric: MetricResult, row: Mapping[str, Any]) -> Example:
    score = row["scores"][metric.scorer]
    asked = "Source" if metric.kind == HALLUCINATION else "Input"
    return Example(
        task=task,
        id=str(row["id"]),
        label=str(score.get("label", "")),
        score=_sureness(score),
        texts=tuple((what, _short(text.strip())) for what, text in _texts(row, score, asked) if text.strip()),
    )


def _texts(row: Mapping[str, Any], score: Mapping[str, Any], asked: str) -> Iterator[tuple[str, str]]:
    passages: Sequence[Mapping[str, Any]] = row.get("passages", ())
    for passage in passages:
        yield "Source", str(passage.get("text", ""))
    if row["input"] and not any(row["input"] == passage.get("text") for passage in passages):
        yield asked, str(row["input"])
    if row["targets"]:
        yield "Target", ", ".join(map(str, row["targets"][:5]))
    yield "Answer", str(row.get("answer", ""))
    yield "Explanation", str(score.get("explanation", ""))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rstrip()} …"
