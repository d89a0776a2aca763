"""Checks of boards that several tests make."""

from __future__ import annotations

import math

from evalwright.analysis.board import Board, BoardNode
from evalwright.analysis.board_tree import find_in


def check_nodes(board: Board) -> None:
    """Every node has a number, its interval and n for every row, or says why not."""
    ids = [node.id for node in find_in(board.tree)]
    assert len(ids) == len(set(ids))
    for node in find_in(board.tree):
        assert len(node.estimates) == len(board.rows)
        for row, estimate in enumerate(node.estimates):
            if estimate is None:
                assert node.reasons[row]
                continue
            assert math.isfinite(estimate.value) and estimate.n > 0
            if math.isnan(estimate.low) or math.isnan(estimate.high):
                assert node.reasons[row]
        for some in (node.ranks, node.letters):
            assert len(some) in (0, len(board.rows))


def node_of(board: Board, node_id: str) -> BoardNode:
    """The node with this id."""
    return next(node for node in find_in(board.tree) if node.id == node_id)
