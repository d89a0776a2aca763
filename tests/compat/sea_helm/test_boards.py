"""Boards of SEA-HELM's results, ranked at the nodes of its own tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.sea_helm.sea_results import write_results
from evalwright.analysis.board import make_board
from evalwright.analysis.board_tree import find_in
from evalwright.cli.board_presets import settle_preset
from evalwright.compat.sea_helm.importing import import_sea_helm
from evalwright.reports.presets import find_preset
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
    assert board.headline.title == ("Safety" if "safety" in node else "Indonesian")
    values = [estimate.value for estimate in board.headline.estimates if estimate]
    assert values == sorted(values, reverse=True)
    ranked = [row.ranks is not None for row in board.rows]
    assert all(ranked) or any("without ranks" in note for note in board.notes)


def test_the_preset_has_names_without_the_dialect_and_competencies_beside(
    own_folder: Path,
) -> None:
    runs = _runs("corrected")
    preset = find_preset("sea-helm")
    params = {"metric": None, "by": "", "rank_by": None}
    settled = settle_preset(params, preset, runs)
    board = make_board(
        runs,
        rank_by=settled["rank_by"],
        by_beside=settled["by_beside"],
        ranks_below=True,
    )
    check_nodes(board)
    titles = {node.title for node in find_in(board.tree) if node.kind == "group"}
    assert not any(title.startswith("sea-helm:") for title in titles)
    assert {"SEA", "Indonesian", "Safety"} <= titles
    (competencies,) = [root for root in board.tree if root.title == "By competency"]
    assert [part.title for part in competencies.parts] == ["Understanding", "Safety"]
    assert all(part.ranks for part in competencies.parts)

    # The same tasks are below SEA and below all: either name finds them.
    for name in ("id", "sea-helm:id", "Indonesian", "language=id"):
        assert make_board(runs, rank_by=name).headline.title == "Indonesian"
    # A competency over all languages is meant before that of one language.
    safety = make_board(runs, rank_by="Safety", by_beside=settled["by_beside"])
    assert safety.rank_by == "By competency/Safety"
