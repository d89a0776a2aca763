"""`evalwright entries`: a leaderboard by pull requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.groups import LazyGroup
from evalwright.cli.options import AS_JSON, flag, option
from evalwright.cli.output import echo, print_json

if TYPE_CHECKING:
    from evalwright.entries.checking import CheckedEntries
    from evalwright.entries.entry_file import Entry
    from evalwright.entries.problems import Problem
    from evalwright.entries.pull_requests import PullRequest

COMMANDS: dict[str, tuple[str, str]] = {
    "try": (
        "entry_trial:try_",
        "Try an entry on a few of the board's samples, and say what a whole run costs.",
    ),
    "run": ("entry_runs:run", "Run the entries that have no result yet."),
    "import": (
        "entry_importing:import_",
        "Make runs that are there already results of the board.",
    ),
    "publish": ("entry_publishing:publish", "Make the board's pages from its results."),
    "rejudge": (
        "entry_rejudging:rejudge",
        "Score the answers of results again by another judge, with the price first.",
    ),
    "drift": (
        "entry_drift:drift",
        "Ask a fixed sample again: has a model, or the judge, changed?",
    ),
}
"""The commands in other modules: where each is, and its line of the help."""

BOARD_OPTION = option(
    "--board board_file",
    "FILE",
    "The board's file. Default: board.yaml.",
    default="board.yaml",
)
TRUST_BOARD = option(
    "--trust-file",
    "FILE",
    "The board's file again, read and trusted: it may name addresses, keys, plug-ins and"
    " prices.",
)


@click.group(cls=LazyGroup, table=COMMANDS)
def entries() -> None:
    """Keep a leaderboard by pull requests: check, try, run and publish entries of models."""


@entries.command()
@click.argument("files", nargs=-1)
@BOARD_OPTION
@option(
    "--changed",
    "FILE",
    "What a pull request changes, as `git diff --raw -z --no-renames` or `git diff"
    " --name-only` prints it: nothing but entries.",
)
@option(
    "--commit",
    "SHA",
    "Check what this commit changes since it left the branch here. Its entries are read"
    " from git as data; it is never checked out.",
)
@option(
    "--author",
    "LOGIN",
    "Whose pull request it is, on GitHub: entries of others are not theirs to change.",
)
@option("--into", "DIR", "With --commit: where to write the entries that are fine.")
@TRUST_BOARD
@flag("--github", "Print problems as annotations of a GitHub workflow.")
@AS_JSON
def check(files: tuple[str, ...], **params: Any) -> int:
    """Check entries against the board: FILES, those of a commit, or all. Nothing is sent or run.

    Every problem is shown with file and line; the exit code is then 2.
    """
    from evalwright.entries.board_file import read_board
    from evalwright.entries.checking import check_entries, check_task_folder
    from evalwright.entries.entry_file import entry_paths
    from evalwright.entries.pull_requests import check_author, check_changes
    from evalwright.entries.sample_files import what_a_new_judge_finds
    from evalwright.entries.unowned import check_places

    _check_options(files, params)
    board = read_board(Path(params["board_file"]))
    board.require_allowed(params["trust_file"], sends=False)
    present, present_problems = _read(entry_paths(board.entries_folder))
    pull_request = _read_pull_request(params)
    if not files and pull_request is None:
        all_problems = [*check_task_folder(board), *present_problems]
        checked = check_entries(board, present, present, all_problems)
        _show(checked, params)
        if sentence := what_a_new_judge_finds(board):
            say(sentence)
        return 2 if checked.problems else 0
    author = (params["author"] or "").removeprefix("@")
    problems = []
    accepted: Mapping[str, bytes] = {}
    if pull_request is not None:
        rules = board.entries
        problems = check_changes(
            pull_request.changes, present, author, rules.maintainers
        )
        accepted = pull_request.contents_without(problems)
        present = [entry for entry in present if entry.name not in pull_request.deleted]
        problems += pull_request.problems
    if files:
        proposed, file_problems = _read([Path(file) for file in files])
    else:
        proposed, file_problems = _parse(accepted)
    problems += [*file_problems, *check_author(proposed, board, author)]
    problems += check_places(proposed, present, board, author)
    checked = check_entries(board, proposed, present, problems)
    if params["into"] and not checked.problems:
        _write_accepted(accepted, Path(params["into"]))
    only_listed = bool(params["changed"]) and not files
    _show(checked, params, only_listed=only_listed)
    return 2 if checked.problems else 0


def _check_options(files: Sequence[str], params: dict[str, Any]) -> None:
    from evalwright.entries.pull_requests import MAX_CHANGED

    if len(files) > MAX_CHANGED:
        raise click.UsageError(
            f"At most {MAX_CHANGED} FILES at a time; without any, all entries are checked."
        )
    if params["commit"] and (files or params["changed"]):
        raise click.UsageError(
            "--commit says which files are checked: leave out FILES and --changed."
        )
    if params["into"] and not params["commit"]:
        raise click.UsageError("--into has no effect without --commit.")
    if params["author"] is not None and not params["author"].strip(" @"):
        raise click.UsageError(
            "--author is empty, and whose pull request it is decides what it may change: give"
            " the name on GitHub, or leave the option out where you are the maintainer."
        )
    if params["author"] and not (files or params["commit"] or params["changed"]):
        raise click.UsageError(
            "--author has no effect without FILES, --commit or --changed."
        )


def _read(paths: Sequence[Path]) -> tuple[list[Entry], list[Problem]]:
    """Read entries, as far as they can be read, with the problems of their files."""
    from evalwright.entries.entry_file import read_with_problems

    return _collect(map(read_with_problems, paths))


def _parse(contents: Mapping[str, bytes]) -> tuple[list[Entry], list[Problem]]:
    """Read entries from the bytes of changed files, by path."""
    from evalwright.entries.entry_file import parse_with_problems
    from evalwright.entries.problems import shown_file

    return _collect(
        parse_with_problems(content, Path(path), shown_file(path))
        for path, content in contents.items()
    )


def _collect(
    parts: Iterable[tuple[Entry | None, list[Problem]]],
) -> tuple[list[Entry], list[Problem]]:
    readable: list[Entry] = []
    problems: list[Problem] = []
    for entry, file_problems in parts:
        problems += file_problems
        if entry is not None:
            readable.append(entry)
    return readable, problems


def _read_pull_request(params: dict[str, Any]) -> PullRequest | None:
    """Read what --changed or --commit names; None without either."""
    from evalwright.core.errors import ConfigurationError
    from evalwright.entries.pull_requests import (
        MAX_LIST_BYTES,
        PullRequest,
        parse_changes,
        read_pull_request,
    )
    from evalwright.tasks.safe_files import failing_as

    if params["commit"]:
        return read_pull_request(params["commit"])
    if not params["changed"]:
        return None
    listing = Path(params["changed"])
    failing = failing_as(ConfigurationError, f"'{listing}' cannot be read")
    with failing, listing.open("rb") as file:
        return PullRequest(tuple(parse_changes(file.read(MAX_LIST_BYTES + 1))))


def _write_accepted(contents: Mapping[str, bytes], folder: Path) -> None:
    from evalwright.tasks.safe_files import write_file

    folder.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        write_file(folder / path.rpartition("/")[2], content)


def _show(
    checked: CheckedEntries,
    params: dict[str, Any],
    *,
    only_listed: bool = False,
) -> None:
    from evalwright.analysis.words import counted
    from evalwright.entries.problems import as_annotation

    problems = checked.problems
    if params["as_json"]:
        print_json(_as_record(checked))
        return
    if params["github"]:
        for problem in problems:
            echo(as_annotation(problem))
    for problem in problems:
        say(str(problem))
    for entry in checked.entries:
        if price := checked.prices.get(entry.name):
            requests = (
                f"{counted(price.requests, 'request')}, " if price.requests else ""
            )
            echo(f"{entry.name}: {entry.model}, {requests}{price.as_text()}")
    if problems:
        say(f"{counted(len(problems), 'problem')}. Nothing was run.")
    elif only_listed:
        echo("Only entries are changed. Name the files, to have them checked too.")
    else:
        n_entries = len(checked.entries)
        verb = "is" if n_entries == 1 else "are"
        echo(f"{counted(n_entries, 'entry', 'entries')} {verb} fine.")


def _as_record(checked: CheckedEntries) -> dict[str, Any]:
    fine = []
    for entry in checked.entries:
        if price := checked.prices.get(entry.name):
            dollars = {"low": price.low, "high": price.high}
            fine.append(
                {
                    "name": entry.name,
                    "model": entry.model,
                    "label": entry.label,
                    "requests": price.requests,
                    "dollars": dollars,
                    "without_judge": price.without_judge,
                }
            )
    return {
        "ok": not checked.problems,
        "entries": fine,
        "problems": [problem.as_dict() for problem in checked.problems],
    }
