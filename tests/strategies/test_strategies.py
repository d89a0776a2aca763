"""Strategies are plain code over `ask`; an `ask` here is a function that remembers what it was
asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from evalwright.core.errors import RequestFailed
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Message,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.generate import Conversation, SingleDraw
from evalwright.strategies.likelihood import (
    ChooseByLetter,
    ChooseByLikelihood,
    ContinuationLikelihood,
    TextLikelihood,
)
from evalwright.strategies.sampling import Sampling
from strategies.asking import setup


def answered(
    strategy: Any, sample: Sample, reply: Callable[[Any], Response], draw: int = 0
) -> tuple[Answer, list[Request]]:
    asked: list[Request] = []

    async def ask(role: str, request: Request) -> Response:
        assert role == "target"
        asked.append(request)
        return reply(request)

    return asyncio.run(strategy(sample, ask, draw)), asked


CHOICES = Sample(
    "1",
    input="Capital of France?",
    choices=("Lyon", "Paris", "Nice"),
    gold=(1,),
    targets=("Paris",),
)


def test_choose_by_likelihood_asks_each_option_once_and_takes_the_best() -> None:
    values = {" Lyon": -3.0, " Paris": -1.0, " Nice": -2.0}
    answer, asked = answered(
        ChooseByLikelihood(setup()),
        CHOICES,
        lambda r: Response(log_likelihood=values[r.continuation]),
    )
    assert asked == [LogLikelihood("Capital of France?", option) for option in values]
    assert (answer.choice, answer.text, answer.log_likelihoods) == (
        1,
        "Paris",
        (-3.0, -1.0, -2.0),
    )


def test_the_first_of_equals_is_chosen() -> None:
    answer, _ = answered(
        ChooseByLikelihood(setup()), CHOICES, lambda r: Response(log_likelihood=-1.0)
    )
    assert answer.choice == 0


def test_choose_by_letter_asks_letters_and_answers_with_the_option() -> None:
    answer, asked = answered(
        ChooseByLetter(setup(delimiter="")),
        CHOICES,
        lambda r: Response(log_likelihood=float(ord(r.continuation))),
    )
    assert [
        request.continuation for request in asked if isinstance(request, LogLikelihood)
    ] == [
        "A",
        "B",
        "C",
    ]
    assert answer.text == "Nice"


def test_a_reply_without_log_likelihood_is_a_failure_not_a_zero() -> None:
    with pytest.raises(RequestFailed, match="no log-likelihood"):
        answered(ChooseByLikelihood(setup()), CHOICES, lambda r: Response(text="x"))


def test_greedy_draws_are_one_request_and_sampled_draws_are_not() -> None:
    greedy = SingleDraw(lambda s: "Q", Sampling(max_tokens=5))
    sampled = SingleDraw(lambda s: "Q", Sampling(temperature=0.7))
    assert answered(greedy, CHOICES, lambda r: Response("x"), draw=3)[1] == [
        Generate("Q", max_tokens=5)
    ]
    assert answered(sampled, CHOICES, lambda r: Response("x"), draw=3)[1] == [
        Generate("Q", temperature=0.7, draw=3)
    ]


def test_reasoning_is_not_part_of_the_answer_and_the_raw_text_stays() -> None:
    answer, _ = answered(
        SingleDraw(lambda s: "Q", Sampling()),
        CHOICES,
        lambda r: Response("<think>hm</think>Paris"),
    )
    assert (answer.text, answer.reasoning) == ("Paris", "hm")
    assert answer.responses[0].text == "<think>hm</think>Paris"


def test_a_conversation_carries_its_replies_without_reasoning() -> None:
    replies = iter(["<think>a</think>one", "two"])
    answer, asked = answered(
        Conversation(lambda s: "first", lambda s: ("second",), Sampling()),
        CHOICES,
        lambda r: Response(next(replies)),
    )
    last = asked[-1]
    assert isinstance(last, Generate)
    assert last.prompt == (
        Message("user", "first"),
        Message("assistant", "one"),
        Message("user", "second"),
    )
    assert answer.text == "two"
    assert len(answer.responses) == 2


def test_likelihoods_of_a_target_and_of_a_text() -> None:
    answer, asked = answered(
        ContinuationLikelihood(setup(render=lambda s: "Q")),
        CHOICES,
        lambda r: Response(log_likelihood=-2.0),
    )
    assert asked == [LogLikelihood("Q", " Paris")]
    assert answer.log_likelihoods == (-2.0,)
    answer, asked = answered(
        TextLikelihood(
            setup(render=lambda s: (Message("user", "a"), Message("user", "b")))
        ),
        CHOICES,
        lambda r: Response(log_likelihood=-9.0),
    )
    assert asked == [RollingLogLikelihood("ab")]
