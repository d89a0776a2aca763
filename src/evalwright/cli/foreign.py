"""Foreign systems on the command line, each a line of a table: their results in and out, and
programs of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli import LazyGroup, cli, run_command, say
from evalwright.cli.options import AS_JSON, opened, option
from evalwright.cli.output import echo, print_json

if TYPE_CHECKING:
    from evalwright.compat.programs import Exporter, Importer

MOST_FILES = 20
"""Files that an export names one by one."""


def _systems(attribute: str, about: dict[str, str]) -> dict[str, tuple[str, str]]:
    """A table of systems by name: where each is, and what it is for."""
    place = "evalwright.compat.{}.command:" + attribute
    return {
        name: (place.format(name.replace("-", "_")), text)
        for name, text in about.items()
    }


IMPORTERS = _systems(
    "IMPORTER",
    {
        "lm-eval": "Results of lm-evaluation-harness.",
        "hhem": "Recorded runs of the HHEM leaderboard engine.",
        "open-factual-bench": "Recorded runs of open-factual-bench.",
        "sea-helm": "Result folders of SEA-HELM.",
        "hret": "Saved results of the HaeRae Evaluation Toolkit.",
        "inspect": "Logs of inspect_ai.",
        "every-eval-ever": "Records of Every Eval Ever.",
        "parquet": "Runs that were exported as Parquet.",
    },
)
EXPORTERS = _systems(
    "EXPORTER",
    {
        "lm-eval": "Results as lm-evaluation-harness writes them.",
        "sea-helm": "Result folders as SEA-HELM writes them.",
        "inspect": "Logs as inspect_ai writes them.",
        "every-eval-ever": "Records of Every Eval Ever.",
        "parquet": "Samples and scores as Parquet.",
    },
) | {
    "hf-results": (
        "evalwright.compat.huggingface.command:RESULTS",
        "Structured results for a leaderboard on the Hugging Face Hub.",
    ),
    "eval-results": (
        "evalwright.compat.huggingface.command:EVAL_RESULTS",
        "A result for a model repository on the Hugging Face Hub.",
    ),
}
OWN = {
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
}
"""Commands of `export` that are no foreign system's."""
CHECKERS = (
    (
        "evalwright.compat.sea_helm.results:is_results",
        "evalwright.compat.sea_helm.results:check_folder",
    ),
)
"""Result folders that `runs check` takes: whether a folder is one, and what checks it."""
PROGRAMS = {"hhem-leaderboard": "evalwright.compat.hhem.command:hhem_leaderboard"}
"""Commands of foreign systems; each is a console script of the package too (pyproject.toml)."""


class _Importers(LazyGroup):
    table = IMPORTERS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of an importer."""
        return (
            import_command(cmd_name, resolve_name(IMPORTERS[cmd_name][0]))
            if cmd_name in IMPORTERS
            else None
        )


class _Exporters(LazyGroup):
    table = EXPORTERS | OWN

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of an exporter, or one of our own."""
        if cmd_name in OWN:
            command: click.Command = resolve_name(OWN[cmd_name][0])
            return command
        return (
            export_command(cmd_name, resolve_name(EXPORTERS[cmd_name][0]))
            if cmd_name in EXPORTERS
            else None
        )


@click.group("import", cls=_Importers)
def import_() -> None:
    """Import results of other programs as runs."""


@click.group(cls=_Exporters)
def export() -> None:
    """Export runs as a site, as files of other programs, and what to cite."""


def hhem_leaderboard(arguments: Sequence[str] | None = None) -> int:
    """The console script; exit codes and messages are those of `evalwright`."""
    return program("hhem-leaderboard", arguments)


def program(name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a program of a foreign system and return its exit code. arguments: those of this process
    by default.
    """
    return run_command(
        resolve_name(PROGRAMS[name]), arguments, name, obj=_CommandLine()
    )


class _CommandLine:
    """Our own command line, as programs of foreign systems use it."""

    def __call__(self, arguments: Sequence[str]) -> int:
        code = cli.main(
            args=list(arguments), prog_name="evalwright", standalone_mode=False
        )
        return code if isinstance(code, int) else 0

    def load_plugins(self, files: Sequence[str]) -> None:
        """Load plug-ins that the person named: Python files, and TOML files of providers.

        Raises ConfigurationError.
        """
        from evalwright.cli.arguments import load_plugins

        load_plugins(files)


def import_command(name: str, importer: Importer) -> click.Command:
    """`evalwright import NAME`."""

    @click.command(name, help=importer.about)
    @click.argument("path")
    @option(
        "--name", "ID", f"The run's name. Default: {importer.run_name}.", default=""
    )
    @option("--out", "DIR", "Where runs are written. Default: runs.", default="runs")
    @AS_JSON
    def work(path: str, out: str, name: str, as_json: bool, **options: Any) -> None:
        made = importer.make(Path(path), Path(out), name, **options)
        if as_json:
            print_json(made.record)
            return
        for line in made.lines:
            echo(line)
        for sentence in made.left_out:
            say(f"Left out: {sentence}")

    work.params[-1:-1] = importer.options
    return work


def export_command(name: str, exporter: Exporter) -> click.Command:
    """`evalwright export NAME`."""
    place = (
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
        "--out",
        "DIR",
        f"{exporter.out_help} Default: {place}.",
        default=exporter.default_folder,
    )
    @option(
        "--runs runs_folder",
        "DIR",
        "Where runs given by name are. Default: runs.",
        default="runs",
    )
    @AS_JSON
    def work(
        runs: str | tuple[str, ...],
        out: str,
        as_json: bool,
        runs_folder: str,
        **options: Any,
    ) -> None:
        from evalwright.runs.confirmed import confirm_all, kept_note, published_notes
        from evalwright.runs.simulations import refuse_shards

        exported = opened(*([runs] if isinstance(runs, str) else runs))
        refuse_shards(exported)
        exported = confirm_all(exported)  # before the first line is written
        made = exporter.make(exported, Path(out), **options)
        if as_json:
            print_json([str(file) for file in made.files])
        else:
            for file in made.files[:MOST_FILES]:
                echo(f"Written: {file}")
            if len(made.files) > MOST_FILES:
                echo(f"And {len(made.files) - MOST_FILES:,} more files in {out}.")
        for sentence in filter(
            None, (*made.notes, *published_notes(exported), kept_note(exported))
        ):
            say(sentence)

    work.params[1:1] = exporter.options
    return work
