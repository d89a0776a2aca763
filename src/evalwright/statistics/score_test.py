"""The score test of a mean difference: one test for the interval, the p-value, equivalence and what could have been seen.

Right or wrong, item by item: b items where only a was right, c where only b was, of n. The difference delta is rejected where

    |b - c - n delta| / sqrt(n (2 q + delta - delta^2)) > t,    q = the likeliest share of "only b right" given delta

(Tango 1998), and the interval holds what is not rejected. A t from the data's own spread covers 78 to 90% where few items differ,
for then a spread that is small by chance comes with a difference that is; the variance at the hypothesis does not have that
fault. A quarter of a count is added on both sides: it brings the test at 0 to McNemar's mid-p, and exact coverage to 95% and more.

Everything else is brought to this form by an effective number of items, as Rao & Scott (1984) do for proportions: scores between
right and wrong, repeated draws and clusters have another variance than such counts; n is divided by the ratio of the two.
Where scores tie, the ratio counts one more item that differs by the whole range with the weight of the ties, because few small
differences say little about large ones. Quantiles are Student's with the degrees of freedom of the standard error (`units`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalwright.statistics.units import F64

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
        turned, gap = at < 0, np.abs(at)
        up, down = np.where(turned, self.worse, self.better), np.where(turned, self.better, self.worse)
        linear = (2 * self.size - up + down) * gap - up - down
        root = np.sqrt(np.maximum(linear**2 + 8 * self.size * down * gap * (1 - gap), 0.0))
        variance = np.maximum((root - linear) / (2 * self.size) + gap - gap**2, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (up - down - self.size * gap) / np.sqrt(self.size * variance)
        out: F64 = np.where(turned, -found, found)
        return out

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
        centre = self.difference + np.zeros_like(critical)
        low = _boundary(-np.ones_like(centre), centre, lambda at: self.deviate(at) > critical)
        high = _boundary(centre, np.ones_like(centre), lambda at: self.deviate(at) >= -critical)
        return low, high

    def visible(self, level: float, power: float) -> F64:
        """The difference that so many items show with probability `power`: d sqrt(n) = t_level sqrt(r) + t_power sqrt(r - d^2).

        r: the share of items that differ, as seen, but never below d (Connor 1987). At most 1.
        """
        from scipy.special import stdtrit

        critical, more = (np.asarray(stdtrit(self.freedom, at)) for at in (0.5 + level / 2, power))
        rate = (self.better + self.worse) / self.size

        def hidden(at: F64) -> npt.NDArray[np.bool_]:
            share = np.maximum(rate, at)
            needed = critical * np.sqrt(share) + more * np.sqrt(np.maximum(share - at**2, 0.0))
            out: npt.NDArray[np.bool_] = at * np.sqrt(self.size) < needed
            return out

        most = np.ones_like(rate)
        return np.where(hidden(most), most, _boundary(np.zeros_like(rate), most, hidden))


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
        graded = np.where((own > 0) & (whole > 0), own / whole, 1.0)
        variance = (better + worse) / n - mean**2
        seen = np.where((error > 0) & (variance > 0), error**2 * n / variance, n / units)
        design = np.maximum(graded, seen)
        return Counts(
            better / design + ADDED,
            worse / design + ADDED,
            n / design + 2 * ADDED,
            np.maximum(freedom, 1.0),
        )


def _boundary(low: F64, high: F64, below: Callable[[F64], npt.NDArray[np.bool_]]) -> F64:
    """Where `below` goes from true to false between low and high, by halving."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        under = below(middle)
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return (low + high) / 2
