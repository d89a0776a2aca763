"""Tipping points: how many missing or unsure answers would have to change to overturn a verdict.

A verdict comes from the items for which both models have a score, which is right where answers
are missing at random. To see how far that assumption may be wrong, the question is reversed, as
in trials with missing outcomes (ICH E9(R1) on sensitivity analyses; Yan, Lee & Li 2009): how
many of the missing answers would have to go against the verdict before it falls? Each is scored
against it, the leading model's at the bottom of the range and the other's at the top, the most
harmful first, and the verdict is recomputed. Unsure scores exist already; they are moved to the
end of the range that speaks against the verdict.

With right or wrong answers the order does not depend on the moves before, so the number is the
smallest possible. A verdict that has fallen stays fallen when more is moved, so the number is
found by bisection: 100,000 items take some twenty comparisons.

Whether the missing answers are missing at random has an exact test: of the items that only one
model lacks, each model should lack the same share (McNemar's test of the missing answers).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics.paired import paired
from evalwright.statistics.units import F64, I64, Clusters, Range

MAX_MISSING_SHARE = 0.05
"""Above this share of missing answers in either model a verdict is provisional."""

SHARES_DIFFER_P = 0.01
"""Below this p-value the two shares of missing answers differ by more than chance."""


@dataclass(frozen=True, slots=True)
class TippingPoint(Plain):
    """The smallest number among `n` answers that overturns a verdict; None if even all do not."""

    n: int
    fewest: int | None


@dataclass(frozen=True, slots=True)
class Moves:
    """Changes of scores against a verdict, the most harmful first.

    A move sets one score, or both scores of an item that both models lack, to `targets`.

    Attributes:
        rows: (cells,), the model of each changed score, in the order of the moves.
        columns: (cells,), its item.
        targets: (cells,), its new value.
        move: (cells,), the move that it belongs to.
        harm: (moves,), by how much a move shifts the difference against the verdict, at least 0.
    """

    rows: I64
    columns: I64
    targets: F64
    move: I64
    harm: F64

    def __len__(self) -> int:
        return len(self.harm)

    def applied(self, values: F64, count: int) -> F64:
        """Return the scores (2, items) after the first `count` moves."""
        cells = slice(0, int(np.searchsorted(self.move, count)))
        moved = values.copy()
        moved[self.rows[cells], self.columns[cells]] = self.targets[cells]
        return moved


def moves_of_missing(
    values: F64, missing: npt.NDArray[np.bool_], value_range: Range, sign: int
) -> Moves:
    """List what the missing answers of two models would be at the worst for a verdict.

    There is one move for each item with a missing answer.

    Args:
        values: (2, items), nan where there is no score.
        missing: (2, items), which of these are missing; items without a score that are not missing
            were never asked.
        value_range: the range of one score.
        sign: 1 for a verdict that the first model's mean is higher, -1 that the second one's is.
    """
    against = _against(value_range, sign)
    filled = np.where(missing, against[:, None], values)
    open_items = np.flatnonzero(missing.any(axis=0) & ~np.isnan(filled).any(axis=0))
    harm = -sign * (filled[0, open_items] - filled[1, open_items])
    order = np.argsort(-harm, kind="stable")
    columns = open_items[order]
    move, rows = np.nonzero(missing[:, columns].T)
    return Moves(
        rows,
        columns[move],
        filled[rows, columns[move]],
        move,
        np.maximum(harm[order], 0.0),
    )


def moves_of_unsure(
    values: F64, unsure: npt.NDArray[np.bool_], value_range: Range, sign: int
) -> Moves:
    """List the unsure scores of items that both models have, moved against a verdict.

    Arguments as of `moves_of_missing`; `unsure` is (2, items). Among equally harmful moves, those
    come first that increase the spread most: an item that turns against the verdict before one that
    merely stops supporting it.
    """
    against = _against(value_range, sign)
    common = ~np.isnan(values).any(axis=0)
    columns, rows = np.nonzero((unsure & common).T)
    harm = np.abs(values[rows, columns] - against[rows])
    gaps = sign * (values[0, columns] - values[1, columns])
    # If both scores of an item are unsure, the second move starts where the first one ends.
    is_second = np.zeros(values.shape[1], bool)
    is_second[columns[1:][columns[1:] == columns[:-1]]] = True
    starts = np.where(is_second[columns], gaps - harm / 2, gaps)
    order = np.lexsort((columns, starts, -harm))
    rows = rows[order]
    columns = columns[order]
    return Moves(rows, columns, against[rows], np.arange(len(rows)), harm[order])


def fewest_moves(moves: Moves, holds_after: Callable[[int], bool]) -> int | None:
    """Find the smallest number of first moves after which a verdict no longer holds.

    None where it holds after all of them.

    Args:
        moves: the moves, the most harmful first.
        holds_after: whether the verdict holds after a number of moves.
    """
    return fewest_overturning(
        len(moves), int(np.count_nonzero(moves.harm > 0)), holds_after
    )


def fewest_overturning(
    n_moves: int, n_harmful: int, holds_after: Callable[[int], bool]
) -> int | None:
    """Find the smallest number of moves that overturns a verdict, as `fewest_moves`.

    The first `n_harmful` of `n_moves` lower the difference; the others only add equal scores.
    """
    low = 0
    high = n_harmful
    if n_harmful == 0 or holds_after(n_harmful):
        if n_moves == n_harmful or holds_after(n_moves):
            return None
        low = n_harmful
        high = n_moves
    while high - low > 1:
        middle = (low + high) // 2
        if holds_after(middle):
            low = middle
        else:
            high = middle
    return high


def tipping_of_missing(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    missing: npt.ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
    value_range: Range = (0.0, 1.0),
) -> TippingPoint | None:
    """How many missing answers, scored against the verdict of two models, overturn it.

    Args:
        a: scores (n,), nan where there is none.
        b: scores of the same items.
        missing: (2, n), which of these are missing; None: all that are nan.
        clusters: (n,) integers; items that share one are not independent.
        level: confidence level of the interval that the verdict is based on.
        value_range: the range of one score.

    Returns:
        The tipping point; None without a verdict or a missing answer.
    """
    values = np.stack([np.asarray(a, np.float64), np.asarray(b, np.float64)])
    is_missing = np.isnan(values) if missing is None else np.asarray(missing, bool)
    sign = _verdict_sign(values, clusters, level, value_range)
    if sign == 0:
        return None
    moves = moves_of_missing(values, is_missing, value_range, sign)
    return _find_tipping_point(values, moves, clusters, level, value_range, sign)


def tipping_of_unsure(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    unsure: npt.ArrayLike,
    clusters: Clusters = None,
    level: float = 0.95,
    value_range: Range = (0.0, 1.0),
) -> TippingPoint | None:
    """Find how many unsure scores, all wrong in one direction, overturn a verdict.

    Arguments as of `tipping_of_missing`; `unsure`, (2, n), says which of the scores are unsure.
    """
    values = np.stack([np.asarray(a, np.float64), np.asarray(b, np.float64)])
    sign = _verdict_sign(values, clusters, level, value_range)
    if sign == 0:
        return None
    moves = moves_of_unsure(values, np.asarray(unsure, bool), value_range, sign)
    return _find_tipping_point(values, moves, clusters, level, value_range, sign)


def shares_differ_p(missing: npt.ArrayLike) -> float:
    """Exact two-sided p-value of "both models are equally likely to lack an item" (McNemar).

    Args:
        missing: (2, n), of the items that both models were asked.
    """
    from scipy.stats import binomtest

    is_missing = np.asarray(missing, bool)
    only_a = int(np.count_nonzero(is_missing[0] & ~is_missing[1]))
    only_b = int(np.count_nonzero(is_missing[1] & ~is_missing[0]))
    if only_a + only_b == 0:
        return 1.0
    return float(binomtest(only_a, only_a + only_b).pvalue)


def _find_tipping_point(
    values: F64,
    moves: Moves,
    clusters: Clusters,
    level: float,
    value_range: Range,
    sign: int,
) -> TippingPoint | None:
    if not len(moves):
        return None

    def holds_after(count: int) -> bool:
        return (
            _verdict_sign(moves.applied(values, count), clusters, level, value_range)
            == sign
        )

    return TippingPoint(len(moves), fewest_moves(moves, holds_after))


def _verdict_sign(
    values: F64, clusters: Clusters, level: float, value_range: Range
) -> int:
    """Return 1 if the first model is significantly better, -1 if the second is, 0 otherwise."""
    comparison = paired(
        values[0],
        values[1],
        missing=np.zeros(values.shape, bool),
        clusters=clusters,
        value_range=value_range,
    ).comparison(level)
    return {"better": 1, "worse": -1}.get(comparison.verdict, 0)


def _against(value_range: Range, sign: int) -> F64:
    """Return the scores of both models that speak most against a verdict."""
    return np.array(value_range if sign > 0 else value_range[::-1], np.float64)
