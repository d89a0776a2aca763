"""Corrections of p-values for multiple testing, and the levels of intervals that match them.

`holm` limits the chance of any false finding to 5%, `benjamini_hochberg` the expected share of
false findings among all. The second is for exploring: with 20 slices of which 5 differ it finds
more of these, and of twenty findings one may be false.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from evalwright.statistics.units import F64

Adjustment = Literal["bh", "holm", "none"]
ADJUSTMENTS: tuple[Adjustment, ...] = get_args(Adjustment)


def holm(p: npt.ArrayLike) -> F64:
    """Holm's (1979) step-down adjusted p-values, which limit the chance of any false finding.

    Args:
        p: (tests,); nan means no test, stays nan and does not count.

    Returns:
        (tests,), in the order of `p`.

    Raises:
        ValueError: another shape, or a value outside [0, 1].
    """
    values, tested, order = _sort_p_values(p)
    tests = len(order)
    stepped = np.maximum.accumulate(values[tested][order] * (tests - np.arange(tests)))
    return _restore_order(stepped, values, tested, order)


def holm_rows(p: F64) -> F64:
    """`holm` of each row, (rows, tests), where the tests of a row are one family."""
    order = np.argsort(p, axis=1, kind="stable")  # nan comes last
    ascending = np.take_along_axis(p, order, axis=1)
    tests = np.count_nonzero(~np.isnan(p), axis=1)[:, None]
    stepped = np.minimum(
        np.maximum.accumulate(ascending * (tests - np.arange(p.shape[1])), axis=1), 1.0
    )
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, stepped, axis=1)
    return np.where(np.isnan(p), np.nan, adjusted)


def holm_shares(p: npt.ArrayLike, alpha: float = 0.05) -> F64:
    """The error rate at which Holm's procedure tested each p-value.

    alpha / (m - k + 1) for the k-th smallest of m. From the first that is not rejected on it is
    that one's rate; equal p-values have one rate. An interval with this error rate excludes the
    hypothesis exactly where `holm` is below `alpha`. Arguments and errors as of `holm`.
    """
    values, tested, order = _sort_p_values(p)
    ascending = values[tested][order]
    tests = len(order)
    shares = alpha / (tests - np.searchsorted(ascending, ascending, side="left"))
    not_rejected = np.flatnonzero(holm(ascending) >= alpha)
    if len(not_rejected):
        shares[not_rejected[0] :] = shares[not_rejected[0]]
    return _restore_order(shares, values, tested, order)


def benjamini_hochberg(p: npt.ArrayLike) -> F64:
    """Benjamini and Hochberg's (1995) step-up adjusted p-values.

    The findings with a value under q have a false discovery rate of at most q, for independent and
    for positively dependent tests. Argument and errors as of `holm`.
    """
    values, tested, order = _sort_p_values(p)
    tests = len(order)
    scaled = values[tested][order] * tests / np.arange(1, tests + 1)
    return _restore_order(
        np.minimum.accumulate(scaled[::-1])[::-1], values, tested, order
    )


def adjusted_p_values(p: npt.ArrayLike, how: Adjustment) -> F64:
    """Adjust p-values by Benjamini-Hochberg, Holm or not at all."""
    if how == "none":
        return np.asarray(p, dtype=np.float64)
    return benjamini_hochberg(p) if how == "bh" else holm(p)


def interval_level(p: npt.ArrayLike, how: Adjustment, alpha: float = 0.05) -> float:
    """The level of intervals that agree with the adjusted p-values.

    Intervals of findings exclude 0, all others contain it. Of m tests with R findings the level is
    1 - max(R, 1) alpha / m for Benjamini-Hochberg: then the expected share of findings whose
    interval misses the truth is at most alpha (Benjamini & Yekutieli 2005). It is 1 - alpha / m for
    Holm (Bonferroni); there an interval may still contain 0 where the step-down test has excluded
    it, and is then cut at 0.
    """
    if how == "none":
        return 1 - alpha
    adjusted = adjusted_p_values(p, how)
    tests = max(1, int(np.count_nonzero(~np.isnan(adjusted))))
    findings = int(np.count_nonzero(adjusted < alpha)) if how == "bh" else 1
    return 1 - alpha * max(findings, 1) / tests


def _sort_p_values(
    p: npt.ArrayLike,
) -> tuple[F64, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Check p-values; return them, the positions of those that are not nan, and their order."""
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(
            f"p-values must have the shape (tests,), not {values.shape}; flatten them"
            " first"
        )
    tested = np.flatnonzero(~np.isnan(values))
    if ((values[tested] < 0) | (values[tested] > 1)).any():
        raise ValueError(
            "p-values must be between 0 and 1, or be nan where there was no test"
        )
    return values, tested, np.argsort(values[tested], kind="stable")


def _restore_order(
    stepped: F64, values: F64, tested: npt.NDArray[np.intp], order: npt.NDArray[np.intp]
) -> F64:
    adjusted = np.full(len(values), np.nan)
    adjusted[tested[order]] = np.minimum(stepped, 1.0)
    return adjusted
