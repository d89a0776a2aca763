"""All pairs of many models on the same items at once: paired differences, their spread, and the score test of each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalwright.statistics.score_test import Counts, effective_counts
from evalwright.statistics.units import F64, I64, cluster_spread

Bools = npt.NDArray[np.bool_]
Pairs = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]
_CELLS = 4_000_000  # pairs x items held at a time: 32 MB
_NOISE = 1e-12


@dataclass(frozen=True, slots=True)
class AllPairs:
    """Paired differences where models may lack items: all (models, models), each pair on the items that both have.

    `n` counts common items, `units` the items or clusters among them. `difference` is nan without a common item, `error` with
    fewer than two units, and 0 where the differences show no spread; `freedom` are its degrees of freedom, `worth` the units of equal size that the data
    are worth. `counts`: of the score
    test, in units of `span`, the range of a score; None where that is not known, and a t test takes its place.
    """

    difference: F64
    error: F64
    freedom: F64
    n: I64
    units: I64
    worth: F64
    counts: Counts | None
    span: float

    def limits(self, share: npt.ArrayLike) -> tuple[F64, F64]:
        """The interval of each pair with error rate `share` (models, 1); nan where there is none.

        The whole range where one unit alone was seen.
        """
        from scipy.special import stdtrit

        if self.counts is None:
            half = -np.asarray(stdtrit(self.freedom, np.asarray(share) / 2)) * self._some_error
            return self.difference - half, self.difference + half
        low, high = (self.span * end for end in self.counts.limits(share))
        # The added counts draw the centre to 0, but the difference itself is never outside.
        low, high = np.minimum(low, self.difference), np.maximum(high, self.difference)
        alone = self.units == 1
        return np.where(alone, -self.span, low), np.where(alone, self.span, high)

    def tail(self, at: float, above: bool = True) -> F64:
        """One-sided p-value of a true difference not above (or not below) `at`; nan where there is none."""
        from scipy.special import stdtr

        if self.counts is None:
            found = (self.difference - at) / self._some_error
            out: F64 = np.asarray(stdtr(self.freedom, -found if above else found))
        else:
            out = self.counts.tail(at / self.span, above)
        return np.where(self.units > 1, out, np.nan)

    def p_values(self) -> F64:
        """Two-sided p-value of no difference."""
        out: F64 = np.minimum(1.0, 2.0 * np.minimum(self.tail(0.0), self.tail(0.0, above=False)))
        return out

    def visible(self, level: float, power: float) -> F64:
        """The difference that each pair would have shown with probability `power`."""
        from scipy.special import stdtrit

        if self.counts is None:
            quantiles = [np.asarray(stdtrit(self.freedom, at)) for at in (0.5 + level / 2, power)]
            out: F64 = sum(quantiles) * self._some_error
            return out
        seen = np.where(self.units > 1, self.span * self.counts.visible(level, power), self.span)
        return np.where(self.n > 0, seen, np.nan)

    @property
    def _some_error(self) -> F64:
        return np.where(self.error > 0, self.error, np.nan)


def common_differences(scores: F64, codes: I64 | None = None, span: float = math.nan) -> AllPairs:
    """Paired differences of every two rows of `scores` (models, items; nan = missing) on their common items.

    `codes`: (items,) cluster numbers 0..G-1, or None. `span`: the range of a score, nan where it is not known.
    """
    models = len(scores)
    names = ("difference", "error", "freedom", "n", "units", "better", "worse", "squares", "ties", "worth")
    found = {name: np.full((models, models), np.nan) for name in names}
    starts = None
    if codes is not None:  # the items of a cluster side by side
        order, starts = _grouped(codes)
        scores, codes = scores[:, order], codes[order]
    for row, others, gaps, there in _gaps(scores):
        here = _spread(gaps, there, starts)
        turned = {**here, "difference": -here["difference"], "better": here["worse"], "worse": here["better"]}
        for name in names:
            found[name][row, others] = here[name]
            found[name][others, row] = turned[name]
    has = ~np.isnan(scores)
    alone = has.sum(axis=1)
    units = alone if codes is None else np.array([np.count_nonzero(np.bincount(codes[one])) for one in has])
    for name in names:  # a model against itself
        own = {"n": alone, "ties": alone, "units": units, "worth": units, "freedom": units - 1}.get(name, 0.0)
        np.fill_diagonal(found[name], own)
    counts = None
    if not math.isnan(span):
        sums = found["better"] / span, found["worse"] / span, found["squares"] / span**2, found["ties"]
        counts = effective_counts(found["n"], *sums, found["error"] / span, found["freedom"], found["worth"])
    return AllPairs(
        found["difference"], found["error"], found["freedom"], found["n"].astype(np.int64),
        np.nan_to_num(found["units"]).astype(np.int64), found["worth"], counts, span,
    )  # fmt: skip


def common_influences(scores: F64, codes: I64, difference: F64, pairs: Pairs) -> npt.NDArray[np.float32]:
    """What each group adds to the difference of each of `pairs`: (groups, pairs), the sum of d_i - mean d over the items of the
    group that both models have, over the number of their common items; all pairs (row < column) in order.

    `codes`: (items,) group numbers 0..G-1; `difference`: (models, models), as `common_differences` gives it.
    """
    order, starts = _grouped(codes)
    parts = []
    for row, others, gaps, there in _gaps(scores[:, order]):
        gaps -= np.nan_to_num(difference[row, others])[:, None]
        n = np.full(len(gaps), gaps.shape[1]) if there is None else there.sum(axis=1)
        sums = np.add.reduceat(gaps if there is None else gaps * there, starts, axis=1)
        parts.append((sums / np.maximum(n, 1)[:, None]).T.astype(np.float32))
    return np.concatenate(parts, axis=1)


def _gaps(scores: F64) -> Iterator[tuple[int, npt.NDArray[np.intp], F64, Bools | None]]:
    """For each model and some of those after it: differences (others, items), 0 where one has no score, and where both have
    (None: everywhere)."""
    step = max(1, _CELLS // max(1, scores.shape[1]))
    has = ~np.isnan(scores)
    complete, known = bool(has.all()), np.where(has, scores, 0.0)
    for row in range(len(scores) - 1):
        for begin in range(row + 1, len(scores), step):
            others = np.arange(begin, min(begin + step, len(scores)))
            gaps = known[row] - known[begin : begin + step]
            there = None if complete else has[row] & has[begin : begin + step]
            yield row, others, gaps if there is None else gaps * there, there


def _grouped(codes: I64) -> tuple[I64, npt.NDArray[np.intp]]:
    """An order of the items that puts each group together, and where each begins."""
    order = np.argsort(codes, kind="stable")
    return order, np.flatnonzero(np.diff(codes[order], prepend=-1))


def _spread(gaps: F64, there: Bools | None, starts: npt.NDArray[np.intp] | None) -> dict[str, F64]:
    """The sums that `common_differences` puts together, each (others,); `starts`: where each cluster begins."""
    others, items = gaps.shape
    n = np.full(others, float(items)) if there is None else there.sum(axis=1).astype(np.float64)
    total, apart = gaps.sum(axis=1), np.abs(gaps)
    ties = n - np.count_nonzero(gaps, axis=1)
    apart_sum = apart.sum(axis=1)
    squares = np.einsum("oi,oi->o", gaps, gaps)
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = total / n
        residuals = np.subtract(gaps, difference[:, None], out=apart)
        if there is not None:
            residuals *= there
        spread = np.einsum("oi,oi->o", residuals, residuals)
        if starts is None:
            error, freedom, units, worth = np.sqrt(spread / (n - 1) / n), n - 1, n, n
        else:
            sums = np.add.reduceat(residuals, starts, axis=1).T
            if there is None:
                sizes, of = np.diff(starts, append=items).astype(np.float64)[:, None], n[:1]
            else:
                sizes, of = np.add.reduceat(there, starts, axis=1, dtype=np.float64).T, n
            error, freedom, worth = cluster_spread(sums, sizes, of, spread)
            units = np.broadcast_to(np.count_nonzero(sizes, axis=0).astype(np.float64), n.shape)
        # Rounding leaves a trace where two rows are equal.
        error = np.where(error > _NOISE * np.maximum(np.sqrt(squares / n), 1e-300), error, 0.0)
    return {
        "difference": difference, "error": np.where(units > 1, error, np.nan), "freedom": freedom, "n": n, "units": units,
        "better": (apart_sum + total) / 2, "worse": (apart_sum - total) / 2, "squares": squares, "ties": ties, "worth": worth,
    }  # fmt: skip
