"""Three questions to a model before it is evaluated: an ordinary text, one with nothing in it, and the longest it may meet.

Each is asked as the task `summary-faithfulness` asks it, so what goes wrong there shows here first, for three requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evalwright.core.errors import AbilityError, ConfigurationError
from evalwright.core.plain import Plain
from evalwright.core.private import home_folder
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import Task
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.evaluation.running import run_blocking
from evalwright.evaluation.scoring import evaluate_sample
from evalwright.models.base import Model
from evalwright.tasks.loading import load_task

Result = Literal["pass", "look", "fail"]

TASK = "summary-faithfulness"
LONGEST = 15_000
"""Words of the longest text: what the hallucination leaderboard's longest article has."""

ORDINARY, NOTHING, LONG = "ordinary", "nothing to summarise", "longest"


@dataclass(frozen=True, slots=True)
class CaseResult(Plain):
    """What became of one case.

    result: "fail" where the model cannot be evaluated like this, "look" where a person should know before it is. why: in a
    sentence. words: of the text that was asked about. answer: what came, "" where nothing did. seconds: until it came.
    """

    case: str
    result: Result
    why: str
    words: int
    answer: str = ""
    seconds: float = 0.0


def smoke_test(model: Model, *, words: int = LONGEST, home: str | None = None) -> list[CaseResult]:
    """Ask the three cases and judge them by rule. words: of the longest text. Answers are stored like any other.

    Raises UsageError where the model cannot be asked at all.
    """
    if words < 1:
        raise ConfigurationError(f"The longest text must have at least one word, not {words}.")
    model.check()
    if "generate" not in model.abilities:
        raise AbilityError(f"'{model.name}' cannot generate text, so it cannot summarise.")
    task = _task("chat" in model.abilities, words)
    records: list[SampleRecord] = run_blocking(lambda: _ask(task, model, home))
    return [_verdict(record) for record in records]


def _task(chat: bool, words: int) -> Task:
    rows = [{"article_id": case, "text": text} for case, text in _texts(words).items()]
    overrides = {"dataset": {"rows": rows}, "scorers": [{"name": "answered", "use": "outcome"}, "words"]}
    return load_task(TASK, chat=chat, overrides={**overrides, "metrics": ["mean"]})


def _texts(words: int) -> Mapping[str, str]:
    """The case's texts, of the articles that come with the task."""
    samples = list(load_task(TASK).samples)
    full = [sample.passages[0].text for sample in samples if not sample.metadata.get("expects")]
    empty = [sample.passages[0].text for sample in samples if sample.metadata.get("expects") == "refusal"]
    long: list[str] = []
    while sum(len(text.split()) for text in long) < words:
        long.append(full[len(long) % len(full)])
    return {
        ORDINARY: full[0],
        NOTHING: empty[0] if empty else "This page has no content.",
        LONG: " ".join(" ".join(long).split()[:words]),
    }


async def _ask(task: Task, model: Model, home: str | None) -> Sequence[SampleRecord]:
    import asyncio

    with open_store(home_folder(home)) as store:
        async with Engine(store) as engine:
            door = engine.door({"target": model})
            work = [
                evaluate_sample(task, place, sample, 0, door) for place, sample in enumerate(task.samples)
            ]
            return await asyncio.gather(*work)


def _verdict(record: SampleRecord) -> CaseResult:
    case, words = record.sample.id, len(record.sample.passages[0].text.split())
    if record.failure is not None or record.answer is None:
        reason = record.failure.message if record.failure else "no answer"
        # A text may be too long for a model that is otherwise fine.
        result: Result = "look" if case == LONG else "fail"
        return CaseResult(case, result, f"The request failed: {reason}", words)
    answer = record.answer
    score = record.scores.get("answered")
    if score is None:
        failure = record.score_failures["answered"]
        return CaseResult(
            case, "fail", f"The answer could not be judged: {failure.message}", words, answer.text
        )
    seconds = sum(response.latency for response in answer.responses)
    result, why = _by_label(case, score.label, score.explanation, len(answer.text.split()), words)
    return CaseResult(case, result, why, words, answer.text, round(seconds, 2))


def _by_label(case: str, label: str, evidence: str, written: int, words: int) -> tuple[Result, str]:
    if case == NOTHING:
        if label == "refused":
            return "pass", "It says that there is nothing to summarise."
        if label == "answered":
            return "look", "It summarised a text without content: read the answer."
        return "look", f"Its answer is {label} ({evidence}) where a refusal was expected."
    if label == "answered" and written > words:
        return "look", f"Its summary is longer ({written} words) than the text."
    if label == "answered":
        return "pass", f"It wrote a summary of {written} words."
    problem = f"It did not summarise: {label}" + (f" ({evidence})." if evidence else ".")
    return ("look" if case == LONG else "fail"), problem
