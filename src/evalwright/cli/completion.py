"""Completion of commands, options, tasks, runs and models in bash, zsh and fish.

The shell calls the command with `_EVALWRIGHT_COMPLETE` set, and click parses what was typed. A
table here says which names each parameter takes, so that the commands need not know.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

from evalwright.cli.command_line import COMMANDS, COMPLETE, cli
from evalwright.cli.groups import LazyGroup
from evalwright.cli.options import LocalPath
from evalwright.core.errors import EvalwrightError


def task_names(context: click.Context) -> Iterator[str]:
    """Yield names of tasks and groups, and files of this folder that can be a task."""
    from evalwright.tasks.index import TaskIndex

    yield from TaskIndex().names()
    for pattern in ("*.yaml", "*.yml", "*.csv", "*.jsonl"):
        yield from sorted(path.name for path in Path().glob(pattern))


def run_names(context: click.Context) -> Iterator[str]:
    """Yield names in the folder of runs, the newest first."""
    folder = Path(context.params.get("runs_folder") or "runs")
    paths = sorted(
        folder.glob("*/run.json"), key=lambda path: path.stat().st_mtime, reverse=True
    )
    return (path.parent.name for path in paths)


def model_names(context: click.Context) -> Iterator[str]:
    """Yield providers with a slash, then known models: built-in ones and those with a price."""
    from evalwright.models.local.demo import demo_names
    from evalwright.models.registry import providers
    from evalwright.models.remote import prices

    for provider in providers():
        yield f"{provider}/"
        for name in demo_names() if provider == "demo" else prices.names_of(provider):
            yield f"{provider}/{name}"


def suite_files(context: click.Context) -> Iterator[str]:
    """Yield YAML files of this folder."""
    return (
        path.name
        for pattern in ("*.yaml", "*.yml")
        for path in sorted(Path().glob(pattern))
    )


def plot_kinds(context: click.Context) -> Iterable[str]:
    """Return the kinds of figures."""
    from evalwright.reports.figures import KINDS

    return KINDS


def _first_rows(context: click.Context, limit: int) -> Iterator[dict[str, Any]]:
    """Yield the first samples of the run on the command line; none if it cannot be read."""
    from evalwright.runs.reader import open_run

    with suppress(EvalwrightError):
        # A word before an option that has no value yet has not been assigned to the arguments.
        name = context.params.get("run") or next(iter(context.args), "")
        run = open_run(name, Path(context.params.get("runs_folder") or "runs"))
        yield from islice(run.rows(), limit)


def sample_ids(context: click.Context) -> Iterator[str]:
    """Yield ids of samples of the run on the command line."""
    return (str(row["id"]) for row in _first_rows(context, _OFFERED_SAMPLES))


def sample_keys(context: click.Context) -> Iterator[str]:
    """Yield keys of conditions on the samples of the run on the command line."""
    from evalwright.analysis.sample_search import keys_of

    return (
        f"{key}="
        for key in dict.fromkeys(
            key
            for row in _first_rows(context, _SCANNED_SAMPLES)
            for key in keys_of(row)
        )
    )


def metadata_keys(context: click.Context) -> Iterator[str]:
    """Yield keys for conditions on the tasks in the command: metadata of their first samples."""
    from evalwright.tasks.loading import load_tasks

    for name in context.params.get("tasks") or context.args:
        with suppress(EvalwrightError):
            for task in load_tasks(name):
                yield from (
                    f"{key}="
                    for sample in islice(task.samples, _SCANNED_SAMPLES)
                    for key in sample.metadata
                )


_OFFERED_SAMPLES = 10_000
_SCANNED_SAMPLES = 100
"""How many samples are read to offer their ids, and how many to offer their keys."""


def no_names(context: click.Context) -> Iterator[str]:
    """Yield no names: the shell completes a path."""
    return iter(())


Names = Callable[[click.Context], Iterable[str]]
_BY_METAVAR: dict[str, Names] = {
    **dict.fromkeys(("RUN", "RUN|FOLDER..."), run_names),
    **dict.fromkeys(("TASK...", "FILE|TASK"), task_names),
    **dict.fromkeys(("M", "MODEL"), model_names),
    **dict.fromkeys(("FILE", "DIR"), no_names),
    "CONDITION": sample_keys,
}
"""The names that a parameter takes, by its metavar."""
_BY_NAME: dict[str, Names] = {
    **dict.fromkeys(("run", "run2", "runs"), run_names),
    **dict.fromkeys(("task", "tasks", "a", "b"), task_names),
    "model": model_names,
    "config": suite_files,
    "kind": plot_kinds,
    "sample": sample_ids,
    "where": metadata_keys,
}
"""The names that an argument without a metavar takes, by its name."""


class _NameType(click.types.StringParamType):
    """A text that is one of some names, or a path; what it may be is for `original` to say."""

    def __init__(self, names: Names, original: click.ParamType[Any]) -> None:
        self._names = names
        self._original = original

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return what the parameter's own type makes of the text."""
        return self._original.convert(value, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin with what was typed, or a path if there are none.

        Names that would act on a terminal are left out.
        """
        names = dict.fromkeys(
            name for name in self._names(ctx) if name.startswith(incomplete)
        )
        if self._names is model_names and "/" not in incomplete:
            names = dict.fromkeys(name for name in names if name.endswith("/"))
        completions = [
            CompletionItem(name)
            for name in names
            if name.isprintable() and name != incomplete
        ]
        path = "dir" if param.metavar == "DIR" else "file"
        return completions or [CompletionItem(incomplete, type=path)]


def _name_parameters(command: click.Command) -> None:
    """Set the names that the parameters of a command and its subcommands take."""
    for param in command.params:
        by_name = (
            None
            if param.metavar and param.name not in ("config", "where")
            else _BY_NAME.get(param.name or "")
        )
        names = by_name or _BY_METAVAR.get(param.metavar or "")
        is_text = isinstance(param.type, (click.types.StringParamType, LocalPath))
        if names and is_text and not isinstance(param.type, _NameType):
            param.type = _NameType(names, param.type)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            if subcommand is not None:
                _name_parameters(subcommand)


class _CompletionGroup(LazyGroup):
    """The command line while a shell completes it; listing commands imports no module."""

    table = COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _name_parameters(command)
        return command

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names of the commands."""
        completions = [
            CompletionItem(name, help=text)
            for name, (_, text) in self.table.items()
            if name.startswith(incomplete)
        ]
        return completions or click.Command.shell_complete(self, ctx, incomplete)


class _Bash(BashComplete):
    # No space after a provider, whose model follows, nor after a key, whose value does.
    source_template = BashComplete.source_template.replace(
        "    return 0",
        "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]] && compopt -o"
        " nospace\n\n    return 0",
    )


class _Zsh(ZshComplete):
    source_template = ZshComplete.source_template.replace(
        "        compadd -U -V unsorted -a completions",
        "        [[ ${completions[1]} == *[/=] ]] && compadd -U -S '' -V unsorted -a"
        " completions || compadd -U -V unsorted -a completions",
    )


SHELLS: dict[str, type[ShellComplete]] = {
    "bash": _Bash,
    "zsh": _Zsh,
    "fish": FishComplete,
}


def _completer(shell: str) -> ShellComplete:
    return SHELLS[shell](
        _CompletionGroup("evalwright", params=cli.params, table=COMMANDS),
        {},
        "evalwright",
        COMPLETE,
    )


def complete() -> int:
    """Print completions of what was typed, for the shell named in the environment.

    On an error it prints nothing.
    """
    shell, _, instruction = os.environ[COMPLETE].partition("_")
    if shell not in SHELLS or instruction != "complete":
        return 2
    try:
        click.echo(_completer(shell).complete())
    except Exception:
        return 1
    return 0


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: Any) -> None:
    """Print what completes commands, options, tasks, runs and models in SHELL.

    For bash, in ~/.bashrc: eval "$(evalwright completion bash)". For zsh, in ~/.zshrc: eval
    "$(evalwright completion zsh)". For fish: evalwright completion fish >
    ~/.config/fish/completions/evalwright.fish
    """
    click.echo(_completer(shell).source())
