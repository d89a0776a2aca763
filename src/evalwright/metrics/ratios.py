"""Ratios of sums over answers: accuracy given attempted, SimpleQA's F, label shares, citations.

The first three read the labels of the scores, such as "correct", "incorrect" and
"not_attempted" of `short-answer`; a score without a label counts as attempted. Precision,
recall and F1 of citations sum the parts "cited", "supporting", "claims" and "supported" of
`grounding` before dividing. So an answer with five claims weighs five times as much as one with
a single claim, and one without citations has no precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright import statistics
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.metrics.registry import Column, Groups, GroupSums, nothing_scored, ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.statistics import Estimate

NOT_ATTEMPTED = "not_attempted"
KNOWN = ("correct", "incorrect", NOT_ATTEMPTED)
"""The labels of `short-answer`: if no answer has one of them, its share is 0, not an error."""


def accuracy_given_attempted(
    column: Column, *, not_attempted: str = NOT_ATTEMPTED, level: float = 0.95
) -> Estimate:
    """The mean score of the answers whose label is not `not_attempted`; no number without any."""
    if not len(column.values):
        return nothing_scored(column, level)
    scores, attempted = _attempts(column, not_attempted)
    estimate = statistics.attempted_accuracy(
        scores,
        attempted,
        clusters=column.clusters,
        n_missing=column.n_missing,
        level=level,
    )
    return (
        estimate
        if estimate.n
        else replace(estimate, method="no number: nothing was attempted")
    )


def f_score(
    column: Column, *, not_attempted: str = NOT_ATTEMPTED, level: float = 0.95
) -> Estimate:
    """SimpleQA's F: the harmonic mean of accuracy and accuracy given attempted."""
    if not len(column.values):
        return nothing_scored(column, level)
    scores, attempted = _attempts(column, not_attempted)
    return statistics.attempted_f(
        scores,
        attempted,
        clusters=column.clusters,
        n_missing=column.n_missing,
        level=level,
    )


def label_share(column: Column, *, label: str, level: float = 0.95) -> Estimate:
    """The share of scored answers with this label; missing answers widen the bounds.

    Raises:
        UnknownName: no score has the label, and it is not one of `short-answer`.
    """
    if not len(column.values):
        return nothing_scored(column, level)
    if label not in column.label_names and label not in KNOWN:
        known_labels = sorted({*column.label_names, *KNOWN})
        raise UnknownName(
            "label", label, known_labels, f"Known: {', '.join(known_labels[:20])}."
        )
    values = label_values(column, label=label)
    return statistics.mean_interval(
        values, clusters=column.clusters, n_missing=column.n_missing, level=level
    )


def label_values(column: Column, *, label: str) -> NDArray[np.float64]:
    """Whether each score has the label, as 0 or 1, (n, draws)."""
    import numpy as np

    return np.where(np.isnan(column.by_draw()), np.nan, _has(column, label))


def attempted_sums(
    column: Column, groups: Groups, *, not_attempted: str = NOT_ATTEMPTED
) -> GroupSums:
    """Sum right answers and attempts over groups; accuracy given attempted is their ratio."""
    import numpy as np

    return (
        groups.sums(
            *(np.nansum(draws, axis=1) for draws in _attempts(column, not_attempted))
        ),
        ratio,
    )


def f_sums(
    column: Column, groups: Groups, *, not_attempted: str = NOT_ATTEMPTED
) -> GroupSums:
    """Sum the numerator and denominator of F over groups, as means over an item's draws.

    They are twice the right answers, and attempts plus one per item; F is their ratio.
    """
    import numpy as np

    right, attempted = (
        np.nanmean(draws, axis=1) for draws in _attempts(column, not_attempted)
    )
    return groups.sums(2 * right, 1 + attempted), ratio


def _attempts(
    column: Column, label: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores, and whether each answer was attempted, both (n, draws).

    An answer that was not attempted counts as not right, whatever its score.
    """
    import numpy as np

    scores = column.by_draw()
    skipped = _has(column, label)
    has_score = ~np.isnan(scores)
    return np.where(has_score & skipped, 0.0, scores), np.where(
        has_score, 1.0 - skipped, np.nan
    )


def _has(column: Column, label: str) -> NDArray[np.bool_]:
    import numpy as np

    shape = column.by_draw().shape
    if column.labels is None or label not in column.label_names:
        return np.zeros(shape, dtype=bool)
    has_label: NDArray[np.bool_] = column.labels.reshape(shape) == list(
        column.label_names
    ).index(label)
    return has_label


# -- citations -------------------------------------------------------------------------

PRECISION = ("supporting", "cited")
RECALL = ("supported", "claims")


def citation_precision(
    column: Column, *, level: float = 0.95, seed: int = 0
) -> Estimate:
    """Citations that support their claim / all citations. No number where nothing is cited.

    Args:
        column: scores of `grounding`.
        level: confidence level of the interval.
        seed: seeds the bootstrap of the interval.
    """
    return _pooled(column, PRECISION, level, seed)


def citation_recall(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """Claims with a supporting citation / claims that need one. No number without claims."""
    return _pooled(column, RECALL, level, seed)


def citation_f1(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """The harmonic mean of pooled precision and recall; 0 if there are claims but no support."""
    return _pooled(column, PRECISION + RECALL, level, seed)


def citation_sums(
    column: Column, groups: Groups, *, parts: Sequence[str], seed: int = 0
) -> GroupSums:
    """Sum the counts of citation precision, recall or F1 over groups.

    `seed` is not used.
    """
    from evalwright.statistics.sums import f1_of_sums

    return groups.sums(*(column.parts[name] for name in parts)), (
        f1_of_sums if len(parts) == 4 else ratio
    )


def _pooled(column: Column, names: Sequence[str], level: float, seed: int) -> Estimate:
    """The ratio of two or four sums of parts over all answers.

    An answer without these parts (recorded by an earlier version) counts as missing.
    """
    import numpy as np

    if not len(column.values):
        return nothing_scored(column, level)
    if missing := [name for name in names if name not in column.parts]:
        raise ConfigurationError(
            f"Precision and recall of citations need the part '{missing[0]}' of the"
            " scores, and no score has it. Use the scorer 'grounding' or"
            " 'grounding-judged'."
        )
    sums = np.column_stack([column.parts[name] for name in names])
    complete = ~np.isnan(sums).any(axis=1)
    pooled = statistics.pooled_share if len(names) == 2 else statistics.pooled_f1
    return pooled(
        *sums[complete].T,
        clusters=column.clusters_of(complete),
        n_missing=column.n_missing + int((~complete).sum()),
        level=level,
        seed=seed,
    )
