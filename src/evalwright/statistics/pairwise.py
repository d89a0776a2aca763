"""Paired differences of all pairs of models on the same items, their standard errors, and the test.

One test gives the interval, the p-value, equivalence and the visible difference: the interval
contains the differences that the test does not reject.

**Right or wrong.** b items where only a was right, c where only b was, of n. The difference
delta is rejected where

    abs(b - c - n delta) / sqrt(n (2 q + delta - delta^2)) > z

with q the likeliest share of "only b right" given delta (Tango 1998). A quarter of a count is added
on both sides, which brings the exact size from 5.6 to 5.0%. At delta = 0 the counts are binomial
and McNemar's mid-p is known: where it is the smaller (12 wins to 0: 0.0002, the score test has
0.0007) the deviate between 0 and the difference is stretched until both agree at 0, by 1 + (kappa -
1)(1 - delta / d). So the p-value is the smaller of both and the interval the test's own. By
enumeration for n = 8 to 200: size at most 5.0% (Tango 5.6, mid-p 5.0), least coverage 94.0% (Tango
93.0), mean width 1.00 to 1.02 times Tango's and at most 1.06 times; at the levels of Holm's
procedure it finds what mid-p finds, where the score test finds 60% of it.

In clusters n is divided by the design effect (Rao & Scott 1984) and the quantile is Student's,
with the degrees of freedom of the standard error. Where no item differs this test is used for
graded scores too, in units of the whole range (the rule of three).

**Graded.** Student's t with a skewness correction, T = (d - delta) / SE and

    g(T) = T + a T^2 / 3 + a^2 T^3 / 27 + a / 6,    a = w x skewness / sqrt(n)

which increases with T, so that it can be inverted (Hall 1992). Where many items are equal, the
spread is estimated from only a few, and Student's n - 1 degrees of freedom are too many: t
covers 85 to 90% where 3 to 10 items differ. They are

    min(n - 1,  K + 1,  1.5 x 2 n / (kurtosis - (n - 3) / (n - 1)))

with K items that differ; the last is Satterthwaite's of a sample variance (O'Neill 2014), which
is n - 1 for normal differences and small where a few large ones carry the variance. The
skewness of few items is mostly chance, so it counts with w = K^2 / (K^2 + 400). The constants
were chosen by simulation (docs/reference/paired-tests.md). Where the range of a score is unknown
a = 0: for pseudo-values of macro-F1, of which a few are outliers, the correction covers 90% where
t covers 94%. In clusters the units are clusters, and n - 1 is the CR2 form's degrees of freedom.

**Graded, nearly constant differences.** n items that all differ by d show no spread and may
hide some: an item that does not differ would move the mean by d / n. So the standard error is
at least

    1.5 |d| / n x min(1, 3 / degrees of freedom)^2

which is near the rule of three where all items, or all but one, differ by the same, and below
the observed error where the spread comes from many items. The skewness and the degrees of
freedom are then those of the sum of the observed spread and a known one. And n items of one
sign show no more than a sign test: if a share of the items were as far on the other side of 0,
so that the mean is delta <= 0, none of these is among n items with the probability ((1 + delta
/ d) / 2)^n, and the one-sided p-value of delta is at least that, of any delta above 0 at least
0.5^n. The interval extends beyond 0 accordingly where its error rate is below 2 x 0.5^n.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from evalwright.statistics.units import F64, I64, Range, at_ends, cluster_spread

Bools = npt.NDArray[np.bool_]
Starts = npt.NDArray[np.intp]
Pairs = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]
Places = npt.NDArray[np.intp] | slice
_CELLS = 4_000_000  # pairs x items in memory at a time: 32 MB
_NOISE = 1e-12
KURTOSIS_FACTOR = 1.5
"""Factor on the degrees of freedom that follow from the kurtosis.

At 1 the intervals are 4% wider where 10 of 200 items differ; at 2 the least coverage where 3 to
8 differ falls below 90%.
"""
SKEWNESS_UNITS = 20.0
"""Number of differing units at which the sample's skewness has half its weight."""
HIDDEN_UNITS = 1.5
"""Equal units that equal differences may hide, as a standard error.

3.1 to 3.7 units at 95% correspond to the rule of three.
"""
FEWEST_FREEDOM = 3.0
"""Approximate degrees of freedom of a spread that comes from a single unit."""


MissingPolicy = Literal["scored", "worst-case"]
"""How items are treated for which a run has no score.

"scored": they are left out, the items that both runs have count. "worst-case": they get the
worst and the best possible score (Manski's bounds), and a verdict holds whatever they were.
"""


@dataclass(frozen=True, slots=True)
class AllPairs:
    """Paired differences of all models, each pair on the items that both have; (models, models).

    Attributes:
        difference: row minus column; nan without a common item.
        error: its standard error; nan with fewer than two units, 0 where no item differs.
        freedom: degrees of freedom of the test (infinite for a normal quantile).
        n: common items.
        units: common items or clusters.
        effective_units: the number of equally large units that the data are worth.
        counts: of the score test, in units of `span`; None where the range of a score is unknown.
        span: the range of a score, nan if unknown.
        n_missing: items on which either model's score is missing.
        counted: the pairs for which the score test is used; all others have t.
        differing: units that differ.
        skewness: of the mean of the differences (of the units over the root of their number).
        asymmetry: by how much the error is larger above and smaller below the difference (for
            means over tasks, `shared_units.MeanSpread`).
    """

    difference: F64
    error: F64
    freedom: F64
    n: I64
    units: I64
    effective_units: F64
    counts: Counts | None
    span: float
    n_missing: I64
    counted: Bools
    differing: F64
    skewness: F64
    asymmetry: F64 | float = 0.0

    def limits(self, share: npt.ArrayLike) -> tuple[F64, F64]:
        """The interval of each pair with error rate `share` (models, 1) or (models, models).

        nan where there is none; the whole range with a single unit.
        """
        low, high = self._graded_limits(share)
        if self.counts is None:
            return low, high
        if self.counted.any():
            bottom, top = (self.span * end for end in self.counts.limits(share))
            # The added counts pull the centre towards 0, but the difference itself stays inside.
            low = np.where(self.counted, np.minimum(bottom, self.difference), low)
            high = np.where(self.counted, np.maximum(top, self.difference), high)
        is_single_unit = self.units == 1
        return np.where(is_single_unit, -self.span, low), np.where(
            is_single_unit, self.span, high
        )

    def tail(self, at: float, above: bool = True) -> F64:
        """The one-sided p-value of a true difference not above (or not below) `at`.

        Nan without one.
        """
        from scipy.special import stdtr

        gap = self.difference - at
        side = self._some_error - np.sign(gap) * self.asymmetry
        with np.errstate(divide="ignore", invalid="ignore"):
            deviate = self._skewed(gap / np.maximum(side, 0.0))
        tails: F64 = np.asarray(stdtr(self.freedom, -deviate if above else deviate))
        tails = np.maximum(tails, self._sign_test_tail(at, above))
        if self.counts is not None and self.counted.any():
            tails = np.where(
                self.counted, self.counts.tail(at / self.span, above), tails
            )
        tails = np.maximum(tails, sys.float_info.min)  # no sample gives p = 0
        return np.where(self.units > 1, tails, np.nan)

    def p_values(self) -> F64:
        """The two-sided p-values of no difference."""
        p_values: F64 = np.minimum(
            1.0, 2.0 * np.minimum(self.tail(0.0), self.tail(0.0, above=False))
        )
        return p_values

    def visible(self, level: float, power: float) -> F64:
        """The difference that each pair would have detected with probability `power`.

        It is the sum of both quantiles times the error (`power`), for graded scores at least half
        the interval's width, which skewness and few units can make larger.
        """
        from scipy.special import stdtrit

        of_level, of_power = (
            np.asarray(stdtrit(self.freedom, at)) for at in (0.5 + level / 2, power)
        )
        multiple: F64 = of_level + of_power
        low, high = self._graded_limits(1 - level)
        graded = np.fmax(multiple * self._some_error, (high - low) / 2)
        if self.counts is None:
            return graded
        # Models whose means differ by d disagree on at least that share of the items.
        least = self.span * multiple**2 / (self.counts.size + multiple**2)
        counted = np.fmax(multiple * self.span * self.counts.error, least)
        seen = np.fmin(np.where(self.counted, counted, graded), self.span)
        return np.where(self.n > 0, np.where(self.units > 1, seen, self.span), np.nan)

    def _graded_limits(self, share: npt.ArrayLike) -> tuple[F64, F64]:
        """Compute `limits` by the t test, inside the range of a difference."""
        from scipy.special import stdtrit

        critical = -np.asarray(stdtrit(self.freedom, np.asarray(share) / 2))
        error = self._some_error
        low = self.difference - (error - self.asymmetry) * self._unskewed(critical)
        high = self.difference - (error + self.asymmetry) * self._unskewed(-critical)
        beyond_zero = self._sign_test_end(share)
        low = np.where(self.difference > 0, np.minimum(low, beyond_zero), low)
        high = np.where(self.difference < 0, np.maximum(high, beyond_zero), high)
        if not math.isnan(self.span):
            low = np.maximum(low, -self.span)
            high = np.minimum(high, self.span)
        return low, high

    def _sign_test_tail(self, at: float, above: bool) -> F64:
        """The least one-sided p-value that units of one sign can have.

        It is 0 if the observed difference has the other sign (negative, for `above`).
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            towards_opposite = np.clip(at / self.difference, -1.0, 0.0)
        none_opposite = ((1 + towards_opposite) / 2) ** self.units
        leans = self.difference > 0 if above else self.difference < 0
        return np.where(leans, none_opposite, 0.0)

    def _sign_test_end(self, share: npt.ArrayLike) -> F64:
        """Where `_sign_test_tail` is half of `share`, if that is beyond 0; else the difference."""
        of_difference = (
            2 * (np.asarray(share) / 2) ** (1 / np.maximum(self.units, 1)) - 1
        )
        return np.where(
            of_difference < 0, of_difference * self.difference, self.difference
        )

    @property
    def _some_error(self) -> F64:
        return np.where(self.error > 0, self.error, np.nan)

    @property
    def _weighted_skewness(self) -> F64:
        return (
            self.skewness * self.differing**2 / (self.differing**2 + SKEWNESS_UNITS**2)
        )

    def _skewed(self, deviate: F64) -> F64:
        """Apply Hall's transformation to (difference - delta) / error; the result is close to t."""
        a = self._weighted_skewness
        return deviate + a * deviate**2 / 3 + a**2 * deviate**3 / 27 + a / 6

    def _unskewed(self, quantile: F64) -> F64:
        """The inverse of `_skewed`."""
        a = self._weighted_skewness
        with np.errstate(divide="ignore", invalid="ignore"):
            root = 3 / a * (np.cbrt(1 + a * (quantile - a / 6)) - 1)
        return np.where(np.abs(a) > 1e-8, root, quantile)


@dataclass(frozen=True, slots=True)
class WorstCase:
    """What holds for all pairs whatever the missing scores would have been (Manski 2003).

    Attributes:
        scored: the pairs on the items that both models have.
        worst: the same differences with the missing scores of the row's model at the bottom of the
            range and those of the column's at the top; transposed, this is the best case for the
            row. None where the range of a score is unknown; then a pair that lacks an item has no
            result (nan).
    """

    scored: AllPairs
    worst: AllPairs | None

    def limits(self, share: npt.ArrayLike) -> tuple[F64, F64]:
        """Limits that hold for the scored items, and with missing scores at either end."""
        scored = self.scored
        low, high = scored.limits(share)
        if self.worst is None:
            return self._bounded(low), self._bounded(high)
        # With a single unit, only the comparison with filled-in scores gives an interval.
        has_single_unit = (scored.units <= 1) & (scored.n_missing > 0)
        low, high = (np.where(has_single_unit, np.nan, end) for end in (low, high))
        least = self.worst.limits(share)[0]
        turned = np.transpose(np.broadcast_to(share, low.shape))
        most = -(least if np.ndim(share) == 0 else self.worst.limits(turned)[0]).T
        low = np.fmin(low, least)
        high = np.fmax(high, most)
        return np.where(scored.n > 0, low, np.nan), np.where(scored.n > 0, high, np.nan)

    def tail(self, at: float, above: bool = True) -> F64:
        """The greatest `AllPairs.tail` over all ways to fill in the missing scores."""
        tails = self.scored.tail(at, above)
        if self.worst is None:
            return self._bounded(tails)
        filled = self.worst.tail(at) if above else self.worst.tail(-at).T
        return np.where(self.scored.n > 0, np.fmax(tails, filled), np.nan)

    def p_values(self) -> F64:
        """The two-sided p-values of no difference.

        1 where the fillings are on different sides of 0.
        """
        p_values: F64 = np.minimum(
            1.0, 2.0 * np.minimum(self.tail(0.0), self.tail(0.0, above=False))
        )
        return p_values

    def visible(self, level: float, power: float) -> F64:
        """`AllPairs.visible`, whatever the missing scores would have been."""
        seen = self.scored.visible(level, power)
        if self.worst is None:
            return self._bounded(seen)
        # A filling moves the difference towards 0; what remains must be visible on as many items as
        # the filling has.
        shifted = (
            self.worst.visible(level, power)
            + self.scored.difference
            - self.worst.difference
        )
        most = np.fmin(self.scored.span, np.maximum(shifted, shifted.T))
        return np.where(self.scored.n_missing > 0, np.fmax(seen, most), seen)

    def _bounded(self, numbers: F64) -> F64:
        """Replace by nan where something is missing that cannot be bounded."""
        return np.where(self.scored.n_missing > 0, np.nan, numbers)


def common_differences(
    scores: F64,
    codes: I64 | None = None,
    value_range: Range | None = None,
    missing: Bools | None = None,
) -> AllPairs:
    """Compute paired differences of every two rows of `scores` on their common items.

    Args:
        scores: (models, items), nan is no score.
        codes: (items,) cluster numbers 0..G-1, or None.
        value_range: the range of a score, None if unknown.
        missing: (models, items), which of the absent scores are missing; the others were never
            asked. None: none is. They are only counted.
    """
    starts = None
    if codes is not None:
        order, starts = grouped(codes)
        scores = scores[:, order]
        missing = None if missing is None else missing[:, order]
    sums = _pair_sums(scores, starts, graded=is_graded(scores, value_range))
    return pairs_of_sums(
        sums,
        range_width(value_range),
        count_missing(scores, missing),
        starts is not None,
    )


def worst_case(
    scores: F64,
    codes: I64 | None,
    value_range: Range | None,
    missing: Bools,
    scored: AllPairs | None = None,
) -> WorstCase:
    """Compute what holds whatever the `missing` scores would have been.

    Arguments as of `common_differences`, whose result is `scored`.
    """
    scored = scored or common_differences(scores, codes, value_range, missing)
    if value_range is None or not missing.any():
        return WorstCase(scored, None)
    starts = None
    if codes is not None:
        order, starts = grouped(codes)
        scores = scores[:, order]
        missing = missing[:, order]
    low, high = (np.where(missing, end, scores) for end in value_range)
    graded = is_graded(scores, value_range)
    sums = _filled_sums(
        _pair_sums(scores, starts, graded),
        low,
        high,
        starts,
        scored.n_missing > 0,
        graded,
    )
    none_missing = np.zeros_like(scored.n_missing)
    return WorstCase(
        scored,
        pairs_of_sums(sums, range_width(value_range), none_missing, starts is not None),
    )


def is_graded(scores: F64, value_range: Range | None) -> bool:
    """Tell whether any score is not one of the two ends of the range."""
    return value_range is None or not at_ends(scores, value_range)


def range_width(value_range: Range | None) -> float:
    return math.nan if value_range is None else value_range[1] - value_range[0]


def count_missing(scores: F64, missing: Bools | None) -> I64:
    """Count the items that either of two models lacks, of those that both were asked."""
    if missing is None or not missing.any():
        return np.zeros((len(scores),) * 2, dtype=np.int64)
    was_asked = (missing | ~np.isnan(scores)).astype(np.float64)
    n_scored = was_asked - missing
    n_missing = np.rint(was_asked @ was_asked.T - n_scored @ n_scored.T).astype(
        np.int64
    )
    np.fill_diagonal(n_missing, 0)
    return n_missing


def checked_missing(missing: npt.ArrayLike | None, rows: F64) -> Bools:
    """Decide which absent scores are missing: all if `missing` is None, none if it is False."""
    has_score = ~np.isnan(rows)
    if missing is None:
        return ~has_score
    is_missing: Bools = np.asarray(missing, dtype=bool)
    is_missing = (
        np.broadcast_to(is_missing, rows.shape) if is_missing.ndim == 0 else is_missing
    )
    if is_missing.shape != rows.shape or (is_missing & has_score).any():
        raise ValueError(
            f"missing must say for each of the scores {rows.shape} whether it is"
            " missing, and a score that is there is not"
        )
    return is_missing


_SUMS = (
    "difference",
    "error",
    "freedom",
    "n",
    "units",
    "better",
    "worse",
    "squares",
    "ties",
    "effective_units",
    "differing",
    "skewness",
    "kurtosis",
)


def _pair_sums(scores: F64, starts: Starts | None, graded: bool) -> dict[str, F64]:
    """Compute the sums of `sums_of_differences` for all pairs."""
    models = len(scores)
    sums = {name: np.full((models, models), np.nan) for name in _SUMS}
    upper = np.triu_indices(models, 1)
    pair_sums, places = upper_sums(scores, starts, graded)
    turned = {
        **pair_sums,
        "difference": -pair_sums["difference"],
        "better": pair_sums["worse"],
        "worse": pair_sums["better"],
        "skewness": -pair_sums["skewness"],
    }
    for name in _SUMS:
        sums[name][upper] = pair_sums[name][places]
        sums[name].T[upper] = turned[name][places]
    has = ~np.isnan(scores)
    n_scored = has.sum(axis=1)
    units = (
        n_scored
        if starts is None
        else np.logical_or.reduceat(has, starts, axis=1).sum(axis=1)
    )
    for name in _SUMS:  # the diagonal: a model against itself
        diagonal = {
            "n": n_scored,
            "ties": n_scored,
            "units": units,
            "effective_units": units,
            "freedom": units - 1,
            "kurtosis": np.nan,
        }.get(name, 0.0)
        np.fill_diagonal(sums[name], diagonal)
    return sums


def upper_sums(
    scores: F64, starts: Starts | None, graded: bool
) -> tuple[dict[str, F64], Places]:
    """Compute `sums_of_differences` for all pairs with row < column, those that are alike once.

    Among hundreds of models on a task of right or wrong answers, most pairs are alike: they have
    equal numbers of common items, of wins and of losses, and so all of their sums are equal.

    Returns:
        The sums, (distinct pairs,), and the position of each pair's sums, (pairs,), in the order of
        `numpy.triu_indices`; or as a slice where every pair has its own.
    """
    filled_scores = _fill_missing(scores)
    models = len(scores)
    if graded or starts is not None or models < FEWEST_TO_COUNT:
        parts = [
            sums_of_differences(gaps, has_both, starts, graded)
            for row in range(models - 1)
            for _, gaps, has_both in _iterate_gaps(
                row, filled_scores, filled_scores, np.arange(row + 1, models)
            )
        ]
        return _concatenated(parts), slice(None)
    examples, places = _distinct_pairs(scores)
    parts = []
    step = max(1, _CELLS // max(1, scores.shape[1]))
    for begin in range(0, len(examples[0]), step):
        rows, columns = (side[begin : begin + step] for side in examples)
        gaps = filled_scores[0][rows] - filled_scores[0][columns]
        has_both = None
        if filled_scores[1] is not None:
            has_both = filled_scores[1][rows] & filled_scores[1][columns]
            gaps *= has_both
        parts.append(sums_of_differences(gaps, has_both, None, graded))
    return _concatenated(parts), places


FEWEST_TO_COUNT = 8
"""Number of models from which on `upper_sums` looks for pairs that are alike."""


def _concatenated(parts: Sequence[dict[str, F64]]) -> dict[str, F64]:
    # What follows from the clusters alone may come once for all pairs.
    return {
        name: np.concatenate(
            [np.broadcast_to(part[name], part["n"].shape) for part in parts]
            or [np.zeros(0)]
        )
        for name in _SUMS
    }


def _distinct_pairs(scores: F64) -> tuple[Pairs, npt.NDArray[np.intp]]:
    """Find the pairs of models with different counts, on scores that have two values at most.

    Returns:
        The rows and columns of one pair of each kind, and the kind of every pair, (pairs,).
    """
    has = ~np.isnan(scores)
    is_high = has & (scores == np.nanmax(scores, initial=-np.inf))
    # Products of counts are exact in this form, and several times faster than with integers.
    high, low, has_both = (
        side.astype(np.float64) for side in (is_high, has & ~is_high, has)
    )
    most = scores.shape[1] + 1
    kinds = np.zeros((len(scores),) * 2, np.int64)
    for counts in (has_both @ has_both.T, high @ low.T, low @ high.T):
        kinds *= most
        kinds += np.rint(counts).astype(np.int64)
    rows, columns = np.triu_indices(len(scores), 1)
    first, places = _first_of_each(kinds[rows, columns], most**3)
    return (rows[first], columns[first]), places


def _first_of_each(kinds: I64, most: int) -> Pairs:
    """Number kinds (pairs,), integers below `most`.

    Returns:
        The position of one of each kind, and the number of each one's kind, (pairs,).
    """
    if most > MOST_KINDS_IN_TABLE:
        _, first, places = np.unique(kinds, return_index=True, return_inverse=True)
        return first, places
    # A lookup table is several times faster than sorting.
    table = np.full(most, -1, np.int64)
    table[kinds] = np.arange(len(kinds))
    filled_cells = np.flatnonzero(table >= 0)
    first = table[filled_cells]
    table[filled_cells] = np.arange(len(filled_cells))
    return first, table[kinds]


MOST_KINDS_IN_TABLE = 1 << 22


def _filled_sums(
    sums: dict[str, F64],
    low: F64,
    high: F64,
    starts: Starts | None,
    where: Bools,
    graded: bool,
) -> dict[str, F64]:
    """Compute the sums with missing scores filled in, where something is missing; `sums` elsewhere.

    `low` are the filled scores of the rows' models, `high` those of the columns'.
    """
    filled = {name: values.copy() for name, values in sums.items()}
    left = _fill_missing(low)
    right = _fill_missing(high)
    for row in np.flatnonzero(where.any(axis=1)).tolist():
        for others, gaps, has_both in _iterate_gaps(
            row, left, right, np.flatnonzero(where[row])
        ):
            batch_sums = sums_of_differences(gaps, has_both, starts, graded)
            for name in _SUMS:
                filled[name][row, others] = batch_sums[name]
    return filled


def pairs_of_sums(
    sums: dict[str, F64], span: float, n_missing: I64, clustered: bool
) -> AllPairs:
    """Build the tests of pairs from what `sums_of_differences` returns, arrays of one shape."""
    freedom = sums["freedom"]
    error, skewness, of_t = _graded_spread(sums)
    counts = None
    counted = np.zeros(error.shape, dtype=bool)
    if not math.isnan(span):
        better = sums["better"] / span
        worse = sums["worse"] / span
        squares = sums["squares"] / span**2
        is_binary = np.abs(squares - better - worse) <= _NOISE * np.maximum(
            squares, 1.0
        )
        counted = is_binary | ~(error > 0)
        of_counts = (
            np.maximum(freedom, 1.0) if clustered else np.full_like(freedom, np.inf)
        )
        variance = sums["error"] / span if clustered else np.full_like(error, np.nan)
        counts = effective_counts(
            sums["n"],
            better,
            worse,
            squares,
            variance,
            of_counts,
            sums["effective_units"],
        )
        of_t = np.where(counted, of_counts, of_t)
    return AllPairs(
        difference=sums["difference"],
        error=error,
        freedom=np.where(sums["units"] > 1, of_t, 0.0),
        n=sums["n"].astype(np.int64),
        units=np.nan_to_num(sums["units"]).astype(np.int64),
        effective_units=sums["effective_units"],
        counts=counts,
        span=span,
        n_missing=n_missing,
        counted=counted,
        differing=sums["differing"],
        # Without a known range (and for pseudo-values) a few outliers would dominate the skewness.
        skewness=skewness * (not math.isnan(span)),
    )


def _graded_spread(sums: dict[str, F64]) -> tuple[F64, F64, F64]:
    """The standard error, skewness and degrees of freedom of graded differences.

    They include the spread that nearly constant differences may hide.
    """
    units = sums["units"]
    difference = np.abs(sums["difference"])
    seen_error = sums["error"]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Zero spread is treated as the limit of a single unit that is slightly off.
        of_one_unit = ((units - 1) ** 3 + 1) / (units**2 * (units - 1))
        kurtosis = np.where(
            (seen_error == 0) & (difference > 0), of_one_unit, sums["kurtosis"]
        )
        # Satterthwaite's degrees of freedom of a sample variance; `kurtosis` is already divided by
        # the number of units.
        below = kurtosis - (units - 3) / (units - 1) / units
        by_kurtosis = np.where(below > 0, KURTOSIS_FACTOR * 2 / below, np.inf)
        freedom = np.fmin(np.fmin(sums["freedom"], by_kurtosis), sums["differing"] + 1)
        freedom = np.maximum(freedom, 1.0)
        from_few = np.minimum(1.0, FEWEST_FREEDOM / freedom) ** 2
        error = np.maximum(seen_error, HIDDEN_UNITS * difference / units * from_few)
        seen_share = np.where(error > 0, seen_error / error, 1.0)
        # The hidden part counts as known: Satterthwaite's formula for a sum of two variances.
        freedom = np.where(
            seen_share < 1, np.fmin(sums["freedom"], freedom / seen_share**4), freedom
        )
    return (
        error,
        np.nan_to_num(sums["skewness"] * seen_share**3),
        np.maximum(freedom, 1.0),
    )


def common_influences(
    scores: F64, codes: I64, difference: F64, pairs: Pairs
) -> npt.NDArray[np.float32]:
    """The influence of each group on the difference of each pair, (groups, pairs).

    It is the sum of d_i - mean d over the items of the group that both models have, divided by the
    number of their common items. The pairs are all with row < column, in order.

    Args:
        scores: (models, items), nan is no score.
        codes: (items,) group numbers 0..G-1.
        difference: (models, models), from `common_differences`.
        pairs: rows and columns of the pairs.
    """
    order, starts = grouped(codes)
    parts = []
    filled_scores = _fill_missing(scores[:, order])
    for row in range(len(scores) - 1):
        for others, gaps, has_both in _iterate_gaps(
            row, filled_scores, filled_scores, np.arange(row + 1, len(scores))
        ):
            gaps -= np.nan_to_num(difference[row, others])[:, None]
            n = (
                np.full(len(gaps), gaps.shape[1])
                if has_both is None
                else has_both.sum(axis=1)
            )
            sums = np.add.reduceat(
                gaps if has_both is None else gaps * has_both, starts, axis=1
            )
            parts.append((sums / np.maximum(n, 1)[:, None]).T.astype(np.float32))
    return np.concatenate(parts, axis=1)


_Known = tuple[F64, Bools | None]
"""Scores with 0 where there is none, and a mask of where there is one (None: everywhere)."""


def _fill_missing(scores: F64) -> _Known:
    has: Bools = ~np.isnan(scores)
    return (scores, None) if has.all() else (np.where(has, scores, 0.0), has)


def _iterate_gaps(
    row: int, left: _Known, right: _Known, others: npt.NDArray[np.intp]
) -> Iterator[tuple[npt.NDArray[np.intp], F64, Bools | None]]:
    """Iterate over the differences of one model's scores from those of `others`, some at a time.

    Yields:
        Indices of these models, differences (others, items), 0 where one has no score, and where
        both have one (None: everywhere).
    """
    row_scores = left[0][row]
    has = None if left[1] is None else left[1][row]
    step = max(1, _CELLS // max(1, len(row_scores)))
    for begin in range(0, len(others), step):
        places = others[begin : begin + step]
        if right[1] is None:
            has_both = has
        elif has is None:
            has_both = right[1][places]
        else:
            has_both = right[1][places] & has
        gaps = row_scores - right[0][places]
        if has_both is not None:
            has_both = np.broadcast_to(has_both, gaps.shape)
            gaps *= has_both
        yield places, gaps, has_both


def grouped(codes: I64) -> tuple[I64, Starts]:
    """Sort the items so that each group is contiguous; returns the order and each group's start."""
    order = np.argsort(codes, kind="stable")
    return order, np.flatnonzero(np.diff(codes[order], prepend=-1))


def sums_of_differences(
    gaps: F64, has_both: Bools | None, starts: Starts | None, graded: bool
) -> dict[str, F64]:
    """Compute the sums that the tests of `gaps` need, each (pairs,).

    Args:
        gaps: (pairs, items), differences, 0 where one of the two models has no score.
        has_both: where both have one, None: everywhere.
        starts: where each cluster of items begins; None: single items.
        graded: whether the moments of a t test are needed.
    """
    others, items = gaps.shape
    n = (
        np.full(others, float(items))
        if has_both is None
        else has_both.sum(axis=1).astype(np.float64)
    )
    total = gaps.sum(axis=1)
    apart = np.abs(gaps)
    differing = np.count_nonzero(gaps, axis=1).astype(np.float64)
    ties = n - differing
    apart_sum = apart.sum(axis=1)
    if starts is not None and graded:
        differing = np.count_nonzero(
            np.add.reduceat(apart, starts, axis=1), axis=1
        ).astype(np.float64)
    squares = np.einsum("oi,oi->o", gaps, gaps)
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = total / n
        residuals = np.subtract(gaps, difference[:, None], out=apart)
        if has_both is not None:
            residuals *= has_both
        spread = np.einsum("oi,oi->o", residuals, residuals)
        if starts is None:
            error = np.sqrt(spread / (n - 1) / n)
            freedom = n - 1
            units = n
            effective_units = n
        else:
            residuals = np.add.reduceat(residuals, starts, axis=1)
            if has_both is None:
                sizes = np.diff(starts, append=items).astype(np.float64)[:, None]
                counts = n[:1]
            else:
                sizes = np.add.reduceat(has_both, starts, axis=1, dtype=np.float64).T
                counts = n
            error, freedom, effective_units = cluster_spread(
                residuals.T, sizes, counts, spread
            )
            units = np.broadcast_to(
                np.count_nonzero(sizes, axis=0).astype(np.float64), n.shape
            )
        # Rounding errors leave a tiny spread where two rows are equal.
        error = np.where(
            error > _NOISE * np.maximum(np.sqrt(squares / n), 1e-300), error, 0.0
        )
        skewness = np.zeros(others)
        kurtosis = np.full(others, np.nan)
        if graded:
            powers = residuals**2
            variance = powers.sum(axis=1)
            skewness = np.einsum("oi,oi->o", powers, residuals) / variance**1.5
            kurtosis = np.einsum("oi,oi->o", powers, powers) / variance**2
    return {
        "difference": difference,
        "error": np.where(units > 1, error, np.nan),
        "freedom": freedom,
        "n": n,
        "units": units,
        "better": (apart_sum + total) / 2,
        "worse": (apart_sum - total) / 2,
        "squares": squares,
        "ties": ties,
        "effective_units": effective_units,
        "differing": differing,
        "skewness": skewness,
        "kurtosis": kurtosis,
    }


# -- score test ------------------------------------------------------------------------


ADDED = 0.25
_STEPS = 50


@dataclass(frozen=True, slots=True)
class Counts:
    """Effective counts of the score test; arrays of one shape.

    Attributes:
        better: items where a did better, in whole ranges.
        worse: items where it did worse.
        size: number of items.
        freedom: degrees of freedom.
        stretch: see below.
    """

    better: F64
    worse: F64
    size: F64
    freedom: F64
    stretch: F64 | float = 1.0
    """Ratio of McNemar's mid-p, as a deviate, to the score test's at no difference; at least 1."""

    @property
    def difference(self) -> F64:
        """The centre of the interval; the added counts pull it slightly towards 0."""
        difference: F64 = (self.better - self.worse) / self.size
        return difference

    @property
    def error(self) -> F64:
        """The standard error of the difference if the true one is 0."""
        error: F64 = np.sqrt(self.better + self.worse) / self.size
        return error

    def deviate(self, at: npt.ArrayLike) -> F64:
        """How far the counts are above the difference `at` (-1 to 1), in its standard errors."""
        at = np.asarray(at, dtype=np.float64)
        variance, _ = self._variance(at)
        with np.errstate(divide="ignore", invalid="ignore"):
            deviates: F64 = (self.better - self.worse - self.size * at) / np.sqrt(
                variance
            )
            towards_none = np.where(
                self.difference != 0, np.clip(1 - at / self.difference, 0.0, 1.0), 0.0
            )
        return deviates * (1 + (self.stretch - 1) * towards_none)

    def _variance(self, at: F64) -> tuple[F64, F64]:
        """Compute n (2 q + d - d^2) at the difference d, and its derivative there."""
        turned = at < 0
        gap = np.abs(at)
        up = np.where(turned, self.worse, self.better)
        down = np.where(turned, self.better, self.worse)
        slope = 2 * self.size - up + down
        linear = slope * gap - up - down
        root = np.sqrt(
            np.maximum(linear**2 + 8 * self.size * down * gap * (1 - gap), 0.0)
        )
        variance = np.maximum((root - linear) / 2 + self.size * gap * (1 - gap), 0.0)
        steep = (linear * slope + 4 * self.size * down * (1 - 2 * gap)) / np.maximum(
            root, 1e-300
        )
        change = (steep - slope) / 2 + self.size * (1 - 2 * gap)
        return variance, np.where(turned, -change, change)

    def tail(self, at: npt.ArrayLike, above: bool = True) -> F64:
        """The one-sided p-value of "not above" (or "not below") the difference `at`."""
        from scipy.special import stdtr

        deviates = self.deviate(at)
        tails: F64 = np.asarray(stdtr(self.freedom, -deviates if above else deviates))
        return tails

    def limits(self, share: npt.ArrayLike) -> tuple[F64, F64]:
        """The interval with the two-sided error rate `share`."""
        from scipy.special import stdtrit

        critical = -np.asarray(stdtrit(self.freedom, np.asarray(share) / 2))
        low = self._end(critical, -1.0)
        high = self._end(critical, 1.0)
        if np.any(self.stretch > 1):
            # The stretch applies between 0 and the difference, so it moves only the end on the side
            # of 0.
            above = self.difference > 0
            nearer = self._stretched_end(critical, np.where(above, low, high))
            low = np.where(above, nearer, low)
            high = np.where(above, high, nearer)
        return low, high

    def _stretched_end(self, critical: F64, outer: F64) -> F64:
        """Find where the deviate is `critical` in size, by the Illinois method.

        The search is between `outer`, where the deviate is at least that large, and the difference.
        """
        inner = self.difference + np.zeros_like(outer)
        beyond = np.abs(self.deviate(outer)) - critical
        short = -critical + np.zeros_like(outer)
        for _ in range(_STEPS):
            with np.errstate(divide="ignore", invalid="ignore"):
                at = outer - beyond * (inner - outer) / (short - beyond)
            at = np.where(np.isfinite(at), at, outer)
            excess = np.abs(self.deviate(at)) - critical
            if not (np.abs(excess) > 1e-11).any():
                break
            far = excess > 0
            beyond = np.where(far, excess, beyond / 2)
            short = np.where(far, short / 2, excess)
            outer = np.where(far, at, outer)
            inner = np.where(far, inner, at)
        return at

    def _end(self, critical: F64, side: float) -> F64:
        """Find where (b - c - n d)^2 = critical^2 n (2 q + d - d^2) on one side of the difference.

        Newton's method from the end of the range, with bisection where a step leaves the bracket.
        """
        apart = self.better - self.worse
        inner = apart / self.size + np.zeros_like(critical)
        outer = np.full_like(inner, side)
        at = outer
        for _ in range(_STEPS):
            variance, change = self._variance(at)
            gap = self.size * at - apart
            excess = gap**2 - critical**2 * variance
            inner = np.where(excess > 0, inner, at)
            outer = np.where(excess > 0, at, outer)
            with np.errstate(divide="ignore", invalid="ignore"):
                new = at - excess / (2 * self.size * gap - critical**2 * change)
            new = np.where((new - inner) * (outer - new) >= 0, new, (inner + outer) / 2)
            moved = float(np.fmax.reduce(np.abs(new - at), axis=None, initial=0.0))
            at = new
            if moved < 1e-13:
                break
        return at


def effective_counts(
    n: F64, better: F64, worse: F64, squares: F64, error: F64, freedom: F64, units: F64
) -> Counts:
    """Compute effective counts of n differences between -1 and 1.

    Args:
        n: number of differences.
        better: sum of their positive parts.
        worse: sum of their negative parts.
        squares: sum of their squares.
        error: standard error of their mean over clusters, nan for single items.
        freedom: degrees of freedom.
        units: the number of equally large units that the data are worth.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = squares / n - ((better - worse) / n) ** 2
        clustered = np.where(
            (error > 0) & (variance > 0), error**2 * n / variance, n / units
        )
        design = np.maximum(clustered, 1.0)
        counts = Counts(
            better / design + ADDED,
            worse / design + ADDED,
            n / design + 2 * ADDED,
            freedom,
        )
        # Effective counts of clusters are not binomial.
        binomial = (design <= 1) & (better != worse)
        stretch = np.where(
            binomial, mid_p_deviate(better, worse) / np.abs(counts.deviate(0.0)), 1.0
        )
    return replace(counts, stretch=np.fmax(stretch, 1.0))


def limits_without_spread(
    units: npt.ArrayLike, width: npt.ArrayLike, level: float
) -> tuple[F64, F64]:
    """The interval of a difference where no unit differs, or there is only one.

    It is that of the score test, in units of the whole range (the rule of three), and the whole
    range for a single unit.

    Args:
        units: number of units that are alike.
        width: the greatest possible difference; nan if unknown.
        level: confidence level.
    """
    units = np.asarray(units, np.float64)
    nothing = np.zeros(units.shape)
    no_error = np.full(units.shape, np.nan)
    normal = np.full(units.shape, np.inf)
    counts = effective_counts(
        np.maximum(units, 1.0), nothing, nothing, nothing, no_error, normal, units
    )
    low, high = counts.limits(1 - level)
    is_single = units <= 1
    return (
        np.asarray(width * np.where(is_single, -1.0, low)),
        np.asarray(width * np.where(is_single, 1.0, high)),
    )


def mid_p_deviate(better: F64, worse: F64) -> F64:
    """The normal deviate of McNemar's mid-p (Fagerland, Lydersen & Laake 2013), at least 0."""
    from scipy.special import betainc, gammaln, ndtri

    few = np.minimum(better, worse)
    total = better + worse
    with np.errstate(divide="ignore", invalid="ignore"):
        at_most = betainc(total - few, few + 1, 0.5)
        exactly = np.exp(
            gammaln(total + 1)
            - gammaln(few + 1)
            - gammaln(total - few + 1)
            - total * math.log(2.0)
        )
        p_value = np.clip(2 * at_most - exactly, 1e-300, 1.0)
    deviate: F64 = np.where(total > 0, -ndtri(p_value / 2), 0.0)
    return deviate
