"""The delete-a-group jackknife, for metrics that are not means over items.

It turns them into means over groups of clusters. A pseudo-value of group g is theta + (G - 1)
(mean of theta without a group - theta without g): their mean is the metric itself, and their
spread over sqrt(G) is the jackknife's standard error (Shao & Wu 1989 for groups). So a t test
of the differences of two models' pseudo-values, group by group, is a paired test of the metric.
Groups hold whole clusters and are of about one size: with equal groups the error has G - 1
degrees of freedom, which does not hold for clusters of unequal size.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from evalwright.statistics.units import F64, I64

MOST_GROUPS = 100
MOST_REMADE = 25
"""Number of groups for a metric that must be recomputed from all items without each group.

Large groups also suit medians, for which small ones fail.
"""

FEW_GROUPS = 10
"""With fewer groups than this, the standard error of an interval is itself unreliable."""

_MIX = np.uint64(0x9E3779B97F4A7C15)


def _mix_bits(codes: I64) -> npt.NDArray[np.uint64]:
    """Hash codes to pseudo-random numbers, so that their order carries no meaning (SplitMix64)."""
    mixed = codes.view(np.uint64) * _MIX
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def jackknife_groups(codes: I64, most: int = MOST_GROUPS) -> I64:
    """Assign each row to a group 0..G-1, keeping clusters together and groups about equally large.

    Which cluster is in which group depends on the codes alone, not on their order.

    Args:
        codes: (rows,) cluster codes; a row may represent one item of several runs.
        most: upper limit of G. G is also at most the effective number of clusters (n^2 / sum of
            squared sizes), so that groups stay equal beside one large cluster.
    """
    names, inverse, sizes = np.unique(codes, return_inverse=True, return_counts=True)
    if not len(names):
        return np.zeros(0, np.int64)
    count = int(len(codes) ** 2 / float((sizes.astype(np.float64) ** 2).sum()) + 1e-9)
    # With 150 clusters of one size, 75 pairs rather than 50 pairs and 50 single ones.
    count = count // -(-count // most)
    order = np.lexsort((_mix_bits(names), -sizes))
    group = np.empty(len(names), np.int64)
    if sizes[order[0]] == sizes[order[-1]]:
        group[order] = np.arange(len(names)) % count
    else:  # the largest first, each into the group that is smallest so far
        heap = [(0, group_index) for group_index in range(count)]
        for name_index in order.tolist():
            filled, group_index = heap[0]
            group[name_index] = group_index
            heapq.heapreplace(heap, (filled + int(sizes[name_index]), group_index))
    groups: I64 = group[inverse]
    return groups


@dataclass(frozen=True, slots=True)
class SharedGroups:
    """Jackknife groups of items that several runs have in common.

    Runs that share clusters, directly or through others, have the same groups; no other runs do.

    Args:
        items: (items,) the number of an item's group among those of its runs, -1 if no run has it.
        sides: for each run, the number of the set of connected runs that it belongs to.
        keys: for each such set, a key for each group.
    """

    items: I64
    sides: tuple[int, ...]
    keys: tuple[I64, ...]

    def place(self, run: int) -> slice:
        """Return the slice that a run's groups occupy among the groups of all sets."""
        side = self.sides[run]
        start = sum(map(len, self.keys[:side]))
        return slice(start, start + len(self.keys[side]))


def shared_groups(
    codes: I64, was_asked: npt.NDArray[np.bool_], most: int = MOST_GROUPS
) -> SharedGroups:
    """Form the groups of some runs' items.

    Args:
        codes: (items,) cluster codes.
        was_asked: (runs, items), which run was asked which item.
        most: upper limit of the number of groups.
    """
    clusters = [np.unique(codes[row]) for row in was_asked]
    sides = list(range(len(clusters)))
    for b, a in combinations(range(len(clusters)), 2):
        if (
            sides[a] != sides[b]
            and np.intersect1d(clusters[a], clusters[b], assume_unique=True).size
        ):
            sides = [sides[b] if side == sides[a] else side for side in sides]
    items = np.full(len(codes), -1)
    keys = []
    for side in dict.fromkeys(sides):
        inside = was_asked[
            [row for row, run_side in enumerate(sides) if run_side == side]
        ].any(axis=0)
        items[inside] = jackknife_groups(codes[inside], most)
        keys.append(_group_keys(codes[inside], items[inside]))
    order = list(dict.fromkeys(sides))
    return SharedGroups(items, tuple(order.index(side) for side in sides), tuple(keys))


def _group_keys(codes: I64, groups: I64) -> I64:
    """Compute a key for each group that identifies its clusters.

    The same clusters have the same key in every task.
    """
    names, first = np.unique(codes, return_index=True)
    order = np.argsort(groups[first], kind="stable")
    starts = np.flatnonzero(np.diff(groups[first][order], prepend=-1))
    if not len(starts):
        return np.zeros(0, np.int64)
    keys: I64 = np.add.reduceat(_mix_bits(names)[order], starts).view(np.int64)
    return keys


def pseudo_values(on_all: float, without: F64) -> F64:
    """Compute the jackknife pseudo-values of a metric; their mean is `on_all`.

    Args:
        on_all: the metric over all groups.
        without: (groups,) the metric over all groups but one.
    """
    pseudo: F64 = on_all + (len(without) - 1) * (without.mean() - without)
    return pseudo
