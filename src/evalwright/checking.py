"""Is a task fit to be asked? Everything that can be known of it without a model: its rows, its prompts and its scorers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Scorer, Task
from evalwright.evaluation import checked_score

PLACEHOLDER = "(the model's answer)"
NO_GOLD = frozenset({"likelihood", "lm-eval", "perplexity"})
"""Scorers whose worth is, or may be, a likelihood, so that no text can be right."""

MOST_FOR_NOTHING = 0.5
"""An answer that ignores the question and still gets this much shows a fault of the task or its scorer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict: `ok` false is a fault."""

    ok: bool
    text: str


def preview(task: Task, index: int) -> list[Request]:
    """The requests that a sample would send, exactly. What depends on an earlier reply shows a placeholder for it."""
    asked: list[Request] = []

    async def ask(role: str, request: Request) -> Response:
        asked.append(request)
        return Response(text=PLACEHOLDER, log_likelihood=0.0, is_greedy=False)

    asyncio.run(_answer(task, task.samples[index], ask))
    return asked


async def _answer(task: Task, sample: Sample, ask: Ask) -> Answer:
    return await task.strategy(sample, ask, 0)


def check_task(task: Task) -> Iterator[Finding]:
    """Verdicts on one task, whose rows were already read and validated by loading it."""
    samples = list(task.samples)
    yield Finding(True, f"{len(samples)} samples read, ids unique{_spread(samples, task)}")
    repeated = [count for count in Counter(map(_content, samples)).values() if count > 1]
    several = "1 question stands" if len(repeated) == 1 else f"{len(repeated)} questions stand"
    yield Finding(not repeated, f"{several} more than once" if repeated else "no question twice")
    for scorer in task.scorers:
        if scorer.asks:
            yield Finding(True, f"{scorer.name}: asks a model, so it cannot be checked without one")
        elif scorer.kind not in NO_GOLD:
            yield _gold_scores_one(scorer, samples)


def check_constants(tasks: Sequence[Task]) -> Iterator[Finding]:
    """Verdicts on tasks that are asked together: answers that ignore the question must not do well over all of them.

    Judged over all, because a part may be right to expect one answer ("no answer" to questions that have none).
    """
    judged = [(task, task.scorers[0]) for task in tasks if task.scorers and not task.scorers[0].asks]
    judged = [(task, scorer) for task, scorer in judged if scorer.kind not in NO_GOLD]
    if not judged:
        return
    golds = {task.name: Counter(_gold(sample).text for sample in task.samples) for task, _ in judged}
    constants = {"": "empty answers"}
    for counts in golds.values():
        commonest = counts.most_common(1)[0][0]
        constants[commonest] = f"always '{commonest[:40]}'"
    for text, name in constants.items():
        answer = Answer(text=text)
        try:
            values = [_value(scorer, sample, answer) for task, scorer in judged for sample in task.samples]
        except ScoringError as error:
            yield Finding(False, f"{name}: {error}")
            continue
        mean = sum(values) / len(values)
        yield Finding(mean < MOST_FOR_NOTHING, f"{name}: {100 * mean:.0f} of 100")


def _gold_scores_one(scorer: Scorer, samples: list[Sample]) -> Finding:
    try:
        wrong = [sample.id for sample in samples if _value(scorer, sample, _gold(sample)) != 1.0]
    except ScoringError as error:
        return Finding(False, f"gold answers: {error}")
    if not wrong:
        return Finding(True, f"{scorer.name}: gold answers score 1 on all samples")
    listed = ", ".join(wrong[:5]) + (", ..." if len(wrong) > 5 else "")
    return Finding(
        False, f"{scorer.name}: the gold answer does not score 1 on {len(wrong)} samples: {listed}"
    )


def _gold(sample: Sample) -> Answer:
    cited = "".join(f" [{name}]" for name in sample.metadata.get("citations", ()))
    return Answer(text=f"{sample.target}{cited}", choice=sample.gold[0] if sample.gold else None)


def _value(scorer: Scorer, sample: Sample, answer: Answer) -> float:
    try:
        return checked_score(scorer.function(sample, answer)).value
    except ConfigurationError:
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, ScoringError) else f"{type(error).__name__}: {error}"
        raise ScoringError(f"{scorer.name} fails on the sample '{sample.id}': {reason}") from error


def _content(sample: Sample) -> tuple[object, ...]:
    return (sample.input, sample.choices, tuple(passage.text for passage in sample.passages))


def _spread(samples: list[Sample], task: Task) -> str:
    parts = []
    for key in task.slices:
        values = {str(sample.metadata[key]) for sample in samples if sample.metadata.get(key)}
        if len(values) > 1:
            parts.append(f"{len(values)} values of {key}")
    clusters = {sample.cluster or sample.id for sample in samples}
    if len(clusters) < len(samples):
        parts.append(f"{len(clusters)} clusters")
    return f" ({', '.join(parts)})" if parts else ""
