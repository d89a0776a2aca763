"""What a foreign system adds to the command line: `evalwright import NAME`, `evalwright export NAME`, a program of its own.

The commands are written once, in `cli/foreign.py`, which knows the systems by a table; here is what it takes from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from evalwright.runs.reader import Run
from evalwright.tasks.dialects import SCORINGS

Evalwright = Callable[[Sequence[str]], int]
"""The command line, called with arguments: what a program of a foreign system gets as click's `obj`. Returns the exit code."""


@dataclass(frozen=True, slots=True)
class Imports:
    """What an import made. lines: for people; record: for other programs; left_out: a sentence for what was not imported."""

    lines: Sequence[str]
    record: Any
    left_out: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Importer:
    """`evalwright import NAME PATH --name --out --json`. make: called with PATH, --out, --name, and the options by name.

    about: the help; run_name: what a run is called where no name is given. Raises RunError.
    """

    about: str
    make: Callable[..., Imports]
    run_name: str
    options: Sequence[click.Parameter] = ()


@dataclass(frozen=True, slots=True)
class Exports:
    """What an export wrote, and what to know of it."""

    files: Sequence[Path]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Exporter:
    """`evalwright export NAME RUN... --out --runs --json`. make: called with the runs, --out, and the options by name.

    several: whether it takes more than one run. out: the default of --out, and out_help what that folder is for.
    """

    about: str
    make: Callable[..., Exports]
    out: str
    out_help: str
    several: bool = False
    options: Sequence[click.Parameter] = ()


def option(*declarations: str, **settings: Any) -> click.Option:
    """An option, as click's decorator takes it."""
    return click.Option(declarations, **settings)


def scoring_option(text: str, **settings: Any) -> click.Option:
    """`--scoring corrected|published`."""
    return option("--scoring", type=click.Choice(SCORINGS), help=text, **settings)


def record_of(run: Run, kept: Sequence[str]) -> dict[str, Any]:
    """An imported run for other programs. kept: what of `imported` in its configuration is shown."""
    imported = run.data["configuration"]["imported"]
    return {
        "id": run.id,
        "model": run.model,
        "folder": str(run.folder),
        **{key: imported[key] for key in kept},
        "metrics": {
            task.name: {metric.label: metric.estimate.as_dict() for metric in task.metrics}
            for task in run.tasks
        },
    }
