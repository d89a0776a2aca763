"""Rates of outcomes: of what should not happen, and of what happened among everything that was asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright.core.errors import check_known
from evalwright.metrics.means import accuracy
from evalwright.scorers.outcome import OUTCOMES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate


def hallucination_rate(column: Column, *, level: float = 0.95) -> Estimate:
    """The share of answers that are not consistent with their source; lower is better, and scores stay better when higher."""
    found = accuracy(column, level=level)
    bounds = found.bounds and (1 - found.bounds[1], 1 - found.bounds[0])
    return replace(found, value=1 - found.value, low=1 - found.high, high=1 - found.low, bounds=bounds)


def answer_rate(column: Column, *, level: float = 0.95) -> Estimate:
    """The share of all samples asked that have an answer (score 1 of `outcome`).

    A request that failed is no answer, so lost requests never raise the rate; but nobody knows what the model would have
    said, so the bounds hold the rate from none of them to all of them answered, and `n_failed` counts them beside `n`.
    """
    return _over_all(column, score_values(column), level)


def outcome_share(column: Column, *, outcome: str, level: float = 0.95) -> Estimate:
    """The share of all samples asked whose answer is of one class of `outcome`: "refused", "too short", ...

    Failed requests are in the denominator, as for the answer rate. Raises UnknownName for a class that there is not.
    """
    check_known("outcome", [outcome], OUTCOMES)
    return _over_all(column, part_values(column, outcome=outcome), level)


def score_values(column: Column) -> NDArray[np.float64]:
    """The scores, (n,) or (n, draws)."""
    return column.values if column.draws is None else column.draws


def part_values(column: Column, *outcomes: str, outcome: str = "") -> NDArray[np.float64]:
    """The sum of some parts of each score, (n,) or (n, draws); 0 where a score has none of them."""
    import numpy as np

    scores = score_values(column)
    parts = column.parts if column.draws is None else column.part_draws
    found = [np.nan_to_num(parts[name]) for name in outcomes or (outcome,) if name in parts]
    return np.where(np.isnan(scores), np.nan, sum(found, np.zeros_like(scores)))


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
