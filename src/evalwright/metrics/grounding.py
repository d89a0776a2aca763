"""Metrics over the scores of `grounding`: citation precision, recall and F1 pooled over all answers, and the share of a class.

The parts "cited", "supporting", "claims" and "supported" of the scores are summed before anything is divided, so an answer with
five claims weighs five times one with a single claim, and an answer without citations has no precision of its own to invent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright.core.errors import ConfigurationError, check_known
from evalwright.metrics.perplexities import nothing_scored, ratio
from evalwright.metrics.rates import part_values
from evalwright.scorers.grounding.outcome import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalwright.metrics.registry import Column, Groups, GroupSums
    from evalwright.statistics import Estimate


def citation_precision(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """Citations that support their claim / citations. No number where nothing is cited. seed: of the bootstrap interval."""
    return _pooled(column, PRECISION, level, seed)


def citation_recall(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """Claims with a supporting citation / claims that need one. No number where nothing is claimed."""
    return _pooled(column, RECALL, level, seed)


def citation_f1(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """The harmonic mean of pooled precision and recall; 0 where claims are made and nothing supports them."""
    return _pooled(column, PRECISION + RECALL, level, seed)


def answer_class_share(column: Column, *, outcome: str, level: float = 0.95) -> Estimate:
    """The share of answers of one class of `grounding` or `grounded-answer`: "answered-wrong", "abstained-wrongly", ...

    Failed samples are counted beside it and bound it. Raises UnknownName for a class that there is not.
    """
    from evalwright.statistics import mean_interval

    check_known("outcome", [outcome], OUTCOMES)
    estimate = mean_interval(
        part_values(column, outcome=outcome),
        clusters=column.clusters,
        n_failed=column.n_failed,
        level=level,
    )
    return replace(estimate, method=f"{estimate.method}; class '{outcome}'")


PRECISION, RECALL = ("supporting", "cited"), ("supported", "claims")


def citation_sums(column: Column, groups: Groups, *, parts: Sequence[str], seed: int = 0) -> GroupSums:
    """The sums of which citation precision, recall or F1 is made. seed: of the metric's bootstrap, unused."""
    from evalwright.statistics.sums import f1_of_sums

    return groups.sums(*(column.parts[name] for name in parts)), f1_of_sums if len(parts) == 4 else ratio


def _pooled(column: Column, names: Sequence[str], level: float, seed: int) -> Estimate:
    """Sums of parts over all answers, divided. An answer whose citations rules left undecided is counted as failed."""
    import numpy as np

    from evalwright.statistics import pooled_f1, pooled_share

    if not len(column.values):
        return nothing_scored(column, level)
    if missing := [name for name in names if name not in column.parts]:
        raise ConfigurationError(
            f"Precision and recall of citations need the part '{missing[0]}' of the scores, and no score has it. Use the scorer "
            "'grounding' or 'grounding-judged'; the first may leave every citation undecided; the second asks a judge."
        )
    parts = np.column_stack([column.parts[name] for name in names])
    known = ~np.isnan(parts).any(axis=1)
    pooled = pooled_share if len(names) == 2 else pooled_f1
    return pooled(
        *parts[known].T,
        clusters=None if column.clusters is None else column.clusters[known],
        n_failed=column.n_failed + int((~known).sum()),
        level=level,
        seed=seed,
    )
