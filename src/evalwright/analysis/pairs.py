"""Notes on how items were paired: equal ids with different questions, and pairs without an id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evalwright.analysis.words import listed
from evalwright.runs.measures import Matrix

ALL_DIFFER = "the runs asked different questions under the same ids"


def note_other_questions(matrix: Matrix) -> str:
    """Write a clause on equal ids with different questions in the first two runs, or ""."""
    differing, shared = matrix.other_questions()
    if 0 < differing == shared:
        return ALL_DIFFER
    have, are = ("has", "is") if differing == 1 else ("have", "are")
    clause = (
        f"{differing:,} of {shared:,} items {have} the same id but another question and"
        f" {are} not compared"
    )
    return clause if differing else ""


def note_other_questions_by_pair(
    matrix: Matrix, names: Sequence[str], baseline: int | None = None
) -> str:
    """Write a sentence on equal ids with different questions, naming the pairs of runs; else ""."""
    pairing = matrix.of_items.pairing
    if pairing is None or not pairing.differing.any():
        return ""
    pairs = []
    for b, a in np.argwhere(np.triu(pairing.differing, 1)).tolist():
        differing, shared = matrix.other_questions(a, b)
        if baseline is None or baseline in (a, b):
            pairs.append(
                f"{names[b]} and {names[a]} ({differing:,} of {shared:,} items)"
            )
    if not pairs:
        return ""
    return (
        f"On {matrix.measure.task}, other questions have the same ids and are not"
        f" compared: {listed(pairs, 5)}."
    )


def pairing_notes(matrix: Matrix, names: Sequence[str]) -> Iterator[str]:
    """Write sentences on items that were paired by id alone, or under different ids.

    Args:
        matrix: the item scores.
        names: what the runs are called.
    """
    if matrix.pairing is None or len(names) < 2:
        return
    if without_questions := [
        name
        for name, n in zip(names, matrix.pairing.unknown.tolist(), strict=True)
        if n
    ]:
        is_plural = len(without_questions) > 1
        yield (
            f"The record{'s' if is_plural else ''} of {listed(without_questions, 5)}"
            f" {'lack' if is_plural else 'lacks'} the questions of some items, which are"
            " paired by id alone."
        )
    if most := int(matrix.pairing.renumbered.max(initial=0)):
        upto = "Up to " if len(names) > 2 else ""
        noun = "item has" if most == 1 else "items have"
        yield (
            f"{upto}{most:,} {noun} another id in each run and are paired by their"
            " questions."
        )
