"""`evalwright init --leaderboard`: the repository of a leaderboard by pull requests."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.output import echo
from evalwright.cli.scaffold import write_files
from evalwright.core.errors import check_known
from evalwright.tasks.safe_files import write_file

USED_OPTIONS = ("leaderboard", "folder", "replace")
"""Parameters of `init` that say something about a leaderboard's repository."""


def init_board(params: Mapping[str, Any]) -> int:
    """Write the repository; what is there stays, but for the workflows, which follow the board.

    Raises:
        UsageError: an option has no effect, or a file cannot be written.
    """
    from evalwright.entries.board_file import BOARD_FILE, read_board
    from evalwright.entries.template import (
        EMPTY_FOLDER,
        EXAMPLE,
        KINDS,
        board_text,
        has_entries,
        repository_texts,
        task_folder_of,
        workflows,
    )

    _check_unused(params)
    kind = params["leaderboard"]
    check_known("kind of leaderboard", [kind], KINDS)
    folder = Path(params["folder"] or ".")
    _write_new(folder / BOARD_FILE, board_text(kind))
    board = read_board(folder)
    texts = repository_texts(board)
    if has_entries(folder):
        for path in (EXAMPLE, EMPTY_FOLDER):
            texts.pop(path, None)
    for path, text in texts.items():
        _write_new(folder / path, text)
    workflow_files = workflows(board)
    write_files(
        {
            (folder / path).as_posix(): text
            for path, text in workflow_files.texts.items()
        },
        params["replace"],
    )
    if workflow_files.requirement.note:
        say(workflow_files.requirement.note.partition(" To install another one")[0])
    task_folder = task_folder_of(board)
    is_there = not task_folder or (folder / task_folder).is_dir()
    needs_entry = not has_entries(folder)
    _show_next_steps(
        folder,
        workflow_files.secrets,
        "" if is_there else task_folder,
        needs_entry=needs_entry,
    )
    return 0


def _check_unused(params: Mapping[str, Any]) -> None:
    for param in click.get_current_context().command.params:
        name = param.name or ""
        if params.get(name) and name not in USED_OPTIONS:
            raise click.UsageError(f"{param.opts[0]} has no effect with --leaderboard.")


def _write_new(path: Path, text: str) -> None:
    if path.exists():
        echo(f"Kept: {path.as_posix()}")
        return
    write_file(path, text)
    echo(f"Written: {path.as_posix()}")


def _show_next_steps(
    folder: Path, secrets: tuple[str, ...], task_folder: str, *, needs_entry: bool
) -> None:
    """Show what comes next: here, to a page, and then on GitHub.

    Args:
        folder: the repository.
        secrets: names of the keys.
        task_folder: the folder of another framework's tasks that is not there yet; "" for none.
        needs_entry: whether there is no entry yet.
    """
    echo("\nNext:")
    if folder != Path():
        echo(f"  cd {shlex.quote(folder.as_posix())}")
    echo("  git init --initial-branch=main")
    if task_folder:
        echo(
            "  git submodule add https://github.com/aisingapore/SEA-HELM"
            f" {shlex.quote(task_folder)}"
        )
    echo(
        "  decide in board.yaml which providers, arguments and prices entries may have"
    )
    if needs_entry:
        echo("  write entries/NAME.yaml, such as: model: openai/gpt-4o-mini")
    echo("  evalwright entries check --trust-file board.yaml")
    echo("  evalwright entries run --trust-file board.yaml")
    echo("  evalwright entries publish")
    echo("  git add . && git commit -m 'A leaderboard'")
    echo("On GitHub (Settings):")
    echo(
        "  Environments: 'trial' with required reviewers, 'board' for the branch main only"
    )
    if secrets:
        echo(f"  Secrets of both environments: {', '.join(secrets)}")
    echo(
        "  Branches: protect main; require the check 'check' and reviews from code owners"
    )
    echo(
        "  After a change of providers in board.yaml: evalwright init --leaderboard --replace"
    )
