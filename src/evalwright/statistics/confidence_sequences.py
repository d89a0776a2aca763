"""Intervals that hold at every look: hedged betting confidence sequences for means of bounded scores.

For every candidate mean m a gambler bets that scores lie above m, another that they lie below. If m is
true, neither can multiply the stake by 2 / alpha, ever, but with probability alpha / 2; the m that neither
has refuted are the interval. Nothing is assumed but the range of the scores and an order that was fixed
before (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting").

Units come without replacement from N, so the mean of what is left replaces m: (N m - sum so far) / (N - n). The
mean is that of exactly these N, and at n = N nothing else is left. Bets grow with sqrt(N / (N - n)), because late
units say more about the little that is left. A unit is an item (its mean over draws); `asymptotic` serves clusters.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level
from evalwright.statistics.units import F64, Range

_CELLS = 401
_FEWEST_CELLS = 120
_ROWS = 128
_TRUNCATION = 0.5


class BettingSequence:
    """A running hedged betting confidence sequence, fed with units in an order fixed before the first one.

    `n_total`: units there are; the mean is over exactly these. `alpha`: chance that the interval ever misses.
    `value_range`: the least and greatest value of a unit. Ends are rounded outwards, by less than a hundredth of the
    width. An update costs a few hundred multiplications a value.
    """

    def __init__(self, n_total: int, *, alpha: float = 0.05, value_range: Range = (0.0, 1.0)) -> None:
        check_level(alpha, "alpha")
        bottom, top = value_range
        if not (math.isfinite(bottom) and math.isfinite(top) and bottom < top):
            raise ValueError(f"value_range must be two finite numbers, least first, but is {value_range}")
        if n_total < 1:
            raise ValueError(f"n_total must be at least 1, but is {n_total}")
        self.alpha, self.n_total, self.value_range = alpha, n_total, (float(bottom), float(top))
        self.n = 0
        self._bar = math.log(2 / alpha)
        self._raw_sum = 0.0
        self._sum, self._squares = 0.0, 0.25
        self._variance = 0.25
        self._low, self._high = 0.0, 1.0
        self._values, self._bets = np.empty(1024), np.empty(1024)
        self._grid: F64 = np.empty(0)
        self._above: F64 = np.empty(0)
        self._below: F64 = np.empty(0)
        self._set_grid()

    def update(self, values: npt.ArrayLike) -> tuple[F64, F64]:
        """Feed the next values (k,), or one number; the interval after each of them: (low, high), each (k,).

        Raises ValueError for values outside `value_range`, or too many.
        """
        scaled = self._checked(values)
        lows, highs = np.empty(len(scaled)), np.empty(len(scaled))
        for start in range(0, len(scaled), _ROWS):
            part = scaled[start : start + _ROWS]
            lows[start : start + len(part)], highs[start : start + len(part)] = self._feed(part)
        bottom, top = self.value_range
        lows, highs = bottom + (top - bottom) * lows, bottom + (top - bottom) * highs
        if len(scaled) and self.n == self.n_total:
            lows[-1] = highs[-1] = self.mean
        return lows, highs

    @property
    def mean(self) -> float:
        """The mean of the values so far; nan before the first."""
        return self._raw_sum / self.n if self.n else math.nan

    def interval(self) -> tuple[float, float]:
        """The running intersection so far: (low, high) in the units of the values."""
        if self.n == self.n_total:
            return self.mean, self.mean
        bottom, top = self.value_range
        return bottom + (top - bottom) * self._low, bottom + (top - bottom) * self._high

    def _checked(self, values: npt.ArrayLike) -> F64:
        raw = np.atleast_1d(np.asarray(values, dtype=np.float64))
        bottom, top = self.value_range
        slack = 1e-9 * (top - bottom)
        if raw.ndim != 1 or not bool(((raw >= bottom - slack) & (raw <= top + slack)).all()):
            raise ValueError(f"values must be numbers in value_range {self.value_range}, one a unit")
        if self.n + len(raw) > self.n_total:
            raise ValueError(f"{self.n + len(raw)} values are more than n_total = {self.n_total}")
        self._raw_sum += float(raw.sum())
        return np.clip((raw - bottom) / (top - bottom), 0.0, 1.0)

    def _feed(self, x: F64) -> tuple[F64, F64]:
        before, count = self.n, len(x)
        place = np.arange(before + 1, before + count + 1, dtype=np.float64)
        self._bets_for(x, place)
        sums = self._sum + np.concatenate(([0.0], np.cumsum(x)))
        self.n += count
        lows, highs = self._bet(x, self._bets[before : self.n], sums[:-1], place)
        self._sum = float(sums[-1])
        # What has been seen bounds the mean of all outright.
        lows = np.maximum(lows, sums[1:] / self.n_total)
        highs = np.minimum(highs, (sums[1:] + (self.n_total - place)) / self.n_total)
        empty = lows > highs  # the sequence has refuted every mean: keep what it said last
        if empty.any():
            first = int(empty.argmax())
            lows[first:] = lows[first - 1] if first else self._low
            highs[first:] = highs[first - 1] if first else self._high
        self._low, self._high = float(lows[-1]), float(highs[-1])
        if np.count_nonzero((self._grid > self._low) & (self._grid < self._high)) < _FEWEST_CELLS:
            self._refine()
        return lows, highs

    def _bets_for(self, x: F64, place: F64) -> None:
        """Bets on each value, from those before it alone; and both into the history."""
        means = (0.5 + self._sum + np.cumsum(x)) / (place + 1)
        squares = self._squares + np.cumsum((x - means) ** 2)
        variances = np.concatenate(([self._variance], squares / (place + 1)))
        growth = self.n_total / (self.n_total - place + 1)
        bets = np.sqrt(2 * self._bar * growth / (variances[:-1] * place * np.log1p(place * growth)))
        end = self.n + len(x)
        while end > len(self._values):
            self._values = np.concatenate((self._values, np.empty_like(self._values)))
            self._bets = np.concatenate((self._bets, np.empty_like(self._bets)))
        self._values[self.n : end], self._bets[self.n : end] = x, bets
        self._squares, self._variance = float(squares[-1]), float(variances[-1])

    def _bet(self, x: F64, bets: F64, sums: F64, place: F64) -> tuple[F64, F64]:
        """Multiply the stakes of every m on the grid by what these values pay; the interval after each
        value."""
        left = (self.n_total - place + 1)[:, None]
        m = np.clip((self.n_total * self._grid - sums[:, None]) / left, 1e-12, 1 - 1e-12)
        gap = x[:, None] - m
        above = np.cumprod(1 + np.minimum(bets[:, None], _TRUNCATION / m) * gap, axis=0)
        below = np.cumprod(1 - np.minimum(bets[:, None], _TRUNCATION / (1 - m)) * gap, axis=0)
        # Stakes above fall with m and stakes below rise, so what is refuted are the grid's two ends.
        with np.errstate(over="ignore"):  # a stake that is all but lost needs an infinite win
            too_low = (above >= np.exp(self._bar - self._above)).sum(axis=1)
            too_high = (below >= np.exp(self._bar - self._below)).sum(axis=1)
        self._above = self._above + np.log(above[-1])
        self._below = self._below + np.log(below[-1])
        low_cell = np.maximum.accumulate(too_low) - 1
        high_cell = len(self._grid) - np.maximum.accumulate(too_high)
        lows = np.where(low_cell >= 0, self._grid[np.maximum(low_cell, 0)], self._low)
        last = len(self._grid) - 1
        highs = np.where(high_cell <= last, self._grid[np.minimum(high_cell, last)], self._high)
        return np.maximum(lows, self._low), np.minimum(highs, self._high)

    def _set_grid(self) -> None:
        width = self._high - self._low
        self._grid = np.clip(self._low + width * np.linspace(0, 1, _CELLS), 1e-12, 1 - 1e-12)
        self._above, self._below = np.zeros(_CELLS), np.zeros(_CELLS)

    def _refine(self) -> None:
        """A finer grid over the interval that is left, with the stakes that it would have had from the
        start."""
        if self._high - self._low < 1e-9:
            return
        self._set_grid()
        low, high = self._low, self._high
        total = 0.0
        for start in range(0, self.n, _ROWS):
            x = self._values[start : min(start + _ROWS, self.n)]
            place = np.arange(start + 1, start + len(x) + 1, dtype=np.float64)
            sums = total + np.concatenate(([0.0], np.cumsum(x)))
            lows, highs = self._bet(x, self._bets[start : start + len(x)], sums[:-1], place)
            low, high, total = max(low, float(lows[-1])), min(high, float(highs[-1])), float(sums[-1])
        if low <= high:
            self._low, self._high = low, high
