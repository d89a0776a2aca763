"""Compares scores that were computed one way with scores of the plain way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.core.errors import Failure
from evalwright.models.local.hf.quiet import logger
from evalwright.models.local.hf.scoring import PairScorer, Scored
from evalwright.models.local.tokens import Pair

_TOLERANCE = {4: 3e-5, 8: 3e-5, 2: 0.15, 1: 0.5}
"""By the bytes of a number: the difference a token that rounding in another order can make, and more."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Between two ways of scoring: `largest` and `allowed` in nats a scored token; how many greedy flags differ."""

    compared: int = 0
    largest: float = 0.0
    flags: int = 0
    beyond: int = 0

    def plus(self, other: Difference) -> Difference:
        """Both together."""
        return Difference(
            self.compared + other.compared,
            max(self.largest, other.largest),
            self.flags + other.flags,
            self.beyond + other.beyond,
        )


def compare(
    plain: PairScorer, pairs: Sequence[Pair], found: Sequence[Scored], number_bytes: int
) -> Difference:
    """Score `pairs` the plain way and compare; what cannot be scored that way is left out.

    `beyond` counts differences that rounding does not explain. Greedy flags are counted, and are no such difference: two
    tokens may be as good as equal.
    """
    total = Difference()
    for place, expected in plain.score(pairs):
        if not isinstance(expected, Failure):
            total = total.plus(_difference(expected, found[place], number_bytes))
    return total


def _difference(expected: Scored, found: Scored, number_bytes: int) -> Difference:
    each = abs(expected.log_likelihood - found.log_likelihood) / expected.tokens
    scale = max(1.0, abs(expected.log_likelihood) / expected.tokens)
    allowed = _TOLERANCE.get(number_bytes, 0.15) * scale
    # Not a number on both sides is agreement.
    both_broken = not math.isfinite(expected.log_likelihood) and not math.isfinite(found.log_likelihood)
    return Difference(
        1,
        0.0 if both_broken else each,
        int(expected.is_greedy != found.is_greedy),
        int(not both_broken and not each <= allowed),
    )


class Verification:
    """`verify=N`: collects the first N scored pairs of a model, scores them the plain way, and says how they compare."""

    def __init__(self, wanted: int, plain: PairScorer, name: str, number_bytes: int) -> None:
        self._wanted = wanted
        self._plain = plain
        self._name = name
        self._bytes = number_bytes
        self._pairs: list[Pair] = []
        self._found: list[Scored] = []
        self.difference = Difference()

    def note(self, pair: Pair, found: Scored | Failure) -> None:
        """One more that was scored; kept until `finish` if more are wanted."""
        if len(self._pairs) < self._wanted - self.difference.compared and isinstance(found, Scored):
            self._pairs.append(pair)
            self._found.append(found)

    def finish(self) -> None:
        """Score what was noted the plain way, and say the difference in a line."""
        if not self._pairs:
            return
        here = compare(self._plain, self._pairs, self._found, self._bytes)
        self.difference = self.difference.plus(here)
        self._pairs, self._found = [], []
        logger.warning("%s: %s.", self._name, self.sentence())

    def sentence(self) -> str:
        """What the comparison says."""
        d = self.difference
        return (
            f"verified {d.compared} requests against plain scoring: the largest difference is {d.largest:.1e} per token, "
            f"{d.flags} greedy flags differ"
        )

    def describe(self) -> dict[str, Any]:
        """For the run record."""
        d = self.difference
        return {
            "requests": d.compared,
            "largest_difference_per_token": d.largest,
            "greedy_flags_that_differ": d.flags,
        }
