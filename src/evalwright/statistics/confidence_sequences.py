"""Confidence sequences, intervals that hold at every interim look, for the mean of scores.

For bounded scores, by hedged betting: for every candidate mean m, one gambler bets that scores
are above m and another that they are below. If m is true, the chance that either of them ever
multiplies the stake by 2 / alpha is at most alpha / 2; the interval is the m that neither has
refuted. Nothing is assumed except the range of the scores and an order that was fixed before
(Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting").

Units come without replacement from N, so the mean of the remaining ones replaces m: (N m - sum
so far) / (N - n). The target is the mean of exactly these N, and at n = N the interval is a
point. Bets grow with sqrt(N / (N - n)), because late units say more about the few that remain.
A unit is an item (its mean over draws); for clusters there is `AsymptoticSequence`.

`AsymptoticSequence` needs only the variance: for large n, unbounded scores and clusters.

    mean +- sd sqrt( 2 (n r + 1) / (n^2 r) log( sqrt(n r + 1) / alpha ) ),   r = (-2 log a +
    log(-2
    log a + 1)) / n_opt

holds at all n at once in the limit of large n (Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas
2024, "Time-uniform central limit theory and asymptotic confidence sequences"), and is narrowest
near n_opt, here N / 3.

Units come without replacement from N, for which the same holds with t = n N / (N - n) in place
of n: the sum of the first n minus n times the mean is a random-walk bridge, and times N / (N -
n) a walk with the clock t. At n = N the width is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level
from evalwright.statistics.units import F64, Range

_CELLS = 401
_FEWEST_CELLS = 120
_ROWS = 128
_TRUNCATION = 0.5


class BettingSequence:
    """A running confidence sequence by hedged betting, fed with units in an order fixed beforehand.

    The ends are rounded outwards, by less than a hundredth of the width. An update costs a few
    hundred multiplications per value.

    Args:
        n_total: number of units; the target is the mean over exactly these.
        alpha: the chance that the interval ever misses the mean.
        value_range: the least and greatest possible value of a unit.
    """

    def __init__(
        self, n_total: int, *, alpha: float = 0.05, value_range: Range = (0.0, 1.0)
    ) -> None:
        check_level(alpha, "alpha")
        bottom, top = value_range
        if not (math.isfinite(bottom) and math.isfinite(top) and bottom < top):
            raise ValueError(
                "value_range must be two finite numbers, least first, but is"
                f" {value_range}"
            )
        if n_total < 1:
            raise ValueError(f"n_total must be at least 1, but is {n_total}")
        self.alpha = alpha
        self.n_total = n_total
        self.value_range = (float(bottom), float(top))
        self.n = 0
        self._bar = math.log(2 / alpha)
        self._raw_sum = 0.0
        self._sum = 0.0
        self._squares = 0.25
        self._variance = 0.25
        self._low = 0.0
        self._high = 1.0
        self._values = np.empty(1024)
        self._bets = np.empty(1024)
        self._grid: F64 = np.empty(0)
        self._above: F64 = np.empty(0)
        self._below: F64 = np.empty(0)
        self._set_grid()

    def update(self, values: npt.ArrayLike) -> tuple[F64, F64]:
        """Add the next values (k,), or one number, and return the interval after each of them.

        Returns:
            Low and high ends, each (k,).

        Raises:
            ValueError: values outside `value_range`, or too many.
        """
        scaled = self._checked(values)
        lows = np.empty(len(scaled))
        highs = np.empty(len(scaled))
        for start in range(0, len(scaled), _ROWS):
            part = scaled[start : start + _ROWS]
            lows[start : start + len(part)], highs[start : start + len(part)] = (
                self._feed(part)
            )
        bottom, top = self.value_range
        lows = bottom + (top - bottom) * lows
        highs = bottom + (top - bottom) * highs
        if len(scaled) and self.n == self.n_total:
            lows[-1] = highs[-1] = self.mean
        return lows, highs

    @property
    def mean(self) -> float:
        """The mean of the values so far; nan before the first."""
        return self._raw_sum / self.n if self.n else math.nan

    def interval(self) -> tuple[float, float]:
        """Return the intersection of all intervals so far, in the units of the values."""
        if self.n == self.n_total:
            return self.mean, self.mean
        bottom, top = self.value_range
        return bottom + (top - bottom) * self._low, bottom + (top - bottom) * self._high

    def _checked(self, values: npt.ArrayLike) -> F64:
        raw = np.atleast_1d(np.asarray(values, dtype=np.float64))
        bottom, top = self.value_range
        slack = 1e-9 * (top - bottom)
        if raw.ndim != 1 or not bool(
            ((raw >= bottom - slack) & (raw <= top + slack)).all()
        ):
            raise ValueError(
                f"values must be numbers in value_range {self.value_range}, one a unit"
            )
        if self.n + len(raw) > self.n_total:
            raise ValueError(
                f"{self.n + len(raw)} values are more than n_total = {self.n_total}"
            )
        self._raw_sum += float(raw.sum())
        return np.clip((raw - bottom) / (top - bottom), 0.0, 1.0)

    def _feed(self, x: F64) -> tuple[F64, F64]:
        before = self.n
        count = len(x)
        position = np.arange(before + 1, before + count + 1, dtype=np.float64)
        self._bets_for(x, position)
        sums = self._sum + np.concatenate(([0.0], np.cumsum(x)))
        self.n += count
        lows, highs = self._bet(x, self._bets[before : self.n], sums[:-1], position)
        self._sum = float(sums[-1])
        # The values seen so far bound the mean of all units with certainty.
        lows = np.maximum(lows, sums[1:] / self.n_total)
        highs = np.minimum(highs, (sums[1:] + (self.n_total - position)) / self.n_total)
        empty = (
            lows > highs
        )  # the sequence has refuted every mean: keep its last interval
        if empty.any():
            first = int(empty.argmax())
            lows[first:] = lows[first - 1] if first else self._low
            highs[first:] = highs[first - 1] if first else self._high
        self._low = float(lows[-1])
        self._high = float(highs[-1])
        if (
            np.count_nonzero((self._grid > self._low) & (self._grid < self._high))
            < _FEWEST_CELLS
        ):
            self._refine()
        return lows, highs

    def _bets_for(self, x: F64, position: F64) -> None:
        """Compute the bet on each value from earlier ones only, and append both to the history."""
        means = (0.5 + self._sum + np.cumsum(x)) / (position + 1)
        squares = self._squares + np.cumsum((x - means) ** 2)
        variances = np.concatenate(([self._variance], squares / (position + 1)))
        growth = self.n_total / (self.n_total - position + 1)
        bets = np.sqrt(
            2
            * self._bar
            * growth
            / (variances[:-1] * position * np.log1p(position * growth))
        )
        end = self.n + len(x)
        while end > len(self._values):
            self._values = np.concatenate((self._values, np.empty_like(self._values)))
            self._bets = np.concatenate((self._bets, np.empty_like(self._bets)))
        self._values[self.n : end], self._bets[self.n : end] = x, bets
        self._squares = float(squares[-1])
        self._variance = float(variances[-1])

    def _bet(self, x: F64, bets: F64, sums: F64, position: F64) -> tuple[F64, F64]:
        """Update the stakes of every candidate m with these values.

        Returns the interval after each.
        """
        left = (self.n_total - position + 1)[:, None]
        m = np.clip(
            (self.n_total * self._grid - sums[:, None]) / left, 1e-12, 1 - 1e-12
        )
        gap = x[:, None] - m
        above = np.cumprod(1 + np.minimum(bets[:, None], _TRUNCATION / m) * gap, axis=0)
        below = np.cumprod(
            1 - np.minimum(bets[:, None], _TRUNCATION / (1 - m)) * gap, axis=0
        )
        # Stakes above fall with m and stakes below rise, so the refuted candidates are at the two
        # ends of the grid.
        with np.errstate(
            over="ignore"
        ):  # a stake that is almost 0 would need an infinite win
            too_low = (above >= np.exp(self._bar - self._above)).sum(axis=1)
            too_high = (below >= np.exp(self._bar - self._below)).sum(axis=1)
        self._above = self._above + np.log(above[-1])
        self._below = self._below + np.log(below[-1])
        low_cell = np.maximum.accumulate(too_low) - 1
        high_cell = len(self._grid) - np.maximum.accumulate(too_high)
        lows = np.where(low_cell >= 0, self._grid[np.maximum(low_cell, 0)], self._low)
        last = len(self._grid) - 1
        highs = np.where(
            high_cell <= last, self._grid[np.minimum(high_cell, last)], self._high
        )
        return np.maximum(lows, self._low), np.minimum(highs, self._high)

    def _set_grid(self) -> None:
        width = self._high - self._low
        self._grid = np.clip(
            self._low + width * np.linspace(0, 1, _CELLS), 1e-12, 1 - 1e-12
        )
        self._above = np.zeros(_CELLS)
        self._below = np.zeros(_CELLS)

    def _refine(self) -> None:
        """Restart on a finer grid over the remaining interval, replaying all bets so far."""
        if self._high - self._low < 1e-9:
            return
        self._set_grid()
        low = self._low
        high = self._high
        total = 0.0
        for start in range(0, self.n, _ROWS):
            x = self._values[start : min(start + _ROWS, self.n)]
            position = np.arange(start + 1, start + len(x) + 1, dtype=np.float64)
            sums = total + np.concatenate(([0.0], np.cumsum(x)))
            lows, highs = self._bet(
                x, self._bets[start : start + len(x)], sums[:-1], position
            )
            low = max(low, float(lows[-1]))
            high = min(high, float(highs[-1]))
            total = float(sums[-1])
        if low <= high:
            self._low = low
            self._high = high


# -- asymptotic ------------------------------------------------------------------------


def asymptotic_half_width(
    sd: float, n: int, n_total: int, *, alpha: float = 0.05
) -> float:
    """Half the width after `n` of `n_total` units with standard deviation `sd` (formula above).

    It is infinite for n = 0. Raises ValueError for n > n_total, a negative sd, and an alpha outside
    (0, 1).
    """
    check_level(alpha, "alpha")
    if not sd >= 0:
        raise ValueError(f"sd must not be negative, but is {sd!r}")
    if n > n_total:
        raise ValueError(f"n must not exceed n_total = {n_total}, but is {n}")
    if n <= 0:
        return math.inf
    if n == n_total:
        return 0.0
    clock = n * n_total / (n_total - n)
    best = max(1, n_total // 3)
    tuning = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / best
    grown = clock * tuning + 1
    return sd * math.sqrt(
        2 * grown / (clock * clock * tuning) * math.log(math.sqrt(grown) / alpha)
    )


@dataclass(slots=True)
class AsymptoticSequence:
    """A running asymptotic confidence sequence for the mean over items, fed with units in order.

    A unit is an item, or a cluster of items: then pass the sum of its scores and its size. The
    target is the mean over items (sum of scores / number of items), not the mean of cluster means;
    its error is that of the residuals (total - mean x size) over the mean size. `n_total` counts
    units (not items).

    The variance always includes one extra unit, as far from the mean as the farthest one seen, and
    there is no interval before 30 units or without spread (the limit theorem says nothing there).
    """

    n_total: int
    alpha: float = 0.05
    n: int = field(default=0, init=False)
    _sums: npt.NDArray[np.float64] = field(
        default_factory=lambda: np.zeros(5), init=False
    )
    _least: float = field(default=math.inf, init=False)
    _most: float = field(default=-math.inf, init=False)
    _low: float = field(default=-math.inf, init=False)
    _high: float = field(default=math.inf, init=False)

    def __post_init__(self) -> None:
        check_level(self.alpha, "alpha")
        if self.n_total < 1:
            raise ValueError(f"n_total must be at least 1, but is {self.n_total}")

    def update(self, values: npt.ArrayLike, sizes: npt.ArrayLike | None = None) -> None:
        """Add the next units.

        The intersection with earlier intervals is taken at the end of each call.

        Args:
            values: (k,), the sum of each unit's scores.
            sizes: (k,), the number of items in each unit; 1 where None.

        Raises:
            ValueError: values that are not finite, sizes below 1, or more units than `n_total`.
        """
        totals = np.atleast_1d(np.asarray(values, dtype=np.float64))
        items = (
            np.ones_like(totals)
            if sizes is None
            else np.atleast_1d(np.asarray(sizes, dtype=np.float64))
        )
        if (
            items.shape != totals.shape
            or not np.isfinite(totals).all()
            or not (items >= 1).all()
        ):
            raise ValueError("units need finite totals and as many sizes of at least 1")
        if self.n + len(totals) > self.n_total:
            raise ValueError(f"more units than n_total = {self.n_total}")
        if not len(totals):
            return
        self.n += len(totals)
        parts = (totals, items, totals * totals, totals * items, items * items)
        self._sums = self._sums + np.array([part.sum() for part in parts])
        means = totals / items
        self._least, self._most = (
            min(self._least, float(means.min())),
            max(self._most, float(means.max())),
        )
        self._intersect()

    @property
    def mean(self) -> float:
        """The mean over the items fed so far; nan before the first."""
        return float(self._sums[0] / self._sums[1]) if self.n else math.nan

    def interval(self) -> tuple[float, float]:
        """Return the intersection of all intervals so far; infinite before there is one."""
        return self._low, self._high

    def _intersect(self) -> None:
        mean = self.mean
        _, items, squares, cross, sizes = (float(part) for part in self._sums)
        if self.n == self.n_total:
            self._low = self._high = mean
            return
        spread = max(squares - 2 * mean * cross + mean * mean * sizes, 0.0)
        farthest = max(mean - self._least, self._most - mean) ** 2 * sizes / self.n
        if self.n < 30 or spread <= 1e-20 * max(squares, 1e-300):
            return
        sd = math.sqrt((spread + farthest) / self.n)
        half = asymptotic_half_width(sd, self.n, self.n_total, alpha=self.alpha) * (
            self.n / items
        )
        if mean - half <= self._high and mean + half >= self._low:
            self._low, self._high = (
                max(self._low, mean - half),
                min(self._high, mean + half),
            )
