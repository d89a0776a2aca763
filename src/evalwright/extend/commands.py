"""What another system adds to the command line: an importer, an exporter, a program of its own.

The commands `evalwright import NAME` and `evalwright export NAME` themselves are in
`cli/foreign.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import click

from evalwright.evaluation.configuration import Configuration
from evalwright.runs.reader import Run


class CommandLine(Protocol):
    """The command line of Evalwright, which a system's own program gets as click's `obj`."""

    def __call__(self, arguments: Sequence[str]) -> int:
        """Run a command.

        Args:
            arguments: the command and its arguments, such as `["runs", "list"]`.

        Returns:
            The exit code.
        """

    def check(self, arguments: Sequence[str]) -> None:
        """Check what can be known of a command's arguments before it runs.

        Args:
            arguments: the command and its arguments.

        Raises:
            UsageError: an argument cannot be used, such as a file that a board would break.
        """

    def read_suite(
        self, file: Path, suite: str | None = None, trust_file: str | None = None
    ) -> Configuration:
        """Read a suite as `run --config FILE --suite NAME` does.

        Args:
            file: the suite file.
            suite: which of its suites.
            trust_file: the file again, where the user trusts it (`--trust-file`).

        Returns:
            The evaluation. Providers and prices in plug-ins that it names are known from then on.

        Raises:
            ConfigurationError: a setting is not what it must be.
            UnknownName: there is no such suite.
        """


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """The outcome of an import, for the command line to print.

    Args:
        lines: the lines to print.
        record: what `--json` prints, as plain JSON.
        left_out: a sentence for each thing that was not imported.
        failed: a sentence for each thing that should have been imported and could not be; with any
            the command exits with 1.
    """

    lines: Sequence[str]
    record: Any
    left_out: Sequence[str] = ()
    failed: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Importer:
    """Defines the command `evalwright import NAME PATH --name --out --json`.

    An installed package offers one as an entry point of the group `evalwright.importers`.

    Args:
        about: the help text.
        make: called with the path, the folder for runs and the run's name ("" if the user gave
            none), and the options by name. It raises RunError for what cannot be imported.
        run_name: what a run is named after by default, for the help: "the model and the task".
        options: further options of the command.
    """

    about: str
    make: Callable[..., ImportSummary]
    run_name: str
    options: Sequence[click.Parameter] = ()


class ExportSummary(NamedTuple):
    """The outcome of an export, for the command line to print.

    Args:
        files: the files that were written.
        notes: sentences that the user should know about them.
    """

    files: Sequence[Path]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Exporter:
    """Defines the command `evalwright export NAME RUN... --out --runs --json`.

    An installed package offers one as an entry point of the group `evalwright.exporters`.

    Args:
        about: the help text.
        make: called with a list of runs, the folder to write into, and the options by name.
        default_folder: the default of `--out`.
        out_help: what that folder is for, as a sentence.
        takes_several_runs: whether it takes more than one run.
        options: further options of the command.
    """

    about: str
    make: Callable[..., ExportSummary]
    default_folder: str
    out_help: str
    takes_several_runs: bool = False
    options: Sequence[click.Parameter] = ()


def summarise_import(
    runs: Sequence[Run],
    describe_run: Callable[[Run], Sequence[str]],
    shown_keys: Sequence[str],
    left_out: Sequence[str] = (),
) -> ImportSummary:
    """Summarise an import: a line for each run, its notes, and its metrics for `--json`.

    Args:
        runs: the imported runs.
        describe_run: returns the text after the run's folder in its line, then further lines.
        shown_keys: keys of the run's `configuration.imported` whose facts `--json` shows.
        left_out: a sentence for each thing that was not imported.

    Returns:
        The summary that an Importer returns.
    """
    lines: list[str] = []
    for run in runs:
        first, *further_lines = describe_run(run)
        notes = run.data["configuration"]["imported"]["notes"]
        lines += [f"Imported: {run.folder} {first}", *further_lines]
        lines += [f"  Note: {note.removesuffix('.')}." for note in notes]
    records = [_record_of(run, shown_keys) for run in runs]
    return ImportSummary(lines, {"runs": records}, left_out)


def _record_of(run: Run, shown_keys: Sequence[str]) -> dict[str, Any]:
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
