"""Whether the rows of runs stand in one order: long articles have long summaries, whoever writes them.

Without summaries a row's place is all that says which article it is about. That is only worth something if all runs went
through the articles in one order, so each run's lengths are compared with the mean of the others'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_CORRELATION = 0.1
"""Runs of one order are seen from about 0.2 (a model that answers half of the time) to 0.95."""

_LEAST_RUNS, _LEAST_ROWS = 4, 500


def odd_orders(lengths: Sequence[Sequence[float]]) -> dict[int, float]:
    """Runs (place in the list -> correlation) whose lengths have nothing to do with those of the others.

    lengths: words of each row of each run, nan where a row is no summary; the same number of rows in all. Nothing is said of
    few runs or few rows.
    """
    import numpy as np

    rows = len(lengths[0]) if lengths else 0
    if len(lengths) < _LEAST_RUNS or rows < _LEAST_ROWS:
        return {}
    standard = np.stack([_standardised(np.log1p(np.asarray(one, float))) for one in lengths])
    there = ~np.isnan(standard)
    filled = np.where(there, standard, 0.0)
    total, count = filled.sum(axis=0), there.sum(axis=0)
    out = {}
    for place in range(len(lengths)):
        others = count - there[place]
        both = there[place] & (others > 0)
        if both.sum() < _LEAST_ROWS:
            continue
        mean = (total - filled[place])[both] / others[both]
        if not mean.std() or not filled[place][both].std():
            continue
        found = float(np.corrcoef(filled[place][both], mean)[0, 1])
        if found < LEAST_CORRELATION:
            out[place] = found
    return out


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    if np.isnan(values).all():
        return values
    spread = float(np.nanstd(values))
    made: NDArray[np.float64] = (values - float(np.nanmean(values))) / (spread or 1.0)
    return made
