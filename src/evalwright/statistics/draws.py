"""Repeated draws of an answer: pass@k, pass^k, the majority of k, and how many draws are worth their price.

All three are functions of an item's counts (n draws, c of them right), averaged over the k-subsets of its draws, so they
are exact and unbiased without any sampling:

* pass@k, at least one of k is right: 1 - C(n - c, k) / C(n, k) (Chen et al. 2021);
* pass^k, all of k are right: C(c, k) / C(n, k) (Yao et al. 2024);
* maj@k, the answer given most often by k is right, ties split evenly (Wang et al. 2023).

The item's value then is a score like any other, and `mean_interval` gives the mean over items its interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from evalwright.statistics.estimate import Estimate, plain_fields
from evalwright.statistics.intervals import mean_interval
from evalwright.statistics.units import F64, I64, score_matrix, variance_components


def pass_at_k(
    scores: npt.ArrayLike,
    k: int,
    *,
    clusters: npt.ArrayLike | None = None,
    n_failed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """The chance that at least one of k draws is right, over items.

    `scores`: (items, draws) of 0 and 1, nan = no draw; items without a single draw count as failed. Raises ValueError
    for other scores and where an item has fewer than k draws.
    """
    totals, right = _counts(scores, k)
    return mean_interval(1.0 - _none_of(totals, right, k), clusters=clusters, n_failed=n_failed, level=level)


def pass_hat_k(
    scores: npt.ArrayLike,
    k: int,
    *,
    clusters: npt.ArrayLike | None = None,
    n_failed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """The chance that all of k draws are right (pass^k), over items. Arguments and errors as in `pass_at_k`."""
    totals, right = _counts(scores, k)
    return mean_interval(
        _none_of(totals, totals - right, k), clusters=clusters, n_failed=n_failed, level=level
    )


def majority_at_k(
    scores: npt.ArrayLike,
    k: int,
    *,
    clusters: npt.ArrayLike | None = None,
    n_failed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """The chance that more than half of k draws are right, half counted as half, over items (hypergeometric).

    For answers of two kinds, or where all wrong answers agree; with many kinds of wrong answers a right one needs fewer
    votes, see `plurality_at_k`. Arguments and errors as in `pass_at_k`.
    """
    totals, right = _counts(scores, k)
    values = np.full(len(totals), math.nan)
    there = totals > 0
    kinds, place = np.unique(np.stack([totals[there], right[there]], axis=1), axis=0, return_inverse=True)
    each = np.array([_majority(int(n), int(c), k) for n, c in kinds])
    values[there] = each[place.reshape(-1)] if len(each) else []
    return mean_interval(values, clusters=clusters, n_failed=n_failed, level=level)


def plurality_at_k(
    answers: npt.ArrayLike,
    gold: npt.ArrayLike,
    k: int,
    *,
    clusters: npt.ArrayLike | None = None,
    n_failed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """The chance that the answer given most often by k draws is the gold one, ties split evenly, over items.

    `answers`: (items, draws) integer codes of the answers, negative = no draw; `gold`: (items,) codes. An answer that
    could not be read should have a code of its own, or a negative one if the draw does not vote. Exact: counts the
    k-subsets by a product of polynomials over the labels. Raises ValueError for other shapes or types, and where an
    item has fewer than k draws.
    """
    codes, right = np.asarray(answers), np.asarray(gold)
    if codes.ndim != 2 or right.shape != codes.shape[:1] or codes.dtype.kind + right.dtype.kind not in (
        "ii", "iu", "ui", "uu"
    ):  # fmt: skip
        raise ValueError(
            f"answers (items, draws) and gold (items,) must be integer codes, not {codes.shape} and {right.shape} "
            f"of types {codes.dtype} and {right.dtype}"
        )
    _check_draws(np.count_nonzero(codes >= 0, axis=1), k)
    values = np.array(
        [_item_plurality(row[row >= 0], int(g), k) for row, g in zip(codes, right, strict=True)]
    )
    return mean_interval(values, clusters=clusters, n_failed=n_failed, level=level)


@dataclass(frozen=True, slots=True)
class DrawPlan:
    """What repeated draws are worth: the variance of one draw within an item and of the items, and the best K.

    `between_share` is the part of a single draw's variance that lies between items. `best` is the whole number of draws
    an item with the least variance for the money, `variance_saved` the share of the variance that it saves against one
    draw on as many items as the same money buys (0 if one draw is best).
    """

    between: float
    within: float
    between_share: float
    best: int
    exact: float
    variance_saved: float

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON-ready values: nan and infinities become None."""
        return plain_fields(self)


def plan_draws(scores: npt.ArrayLike, *, cost_item: float, cost_draw: float, most: int = 1024) -> DrawPlan:
    """The number of draws an item that gives the smallest variance for n (cost_item + K cost_draw).

    K = sqrt((within / between) (cost_item / cost_draw)), the best whole number beside it, from 1 to `most` (where items
    do not differ at all). `scores`: (items, draws), nan = missing. Raises ValueError for costs that are not
    positive (cost_item may be 0), and where no item has two draws.
    """
    if not (cost_draw > 0 and cost_item >= 0 and math.isfinite(cost_item + cost_draw)):
        raise ValueError(
            f"cost_draw must be above 0 and cost_item not negative, but they are {cost_draw} and {cost_item}"
        )
    between, within = variance_components(scores)
    if math.isnan(between):
        raise ValueError(
            "the variance of draws cannot be told from that of items: give two draws for some item and two items"
        )

    def price(draws: int) -> float:
        return (between + within / draws) * (cost_item + draws * cost_draw)

    ratio = within * cost_item
    exact = math.sqrt(ratio / (between * cost_draw)) if between > 0 else (math.inf if ratio > 0 else 0.0)
    low = int(min(max(1.0, math.floor(min(exact, most))), most))
    best = min((low, min(low + 1, most)), key=lambda draws: (price(draws), draws))
    total = between + within
    return DrawPlan(
        between=between,
        within=within,
        between_share=between / total if total > 0 else math.nan,
        best=best,
        exact=exact,
        variance_saved=1.0 - price(best) / price(1) if price(1) > 0 else 0.0,
    )


def _counts(scores: npt.ArrayLike, k: int) -> tuple[I64, I64]:
    """Draws and right draws of every item; (0, 0) for an item without a draw."""
    matrix = score_matrix(scores)
    there = ~np.isnan(matrix)
    if not np.isin(matrix[there], (0.0, 1.0)).all():
        raise ValueError("repeated draws must be scored 0 or 1 (nan where there is none)")
    totals = there.sum(axis=1)
    _check_draws(totals, k)
    return totals.astype(np.int64), np.nansum(matrix, axis=1).astype(np.int64)


def _check_draws(totals: npt.NDArray[Any], k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"k must be a whole number of draws, at least 1, but is {k}")
    drawn = totals[totals > 0]
    fewest = int(drawn.min(initial=k))
    if fewest < k:
        few = int(np.count_nonzero(drawn < k))
        raise ValueError(
            f"k = {k} needs {k} draws of every item, but {few} of {len(drawn)} items have fewer (the fewest: {fewest}); "
            "draw more, or ask for a smaller k"
        )


def _none_of(totals: I64, marked: I64, k: int) -> F64:
    """P(no marked draw among k of `totals`) = C(totals - marked, k) / C(totals, k); nan without a draw."""
    with np.errstate(invalid="ignore", divide="ignore"):
        step = np.arange(k)
        factors = np.maximum(totals - marked, 0)[:, None] - step
        values: F64 = (np.maximum(factors, 0) / (totals[:, None] - step)).prod(axis=1)
    values[totals == 0] = math.nan
    return values


@lru_cache(maxsize=4096)
def _majority(n: int, c: int, k: int) -> float:
    wins = sum(math.comb(c, r) * math.comb(n - c, k - r) for r in range(k // 2 + 1, min(c, k) + 1))
    even = math.comb(c, k // 2) * math.comb(n - c, k // 2) if k % 2 == 0 else 0
    return (2 * wins + even) / (2 * math.comb(n, k))


def _item_plurality(codes: npt.NDArray[Any], gold: int, k: int) -> float:
    if not len(codes):
        return math.nan
    labels, counts = np.unique(codes, return_counts=True)
    others = tuple(sorted(counts[labels != gold].tolist()))
    return _plurality(int(counts[labels == gold].sum()), others, k)


@lru_cache(maxsize=65536)
def _plurality(gold: int, others: tuple[int, ...], k: int) -> float:
    """P(gold has the most of k votes drawn without replacement), ties split. `others`: counts of the other labels.

    For v votes of gold: the ways in which the other labels share k - v votes, none above v, with t of them at v, are
    the coefficients of the product over labels of sum_{x < v} C(count, x) y^x + z C(count, v) y^v.
    """
    ways, whole = (
        0,
        math.lcm(*range(1, k + 2)),
    )  # whole / (t + 1) is a whole number: nothing is rounded, nothing overflows
    for votes in range(1, min(gold, k) + 1):
        rest = k - votes
        tied_most = rest // votes
        found = np.zeros((rest + 1, tied_most + 1), dtype=object)
        found[0, 0] = 1
        for count in others:
            grown = found.copy()
            for x in range(1, min(count, votes, rest) + 1):
                shift = math.comb(count, x) * found[: rest + 1 - x]
                if x < votes:
                    grown[x:] += shift
                else:
                    grown[x:, 1:] += shift[:, :-1]
            found = grown
        shares = sum(whole // (tied + 1) * ways_tied for tied, ways_tied in enumerate(found[rest]))
        ways += math.comb(gold, votes) * shares
    return float(ways / (whole * math.comb(gold + sum(others), k)))
