"""Foreign systems on the command line, each a line of a table: their results in and out, and programs of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli import LazyGroup, cli, run_command, say
from evalwright.cli.output import echo, print_json

if TYPE_CHECKING:
    from evalwright.compat.programs import Exporter, Importer

IMPORTERS = {
    "lm-eval": ("evalwright.compat.lm_eval.command:IMPORTER", "Results of lm-evaluation-harness."),
    "hhem": ("evalwright.compat.hhem.command:IMPORTER", "Recorded runs of the HHEM leaderboard engine."),
    "open-factual-bench": (
        "evalwright.compat.open_factual_bench.command:IMPORTER",
        "Recorded runs of open-factual-bench.",
    ),
    "sea-helm": ("evalwright.compat.sea_helm.command:IMPORTER", "Result folders of SEA-HELM."),
    "hret": ("evalwright.compat.hret.command:IMPORTER", "Saved results of the HaeRae Evaluation Toolkit."),
    "inspect": ("evalwright.compat.inspect.command:IMPORTER", "Logs of inspect_ai."),
    "every-eval-ever": ("evalwright.compat.every_eval_ever.command:IMPORTER", "Records of Every Eval Ever."),
    "parquet": ("evalwright.compat.parquet.command:IMPORTER", "Runs that were exported as Parquet."),
}
EXPORTERS = {
    "lm-eval": (
        "evalwright.compat.lm_eval.command:EXPORTER",
        "Results as lm-evaluation-harness writes them.",
    ),
    "sea-helm": ("evalwright.compat.sea_helm.command:EXPORTER", "Result folders as SEA-HELM writes them."),
    "inspect": ("evalwright.compat.inspect.command:EXPORTER", "Logs as inspect_ai writes them."),
    "every-eval-ever": ("evalwright.compat.every_eval_ever.command:EXPORTER", "Records of Every Eval Ever."),
    "parquet": ("evalwright.compat.parquet.command:EXPORTER", "Samples and scores as Parquet."),
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
    "site": ("evalwright.cli.view:site", "The explorer of runs, as files for a web server."),
    "citations": ("evalwright.cli.citations:citations", "LaTeX and BibTeX of what to cite for tasks."),
}
"""Commands of `export` that are no foreign system's."""
CHECKERS = (
    ("evalwright.compat.sea_helm.results:is_results", "evalwright.compat.sea_helm.results:check_folder"),
)
"""Result folders that `runs check` takes: whether a folder is one, and what checks it."""
PROGRAMS = {"hhem-leaderboard": "evalwright.compat.hhem.command:hhem_leaderboard"}
"""Commands of foreign systems; each is a console script of the package too (pyproject.toml)."""

_AS_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print the result as JSON.")


class _Importers(LazyGroup):
    table = IMPORTERS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of an importer."""
        return import_command(cmd_name, loaded(IMPORTERS[cmd_name][0])) if cmd_name in IMPORTERS else None


class _Exporters(LazyGroup):
    table = EXPORTERS | OWN

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of an exporter, or one of our own."""
        if cmd_name in OWN:
            command: click.Command = loaded(OWN[cmd_name][0])
            return command
        return export_command(cmd_name, loaded(EXPORTERS[cmd_name][0])) if cmd_name in EXPORTERS else None


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
    """Run a program of a foreign system and return its exit code. arguments: those of this process by default."""
    return run_command(loaded(PROGRAMS[name]), arguments, name, obj=_evalwright)


def _evalwright(arguments: Sequence[str]) -> int:
    result = cli.main(args=list(arguments), prog_name="evalwright", standalone_mode=False)
    return result if isinstance(result, int) else 0


def loaded(target: str) -> Any:
    """What a line of a table names."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def import_command(name: str, importer: Importer) -> click.Command:
    """`evalwright import NAME`."""

    def work(path: str, out: str, name: str, as_json: bool, **options: Any) -> None:
        made = importer.make(Path(path), Path(out), name, **options)
        if as_json:
            print_json(made.record)
            return
        for line in made.lines:
            echo(line)
        for sentence in made.left_out:
            say(f"Left out: {sentence}")

    return click.Command(
        name,
        callback=work,
        help=importer.about,
        params=[
            click.Argument(["path"]),
            click.Option(
                ["--name"], default="", metavar="ID", help=f"The run's name. Default: {importer.run_name}."
            ),
            click.Option(
                ["--out"], default="runs", metavar="DIR", help="Where runs are written. Default: runs."
            ),
            *importer.options,
            _AS_JSON,
        ],
    )


def export_command(name: str, exporter: Exporter) -> click.Command:
    """`evalwright export NAME`."""

    def work(runs: str | tuple[str, ...], out: str, runs_folder: str, as_json: bool, **options: Any) -> None:
        from evalwright.api import open_run
        from evalwright.runs.simulations import refuse_shards

        opened = [open_run(run, runs_folder) for run in ([runs] if isinstance(runs, str) else runs)]
        refuse_shards(opened)
        for run in opened:
            run.verify()  # before the first line is written
        made = exporter.make(opened, Path(out), **options)
        if as_json:
            print_json([str(file) for file in made.files])
        else:
            for file in made.files:
                echo(f"Written: {file}")
        for sentence in made.notes:
            say(sentence)

    return click.Command(
        name,
        callback=work,
        help=exporter.about,
        params=[
            click.Argument(["runs"], nargs=-1 if exporter.several else 1, required=True)
            if exporter.several
            else click.Argument(["runs"], metavar="RUN"),
            *exporter.options,
            click.Option(
                ["--out"],
                default=exporter.out,
                metavar="DIR",
                help=f"{exporter.out_help} Default: {exporter.out if exporter.out != '.' else 'the working folder'}.",
            ),
            click.Option(
                ["--runs", "runs_folder"],
                default="runs",
                metavar="DIR",
                help="Where runs given by name are. Default: runs.",
            ),
            _AS_JSON,
        ],
    )
