"""Means of scores, each with the interval that suits the scores (see `evalwright.statistics.mean_interval`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalwright.core.errors import ConfigurationError, UnknownName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate

_UNIT_RANGE = (0.0, 1.0)


def mean(column: Column, *, value_range: Sequence[float] | None = None, level: float = 0.95) -> Estimate:
    """The mean score. value_range: the least and greatest score possible, where that is known; it bounds what failed."""
    return _mean(column, _checked_range(value_range), level)


def accuracy(column: Column, *, level: float = 0.95) -> Estimate:
    """The mean of scores between 0 and 1: the share of right answers where scores are 0 or 1."""
    return _mean(column, _UNIT_RANGE, level)


def exact_match(column: Column, *, level: float = 0.95) -> Estimate:
    """The share of answers that equal a target; the same number as accuracy, under the name that benchmarks use."""
    return _mean(column, _UNIT_RANGE, level)


def part_mean(column: Column, *, part: str, level: float = 0.95) -> Estimate:
    """The mean of a named part of the scores, between 0 and 1: of one criterion of a rubric, say. Scores without it are not in it."""
    import numpy as np

    from evalwright.metrics.perplexities import nothing_scored
    from evalwright.statistics import mean_interval

    if not len(column.values):
        return nothing_scored(column, level)
    values = (column.parts if column.draws is None else column.part_draws).get(part)
    if values is None:
        raise UnknownName(
            "part of the scores", part, column.parts, f"There are: {', '.join(column.parts) or 'none'}."
        )
    there = ~np.isnan(values.reshape(len(values), -1)).all(axis=1)
    clusters = None if column.clusters is None else column.clusters[there]
    try:
        return mean_interval(
            values[there], clusters=clusters, n_failed=column.n_failed, value_range=_UNIT_RANGE, level=level
        )
    except ValueError as error:
        raise ConfigurationError(f"The mean of the part '{part}' cannot be computed: {error}.") from error


def _mean(column: Column, value_range: tuple[float, float] | None, level: float) -> Estimate:
    return over_items(column, column.values if column.draws is None else column.draws, value_range, level)


def over_items(
    column: Column, values: NDArray[np.float64], value_range: tuple[float, float] | None, level: float
) -> Estimate:
    """The mean of values of the column's items, (n,) or (n, draws), with its interval and the bounds of what failed.

    Raises ConfigurationError where it cannot be computed.
    """
    import numpy as np

    from evalwright.statistics import mean_interval

    clusters, n_failed = column.clusters, column.n_failed
    if clusters is not None and column.missing_clusters is not None:
        values = np.concatenate([values, np.full((n_failed, *values.shape[1:]), np.nan)])
        clusters, n_failed = np.concatenate([clusters, column.missing_clusters]), 0
    try:
        return mean_interval(
            values,
            clusters=clusters,
            n_failed=n_failed,
            value_range=value_range,
            level=level,
        )
    except ValueError as error:
        raise ConfigurationError(f"The mean of these scores cannot be computed: {error}.") from error


def _checked_range(given: Sequence[float] | None) -> tuple[float, float] | None:
    if given is None:
        return None
    if len(given) != 2 or not given[0] < given[1]:
        raise ConfigurationError(
            f"The option 'value_range' must be two numbers, the least first, such as [0, 1], not {given!r}."
        )
    return float(given[0]), float(given[1])
