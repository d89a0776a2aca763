"""`evalwright entries try`: a few of the board's samples for an entry, before it is merged."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.entries import BOARD_OPTION, TRUST_BOARD
from evalwright.cli.exit_codes import conclude, say
from evalwright.cli.options import HOME, QUIET, option
from evalwright.cli.output import echo

if TYPE_CHECKING:
    from evalwright.entries.board_file import BoardFile
    from evalwright.entries.trial_report import PreviewPlace
    from evalwright.entries.trying import Trial


@click.command("try")
@click.argument("file")
@BOARD_OPTION
@TRUST_BOARD
@option("--comment", "FILE", "Write what the trial showed as Markdown, for a comment.")
@option(
    "--summary",
    "FILE",
    "Append the same to a file, such as that of $GITHUB_STEP_SUMMARY.",
)
@option(
    "--page", "FILE", "Write the board with this entry's provisional row as a page."
)
@option(
    "--pages",
    "DIR",
    "Write that page into a folder, and a page for each model; that of the entry has the"
    " trial's texts.",
)
@HOME
@QUIET
def try_(file: str, **params: Any) -> int:
    """Try the entry in FILE: the board's test cases and some of its samples, within the budget of
    trials.

    The entry need not be on the board, and is not added to it. The exit code is 1 if answers are
    missing.
    """
    from evalwright.entries.board_file import read_board
    from evalwright.entries.entry_file import read_entry, read_readable
    from evalwright.entries.trial_report import trial_comment
    from evalwright.entries.trying import try_entry
    from evalwright.reports.progress import TerminalProgress
    from evalwright.tasks.safe_files import write_file

    board = read_board(Path(params["board_file"]))
    board.require_allowed(params["trust_file"])
    entry = read_entry(Path(file))
    if params["home"]:
        # Caches of datasets and hashes are beside the store.
        os.environ["EVALWRIGHT_HOME"] = params["home"]
    present, _ = read_readable(board.entries_folder)
    with nullcontext() if params["quiet"] else TerminalProgress() as progress:
        trial = try_entry(
            board, entry, present=present, home=params["home"], progress=progress
        )
    preview = _write_preview(board, trial, params)
    comment = trial_comment(board.title, trial, preview)
    if params["comment"]:
        write_file(Path(params["comment"]), comment)
        say(f"Written: {params['comment']}")
    if params["summary"]:
        with Path(params["summary"]).open("a", encoding="utf-8") as summary:
            summary.write(comment)
    echo(f"{entry.name}, the whole run: {trial.price.as_text()}.")
    return conclude(trial.incomplete)


def _write_preview(
    board: BoardFile, trial: Trial, params: dict[str, Any]
) -> PreviewPlace | None:
    """Show the board with the tried entry, and return its place."""
    from evalwright.cli.entry_publishing import make_leaderboard
    from evalwright.entries.publishing import (
        BOARD_PAGE,
        PAGES_FOLDER,
        BoardOutputs,
        leaderboard_arguments,
    )
    from evalwright.entries.results import read_results, shown_series
    from evalwright.entries.trial_report import PreviewPlace

    series = shown_series(read_results(board.results_folder)).values()
    folders = [model_series.newest.folder for model_series in series]
    title = f"{board.title} (preview)"
    json_file = trial.run.folder.parent / f"{trial.run.id}.json"
    outputs = BoardOutputs(json_file=json_file)
    if params["page"]:
        outputs = replace(outputs, html=Path(params["page"]))
    if params["pages"]:
        pages = Path(params["pages"])
        outputs = replace(
            outputs,
            html=outputs.html or pages / BOARD_PAGE,
            pages=pages / PAGES_FOLDER,
        )
    arguments = leaderboard_arguments(
        board, [*folders, trial.run.folder], outputs, title, shows_texts=True
    )
    make_leaderboard(arguments)
    record = json.loads(json_file.read_text(encoding="utf-8"))
    for row in record["models"]:
        if row["run"] == trial.run.id:
            rank = row["rank"]
            return PreviewPlace(tuple(rank) if rank else None, len(record["models"]))
    return None
