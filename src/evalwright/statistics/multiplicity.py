"""Adjusted p-values for several tests: Holm for a few planned ones, Benjamini-Hochberg for screens.

`simultaneous.py` adjusts with less loss where the tests are differences of models on the same items; these two need
nothing but the p-values.
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
    values, there = _checked(p)
    order = np.argsort(values[there], kind="stable")
    tests = len(order)
    stepped = np.maximum.accumulate(values[there][order] * (tests - np.arange(tests)))
    return _placed(stepped, order, there)


def benjamini_hochberg(p: npt.ArrayLike) -> F64:
    """Benjamini & Hochberg's (1995) adjusted p-values, in the order of `p`: they hold the share of false alarms
    among the alarms, for tests that are independent or positively dependent.

    `p`: (tests,); nan = no test, which stays nan and does not count. Raises ValueError for another shape or a
    value outside [0, 1].
    """
    values, there = _checked(p)
    order = np.argsort(values[there], kind="stable")[::-1]
    tests = len(order)
    stepped = np.minimum.accumulate(values[there][order] * tests / (tests - np.arange(tests)))
    return _placed(stepped, order, there)


def _checked(p: npt.ArrayLike) -> tuple[F64, npt.NDArray[np.bool_]]:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"p-values must have the shape (tests,), not {values.shape}; flatten them first")
    there = ~np.isnan(values)
    if ((values[there] < 0) | (values[there] > 1)).any():
        raise ValueError("p-values must lie between 0 and 1, or be nan where there was no test")
    return values, there


def _placed(stepped: F64, order: npt.NDArray[np.intp], there: npt.NDArray[np.bool_]) -> F64:
    """The adjusted values back in the order in which they came."""
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(stepped, 1.0)
    out = np.full(len(there), np.nan)
    out[there] = adjusted
    return out
