"""Base of strategies with several draws: the draws are sent concurrently, each its own request.

Draw i of n in repeat r of a task is draw r * n + i of the inner strategy, so that no two draws
are the same request. A vote or a choice weighs each draw by its worth.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, Failure, RequestFailed
from evalwright.core.outcomes import ANSWERED
from evalwright.core.requests import Ability, Reward
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.faults import StrategyAsk
from evalwright.strategies.registry import inner_strategy
from evalwright.strategies.sampling import Sampling
from evalwright.strategies.task_setup import Setup

MAX_DRAWS = 10_000
"""Most draws of a sample by one strategy; all of them are in memory at once."""
SUMMARY_CHARS = 160
"""Characters of a draw's text in its summary; the whole text is in the response."""

T = TypeVar("T")
Drawn = Answer | Failure
Worth = Callable[[Sample, Answer, Ask], Awaitable[float]]
"""Computes how much a draw counts in a vote or a choice."""


class MultiDrawStrategy:
    """Base of strategies that draw n answers.

    Args:
        setup: what the task provides.
        n: number of draws.
        of: the strategy of each draw.
        roles: the other models used, by role, each with abilities of which it needs at least one.
        tokens: whether to request the tokens' log-probabilities too.

    Raises:
        ConfigurationError: there are fewer than 2 draws, or all of them would be the same.
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
        if not isinstance(n, int) or isinstance(n, bool) or not 2 <= n <= MAX_DRAWS:
            raise ConfigurationError(
                f"The option 'n' of '{self.name}' is a whole number from 2 to"
                f" {MAX_DRAWS:,}, not {n!r}."
            )
        if tokens:
            top_logprobs = setup.sampling.top_logprobs
            sampling = replace(
                setup.sampling, top_logprobs=0 if top_logprobs is None else top_logprobs
            )
            setup = replace(setup, sampling=sampling)
        self.n = n
        self.inner = inner_strategy(of, setup)
        self.needs = self.inner.needs
        self.offers_tools = getattr(self.inner, "offers_tools", False)
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
        """Return why a sample cannot be answered, "" if it can."""
        check = getattr(self.inner, "lacks", None)
        return "" if check is None else str(check(sample))

    async def drawn(
        self, sample: Sample, ask: Ask, repeat: int, indices: Iterable[int]
    ) -> list[Drawn]:
        """Send some of the draws concurrently.

        A draw that failed is its Failure; the others still finish, so that they are stored. A draw
        without an answer through the model's own fault is an Answer without text, with that
        outcome.
        """
        doors = {repeat * self.n + index: StrategyAsk(ask) for index in indices}
        outcomes = await asyncio.gather(
            *(self.inner(sample, door, number) for number, door in doors.items()),
            return_exceptions=True,
        )
        return [
            _outcome_or_failure(outcome, door)
            for outcome, door in zip(outcomes, doors.values(), strict=True)
        ]


def _outcome_or_failure(outcome: Answer | BaseException, door: StrategyAsk) -> Drawn:
    if isinstance(outcome, RequestFailed):
        return door.answer_of(outcome.failure) or outcome.failure
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def answered(drawn: Drawn) -> bool:
    """Return whether a draw has an answer: it did not fail, was not cut, filtered or refused."""
    return isinstance(drawn, Answer) and drawn.outcome == ANSWERED


def has_content(drawn: Drawn) -> bool:
    """Return whether a draw has an answer that is not empty."""
    return (
        isinstance(drawn, Answer)
        and answered(drawn)
        and (bool(drawn.text.strip()) or drawn.choice is not None)
    )


def select_draw(draws: Sequence[Drawn], best: int, record: Mapping[str, Any]) -> Answer:
    """Return the Answer of the draw `best`, with the responses of all draws, its own last.

    Its own is last because an answer's outcome is that of its last response.
    """
    answer = draws[best]
    assert isinstance(answer, Answer)
    others = [
        response
        for index, drawn in enumerate(draws)
        if index != best and isinstance(drawn, Answer)
        for response in drawn.responses
    ]
    return replace(
        answer,
        responses=(*others, *answer.responses),
        strategy={**record, "chosen": best},
    )


def summary(drawn: Drawn, **details: Any) -> dict[str, Any]:
    """Return a draw as the record shows it: the beginning of its text, and some details."""
    if isinstance(drawn, Failure):
        return {"failure": drawn.label}
    text = " ".join(drawn.text.split())
    short = text if len(text) <= SUMMARY_CHARS else f"{text[: SUMMARY_CHARS - 3]}..."
    outcome = {} if drawn.outcome == ANSWERED else {"outcome": drawn.outcome}
    return {
        "text": short,
        **outcome,
        **{name: value for name, value in details.items() if value is not None},
    }


def mean_log_prob(response: Response) -> float:
    """Return the mean natural log-probability of an answer's tokens.

    A reply without log-probabilities is a failure, never a zero.
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


def worth_by_reward(setup: Setup, role: str) -> Worth:
    """Weigh an answer by the reward that the model in `role` gives it for the task's prompt."""

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


def worth_by_scorer(
    setup: Setup, use: Any
) -> tuple[Worth, Mapping[str, frozenset[Ability]]]:
    """Weigh an answer by a scorer's score; also return the roles that the scorer uses.

    The scorer sees neither the targets nor which choice is right.
    """
    scorer = setup.scorer(use)

    async def score(sample: Sample, answer: Answer, ask: Ask) -> float:
        blind = replace(sample, targets=(), gold=())
        outcome = (
            scorer.function(blind, answer, StrategyAsk(ask))
            if scorer.asks
            else scorer.function(blind, answer)
        )
        worth = await outcome if isinstance(outcome, Awaitable) else outcome
        return getattr(worth, "value", math.nan)

    return score, dict.fromkeys(scorer.roles, scorer.able)


async def gather_all(work: Iterable[Awaitable[T]]) -> list[T]:
    """Await several requests at once.

    If one fails, the others are awaited before its exception is raised, so that no request is left
    behind.

    Args:
        work: what to await, such as calls of `ask`.

    Returns:
        What each gave, in the order of `work`.

    Raises:
        BaseException: the first failure in the order of `work`, after all have ended.
    """
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
