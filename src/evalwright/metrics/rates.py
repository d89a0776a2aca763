"""Rates of outcomes: of what should not happen, and of what happened among everything that was asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright.core.errors import UnknownName
from evalwright.metrics.means import accuracy
from evalwright.scorers.outcome import OUTCOMES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate


def hallucination_rate(column: Column, *, level: float = 0.95) -> Estimate:
    """The share of answers that are not consistent with their source; less is better, and scores stay better when higher."""
    found = accuracy(column, level=level)
    bounds = found.bounds and (1 - found.bounds[1], 1 - found.bounds[0])
    return replace(found, value=1 - found.value, low=1 - found.high, high=1 - found.low, bounds=bounds)


def answer_rate(column: Column, *, level: float = 0.95) -> Estimate:
    """The share of all samples asked that have an answer (score 1 of `outcome`).

    A request that failed is no answer, so lost requests never raise the rate; but nobody knows what the model would have
    said, so the bounds hold the rate from none of them to all of them answered, and `n_failed` counts them beside `n`.
    """
    values = column.values if column.draws is None else column.draws
    return _over_all(column, values, level)


def outcome_share(column: Column, *, outcome: str, level: float = 0.95) -> Estimate:
    """The share of all samples asked whose answer is of one class of `outcome`: "refused", "too short", ...

    Failed requests are in the denominator, as for the answer rate. Raises UnknownName for a class that there is not.
    """
    import numpy as np

    if outcome not in OUTCOMES:
        raise UnknownName("outcome", outcome, OUTCOMES, f"Known: {', '.join(OUTCOMES)}.")
    scores = column.values if column.draws is None else column.draws
    parts = column.parts if column.draws is None else column.part_draws
    found = parts.get(outcome)
    values = np.zeros_like(scores) if found is None else np.nan_to_num(found)
    return _over_all(column, np.where(np.isnan(scores), np.nan, values), level)


def _over_all(column: Column, values: NDArray[np.float64], level: float) -> Estimate:
    """The mean of scores from 0 to 1 in which every failed sample is a 0."""
    import numpy as np

    from evalwright.statistics import mean_interval

    failed = column.n_failed
    everything = np.concatenate([values, np.zeros((failed, *values.shape[1:]))])
    clusters = column.clusters
    if clusters is not None:
        codes = np.unique(clusters, return_inverse=True)[1]
        clusters = np.concatenate([codes, np.arange(failed) + len(codes)])
    found = mean_interval(everything, clusters=clusters, level=level)
    if not failed:
        return found
    everything[len(values) :] = 1.0
    most = mean_interval(everything, clusters=clusters, level=level).high
    method = f"{found.method}; of all {len(everything):,} asked; the {failed:,} that failed count as 0"
    return replace(found, n=len(values), n_failed=failed, bounds=(found.low, most), method=method)
