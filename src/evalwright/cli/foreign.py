"""Foreign systems on the command line: imports, exports, and programs of theirs.

Each system is a row of a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Protocol

import click

from evalwright.cli.command_line import cli
from evalwright.cli.exit_codes import run_command, say
from evalwright.cli.groups import LazyGroup
from evalwright.cli.options import AS_JSON, PLUGINS, open_runs, option
from evalwright.cli.output import echo, print_json
from evalwright.core.errors import ConfigurationError
from evalwright.tasks.entry_points import offered

if TYPE_CHECKING:
    from evalwright.evaluation.configuration import Configuration
    from evalwright.extend import CommandLine, Exporter, Importer

Row = tuple[str, str]
"""A system's entry point, as "module:object", and its description."""

MOST_FILES = 20
"""How many files an export lists one by one."""


def _entry_points(
    attribute: str, descriptions: dict[str, str]
) -> dict[str, tuple[str, str]]:
    """Return the entry point and description of each system, by its name."""
    packages = {name: name.replace("-", "_") for name in descriptions}
    return {
        name: (f"evalwright.compat.{package}.{package}_command:{attribute}", text)
        for (name, package), text in zip(
            packages.items(), descriptions.values(), strict=True
        )
    }


IMPORTERS = _entry_points(
    "IMPORTER",
    {
        "lm-eval": "Results of lm-evaluation-harness.",
        "hhem": "Recorded runs of the HHEM leaderboard engine.",
        "open-factual-bench": "Recorded runs of open-factual-bench.",
        "sea-helm": "Result folders of SEA-HELM.",
        "hret": "Saved results of the HaeRae Evaluation Toolkit.",
        "inspect": "Logs of inspect_ai.",
        "every-eval-ever": "Records of Every Eval Ever.",
    },
) | {
    "parquet": (
        "evalwright.cli.parquet:IMPORTER",
        "Runs that were exported as Parquet.",
    )
}
EXPORTERS = _entry_points(
    "EXPORTER",
    {
        "lm-eval": "Results as lm-evaluation-harness writes them.",
        "sea-helm": "Result folders as SEA-HELM writes them.",
        "inspect": "Logs as inspect_ai writes them.",
        "every-eval-ever": "Records of Every Eval Ever.",
    },
) | {
    "parquet": ("evalwright.cli.parquet:EXPORTER", "Samples and scores as Parquet."),
    "hf-results": (
        "evalwright.compat.huggingface.huggingface_command:RESULTS",
        "Structured results for a leaderboard on the Hugging Face Hub.",
    ),
    "eval-results": (
        "evalwright.compat.huggingface.huggingface_command:EVAL_RESULTS",
        "A result for a model repository on the Hugging Face Hub.",
    ),
    "model-card": (
        "evalwright.compat.huggingface.huggingface_command:MODEL_CARD",
        "Results as the metadata of a model card on the Hugging Face Hub.",
    ),
}
OWN_EXPORTS = {
    "site": (
        "evalwright.cli.view:site",
        "The explorer of runs, as files for a web server.",
    ),
    "scores": (
        "evalwright.cli.publishing:scores",
        "Runs without their samples: scores by item, for boards of private test sets.",
    ),
    "citations": (
        "evalwright.cli.citations:citations",
        "LaTeX and BibTeX of what to cite for tasks.",
    ),
    "methods": (
        "evalwright.cli.methods:methods",
        "What a paper's methods section says of runs, with what to cite.",
    ),
}
"""Exports of our own, which belong to no foreign system."""
CHECKERS = (
    (
        "evalwright.compat.sea_helm.results:is_results",
        "evalwright.compat.sea_helm.results:check_folder",
    ),
)
"""Foreign result folders that `runs check` knows: a test for such a folder, and its checker."""
NOTEBOOKS = {"sea-helm": "evalwright.compat.sea_helm.exporting:export_sea_helm"}
"""Dialects whose results a notebook averages over runs: what writes its numbers of a run."""
CONVERTERS = {"promptfoo": "evalwright.compat.promptfoo.promptfoo_command:convert"}
"""Systems whose configurations `evalwright init --from` makes a suite of."""
PROGRAMS = {"hhem-leaderboard": "evalwright.compat.hhem.hhem_command:hhem_leaderboard"}
"""Programs of foreign systems; each is also a console script (see pyproject.toml)."""


IMPORTERS_OF_PACKAGES = "evalwright.importers"
EXPORTERS_OF_PACKAGES = "evalwright.exporters"
"""Entry point groups of installed packages."""


def _with_offered(table: dict[str, Row], group: str) -> dict[str, Row]:
    """Return the systems of a table, and after them those that installed packages offer."""
    about = "From an installed package."
    return table | {
        name: (target, about)
        for name, target in offered(group).items()
        if name not in table
    }


class ConvertedFiles(Protocol):
    """What a configuration of another system becomes.

    Attributes:
        files: the texts of files, by path in the working folder.
        notes: sentences about what was left out or changed.
        options: what `evalwright run` needs besides the suite.
    """

    @property
    def files(self) -> Mapping[str, str]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def options(self) -> Sequence[str]: ...


class _Importers(LazyGroup):
    def __init__(self, *arguments: Any, **settings: Any) -> None:
        table = _with_offered(IMPORTERS, IMPORTERS_OF_PACKAGES)
        super().__init__(*arguments, table=table, **settings)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of an importer."""
        if cmd_name not in self.table:
            return None
        return import_command(cmd_name, _resolved(self.table[cmd_name][0], "Importer"))


class _Exporters(LazyGroup):
    def __init__(self, *arguments: Any, **settings: Any) -> None:
        systems = _with_offered(EXPORTERS, EXPORTERS_OF_PACKAGES)
        super().__init__(*arguments, table=systems | OWN_EXPORTS, **settings)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of an exporter, or one of our own."""
        if cmd_name in OWN_EXPORTS:
            command: click.Command = resolve_name(OWN_EXPORTS[cmd_name][0])
            return command
        if cmd_name not in self.table:
            return None
        return export_command(cmd_name, _resolved(self.table[cmd_name][0], "Exporter"))


def _resolved(target: str, kind: str) -> Any:
    """Return the object that an entry point names.

    Raises:
        ConfigurationError: it cannot be imported, or is not an Importer or Exporter.
    """
    try:
        resolved = resolve_name(target)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"'{target}', an entry point of an installed package, cannot be imported:"
            f" {error}."
        ) from error
    from evalwright import extend

    if not isinstance(resolved, getattr(extend, kind)):
        raise ConfigurationError(
            f"'{target}', an entry point of an installed package, must be an"
            f" `evalwright.extend.{kind}`, not {type(resolved).__name__}."
        )
    return resolved


@click.group("import", cls=_Importers)
def import_() -> None:
    """Import results of other programs as runs."""


@click.group(cls=_Exporters)
def export() -> None:
    """Export runs as a site, as files of other programs, and what to cite."""


def hhem_leaderboard(arguments: Sequence[str] | None = None) -> int:
    """Run the console script `hhem-leaderboard`, with exit codes and messages of `evalwright`."""
    return program("hhem-leaderboard", arguments)


def convert_configuration(path: Path) -> ConvertedFiles:
    """Make files of ours of another system's configuration.

    Raises:
        EvalwrightError: it cannot be read, or nothing of it can be taken over.
    """
    (target,) = CONVERTERS.values()
    converted: ConvertedFiles = resolve_name(target)(path)
    return converted


def program(name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a program of a foreign system and return its exit code.

    Args:
        name: the program's name.
        arguments: its arguments; by default those of this process.
    """
    command_line: CommandLine = _CommandLine()
    return run_command(resolve_name(PROGRAMS[name]), arguments, name, obj=command_line)


class _CommandLine:
    """Our command line, for programs of foreign systems."""

    def __call__(self, arguments: Sequence[str]) -> int:
        code = cli.main(
            args=list(arguments), prog_name="evalwright", standalone_mode=False
        )
        return code if isinstance(code, int) else 0

    def check(self, arguments: Sequence[str]) -> None:
        """Parse a command's arguments without running it. Raises UsageError."""
        name, *remaining = arguments
        context = click.Context(cli, info_name="evalwright")
        command = cli.get_command(context, name)
        assert command is not None, f"a program names the command '{name}'"
        with command.make_context(name, remaining, parent=context):
            pass

    def read_suite(
        self, file: Path, suite: str | None = None, trust_file: str | None = None
    ) -> Configuration:
        """Read a suite file. Raises UsageError."""
        from evalwright.evaluation.configuration_file import read_configuration

        return read_configuration(file, suite, trust_file)


def import_command(name: str, importer: Importer) -> click.Command:
    """Make the command `evalwright import NAME`."""

    @click.command(name, help=importer.about)
    @click.argument("path")
    @option(
        "--name", "ID", f"The run's name. Default: {importer.run_name}.", default=""
    )
    @option(
        "--out folder", "DIR", "Where runs are written. Default: runs.", default="runs"
    )
    @PLUGINS
    @AS_JSON
    def import_results(
        path: str,
        folder: str,
        name: str,
        plugins: tuple[str, ...],
        as_json: bool,
        **options: Any,
    ) -> int:
        if plugins:
            from evalwright.cli.arguments import load_plugins

            load_plugins(plugins)
        imported = importer.make(Path(path), Path(folder), name, **options)
        for sentence in imported.failed:
            say(f"Not imported: {sentence}")
        if as_json:
            print_json(imported.record)
            return int(bool(imported.failed))
        for line in imported.lines:
            echo(line)
        for sentence in imported.left_out:
            say(f"Left out: {sentence}")
        return int(bool(imported.failed))

    import_results.params[-1:-1] = importer.options
    return import_results


def export_command(name: str, exporter: Exporter) -> click.Command:
    """Make the command `evalwright export NAME`."""
    default_folder = (
        exporter.default_folder
        if exporter.default_folder != "."
        else "the working folder"
    )

    @click.command(name, help=exporter.about)
    @click.argument(
        "runs",
        metavar=None if exporter.takes_several_runs else "RUN",
        nargs=-1 if exporter.takes_several_runs else 1,
        required=True,
    )
    @option(
        "--out folder",
        "DIR",
        f"{exporter.out_help} Default: {default_folder}.",
        default=exporter.default_folder,
    )
    @option(
        "--runs runs_folder",
        "DIR",
        "Where runs given by name are. Default: runs.",
        default="runs",
    )
    @AS_JSON
    def export_runs(
        runs: str | tuple[str, ...],
        folder: str,
        as_json: bool,
        runs_folder: str,
        **options: Any,
    ) -> None:
        from evalwright.runs.confirmed import confirm_all, kept_note, published_notes
        from evalwright.runs.simulations import refuse_shards

        opened_runs = open_runs(*([runs] if isinstance(runs, str) else runs))
        refuse_shards(opened_runs)
        opened_runs = confirm_all(opened_runs)  # before the first line is written
        written = exporter.make(opened_runs, Path(folder), **options)
        if as_json:
            print_json([str(file) for file in written.files])
        else:
            for file in written.files[:MOST_FILES]:
                echo(f"Written: {file}")
            if len(written.files) > MOST_FILES:
                echo(f"And {len(written.files) - MOST_FILES:,} more files in {folder}.")
        for sentence in filter(
            None,
            (*written.notes, *published_notes(opened_runs), kept_note(opened_runs)),
        ):
            say(sentence)

    export_runs.params[1:1] = exporter.options
    return export_runs
