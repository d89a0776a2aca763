"""Methods that every reviewer knows, beside which ours are shown: Student's t, CR2, Tango's
interval.

What ours is compared with stands in brackets in the tables: its mean width, and how often it was
right.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from coverage_settings.registry import F64, KnownMethod, Plain
from evalwright.statistics.pairwise import Counts

Ids = npt.NDArray[np.int64] | None


def student(values: F64, level: float = 0.95) -> Plain:
    """Student's t of a mean, or of paired differences."""
    n = len(values)
    mean = float(values.mean())
    half = (
        float(stdtrit(n - 1, 0.5 + level / 2))
        * float(values.std(ddof=1))
        / math.sqrt(n)
    )
    return Plain(mean - half, mean + half, "t")


def cr2(values: F64, ids: npt.NDArray[np.int64], level: float = 0.95) -> Plain:
    """The mean with CR2 standard errors and Satterthwaite degrees of freedom, items of a cluster
    independent in the working model (Bell & McCaffrey 2002).
    """
    n = len(values)
    sizes = np.bincount(ids).astype(np.float64)
    sums = np.bincount(ids, values - values.mean())
    share = sizes / n
    error = math.sqrt(float((sums**2 / (1 - share)).sum())) / n
    scale = 1 / np.sqrt(1 - share)
    covariance = (np.diag(sizes) - np.outer(sizes, sizes) / n) * np.outer(scale, scale)
    freedom = float(np.trace(covariance) ** 2 / (covariance**2).sum())
    half = float(stdtrit(freedom, 0.5 + level / 2)) * error
    mean = float(values.mean())
    return Plain(mean - half, mean + half, "CR2 t")


def mean_known(scores: F64, ids: Ids, level: float = 0.95) -> Plain:
    """The known interval of one mean: CR2 in clusters, else t."""
    return student(scores, level) if ids is None else cr2(scores, ids, level)


def pairs_known(gaps: list[F64], ids: list[Ids], level: float = 0.95) -> list[Plain]:
    """Of paired differences: CR2 in clusters, Tango (1998) where all are right or wrong, else t."""
    if ids[0] is not None:
        return [
            cr2(scores, clusters, level)
            for scores, clusters in zip(gaps, ids, strict=True)
            if clusters is not None
        ]
    if not all(np.isin(scores, (-1.0, 0.0, 1.0)).all() for scores in gaps):
        return [student(scores, level) for scores in gaps]
    better, worse, n = np.array(
        [
            (np.count_nonzero(scores > 0), np.count_nonzero(scores < 0), len(scores))
            for scores in gaps
        ],
        dtype=np.float64,
    ).T
    low, high = Counts(better, worse, n, np.full(len(n), np.inf)).limits(1 - level)
    return [Plain(float(a), float(b), "Tango") for a, b in zip(low, high, strict=True)]


def beside(
    name: str, low: npt.ArrayLike, high: npt.ArrayLike, truth: float | F64
) -> KnownMethod:
    """The hits and widths of a known method over the trials."""
    bottom = np.asarray(low, np.float64)
    top = np.asarray(high, np.float64)
    return KnownMethod(
        name, (bottom <= truth + 1e-12) & (top >= truth - 1e-12), top - bottom
    )
