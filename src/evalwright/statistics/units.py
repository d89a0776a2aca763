"""Turns scores into units: repeated draws become item means, related items become clusters.

Treating n items with K draws each as n*K observations, or ten questions about one passage as
ten independent ones, makes intervals far too narrow (a nominal 95% interval over 30 passages of
10 questions covers about 74%). Every standard error is computed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evalwright.statistics.estimate import Estimate

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Floats = F64 | np.float64
Bools = npt.NDArray[np.bool_]
Range = tuple[float, float]
"""The least and the greatest score that an item can have."""
Clusters = npt.ArrayLike | None
"""An integer for each item: items that share one are not independent.

None: every item is independent.
"""


@dataclass(frozen=True, slots=True)
class KeptItems:
    """The items that are used, how many were left out, and the clusters of those used."""

    n: int
    n_left_out: int
    codes: I64 | None
    n_clusters: int | None

    @property
    def size(self) -> int:
        """The number of independent units: clusters where there are any, else items."""
        return self.n if self.n_clusters is None else self.n_clusters

    def estimate(
        self,
        value: float,
        low: float,
        high: float,
        level: float,
        error: float | None,
        method: str,
    ) -> Estimate:
        """Build an estimate over these items, with an interval that always contains the value."""
        low = min(low, value)
        high = max(high, value)
        return Estimate(
            value,
            low,
            high,
            level,
            self.n,
            self.n_left_out,
            self.n_clusters,
            error,
            method,
        )

    def nothing(self, level: float, method: str) -> Estimate:
        """Build an estimate without a number; `method` says why."""
        return self.estimate(math.nan, math.nan, math.nan, level, None, method)


@dataclass(frozen=True, slots=True)
class Units(KeptItems):
    """Scored items; those without any draw are left out.

    Attributes:
        scores: (n, draws), nan is a missing draw.
        means: (n,), item means.
        n_draws: the number of scores.
    """

    scores: F64
    means: F64
    n_draws: int


class VarianceComponents(NamedTuple):
    """The variance between items (omega squared) and of one draw within an item (sigma squared)."""

    between: float
    within: float


def item_units(values: npt.ArrayLike, clusters: Clusters = None) -> Units:
    """Convert scores of n items, or of n items x K draws (nan is missing), to units.

    Raises ValueError for other shapes, infinite scores, or cluster ids that are not one integer per
    item.
    """
    scores = score_matrix(values)
    has_score = ~np.isnan(scores)
    counts = has_score.sum(axis=1)
    scored = counts > 0
    ids = None if clusters is None else cluster_ids(clusters, len(scores))
    n_missing = int(len(scores) - np.count_nonzero(scored))
    if n_missing:
        scores = scores[scored]
        has_score = has_score[scored]
        counts = counts[scored]
        ids = None if ids is None else ids[scored]
    means = row_means(scores)
    codes, n_clusters = cluster_codes(ids)
    return Units(
        len(means), n_missing, codes, n_clusters, scores, means, int(counts.sum())
    )


def row_means(scores: F64) -> F64:
    """Average (items, draws) over draws, ignoring nan; nan where all are."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    has_score = ~np.isnan(scores)
    counts = has_score.sum(axis=1)
    sums = np.where(has_score, scores, 0.0).sum(axis=1)
    means: F64 = np.divide(
        sums, counts, out=np.full(len(scores), math.nan), where=counts > 0
    )
    return means


def score_matrix(values: npt.ArrayLike) -> F64:
    """Convert scores to a float matrix (items, draws).

    Raises ValueError for another shape or infinite scores.
    """
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim == 1:
        scores = scores.reshape(-1, 1)
    if scores.ndim != 2 or (scores.shape[1] == 0 and len(scores)):
        raise ValueError(
            "scores must have the shape (items,) or (items, draws), not"
            f" {np.shape(values)}"
        )
    if np.isinf(scores).any():
        raise ValueError(
            "scores must be finite numbers, or nan where a score is missing"
        )
    return scores


def check_range(scores: F64, value_range: Range | None) -> None:
    """Raise ValueError for scores (nan is missing) outside a range, and for an invalid range.

    None as the range allows every score.
    """
    if value_range is None:
        return
    bottom, top = value_range
    if not (math.isfinite(bottom) and math.isfinite(top) and bottom < top):
        raise ValueError(
            f"value_range must be two finite numbers, least first, but is {value_range}"
        )
    if np.isnan(scores).all():
        return
    slack = 1e-9 * (
        top - bottom
    )  # a score summed from floats may exceed 1.0 by a rounding error
    least = float(np.nanmin(scores))
    most = float(np.nanmax(scores))
    if least < bottom - slack or most > top + slack:
        raise ValueError(
            f"scores from {least:g} to {most:g} are outside value_range {value_range}; "
            "give the range that these scores can have, or None"
        )


def at_ends(scores: F64, value_range: Range) -> bool:
    """Whether every score that is not nan is at one of the two ends of the range."""
    return bool(
        (
            (scores == value_range[0]) | (scores == value_range[1]) | np.isnan(scores)
        ).all()
    )


def cluster_ids(clusters: npt.ArrayLike, n: int) -> I64:
    """Convert cluster ids to integers (n,). Raises ValueError for other shapes or types."""
    ids = np.asarray(clusters)
    if ids.shape != (n,):
        raise ValueError(
            f"clusters must have one id for each of the {n} items, but has the shape"
            f" {ids.shape}"
        )
    if n and ids.dtype.kind not in "iu":
        raise ValueError(
            f"cluster ids must be integers, but are of type {ids.dtype}; number the"
            " names first"
        )
    return ids.astype(np.int64, copy=False)


def named_clusters(names: Iterable[str]) -> I64 | None:
    """Number each item's cluster by name; None if all items are independent.

    Args:
        names: the cluster's name, "" for an independent item.
    """
    numbers: dict[str, int] = {}
    codes = [
        numbers.setdefault(name or f"\0{index}", len(numbers))
        for index, name in enumerate(names)
    ]
    return np.array(codes, np.int64) if len(numbers) < len(codes) else None


def cluster_codes(ids: I64 | None) -> tuple[I64 | None, int | None]:
    """Renumber ids to 0..G-1, and return G too; (None, None) if no two items share a cluster."""
    if ids is None or len(ids) == 0:
        return None, None
    lowest = int(ids.min())
    width = int(ids.max()) - lowest + 1
    if (
        width <= 4 * len(ids) + 1024
    ):  # a lookup table is several times faster than sorting
        shifted = ids - lowest
        used = np.bincount(shifted, minlength=width) > 0
        n_clusters = int(np.count_nonzero(used))
        codes = (np.cumsum(used) - 1)[shifted]
    else:
        names, codes = np.unique(ids, return_inverse=True)
        n_clusters = len(names)
    if n_clusters == len(ids):
        return None, None
    return codes.astype(np.int64, copy=False), n_clusters


def kept_codes(clusters: Clusters, is_kept: Bools) -> tuple[I64 | None, int | None]:
    """Compute cluster codes of the kept items (n,), and their number, as in `cluster_codes`."""
    return cluster_codes(
        None if clusters is None else cluster_ids(clusters, len(is_kept))[is_kept]
    )


class Spread(NamedTuple):
    """The standard error of a mean, its degrees of freedom, and the effective number of units.

    `units` is n for items, n^2 / sum m_g^2 for clusters of sizes m_g (Kish's effective number).
    """

    error: float
    freedom: float
    units: float


def standard_error(means: F64, codes: I64 | None, n_clusters: int | None) -> Spread:
    """Compute the standard error of the mean of `means`; (nan, 0, 1) with fewer than two units.

    Items: sd / sqrt(n) and n - 1. Clusters: `cluster_spread`. A spread that is nothing but
    floating-point noise counts as 0.
    """
    n = len(means)
    size = n if n_clusters is None else n_clusters
    if size < 2:
        return Spread(math.nan, 0, 1)
    residuals = means - means.mean()
    squares = float(np.dot(residuals, residuals))
    if codes is None:
        error = math.sqrt(squares / (n - 1) / n)
        freedom = n - 1.0
        units = float(n)
    else:
        sums = np.bincount(codes, weights=residuals, minlength=size).astype(np.float64)
        sizes = np.bincount(codes, minlength=size).astype(np.float64)
        spread = cluster_spread(sums, sizes, np.float64(n), np.float64(squares))
        error, freedom, units = (float(part) for part in spread)
    noise = 1e-12 * max(float(np.abs(means).max()), 1e-300)
    return Spread(error if error > noise else 0.0, freedom, units)


def cluster_spread(
    sums: F64, sizes: F64, n: Floats, squares: Floats
) -> tuple[F64, F64, F64]:
    """Cluster-robust standard errors of means by CR2 (Bell & McCaffrey 2002).

    With f_g = m_g / n the error is sqrt(sum_g S_g^2 / (1 - f_g)) / n. The degrees of freedom are
    Satterthwaite's: those of that sum if two items of one cluster have the correlation that these
    have (the mean product of residuals of two items of a cluster over their variance, from 0 to 1).
    Clusters of one size give the usual sqrt(G / (G - 1) sum S_g^2) / n and G - 1; with unequal ones
    that form covers 84 to 92% where it says 95.

    Args:
        sums: (clusters, ...), sums of residuals.
        sizes: (clusters, ...), numbers of items.
        n: (...), all items.
        squares: (...), the sum of their squared residuals.

    Returns:
        Standard errors, degrees of freedom and effective units, each (...).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        share = sizes / n
        scale = 1 / (1 - share)
        powers = sums**2
        error = np.sqrt((powers * scale).sum(axis=0)) / n
        pairs = (sizes * (sizes - 1)).sum(axis=0)
        alike = (powers.sum(axis=0) - squares) / pairs * (n - 1) / squares
        rho = np.clip(np.where(np.isfinite(alike), alike, 1.0), 0.0, 1.0)
        # A cluster's sum has the variance m + rho (m^2 - m); these are the moments of the matrix
        # whose eigenvalues Satterthwaite's formula takes. Sums over clusters are kept separate from
        # rho, which may differ where the sizes do not.
        size_pairs = sizes**2 - sizes

        def first(weight: F64) -> F64:
            moment: F64 = (weight * sizes).sum(axis=0) + rho * (
                weight * size_pairs
            ).sum(axis=0)
            return moment

        def second(weight: F64) -> F64:
            parts = (
                (weight * part).sum(axis=0)
                for part in (sizes**2, 2 * sizes * size_pairs, size_pairs**2)
            )
            moment: F64 = sum(part * rho**power for power, part in enumerate(parts))
            return moment

        plain_moment = first(np.ones_like(share))
        a = (scale * share**2).sum(axis=0)
        b = second(scale)
        c = first(scale * share)
        trace = first(scale * (1 - 2 * share)) + plain_moment * a
        squared_moment = second(scale**2 * (1 - 4 * share)) + 2 * plain_moment * first(
            scale**2 * share**2
        )
        freedom = trace**2 / (
            plain_moment**2 * a**2
            + 2 * a * b
            + 2 * c**2
            - 4 * plain_moment * a * c
            + squared_moment
        )
        return error, freedom, n**2 / (sizes**2).sum(axis=0)


def variance_components(scores: npt.ArrayLike) -> VarianceComponents:
    """Split the variance of scores (items, draws) into parts between and within items.

    within = mean over items with at least two draws of the variance of their draws; between =
    variance of the item means minus the mean of within / K_i, not below 0; then Var(mean) =
    (between + within / K) / n (Miller 2024). nan where they cannot be separated: fewer than two
    items, or no item with two draws.
    """
    units = item_units(scores)
    has_score = ~np.isnan(units.scores)
    counts = has_score.sum(axis=1)
    repeated = counts >= 2
    if units.n < 2 or not repeated.any():
        return VarianceComponents(math.nan, math.nan)
    squares = np.where(has_score, (units.scores - units.means[:, None]) ** 2, 0.0).sum(
        axis=1
    )
    within = float((squares[repeated] / (counts[repeated] - 1)).mean())
    between = float(units.means.var(ddof=1)) - within * float((1.0 / counts).mean())
    return VarianceComponents(max(between, 0.0), within)
