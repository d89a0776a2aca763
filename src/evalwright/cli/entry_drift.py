"""`evalwright entries drift`: asks a board's fixed sample again, and says what has changed."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from evalwright.cli.entries import BOARD_OPTION, TRUST_BOARD
from evalwright.cli.exit_codes import say
from evalwright.cli.options import AS_JSON, HOME, QUIET, option
from evalwright.cli.output import print_result


@click.command("drift")
@BOARD_OPTION
@TRUST_BOARD
@option(
    "--round",
    "NAME",
    "The round's name. Default: the ISO week (2026-W49), or the day or month where the"
    " board says so.",
)
@option("--report", "FILE", "Write what was found as Markdown, for an issue.")
@HOME
@QUIET
@AS_JSON
def drift(**params: Any) -> int:
    """Ask a fixed sample of every model behind an API, and of the judge, again.

    The rounds are kept in drift/ as scores and hashes of texts. While nothing changes, the chance
    of any alarm on the board is 5% at most, however many rounds there are. Exit code 1 if there is
    an alarm, or something is missing. Run the same command again to continue.
    """
    from evalwright.entries.board_file import read_board
    from evalwright.entries.checking import find_left_out
    from evalwright.entries.drifting import DriftWatch, name_round
    from evalwright.entries.entry_file import read_readable
    from evalwright.reports.documents.board_drift import drift_text, watch_document
    from evalwright.reports.progress import TerminalProgress
    from evalwright.tasks.safe_files import write_file

    board = read_board(Path(params["board_file"]))
    board.require_allowed(params["trust_file"])
    readable, left_out = read_readable(board.entries_folder)
    left_out |= find_left_out(board, readable)
    for name, problems in left_out.items():
        say(f"{name} is left out: {problems[0]}")
    entries = [entry for entry in readable if entry.name not in left_out]
    if params["home"]:
        # Caches of datasets and hashes are beside the store.
        os.environ["EVALWRIGHT_HOME"] = params["home"]
    round_name = params["round"] or name_round(board.drift.every)
    with nullcontext() if params["quiet"] else TerminalProgress() as progress:
        watch = DriftWatch(
            board=board,
            round=round_name,
            home=params["home"],
            progress=progress,
            say=progress.show if progress else say,
        )
        outcomes = watch.watch(entries)
    subjects = [
        (
            watched.label,
            watched.name.startswith("_"),
            watched.sentence,
            watched.followed,
        )
        for watched in outcomes
    ]
    record = [
        {
            "name": watched.name,
            "label": watched.label,
            "state": watched.state,
            "sentence": watched.sentence,
            "alarm": watched.is_alarm,
            "followed": watched.followed.as_dict() if watched.followed else None,
        }
        for watched in outcomes
    ]
    if params["report"]:
        text = drift_text(board.title, round_name, subjects)
        write_file(Path(params["report"]), text)
    print_result(
        params["as_json"], record, watch_document(board.title, round_name, subjects)
    )
    return int(
        any(outcome.is_alarm or outcome.state != "asked" for outcome in outcomes)
    )
