"""All pairs of many models on the same items at once: paired differences, their spread, and the score test of each.

The score test of a mean difference: one test for the interval, the p-value, equivalence and what could have been seen.

Right or wrong, item by item: b items where only a was right, c where only b was, of n. The difference delta is rejected where

    |b - c - n delta| / sqrt(n (2 q + delta - delta^2)) > t,    q = the likeliest share of "only b right" given delta

(Tango 1998), and the interval holds what is not rejected. A t from the data's own spread covers 78 to 90% where few items differ,
for then a spread that is small by chance comes with a difference that is; the variance at the hypothesis does not have that
fault. A quarter of a count is added on both sides: it brings the test at 0 to McNemar's mid-p, and exact coverage to 95% and more.

Everything else is brought to this form by an effective number of items, as Rao & Scott (1984) do for proportions: scores between
right and wrong, repeated draws and clusters have another variance than such counts; n is divided by the ratio of the two, one for
the scores times one for the clusters (at least 1). Where scores tie, that of the scores counts one more item that differs by the
whole range with the weight of the ties, because few small differences say little about large ones. Quantiles are Student's with the degrees of freedom of the standard error (`units`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from evalwright.statistics.units import F64, I64, Range, cluster_spread

Bools = npt.NDArray[np.bool_]
Starts = npt.NDArray[np.intp]
Pairs = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]
_CELLS = 4_000_000  # pairs x items held at a time: 32 MB
_NOISE = 1e-12


MissingPolicy = Literal["scored", "worst-case"]
"""What stands for the items that a run has no score for. "scored": nothing, the items that both runs have count. "worst-case": the
worst and the best that they could have scored (Manski's bounds), and a verdict holds whatever they were."""


@dataclass(frozen=True, slots=True)
class AllPairs:
    """Paired differences where models may lack items: all (models, models), each pair on the items that both have.

    `n` counts common items, `units` the items or clusters among them. `difference` is nan without a common item, `error` with
    fewer than two units, and 0 where the differences show no spread; `freedom` are its degrees of freedom, `worth` the units of
    equal size that the data are worth. `counts`: of the score test, in units of `span`, the range of a score; None where that is
    not known, and a t test takes its place. `n_missing` counts the items of each pair on which either is missing.
    """

    difference: F64
    error: F64
    freedom: F64
    n: I64
    units: I64
    worth: F64
    counts: Counts | None
    span: float
    n_missing: I64

    def limits(self, share: npt.ArrayLike) -> tuple[F64, F64]:
        """The interval of each pair with error rate `share` (models, 1) or (models, models); nan where there is none.

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
            deviate = (self.difference - at) / self._some_error
            out: F64 = np.asarray(stdtr(self.freedom, -deviate if above else deviate))
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


@dataclass(frozen=True, slots=True)
class WorstCase:
    """What can be said of all pairs whatever the missing scores would have been (Manski 2003).

    `scored`: the pairs on the items that both have. `worst`: the same differences with the missing scores of the row's model at the
    bottom of the range and those of the column's at the top; seen from the other side this is the best for the row. None where the
    range of a score is not known, and then nothing can be said of a pair that lacks an item (nan).
    """

    scored: AllPairs
    worst: AllPairs | None

    def limits(self, share: npt.ArrayLike) -> tuple[F64, F64]:
        """`AllPairs.limits` that hold for the scored items and for both fillings of those that are missing."""
        scored = self.scored
        low, high = scored.limits(share)
        if self.worst is None:
            return self._bounded(low), self._bounded(high)
        alone = (scored.units <= 1) & (scored.n_missing > 0)  # then the fillings alone say something
        low, high = (np.where(alone, np.nan, end) for end in (low, high))
        least = self.worst.limits(share)[0]
        turned = np.transpose(np.broadcast_to(share, low.shape))
        most = -(least if np.ndim(share) == 0 else self.worst.limits(turned)[0]).T
        low, high = np.fmin(low, least), np.fmax(high, most)
        return np.where(scored.n > 0, low, np.nan), np.where(scored.n > 0, high, np.nan)

    def tail(self, at: float, above: bool = True) -> F64:
        """`AllPairs.tail`, the greatest of the fillings."""
        out = self.scored.tail(at, above)
        if self.worst is None:
            return self._bounded(out)
        filled = self.worst.tail(at) if above else self.worst.tail(-at).T
        return np.where(self.scored.n > 0, np.fmax(out, filled), np.nan)

    def p_values(self) -> F64:
        """Two-sided p-value of no difference; 1 where the fillings lie on different sides of 0."""
        out: F64 = np.minimum(1.0, 2.0 * np.minimum(self.tail(0.0), self.tail(0.0, above=False)))
        return out

    def visible(self, level: float, power: float) -> F64:
        """`AllPairs.visible`, whatever is missing."""
        seen = self.scored.visible(level, power)
        if self.worst is None:
            return self._bounded(seen)
        # A filling moves the difference towards 0; what is left must be seen on as many items as the filling has.
        shifted = self.worst.visible(level, power) + self.scored.difference - self.worst.difference
        most = np.fmin(self.scored.span, np.maximum(shifted, shifted.T))
        return np.where(self.scored.n_missing > 0, np.fmax(seen, most), seen)

    def _bounded(self, numbers: F64) -> F64:
        """nan where something is missing and cannot be filled."""
        return np.where(self.scored.n_missing > 0, np.nan, numbers)


def common_differences(
    scores: F64, codes: I64 | None = None, value_range: Range | None = None, missing: Bools | None = None
) -> AllPairs:
    """Paired differences of every two rows of `scores` (models, items; nan = no score) on their common items.

    `codes`: (items,) cluster numbers 0..G-1, or None. `value_range`: the range of a score, None where it is not known.
    `missing`: (models, items), which of those without a score are missing; the others were never asked. None: none is. They are
    counted, and nothing else.
    """
    starts = None
    if codes is not None:
        order, starts = grouped(codes)
        scores, missing = scores[:, order], None if missing is None else missing[:, order]
    return _all_pairs(_sums(scores, starts), _span(value_range), _count_missing(scores, missing))


def worst_case(
    scores: F64, codes: I64 | None, value_range: Range | None, missing: Bools, scored: AllPairs | None = None
) -> WorstCase:
    """What holds whatever the `missing` scores would have been; arguments as of `common_differences`, whose result is `scored`."""
    scored = scored or common_differences(scores, codes, value_range, missing)
    if value_range is None or not missing.any():
        return WorstCase(scored, None)
    starts = None
    if codes is not None:
        order, starts = grouped(codes)
        scores, missing = scores[:, order], missing[:, order]
    low, high = (np.where(missing, end, scores) for end in value_range)
    sums = _filled_sums(_sums(scores, starts), low, high, starts, scored.n_missing > 0)
    return WorstCase(scored, _all_pairs(sums, _span(value_range), np.zeros_like(scored.n_missing)))


def _span(value_range: Range | None) -> float:
    return math.nan if value_range is None else value_range[1] - value_range[0]


def _count_missing(scores: F64, missing: Bools | None) -> I64:
    """(models, models): items on which either of two models is missing, of those that both were asked."""
    if missing is None or not missing.any():
        return np.zeros((len(scores),) * 2, dtype=np.int64)
    asked = (missing | ~np.isnan(scores)).astype(np.float64)
    there = asked - missing
    n_missing = np.rint(asked @ asked.T - there @ there.T).astype(np.int64)
    np.fill_diagonal(n_missing, 0)
    return n_missing


def checked_missing(missing: npt.ArrayLike | None, rows: F64) -> Bools:
    """Which of the scores that are not there are missing: all of them if `missing` is None, none if it is False."""
    there = ~np.isnan(rows)
    if missing is None:
        return ~there
    lost: Bools = np.asarray(missing, dtype=bool)
    lost = np.broadcast_to(lost, rows.shape) if lost.ndim == 0 else lost
    if lost.shape != rows.shape or (lost & there).any():
        raise ValueError(
            f"missing must say for each of the scores {rows.shape} whether it is missing, and a score that is there is not"
        )
    return lost


_SUMS = ("difference", "error", "freedom", "n", "units", "better", "worse", "squares", "ties", "worth")


def _sums(scores: F64, starts: Starts | None) -> dict[str, F64]:
    """What `_spread` gives, for all pairs."""
    models = len(scores)
    found = {name: np.full((models, models), np.nan) for name in _SUMS}
    known = _known(scores)
    for row in range(models - 1):
        for others, gaps, there in _gaps(row, known, known, np.arange(row + 1, models)):
            here = _spread(gaps, there, starts)
            turned = {
                **here,
                "difference": -here["difference"],
                "better": here["worse"],
                "worse": here["better"],
            }
            for name in _SUMS:
                found[name][row, others] = here[name]
                found[name][others, row] = turned[name]
    has = ~np.isnan(scores)
    alone = has.sum(axis=1)
    units = alone if starts is None else np.logical_or.reduceat(has, starts, axis=1).sum(axis=1)
    for name in _SUMS:  # a model against itself
        own = {"n": alone, "ties": alone, "units": units, "worth": units, "freedom": units - 1}.get(name, 0.0)
        np.fill_diagonal(found[name], own)
    return found


def _filled_sums(
    found: dict[str, F64], low: F64, high: F64, starts: Starts | None, where: Bools
) -> dict[str, F64]:
    """The same of `low` (the rows' models) less `high` (the columns'), where something is missing; as `found` elsewhere."""
    filled = {name: values.copy() for name, values in found.items()}
    left, right = _known(low), _known(high)
    for row in np.flatnonzero(where.any(axis=1)).tolist():
        for others, gaps, there in _gaps(row, left, right, np.flatnonzero(where[row])):
            here = _spread(gaps, there, starts)
            for name in _SUMS:
                filled[name][row, others] = here[name]
    return filled


def _all_pairs(found: dict[str, F64], span: float, n_missing: I64) -> AllPairs:
    counts = None
    if not math.isnan(span):
        sums = found["better"] / span, found["worse"] / span, found["squares"] / span**2, found["ties"]
        counts = effective_counts(found["n"], *sums, found["error"] / span, found["freedom"], found["worth"])
    return AllPairs(
        found["difference"], found["error"], found["freedom"], found["n"].astype(np.int64),
        np.nan_to_num(found["units"]).astype(np.int64), found["worth"], counts, span, n_missing,
    )  # fmt: skip


def common_influences(scores: F64, codes: I64, difference: F64, pairs: Pairs) -> npt.NDArray[np.float32]:
    """What each group adds to the difference of each of `pairs`: (groups, pairs), the sum of d_i - mean d over the items of the
    group that both models have, over the number of their common items; all pairs (row < column) in order.

    `codes`: (items,) group numbers 0..G-1; `difference`: (models, models), as `common_differences` gives it.
    """
    order, starts = grouped(codes)
    parts = []
    known = _known(scores[:, order])
    for row in range(len(scores) - 1):
        for others, gaps, there in _gaps(row, known, known, np.arange(row + 1, len(scores))):
            gaps -= np.nan_to_num(difference[row, others])[:, None]
            n = np.full(len(gaps), gaps.shape[1]) if there is None else there.sum(axis=1)
            sums = np.add.reduceat(gaps if there is None else gaps * there, starts, axis=1)
            parts.append((sums / np.maximum(n, 1)[:, None]).T.astype(np.float32))
    return np.concatenate(parts, axis=1)


_Known = tuple[F64, Bools | None]
"""Scores with 0 where there is none, and where there is one (None: everywhere)."""


def _known(scores: F64) -> _Known:
    has: Bools = ~np.isnan(scores)
    return (scores, None) if has.all() else (np.where(has, scores, 0.0), has)


def _gaps(
    row: int, left: _Known, right: _Known, others: npt.NDArray[np.intp]
) -> Iterator[tuple[npt.NDArray[np.intp], F64, Bools | None]]:
    """Some of `others` at a time: their places, differences of one model's scores from theirs (others, items), 0 where one has no
    score, and where both have (None: everywhere)."""
    own, has = left[0][row], None if left[1] is None else left[1][row]
    step = max(1, _CELLS // max(1, len(own)))
    for begin in range(0, len(others), step):
        places = others[begin : begin + step]
        there = has if right[1] is None else right[1][places] if has is None else right[1][places] & has
        gaps = own - right[0][places]
        if there is not None:
            there = np.broadcast_to(there, gaps.shape)
            gaps *= there
        yield places, gaps, there


def grouped(codes: I64) -> tuple[I64, Starts]:
    """An order of the items that puts each group together, and where each begins."""
    order = np.argsort(codes, kind="stable")
    return order, np.flatnonzero(np.diff(codes[order], prepend=-1))


def _spread(gaps: F64, there: Bools | None, starts: Starts | None) -> dict[str, F64]:
    """The sums that `common_differences` puts together, each (others,). starts: where each cluster of items begins."""
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


# -- score test ----------------------------------------------------------------------------------------------


ADDED = 0.25
_STEPS = 50


@dataclass(frozen=True, slots=True)
class Counts:
    """Effective counts: items where a did better and worse, in whole ranges, of `size` items; arrays of one shape."""

    better: F64
    worse: F64
    size: F64
    freedom: F64

    @property
    def difference(self) -> F64:
        """Where the interval is centred; the added counts draw it a little towards 0."""
        out: F64 = (self.better - self.worse) / self.size
        return out

    def deviate(self, at: npt.ArrayLike) -> F64:
        """How far the counts lie above the difference `at` (-1 to 1), in standard errors at that difference."""
        at = np.asarray(at, dtype=np.float64)
        variance, _ = self._variance(at)
        with np.errstate(divide="ignore", invalid="ignore"):
            out: F64 = (self.better - self.worse - self.size * at) / np.sqrt(variance)
        return out

    def _variance(self, at: F64) -> tuple[F64, F64]:
        """n (2 q + d - d^2) at the difference d, and its derivative there."""
        turned, gap = at < 0, np.abs(at)
        up, down = np.where(turned, self.worse, self.better), np.where(turned, self.better, self.worse)
        slope = 2 * self.size - up + down
        linear = slope * gap - up - down
        root = np.sqrt(np.maximum(linear**2 + 8 * self.size * down * gap * (1 - gap), 0.0))
        variance = np.maximum((root - linear) / 2 + self.size * gap * (1 - gap), 0.0)
        steep = (linear * slope + 4 * self.size * down * (1 - 2 * gap)) / np.maximum(root, 1e-300)
        change = (steep - slope) / 2 + self.size * (1 - 2 * gap)
        return variance, np.where(turned, -change, change)

    def tail(self, at: npt.ArrayLike, above: bool = True) -> F64:
        """One-sided p-value of "not above" (or "not below") the difference `at`."""
        from scipy.special import stdtr

        found = self.deviate(at)
        out: F64 = np.asarray(stdtr(self.freedom, -found if above else found))
        return out

    def limits(self, share: npt.ArrayLike) -> tuple[F64, F64]:
        """The interval with the two-sided error rate `share`."""
        from scipy.special import stdtrit

        critical = -np.asarray(stdtrit(self.freedom, np.asarray(share) / 2))
        return self._end(critical, -1.0), self._end(critical, 1.0)

    def _end(self, critical: F64, side: float) -> F64:
        """Where (b - c - n d)^2 = critical^2 n (2 q + d - d^2) on one side of the difference: Newton's method from the end of the
        range, and half the way where that leaves the bracket."""
        apart = self.better - self.worse
        inner = apart / self.size + np.zeros_like(critical)
        outer = np.full_like(inner, side)
        at = outer
        for _ in range(_STEPS):
            variance, change = self._variance(at)
            gap = self.size * at - apart
            excess = gap**2 - critical**2 * variance
            inner, outer = np.where(excess > 0, inner, at), np.where(excess > 0, at, outer)
            with np.errstate(divide="ignore", invalid="ignore"):
                new = at - excess / (2 * self.size * gap - critical**2 * change)
            new = np.where((new - inner) * (outer - new) >= 0, new, (inner + outer) / 2)
            moved, at = float(np.fmax.reduce(np.abs(new - at), axis=None, initial=0.0)), new
            if moved < 1e-13:
                break
        return at

    def visible(self, level: float, power: float) -> F64:
        """The difference that so many items show with probability `power`: d sqrt(n) = t_level sqrt(r) + t_power sqrt(r - d^2).

        r: the share of items that differ, as seen, but never below d (Connor 1987). At most 1.
        """
        from scipy.special import stdtrit

        critical, more = (np.asarray(stdtrit(self.freedom, at)) for at in (0.5 + level / 2, power))
        rest = np.sqrt(np.maximum(self.size - critical**2 + more**2, 0.0))
        # The difference over sqrt(r), where r is above the difference.
        reach = (critical * np.sqrt(self.size) + more * rest) / (self.size + more**2)
        rate = (self.better + self.worse) / self.size
        seen = np.minimum(reach * np.maximum(np.sqrt(rate), reach), 1.0)
        return np.where(self.size > critical**2, seen, 1.0)


def effective_counts(
    n: F64, better: F64, worse: F64, squares: F64, ties: F64, error: F64, freedom: F64, units: F64
) -> Counts:
    """The counts of differences between -1 and 1: of n, with these sums of their positive and negative parts and of their squares,
    and this many that are 0. error, freedom, units: of their mean, as `units.Spread`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, weight = (better - worse) / n, ties / n
        padded = ((better - worse) / (n + weight)) ** 2
        own = (squares + weight) / (n + weight) - padded
        whole = (better + worse + weight) / (n + weight) - padded
        # Rounding leaves a trace of variance where all differences are alike.
        graded = np.where((own > _NOISE * squares / n) & (whole > 0), own / whole, 1.0)
        variance = squares / n - mean**2
        clustered = np.where((error > 0) & (variance > 0), error**2 * n / variance, n / units)
        design = graded * np.maximum(clustered, 1.0)
        return Counts(
            better / design + ADDED, worse / design + ADDED, n / design + 2 * ADDED, np.maximum(freedom, 1.0)
        )
