"""`--preset` and `--facts` of `evalwright leaderboard`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.cli.options import was_typed

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.analysis.model_facts import FactsTable
    from evalwright.reports.presets import Preset
    from evalwright.runs.reader import Run


def read_preset(
    params: Mapping[str, Any],
) -> tuple[dict[str, Any], Preset | None, FactsTable | None]:
    """Read the preset and the table of facts that the options name.

    Returns:
        The parameters with the preset's defaults, the preset and the table.
    """
    merged = dict(params)
    preset = None
    facts_table = None
    if params["preset"]:
        from evalwright.reports.presets import find_preset

        preset = find_preset(params["preset"])
        for name, default in preset.options.items():
            if name in merged and not was_typed(name):
                merged[name] = default
    if params["facts"]:
        from evalwright.analysis.model_facts import read_facts

        facts_table = read_facts(Path(params["facts"]))
    return merged, preset, facts_table


def metric_of_preset(preset: Preset | None, runs: Sequence[Run]) -> str | None:
    """Return the metric that a preset shows; None for the main ones."""
    if preset is None:
        return None
    from evalwright.reports.presets import preferred_metric

    return preferred_metric(preset, runs)


def show_preset(
    board: Board,
    runs: Sequence[Run],
    preset: Preset | None,
    facts_table: FactsTable | None,
) -> tuple[Board, list[str]]:
    """Add facts about the models, and what the preset shows beside scores."""
    from evalwright.reports.presets import apply_preset

    board, sentences = apply_preset(board, runs, preset, facts_table)
    if preset is not None and preset.over_runs:
        from evalwright.cli.notebook_numbers import NOTE, notebook_columns

        columns = notebook_columns([runs[row.run_index] for row in board.rows])
        if columns:
            board = replace(
                board,
                extra_columns=(*columns, *board.extra_columns),
                notes=(*board.notes, NOTE),
            )
    return board, sentences
