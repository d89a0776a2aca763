"""Rewrites questions with a model, and reorders options without one.

A model writes a paraphrase of any question, and the opposite of a yes-or-no question. Its
rewrites are checked, not trusted.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from evalwright.analysis.contamination.report import OF
from evalwright.core.ask import Ask
from evalwright.core.errors import AbilityError, ConfigurationError, RequestFailed
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Generate, Message, Prompt
from evalwright.core.samples import Sample
from evalwright.core.tasks import Task
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.evaluation.running import interruptible, run_blocking
from evalwright.models.model_interface import Model
from evalwright.scorers.outcome import refusal_in
from evalwright.tasks.orders import shuffled

Kind = Literal["paraphrase", "negate", "shuffle"]
ROLE = "rewriter"
MOST_TOKENS = 2048
"""Token limit of a rewrite, with room for a model that reasons first."""

_INSTRUCTIONS: dict[Kind, str] = {
    "paraphrase": (
        "Say the question between the marks in other words. Change its wording and the"
        " order of its parts as much as you can, and keep its meaning: the same answer"
        " must be right, in the same form, and no other. Keep every name, number, unit"
        " and date. Add nothing, leave nothing out, and do not answer it. Write the new"
        " question alone, on one line."
    ),
    "negate": (
        "Turn the yes or no question (or statement) between the marks into its"
        " opposite, so that whoever would say yes to it says no to yours, and the other"
        " way round. Keep every name, number, unit and date. Do not answer it. Write"
        " the new question alone, on one line."
    ),
}
_OPEN = "<<<"
_CLOSE = ">>>"
_QUOTES = (('"', '"'), ("“", "”"), ("'", "'"), (_OPEN, _CLOSE))
_OPPOSITE = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_SPEAKS_OF_OTHERS = re.compile(
    r"\b(?:all|none|both|neither|either|any) of"
    r" (?:the|these|those)\b|\b(?:both|neither|either)\b.*\b[A-H]\b|^[A-H] (?:and|or|&)"
    r" [A-H]\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_LONGER = 3
"""Most characters of a rewrite, as a multiple of the original's (plus 200)."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewritten sample with its original, the kind of rewrite, and what wrote it."""

    original: Sample
    sample: Sample
    kind: str
    by: str


@dataclass(slots=True)
class RewrittenTask:
    """The rewrites of a task.

    Args:
        rewrites: the accepted rewrites.
        refused: how many originals have no rewrite of a kind, by kind and reason.
        n_originals: number of samples that are not rewrites themselves.
    """

    rewrites: list[Rewrite] = field(default_factory=list)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_originals: int = 0

    def take(
        self, original: Sample, sample: Sample | None, kind: str, by: str, none: str
    ) -> None:
        """Keep a rewrite that passes the checks, or count why it was refused.

        `none` is the reason if there is no rewrite.
        """
        why = none if sample is None else find_fault(original, sample, kind)
        if why or sample is None:
            self.refused[kind, why] += 1
        else:
            self.rewrites.append(Rewrite(original, sample, kind, by))


def rewrite_task(
    task: Task, kinds: Sequence[Kind], model: Model | None, home: Path
) -> RewrittenTask:
    """Rewrite every sample of a task in every kind.

    A model's replies are kept in the store at `home`, so they are paid for only once.

    Raises:
        ConfigurationError: a kind needs a model and there is none.
        AbilityError: the model cannot write text.
    """
    written = [kind for kind in kinds if kind in _INSTRUCTIONS]
    rewritten = RewrittenTask(n_originals=sum(1 for _ in _originals(task)))
    if "shuffle" in kinds:
        for sample in _originals(task):
            rewritten.take(
                sample,
                shuffle_options(sample),
                "shuffle",
                "rule",
                "its options cannot be reordered",
            )
    if not written:
        return rewritten
    if model is None:
        raise ConfigurationError(f"The kind '{written[0]}': name one with --by.")
    if "generate" not in model.abilities:
        raise AbilityError(
            f"'{model.name}' cannot generate text, so it cannot rewrite questions."
        )
    rewritten_by_model: RewrittenTask = run_blocking(
        lambda: _rewrite_all(rewritten, task, written, model, home)
    )
    return rewritten_by_model


def shuffle_options(sample: Sample) -> Sample | None:
    """Reorder a sample's options so that a right one gets another position.

    None if its options refer to each other by position.
    """
    if len(sample.choices) < 2 or any(
        _SPEAKS_OF_OTHERS.search(choice) for choice in sample.choices
    ):
        return None
    for attempt in range(20):
        order = list(shuffled(len(sample.choices), f"rewrite {attempt} of {sample.id}"))
        gold = tuple(order.index(option) for option in sample.gold)
        if gold != sample.gold:
            return replace(
                sample,
                choices=tuple(sample.choices[option] for option in order),
                gold=gold,
            )
    return None


def with_opposite_answer(sample: Sample) -> Sample | None:
    """Give a yes-or-no question the opposite answer; None for any other question."""
    answers = [
        text.strip().casefold().rstrip(".") for text in sample.choices or sample.targets
    ]
    if sample.choices:
        if (
            len(answers) != 2
            or len(sample.gold) != 1
            or _OPPOSITE.get(answers[0]) != answers[1]
        ):
            return None
        return replace(sample, gold=(1 - sample.gold[0],))
    if not answers or any(word not in _OPPOSITE for word in answers):
        return None
    words = [_OPPOSITE[word] for word in answers]
    cased = zip(sample.targets, words, strict=True)
    return replace(
        sample,
        targets=tuple(
            word.capitalize() if old[:1].isupper() else word for old, word in cased
        ),
    )


def _originals(task: Task) -> Iterator[Sample]:
    """Iterate over the samples that are not rewrites themselves."""
    return (sample for sample in task.samples if OF not in sample.metadata)


async def _rewrite_all(
    outcome: RewrittenTask, task: Task, kinds: Sequence[Kind], model: Model, home: Path
) -> RewrittenTask:
    with open_store(home) as store:
        async with Engine(store) as engine:
            door = engine.door({ROLE: model})
            gate = asyncio.Semaphore(engine.concurrency(model))

            async def rewrite_one(
                sample: Sample, kind: Kind
            ) -> tuple[Sample | None, str]:
                async with gate:
                    return await _rewrite_sample(
                        sample, kind, door, "chat" in model.abilities
                    )

            pairs = [(sample, kind) for sample in _originals(task) for kind in kinds]

            async def all_of_them() -> list[tuple[Sample | None, str]]:
                return await asyncio.gather(
                    *(rewrite_one(sample, kind) for sample, kind in pairs)
                )

            outcomes = await interruptible(all_of_them(), engine)
    for (sample, kind), (rewritten, why) in zip(pairs, outcomes, strict=True):
        outcome.take(sample, rewritten, kind, model.name, why)
    return outcome


async def _rewrite_sample(
    sample: Sample, kind: Kind, ask: Ask, chat: bool
) -> tuple[Sample | None, str]:
    """Let the model rewrite a sample; returns None and the reason if that fails."""
    # The right answer of an opposite follows from the original; the model does not decide it.
    frame = with_opposite_answer(sample) if kind == "negate" else sample
    if frame is None:
        return None, "it is not a yes-or-no question"
    text = f"{_INSTRUCTIONS[kind]}\n\n{_OPEN}\n{sample.input}\n{_CLOSE}"
    prompt: Prompt = (Message("user", text),) if chat else f"{text}\n\nNew question:"
    try:
        response = await ask(ROLE, Generate(prompt, max_tokens=MOST_TOKENS))
    except RequestFailed as failed:
        return None, f"the request failed: {failed.failure.kind}"
    separated = separate_reasoning(response)
    if separated.unclosed or response.finish_reason == "length":
        return None, "the reply was cut off"
    reply = separated.answer.strip()
    for opening, closing in _QUOTES:
        inner = reply[len(opening) : -len(closing)]
        if (
            inner
            and reply.startswith(opening)
            and reply.endswith(closing)
            and opening not in inner
        ):
            reply = inner.strip()
    if refusal_in(reply):
        return None, "the model refused"
    if "\n" in reply:
        return None, "the reply is more than one line"
    return replace(frame, input=reply), ""


def find_fault(original: Sample, rewritten: Sample, kind: str) -> str:
    """Say why a rewrite is refused, as far as a program can tell; "" if it is accepted.

    The rest is for a person to review.
    """
    before = _fold_text(original.input)
    after = _fold_text(rewritten.input)
    if not after:
        return "it is empty"
    if kind == "shuffle":
        same = sorted(original.choices) == sorted(rewritten.choices)
        same_gold = {original.choices[i] for i in original.gold} == {
            rewritten.choices[i] for i in rewritten.gold
        }
        return "" if same and same_gold else "the options are not the same"
    if before == after and original.passages == rewritten.passages:
        return "it is the original wording"
    if len(after) > _LONGER * len(before) + 200:
        return "it is much longer than the original"
    targets = zip(original.targets, rewritten.targets, strict=False)
    if not rewritten.choices and any(
        _contains_phrase(after, new) and not _contains_phrase(before, old)
        for old, new in targets
    ):
        return "it gives the answer away" if kind != "negate" else ""
    if Counter(_NUMBER.findall(before)) != Counter(_NUMBER.findall(after)):
        return "its numbers are not the original's"
    return ""


def _fold_text(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _contains_phrase(text: str, target: str) -> bool:
    folded_target = _fold_text(target).strip(" .,;:!?\"'")
    return (
        bool(folded_target)
        and re.search(rf"(?<!\w){re.escape(folded_target)}(?!\w)", text) is not None
    )
