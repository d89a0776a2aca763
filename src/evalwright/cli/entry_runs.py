"""`evalwright entries run`: every entry without a result of the board's present settings."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.entries import BOARD_OPTION, TRUST_BOARD
from evalwright.cli.exit_codes import say
from evalwright.cli.options import AS_JSON, HOME, QUIET, option, repeatable_option
from evalwright.cli.output import echo, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalwright.entries.board_file import BoardFile
    from evalwright.entries.entry_file import Entry
    from evalwright.entries.outcomes import EntryOutcome


@click.command("run")
@click.argument("names", nargs=-1)
@BOARD_OPTION
@TRUST_BOARD
@repeatable_option(
    "--budget",
    "SUM",
    "Spend no more than '20 USD', '2M tokens' or '1000 requests' on all entries together.",
)
@option(
    "--failed", "FILE", "Write what failed as Markdown, for an issue, if anything did."
)
@option(
    "--samples-into",
    "DIR",
    "Where files of samples are prepared for an upload. Default: samples of the home"
    " folder, where the board's samples go to a release or the hub.",
)
@option(
    "--round",
    "NAME",
    "Ask everything again, as in no other round: for a model that has changed.",
    default="",
)
@option(
    "--rejudge-for",
    "DOLLARS",
    "What it may cost to have the old answers scored where only the board's judge has"
    " changed, all together. Default: most_dollars in board.yaml.",
    type=click.FloatRange(min=0, max=1_000_000),
)
@HOME
@QUIET
@AS_JSON
def run(names: tuple[str, ...], **params: Any) -> int:
    """Run entries (NAMES, or all) that have no result of the board's present settings, and write
    their results. Where only the judge has changed, the old answers are scored again.

    Run the same command again to continue after an interruption, or to send only what is missing.
    """
    from evalwright.entries.board_file import read_board
    from evalwright.entries.running import EntriesRunner
    from evalwright.evaluation.remaining_budget import RemainingBudget
    from evalwright.reports.progress import TerminalProgress

    board = read_board(Path(params["board_file"]))
    board.require_allowed(params["trust_file"])
    budget = RemainingBudget.parse(params["budget"])
    present, all_unreadable = _read_entries(board, names)
    entries = [entry for entry in present if not names or entry.name in names]
    unreadable = [
        outcome for outcome in all_unreadable if not names or outcome.entry in names
    ]
    if params["home"]:
        # Caches of datasets and hashes are beside the store.
        os.environ["EVALWRIGHT_HOME"] = params["home"]
    samples_into = params["samples_into"]
    with nullcontext() if params["quiet"] else TerminalProgress() as progress:
        runner = EntriesRunner(
            board=board,
            home=params["home"],
            samples_into=Path(samples_into) if samples_into else None,
            progress=progress,
            say=progress.show if progress else say,
            round=params["round"],
            rejudge_dollars=params["rejudge_for"],
        )
        for outcome in unreadable:
            runner.say(f"{outcome.entry}: failed: {outcome.sentence}")
        outcomes = [*runner.run(entries, budget, present), *unreadable]
    failures = [outcome for outcome in outcomes if outcome.state == "failed"]
    if failures and params["failed"]:
        _write_report(board, failures, Path(params["failed"]))
    if params["as_json"]:
        print_json([_as_record(outcome) for outcome in outcomes])
    else:
        _show(outcomes)
    return int(bool(failures))


def _read_entries(
    board: BoardFile, names: Sequence[str]
) -> tuple[list[Entry], list[EntryOutcome]]:
    """Read all entries; files that are no entries have failed.

    Raises:
        UnknownName: there is no entry of one of these names.
    """
    from evalwright.core.errors import UnknownName, known_names
    from evalwright.entries.entry_file import read_readable
    from evalwright.entries.outcomes import EntryOutcome
    from evalwright.entries.running import left_out_sentence

    entries, problems_by_name = read_readable(board.entries_folder)
    known_entries = sorted([*(entry.name for entry in entries), *problems_by_name])
    for name in names:
        if name not in known_entries:
            raise UnknownName(
                "entry", name, known_entries, known_names(name, known_entries)
            )
    unreadable = [
        EntryOutcome(name, name, "failed", left_out_sentence(problems))
        for name, problems in problems_by_name.items()
    ]
    return entries, unreadable


def _write_report(
    board: BoardFile, failures: Sequence[EntryOutcome], file: Path
) -> None:
    from evalwright.entries.failure_report import failure_report
    from evalwright.tasks.safe_files import write_file

    write_file(file, failure_report(board.title, failures))
    say(f"Written: {file}")


def _as_record(outcome: EntryOutcome) -> dict[str, Any]:
    return {
        "entry": outcome.entry,
        "state": outcome.state,
        "sentence": outcome.sentence,
        "result": None if outcome.folder is None else str(outcome.folder),
        "dollars": outcome.dollars,
    }


def _show(outcomes: Sequence[EntryOutcome]) -> None:
    from evalwright.analysis.words import counted

    n_by_state = {
        state: sum(outcome.state == state for outcome in outcomes)
        for state in ("published", "scored again", "described", "up to date", "failed")
    }
    counts = [f"{n:,} {state}" for state, n in n_by_state.items() if n]
    entries = counted(len(outcomes), "entry", "entries")
    echo(f"{entries}: {', '.join(counts) or 'nothing to do'}.")
    if any(n_by_state[state] for state in ("published", "scored again", "described")):
        echo("Next: evalwright entries publish")
