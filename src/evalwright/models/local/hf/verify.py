"""Compares scores that were computed one way with scores of the plain way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.core.errors import Failure
from evalwright.models.local.answering import Scored
from evalwright.models.local.hf.scoring import PairScorer
from evalwright.models.local.tokens import Pair

_TOLERANCE = {4: 3e-5, 8: 3e-5, 2: 0.15, 1: 0.5}
"""By the bytes of a number: the difference a token that rounding in another order can make, and more."""


@dataclass(slots=True)
class Difference:
    """Between two ways of scoring: `largest` in nats a scored token; `flags`: how many greedy flags differ.

    beyond: differences that rounding does not explain. A flag is none of them: two tokens may be as good as equal.
    """

    compared: int = 0
    largest: float = 0.0
    flags: int = 0
    beyond: int = 0

    def compare(
        self, plain: PairScorer, noted: Sequence[tuple[Pair, Scored]], number_bytes: int
    ) -> Difference:
        """Score pairs the plain way and add how far that is from what was found; what cannot be scored so is left out."""
        for place, expected in plain.score([pair for pair, _ in noted]):
            if isinstance(expected, Failure):
                continue
            found = noted[place][1]
            self.compared += 1
            self.flags += expected.is_greedy != found.is_greedy
            # Not a number on both sides is agreement.
            if not math.isfinite(expected.log_likelihood) and not math.isfinite(found.log_likelihood):
                continue
            each = abs(expected.log_likelihood - found.log_likelihood) / expected.tokens
            scale = max(1.0, abs(expected.log_likelihood) / expected.tokens)
            self.largest = max(self.largest, each)
            self.beyond += not each <= _TOLERANCE.get(number_bytes, 0.15) * scale
        return self

    def describe(self) -> dict[str, Any]:
        """For the run record."""
        return {
            "requests": self.compared,
            "largest_difference_per_token": self.largest,
            "greedy_flags_that_differ": self.flags,
        }
