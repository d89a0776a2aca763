"""The nodes of a board's tree in the order of `board.json`, with the numbers of each model.

A page of a model has an anchor for each node: `n-` and the node's index in this order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.analysis.board import Board
from evalwright.analysis.board_tree import BoardNode
from evalwright.reports.numbers import Unit
from evalwright.statistics import Estimate


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node and its place in the tree.

    Attributes:
        index: Its index in `board.json`'s `nodes`.
        parent: The index of the node above; None for a root.
        depth: How many nodes are above it.
        node: The node.
    """

    index: int
    parent: int | None
    depth: int
    node: BoardNode

    @property
    def anchor(self) -> str:
        """The name by which a model's page links to the node."""
        return f"n-{self.index}"

    @property
    def unit(self) -> Unit:
        """How the node's numbers are shown."""
        return "points" if self.node.bounded else "plain"


def place_nodes(board: Board) -> list[PlacedNode]:
    """List all nodes of a board, each before the nodes below it."""
    placed: list[PlacedNode] = []
    _place(board.tree, None, 0, placed)
    return placed


def _place(
    nodes: Sequence[BoardNode],
    parent: int | None,
    depth: int,
    placed: list[PlacedNode],
) -> None:
    for node in nodes:
        index = len(placed)
        placed.append(PlacedNode(index, parent, depth, node))
        _place(node.parts, index, depth + 1, placed)


def finite(number: float | None) -> float | None:
    """Return the number, or None where JSON has none: nan and the infinities."""
    if number is None or not math.isfinite(number):
        return None
    return float(number)


def rank_at(node: BoardNode, row: int) -> tuple[int, int] | None:
    """Return a row's best and worst rank at a node; None if it has none."""
    return node.ranks[row] if node.ranks else None


def letters_at(node: BoardNode, row: int) -> str:
    """Return the letters of a row's ties at a node."""
    return node.letters[row] if node.letters else ""


def reason_at(node: BoardNode, row: int) -> str:
    """Say why a row has no number or no interval at a node; "" if it has both.

    A number without a recorded reason has that of its own method.
    """
    if reason := node.reasons.get(row):
        return reason
    estimate = node.estimates[row]
    if estimate is None:
        return "no number"
    if finite(estimate.value) is None:
        return estimate.method or "no number"
    if finite(estimate.low) is None or finite(estimate.high) is None:
        return f"no interval: {estimate.method}" if estimate.method else "no interval"
    return ""


def node_dicts(board: Board) -> list[dict[str, Any]]:
    """Convert the nodes to JSON-compatible dictionaries; arrays are in the order of the rows."""
    placed_nodes = place_nodes(board)
    return [
        _node_dict(
            placed.node,
            None if placed.parent is None else placed_nodes[placed.parent].node.id,
            len(board.rows),
        )
        for placed in placed_nodes
    ]


def _node_dict(node: BoardNode, parent: str | None, n_rows: int) -> dict[str, Any]:
    rows = range(n_rows)
    reasons = {str(row): reason for row in rows if (reason := reason_at(node, row))}
    return {
        "id": node.id,
        "parent": parent,
        "title": node.title,
        "kind": node.kind,
        "keys": dict(node.keys),
        "metric": node.metric,
        "scale": "0 to 1" if node.bounded else node.measure or "its own",
        "measure": node.measure,
        "lower_is_better": node.lower_is_better,
        "tasks": list(node.tasks),
        "value": [_end(estimate, "value") for estimate in node.estimates],
        "low": [_end(estimate, "low") for estimate in node.estimates],
        "high": [_end(estimate, "high") for estimate in node.estimates],
        "n": [estimate.n if estimate else None for estimate in node.estimates],
        "missing": [
            estimate.n_missing if estimate else None for estimate in node.estimates
        ],
        "rank": [_rank_list(rank_at(node, row)) for row in rows],
        "tied": [letters_at(node, row) for row in rows],
        "reasons": reasons,
    }


def _end(estimate: Estimate | None, name: str) -> float | None:
    return finite(getattr(estimate, name)) if estimate else None


def _rank_list(ranks: tuple[int, int] | None) -> list[int] | None:
    return list(ranks) if ranks else None


def iterate_numbers(
    board: Board,
) -> Iterator[tuple[int, PlacedNode, Estimate | None]]:
    """Iterate over every number of a board: the row's index, the node, and the number."""
    nodes = place_nodes(board)
    for row in range(len(board.rows)):
        for placed in nodes:
            yield row, placed, placed.node.estimates[row]
