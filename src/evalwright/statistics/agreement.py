"""Inter-rater agreement: raw agreement, Cohen's kappa, Gwet's AC1 and Krippendorff's alpha.

Each comes with an interval.

- raw agreement: none (what it sounds like; high where one label is rare)
- Cohen's kappa (1960): each rater's own label shares (falls to 0 where one label is rare, however
  much raters agree)
- Gwet's AC1 (2008): how evenly labels are used (steady where one label is rare)
- Krippendorff's alpha (2011): pooled ratings without replacement (numbers whose differences count;
  any number of raters, missing ratings)

All are functions of sums over items, so one bootstrap over items (or clusters) serves them all.
Raters are fixed: the interval speaks of other items for these raters, not of other raters.

Where all labels but one are rare, kappa and alpha come to 2 J / (1 + J) with J the share of
agreement among the items that got a rarer one (Hripcsak & Rothschild 2005). Resamples of the one or
two such items show nothing of that share: the interval is never narrower than Wilson's of J over
them.

`judge_agreement` sets a judge beside the people it stands in for, by the same figures: a judge
cannot be asked to agree with people more than people agree with each other, so their agreement is
the ceiling that makes the judge's figure readable. Pairs are pooled: each item counts once, shared
among its pairs of raters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import check_level
from evalwright.statistics.bootstrap import DRAWS, resampled_interval
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.intervals import mean_interval, wilson
from evalwright.statistics.units import F64, Clusters, KeptItems, kept_codes

_MOST_LABELS = 50
_UNSEEN = "Wilson's bound on unseen disagreement"


@dataclass(frozen=True, slots=True)
class Ratings(KeptItems):
    """Ratings (items, raters) with nan for missing, of the items that two raters or more rated."""

    values: F64
    labels: F64
    """The distinct ratings, ascending, (labels,)."""
    counts: F64
    """How many raters gave each label to each item, (items, labels).

    Empty where labels are not counted, for coefficients of numbers.
    """


def raw_agreement(
    ratings: npt.ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> Estimate:
    """The mean over items of the share of rater pairs that gave the same label.

    The interval is that of `mean_interval`.

    Args:
        ratings: (items, raters), nan where a rater gave none; items with fewer than two ratings
            count as missing.
        clusters: (items,) integers; items that share one are not independent.
        level: confidence level of the interval.

    Raises:
        ValueError: other shapes.
    """
    table = read_ratings(ratings, clusters)
    shares = _pair_shares(table.counts)
    return mean_interval(
        shares, clusters=table.codes, n_missing=table.n_left_out, level=level
    )


def cohen_kappa(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimate:
    """Cohen's kappa (1960) of two raters: 1 - observed / expected disagreement.

    Args:
        a: (items,), the first rater's labels as numbers; nan is missing.
        b: (items,), the second rater's.
        clusters: (items,) integers; items that share one are not independent.
        level: confidence level of the interval.
        draws: number of bootstrap resamples.
        seed: seeds the bootstrap.

    Returns:
        The estimate; nan where both raters gave the same single label to everything.
    """
    left = np.asarray(a, dtype=np.float64)
    right = np.asarray(b, dtype=np.float64)
    if left.ndim != 1 or left.shape != right.shape:
        raise ValueError(
            f"the two raters must have one rating for the same items, not {left.shape}"
            f" and {right.shape}"
        )
    table = read_ratings(np.column_stack([left, right]), clusters)
    size = len(table.labels)
    ranks = np.searchsorted(table.labels, table.values).astype(np.int64)
    cells = np.zeros((table.n, size * size))
    if table.n:
        cells[np.arange(table.n), ranks[:, 0] * size + ranks[:, 1]] = 1.0
    cost = 1.0 - np.eye(size)

    def kappa(sums: F64) -> F64:
        joint = sums.reshape(*sums.shape[:-1], size, size)
        expected = np.einsum(
            "...i,...j,ij->...", joint.sum(axis=-1), joint.sum(axis=-2), cost
        )
        observed = (joint * cost).sum(axis=(-1, -2)) * joint.sum(axis=(-1, -2))
        return one_minus(observed, expected)

    return coefficient_interval(table, cells, kappa, level, draws, seed)


def gwet_ac1(
    ratings: npt.ArrayLike,
    *,
    labels: int | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimate:
    """Gwet's AC1 (2008): (pa - pe) / (1 - pe) with pe = sum_k s_k (1 - s_k) / (q - 1).

    pa is the raw agreement, s_k the mean over items of the share of raters who gave label k, and q
    the number of labels.

    Args:
        ratings: (items, raters), nan is missing.
        labels: the number of labels on the scale, if more than those that occur.
        clusters: (items,) integers; items that share one are not independent.
        level: confidence level of the interval.
        draws: number of bootstrap resamples.
        seed: seeds the bootstrap.

    Returns:
        The estimate; nan with a single label.
    """
    table = read_ratings(ratings, clusters)
    q = max(len(table.labels), labels or 0)
    shares = table.counts / np.maximum(table.counts.sum(axis=1, keepdims=True), 1)
    parts = np.column_stack([1 - _pair_shares(table.counts), shares])

    def coefficient(sums: F64) -> F64:
        used = _shares(sums[..., 1:])
        chance = (used * (1 - used)).sum(axis=-1) / max(q - 1, 1)
        items = sums[..., 1:].sum(axis=-1)
        return one_minus(sums[..., 0] / np.maximum(items, 1e-300), 1 - chance)

    if q < 2:
        return table.nothing(level, "no interval: a single label")
    used = _shares(shares.sum(axis=0))
    free = 1 - float((used * (1 - used)).sum()) / (q - 1)
    return coefficient_interval(
        table, parts, coefficient, level, draws, seed, free, steady=True
    )


def krippendorff_alpha(
    ratings: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimate:
    """Krippendorff's alpha (2011) on an interval scale: 1 - observed / expected disagreement.

    Args:
        ratings: (items, raters), numbers whose differences are meaningful; nan is missing.
        clusters: (items,) integers; items that share one are not independent.
        level: confidence level of the interval.
        draws: number of bootstrap resamples.
        seed: seeds the bootstrap.

    Returns:
        The estimate; nan where all ratings are equal.
    """
    table = read_ratings(ratings, clusters, count=False)
    is_rated = ~np.isnan(table.values)
    sizes = is_rated.sum(axis=1).astype(np.float64)
    middle = float(table.values[is_rated].mean()) if is_rated.any() else 0.0
    # Subtract the mean first, so that the squares keep their precision.
    values = np.where(is_rated, table.values - middle, 0.0)
    first = values.sum(axis=1)
    second = (values**2).sum(axis=1)
    differing = 2 * (sizes * second - first**2) / (sizes - 1)

    def alpha(sums: F64) -> F64:
        observed, count, total, squares = (sums[..., part] for part in range(4))
        expected = 2 * (count * squares - total**2) / np.maximum(count - 1, 1)
        return one_minus(observed, expected)

    parts = np.column_stack([differing, sizes, first, second])
    return coefficient_interval(table, parts, alpha, level, draws, seed)


def read_ratings(
    ratings: npt.ArrayLike, clusters: Clusters, *, count: bool = True
) -> Ratings:
    """Check ratings and keep the items with at least two of them.

    Raises ValueError for wrong shapes and values.
    """
    values = np.asarray(ratings, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < 2 or np.isinf(values).any():
        raise ValueError(
            "ratings must be finite numbers in the shape (items, raters) with at least"
            f" two raters, not {values.shape}"
        )
    is_rated_twice = (~np.isnan(values)).sum(axis=1) >= 2
    left_out = int(len(values) - np.count_nonzero(is_rated_twice))
    values = values[is_rated_twice]
    codes, n_clusters = kept_codes(clusters, is_rated_twice)
    is_rated = ~np.isnan(values)
    labels = np.unique(values[is_rated])
    counts = np.zeros((len(values), 0))
    if count:
        if len(labels) > _MOST_LABELS:
            raise ValueError(
                f"the ratings have {len(labels)} distinct values; coefficients for"
                f" labels take at most {_MOST_LABELS}: group them, or use"
                " krippendorff_alpha for numbers"
            )
        counts = np.stack(
            [(values == label).sum(axis=1) for label in labels]
            or [np.zeros(len(values))],
            axis=1,
        )
    return Ratings(
        len(values),
        left_out,
        codes,
        n_clusters,
        values,
        labels,
        counts.astype(np.float64),
    )


def coefficient_interval(
    table: Ratings,
    parts: F64,
    coefficient: Callable[[F64], F64],
    level: float,
    draws: int = DRAWS,
    seed: int = 0,
    expected: float | None = None,
    steady: bool = False,
) -> Estimate:
    """Estimate a coefficient, with a BCa bootstrap interval over items or clusters.

    Where all raters agree, the lower end comes from Wilson's interval instead.

    Args:
        table: the ratings.
        parts: (items, parts), the sums that the coefficient is a function of.
        coefficient: maps sums (..., parts) to the coefficient (...).
        level: confidence level of the interval.
        draws: number of bootstrap resamples.
        seed: seeds the bootstrap.
        expected: the share of disagreements expected by chance; None for that of two ratings drawn
            at random.
        steady: the coefficient does not depend on how many items have a rarer label, so Wilson's
            interval of those is not needed.
    """
    check_level(level)
    if table.n == 0:
        return table.nothing(level, "no interval: no item has two ratings")
    value = float(coefficient(parts.sum(axis=0)))
    if math.isnan(value):
        return table.nothing(level, "no interval: every rating is the same")
    units = parts
    if table.codes is not None:
        units = np.zeros((table.n_clusters or 1, parts.shape[1]))
        np.add.at(units, table.codes, parts)
    if len(units) < 2:
        return table.estimate(
            value, -1.0, 1.0, level, None, "one unit: the whole range"
        )
    # In a resample in which all ratings are equal the coefficient is undefined; it counts as 0, no
    # better than chance.
    drawn = resampled_interval(
        units,
        lambda sums: np.nan_to_num(coefficient(sums), nan=0.0),
        level=level,
        draws=draws,
        seed=seed,
        unit="items" if table.codes is None else "clusters",
    )
    if value >= 1.0 - 1e-12:
        expected = _chance_disagreement(table) if expected is None else expected
        return table.estimate(
            value, _unseen(len(units), expected, level), 1.0, level, None, _UNSEEN
        )
    if not drawn.low < drawn.high:
        return table.estimate(
            value, -1.0, 1.0, level, None, "no spread between units: the whole range"
        )
    low = drawn.low
    high = drawn.high
    method = drawn.method
    if not steady:
        rarer = _count_with_rarer(table)
        least, most = _interval_of_rarer(value, rarer, level)
        if least < low or most > high:
            low = min(low, least)
            high = max(high, most)
            method = f"{method}, or Wilson of the {rarer} with a rarer label"
    return table.estimate(value, low, high, level, drawn.standard_error or None, method)


def _count_with_rarer(table: Ratings) -> int:
    """Count the items (or clusters) with a rating other than the most frequent one."""
    most = table.labels[
        np.argmax([(table.values == label).sum() for label in table.labels])
    ]
    rare = ((table.values != most) & ~np.isnan(table.values)).any(axis=1)
    return int(rare.sum()) if table.codes is None else len(np.unique(table.codes[rare]))


def _interval_of_rarer(value: float, units: int, level: float) -> tuple[float, float]:
    """Convert Wilson's interval of the agreement J on rarer labels to that of 2 J / (1 + J).

    Args:
        value: the coefficient.
        units: number of items or clusters with a rarer label.
        level: confidence level.
    """
    share = max(value, 0.0) / (2 - max(value, 0.0))
    low, high = (2 * end / (1 + end) for end in wilson(share * units, units, level))
    return low, high


def _unseen(units: int, expected: float, level: float) -> float:
    """The lower end if no disagreement was seen: as many as Wilson's interval cannot exclude.

    Args:
        units: number of items or clusters.
        expected: share of disagreements by chance; an unseen disagreement is assumed to have the
            usual size.
        level: confidence level.
    """
    return max(-1.0, 1 - (1 - wilson(units, units, level)[0]) / max(expected, 1e-12))


def _chance_disagreement(table: Ratings) -> float:
    """The probability that two ratings drawn at random differ."""
    counts = np.unique(table.values[~np.isnan(table.values)], return_counts=True)[1]
    return 1 - float((_shares(counts.astype(np.float64)) ** 2).sum())


def one_minus(observed: F64, expected: F64) -> F64:
    """Compute 1 - observed / expected disagreement; nan where no disagreement is expected."""
    possible = np.asarray(expected) > 1e-12
    ratio = np.divide(
        observed, expected, out=np.full(np.shape(expected), np.nan), where=possible
    )
    result: F64 = 1 - ratio
    return result


def _pair_shares(counts: F64) -> F64:
    """Compute for each item the share of rater pairs with the same label."""
    sizes = counts.sum(axis=1)
    shares: F64 = (counts * (counts - 1)).sum(axis=1) / np.maximum(
        sizes * (sizes - 1), 1
    )
    return shares


def _shares(totals: F64) -> F64:
    shares: F64 = totals / np.maximum(totals.sum(axis=-1, keepdims=True), 1e-300)
    return shares


# -- judge ceiling ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgreementFigures(Plain):
    """Agreement of pooled pairs of raters, by the four coefficients of this module."""

    raw: Estimate
    kappa: Estimate
    ac1: Estimate
    alpha: Estimate


@dataclass(frozen=True, slots=True)
class JudgeAgreement(Plain):
    """Agreement of a judge with people, beside the agreement of people among themselves.

    Attributes:
        judge: judge with a person.
        ceiling: person with person; None where no item has labels of two people.
        gap: the judge's raw agreement minus the ceiling's, on the items that two people labelled; 0
            where the judge agrees with a person as often as another person does.
        n_people: the number of people.
    """

    judge: AgreementFigures
    ceiling: AgreementFigures | None
    gap: Estimate | None
    n_people: int


def judge_agreement(
    judge: npt.ArrayLike,
    people: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
) -> JudgeAgreement:
    """Measure the agreement of a judge with people, and of the people among themselves.

    Args:
        judge: (items,) the judge's labels, as numbers that stand for names; nan is missing.
        people: (items,) or (items, people), likewise.
        clusters: (items,) integers; items that share one are not independent.
        level: confidence level of the intervals.

    Raises:
        ValueError: the shapes do not match.
    """
    verdicts = np.asarray(judge, dtype=np.float64)
    labels = np.asarray(people, dtype=np.float64)
    if labels.ndim == 1:
        labels = labels.reshape(-1, 1)
    if (
        verdicts.ndim != 1
        or labels.ndim != 2
        or len(labels) != len(verdicts)
        or labels.shape[1] == 0
    ):
        raise ValueError(
            "judge must have the shape (items,) and people (items,) or (items,"
            f" people), not {np.shape(judge)} and {np.shape(people)}"
        )
    persons = labels.shape[1]
    # An item without a judge's label says nothing about the judge: it is left out, and counted.
    everyone = np.where(
        np.isnan(verdicts)[:, None], np.nan, np.column_stack([verdicts, labels])
    )
    table = read_ratings(everyone, clusters)
    with_people, shares = _measure_agreement(
        table, [(0, person) for person in range(1, persons + 1)], level
    )
    if persons < 2 or not ((~np.isnan(labels)).sum(axis=1) >= 2).any():
        return JudgeAgreement(with_people, None, None, persons)
    among = read_ratings(labels, clusters)
    ceiling, _ = _measure_agreement(among, list(combinations(range(persons), 2)), level)
    doubly = (~np.isnan(table.values[:, 1:])).sum(axis=1) >= 2
    pair_cells = _pair_cells(table, list(combinations(range(1, persons + 1), 2)))
    size = len(table.labels)
    differences = (shares - pair_cells[:, :: size + 1].sum(axis=1))[doubly]
    codes = None if table.codes is None else table.codes[doubly]
    gap = mean_interval(
        differences, clusters=codes, value_range=(-1.0, 1.0), level=level
    )
    return JudgeAgreement(with_people, ceiling, gap, persons)


def _measure_agreement(
    table: Ratings, pairs: list[tuple[int, int]], level: float
) -> tuple[AgreementFigures, F64]:
    """Compute the coefficients of the pooled pairs, and each item's share of agreeing pairs."""
    cells = _pair_cells(table, pairs)
    size = len(table.labels)
    shares: F64 = cells[:, :: size + 1].sum(axis=1) if size else np.zeros(0)

    def joint_of(sums: F64) -> tuple[F64, F64, F64, F64]:
        joint = sums.reshape(*sums.shape[:-1], size, size)
        total = np.maximum(joint.sum(axis=(-1, -2)), 1e-300)
        differing = 1 - np.trace(joint, axis1=-2, axis2=-1) / total
        return (
            differing,
            joint.sum(axis=-1) / total[..., None],
            joint.sum(axis=-2) / total[..., None],
            total,
        )

    def kappa(sums: F64) -> F64:
        differing, left, right, _ = joint_of(sums)
        return one_minus(differing, 1 - (left * right).sum(axis=-1))

    def ac1(sums: F64) -> F64:
        differing, left, right, _ = joint_of(sums)
        used = (left + right) / 2
        return one_minus(
            differing, 1 - (used * (1 - used)).sum(axis=-1) / max(size - 1, 1)
        )

    def alpha(sums: F64) -> F64:
        differing, left, right, total = joint_of(sums)
        used = (left + right) / 2
        expected = (
            (1 - (used**2).sum(axis=-1)) * 2 * total / np.maximum(2 * total - 1, 1)
        )
        return one_minus(differing, expected)

    raw = mean_interval(
        shares, clusters=table.codes, n_missing=table.n_left_out, level=level
    )
    coefficients = [
        coefficient_interval(table, cells, form, level, steady=form is ac1)
        for form in (kappa, ac1, alpha)
    ]
    return AgreementFigures(raw, *coefficients), shares


def _pair_cells(table: Ratings, pairs: list[tuple[int, int]]) -> F64:
    """Count how an item's pairs of ratings fall on pairs of labels, (items, labels * labels).

    Each row is divided by its number of pairs, so it sums to 1 where there is one.
    """
    size = len(table.labels)
    is_rated = ~np.isnan(table.values)
    ranks = np.searchsorted(table.labels, np.where(is_rated, table.values, 0.0)).astype(
        np.int64
    )
    cells = np.zeros((table.n, size * size))
    for left, right in pairs:
        rows = np.flatnonzero(is_rated[:, left] & is_rated[:, right])
        cells[rows, ranks[rows, left] * size + ranks[rows, right]] += 1.0
    shares: F64 = cells / np.maximum(cells.sum(axis=1, keepdims=True), 1.0)
    return shares
