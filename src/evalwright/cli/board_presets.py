"""`--preset` and `--facts` of `evalwright leaderboard`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.cli.options import was_typed

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.analysis.model_facts import FactsTable, ModelFacts
    from evalwright.reports.presets import Preset
    from evalwright.runs.reader import Run


def read_preset(
    params: Mapping[str, Any],
) -> tuple[dict[str, Any], Preset | None, FactsTable | None]:
    """Read the preset and the table of facts that the options name.

    Returns:
        The parameters with the preset's defaults, the preset and the table.
    """
    merged_params = dict(params)
    preset = None
    facts_table = None
    if params["preset"]:
        from evalwright.reports.presets import find_preset

        preset = find_preset(params["preset"])
        for name, default in preset.options.items():
            if name in merged_params and not was_typed(name):
                merged_params[name] = default
    if params["facts"]:
        from evalwright.analysis.model_facts import read_facts

        facts_table = read_facts(Path(params["facts"]))
    return merged_params, preset, facts_table


def settle_preset(
    params: Mapping[str, Any], preset: Preset | None, runs: Sequence[Run]
) -> dict[str, Any]:
    """Return the parameters with what a preset sets as far as the runs allow it.

    These are `metric`, `by` and `rank_by`, each only if it was not typed, and what the tree has
    beside: `beside`, `means` and `by_beside` as of `make_board`.
    """
    settled: dict[str, Any] = {**params, "beside": (), "means": {}, "by_beside": ()}
    if preset is None:
        return settled
    from evalwright.reports.presets import (
        added_means,
        preferred_keys,
        preferred_metric,
        preferred_node,
    )

    settled["beside"] = preset.beside
    settled["by_beside"] = preset.by_beside
    settled["means"] = added_means(preset, runs)
    if not params["metric"]:
        settled["metric"] = preferred_metric(preset, runs)
    if not params.get("by"):
        settled["by"] = ",".join(preferred_keys(preset, runs))
    if not params.get("rank_by"):
        settled["rank_by"] = preferred_node(preset, runs)
    return settled


def show_preset(
    board: Board,
    runs: Sequence[Run],
    preset: Preset | None,
    facts: Sequence[ModelFacts],
) -> Board:
    """Add facts about the models, and what the preset shows beside scores.

    Args:
        board: the board.
        runs: the runs in the order in which they were passed to `make_board`.
        preset: the preset, if any.
        facts: the facts about the runs' models, in the same order.
    """
    from evalwright.reports.presets import apply_preset

    board = apply_preset(board, runs, preset, facts)
    if preset is None or not preset.over_runs:
        return board
    from evalwright.cli.notebook_numbers import NOTE, notebook_columns

    columns = notebook_columns([runs[row.run_index] for row in board.rows])
    if not columns:
        return board
    return replace(
        board,
        extra_columns=(*columns, *board.extra_columns),
        notes=(*board.notes, NOTE),
    )
