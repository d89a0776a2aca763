"""One draw: ask once and take what comes; or a conversation of several user turns, of which the last reply counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from evalwright.core.asking import Ask
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.outcomes import ANSWERED, outcome_of
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Ability, Generate, Message, Prompt
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample

TARGET = "target"
"""The role of the model under test."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an answer is drawn: the fields of `Generate` beside prompt and draw.

    temperature 0 is greedy: every draw is then the same request. None leaves the sampling to the model.
    """

    max_tokens: int | None = None
    temperature: float | None = 0.0
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    top_k: int | None = None
    min_p: float | None = None
    num_beams: int = 1
    top_logprobs: int | None = None
    reasoning_effort: str | None = None
    reasoning_budget: int | None = None
    json_schema: str | None = None

    def request(self, prompt: Prompt, draw: int) -> Generate:
        """The request for one draw."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}
        return Generate(prompt, draw=0 if self.temperature == 0 else draw, **told)


class SingleDraw:
    """Ask for one answer to the rendered prompt."""

    needs: frozenset[Ability] = frozenset({"generate"})

    def __init__(self, render: Callable[[Sample], Prompt], sampling: Sampling) -> None:
        self.render = render
        self.sampling = sampling

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The reply, its reasoning set apart."""
        prompt = self.render(sample)
        response = await ask(TARGET, self.sampling.request(prompt, draw))
        return answer_from(prompt, (response,))


class Conversation:
    """Ask several user turns one after another, each with all earlier turns and replies; the last reply is the answer."""

    needs: frozenset[Ability] = frozenset({"generate", "chat"})

    def __init__(
        self,
        render: Callable[[Sample], Prompt],
        turns: Callable[[Sample], tuple[str, ...]],
        sampling: Sampling,
    ) -> None:
        self.render = render
        self.turns = turns
        self.sampling = sampling

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """`render` gives the conversation up to the first question, `turns` the questions that follow it."""
        opening = self.render(sample)
        if isinstance(opening, str):
            opening = (Message("user", opening),)
        messages: tuple[Message, ...] = opening
        responses = [await ask(TARGET, self.sampling.request(messages, draw))]
        for question in self.turns(sample):
            if outcome_of(responses[-1]) != ANSWERED:
                break  # there is nothing to go on from
            reply = separate_reasoning(responses[-1]).answer
            messages = (*messages, Message("assistant", reply), Message("user", question))
            responses.append(await ask(TARGET, self.sampling.request(messages, draw)))
        return answer_from(messages, tuple(responses))


def answer_from(prompt: Prompt, responses: tuple[Response, ...]) -> Answer:
    """An Answer whose text is the last response without its reasoning."""
    separated = separate_reasoning(responses[-1])
    return Answer(text=separated.answer, reasoning=separated.reasoning, prompt=prompt, responses=responses)


def log_likelihood_of(response: Response) -> float:
    """The response's log-likelihood; a reply without one is a failure, never a zero."""
    if response.log_likelihood is None:
        raise RequestFailed(Failure("bad reply", "model", "The model's reply has no log-likelihood."))
    return response.log_likelihood
