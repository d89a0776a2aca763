"""Several draws of one answer: asked side by side, each a request of its own, with what each is
worth.

Draw i of n in repeat r of a task is draw r * n + i of the strategy that forms it, so that no two
draws are the same request.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError, Failure, RequestFailed
from evalwright.core.outcomes import ANSWERED
from evalwright.core.requests import Ability, Reward
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.faults import StrategyAsk
from evalwright.strategies.generate import Sampling
from evalwright.strategies.registry import Setup, inner

MOST_DRAWS = 10_000
"""Of a sample, by one strategy: all of them are held at once."""
SHOWN = 160
"""Characters of a draw that its summary shows; the whole text is in the response."""

Made = TypeVar("Made")
Drawn = Answer | Failure
Worth = Callable[[Sample, Answer, Ask], Awaitable[float]]
"""What a draw is worth to a vote or a choice."""


class OfDraws:
    """What strategies of n draws have in common. of: the strategy of each draw. tokens: ask for the
    tokens' log-probabilities too.

    Raises ConfigurationError for fewer than 2 draws, or where all of them would be the same.
    """

    name: str

    def __init__(
        self,
        setup: Setup,
        n: int,
        of: Any,
        roles: Mapping[str, frozenset[Ability]],
        *,
        tokens: bool,
    ) -> None:
        if not isinstance(n, int) or isinstance(n, bool) or not 2 <= n <= MOST_DRAWS:
            raise ConfigurationError(
                f"The option 'n' of '{self.name}' is a whole number from 2 to"
                f" {MOST_DRAWS:,}, not {n!r}."
            )
        if tokens:
            wanted = setup.sampling.top_logprobs
            sampling = replace(
                setup.sampling, top_logprobs=0 if wanted is None else wanted
            )
            setup = replace(setup, sampling=sampling)
        self.n = n
        self.inner = inner(of, setup)
        self.needs = self.inner.needs
        self.roles = {**getattr(self.inner, "roles", {}), **roles}
        self.render = setup.render
        self.sampling: Sampling = getattr(self.inner, "sampling", setup.sampling)
        if self.sampling.temperature == 0:
            raise ConfigurationError(
                f"'{self.name}' draws {n} answers to each sample, and at temperature 0"
                " they would all be the same: set `answer.temperature` above 0, such"
                " as 0.7."
            )
        if tokens and "log-likelihood" in self.needs:
            raise ConfigurationError(
                f"'{self.name}' cannot go by log-probabilities of answers that are"
                " chosen by likelihood, which have no tokens."
            )

    def lacks(self, sample: Sample) -> str:
        """Why a sample cannot be answered, "" where it can."""
        check = getattr(self.inner, "lacks", None)
        return "" if check is None else str(check(sample))

    async def drawn(
        self, sample: Sample, ask: Ask, repeat: int, places: Iterable[int]
    ) -> list[Drawn]:
        """Some of the draws, at once.

        One that failed is its Failure; the others are finished, so that they are stored.

        One in which the model did what is no answer is an Answer without text, with that outcome.
        """
        doors = {repeat * self.n + place: StrategyAsk(ask) for place in places}
        outcomes = await asyncio.gather(
            *(self.inner(sample, door, number) for number, door in doors.items()),
            return_exceptions=True,
        )
        return [
            _drawn(outcome, door)
            for outcome, door in zip(outcomes, doors.values(), strict=True)
        ]


def _drawn(outcome: Answer | BaseException, door: StrategyAsk) -> Drawn:
    if isinstance(outcome, RequestFailed):
        return door.answer_of(outcome.failure) or outcome.failure
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def answered(drawn: Drawn) -> bool:
    """Whether a draw has an answer: it did not fail, and was not cut, filtered or refused."""
    return isinstance(drawn, Answer) and drawn.outcome == ANSWERED


def says_something(drawn: Drawn) -> bool:
    """Whether a draw has an answer that is not empty."""
    return (
        isinstance(drawn, Answer)
        and answered(drawn)
        and (bool(drawn.text.strip()) or drawn.choice is not None)
    )


def chosen_of(made: Sequence[Drawn], best: int, record: Mapping[str, Any]) -> Answer:
    """The Answer of the draw `best`, with the responses of all, its own last: an answer's outcome
    is that of its last response.
    """
    answer = made[best]
    assert isinstance(answer, Answer)
    others = [
        response
        for place, one in enumerate(made)
        if place != best and isinstance(one, Answer)
        for response in one.responses
    ]
    return replace(
        answer,
        responses=(*others, *answer.responses),
        strategy={**record, "chosen": best},
    )


def summary(drawn: Drawn, **more: Any) -> dict[str, Any]:
    """A draw as the record shows it: the beginning of its text, and what was made of it."""
    if isinstance(drawn, Failure):
        return {"failure": drawn.label}
    text = " ".join(drawn.text.split())
    short = text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
    outcome = {} if drawn.outcome == ANSWERED else {"outcome": drawn.outcome}
    return {
        "text": short,
        **outcome,
        **{name: value for name, value in more.items() if value is not None},
    }


def mean_log_prob(response: Response) -> float:
    """The mean natural log-probability of an answer's tokens; a reply without them is a failure,
    never a zero.
    """
    if not response.tokens:
        raise RequestFailed(
            Failure(
                "bad reply",
                "model",
                "The model's reply has no log-probabilities of its tokens.",
            )
        )
    return math.fsum(token.log_prob for token in response.tokens) / len(response.tokens)


def rewarded(setup: Setup, role: str) -> Worth:
    """The reward that the model in a role gives to an answer to the task's prompt."""

    async def reward(sample: Sample, answer: Answer, ask: Ask) -> float:
        response = await StrategyAsk(ask)(
            role, Reward(setup.render(sample), answer.text)
        )
        if len(response.values) != 1:
            message = (
                f"The reply of '{role}' has {len(response.values)} rewards, not one."
            )
            raise RequestFailed(Failure("bad reply", "judge", message))
        return response.values[0]

    return reward


def scored(setup: Setup, use: Any) -> tuple[Worth, Mapping[str, frozenset[Ability]]]:
    """The score that a scorer gives to an answer, and the roles that it asks.

    It sees neither the targets nor which choice is right.
    """
    scorer = setup.scorer(use)

    async def score(sample: Sample, answer: Answer, ask: Ask) -> float:
        blind = replace(sample, targets=(), gold=())
        made = (
            scorer.function(blind, answer, StrategyAsk(ask))
            if scorer.asks
            else scorer.function(blind, answer)
        )
        found = await made if isinstance(made, Awaitable) else made
        return getattr(found, "value", math.nan)

    return score, dict.fromkeys(scorer.roles, scorer.able)


async def together(work: Iterable[Awaitable[Made]]) -> list[Made]:
    """All of them side by side. All end, also where one failed; then the first failure is raised."""
    found = await asyncio.gather(*work, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if not isinstance(one, BaseException)]
