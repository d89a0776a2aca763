"""Best of n: picks the draw that a reward model, judge, scorer or the model itself ranks first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evalwright.core.ask import Ask
from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    RequestFailed,
    UnknownName,
)
from evalwright.core.requests import Ability
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.several import (
    Drawn,
    MultiDrawStrategy,
    Worth,
    gather_all,
    has_content,
    mean_log_prob,
    select_draw,
    summary,
    worth_by_reward,
    worth_by_scorer,
)
from evalwright.strategies.task_setup import Setup

_RATING = {
    "scorer": "judge-rating",
    "question": "How good is the answer to the question?",
    "scale": [0, 10],
}
_CRITERIA = ("reward", "judge", "log-probability")


class BestOfN(MultiDrawStrategy):
    """Picks the best of n draws; on a tie, the first.

    A draw without an answer, or with an empty one, is never the best.

    Args:
        setup: what the task provides.
        by: "reward", "judge", "log-probability" (the mean over tokens, so that short answers are
            not preferred), or a scorer as a task file names it, which sees no targets.
        n: number of draws.
        role: the model that "reward" or "judge" uses; by default the role of that name.
        of: the strategy of each draw.
    """

    name = "best-of-n"

    def __init__(
        self,
        setup: Setup,
        *,
        by: Any,
        n: int = 5,
        role: str | None = None,
        of: Any = None,
    ) -> None:
        if by not in _CRITERIA and not isinstance(by, Mapping):
            raise UnknownName(
                f"value of the option 'by' of '{self.name}'",
                str(by),
                _CRITERIA,
                f"Known: {', '.join(_CRITERIA)}, and scorers such as {{scorer: words}}.",
            )
        if role is not None and by not in ("reward", "judge"):
            raise ConfigurationError(
                f"The option 'role' of '{self.name}' has an effect with reward and"
                " judge only. Leave it out."
            )
        roles: Mapping[str, frozenset[Ability]] = {}
        self._worth: Worth = _worth_by_probability
        if by == "reward":
            self._worth = worth_by_reward(setup, role or by)
            roles = {role or by: frozenset({"reward"})}
        elif by != "log-probability":
            use = {**_RATING, "judges": [role or by]} if by == "judge" else by
            self._worth, roles = worth_by_scorer(setup, use)
        super().__init__(setup, n, of, roles, tokens=by == "log-probability")

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Return the best draw; the answer's `strategy` field records the worth of each draw.

        Raises:
            RequestFailed: a draw failed, or its worth could not be computed.
        """
        drawn = await self.drawn(sample, ask, draw, range(self.n))
        for candidate in drawn:
            if isinstance(candidate, Failure):
                raise RequestFailed(candidate)
        worths = await gather_all(
            self._of(sample, candidate, ask) for candidate in drawn
        )
        judged = [index for index, worth in enumerate(worths) if not math.isnan(worth)]
        if not judged and any(map(has_content, drawn)):
            raise RequestFailed(
                Failure(
                    "bad verdict",
                    "judge",
                    "No draw of the sample has a score to choose by.",
                )
            )
        best = max(judged, key=worths.__getitem__, default=0)
        draws = [
            summary(
                candidate, worth=None if math.isnan(worth) else float(f"{worth:.6g}")
            )
            for candidate, worth in zip(drawn, worths, strict=True)
        ]
        return select_draw(drawn, best, {"name": self.name, "draws": draws})

    async def _of(self, sample: Sample, drawn: Drawn, ask: Ask) -> float:
        """Return the worth of a draw, nan if it has no answer."""
        return (
            await self._worth(sample, drawn, ask)
            if isinstance(drawn, Answer) and has_content(drawn)
            else math.nan
        )


async def _worth_by_probability(sample: Sample, answer: Answer, ask: Ask) -> float:
    return mean_log_prob(answer.responses[-1])
