"""`evalwright entries publish`: table, plot and pages of a board, from its results alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from evalwright.cli.entries import BOARD_OPTION
from evalwright.cli.exit_codes import say
from evalwright.cli.output import echo


@click.command()
@BOARD_OPTION
def publish(board_file: str) -> int:
    """Write the README's table, the plot, the pages, board.json and board.csv from results/.

    Nothing is sent, and nothing but the results is needed; the same results give the same files.
    """
    from evalwright.entries.board_file import read_board
    from evalwright.entries.publishing import (
        is_baseline,
        leaderboard_arguments,
        measure_published,
        published_outputs,
        remove_other_pages,
    )
    from evalwright.entries.results import read_results, shown_runs, shown_series

    board = read_board(Path(board_file))
    results = read_results(board.results_folder)
    runs = shown_runs(results)
    if not runs:
        echo(
            "There are no results yet, so nothing is published. `evalwright entries run`"
        )
        return 0
    outputs = published_outputs(board)
    ranked_runs = [series.newest for series in shown_series(results).values()]
    ranked_judges = [
        str(judge.get("name", ""))
        for run in ranked_runs
        for judge in run.data["roles"].values()
    ]
    folders = [run.folder for run in runs]
    arguments = leaderboard_arguments(
        board,
        folders,
        outputs,
        board.title,
        only_history_has_baselines=not any(map(is_baseline, ranked_judges)),
    )
    code = make_leaderboard(arguments)
    for page in remove_other_pages(outputs):
        say(f"Removed: {page} (no longer on the board)")
    sizes = ", ".join(map(str, measure_published(board)))
    echo(f"In git: {sizes}.")
    return code


def make_leaderboard(arguments: Sequence[str]) -> int:
    """Run `evalwright leaderboard`, as if its arguments had been typed.

    A board on which no model has a score yet has no plot, and is published without one.
    """
    from evalwright.cli.leaderboard import leaderboard
    from evalwright.cli.publishing import MAY_LACK_PLOT

    code = leaderboard.main(
        args=list(arguments),
        prog_name="evalwright leaderboard",
        standalone_mode=False,
        obj=MAY_LACK_PLOT,
    )
    return int(code or 0)
