"""All pairs of many models on the same items at once: paired differences with their standard errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_CELLS = 2_000_000  # pairs x units held at a time: 16 MB


@dataclass(frozen=True, slots=True)
class AllPairs:
    """Paired differences where models may lack items: all (models, models), each pair on the items that both have.

    `n` counts common items, `units` the items or clusters among them. `difference` is nan without a common item,
    `error` with fewer than two units, and 0 where the differences show no spread. `binary`: right or wrong on single
    items.
    """

    difference: F64
    error: F64
    n: I64
    units: I64
    binary: Bools

    @property
    def alike(self) -> Bools:
        """Where several units show no spread at all."""
        found: Bools = (self.error == 0) & (self.units > 1)
        return found


def common_differences(scores: F64, codes: I64 | None = None) -> AllPairs:
    """Paired differences of every two rows of `scores` (models, items; nan = missing) on their common items.

    `codes`: (items,) cluster numbers 0..G-1, or None. The standard error of a pair is that of `compare_paired`:
    sqrt(G/(G-1) sum_g (sum_{i in g} (d_i - mean d))^2) / n, with items as their own clusters where none are given.
    """
    filled, there = _filled(scores)
    common = there @ there.T
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = (filled @ there.T - there @ filled.T) / common
    if codes is None:
        squares = filled**2
        spread = squares @ there.T + there @ squares.T - 2 * (filled @ filled.T)
        spread -= common * np.nan_to_num(difference) ** 2
        units = common
        scale = squares.sum(axis=1)
    else:
        spread, units, scale = np.zeros_like(common), np.zeros_like(common), np.zeros(len(scores))
        for totals, counts in _blocks(filled, there, codes, np.nan_to_num(difference)):
            spread += np.einsum("gij,gij->ij", totals, totals)
            units += np.count_nonzero(counts, axis=0)
        scale += np.einsum("mi,mi->m", filled, filled) * float(np.bincount(codes).max(initial=1))
    # Rounding leaves a trace where two rows are equal.
    spread[spread < 1e-12 * max(float(scale.max(initial=0.0)), 1e-300)] = 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(spread * units / (units - 1)) / common
    error[units < 2] = np.nan
    right_or_wrong = ((scores == 0) | (scores == 1) | np.isnan(scores)).all(axis=1) & (codes is None)
    binary = right_or_wrong[:, None] & right_or_wrong & (common > 0)
    return AllPairs(difference, error, common.astype(np.int64), units.astype(np.int64), binary)


def common_influences(
    scores: F64, codes: I64, difference: F64, pairs: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]
) -> npt.NDArray[np.float32]:
    """What each group adds to the difference of each of `pairs`: (groups in some order, pairs), the sum of d_i - mean d
    over the items of the group that both models have, over the number of their common items.

    `codes`: (items,) group numbers 0..G-1; `difference`: (models, models), as `common_differences` gives it.
    """
    filled, there = _filled(scores)
    first, second = pairs
    counts = np.maximum(there @ there.T, 1.0)[first, second]
    blocks = _blocks(filled, there, codes, np.nan_to_num(difference))
    return np.concatenate([(totals[:, first, second] / counts).astype(np.float32) for totals, _ in blocks])


def _filled(scores: F64) -> tuple[F64, F64]:
    """Scores less the mean of their item, 0 where missing, and 1 where there is a score, else 0.

    No difference changes by what is taken from both sides; the smaller numbers leave less rounding.
    """
    missing = np.isnan(scores)
    there = (~missing).astype(np.float64)
    filled = np.where(missing, 0.0, scores)
    filled = (filled - filled.sum(axis=0) / np.maximum(there.sum(axis=0), 1.0)) * there
    return filled, there


def _blocks(filled: F64, there: F64, codes: I64, difference: F64) -> Iterator[tuple[F64, F64]]:
    """Totals of d_i - mean d and numbers of common items for some groups at a time, (groups, models, models) each.

    Groups come by size, so that padding them to one length costs little; an item beyond the last one is empty.
    """
    models, items = filled.shape
    sizes = np.bincount(codes)
    order, starts = np.argsort(codes, kind="stable"), np.cumsum(sizes) - sizes
    by_size = np.argsort(sizes, kind="stable")
    filled, there = np.pad(filled, ((0, 0), (0, 1))), np.pad(there, ((0, 0), (0, 1)))
    step = max(1, _CELLS // models**2)
    for begin in range(0, len(sizes), step):
        groups = by_size[begin : begin + step]
        place = np.arange(int(sizes[groups].max()))
        inside = place < sizes[groups][:, None]
        rows = np.where(inside, order[np.minimum(starts[groups][:, None] + place, items - 1)], items)
        x, o = filled[:, rows].transpose(1, 0, 2), there[:, rows].transpose(1, 0, 2)
        sums = x @ o.transpose(0, 2, 1)
        counts = o @ o.transpose(0, 2, 1)
        yield sums - sums.transpose(0, 2, 1) - counts * difference, counts
