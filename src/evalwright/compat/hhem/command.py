"""`hhem-leaderboard --eval_name test`: the command of the HHEM leaderboard engine, carried out by ours.

Evaluations stand as suites in `leaderboard.yaml` of the working folder; where there is none, in the small example that comes
with the package. `test` asks each model three questions, as there; any other suite is run and made into a board.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from evalwright.evaluation.configuration import Configuration

FILE = "leaderboard.yaml"
TEST = "test"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--eval_name", "--eval-name", default=TEST, show_default=True, metavar="NAME", help="Which suite."
)
@click.option(
    "--config", metavar="FILE", help=f"Where the suites stand. Default: {FILE}, else a small example."
)
@click.option(
    "--output_dir", "--output-dir", default="output", show_default=True, metavar="DIR", help="For the board."
)
@click.option(
    "--into", metavar="FILE", help="Also put the board between its markers in this file (README.md)."
)
@click.option("--init", is_flag=True, help=f"Write the example as {FILE} and do nothing else.")
def hhem_leaderboard(
    eval_name: str, config: str | None, output_dir: str, into: str | None, init: bool
) -> int:
    """Run a suite of a hallucination leaderboard: ask, judge, aggregate, publish.

    Nothing is asked twice, so an interrupted evaluation goes on with the same command.
    """
    from evalwright.cli import say

    if init:
        return _write_example()
    if config is None and not Path(FILE).is_file():
        say(
            f"There is no {FILE} here, so the example that comes with evalwright is used; --init writes it out."
        )
    path = Path(config or FILE)
    if config is None and not path.is_file():
        path = _example()
    if eval_name == TEST:
        return _smoke(path)
    return _evaluate(path, eval_name, Path(output_dir), into)


def main(arguments: Sequence[str] | None = None) -> int:
    """The console script; exit codes and messages are those of `evalwright`."""
    from evalwright.cli import run_command

    return run_command(hhem_leaderboard, arguments, "hhem-leaderboard")


def _example() -> Path:
    return Path(str(files("evalwright.compat.hhem").joinpath("leaderboard.yaml")))


def _write_example() -> int:
    from evalwright.core.errors import ConfigurationError

    if Path(FILE).exists():
        raise ConfigurationError(f"{FILE} is there already; it is not overwritten.")
    Path(FILE).write_text(_example().read_text(encoding="utf-8"), encoding="utf-8")
    click.echo(f"{FILE} is written: name your models in it, then run hhem-leaderboard --eval_name {TEST}.")
    return 0


def _configuration(path: Path, suite: str) -> Configuration:
    from evalwright.evaluation.configuration_file import read_configuration

    return read_configuration(path, suite)


def _smoke(path: Path) -> int:
    """Three questions to each model of the suite."""
    from evalwright.evaluation.smoke import smoke_test
    from evalwright.models.registry import open_model

    configuration = _configuration(path, TEST)
    failed = False
    for spec in configuration.models:
        click.echo(spec.label or spec.model)
        verdicts = smoke_test(open_model(spec.model, spec.arguments), home=configuration.home)
        for verdict in verdicts:
            click.echo(f"  {verdict.result:<5} {verdict.case} ({verdict.words:,} words): {verdict.why}")
        failed = failed or any(verdict.result == "fail" for verdict in verdicts)
    return int(failed)


def _evaluate(path: Path, suite: str, output: Path, into: str | None) -> int:
    """The suite's run, and a board of all its models in every form."""
    from evalwright.cli import cli

    _configuration(path, suite)  # what is wrong with it is told before anything is asked
    code = _call(cli, "run", "--config", str(path), "--suite", suite, "--name", suite)
    runs = _runs(_configuration(path, suite), suite)
    if not runs:
        return code
    from evalwright.analysis.board import make_board
    from evalwright.api import open_run
    from evalwright.cli import say
    from evalwright.cli.publishing import publish

    forms = {"markdown": "md", "html": "html", "csv": "csv", "json_file": "json"}
    wanted: dict[str, Any] = {form: str(output / f"leaderboard.{end}") for form, end in forms.items()}
    wanted |= {
        "into": into,
        "pages": str(output / "models"),
        "title": "Hallucination leaderboard",
        "plots": (),
    }
    wanted |= dict.fromkeys(("best", "least_answered", "examples"))
    opened = [open_run(run) for run in runs]
    for line in publish(make_board(opened), opened, wanted):
        say(line)
    return code


def _runs(configuration: Configuration, name: str) -> list[Path]:
    from evalwright.evaluation.planning import slug

    several = len(configuration.models) > 1
    ids = [f"{name}-{slug(spec.label or spec.model)}" if several else name for spec in configuration.models]
    folders = [Path(configuration.out) / run for run in ids]
    return [folder for folder in folders if (folder / "run.json").is_file()]


def _call(cli: Any, *arguments: str) -> int:
    result = cli.main(args=list(arguments), prog_name="evalwright", standalone_mode=False)
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
