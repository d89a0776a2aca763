"""`evalwright import hhem`, and `hhem-leaderboard`, the leaderboard engine's command.

Evaluations are suites in `leaderboard.yaml` of the working folder, or else in the small example
that comes with the package. As in the engine, `test` asks each model three questions; any other
suite is run and made into a leaderboard.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from evalwright import Configuration, Run
from evalwright.compat.programs import option, scoring_option
from evalwright.extend import (
    CommandLine,
    ConfigurationError,
    Importer,
    ImportSummary,
    check_writable,
    summarise_import,
    write_file,
)

FILE = "leaderboard.yaml"
TEST = "test"
_NAMES = {
    "hallucination-rate": "hallucination rate",
    "answer-rate": "answer rate",
    "mean-words": "words",
}
_SHOWN_KEYS = (
    "scoring",
    "judge",
    "judgment_date",
    "pairing",
    "dataset",
    "lost",
    "published",
    "differences",
    "notes",
)
"""Facts about an imported run that --json shows."""


def _import(
    path: Path,
    runs_folder: Path,
    name: str,
    *,
    scoring: str,
    articles: str | None,
    all_dates: bool,
) -> ImportSummary:
    from evalwright.compat.hhem.importing import import_hhem

    table = Path(articles) if articles else None
    runs, left_out = import_hhem(
        path, runs_folder, name, scoring=scoring, articles=table, every=all_dates
    )
    imports = summarise_import(runs, _describe_run, _SHOWN_KEYS, left_out)
    for record in imports.record["runs"]:
        (record["metrics"],) = record["metrics"].values()
    imports.record["left_out"] = left_out
    return imports


def _describe_run(run: Run) -> list[str]:
    """Describe a run: its rates, differences from what was published, and notes."""
    (task,) = run.tasks
    imported = run.data["configuration"]["imported"]
    rates = []
    for metric in (
        candidate for candidate in task.metrics if candidate.label in _NAMES
    ):
        value = metric.estimate.value * (1.0 if metric.label == "mean-words" else 100.0)
        rates.append(
            f"{_NAMES[metric.label]} {'n/a' if value != value else f'{value:.1f}'}"
        )
    rows = f"{run.data['samples']['records']:,} rows"
    failed = f", {task.n_missing:,} failed or lost" if task.n_missing else ""
    scoring = ", as published" if imported["scoring"] == "published" else ""
    counts = f"({run.model}: {rows}{failed}{scoring})"
    lines = [f"{counts}: {', '.join(rates)}"]
    differing = []
    for difference in imported["differences"]:
        our_value = "n/a" if difference["ours"] is None else difference["ours"]
        differing.append(
            f"{_NAMES[difference['metric']]} {our_value} (published"
            f" {difference['published']})"
        )
    if differing:
        lines.append(f"  Differs from what was published: {', '.join(differing)}")
    if imported["older_judgments_left_out"]:
        lines.append(
            f"  Of other dates, left out: {imported['older_judgments_left_out']}"
            " (--all-dates)"
        )
    return lines


IMPORTER = Importer(
    "Import the recorded runs of the HHEM leaderboard engine in PATH.\n\n"
    "PATH is its output folder, a company's folder in it, or one model's.",
    _import,
    "the model and the date",
    (
        scoring_option(
            "Count each judgment once, or as the engine does. Default: corrected.",
            default="corrected",
        ),
        option(
            "--articles",
            metavar="CSV",
            help=(
                "The data set: slices by category, text_type and dataset, and its size."
            ),
        ),
        option(
            "--all-dates",
            is_flag=True,
            help="Also import judgments before the last one.",
        ),
    ),
)


_RUN_OPTIONS = (
    "into",
    "allow_baseline_judge",
    "name",
    "replace",
    "budget",
    "no_judge",
    "accept_failures",
    "give_up",
)
"""Options that the suite `test` does not take, because it makes no runs and no leaderboard."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--eval_name",
    "--eval-name",
    default=TEST,
    show_default=True,
    metavar="NAME",
    help="Which suite.",
)
@click.option(
    "--config",
    metavar="FILE",
    help=f"Where the suites are. Default: {FILE}, else a small example.",
)
@click.option(
    "--trust-file",
    metavar="FILE",
    help="The file of suites, read and trusted: see docs/trust.md.",
)
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE",
    help=(
        "A Python file with models, tasks or scorers, or a TOML file with providers."
        " Repeatable."
    ),
)
@click.option(
    "--output_dir",
    "--output-dir",
    default="output",
    show_default=True,
    metavar="DIR",
    help="For the board.",
)
@click.option(
    "--into",
    metavar="FILE",
    help="Also put the board between its markers in this file (README.md).",
)
@click.option(
    "--name",
    metavar="ID",
    help="The beginning of the runs' names. Default: the suite's.",
)
@click.option(
    "--replace",
    is_flag=True,
    help=(
        "Replace runs of that name that were made otherwise, as with another prompt or"
        " other articles."
    ),
)
@click.option(
    "--budget",
    multiple=True,
    metavar="SUM",
    help="Spend no more than '5 USD', '2M tokens', '1000 requests'. Repeatable.",
)
@click.option(
    "--no-judge",
    is_flag=True,
    help="Only summarise: the runs are called NAME-summaries, and no board is made.",
)
@click.option(
    "--accept-failures",
    metavar="N",
    help=(
        "The board is complete although each model lacks N articles (3), or a share of"
        " them (2%)."
    ),
)
@click.option(
    "--give-up",
    multiple=True,
    metavar="ID",
    help=(
        "An article that may stay without a summary; FILE.txt names one a line."
        " Repeatable."
    ),
)
@click.option(
    "--allow-baseline-judge",
    is_flag=True,
    help="Allow scores by baseline/..., to try things out.",
)
@click.option("--init", is_flag=True, help=f"Write the example as {FILE} and exit.")
@click.pass_obj
def hhem_leaderboard(
    evalwright: CommandLine,
    /,
    eval_name: str,
    config: str | None,
    init: bool,
    **options: Any,
) -> int:
    """Run a suite of a hallucination leaderboard: summarise, judge, aggregate, publish.

    No request is sent twice, so an interrupted evaluation goes on with the same command.
    """
    if init:
        return _write_example()
    path = Path(config or FILE)
    if config is None and not path.is_file():
        notice = (
            "so the example that comes with evalwright is used; --init writes it to"
            " this folder"
        )
        click.echo(f"There is no {FILE} here, {notice}.", err=True)
        path = _example()
    if eval_name == TEST:
        for name in _RUN_OPTIONS:
            if options[name]:
                option_name = name.replace("_", "-")
                raise ConfigurationError(
                    f"--{option_name} is about runs and their leaderboard, which the suite"
                    f" '{TEST}' does not make: leave it out."
                )
        return _smoke(evalwright, path, options["trust_file"], options["plugins"])
    return _evaluate(evalwright, path, eval_name, options)


def _example() -> Path:
    return Path(str(files("evalwright.compat.hhem").joinpath("leaderboard.yaml")))


def _write_example() -> int:
    if os.path.lexists(FILE):
        raise ConfigurationError(f"{FILE} already exists; it is not overwritten.")
    write_file(Path(FILE), _example().read_bytes())
    click.echo(
        f"{FILE} is written: name your models in it, then run hhem-leaderboard"
        f" --eval_name {TEST}."
    )
    return 0


def _smoke(
    evalwright: CommandLine,
    path: Path,
    trust_file: str | None,
    plugins: Sequence[str],
) -> int:
    """Ask each model of the suite three questions, as its task does."""
    command = ["models", "test", "--config", str(path), "--suite", TEST]
    if trust_file is not None:
        command += ["--trust-file", trust_file]
    return evalwright([*command, *(f"--plugin={file}" for file in plugins)])


def _evaluate(
    evalwright: CommandLine, path: Path, suite: str, options: Mapping[str, Any]
) -> int:
    """Run the suite, and make a leaderboard of its models in every format."""
    check_writable(Path(options["output_dir"]) / "leaderboard.md")
    if options["into"]:
        evalwright.check(["leaderboard", f"--into={options['into']}"])
    configuration = evalwright.read_suite(path, suite, options["trust_file"])
    if options["no_judge"]:
        for name in ("into", "allow_baseline_judge"):
            if options[name]:
                option_name = name.replace("_", "-")
                raise ConfigurationError(
                    f"--{option_name} is about the leaderboard, and --no-judge makes none:"
                    " leave one of them out."
                )
    else:
        _refuse_baselines(configuration, suite, path, options["allow_baseline_judge"])
    name = options["name"] or configuration.name or suite
    if options["no_judge"]:
        return evalwright(
            [*_run_command(path, suite, f"{name}-summaries", options), "--no-judge"]
        )
    code = evalwright(_run_command(path, suite, name, options))
    named = replace(configuration, name=name)
    folders = [Path(named.out) / named.run_name(spec) for spec in configuration.models]
    runs = [folder for folder in folders if (folder / "run.json").is_file()]
    if not runs or code > 1:
        return code
    return max(code, evalwright(_board_command(runs, options)))


def _refuse_baselines(
    configuration: Configuration, suite: str, path: Path, allowed: bool
) -> None:
    """Raise ConfigurationError for a baseline judge, before any request is sent."""
    for role, spec in configuration.roles.items():
        if spec.model.startswith("baseline/") and not allowed:
            raise ConfigurationError(
                f"The suite '{suite}' has '{spec.model}' in the role '{role}': a"
                " baseline, whose scores make no leaderboard. Name a trained judge in"
                f" {path.name}, or add --allow-baseline-judge to try things out."
            )


def _run_command(
    path: Path, suite: str, name: str, options: Mapping[str, Any]
) -> list[str]:
    """Arguments of `evalwright` that run the suite."""
    command = ["run", "--config", str(path), "--suite", suite, "--name", name]
    if options["trust_file"] is not None:
        command += ["--trust-file", options["trust_file"]]
    if options["accept_failures"]:
        command += ["--accept-failures", options["accept_failures"]]
    command += [f"--plugin={file}" for file in options["plugins"]]
    command += [f"--budget={budget}" for budget in options["budget"]]
    command += [f"--give-up={article}" for article in options["give_up"]]
    return [*command, "--replace"] if options["replace"] else command


def _board_command(runs: Sequence[Path], options: Mapping[str, Any]) -> list[str]:
    """Arguments of `evalwright` that make the leaderboard of some runs in every format."""
    output = Path(options["output_dir"])
    forms = {"markdown": "md", "html": "html", "csv": "csv", "json-file": "json"}
    command = ["leaderboard", *map(str, runs)]
    command += [
        f"--{form}={output / f'leaderboard.{suffix}'}" for form, suffix in forms.items()
    ]
    command += [f"--pages={output / 'models'}", "--title=Hallucination leaderboard"]
    if options["into"]:
        command.append(f"--into={options['into']}")
    if find_spec("matplotlib"):
        command.append(f"--plot={output / 'leaderboard.svg'}")
    else:
        click.echo(
            "The board has no plot: install it with pip install 'evalwright[plot]'.",
            err=True,
        )
    return (
        [*command, "--allow-baseline-judge"]
        if options["allow_baseline_judge"]
        else command
    )
