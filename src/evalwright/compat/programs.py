"""What a framework adds to the command line: an importer, an exporter, a program of its own.

The commands `evalwright import NAME` and `evalwright export NAME` are implemented once, in
`cli/foreign.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, Protocol

import click

from evalwright.runs.reader import Run
from evalwright.tasks.dialects import SCORINGS


class Evalwright(Protocol):
    """The command line, passed to a framework's program as click's `obj`."""

    def __call__(self, arguments: Sequence[str]) -> int:
        """Run a command by its arguments and return its exit code."""

    def load_plugins(self, files: Sequence[str]) -> None:
        """Load the user's plug-ins: Python files, and TOML files of providers.

        Raises ConfigurationError.
        """


@dataclass(frozen=True, slots=True)
class Imports:
    """What was imported.

    lines: for people. record: for --json. left_out: a sentence for each thing that was not
    imported.
    """

    lines: Sequence[str]
    record: Any
    left_out: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Importer:
    """`evalwright import NAME PATH --name --out --json`.

    about: the help text. make: called with PATH, --out, --name, and the options by name; raises
    RunError. run_name: describes the default name of a run.
    """

    about: str
    make: Callable[..., Imports]
    run_name: str
    options: Sequence[click.Parameter] = ()


class Exports(NamedTuple):
    """Files that were written, and notes on them."""

    files: Sequence[Path]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Exporter:
    """`evalwright export NAME RUN... --out --runs --json`.

    about: the help text. make: called with the runs, --out, and the options by name.
    default_folder: the default of --out. out_help: what that folder is for. takes_several_runs:
    whether it exports more than one run.
    """

    about: str
    make: Callable[..., Exports]
    default_folder: str
    out_help: str
    takes_several_runs: bool = False
    options: Sequence[click.Parameter] = ()


def import_later(target: str) -> Callable[..., Any]:
    """Return a function that imports its target when called.

    target: "module:function" in this package.
    """

    def call(*arguments: Any, **options: Any) -> Any:
        function = resolve_name(f"evalwright.compat.{target}")
        return function(*arguments, **options)

    return call


def option(*declarations: str, **settings: Any) -> click.Option:
    """Create an option, with the arguments of click's decorator."""
    return click.Option(declarations, **settings)


def scoring_option(text: str, **settings: Any) -> click.Option:
    """Create `--scoring corrected|published`."""
    return option("--scoring", type=click.Choice(SCORINGS), help=text, **settings)


def summarise_imports(
    runs: Sequence[Run],
    describe_run: Callable[[Run], Sequence[str]],
    shown_keys: Sequence[str],
    left_out: Sequence[str] = (),
) -> Imports:
    """Summarise imported runs.

    describe_run: returns what follows a run's name, and further lines. shown_keys: as for
    `record_of`.
    """
    lines: list[str] = []
    for run in runs:
        first, *further_lines = describe_run(run)
        notes = run.data["configuration"]["imported"]["notes"]
        lines += [f"Imported: {run.folder} ({run.model}: {first}", *further_lines]
        lines += [f"  Note: {note.removesuffix('.')}." for note in notes]
    return Imports(
        lines, {"runs": [describe_import(run, shown_keys) for run in runs]}, left_out
    )


def describe_import(run: Run, shown_keys: Sequence[str]) -> dict[str, Any]:
    """Describe an imported run for --json. shown_keys: which facts of the import to show."""
    imported = run.data["configuration"]["imported"]
    return {
        "id": run.id,
        "model": run.model,
        "folder": str(run.folder),
        **{key: imported[key] for key in shown_keys},
        "metrics": {
            task.name: {
                metric.label: metric.estimate.as_dict() for metric in task.metrics
            }
            for task in run.tasks
        },
    }
