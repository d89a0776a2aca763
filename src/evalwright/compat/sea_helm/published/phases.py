"""The two requests of base models and of log-probability tasks, as SEA-HELM sends them.

The first writes up to the answer tag, which stays in its text. Where the model ended it, at the tag
or by itself, the second goes on from exactly that text: a base model writes on, and of a
log-probability task the separator and the label are scored. A reply that was cut is kept as it is.
A reply that the model ended without the tag is gone on from without one, as there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from evalwright import Answer, Ask, LogLikelihood, Message, Response, Sample
from evalwright.compat.sea_helm.sea_task import SeaTask
from evalwright.extend import (
    TARGET,
    Ability,
    Prompt,
    Sampling,
    Setup,
    answer_from,
    log_likelihood_of,
)


class PublishedPhases:
    """The two requests of a turn, as a strategy."""

    def __init__(self, task: SeaTask, setup: Setup) -> None:
        self._task = task
        self._setup = setup
        self.needs: frozenset[Ability] = frozenset({"generate"})

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The answer of both."""
        task = self._task
        prompt = self._setup.render(sample)
        sampling = self._setup.sampling
        if task.is_twin:
            return await score_in_two(
                prompt, task.answer_tag, task.separator, sampling, sample, ask, draw
            )
        return await generate_in_two(prompt, task.answer_tag, sampling, ask, draw)


def text_with_tag(first: Response, tag: str) -> str:
    """The text of a first reply with the tag where it ended there.

    Where nothing says at what it ended, that was the tag.
    """
    return (
        first.text if first.stopped_at == "" else f"{first.text.removesuffix(tag)}{tag}"
    )


def written_in_two(responses: Sequence[Response], tag: str) -> str:
    """What a base model wrote in both requests, or in the first alone where there was no second."""
    first, *more = responses
    return (
        "".join([text_with_tag(first, tag), *(response.text for response in more)])
        if more
        else first.text
    )


async def generate_in_two(
    prompt: Prompt, tag: str, sampling: Sampling, ask: Ask, draw: int
) -> Answer:
    """A base model's answer.

    What the first request used of the tokens is not there for the second.
    """
    first, context = await _first(prompt, tag, sampling, ask, draw)
    left = (
        None
        if sampling.max_tokens is None
        else sampling.max_tokens - first.usage.output_tokens
    )
    if context is None or (left is not None and left <= 0):
        return answer_from(prompt, (first,))
    second = await ask(
        TARGET, replace(sampling, max_tokens=left).request(context, draw)
    )
    return replace(answer_from(context, (second,)), responses=(first, second))


async def score_in_two(
    prompt: Prompt,
    tag: str,
    separator: str,
    sampling: Sampling,
    sample: Sample,
    ask: Ask,
    draw: int,
) -> Answer:
    """The log-likelihoods of a sample's choices behind the first reply; none where that was cut."""
    first, context = await _first(prompt, tag, sampling, ask, draw)
    if context is None:
        return answer_from(prompt, (first,))
    requests = [
        LogLikelihood(context, f"{separator}{choice}") for choice in sample.choices
    ]
    responses = await asyncio.gather(*(ask(TARGET, request) for request in requests))
    values = tuple(log_likelihood_of(response) for response in responses)
    best = max(range(len(values)), key=values.__getitem__)
    return Answer(
        sample.choices[best],
        choice=best,
        log_likelihoods=values,
        prompt=context,
        responses=(first, *responses),
    )


async def _first(
    prompt: Prompt, tag: str, sampling: Sampling, ask: Ask, draw: int
) -> tuple[Response, Prompt | None]:
    """The first reply, and the prompt that goes on from it; None where it was cut or broken off."""
    first = await ask(TARGET, replace(sampling, stop=(tag,)).request(prompt, draw))
    if first.finish_reason not in ("stop", ""):
        return first, None
    written = text_with_tag(first, tag)
    if isinstance(prompt, str):
        return first, prompt + written
    return first, (*prompt, Message("assistant", written)) if written else prompt
