"""`evalwright entries publish`: table, plot and pages of a board, from its results alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalwright.cli.entries import BOARD_OPTION
from evalwright.cli.exit_codes import say
from evalwright.cli.output import echo

if TYPE_CHECKING:
    from evalwright.entries.board_file import BoardFile

MAX_NAMED = 3


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
    _say_unowned(board, shown_series(results))
    sizes = ", ".join(map(str, measure_published(board)))
    echo(f"In git: {sizes}.")
    return code


def _say_unowned(board: BoardFile, entry_names: Iterable[str]) -> None:
    """Say which results belong to no entry: nothing else tells that an entry was deleted."""
    from evalwright.analysis.words import listed
    from evalwright.entries.entry_file import SUFFIX

    folder = board.entries_folder
    unowned = [
        name for name in entry_names if not (folder / f"{name}{SUFFIX}").is_file()
    ]
    if unowned:
        folders = listed([f"results/{name}" for name in unowned], MAX_NAMED)
        say(
            f"No entry: {folders}. What has none is shown and never run again. To take a model"
            " off the board, delete its folder; after a renaming, rename the folder, too."
        )


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
