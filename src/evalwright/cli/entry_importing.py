"""`evalwright entries import`: makes runs that are there already results of a board."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evalwright.cli.entries import BOARD_OPTION
from evalwright.cli.options import RUNS_FOLDER, open_runs, option
from evalwright.cli.output import echo


@click.command("import")
@click.argument("runs", nargs=-1, required=True)
@option(
    "--entry",
    "NAME",
    "The entry that all RUNS are results of. Default: that of each run's model and label, or a"
    " name made of the label.",
)
@BOARD_OPTION
@RUNS_FOLDER
def import_(runs: tuple[str, ...], board_file: str, **params: Any) -> int:
    """Make RUNS results of the board: runs imported from another program, or made before it.

    Nothing is sent. A result without an entry is on the board, and its model is never run again.
    """
    from evalwright.analysis.words import counted, listed
    from evalwright.core.errors import UsageError
    from evalwright.entries.board_file import read_board
    from evalwright.entries.entry_file import SUFFIX, read_entries, wrong_file_name
    from evalwright.entries.importing import import_results

    name = params["entry"] or ""
    if name and (fault := wrong_file_name(f"{name}{SUFFIX}")):
        raise UsageError(fault)
    board = read_board(Path(board_file))
    imported = import_results(
        board, open_runs(*runs), read_entries(board.entries_folder), name
    )
    for result in imported:
        if not result.was_there:
            echo(f"Written: {result.folder} ({result.label})")
    n_known = sum(result.was_there for result in imported)
    if n_known:
        echo(f"Already results: {counted(n_known, 'run')}.")
    without = list(
        dict.fromkeys(result.entry for result in imported if not result.has_entry)
    )
    if without:
        echo(
            f"No entry of {listed(without, 5)}: shown, and never run again. A file"
            " entries/NAME.yaml changes that."
        )
    echo("Next: evalwright entries publish")
    return 0
