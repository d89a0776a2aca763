"""Checks whether runs list their articles in one order: hard articles are hard for every model.

Without summaries only a row's position tells its article. That requires that all runs went through
the articles in one order, so each run's judge scores are compared with the mean of the others'.
(Lengths would not do: some models write summaries of one length, whatever the article's.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_CORRELATION = 0.1
"""Public runs, which share one order, correlate at 0.3 to 0.8; without a common order at 0."""

_LEAST_RUNS = 4
_LEAST_ROWS = 500


def odd_orders(scores: Sequence[Sequence[float]]) -> dict[int, float]:
    """Find runs whose scores do not correlate with those of the others; returns correlation by run.

    scores: the judge's for each row of each run, nan if a row is not a summary; all runs have as
    many rows. Empty if there are too few runs or rows to tell.
    """
    import numpy as np

    rows = len(scores[0]) if scores else 0
    if len(scores) < _LEAST_RUNS or rows < _LEAST_ROWS:
        return {}
    standard = np.stack(
        [_standardised(np.asarray(run_scores, float)) for run_scores in scores]
    )
    is_scored = ~np.isnan(standard)
    filled = np.where(is_scored, standard, 0.0)
    total = filled.sum(axis=0)
    count = is_scored.sum(axis=0)
    odd_runs = {}
    for run_index in range(len(scores)):
        others = count - is_scored[run_index]
        shared = is_scored[run_index] & (others > 0)
        if shared.sum() < _LEAST_ROWS:
            continue
        mean = (total - filled[run_index])[shared] / others[shared]
        if not mean.std() or not filled[run_index][shared].std():
            continue
        correlation = float(np.corrcoef(filled[run_index][shared], mean)[0, 1])
        if correlation < LEAST_CORRELATION:
            odd_runs[run_index] = correlation
    return odd_runs


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    if np.isnan(values).all():
        return values
    spread = float(np.nanstd(values))
    standardised: NDArray[np.float64] = (values - float(np.nanmean(values))) / (
        spread or 1.0
    )
    return standardised
