"""The tree of a board that labels correct, with the judge's own numbers in a root beside.

Three kinds of nodes change: the one that ranks the models; those with the same number under another
name; and those with its complement, as factual consistency is 1 minus the hallucination rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evalwright.analysis.board_tree import (
    BoardNode,
    NodeIds,
    find_in,
    replace_node,
)
from evalwright.statistics import Estimate

BY_THE_JUDGE = ", by the judge"
"""What the title of a number has behind it where a corrected one stands beside it."""

_SAME_NUMBER = 1e-9
"""Largest difference between two numbers that are the same but for rounding in the last place."""

Estimates = Sequence[Estimate | None]


def complement(estimate: Estimate | None) -> Estimate | None:
    """Return 1 minus an estimate, with its interval."""
    if estimate is None:
        return None
    return replace(
        estimate,
        value=1 - estimate.value,
        low=1 - estimate.high,
        high=1 - estimate.low,
    )


def are_equal(first: Estimates, second: Estimates) -> bool:
    """Tell whether two columns have the same number, of as many items, for every model."""
    has_number = False
    for estimate, counterpart in zip(first, second, strict=True):
        if estimate is None or counterpart is None:
            if estimate is not counterpart:
                return False
            continue
        has_number = True
        is_near = abs(estimate.value - counterpart.value) <= _SAME_NUMBER
        if not is_near or estimate.n != counterpart.n:
            return False
    return has_number


def are_complements(first: Estimates, second: Estimates) -> bool:
    """Tell whether one column is 1 minus the other for every model."""
    return are_equal(first, [complement(estimate) for estimate in second])


def correct_tree(
    tree: Sequence[BoardNode],
    headline: BoardNode,
    *,
    corrected: Estimates,
    ranks: Sequence[tuple[int, int] | None],
    letters: Sequence[str],
    reasons: Mapping[int, str],
) -> tuple[BoardNode, ...]:
    """Put the corrected numbers into a tree, and the judge's into a root of their own.

    Args:
        tree: the roots.
        headline: the node whose number is corrected.
        corrected: the corrected numbers in the order of the rows, None where labels are too few.
        ranks: the ranks by them.
        letters: the letters of models that cannot be separated.
        reasons: by row, why there is no corrected number.
    """

    def with_numbers(node: BoardNode, estimates: Estimates) -> BoardNode:
        return replace(
            node,
            estimates=tuple(estimates),
            ranks=tuple(ranks),
            letters=tuple(letters),
            reasons=dict(reasons),
        )

    complements = [complement(estimate) for estimate in corrected]
    replacements = dict[str, BoardNode]()
    ids = NodeIds()
    for node in find_in(tree):
        ids.new("", node.id)
        if node.kind == "slice" or {*node.tasks} != {*headline.tasks}:
            continue
        if are_equal(node.estimates, headline.estimates):
            replacements[node.id] = with_numbers(node, corrected)
        elif are_complements(node.estimates, headline.estimates):
            replacements[node.id] = with_numbers(node, complements)
    judged = replace(
        headline,
        id=ids.new("", f"{headline.id}{BY_THE_JUDGE}"),
        title=f"{headline.title}{BY_THE_JUDGE}",
        keys={},
        ranks=(),
        letters=(),
        parts=(),
    )
    first, *others = replace_node(tree, replacements)
    return (first, judged, *others)
