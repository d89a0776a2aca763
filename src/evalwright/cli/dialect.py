"""The flags of other frameworks' tasks (`DIALECT:NAME`), shared by the commands that load tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from evalwright.tasks.dialects import SCORINGS

Command = Callable[..., Any]

_OPTIONS = (
    click.option(
        "--task-root",
        "task_root",
        multiple=True,
        metavar="DIR",
        help="Where another framework's tasks (DIALECT:NAME) are. Repeatable. Default: those of its installed package.",
    ),
    click.option(
        "--trust",
        multiple=True,
        metavar="DIR",
        help="A folder whose task files may run their Python. Repeatable.",
    ),
    click.option(
        "--num-fewshot",
        type=int,
        metavar="N",
        help="Number of shots for another framework's tasks, in place of their own.",
    ),
    click.option(
        "--scoring",
        type=click.Choice(SCORINGS),
        help="How another framework's tasks are scored: as published, or with known flaws corrected. Default: corrected.",
    ),
)
KEYS = ("task_root", "trust", "num_fewshot", "scoring")


def dialect_options(command: Command) -> Command:
    """Adds the flags to a command."""
    return _with(_OPTIONS, command)


def folder_options(command: Command) -> Command:
    """Adds only --task-root and --trust."""
    return _with(_OPTIONS[:2], command)


def _with(options: Sequence[Command], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def dialect_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that were given, as a configuration's `dialect`."""
    return {
        key: list(given[key]) if isinstance(given[key], tuple) else given[key]
        for key in KEYS
        if given.get(key) not in (None, ())
    }
