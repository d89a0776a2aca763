"""Best of n: the draw that a reward model, a judge, a scorer, or the model's own probability puts
first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evalwright.core.asking import Ask
from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    RequestFailed,
    UnknownName,
)
from evalwright.core.requests import Ability
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.registry import Setup
from evalwright.strategies.several import (
    Drawn,
    OfDraws,
    Worth,
    chosen_of,
    mean_log_prob,
    rewarded,
    says_something,
    scored,
    summary,
    together,
)

_RATING = {
    "scorer": "judge-rating",
    "question": "How good is the answer to the question?",
    "scale": [0, 10],
}
_WAYS = ("reward", "judge", "log-probability")


class BestOfN(OfDraws):
    """The best of n draws, the first of equals.

    A draw without an answer, or with an empty one, is never the best.

    by: "reward", "judge", "log-probability" (the mean of its tokens', so that short answers are not
    preferred), or a use of a scorer, which sees no targets. role: whom "reward" or "judge" asks,
    default the role of that name. of: the strategy of each draw.
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
        if by not in _WAYS and not isinstance(by, Mapping):
            raise UnknownName(
                f"value of the option 'by' of '{self.name}'",
                str(by),
                _WAYS,
                f"Known: {', '.join(_WAYS)}, and scorers such as {{scorer: words}}.",
            )
        if role is not None and by not in ("reward", "judge"):
            raise ConfigurationError(
                f"The option 'role' of '{self.name}' has an effect with reward and"
                " judge only. Leave it out."
            )
        roles: Mapping[str, frozenset[Ability]] = {}
        self._worth: Worth = _probable
        if by == "reward":
            self._worth = rewarded(setup, role or by)
            roles = {role or by: frozenset({"reward"})}
        elif by != "log-probability":
            use = {**_RATING, "judges": [role or by]} if by == "judge" else by
            self._worth, roles = scored(setup, use)
        super().__init__(setup, n, of, roles, tokens=by == "log-probability")

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The best draw, and in `strategy` what each is worth.

        Raises RequestFailed where a draw or its worth is not known.
        """
        made = await self.drawn(sample, ask, draw, range(self.n))
        for one in made:
            if isinstance(one, Failure):
                raise RequestFailed(one)
        worths = await together(self._of(sample, one, ask) for one in made)
        known = [place for place, worth in enumerate(worths) if not math.isnan(worth)]
        if not known and any(map(says_something, made)):
            raise RequestFailed(
                Failure(
                    "bad verdict",
                    "judge",
                    "No draw of the sample has a score to choose by.",
                )
            )
        best = max(known, key=worths.__getitem__, default=0)
        draws = [
            summary(one, worth=None if math.isnan(worth) else float(f"{worth:.6g}"))
            for one, worth in zip(made, worths, strict=True)
        ]
        return chosen_of(made, best, {"name": self.name, "draws": draws})

    async def _of(self, sample: Sample, drawn: Drawn, ask: Ask) -> float:
        """What a draw is worth, nan for one without an answer."""
        return (
            await self._worth(sample, drawn, ask)
            if isinstance(drawn, Answer) and says_something(drawn)
            else math.nan
        )


async def _probable(sample: Sample, answer: Answer, ask: Ask) -> float:
    return mean_log_prob(answer.responses[-1])
