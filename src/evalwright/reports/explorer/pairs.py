"""Which samples of two runs are one item: paired as comparisons pair them, with both scores."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.reports.explorer.parts import Samples
from evalwright.runs.pairing import pair_items
from evalwright.runs.reader import Run
from evalwright.runs.score_tables import item_scores

Side = tuple["Run", "Samples"]


def paired_places(a: Side, b: Side, scorers: Mapping[str, str]) -> list[array[Any]]:
    """Places in A and in B, each as its difference from the one before, and mean scores over repeats, nan where there is none.

    The place is that of an item's first repeat. In the order of A. scorers: of the tasks that are compared.
    """
    scores = [item_scores(run, scorers) for run, _ in (a, b)]
    found: list[NDArray[np.float64]] = [np.zeros((4, 0))]
    for task in scorers:
        own = [one[task] for one in scores]
        pairing = pair_items(own)
        first, second = pairing.places
        _, in_a, in_b = np.intersect1d(first, second, assume_unique=True, return_indices=True)
        sides = []
        for (_, samples), one, rows in ((a, own[0], in_a), (b, own[1], in_b)):
            sides.append((_places(samples, task, one.keys[rows]), one.values[rows]))
        made = np.stack([sides[0][0], sides[1][0], sides[0][1], sides[1][1]])
        found.append(made[:, (made[0] >= 0) & (made[1] >= 0)])
    whole = np.concatenate(found, axis=1)
    whole = whole[:, np.argsort(whole[0], kind="stable")]
    steps = np.diff(whole[:2], axis=1, prepend=0).astype(np.int32)
    return [
        array("i", steps[0].tobytes()),
        array("i", steps[1].tobytes()),
        *(array("d", row.tobytes()) for row in whole[2:]),
    ]


def _places(samples: Samples, task: str, keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Where the first repeat of each item stands, -1 for one that is not there."""
    code = (samples.columns["task"].names or {}).get(task, -1)
    rows = np.flatnonzero(np.frombuffer(samples.tasks, np.int32) == code)
    if not len(rows):
        return np.full(len(keys), -1.0)
    own = np.frombuffer(samples.keys, np.int64)[rows]
    order = np.lexsort((np.frombuffer(samples.draws, np.int32)[rows], own))
    at = np.minimum(np.searchsorted(own, keys, sorter=order), len(own) - 1)
    return np.where(own[order[at]] == keys, rows[order[at]], -1).astype(float)
