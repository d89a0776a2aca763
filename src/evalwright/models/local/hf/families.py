"""Which prompts are written together: those that begin alike, so that what they share is computed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from evalwright.models.local.tokens import common_length

WORTH = 64
"""Tokens that prompts must share beyond what all others share, to be written apart from these."""

ENOUGH = 8
"""Different prompts that are enough for a batch of their own."""

LEAST = 16
"""Shared tokens below which computing them apart costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Family:
    """`members` are places of prompts that are not empty; all begin with the same `shared` tokens, and each has at least one more."""

    shared: int
    members: list[int]


def families(prompts: Sequence[Sequence[int]]) -> list[Family]:
    """Every prompt in one family. Prompts that share little with any others are one family, however little that is.

    Sorted prompts that share a beginning stand side by side, so a family is a run of them, less those parts of the run that
    share more among themselves.
    """
    order = sorted(range(len(prompts)), key=lambda place: list(prompts[place]))
    alike = [common_length(prompts[a], prompts[b]) for a, b in pairwise(order)]
    out: list[Family] = []
    waiting = [(0, len(order))] if order else []
    while waiting:
        start, end = waiting.pop()
        shared = _shared(prompts, order, alike, start, end)
        rest: list[int] = []
        for left, right in _parts(alike, start, end, shared):
            deeper = _shared(prompts, order, alike, left, right)
            different = 1 + sum(prompts[a] != prompts[b] for a, b in pairwise(order[left:right]))
            # A part of its own computes again what all share; equal prompts go through the model once in any family.
            worth = deeper >= shared + WORTH and (different - 1) * (deeper - shared) >= shared
            if (left, right) != (start, end) and different >= ENOUGH and worth:
                waiting.append((left, right))
            else:
                rest += order[left:right]
        if rest:
            out.append(Family(shared if shared >= LEAST else 0, rest))
    return out


def _shared(
    prompts: Sequence[Sequence[int]], order: Sequence[int], alike: Sequence[int], start: int, end: int
) -> int:
    """Tokens that a run begins with alike, and leaves every prompt its last one, which the first answer token needs."""
    shortest = min(len(prompts[place]) for place in order[start:end])
    return min([shortest - 1, *alike[start : end - 1]])


def _parts(alike: Sequence[int], start: int, end: int, shared: int) -> Iterator[tuple[int, int]]:
    """The runs within a run, of prompts that share more than all of it."""
    left = start
    for place in range(start, end - 1):
        if alike[place] < shared + WORTH:
            yield left, place + 1
            left = place + 1
    yield left, end
