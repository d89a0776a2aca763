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
    from evalwright.entries.running import EntryOutcome


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
@HOME
@QUIET
@AS_JSON
def run(names: tuple[str, ...], **params: Any) -> int:
    """Run entries (NAMES, or all) that have no result of the board's present settings, and write
    their results.

    Run the same command again to continue after an interruption, or to send only what is missing.
    """
    from evalwright.entries.board_file import read_board
    from evalwright.entries.running import EntriesRunner
    from evalwright.evaluation.remaining_budget import RemainingBudget
    from evalwright.reports.progress import TerminalProgress

    board = read_board(Path(params["board_file"]))
    board.require_allowed(params["trust_file"])
    budget = RemainingBudget.parse(params["budget"])
    entries, unreadable = _read_entries(board, names)
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
        )
        outcomes = [*runner.run(entries, budget), *unreadable]
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
    """Read the entries of these names, or all; files that are no entries have failed.

    Raises:
        UnknownName: there is no such entry.
    """
    from evalwright.core.errors import UnknownName, known_names
    from evalwright.entries.entry_file import SUFFIX, entry_paths, read_with_problems
    from evalwright.entries.running import EntryOutcome

    paths = {
        path.name.removesuffix(SUFFIX): path
        for path in entry_paths(board.entries_folder)
    }
    for name in names:
        if name not in paths:
            raise UnknownName("entry", name, [*paths], known_names(name, [*paths]))
    entries: list[Entry] = []
    unreadable: list[EntryOutcome] = []
    for name, path in paths.items():
        if names and name not in names:
            continue
        entry, problems = read_with_problems(path)
        if problems or entry is None:
            sentence = "\n".join(map(str, problems))
            unreadable.append(EntryOutcome(name, name, "failed", sentence))
        else:
            entries.append(entry)
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
        for state in ("published", "described", "up to date", "failed")
    }
    counts = [f"{n:,} {state}" for state, n in n_by_state.items() if n]
    entries = counted(len(outcomes), "entry", "entries")
    echo(f"{entries}: {', '.join(counts) or 'nothing to do'}.")
    if n_by_state["published"] or n_by_state["described"]:
        echo("Next: evalwright entries publish")
