"""All pairs of many models on the same items at once: paired differences with their standard errors, from one covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairwiseDifferences:
    """difference[i, j] = mean_i - mean_j and its standard error, both (models, models); units: items or clusters."""

    difference: F64
    standard_error: F64
    units: int


def pairwise_differences(scores: F64, clusters: npt.NDArray[np.int64] | None = None) -> PairwiseDifferences:
    """Paired differences of every two rows of `scores` (models, items), without nan.

    The standard error of a pair is that of `compare_paired`: sqrt(G/(G-1) sum_g (sum_{i in g} (d_i - mean d))^2) / n,
    with items as their own clusters where none are given. Because it is a quadratic form in the two rows, all pairs come
    from the covariance of the rows' cluster totals. Raises ValueError for fewer than two units.
    """
    models, items = scores.shape
    residuals = scores - scores.mean(axis=1, keepdims=True)
    if clusters is None:
        totals = residuals
    else:
        _, codes = np.unique(clusters, return_inverse=True)
        totals = np.zeros((models, int(codes.max()) + 1))
        np.add.at(totals.T, codes, residuals.T)
    units = totals.shape[1]
    if units < 2:
        raise ValueError("paired differences need at least two items or clusters")
    gram = totals @ totals.T
    spread = np.diag(gram)[:, None] + np.diag(gram)[None, :] - 2 * gram
    # Rounding leaves a trace where two rows are equal.
    spread[spread < 1e-9 * max(float(gram.max(initial=0.0)), 1e-300)] = 0.0
    means = scores.mean(axis=1)
    return PairwiseDifferences(
        means[:, None] - means[None, :], np.sqrt(spread * units / (units - 1)) / items, units
    )
