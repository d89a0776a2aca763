"""Every question in other words, written by a model, and options in another order, which takes none.

A model writes a paraphrase of any question and the opposite of a yes or no question. What it writes is checked, not trusted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from evalwright.analysis.contamination.rewriting import Rewritten, originals
from evalwright.core.asking import Ask
from evalwright.core.errors import AbilityError, ConfigurationError, RequestFailed
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Generate, Message, Prompt
from evalwright.core.samples import Sample
from evalwright.core.tasks import Task
from evalwright.engine.engine import Engine
from evalwright.engine.store import Store
from evalwright.models.base import Model
from evalwright.scorers.outcome import refusal_in
from evalwright.tasks.orders import shuffled

Kind = Literal["paraphrase", "negate", "shuffle"]
ROLE = "rewriter"
MOST_TOKENS = 2048
"""Room for a model that reasons first."""

_INSTRUCTIONS: dict[Kind, str] = {
    "paraphrase": (
        "Say the question between the marks in other words. Change its wording and the order of its parts as much as you can, and "
        "keep its meaning: the same answer must be right, in the same form, and no other. Keep every name, number, unit and date. "
        "Add nothing, leave nothing out, and do not answer it. Write the new question alone, on one line."
    ),
    "negate": (
        "Turn the yes or no question (or statement) between the marks into its opposite, so that whoever would say yes to it says "
        "no to yours, and the other way round. Keep every name, number, unit and date. Do not answer it. Write the new question "
        "alone, on one line."
    ),
}
_OPEN, _CLOSE = "<<<", ">>>"
_QUOTES = (('"', '"'), ("“", "”"), ("'", "'"), (_OPEN, _CLOSE))


_OPPOSITE = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_SPEAKS_OF_OTHERS = re.compile(
    r"\b(?:all|none|both|neither|either|any) of (?:the|these|those)\b|\b(?:both|neither|either)\b.*\b[A-H]\b|^[A-H] (?:and|or|&) [A-H]\b",
    re.IGNORECASE,
)


def rewrite(task: Task, kinds: Sequence[Kind], model: Model | None, home: Path) -> Rewritten:
    """Every sample in every kind. A model's replies are kept in the store at `home` and never paid for twice.

    Raises ConfigurationError where a kind needs a model and there is none, AbilityError for one that writes no text.
    """
    written = [kind for kind in kinds if kind in _INSTRUCTIONS]
    out = Rewritten(n_originals=sum(1 for _ in originals(task)))
    if "shuffle" in kinds:
        for sample in originals(task):
            out.take(sample, shuffle(sample), "shuffle", "rule", "its options cannot be reordered")
    if not written:
        return out
    if model is None:
        raise ConfigurationError(f"The kind '{written[0]}': name one with --by.")
    if "generate" not in model.abilities:
        raise AbilityError(f"'{model.name}' cannot generate text, so it cannot rewrite questions.")
    return asyncio.run(_rewrite_all(out, task, written, model, home))


def shuffle(sample: Sample) -> Sample | None:
    """The options in another order, with a right one in another place; None where options speak of each other's places."""
    if len(sample.choices) < 2 or any(_SPEAKS_OF_OTHERS.search(choice) for choice in sample.choices):
        return None
    for attempt in range(20):
        order = list(shuffled(len(sample.choices), f"rewrite {attempt} of {sample.id}"))
        gold = tuple(order.index(place) for place in sample.gold)
        if gold != sample.gold:
            return replace(sample, choices=tuple(sample.choices[place] for place in order), gold=gold)
    return None


def with_opposite_answer(sample: Sample) -> Sample | None:
    """A yes or no question with the other answer; None for any other question."""
    said = [text.strip().casefold().rstrip(".") for text in sample.choices or sample.targets]
    if sample.choices:
        if len(said) != 2 or len(sample.gold) != 1 or _OPPOSITE.get(said[0]) != said[1]:
            return None
        return replace(sample, gold=(1 - sample.gold[0],))
    if not said or any(word not in _OPPOSITE for word in said):
        return None
    words = [_OPPOSITE[word] for word in said]
    cased = zip(sample.targets, words, strict=True)
    return replace(
        sample, targets=tuple(word.capitalize() if old[:1].isupper() else word for old, word in cased)
    )


async def _rewrite_all(
    out: Rewritten, task: Task, kinds: Sequence[Kind], model: Model, home: Path
) -> Rewritten:
    with Store.open(home) as store:
        async with Engine(store) as engine:
            door = engine.door({ROLE: model})
            gate = asyncio.Semaphore(engine.concurrency(model))

            async def one(sample: Sample, kind: Kind) -> tuple[Sample | None, str]:
                async with gate:
                    return await _rewrite(sample, kind, door, "chat" in model.abilities)

            samples = list(originals(task))
            asked = [(sample, kind) for sample in samples for kind in kinds]
            found = await asyncio.gather(*(one(sample, kind) for sample, kind in asked))
    for (sample, kind), (rewritten, why) in zip(asked, found, strict=True):
        out.take(sample, rewritten, kind, model.name, why)
    return out


async def _rewrite(sample: Sample, kind: Kind, ask: Ask, chat: bool) -> tuple[Sample | None, str]:
    """The rewritten sample, or None and why there is none."""
    frame: Sample | None = sample
    if kind == "negate":
        # Which answer is right afterwards is not for the model to say.
        frame = with_opposite_answer(sample)
        if frame is None:
            return None, "it is not a yes-or-no question"
    assert frame is not None
    text = f"{_INSTRUCTIONS[kind]}\n\n{_OPEN}\n{sample.input}\n{_CLOSE}"
    prompt: Prompt = (Message("user", text),) if chat else f"{text}\n\nNew question:"
    try:
        response = await ask(ROLE, Generate(prompt, max_tokens=MOST_TOKENS))
    except RequestFailed as failed:
        return None, f"the request failed: {failed.failure.kind}"
    separated = separate_reasoning(response)
    if separated.unclosed or response.finish_reason == "length":
        return None, "the reply was cut off"
    said = _bare(separated.answer)
    if refusal_in(said):
        return None, "the model refused"
    if "\n" in said:
        return None, "the reply is more than one line"
    return replace(frame, input=said), ""


def _bare(text: str) -> str:
    """The reply without marks around the whole of it."""
    text = text.strip()
    for opening, closing in _QUOTES:
        if len(text) > len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing):
            inner = text[len(opening) : -len(closing)]
            if opening not in inner:
                text = inner.strip()
    return text
