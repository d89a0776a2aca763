"""Self-consistency: a vote over the answers of several draws (Wang et al. 2023, arXiv 2203.11171).

A vote may stop early. With "certain" it stops once no further draw can change the winner, so
the result is always that of all draws. With a confidence c it stops once the chance that the
remaining draws change the winner is at most 1 - c. That chance is the posterior predictive of
the Beta model of the two leading answers (Aggarwal et al. 2023, arXiv 2305.11860, stop by its
posterior instead): with a and b votes and m draws to come, beta-binomial(m, a + 1, b + 1).
Averaged over questions whose vote shares are uniformly distributed, it is the share of votes
that stopping changes; for a question at an even split it is more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, Failure, RequestFailed
from evalwright.core.requests import Ability
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.registry import check_one_of, resolve_function
from evalwright.strategies.several import (
    SUMMARY_CHARS,
    Drawn,
    MultiDrawStrategy,
    answered,
    gather_all,
    mean_log_prob,
    select_draw,
    summary,
    worth_by_reward,
)
from evalwright.strategies.task_setup import Read, Setup

Votes = Mapping[str, float]
"""Answers and their votes, in the order in which they were first drawn."""


class SelfConsistency(MultiDrawStrategy):
    """Picks the answer with the most votes among n draws; ties go to the one drawn first.

    Args:
        setup: what the task provides.
        n: number of draws.
        parser: the scorer that reads the answer out of a draw, by default the task's first; answers
            with equal readings are the same answer.
        weight: what a vote counts: "none", "log-probability" or "reward".
        role: the model that gives rewards.
        stop: "never", "certain" or a confidence.
        of: the strategy of each draw.
        aggregator: replaces the vote: a function (or its name in a loaded file) that gets the
            answers read, in the order of the draws, and returns the answer.
    """

    name = "self-consistency"

    def __init__(
        self,
        setup: Setup,
        *,
        n: int = 5,
        parser: Any = None,
        weight: str = "none",
        role: str = "reward",
        stop: Any = "never",
        of: Any = None,
        aggregator: Any = None,
    ) -> None:
        check_one_of(self.name, "weight", weight, ("none", "log-probability", "reward"))
        if weight != "reward" and role != "reward":
            raise ConfigurationError(
                f"The option 'role' of '{self.name}' has an effect with `weight:"
                " reward` only. Leave it out."
            )
        self._confidence = _parse_confidence(stop, weight)
        if aggregator is not None and (weight, stop) != ("none", "never"):
            raise ConfigurationError(
                f"The option 'aggregator' of '{self.name}' decides by itself: leave out"
                " `weight` and `stop`."
            )
        self._aggregate = (
            None
            if aggregator is None
            else resolve_function(self.name, "aggregator", aggregator)
        )
        self._read: Read = setup.reader(parser)
        self._weight = weight
        self._reward = worth_by_reward(setup, role) if weight == "reward" else None
        roles = {role: frozenset[Ability]({"reward"})} if weight == "reward" else {}
        super().__init__(setup, n, of, roles, tokens=weight == "log-probability")

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Return the first draw with the winning answer; `strategy` records all draws and votes."""
        n = self.n
        draws = list[Drawn]()
        ballots = list[tuple[str, float]]()
        while len(draws) < n:
            votes = count_votes(ballots)
            round_size = (
                n - len(draws)
                if self._confidence is None
                else self._round(votes, n - len(draws))
            )
            round_draws = await self.drawn(
                sample, ask, draw, range(len(draws), len(draws) + round_size)
            )
            ballots += await gather_all(
                self._ballot(sample, drawn, ask) for drawn in round_draws
            )
            draws += round_draws
            failures = [drawn for drawn in draws if isinstance(drawn, Failure)]
            if self._decided(count_votes(ballots), n - len(draws), len(failures)):
                break
        votes = count_votes(ballots)
        if self._aggregate is not None and not failures:
            return self._aggregated(self._aggregate, draws, ballots, votes)
        unfinished = n - len(draws), len(failures)
        if failures and (
            self._reward
            or self._aggregate
            or not (is_certain(votes, *unfinished) or self._decided(votes, *unfinished))
        ):
            raise RequestFailed(failures[0])
        return select_draw(
            draws, _winner(draws, ballots, votes), self._record(draws, ballots, votes)
        )

    def _aggregated(
        self,
        aggregate: Callable[..., Any],
        draws: Sequence[Drawn],
        ballots: Sequence[tuple[str, float]],
        votes: Votes,
    ) -> Answer:
        """Return the first draw with the answer that the aggregator chose.

        If no draw has it, the aggregator's text itself is the answer.
        """
        final_answer = str(aggregate([answer for answer, _ in ballots if answer]))
        index = next(
            (
                index
                for index, (answer, _) in enumerate(ballots)
                if answer == final_answer
            ),
            None,
        )
        answer = select_draw(
            draws,
            _winner(draws, ballots, votes) if index is None else index,
            self._record(draws, ballots, votes),
        )
        if index is not None:
            return answer
        return replace(
            answer,
            text=final_answer,
            choice=None,
            strategy={**answer.strategy, "chosen": None},
        )

    async def _ballot(
        self, sample: Sample, drawn: Drawn, ask: Ask
    ) -> tuple[str, float]:
        """Return the answer that a draw votes for, and the vote's weight; ("", 0) for no vote."""
        if (
            not answered(drawn)
            or not isinstance(drawn, Answer)
            or not (read := self._read(sample, drawn))
        ):
            return "", 0.0
        if self._weight == "none":
            return read, 1
        if self._reward is None:
            return read, math.exp(mean_log_prob(drawn.responses[-1]))
        weight = await self._reward(sample, drawn, ask)
        if not weight >= 0:
            message = (
                f"A reward of {weight:g} cannot be the weight of a vote: use a reward"
                " model whose rewards are not negative."
            )
            raise RequestFailed(Failure("bad reply", "judge", message))
        return read, weight

    def _decided(self, votes: Votes, left: int, failed: int = 0) -> bool:
        """Return whether the vote stops here, given how many draws are left and how many failed."""
        if self._confidence is None:
            return False
        return is_certain(votes, left, failed) or (
            self._confidence < 1
            and 1 - chance_of_turning(votes, left + failed) >= self._confidence
        )

    def _round(self, votes: Votes, left: int) -> int:
        """Return the smallest number of draws that may decide the vote.

        Sending that many at once never sends a needless one.
        """
        first = leader(votes) or "any"
        for extra_votes in range(1, left):
            if self._decided(
                {**votes, first: votes.get(first, 0) + extra_votes}, left - extra_votes
            ):
                return extra_votes
        return left

    def _record(
        self, draws: Sequence[Drawn], ballots: Sequence[tuple[str, float]], votes: Votes
    ) -> dict[str, Any]:
        weighted = self._weight != "none"
        return {
            "name": self.name,
            "draws": [
                summary(
                    drawn,
                    answer=read[:SUMMARY_CHARS],
                    weight=_shorten(weight) if weighted and read else None,
                )
                for drawn, (read, weight) in zip(draws, ballots, strict=True)
            ],
            "votes": [
                [answer[:SUMMARY_CHARS], _shorten(weight)]
                for answer, weight in votes.items()
            ],
            "saved_draws": self.n - len(draws),
        }


def count_votes(ballots: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Sum the votes of each answer; "" is no answer."""
    votes: dict[str, float] = {}
    for answer, weight in ballots:
        if answer:
            votes[answer] = votes.get(answer, 0) + weight
    return votes


def leader(votes: Votes) -> str:
    """Return the answer with the most votes, on a tie the first; "" if there is none."""
    return max(votes, key=votes.__getitem__, default="")


def is_certain(votes: Votes, left: int, failed: int = 0) -> bool:
    """Return whether the leading answer stays ahead whatever the outstanding votes are for.

    Those are the `left` further and the `failed` lost votes; each counts at most 1.
    """
    if not left + failed:
        return True
    first = leader(votes)
    # The worst case is that all are for one other answer. A new answer would be drawn later, and
    # lose a tie; but a lost vote may have been the first of its answer, so then a tie is not safe.
    votes_against = left + failed + (0.5 if failed else 0)
    rivals = [answer for answer in (*votes, "") if answer != first]
    return first != "" and all(
        leader({**votes, rival: votes.get(rival, 0) + votes_against}) == first
        for rival in rivals
    )


def chance_of_turning(votes: Votes, left: int) -> float:
    """Return the chance that `left` further votes put the second answer ahead of the first.

    It is a sum of beta-binomial probabilities.
    """
    if not votes:
        return 1.0
    first, *others = sorted(
        votes, key=votes.__getitem__, reverse=True
    )  # a stable sort: on a tie, the answer drawn first leads
    second = others[0] if others else ""
    a = votes[first]
    b = votes.get(second, 0)
    wins_ties = second != "" and list(votes).index(second) < list(votes).index(first)
    turning = range(math.ceil((left + a - b) / 2), left + 1)
    return math.fsum(
        _beta_binomial(k, left, b + 1, a + 1)
        for k in turning
        if b + k > a + left - k or (wins_ties and b + k == a + left - k)
    )


def _beta_binomial(k: int, m: int, alpha: float, beta: float) -> float:
    log = math.lgamma
    ways = log(m + 1) - log(k + 1) - log(m - k + 1)
    above = log(k + alpha) + log(m - k + beta) - log(m + alpha + beta)
    below = log(alpha) + log(beta) - log(alpha + beta)
    return math.exp(ways + above - below)


def _parse_confidence(stop: Any, weight: str) -> float | None:
    """Parse the option `stop`: None for never, 1 for certain, else the confidence.

    Raises:
        ConfigurationError: the value is not allowed, or the weights do not allow early stopping.
    """
    if stop == "never":
        return None
    number = isinstance(stop, int | float) and not isinstance(stop, bool)
    if stop != "certain" and not (number and 0.5 < stop < 1):
        raise ConfigurationError(
            "The option 'stop' of 'self-consistency' is never, certain, or a"
            f" confidence between 0.5 and 1, not {stop!r}."
        )
    if weight == "reward":
        raise ConfigurationError(
            "A reward has no greatest value, so a vote weighted by it cannot be"
            " stopped: leave out `stop`."
        )
    if number and weight != "none":
        raise ConfigurationError(
            "A confidence is of votes that all count the same: use `stop: certain`, or"
            " leave out `weight`."
        )
    return 1.0 if stop == "certain" else float(stop)


def _winner(
    draws: Sequence[Drawn], ballots: Sequence[tuple[str, float]], votes: Votes
) -> int:
    """Return the index of the first draw with the leading answer.

    Without any vote, that of the first draw with an answer, or else the first that did not fail.
    """
    first = leader(votes)
    if first:
        return next(
            index for index, (answer, _) in enumerate(ballots) if answer == first
        )
    answer_indices = [
        index for index, drawn in enumerate(draws) if isinstance(drawn, Answer)
    ]
    return next(
        (index for index in answer_indices if answered(draws[index])), answer_indices[0]
    )


def _shorten(weight: float) -> float:
    """Round a weight to the digits that people read; whole votes stay whole."""
    return weight if isinstance(weight, int) else float(f"{weight:.6g}")
