"""Best of n against brute force, by each way of choosing; a judge behind the door sees no target."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from evalwright.core.errors import Failure, RequestFailed, UsageError
from evalwright.core.requests import Reward
from evalwright.core.responses import Response, TokenLogProb
from evalwright.core.samples import Score
from evalwright.scorers.registry import scorer
from strategies.asking import SAMPLE, asked, strategy

VALUES = (-1.5, 0.0, 2.5)


def test_the_highest_reward_for_every_possible_three_the_first_of_equals() -> None:
    made = strategy("best-of-n", {"n": 3, "by": "reward"})
    for rewards in itertools.product(VALUES, repeat=3):

        def reply(role: str, request: Any, rewards: tuple[float, ...] = rewards) -> Response | str:
            if isinstance(request, Reward):
                assert (role, request.prompt) == ("reward", SAMPLE.input)
                return Response(values=(rewards[int(request.response)],))
            return str(request.draw)

        answer, said = asked(made, reply)
        assert answer.text == str(rewards.index(max(rewards)))
        assert [one["worth"] for one in answer.strategy["draws"]] == list(rewards)
        assert len(said) == 6


def test_the_mean_log_probability_of_tokens_so_that_short_answers_are_not_preferred() -> None:
    def reply(role: str, request: Any) -> Response:
        assert request.top_logprobs == 0
        values = [(-1.0,), (-0.5, -0.7, -0.6), (-0.9, -0.9)][request.draw]
        return Response(
            f"draw {request.draw}", finish_reason="stop", tokens=tuple(TokenLogProb("t", v) for v in values)
        )

    answer, _ = asked(strategy("best-of-n", {"n": 3, "by": "log-probability"}), reply)
    assert (answer.text, answer.responses[-1].text) == ("draw 1", "draw 1")
    assert [one["worth"] for one in answer.strategy["draws"]] == [-1.0, -0.6, -0.9]


def test_a_draw_without_an_answer_is_never_the_best() -> None:
    def reply(role: str, request: Any) -> Response | str:
        if isinstance(request, Reward):
            return Response(values=(-9.0,))
        return Response("", finish_reason="length") if request.draw != 1 else "so"

    answer, said = asked(strategy("best-of-n", {"n": 3, "by": "reward"}), reply)
    assert (answer.text, answer.outcome, len(said)) == ("so", "answered", 4)
    assert answer.strategy["draws"][0] == {"text": "", "outcome": "cut"}


def test_an_empty_answer_never_wins_whatever_it_is_worth() -> None:
    texts = ["", "so", " \n"]
    made = strategy("best-of-n", {"n": 3, "by": "reward"})
    asked_for: list[str] = []

    def reply(role: str, request: Any) -> Response | str:
        if isinstance(request, Reward):
            asked_for.append(request.response)
            return Response(values=(-5.0 if request.response.strip() else 9.0,))
        return texts[int(request.draw)]

    assert asked(made, reply)[0].text == "so" and asked_for == ["so"]
    texts[1] = ""
    answer, said = asked(made, reply)  # nothing but empty answers: one of them, and no failure of the judge
    assert answer.text == "" and len(said) == 3


def test_a_scorer_chooses_without_the_targets() -> None:
    @scorer("longest")
    def longest(sample: Any, answer: Any, *, sign: int = 1) -> Score:
        assert sample.input and not sample.targets and not sample.gold
        return Score(float(sign * len(answer.text)))

    texts = ["aa", "aaaa", "a"]
    for sign, wanted in ((1, "aaaa"), (-1, "a")):
        made = strategy("best-of-n", {"n": 3, "by": {"scorer": "longest", "sign": sign}})
        assert asked(made, lambda role, request: texts[request.draw])[0].text == wanted


def test_a_failed_draw_or_reward_is_a_failure_of_the_sample_and_the_others_are_finished() -> None:
    made = strategy("best-of-n", {"n": 3, "by": "reward"})
    ended: list[int] = []

    def reply(role: str, request: Any) -> Response | str:
        if isinstance(request, Reward) or request.draw == lost:
            raise RequestFailed(Failure("timeout", "provider", "No reply came."))
        ended.append(request.draw)
        return "x"

    for lost, party in ((0, "provider"), (9, "judge")):
        ended.clear()
        with pytest.raises(RequestFailed) as error:
            asked(made, reply)
        assert error.value.failure.party == party
        assert set(ended) == {0, 1, 2} - {lost}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option 'by'"),
        ({"by": "rewards"}, "Known: reward, judge, log-probability, and scorers"),
        ({"by": "log-probability", "role": "judge"}, "with reward and judge only"),
        ({"by": {"scorer": "instruction"}}, "Did you mean 'instructions'"),
        ({"by": "reward", "n": True}, "a whole number from 2 to"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        strategy("best-of-n", options)
