"""Two transcripts beside each other: which steps are the same, and where they part.

The explorer aligns steps alike (`web/src/data/align.ts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from evalwright.runs.transcripts import Step

MAX_ALIGNED_PAIRS = 1_000_000
"""Pairs of steps that are compared; longer trajectories are matched by their order alone."""


def align_steps(
    a: Sequence[Step], b: Sequence[Step]
) -> list[tuple[int | None, int | None, bool]]:
    """Put the steps of two trajectories beside each other.

    Returns:
        (position in a, position in b, whether both did the same); None where one has no step.
    """
    keys_a = [step.signature for step in a]
    keys_b = [step.signature for step in b]
    equal = [(-1, -1), *_common_steps(keys_a, keys_b), (len(a), len(b))]
    rows: list[tuple[int | None, int | None, bool]] = []
    for (last_a, last_b), (next_a, next_b) in pairwise(equal):
        between_a = range(last_a + 1, next_a)
        between_b = range(last_b + 1, next_b)
        rows += [
            (
                between_a[index] if index < len(between_a) else None,
                between_b[index] if index < len(between_b) else None,
                False,
            )
            for index in range(max(len(between_a), len(between_b)))
        ]
        if next_a < len(a):
            rows.append((next_a, next_b, True))
    return rows


def _common_steps(a: Sequence[Any], b: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the longest list of equal steps in the order of both."""
    shorter = min(len(a), len(b))
    head = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    most_tail = shorter - head
    tail = next((i for i in range(most_tail) if a[-1 - i] != b[-1 - i]), most_tail)
    middle_a = a[head : len(a) - tail]
    middle_b = b[head : len(b) - tail]
    pairs = [(index, index) for index in range(head)]
    pairs += [(i + head, j + head) for i, j in _longest_common(middle_a, middle_b)]
    return pairs + [
        (len(a) - tail + index, len(b) - tail + index) for index in range(tail)
    ]


def _longest_common(a: Sequence[Any], b: Sequence[Any]) -> list[tuple[int, int]]:
    if len(a) * len(b) > MAX_ALIGNED_PAIRS:
        return [(i, i) for i in range(min(len(a), len(b))) if a[i] == b[i]]
    lengths = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            lengths[i][j] = (
                lengths[i + 1][j + 1] + 1
                if a[i] == b[j]
                else max(lengths[i + 1][j], lengths[i][j + 1])
            )
    pairs = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            pairs.append((i, j))
            i += 1
            j += 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs
