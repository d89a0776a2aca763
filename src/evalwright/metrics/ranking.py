"""Whether a probability sorts one class above the other, from the parts "gold" and "probability" of the scores."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright.core.errors import ConfigurationError
from evalwright.metrics.perplexities import nothing_scored

if TYPE_CHECKING:
    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate


def auroc(column: Column, *, level: float = 0.95) -> Estimate:
    """The chance that a sample of the last class has a higher probability of it than one of the first, ties half.

    For two classes, with a scorer that leaves "gold" (0 or 1) and "probability" (of class 1), such as `classification`. It does not
    depend on a threshold. No number where the samples are all of one class.
    """
    import numpy as np

    from evalwright import statistics

    if not len(column.values):
        return nothing_scored(column, level)
    if "gold" not in column.parts or "probability" not in column.parts:
        raise ConfigurationError(
            "AUROC needs the parts 'gold' and 'probability' of the scores. Use it with the scorer 'classification' and a model "
            "that gives class probabilities."
        )
    gold, probability = column.parts["gold"], column.parts["probability"]
    kept = ~(np.isnan(gold) | np.isnan(probability))
    if not np.isin(gold[kept], (0.0, 1.0)).all():
        raise ConfigurationError("AUROC is for two classes, and the samples have more.")
    found = statistics.auroc(
        probability[kept],
        gold[kept],
        clusters=None if column.clusters is None else column.clusters[kept],
        level=level,
    )
    return replace(found, n_failed=column.n_failed + int((~kept).sum()))
