"""Quantiles of a stream in little memory, with a guarantee: DDSketch (Masson, Rim & Lee 2019)."""

from __future__ import annotations

import math

_LEAST = 1e-9
"""Values up to this stand together: no clock tells them apart."""


class QuantileSketch:
    """Quantiles of positive values within a relative error of `accuracy`, whatever the values are.

    A value is counted in a bucket whose borders lie apart by a constant factor. Memory goes by the
    range of the values, not by how many there are: from a microsecond to a day there are fewer than
    1,300 buckets of 1%.
    """

    __slots__ = (
        "_counts",
        "_growth",
        "_log_growth",
        "_zeros",
        "accuracy",
        "largest",
        "n",
        "total",
    )

    def __init__(self, accuracy: float = 0.01) -> None:
        if not 0 < accuracy < 1:
            raise ValueError(f"The accuracy must be between 0 and 1, not {accuracy}.")
        self.accuracy = accuracy
        self.n = 0
        self.total = 0.0
        self.largest = 0.0
        self._growth = (1 + accuracy) / (1 - accuracy)
        self._log_growth = math.log(self._growth)
        self._counts: dict[int, int] = {}
        self._zeros = 0

    def add(self, value: float) -> None:
        """Count a value. Raises ValueError for one that is negative or not finite."""
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"A value must be finite and not negative, not {value}.")
        self.n += 1
        self.total += value
        self.largest = max(self.largest, value)
        if value <= _LEAST:
            self._zeros += 1
            return
        bucket = math.ceil(math.log(value) / self._log_growth)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1

    def quantile(self, share: float) -> float:
        """The value at rank floor(share * (n - 1)), counted from 0, within `accuracy` of it. nan
        where there are none.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"A quantile must be between 0 and 1, not {share}.")
        if not self.n:
            return math.nan
        rank = math.floor(share * (self.n - 1))
        passed = self._zeros
        if rank < passed:
            return 0.0
        for bucket in sorted(self._counts):
            passed += self._counts[bucket]
            if rank < passed:
                return float(
                    min(2 * self._growth**bucket / (self._growth + 1), self.largest)
                )
        return self.largest
