"""Matches the items of several runs: which of them are the same question.

Items are the same where their ids and the recorded questions are (`row_content`). The same id
with another question is another item. Another id with the same question is the same item, where
every run has the question only once: programs number rows anew. An item of which a record holds
nothing but the id is matched by it, and `unknown` counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from evalwright.runs.scores import UNKNOWN, ItemScores, names_question

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Places = NDArray[np.intp]

_ODD = -7046029254386353131
"""A multiplier that spreads ids over all 64 bits, so that id plus content is unique to the pair."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """The items of several runs, each once.

    Attributes:
        keys: (items,), hashed ids as in the first run that has the item, in sorted order.
        contents: (items,), hashed questions, likewise.
        places: for each run, the positions of its items in this list.
        differing: (runs, runs), ids that two runs both have for different questions; these items
            are not compared.
        renumbered: (runs, runs), questions that two runs have under different ids.
        unknown: (runs,), items whose question is not recorded.
    """

    keys: NDArray[np.int64]
    contents: NDArray[np.int64]
    places: tuple[NDArray[np.intp], ...]
    differing: NDArray[np.int64]
    renumbered: NDArray[np.int64]
    unknown: NDArray[np.int64]

    def only(self, items: NDArray[np.intp]) -> Pairing:
        """Select some of the items; they no longer have positions in the runs.

        The counts of differences between runs stay those of all items.
        """
        return replace(
            self, keys=self.keys[items], contents=self.contents[items], places=()
        )


def pair_items(scores: Sequence[ItemScores]) -> Pairing:
    """Match the items of the runs."""
    import numpy as np

    runs = len(scores)
    first_run = scores[0]
    if all(
        _are_equal(item_scores.keys, first_run.keys)
        and _are_equal(item_scores.contents, first_run.contents)
        for item_scores in scores[1:]
    ):
        none = np.zeros((runs, runs), np.int64)
        places = np.arange(len(first_run.keys))
        unknown = np.full(runs, np.count_nonzero(first_run.contents == UNKNOWN))
        return Pairing(
            first_run.keys, first_run.contents, (places,) * runs, none, none, unknown
        )
    ids = np.concatenate([run_scores.keys for run_scores in scores])
    run = np.repeat(np.arange(runs), [len(run_scores.keys) for run_scores in scores])
    contents = np.concatenate([run_scores.contents for run_scores in scores])
    keys, first, by_id, counts = np.unique(
        ids, return_index=True, return_inverse=True, return_counts=True
    )
    unknown = np.bincount(run[contents == UNKNOWN], minlength=runs)
    if unknown.any():
        contents = _filled(contents, by_id, len(keys))
    clash = contents != contents[first][by_id]
    again = _asked_again(contents, run, by_id, clash | (counts < runs)[by_id], runs)
    place = by_id
    if clash.any() or again.any():
        same = np.unique(
            np.where(again, contents, ids * np.int64(_ODD) + contents),
            return_inverse=True,
        )[1]
        first = np.unique(same, return_index=True)[1]
        order = np.lexsort((contents[first], ids[first]))
        first = first[order]
        place = np.argsort(order)[same]
        keys = ids[first]
        double = np.r_[False, keys[1:] == keys[:-1]]
        # Make the key unique where items of different questions share an id.
        keys = np.where(double, keys * np.int64(_ODD) + contents[first], keys)
    return Pairing(
        keys,
        contents[first],
        tuple(place[run == row] for row in range(runs)),
        _differing(runs, run, by_id, place, np.isin(by_id, by_id[clash])),
        _renumbered(runs, run, by_id, place, again),
        unknown,
    )


def _are_equal(a: NDArray[np.int64], b: NDArray[np.int64]) -> bool:
    import numpy as np

    return a is b or np.array_equal(a, b)


def _filled(
    contents: NDArray[np.int64], by_id: NDArray[np.intp], n_ids: int
) -> NDArray[np.int64]:
    """Fill in unknown contents from the first run that has the question of that id."""
    import numpy as np

    known_rows = (contents != UNKNOWN).nonzero()[0][::-1]
    known_contents = np.zeros(n_ids, np.int64)
    # the last of several assignments counts, which is the first run's
    known_contents[by_id[known_rows]] = contents[known_rows]
    filled: NDArray[np.int64] = np.where(
        contents == UNKNOWN, known_contents[by_id], contents
    )
    return filled


def _asked_again(
    contents: NDArray[np.int64],
    run: _Places,
    by_id: _Places,
    unpaired: NDArray[np.bool_],
    runs: int,
) -> NDArray[np.bool_]:
    """Find the rows whose question has several ids, but only one in each run.

    `unpaired` are the rows whose id some run lacks.
    """
    import numpy as np

    is_repeated = np.zeros(len(contents), bool)
    candidates = contents[unpaired & names_question(contents)]
    rows = (
        np.isin(contents, candidates).nonzero()[0]
        if len(candidates)
        else is_repeated.nonzero()[0]
    )
    if not len(rows):
        return is_repeated
    questions, code = np.unique(contents[rows], return_inverse=True)
    low = np.full(len(questions), len(contents))
    high = np.full(len(questions), -1)
    np.minimum.at(low, code, by_id[rows])
    np.maximum.at(high, code, by_id[rows])
    once = (
        np.bincount(code * runs + run[rows], minlength=len(questions) * runs)
        .reshape(-1, runs)
        .max(axis=1)
        == 1
    )
    is_repeated[rows] = ((low < high) & once)[code]
    return is_repeated


def _differing(
    runs: int, run: _Places, by_id: _Places, place: _Places, rows: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Count ids that two runs have for different questions, except where both match other ids.

    `rows` is a mask of the rows with such ids.
    """
    import numpy as np

    was_asked = np.zeros((runs, place.max(initial=0) + 1), bool)
    was_asked[run, place] = True

    def apart(
        i: int, j: int, ids_i: NDArray[np.int64], ids_j: NDArray[np.int64]
    ) -> int:
        return int((~(was_asked[j, ids_i] & was_asked[i, ids_j])).sum())

    return _of_pairs(_table(runs, run[rows], by_id[rows], place[rows]), apart)


def _renumbered(
    runs: int, run: _Places, by_id: _Places, place: _Places, rows: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Count items that two runs have under different ids.

    `rows` is a mask of the rows of such items.
    """
    return _of_pairs(
        _table(runs, run[rows], place[rows], by_id[rows]),
        lambda i, j, codes_i, codes_j: len(codes_i),
    )


def _of_pairs(
    table: NDArray[np.int64],
    count: Callable[[int, int, NDArray[np.int64], NDArray[np.int64]], int],
) -> NDArray[np.int64]:
    """Apply a count to each pair of runs, (runs, runs).

    It gets the values that both runs have and that differ.
    """
    import numpy as np

    pair_counts = np.zeros((len(table), len(table)), np.int64)
    for i, j in combinations(range(len(table)) if table.size else (), 2):
        codes_i, codes_j = table[
            :, (table[i] >= 0) & (table[j] >= 0) & (table[i] != table[j])
        ][[i, j]]
        pair_counts[i, j] = pair_counts[j, i] = count(i, j, codes_i, codes_j)
    return pair_counts


def _table(
    runs: int, run: _Places, column: _Places, value: _Places
) -> NDArray[np.int64]:
    """Arrange values by run and column, (runs, distinct columns), -1 where there is none."""
    import numpy as np

    columns, code = np.unique(column, return_inverse=True)
    table = np.full((runs, len(columns)), -1, np.int64)
    table[run, code] = value
    return table
