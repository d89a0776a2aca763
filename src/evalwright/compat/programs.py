"""What a foreign system adds to the command line: `evalwright import NAME`, `evalwright export
NAME`, a program of its own.

The commands are written once, in `cli/foreign.py`, which knows the systems by a table; here is what
it takes from them.
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
    """The command line: what a program of a foreign system gets as click's `obj`."""

    def __call__(self, arguments: Sequence[str]) -> int:
        """Run a command by its arguments and return its exit code."""

    def load_plugins(self, files: Sequence[str]) -> None:
        """Load plug-ins that the person named: Python files, and TOML files of providers.

        Raises ConfigurationError.
        """


@dataclass(frozen=True, slots=True)
class Imports:
    """What an import made. lines: for people; record: for other programs; left_out: a sentence for
    what was not imported.
    """

    lines: Sequence[str]
    record: Any
    left_out: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Importer:
    """`evalwright import NAME PATH --name --out --json`. make: called with PATH, --out, --name, and
    the options by name.

    about: the help; run_name: what a run is called where no name is given. Raises RunError.
    """

    about: str
    make: Callable[..., Imports]
    run_name: str
    options: Sequence[click.Parameter] = ()


class Exports(NamedTuple):
    """What an export wrote, and what to know of it."""

    files: Sequence[Path]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Exporter:
    """`evalwright export NAME RUN... --out --runs --json`. make: called with the runs, --out, and
    the options by name.

    several: whether it takes more than one run. out: the default of --out, and out_help what that
    folder is for.
    """

    about: str
    make: Callable[..., Exports]
    default_folder: str
    out_help: str
    takes_several_runs: bool = False
    options: Sequence[click.Parameter] = ()


def later(target: str) -> Callable[..., Any]:
    """A function that is imported when it is called. target: "module:function" in this room."""
    return lambda *arguments, **options: resolve_name(f"evalwright.compat.{target}")(
        *arguments, **options
    )


def option(*declarations: str, **settings: Any) -> click.Option:
    """An option, as click's decorator takes it."""
    return click.Option(declarations, **settings)


def scoring_option(text: str, **settings: Any) -> click.Option:
    """`--scoring corrected|published`."""
    return option("--scoring", type=click.Choice(SCORINGS), help=text, **settings)


def imports_of(
    runs: Sequence[Run],
    describe_run: Callable[[Run], Sequence[str]],
    shown_keys: Sequence[str],
    left_out: Sequence[str] = (),
) -> Imports:
    """What an import made. told: what stands behind a run's name, and further lines; kept: as of
    `record_of`.
    """
    lines: list[str] = []
    for run in runs:
        first, *further_lines = describe_run(run)
        notes = run.data["configuration"]["imported"]["notes"]
        lines += [f"Imported: {run.folder} ({run.model}: {first}", *further_lines]
        lines += [f"  Note: {note.removesuffix('.')}." for note in notes]
    return Imports(
        lines, {"runs": [record_of(run, shown_keys) for run in runs]}, left_out
    )


def record_of(run: Run, shown_keys: Sequence[str]) -> dict[str, Any]:
    """An imported run for other programs. kept: what of `imported` in its configuration is shown."""
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
