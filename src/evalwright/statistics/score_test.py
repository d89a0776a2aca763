"""The score test of a mean difference: one test for the interval, the p-value, equivalence and what could have been seen.

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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalwright.statistics.units import F64

ADDED = 0.25
_STEPS = 50
_NOISE = 1e-12


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
            better / design + ADDED,
            worse / design + ADDED,
            n / design + 2 * ADDED,
            np.maximum(freedom, 1.0),
        )
