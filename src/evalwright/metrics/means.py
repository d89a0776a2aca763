"""Means of scores, and shares of answers, each with a suitable interval.

`evalwright.statistics.mean_interval` chooses the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright import statistics
from evalwright.core.errors import ConfigurationError, UnknownName, check_known, listed
from evalwright.metrics.registry import Column, nothing_scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.statistics import Estimate

_UNIT_RANGE = (0.0, 1.0)
DIFFER = "judges differ"
"""The part of a panel's scores that is 1 if its verdicts differ (`scorers.judge.panel`)."""


def mean(
    column: Column,
    *,
    value_range: Sequence[float] | None = None,
    part: str = "",
    level: float = 0.95,
) -> Estimate:
    """The mean score, or the mean of a named part of the scores.

    An item whose score lacks the part is missing.

    Args:
        column: the scores.
        value_range: the least and greatest possible score, if known; used to bound the effect of
            missing scores.
        part: the part; "" for the scores themselves.
        level: confidence level of the interval.
    """
    scores = _scores(column, part)
    if value_range is None:
        return over_items(column, scores, None, level)
    if len(value_range) != 2 or not value_range[0] < value_range[1]:
        raise ConfigurationError(
            "The option 'value_range' must be two numbers, the least first, such as"
            f" [0, 1], not {value_range!r}."
        )
    return over_items(
        column, scores, (float(value_range[0]), float(value_range[1])), level
    )


def accuracy(column: Column, *, part: str = "", level: float = 0.95) -> Estimate:
    """The mean of scores in [0, 1], or of a part of them.

    The share of right answers for 0/1 scores. An item whose score lacks the part is missing.
    """
    return over_items(column, _scores(column, part), _UNIT_RANGE, level)


def exact_match(column: Column, *, part: str = "", level: float = 0.95) -> Estimate:
    """The share of answers that equal a target: accuracy, under the name that benchmarks use."""
    return accuracy(column, part=part, level=level)


def effort(column: Column, *, part: str = "steps", level: float = 0.95) -> Estimate:
    """The mean of what answers took, such as steps or dollars; lower is better.

    Args:
        column: the scores of the scorer `effort`.
        part: which of their parts: "steps", "tokens", "dollars", "seconds" or another.
        level: confidence level of the interval.
    """
    if not len(column.values) or part not in column.parts:
        return nothing_scored(column, level)
    return over_items(column, _part_scores(column, part), None, level)


def effort_values(column: Column, *, part: str = "steps") -> NDArray[np.float64]:
    """Return what each answer took, (n,) or (n, draws)."""
    return _part_scores(column, part)


def judges_differ(column: Column, *, level: float = 0.95) -> Estimate:
    """The share of answers on which the judges of a panel give different verdicts."""
    if not len(column.values) or DIFFER not in column.parts:
        return nothing_scored(column, level)
    return over_items(column, _scores(column, DIFFER), _UNIT_RANGE, level)


def hallucination_rate(
    column: Column, *, part: str = "", level: float = 0.95
) -> Estimate:
    """The share of answers that are not consistent with their source; lower is better.

    It is 1 minus the mean score: of the scores themselves, higher is still better.

    Args:
        column: the scores.
        part: one judge's verdicts in place of the panel's, such as "judge-2 verdict". An item
            without that judge's verdict is missing.
        level: confidence level of the interval.
    """
    if part.endswith(" verdict") and part not in column.parts:
        # A judge of a panel that gave no verdict at all.
        missing = replace(column, n_missing=column.n_missing + len(column.values))
        return nothing_scored(missing, level)
    consistency = accuracy(column, part=part, level=level)
    bounds = consistency.bounds and (
        1 - consistency.bounds[1],
        1 - consistency.bounds[0],
    )
    return replace(
        consistency,
        value=1 - consistency.value,
        low=1 - consistency.high,
        high=1 - consistency.low,
        bounds=bounds,
    )


def part_mean(column: Column, *, part: str, level: float = 0.95) -> Estimate:
    """The mean of a named part of the scores, between 0 and 1, such as one criterion of a rubric.

    Scores without the part are left out.
    """
    import numpy as np

    if not len(column.values):
        return nothing_scored(column, level)
    values = _part_scores(column, part)
    has_value = ~np.isnan(values.reshape(len(values), -1)).all(axis=1)
    return statistics.mean_interval(
        values[has_value],
        clusters=column.clusters_of(has_value),
        n_missing=column.n_missing,
        value_range=_UNIT_RANGE,
        level=level,
    )


def _scores(column: Column, part: str) -> NDArray[np.float64]:
    """Return the scores or a part of them, (n,) or (n, draws), with nan where a score lacks it."""
    return _part_scores(column, part) if part and len(column.values) else column.scores


def _part_scores(column: Column, part: str) -> NDArray[np.float64]:
    """Return a part of the scores, (n,) or (n, draws). Raises UnknownName where no score has it."""
    scores = (column.parts if column.draws is None else column.part_draws).get(part)
    if scores is None:
        raise UnknownName(
            "part of the scores",
            part,
            column.parts,
            f"There are: {listed(column.parts) or 'none'}.",
        )
    return scores


def over_items(
    column: Column,
    values: NDArray[np.float64],
    value_range: tuple[float, float] | None,
    level: float,
) -> Estimate:
    """Average values over the column's items, with an interval and bounds for missing items.

    Args:
        column: the column of the items.
        values: (n,) or (n, draws).
        value_range: the least and greatest possible value, if known.
        level: confidence level of the interval.

    Raises:
        ValueError: it cannot be computed.
    """
    import numpy as np

    clusters = column.clusters
    n_missing = column.n_missing
    if clusters is not None and column.missing_clusters is not None:
        values = np.concatenate(
            [values, np.full((n_missing, *values.shape[1:]), np.nan)]
        )
        clusters = np.concatenate([clusters, column.missing_clusters])
        n_missing = 0
    return statistics.mean_interval(
        values,
        clusters=clusters,
        n_missing=n_missing,
        value_range=value_range,
        level=level,
    )


# -- shares of answers in a class; scores have the classes as parts ----------------------


def answer_class_share(
    column: Column, *, outcome: str, level: float = 0.95
) -> Estimate:
    """The share of answers of one class of `grounding` or `grounded-answer` ("answered-wrong").

    Failed samples are counted separately and widen the bounds. Raises UnknownName for an unknown
    class.
    """
    from evalwright.scorers.grounding.outcome import OUTCOMES

    check_known("outcome", [outcome], OUTCOMES)
    estimate = _share(column, part_values(column, outcome=outcome), level)
    return replace(estimate, method=f"{estimate.method}; class '{outcome}'")


def handled(column: Column, *, level: float = 0.95) -> Estimate:
    """The share of answers that refuse or correct (classes "refusal" and "correction" of `stress`).

    Partly handled is not handled. Failed requests are not answers: they are counted separately and
    widen the bounds.
    """
    return _share(column, handled_values(column), level)


def stress_share(
    column: Column, *, outcome: str = "fabricated", level: float = 0.95
) -> Estimate:
    """The share of answers of one class of `stress`. Raises UnknownName for an unknown class."""
    from evalwright.scorers.stress.rules import CLASSES

    check_known("class of stress answers", [outcome], CLASSES)
    return _share(column, share_values(column, outcome=outcome), level)


def handled_values(column: Column) -> NDArray[np.float64]:
    """Whether each answer refuses or corrects, as 0 or 1, (n,) or (n, draws)."""
    from evalwright.scorers.stress.rules import HANDLED

    return part_values(column, *HANDLED)


def share_values(column: Column, *, outcome: str = "fabricated") -> NDArray[np.float64]:
    """Whether each answer is of the class, as 0 or 1, (n,) or (n, draws)."""
    return part_values(column, outcome)


def part_values(
    column: Column, *outcomes: str, outcome: str = ""
) -> NDArray[np.float64]:
    """Sum some parts of each score, (n,) or (n, draws); 0 where a score has none of them."""
    import numpy as np

    numbers_by_part = column.parts if column.draws is None else column.part_draws
    indicators = [
        np.nan_to_num(numbers_by_part[name])
        for name in outcomes or (outcome,)
        if name in numbers_by_part
    ]
    return np.where(
        np.isnan(column.scores), np.nan, sum(indicators, np.zeros_like(column.scores))
    )


def _share(column: Column, values: NDArray[np.float64], level: float) -> Estimate:
    return statistics.mean_interval(
        values, clusters=column.clusters, n_missing=column.n_missing, level=level
    )


# -- shares of all requested samples ----------------------------------------------------


def answer_rate(column: Column, *, level: float = 0.95) -> Estimate:
    """The share of all requested samples that have an answer (score 1 of `outcome`).

    A failed request is no answer, so losing requests never raises the rate. What the model would
    have said is unknown, so the bounds range from none to all of them answered, and `n_missing`
    counts them beside `n`.
    """
    return _over_all(column, column.scores, level)


def outcome_share(column: Column, *, outcome: str, level: float = 0.95) -> Estimate:
    """The share of all requested samples with one class of `outcome`, such as "refused".

    Failed requests are in the denominator, as for the answer rate. Raises UnknownName for an
    unknown class.
    """
    from evalwright.scorers.outcome import OUTCOMES

    check_known("outcome", [outcome], OUTCOMES)
    return _over_all(column, part_values(column, outcome=outcome), level)


def score_values(column: Column) -> NDArray[np.float64]:
    """Return the scores, (n,) or (n, draws)."""
    return column.scores


def _over_all(column: Column, values: NDArray[np.float64], level: float) -> Estimate:
    """Average scores from 0 to 1, counting every failed sample as 0.

    No number where every sample failed.
    """
    import numpy as np

    failed = column.n_missing
    clusters = column.clusters
    if failed and not len(values):
        unknown = nothing_scored(
            column, level, f"no interval: all {failed:,} requests failed"
        )
        return replace(unknown, bounds=(0.0, 1.0))
    everything = np.concatenate([values, np.zeros((failed, *values.shape[1:]))])
    if clusters is not None:
        codes = np.unique(clusters, return_inverse=True)[1]
        clusters = np.concatenate([codes, np.arange(failed) + len(codes)])
    estimate = statistics.mean_interval(everything, clusters=clusters, level=level)
    if not failed:
        return estimate
    everything[len(values) :] = 1.0
    most = statistics.mean_interval(everything, clusters=clusters, level=level).high
    method = (
        f"{estimate.method}; of all {len(everything):,} asked; the {failed:,} that failed"
        " count as 0"
    )
    return replace(
        estimate,
        n=len(values),
        n_missing=failed,
        bounds=(estimate.low, most),
        method=method,
    )
