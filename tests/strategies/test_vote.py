"""Votes against brute force: the whole vote, stopping when it cannot turn, stopping by a
confidence.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    RequestFailed,
    UsageError,
)
from evalwright.core.requests import Generate, Reward
from evalwright.core.responses import Response, TokenLogProb
from evalwright.core.samples import Answer
from evalwright.strategies.sampling import Sampling
from evalwright.strategies.vote import (
    chance_of_turning,
    count_votes,
    is_certain,
    leader,
)
from strategies.asking import asked, draw_of, setup, strategy

LOST = RequestFailed(Failure("timeout", "provider", "No reply came."))


def voted(answers: Sequence[str], options: dict[str, Any] | None = None) -> Answer:
    """The vote over draws that say these answers ("" is a reply without one)."""
    made = strategy("self-consistency", {"n": len(answers), **(options or {})})
    return asked(made, lambda role, request: answers[draw_of(request)])[0]


def brute_force(answers: Sequence[str]) -> str:
    """Count them all; of equals the one that came first."""
    counted = Counter(answer for answer in answers if answer)
    most = max(counted.values(), default=0)
    return next(
        (answer for answer in answers if answer and counted[answer] == most), ""
    )


ALL_OF_FIVE = list(itertools.product(("a", "b", "c", ""), repeat=5))


@pytest.mark.parametrize("stop", ["never", "certain"])
def test_the_vote_is_that_of_all_draws_for_every_possible_five(stop: str) -> None:
    saved = 0
    for answers in ALL_OF_FIVE:
        answer = voted(answers, {"stop": stop})
        assert answer.text == brute_force(answers), answers
        saved += answer.strategy["saved_draws"]
    assert (saved > 0) == (stop == "certain")


def test_certain_is_exactly_when_no_continuation_turns_the_vote() -> None:
    for length, left in itertools.product(range(1, 5), range(4)):
        for made in itertools.product("abc", repeat=length):
            first = brute_force(made)
            kept = all(
                brute_force(made + more) == first
                for more in itertools.product("abcd", repeat=left)
            )
            assert is_certain(count_votes([(one, 1) for one in made]), left) == kept, (
                made,
                left,
            )


def test_the_chance_of_turning_is_the_beta_binomial_one() -> None:
    """Pólya's urn: the next draw is of an answer with the chance (its votes + 1) / (all votes +
    2).
    """

    def turned(front: int, behind: int, left: int) -> float:
        if not left:
            return float(behind > front)
        share = (front + 1) / (front + behind + 2)
        return share * turned_from(front + 1, behind, left - 1) + (
            1 - share
        ) * turned_from(front, behind + 1, left - 1)

    turned_from = cache(turned)
    for front, behind, left in itertools.product(range(1, 6), range(4), range(9)):
        if front >= behind:
            votes = {"x": front, **({"y": behind} if behind else {})}
            assert chance_of_turning(votes, left) == pytest.approx(
                turned_from(front, behind, left), abs=1e-12
            )


KINDS: dict[str, list[float] | int] = {
    "2 answers": 2, "3 answers": 3, "5 answers": 5, "easy": [0.9, 0.05, 0.05], "fair": [0.7, 0.2, 0.1],
    "hard": [0.5, 0.3, 0.2], "split": [0.5, 0.5],
}  # fmt: skip
"""Questions, chosen before any was tried: fixed shares of the answers, or shares from a uniform
Dirichlet distribution.
"""


def test_a_confidence_keeps_the_vote_and_saves_draws() -> None:
    chance = random.Random(20261122)
    turning = cache(lambda votes, left: chance_of_turning(dict(votes), left))
    agreed: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    drawn = 0
    whole = 0
    for n, (kind, shares), _ in itertools.product(
        (5, 10, 20, 40), KINDS.items(), range(300)
    ):
        if isinstance(shares, int):
            parts = [chance.expovariate(1) for _ in range(shares)]
            shares = [part / sum(parts) for part in parts]
        answers = chance.choices("abcde"[: len(shares)], shares, k=n)
        for made in range(1, n + 1):
            votes = count_votes([(answer, 1) for answer in answers[:made]])
            if (
                is_certain(votes, n - made)
                or 1 - turning(tuple(votes.items()), n - made) >= 0.99
            ):
                break
        agreed[kind].append(leader(votes) == brute_force(answers))
        drawn = drawn + made
        whole = whole + n
    every = [one for kept in agreed.values() for one in kept]
    assert sum(every) / len(every) >= 0.99
    for (
        kind,
        kept,
        # at an even split the promise is an average that such questions fall below
    ) in agreed.items():
        assert sum(kept) / len(kept) >= (0.98 if kind == "split" else 0.99), kind
    assert 1 - drawn / whole > 0.35


def test_a_confident_vote_asks_the_fewest_draws_that_can_decide_it() -> None:
    made = strategy("self-consistency", {"n": 40, "stop": 0.99})
    answer, said = asked(made, lambda role, request: "same")
    assert len(said) == 5
    assert (
        1 - chance_of_turning({"same": 5}, 35)
        >= 0.99
        > 1 - chance_of_turning({"same": 4}, 36)
    )
    assert answer.strategy["saved_draws"] == 35


def test_what_is_read_alike_is_one_answer_and_the_record_shows_the_vote() -> None:
    said = [
        "So it is 7.",
        "Answer: 42",
        "The answer is 42.0",
        "I cannot say.",
        "\\boxed{42}",
    ]
    made = strategy("self-consistency", {"parser": "numeric"})
    answer, requests = asked(
        made, lambda role, request: said[draw_of(request) - 15], draw=3
    )
    assert [draw_of(request) for _, request in requests] == [15, 16, 17, 18, 19]
    assert answer.strategy["votes"] == [["7", 1], ["42", 3]]
    assert [draw["answer"] for draw in answer.strategy["draws"]] == [
        "7",
        "42",
        "42",
        "",
        "42",
    ]
    assert (answer.text, answer.strategy["chosen"]) == ("Answer: 42", 1)
    assert answer.responses[-1].text == "Answer: 42" and len(answer.responses) == 5


def test_draws_of_repeats_never_collide() -> None:
    made = strategy("self-consistency", {"n": 3})
    numbers = [
        draw_of(request)
        for repeat in range(3)
        for _, request in asked(made, lambda r, q: "x", repeat)[1]
    ]
    assert numbers == list(range(9))


def tokens(*log_probs: float) -> tuple[TokenLogProb, ...]:
    return tuple(TokenLogProb("t", value) for value in log_probs)


def test_votes_weighted_by_the_probability_of_the_draw() -> None:
    replies = {
        0: Response("a", finish_reason="stop", tokens=tokens(-2.0, -2.0)),
        1: Response("a", finish_reason="stop", tokens=tokens(-3.0)),
        2: Response("b", finish_reason="stop", tokens=tokens(-0.1, -0.3)),
    }
    made = strategy("self-consistency", {"n": 3, "weight": "log-probability"})
    answer, said = asked(made, lambda role, request: replies[draw_of(request)])
    assert all(
        isinstance(request, Generate) and request.top_logprobs == 0
        for _, request in said
    )
    assert answer.text == "b"
    assert answer.strategy["votes"] == [
        ["a", pytest.approx(math.exp(-2) + math.exp(-3), rel=1e-5)],
        ["b", pytest.approx(math.exp(-0.2), rel=1e-5)],
    ]
    with pytest.raises(RequestFailed, match="no log-probabilities"):
        asked(made, lambda role, request: "a")


def test_votes_weighted_by_rewards() -> None:
    rewards = {"a": 0.2, "b": 0.5}

    def reply(role: str, request: Any) -> Response | str:
        if isinstance(request, Reward):
            assert (role, request.prompt) == ("critic", "What is 6 * 7?")
            return Response(values=(rewards[request.response],))
        return "aab"[request.draw]

    made = strategy("self-consistency", {"n": 3, "weight": "reward", "role": "critic"})
    answer, _ = asked(made, reply)
    assert (answer.text, answer.strategy["votes"]) == ("b", [["a", 0.4], ["b", 0.5]])
    assert getattr(made, "roles") == {"critic": frozenset({"reward"})}  # noqa: B009
    rewards["a"] = -1.0
    with pytest.raises(RequestFailed, match="cannot be the weight of a vote"):
        asked(made, reply)


@pytest.mark.parametrize("stop", ["never", "certain"])
def test_a_vote_stands_over_failed_draws_only_where_none_could_have_turned_it(
    stop: str,
) -> None:
    made = strategy("self-consistency", {"n": 4, "stop": stop})
    stood = 0
    for said in itertools.product("ab!", repeat=4):

        def reply(role: str, request: Any, said: tuple[str, ...] = said) -> str:
            text = said[draw_of(request)]
            if text == "!":
                raise LOST
            return text

        fillings = [
            tuple(next(lost) if one == "!" else one for one in said)
            for lost in map(iter, itertools.product("abc", repeat=said.count("!")))
        ]
        try:
            answer = asked(made, reply)[0]
        except RequestFailed as error:
            assert "!" in said and error.failure == LOST.failure
            continue
        assert {brute_force(filled) for filled in fillings} == {answer.text}, said
        stood += "!" in said
        if stop == "never" and "!" in said:
            assert answer.strategy["draws"][said.index("!")] == {"failure": "timeout"}
    assert (
        stood == {"never": 8, "certain": 16}[stop]
    )  # three alike and one lost; two alike settle it before one is lost


def test_a_draw_that_was_cut_has_no_vote_and_all_of_them_are_a_sample_without_an_answer() -> (
    None
):
    cut = Response("", finish_reason="length")
    made = strategy("self-consistency", {"n": 3})
    answer, _ = asked(made, lambda role, request: cut if request.draw < 2 else "b")
    assert (answer.text, answer.outcome) == ("b", "answered")
    assert answer.strategy["draws"][0] == {"text": "", "outcome": "cut", "answer": ""}
    assert asked(made, lambda role, request: cut)[0].outcome == "cut"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 1}, "'n' of 'self-consistency' is a whole number from 2 to 10,000"),
        (
            {"n": 1_000_000},
            "'n' of 'self-consistency' is a whole number from 2 to 10,000",
        ),
        ({"stop": 1.5}, "never, certain, or a confidence"),
        ({"stop": "sure"}, "never, certain, or a confidence"),
        ({"stop": "certain", "weight": "reward"}, "has no greatest value"),
        ({"stop": 0.9, "weight": "log-probability"}, "votes that all count the same"),
        ({"role": "critic"}, "with `weight: reward` only"),
        ({"weight": "logprob"}, "Did you mean 'log-probability'"),
        ({"parser": "short-anser"}, "Did you mean 'short-answer'"),
        ({"parser": "stress"}, "reads no answers"),
        ({"of": "chain-of-though"}, "Did you mean 'chain-of-thought'"),
        ({"draws": 3}, "Unknown option"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        strategy("self-consistency", options)


@pytest.mark.parametrize("name", ["self-consistency", "best-of-n"])
def test_several_draws_at_temperature_0_are_an_error_that_says_why(name: str) -> None:
    options = {"by": "reward"} if name == "best-of-n" else {}
    with pytest.raises(ConfigurationError, match="temperature 0"):
        strategy(name, options, sampling=Sampling())
    assert strategy(name, options, sampling=Sampling(temperature=None)).needs == {
        "generate"
    }


def test_draws_may_be_formed_by_another_strategy() -> None:
    made = strategy(
        "self-consistency",
        {"n": 3, "of": {"name": "chain-of-thought", "reasoning_tokens": 9}},
    )
    answer, said = asked(
        made, lambda role, request: "42" if request.max_tokens == 50 else "thinking"
    )
    assert sorted(draw_of(request) for _, request in said) == [0, 0, 1, 1, 2, 2]
    assert (answer.text, len(answer.responses)) == ("42", 6)
    assert setup().sampling.max_tokens == 50


def test_an_aggregator_of_ones_own_decides_in_place_of_the_vote() -> None:
    def longest(answers: list[str]) -> str:
        return max(answers, key=len)

    answer = voted(("a", "", "ccc", "a"), {"aggregator": longest})
    assert (answer.text, answer.strategy["chosen"], answer.responses[-1].text) == (
        "ccc",
        2,
        "ccc",
    )
    assert answer.strategy["votes"] == [["a", 2], ["ccc", 1]]
    seen: list[list[str]] = []

    def neither(answers: list[str]) -> str:
        seen.append(answers)
        return "neither"

    made = voted(("b", "", "a"), {"aggregator": neither})
    assert seen == [
        ["b", "a"]
    ]  # in the order of the draws, without those that say nothing
    assert (made.text, made.strategy["chosen"]) == ("neither", None)
    with pytest.raises(
        RequestFailed
    ):  # nobody knows what a lost draw would have changed
        made_of = strategy("self-consistency", {"n": 3, "aggregator": longest})
        asked(made_of, lambda role, request: _lost_or("a", draw_of(request)))
    for more in ({"stop": "certain"}, {"weight": "reward"}):
        with pytest.raises(ConfigurationError, match="decides by itself"):
            strategy("self-consistency", {"aggregator": longest, **more})


def _lost_or(text: str, draw: int) -> str:
    if draw == 1:
        raise LOST
    return text


def test_functions_of_a_task_file_are_those_of_loaded_files_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("os.system", "json.loads", "mine.last", "last", "", 5):
        with pytest.raises(ConfigurationError, match="with --plugin"):
            strategy("self-consistency", {"aggregator": name})
    mine = ModuleType("evalwright_plugin_mine")
    mine.last = lambda answers: answers[-1]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "evalwright_plugin_mine", mine)
    assert voted(("a", "a", "b"), {"aggregator": "mine.last"}).text == "b"
    with pytest.raises(ConfigurationError, match="mine\\.first"):
        strategy("self-consistency", {"aggregator": "mine.first"})
