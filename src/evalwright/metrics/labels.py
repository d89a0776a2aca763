"""Metrics over predicted and gold classes, from the parts "gold" and "predicted" that the scorer `choice` leaves.

An answer from which no option could be extracted has the predicted class -1: always wrong, and for macro-F1 a class of its
own, with F1 = 0, as in scikit-learn. Failed samples are counted, but their gold class is not in the column, so these metrics
have no bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright.core.errors import ConfigurationError
from evalwright.metrics.perplexities import nothing_scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.metrics.registry import Column, Groups, GroupSums
    from evalwright.statistics import Estimate


def balanced_accuracy(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """The mean recall over the gold classes; a constant answer gets 1 / classes. seed: of the bootstrap interval."""
    from evalwright import statistics

    return _over_labels(column, statistics.balanced_accuracy, level, seed)


def macro_f1(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """The mean F1 over the classes in gold or predictions. seed: of the bootstrap interval."""
    from evalwright import statistics

    return _over_labels(column, statistics.macro_f1, level, seed)


def null_weighted_f1(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """The mean F1 over the gold classes, times the share of answers from which a class could be read.

    An answer that could not be read counts twice: its class lacks a hit, and all classes are weighted down. seed: of the bootstrap interval.
    """
    from evalwright import statistics

    return _over_labels(column, statistics.null_weighted_f1, level, seed)


def _over_labels(column: Column, metric: Callable[..., Estimate], level: float, seed: int) -> Estimate:
    import numpy as np

    if not len(column.values):
        return nothing_scored(column, level)
    gold, predicted, kept, complete = _classes(column)
    left_out = int((~kept).sum())
    if left_out == len(kept):
        return replace(
            nothing_scored(column, level), method="no interval: no sample has exactly one right option"
        )
    n_failed = column.n_failed + int(kept.sum() - complete.sum())
    if (predicted != np.rint(predicted)).any():
        return replace(
            nothing_scored(column, level), method="no number: the classes of several draws were averaged"
        )
    estimate = metric(
        gold.astype(np.int64),
        predicted.astype(np.int64),
        clusters=None if column.clusters is None else column.clusters[complete],
        level=level,
        seed=seed,
    )
    method = estimate.method
    if left_out:
        method += f"; {left_out} samples with several right options left out"
    return replace(estimate, n_failed=n_failed, method=method)


def label_sums(column: Column, groups: Groups, *, kind: str, seed: int = 0) -> GroupSums:
    """Hits, gold and predicted labels by class, of which both metrics are made. seed: of the metric's bootstrap, unused."""
    from evalwright.statistics.labels import grouped_labels

    gold, predicted, _, complete = _classes(column)
    return grouped_labels(gold, predicted, groups.codes[complete], groups.count, kind)


def _classes(
    column: Column,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Gold and predicted classes of the items that have both; which items have one right option, and which have both."""
    import numpy as np

    if "gold" not in column.parts or "predicted" not in column.parts:
        raise ConfigurationError(
            "Balanced accuracy and macro-F1 need the parts 'gold' and 'predicted' of the scores, which only samples with "
            "exactly one right option have. Use them with the scorer 'choice'."
        )
    gold = column.parts["gold"]
    predicted = column.part_draws.get("predicted", column.parts["predicted"])
    kept = ~np.isnan(gold)
    complete = kept & ~np.isnan(predicted.reshape(len(gold), -1)).any(axis=1)
    return gold[complete], predicted[complete], kept, complete
