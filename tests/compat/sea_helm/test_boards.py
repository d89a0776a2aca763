"""Boards of SEA-HELM's results, ranked at the nodes of its own tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.sea_helm.sea_results import write_results
from evalwright.analysis.board import make_board
from evalwright.compat.sea_helm.importing import import_sea_helm
from evalwright.runs.reader import Run
from support.board_checks import check_nodes


def _runs(scoring: str) -> list[Run]:
    runs = []
    for model, answers in (("acme/good", "AABBAA"), ("acme/poor", "BBBBBB")):
        folder = write_results(Path(model.replace("/", "-")), model, [answers])
        ((run,), _) = import_sea_helm(folder, Path("runs"), scoring=scoring)
        runs.append(run)
    return runs


@pytest.mark.parametrize("scoring", ["published", "corrected"])
@pytest.mark.parametrize("node", ["id", "sea-helm:id/safety", "id/safety"])
def test_a_node_of_its_tree_ranks(own_folder: Path, scoring: str, node: str) -> None:
    board = make_board(_runs(scoring), rank_by=node)
    check_nodes(board)
    assert board.headline.title == f"sea-helm:{node.removeprefix('sea-helm:')}"
    values = [estimate.value for estimate in board.headline.estimates if estimate]
    assert values == sorted(values, reverse=True)
    ranked = [row.ranks is not None for row in board.rows]
    assert all(ranked) or any("without ranks" in note for note in board.notes)
