"""Holm's adjusted p-values for a few planned tests.

`simultaneous.py` adjusts with less loss where the tests are differences of models on the same items; this needs nothing
but the p-values.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evalwright.statistics.units import F64


def holm(p: npt.ArrayLike) -> F64:
    """Holm's (1979) step-down adjusted p-values, in the order of `p`: they hold the chance of any false alarm.

    `p`: (tests,); nan = no test, which stays nan and does not count. Raises ValueError for another shape or a
    value outside [0, 1].
    """
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"p-values must have the shape (tests,), not {values.shape}; flatten them first")
    there = np.flatnonzero(~np.isnan(values))
    if ((values[there] < 0) | (values[there] > 1)).any():
        raise ValueError("p-values must be between 0 and 1, or be nan where there was no test")
    order = np.argsort(values[there], kind="stable")
    tests = len(order)
    stepped = np.maximum.accumulate(values[there][order] * (tests - np.arange(tests)))
    adjusted = np.full(len(values), np.nan)
    adjusted[there[order]] = np.minimum(stepped, 1.0)
    return adjusted
