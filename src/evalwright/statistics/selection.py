"""The best of several means overstates: it was chosen for being high, partly by luck.

`selection_bias` estimates by how much, by the bootstrap (the optimism of Efron 1983, "Estimating
the error rate of a prediction rule"): units are resampled, the best is chosen again in each
resample, and what its mean gains there over its mean in the data is averaged.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evalwright.statistics.units import Clusters

RESAMPLES = 1000
_CELLS_AT_ONCE = 4_000_000


def selection_bias(
    values: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    lower_is_better: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> float:
    """By how much the mean of the best row overstates what it would have on new items.

    Args:
        values: (k, n), scores of k candidates on the same n items, without nan.
        clusters: (n,), items that share one are resampled together.
        lower_is_better: whether the best is the lowest mean.
        resamples: number of bootstrap resamples.
        seed: seeds the resampling.

    Returns:
        The bias in the unit of the values: positive, or negative where lower is better; 0 for fewer
        than two candidates or items.
    """
    scores = np.asarray(values, dtype=np.float64)
    candidates, n_items = scores.shape
    if candidates < 2 or n_items < 2:
        return 0.0
    codes = (
        np.arange(n_items)
        if clusters is None
        else np.unique(np.asarray(clusters), return_inverse=True)[1]
    )
    n_units = int(codes.max()) + 1
    sizes = np.bincount(codes, minlength=n_units).astype(np.float64)
    sums = np.stack([np.bincount(codes, row, minlength=n_units) for row in scores])
    sign = -1.0 if lower_is_better else 1.0
    means = scores.mean(axis=1)
    rng = np.random.default_rng(seed)
    gains = 0.0
    chunk = max(1, _CELLS_AT_ONCE // n_units)
    for start in range(0, resamples, chunk):
        count = min(chunk, resamples - start)
        weights = rng.multinomial(n_units, np.full(n_units, 1 / n_units), size=count)
        resampled = (weights @ sums.T) / (weights @ sizes)[:, None]
        chosen = np.argmax(sign * resampled, axis=1)
        gains += float((resampled[np.arange(count), chosen] - means[chosen]).sum())
    return gains / resamples
