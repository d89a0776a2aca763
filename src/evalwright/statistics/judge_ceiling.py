"""A judge beside the people it stands in for: its agreement with a person, and that of two people, by the same figures.

A judge cannot be asked to agree with people more than people agree with each other, so their agreement is the ceiling
that makes the judge's figure readable. Pairs are pooled: each item counts once, shared among its pairs of raters.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics.agreement import Ratings, interval_of, one_minus, read_ratings
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.intervals import mean_interval
from evalwright.statistics.units import F64, Clusters


@dataclass(frozen=True, slots=True)
class AgreementFigures(Plain):
    """Agreement of pooled pairs of raters; the coefficients are those of `agreement`, for two ratings an item."""

    raw: Estimate
    kappa: Estimate
    ac1: Estimate
    alpha: Estimate


@dataclass(frozen=True, slots=True)
class JudgeAgreement(Plain):
    """`judge`: judge with a person; `ceiling`: person with person, None where no item has labels of two people.

    `gap` is the judge's raw agreement less the ceiling's on the items that two people labelled: 0 where the judge agrees
    with a person as often as another person does.
    """

    judge: AgreementFigures
    ceiling: AgreementFigures | None
    gap: Estimate | None
    n_people: int


def judge_agreement(
    judge: npt.ArrayLike, people: npt.ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> JudgeAgreement:
    """Agreement of a judge (items,) with people (items,) or (items, people), nan = no label, and of people among themselves.

    Labels are numbers that stand for names. Raises ValueError for shapes that do not match.
    """
    verdicts, labels = np.asarray(judge, dtype=np.float64), np.asarray(people, dtype=np.float64)
    if labels.ndim == 1:
        labels = labels.reshape(-1, 1)
    if verdicts.ndim != 1 or labels.ndim != 2 or len(labels) != len(verdicts) or labels.shape[1] == 0:
        raise ValueError(
            "judge must have the shape (items,) and people (items,) or (items, people), "
            f"not {np.shape(judge)} and {np.shape(people)}"
        )
    persons = labels.shape[1]
    # An item without a verdict says nothing about the judge: it is left out there, and counted.
    everyone = np.where(np.isnan(verdicts)[:, None], np.nan, np.column_stack([verdicts, labels]))
    table = read_ratings(everyone, clusters)
    with_people, shares = _figures(table, [(0, person) for person in range(1, persons + 1)], level)
    if persons < 2 or not ((~np.isnan(labels)).sum(axis=1) >= 2).any():
        return JudgeAgreement(with_people, None, None, persons)
    among = read_ratings(labels, clusters)
    ceiling, _ = _figures(among, list(combinations(range(persons), 2)), level)
    doubly = (~np.isnan(table.values[:, 1:])).sum(axis=1) >= 2
    own = _pair_cells(table, list(combinations(range(1, persons + 1), 2)))
    size = len(table.labels)
    differences = (shares - own[:, :: size + 1].sum(axis=1))[doubly]
    codes = None if table.codes is None else table.codes[doubly]
    gap = mean_interval(differences, clusters=codes, value_range=(-1.0, 1.0), level=level)
    return JudgeAgreement(with_people, ceiling, gap, persons)


def _figures(table: Ratings, pairs: list[tuple[int, int]], level: float) -> tuple[AgreementFigures, F64]:
    """The four figures of the pooled pairs, and each item's share of agreeing pairs."""
    cells, size = _pair_cells(table, pairs), len(table.labels)
    shares: F64 = cells[:, :: size + 1].sum(axis=1) if size else np.zeros(0)

    def joint_of(sums: F64) -> tuple[F64, F64, F64, F64]:
        joint = sums.reshape(*sums.shape[:-1], size, size)
        total = np.maximum(joint.sum(axis=(-1, -2)), 1e-300)
        differing = 1 - np.trace(joint, axis1=-2, axis2=-1) / total
        return differing, joint.sum(axis=-1) / total[..., None], joint.sum(axis=-2) / total[..., None], total

    def kappa(sums: F64) -> F64:
        differing, left, right, _ = joint_of(sums)
        return one_minus(differing, 1 - (left * right).sum(axis=-1))

    def ac1(sums: F64) -> F64:
        differing, left, right, _ = joint_of(sums)
        used = (left + right) / 2
        return one_minus(differing, 1 - (used * (1 - used)).sum(axis=-1) / max(size - 1, 1))

    def alpha(sums: F64) -> F64:
        differing, left, right, total = joint_of(sums)
        used = (left + right) / 2
        expected = (1 - (used**2).sum(axis=-1)) * 2 * total / np.maximum(2 * total - 1, 1)
        return one_minus(differing, expected)

    raw = mean_interval(shares, clusters=table.codes, n_failed=table.n_left_out, level=level)
    made = [interval_of(table, cells, form, level) for form in (kappa, ac1, alpha)]
    return AgreementFigures(raw, *made), shares


def _pair_cells(table: Ratings, pairs: list[tuple[int, int]]) -> F64:
    """(items, labels * labels): how an item's pairs of ratings fall on pairs of labels; sums to 1 where there is a pair."""
    size = len(table.labels)
    there = ~np.isnan(table.values)
    ranks = np.searchsorted(table.labels, np.where(there, table.values, 0.0)).astype(np.int64)
    cells = np.zeros((table.n, size * size))
    for left, right in pairs:
        rows = np.flatnonzero(there[:, left] & there[:, right])
        cells[rows, ranks[rows, left] * size + ranks[rows, right]] += 1.0
    found: F64 = cells / np.maximum(cells.sum(axis=1, keepdims=True), 1.0)
    return found
