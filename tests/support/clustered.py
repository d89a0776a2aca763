"""The clustered standard error of a mean written out: an oracle for tests."""

import numpy as np
import numpy.typing as npt


def clustered_standard_error(
    values: npt.ArrayLike, clusters: npt.ArrayLike
) -> tuple[float, int]:
    """sqrt(G/(G-1) sum_g (sum_{i in g} (x_i - mean))^2) / n, and G - 1."""
    scores = np.asarray(values, dtype=np.float64)
    ids = np.asarray(clusters)
    names = np.unique(ids)
    sums = np.array([(scores[ids == name] - scores.mean()).sum() for name in names])
    size = len(names)
    return float(np.sqrt(size / (size - 1) * (sums**2).sum()) / len(scores)), size - 1
