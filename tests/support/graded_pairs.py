"""The test of graded paired differences for one pair, as docs/reference/paired-tests.md has it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats


@dataclass(frozen=True)
class GradedPair:
    """Hall's transformation of Student's t with the degrees of freedom of the items that differ."""

    mean: float
    error: float
    freedom: float
    skewness: float

    @classmethod
    def of(
        cls, differences: npt.ArrayLike, *, error: float | None = None, freedom: float | None = None,
        units: npt.ArrayLike | None = None, differing: int | None = None, skewed: bool = True,
    ) -> GradedPair:  # fmt: skip
        """units: sums of residuals by cluster, with `error`, `freedom` and `differing` of the
        clusters. skewed: False where the range of a score is not known.
        """
        d = np.asarray(differences, dtype=np.float64)
        residuals = (
            d - d.mean() if units is None else np.asarray(units, dtype=np.float64)
        )
        n = len(residuals)
        kurtosis = n * float((residuals**4).sum()) / float((residuals**2).sum()) ** 2
        k = int(np.count_nonzero(d)) if differing is None else differing
        by_kurtosis = 2 * n / max(kurtosis - (n - 3) / (n - 1), 1e-300)
        weight = k**2 / (k**2 + 400) if skewed else 0.0
        return cls(
            mean=float(d.mean()),
            error=float(stats.sem(d)) if error is None else error,
            freedom=max(
                1.0,
                min(n - 1 if freedom is None else freedom, k + 1, 1.5 * by_kurtosis),
            ),
            skewness=weight
            * float((residuals**3).sum())
            / float((residuals**2).sum()) ** 1.5,
        )

    def transformed(self, at: float) -> float:
        """What is compared with Student's t where the difference is `at`."""
        t = (self.mean - at) / self.error
        a = self.skewness
        return t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6

    def tail(self, at: float, above: bool = True) -> float:
        """One-sided p-value of a difference not above `at`, or not below it."""
        sign = 1 if above else -1
        return float(stats.t.sf(sign * self.transformed(at), self.freedom))

    def p_value(self) -> float:
        """Two-sided."""
        return min(1.0, 2 * min(self.tail(0.0), self.tail(0.0, above=False)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """By search for the ends that the test just rejects."""
        half = (1 - level) / 2
        reach = 1000 * self.error
        low = optimize.brentq(
            lambda at: self.tail(at) - half, self.mean - reach, self.mean
        )
        high = optimize.brentq(
            lambda at: self.tail(at, above=False) - half, self.mean, self.mean + reach
        )
        assert math.isfinite(low) and math.isfinite(high)
        return low, high
