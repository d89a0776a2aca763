"""Rewrites by a model: a paraphrase of any question, the opposite of a yes or no question. What it writes is checked, not trusted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evalwright.analysis.contamination.rewriting import Rewritten, originals
from evalwright.analysis.contamination.rules import Kind, negate
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


def rewrite_by_model(task: Task, kinds: Sequence[Kind], model: Model, home: Path) -> Rewritten:
    """Every sample in every kind, written by a model; replies are kept in the store at `home` and never paid for twice.

    Raises ConfigurationError for a kind that only rules can do, AbilityError for a model that writes no text.
    """
    for kind in kinds:
        if kind not in _INSTRUCTIONS:
            raise ConfigurationError(
                f"'{kind}' is done by rule alone, because the right answer changes with it. Leave --by away for it."
            )
    if "generate" not in model.abilities:
        raise AbilityError(f"'{model.name}' cannot write text, so it cannot rewrite questions.")
    return asyncio.run(_rewrite_all(task, kinds, model, home))


async def _rewrite_all(task: Task, kinds: Sequence[Kind], model: Model, home: Path) -> Rewritten:
    out = Rewritten()
    with Store.open(home) as store:
        async with Engine(store) as engine:
            door = engine.door({ROLE: model})
            gate = asyncio.Semaphore(engine.concurrency(model))

            async def one(sample: Sample, kind: Kind) -> tuple[Sample | None, str]:
                async with gate:
                    return await _rewrite(sample, kind, door, "chat" in model.abilities)

            samples = list(originals(task))
            out.n_originals = len(samples)
            asked = [(sample, kind) for sample in samples for kind in kinds]
            found = await asyncio.gather(*(one(sample, kind) for sample, kind in asked))
    for (sample, kind), (rewritten, why) in zip(asked, found, strict=True):
        out.take(sample, rewritten, kind, model.name, why)
    return out


async def _rewrite(sample: Sample, kind: Kind, ask: Ask, chat: bool) -> tuple[Sample | None, str]:
    """The rewritten sample, or None and why there is none."""
    frame: Sample | None = sample
    if kind == "negate":
        # Which answer is right afterwards is decided by rule, never by the model.
        frame = negate(sample)
        if frame is None:
            return None, "it is no yes or no question"
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
