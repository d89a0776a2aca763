"""Examples of another split, drawn once by seed, of a row's own subset where it has enough; no row
is its own example.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from evalwright.compat.hret.examples import FewShot, Shots
from evalwright.compat.hret.row_samples import Given, Row, Rows

_OTHER_SPLITS = ("dev", "validation", "valid", "train", "test")
"""Where examples are looked for when no split is named: made for it first."""


def drawn_examples(rows: Rows, few_shot: FewShot) -> Shots:
    """Raises ValueError where no rows are left to evaluate or examples cannot be made."""

    def content(row: Given) -> tuple[str, str]:
        return str(row.get("input", "")), str(row.get("reference", ""))

    n = few_shot.n
    named = few_shot.source
    evaluated = {content(row) for row in rows}
    notes = list[str]()
    source = ""
    pool = Rows()
    for source in (
        [named]
        if named
        else [
            other_split
            for other_split in _OTHER_SPLITS
            if other_split != few_shot.split
        ]
    ):
        try:
            split_rows = list(few_shot.load(source))
        except Exception as error:
            if named:
                raise ValueError(
                    f"The split '{source}' for the examples cannot be read: {error}"
                ) from error
            continue
        if pool := [
            row
            for row in split_rows
            if content(row) not in evaluated and str(row.get("input") or "")
        ]:
            break
    if not pool:
        order = _examples_of(rows, n)
        source = few_shot.split
        pool = [rows[place] for place in sorted(order)]
        rows = [row for row_index, row in enumerate(rows) if row_index not in order]
        notes.append(
            f"The examples are {len(pool)} rows of the evaluated split, which are not"
            " evaluated."
        )
    if not rows:
        raise ValueError(
            f"No rows are left to evaluate after {n} were taken as examples."
        )
    if len(pool) < n:
        notes.append(
            f"{n} examples were asked for, and the split '{source}' has {len(pool)}."
        )
    texts: dict[Any, str] = {}

    def prefix(row: Given) -> str:
        subset = row.get("_subset_name")
        if subset not in texts:
            near = [
                example for example in pool if example.get("_subset_name") == subset
            ]
            chosen = near if len(near) >= n else pool
            texts[subset] = few_shot.text(
                random.Random(0).sample(chosen, min(n, len(chosen)))
            )
            if not texts[subset]:
                raise ValueError(
                    "No example could be made with the template"
                    f" {few_shot.template!r}: it may name {{input}} and"
                    " {reference}."
                )
        return texts[subset]

    return Shots(rows, prefix, source, min(n, len(pool)), notes)


def _examples_of(rows: Sequence[Row], n: int) -> set[int]:
    """The places of n rows drawn by seed, so that as long as there are others no subset loses its
    last row.
    """
    left = Counter(row.get("_subset_name") for row in rows)
    first = list[int]()
    others = list[int]()
    for place in random.Random(0).sample(range(len(rows)), len(rows)):
        subset = rows[place].get("_subset_name")
        if len(first) < n and left[subset] > 1:
            left[subset] -= 1
            first.append(place)
        else:
            others.append(place)
    return {*[*first, *others][:n]}
