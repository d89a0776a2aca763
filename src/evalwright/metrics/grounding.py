"""Metrics over the scores of `grounding`: citation precision, recall and F1 pooled over all answers, and the share of a class.

The parts "cited", "supporting", "claims" and "supported" of the scores are summed before anything is divided, so an answer with
five claims weighs five times one with a single claim, and an answer without citations has no precision of its own to invent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.metrics.perplexities import nothing_scored
from evalwright.scorers.grounding.outcome import OUTCOMES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate


def citation_precision(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """Citations that support their claim / citations. No number where nothing is cited. seed: of the bootstrap interval."""
    from evalwright.statistics import pooled_share

    if not len(column.values):
        return nothing_scored(column, level)
    right, total = _parts(column, "supporting", "cited")
    return pooled_share(
        right, total, clusters=column.clusters, n_failed=column.n_failed, level=level, seed=seed
    )


def citation_recall(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """Claims with a supporting citation / claims that need one. No number where nothing is claimed."""
    from evalwright.statistics import pooled_share

    if not len(column.values):
        return nothing_scored(column, level)
    right, total = _parts(column, "supported", "claims")
    return pooled_share(
        right, total, clusters=column.clusters, n_failed=column.n_failed, level=level, seed=seed
    )


def citation_f1(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """The harmonic mean of pooled precision and recall; 0 where claims are made and nothing supports them."""
    from evalwright.statistics import pooled_f1

    if not len(column.values):
        return nothing_scored(column, level)
    parts = _parts(column, "supporting", "cited", "supported", "claims")
    return pooled_f1(*parts, clusters=column.clusters, n_failed=column.n_failed, level=level, seed=seed)


def answer_class_share(column: Column, *, outcome: str, level: float = 0.95) -> Estimate:
    """The share of answers of one class of `grounding` or `grounded-answer`: "answered-wrong", "abstained-wrongly", ...

    Failed samples are counted beside it and bound it. Raises UnknownName for a class that there is not.
    """
    import numpy as np

    from evalwright.statistics import mean_interval

    if outcome not in OUTCOMES:
        raise UnknownName("outcome", outcome, OUTCOMES, f"Known: {', '.join(OUTCOMES)}.")
    scores = column.values if column.draws is None else column.draws
    parts = column.parts if column.draws is None else column.part_draws
    found = parts.get(outcome)
    values = np.zeros_like(scores) if found is None else np.nan_to_num(found)
    estimate = mean_interval(
        np.where(np.isnan(scores), np.nan, values),
        clusters=column.clusters,
        n_failed=column.n_failed,
        level=level,
    )
    return replace(estimate, method=f"{estimate.method}; class '{outcome}'")


def _parts(column: Column, *names: str) -> list[NDArray[np.float64]]:
    """Parts of the scores, (n,) each: of several draws the means."""
    missing = [name for name in names if name not in column.parts]
    if missing:
        raise ConfigurationError(
            f"Precision and recall of citations need the part '{missing[0]}' of the scores. Use them with the scorer "
            "'grounding' or 'grounding-judged'."
        )
    return [column.parts[name] for name in names]
