"""Whether the rows of runs stand in one order: articles that are hard to summarise faithfully are
so for every model.

Without summaries a row's place is all that says which article it is about. That is only worth
something if all runs went through the articles in one order, so each run's judge scores are
compared with the mean of the others'. (Lengths would not do: some models write summaries of one
length, whatever the article's.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_CORRELATION = 0.1
"""The public runs, which all went through their articles in one order, lie between 0.3 and 0.8;
without a common order it is 0.
"""

_LEAST_RUNS = 4
_LEAST_ROWS = 500


def odd_orders(scores: Sequence[Sequence[float]]) -> dict[int, float]:
    """Runs (place in the list -> correlation) whose scores have nothing to do with those of the
    others.

    scores: the judge's for each row of each run, nan where a row is no summary; the same number of
    rows in all. Nothing is said of few runs or few rows.
    """
    import numpy as np

    rows = len(scores[0]) if scores else 0
    if len(scores) < _LEAST_RUNS or rows < _LEAST_ROWS:
        return {}
    standard = np.stack(
        [_standardised(np.asarray(run_scores, float)) for run_scores in scores]
    )
    there = ~np.isnan(standard)
    filled = np.where(there, standard, 0.0)
    total = filled.sum(axis=0)
    count = there.sum(axis=0)
    odd_runs = {}
    for run_index in range(len(scores)):
        others = count - there[run_index]
        shared = there[run_index] & (others > 0)
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
