"""Confidence sequences from the spread alone: for large n, unbounded scores and clusters.

    mean +- sd sqrt( 2 (n r + 1) / (n^2 r) log( sqrt(n r + 1) / alpha ) ),   r = (-2 log a + log(-2 log a + 1)) / n_opt

holds at all n at once in the limit of large n (Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2024,
"Time-uniform central limit theory and asymptotic confidence sequences"), and is narrowest near n_opt, here N / 3.

Units come without replacement from N, for which the same holds with t = n N / (N - n) in place of n: the sum of the
first n less n times the mean is a random-walk bridge, and times N / (N - n) a walk with the clock t. At n = N the
width is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level


def asymptotic_half_width(sd: float, n: int, n_total: int, *, alpha: float = 0.05) -> float:
    """Half the width after `n` of `n_total` units with standard deviation `sd` (formula above); infinite for n = 0.

    Raises ValueError for n > n_total, a negative sd, and an alpha outside (0, 1).
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
    return sd * math.sqrt(2 * grown / (clock * clock * tuning) * math.log(math.sqrt(grown) / alpha))


@dataclass(slots=True)
class AsymptoticSequence:
    """A running asymptotic confidence sequence for the mean over items, fed with units in their order.

    A unit is an item, or a cluster of items: then give the sum of its scores and its `sizes`. The estimand
    is the mean over items (sum of scores / number of items), not the mean of cluster means; its error is
    that of the residuals (total - mean x size) over the mean size. `n_total` counts units (not items).

    The spread always counts one more unit, as far from the mean as the farthest seen, and no interval is
    given before 30 units or without spread (the limit theorem says nothing there).
    """

    n_total: int
    alpha: float = 0.05
    n: int = field(default=0, init=False)
    _sums: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(5), init=False)
    _least: float = field(default=math.inf, init=False)
    _most: float = field(default=-math.inf, init=False)
    _low: float = field(default=-math.inf, init=False)
    _high: float = field(default=math.inf, init=False)

    def __post_init__(self) -> None:
        check_level(self.alpha, "alpha")
        if self.n_total < 1:
            raise ValueError(f"n_total must be at least 1, but is {self.n_total}")

    def update(self, values: npt.ArrayLike, sizes: npt.ArrayLike | None = None) -> None:
        """Feed the next units: `values` (k,) totals, `sizes` (k,) items in each (1 where None).

        The running intersection is taken at the end of each call. Raises ValueError for values that are not
        finite, sizes below 1, or more units than `n_total`.
        """
        totals = np.atleast_1d(np.asarray(values, dtype=np.float64))
        items = np.ones_like(totals) if sizes is None else np.atleast_1d(np.asarray(sizes, dtype=np.float64))
        if items.shape != totals.shape or not np.isfinite(totals).all() or not (items >= 1).all():
            raise ValueError("units need finite totals and as many sizes of at least 1")
        if self.n + len(totals) > self.n_total:
            raise ValueError(f"more units than n_total = {self.n_total}")
        if not len(totals):
            return
        self.n += len(totals)
        parts = (totals, items, totals * totals, totals * items, items * items)
        self._sums = self._sums + np.array([part.sum() for part in parts])
        means = totals / items
        self._least, self._most = min(self._least, float(means.min())), max(self._most, float(means.max()))
        self._intersect()

    @property
    def mean(self) -> float:
        """The mean over the items fed so far; nan before the first."""
        return float(self._sums[0] / self._sums[1]) if self.n else math.nan

    def interval(self) -> tuple[float, float]:
        """The running intersection so far: (low, high), infinite where nothing is known yet."""
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
        half = asymptotic_half_width(sd, self.n, self.n_total, alpha=self.alpha) * (self.n / items)
        if mean - half <= self._high and mean + half >= self._low:
            self._low, self._high = max(self._low, mean - half), min(self._high, mean + half)
