"""What an answer that was not attempted is worth: accuracy given attempted, SimpleQA's F, and the share of every label.

They read the labels of the scores, such as "correct", "incorrect" and "not_attempted" of `short-answer`. A score without a
label counts as attempted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright import statistics
from evalwright.core.errors import UnknownName
from evalwright.metrics.registry import Column, Groups, GroupSums, nothing_scored, ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.statistics import Estimate

NOT_ATTEMPTED = "not_attempted"
KNOWN = ("correct", "incorrect", NOT_ATTEMPTED)
"""The labels of `short-answer`: their share is 0, and no error, where no answer has them."""


def accuracy_given_attempted(
    column: Column, *, not_attempted: str = NOT_ATTEMPTED, level: float = 0.95
) -> Estimate:
    """The mean score of the answers whose label is not `not_attempted`; no number where nothing was attempted."""
    if not len(column.values):
        return nothing_scored(column, level)
    scores, attempted = _attempts(column, not_attempted)
    found = statistics.attempted_accuracy(
        scores, attempted, clusters=column.clusters, n_failed=column.n_failed, level=level
    )
    return found if found.n else replace(found, method="no number: nothing was attempted")


def f_score(column: Column, *, not_attempted: str = NOT_ATTEMPTED, level: float = 0.95) -> Estimate:
    """SimpleQA's F: the harmonic mean of accuracy and of accuracy given attempted."""
    if not len(column.values):
        return nothing_scored(column, level)
    scores, attempted = _attempts(column, not_attempted)
    return statistics.attempted_f(
        scores, attempted, clusters=column.clusters, n_failed=column.n_failed, level=level
    )


def label_share(column: Column, *, label: str, level: float = 0.95) -> Estimate:
    """The share of scored answers that have this label; what failed is bounded.

    Raises UnknownName for a label that no score has and that is not one of "correct", "incorrect" and "not_attempted".
    """
    if not len(column.values):
        return nothing_scored(column, level)
    if label not in column.label_names and label not in KNOWN:
        known = sorted({*column.label_names, *KNOWN})
        raise UnknownName("label", label, known, f"Known: {', '.join(known[:20])}.")
    values = label_values(column, label=label)
    return statistics.mean_interval(values, clusters=column.clusters, n_failed=column.n_failed, level=level)


def label_values(column: Column, *, label: str) -> NDArray[np.float64]:
    """Whether each score has the label, (n, draws)."""
    import numpy as np

    return np.where(np.isnan(column.by_draw()), np.nan, _has(column, label))


def attempted_sums(column: Column, groups: Groups, *, not_attempted: str = NOT_ATTEMPTED) -> GroupSums:
    """Right answers and attempts, of which accuracy given attempted is the ratio."""
    import numpy as np

    return groups.sums(*(np.nansum(part, axis=1) for part in _attempts(column, not_attempted))), ratio


def f_sums(column: Column, groups: Groups, *, not_attempted: str = NOT_ATTEMPTED) -> GroupSums:
    """Twice what is right, and one more than what is attempted, means over an item's draws: F is the ratio."""
    import numpy as np

    right, attempted = (np.nanmean(part, axis=1) for part in _attempts(column, not_attempted))
    return groups.sums(2 * right, 1 + attempted), ratio


def _attempts(column: Column, label: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores and whether they were attempted, both (n, draws). What was not attempted is not right, whatever its score."""
    import numpy as np

    scores = column.by_draw()
    skipped = _has(column, label)
    there = ~np.isnan(scores)
    return np.where(there & skipped, 0.0, scores), np.where(there, 1.0 - skipped, np.nan)


def _has(column: Column, label: str) -> NDArray[np.bool_]:
    import numpy as np

    shape = column.by_draw().shape
    if column.labels is None or label not in column.label_names:
        return np.zeros(shape, dtype=bool)
    found: NDArray[np.bool_] = column.labels.reshape(shape) == list(column.label_names).index(label)
    return found
