"""Three test cases for a model before it is evaluated: an ordinary, an empty, and a very long text.

Each is sent in the same form as by the task `summary-faithfulness`, so what goes wrong there shows
here first, for three requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evalwright.core.errors import AbilityError, ConfigurationError, DatasetError
from evalwright.core.plain import Plain
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import Task
from evalwright.engine.outside_runs import ask_outside_run
from evalwright.evaluation.configuration import Configuration, PromptFormat
from evalwright.evaluation.running import run_blocking
from evalwright.evaluation.scoring import evaluate_sample
from evalwright.models.model_interface import Model
from evalwright.tasks.loading import load_task, load_tasks
from evalwright.tasks.overrides import nested

Result = Literal["pass", "look", "fail"]

TASK = "summary-faithfulness"
OUTCOME = "outcome"
"""The scorer that tells answers from refusals; a task that has it can send the cases."""
LONGEST = 15_000
"""Words of the longest text: as many as in the hallucination leaderboard's longest article."""

ORDINARY = "ordinary"
NOTHING = "nothing to summarise"
LONG = "longest"


@dataclass(frozen=True, slots=True)
class CaseResult(Plain):
    """The outcome of one case.

    Attributes:
        result: "fail" if the model cannot be evaluated like this, "look" if the user should know
            something first.
        why: the reason, in a sentence.
        words: words of the text in the prompt.
        answer: the answer, "" if there is none.
        seconds: time until it arrived.
    """

    case: str
    result: Result
    why: str
    words: int
    answer: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SmokeTask:
    """The task whose form the cases are sent in: prompt, settings, what counts as a refusal.

    Attributes:
        name: name of a task, a file, or `file:member`.
        overrides: overrides of the task's settings, without data.
        outcome: options of its scorer of outcomes.
        prompt_format: as for `load_task`.
    """

    name: str = TASK
    overrides: Mapping[str, Any] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=dict)
    prompt_format: PromptFormat = "auto"

    @classmethod
    def of(cls, configuration: Configuration) -> SmokeTask:
        """Return an evaluation's first task that tells answers from refusals, else the bundled one.

        Raises:
            UsageError: a task of the evaluation cannot be loaded.
        """
        overrides = nested(configuration.overrides)
        unreplaced = {
            key: setting for key, setting in overrides.items() if key not in _REPLACED
        }
        for name in configuration.tasks or (TASK,):
            members = load_tasks(
                name,
                prompt_format=configuration.format,
                chat=True,
                overrides=overrides or None,
            )
            for member in members:
                scorer = next(
                    (scorer for scorer in member.scorers if scorer.kind == OUTCOME),
                    None,
                )
                if scorer is not None:
                    member_name = (
                        _member_name(name, member.name) if len(members) > 1 else name
                    )
                    return cls(
                        member_name, unreplaced, scorer.options, configuration.format
                    )
        return cls(prompt_format=configuration.format)

    def cases(self, *, chat: bool, words: int) -> Task:
        """Return the task with the three cases as its data, scored by the outcome of each answer.

        Raises:
            UsageError: the task cannot be used.
        """
        rows = [
            {"article_id": case, "text": text} for case, text in _texts(words).items()
        ]
        replaced = {
            "dataset": {"rows": rows},
            "scorers": [{"name": "answered", "use": OUTCOME, **self.outcome}, "words"],
            "metrics": ["mean"],
        }
        try:
            return load_task(
                self.name,
                prompt_format=self.prompt_format,
                chat=chat,
                overrides={**self.overrides, **replaced},
            )
        except DatasetError as error:
            raise ConfigurationError(
                f"The three texts cannot be asked about as '{self.name}' asks, because"
                f" they have the columns article_id and text alone: {error}"
            ) from error


_REPLACED = ("dataset", "scorers", "metrics")
"""Settings of a suite that the cases replace."""


def _member_name(name: str, member: str) -> str:
    """Return the name of one task of several in a file."""
    return f"{name}:{member}" if name.endswith((".yaml", ".yml")) else member


def smoke_test(
    model: Model,
    *,
    words: int = LONGEST,
    home: str | None = None,
    task: SmokeTask | None = None,
) -> list[CaseResult]:
    """Send the three cases and judge them by rules. Answers are stored like any other.

    Args:
        model: the model under test.
        words: length of the longest text, in words.
        home: folder of the store.
        task: the task in whose form the cases are sent; None for the bundled task
            `summary-faithfulness`.

    Raises:
        UsageError: the model cannot be used at all, or the task cannot ask about a text.
    """
    if words < 1:
        raise ConfigurationError(
            f"The longest text must have at least one word, not {words}."
        )
    model.check()
    if "generate" not in model.abilities:
        raise AbilityError(
            f"'{model.name}' cannot generate text, so it cannot summarise."
        )
    cases = (task or SmokeTask()).cases(chat="chat" in model.abilities, words=words)
    records: list[SampleRecord] = run_blocking(lambda: _ask(cases, model, home))
    return [judge_case(record) for record in records]


def _texts(words: int) -> Mapping[str, str]:
    """Return the text of each case, made of the articles that come with the task."""
    samples = list(load_task(TASK).samples)
    full = [
        sample.passages[0].text
        for sample in samples
        if not sample.metadata.get("expects")
    ]
    empty = [
        sample.passages[0].text
        for sample in samples
        if sample.metadata.get("expects") == "refusal"
    ]
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

    async with ask_outside_run({"target": model}, home) as ask:
        work = [
            evaluate_sample(task, index, sample, 0, ask)
            for index, sample in enumerate(task.samples)
        ]
        return await asyncio.gather(*work)


def judge_case(record: SampleRecord) -> CaseResult:
    """Judge the answer to a case by rules.

    Args:
        record: the sample of `SmokeTask.cases` with its answer and scores.
    """
    sample = record.sample
    case = sample.id
    words = len((sample.passages[0].text if sample.passages else sample.input).split())
    if record.failure is not None or record.answer is None:
        reason = record.failure.message if record.failure else "no answer"
        # A text may be too long for a model that is otherwise fine.
        verdict: Result = "look" if case == LONG else "fail"
        return CaseResult(case, verdict, f"The request failed: {reason}", words)
    answer = record.answer
    score = record.scores.get("answered")
    if score is None:
        failure = record.score_failures["answered"]
        return CaseResult(
            case,
            "fail",
            f"The answer could not be judged: {failure.message}",
            words,
            answer.text,
        )
    seconds = sum(response.latency for response in answer.responses)
    verdict, why = _by_label(
        case, score.label, score.explanation, len(answer.text.split()), words
    )
    return CaseResult(case, verdict, why, words, answer.text, round(seconds, 2))


def _by_label(
    case: str, label: str, evidence: str, written: int, words: int
) -> tuple[Result, str]:
    if case == NOTHING:
        if label == "refused":
            return "pass", "It says that there is nothing to summarise."
        if label == "answered":
            return "look", "It summarised a text without content: read the answer."
        return (
            "look",
            f"Its answer is {label} ({evidence}) where a refusal was expected.",
        )
    if label == "answered" and written > words:
        return "look", f"Its summary is longer ({written} words) than the text."
    if label == "answered":
        return "pass", f"It wrote a summary of {written} words."
    problem = f"It did not summarise: {label}" + (
        f" ({evidence})." if evidence else "."
    )
    return ("look" if case == LONG else "fail"), problem
