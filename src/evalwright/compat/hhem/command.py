"""`evalwright import hhem`, and `hhem-leaderboard`: the command of the HHEM leaderboard engine,
carried out by ours.

Evaluations are suites in `leaderboard.yaml` of the working folder; where there is none, in the
small example that comes with the package. `test` puts three questions to each model, as there; any
other suite is run and made into a board.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from evalwright.compat.programs import (
    Evalwright,
    Importer,
    Imports,
    imports_of,
    option,
    scoring_option,
)
from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.evaluation.configuration import Configuration
from evalwright.runs.reader import Run
from evalwright.runs.writer import slug
from evalwright.tasks.files import check_file, write_file

FILE = "leaderboard.yaml"
TEST = "test"
SHOWN_ANSWER_CHARS = 1_200  # a summary of some 200 words
LINE_CHARS = 100
_NAMES = {
    "hallucination-rate": "hallucination rate",
    "answer-rate": "answer rate",
    "mean-words": "words",
}
_KEPT = (
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
"""What of an imported run other programs are told."""


def _import(
    path: Path,
    out: Path,
    name: str,
    *,
    scoring: str,
    articles: str | None,
    all_dates: bool,
) -> Imports:
    from evalwright.compat.hhem.importing import import_hhem

    table = Path(articles) if articles else None
    runs, left_out = import_hhem(
        path, out, name, scoring=scoring, articles=table, every=all_dates
    )
    made = imports_of(runs, _told, _KEPT, left_out)
    for record in made.record["runs"]:
        (record["metrics"],) = record["metrics"].values()
    made.record["left_out"] = left_out
    return made


def _told(run: Run) -> list[str]:
    """One line for the run, one for what differs from what was published, and one for each thing to
    know.
    """
    (task,) = run.tasks
    imported = run.data["configuration"]["imported"]
    rates = []
    for metric in (one for one in task.metrics if one.label in _NAMES):
        value = metric.estimate.value * (1.0 if metric.label == "mean-words" else 100.0)
        rates.append(
            f"{_NAMES[metric.label]} {'n/a' if value != value else f'{value:.1f}'}"
        )
    rows = f"{run.data['samples']['records']:,} rows"
    failed = f", {task.n_missing:,} failed or lost" if task.n_missing else ""
    scoring = ", as published" if imported["scoring"] == "published" else ""
    lines = [f"{rows}{failed}{scoring}): {', '.join(rates)}"]
    differing = [
        f"{_NAMES[one['metric']]} {'n/a' if one['ours'] is None else one['ours']} "
        f"(published {one['published']})"
        for one in imported["differences"]
    ]
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


_ABOUT_RUNS = (
    "into",
    "allow_baseline_judge",
    "name",
    "replace",
    "budget",
    "no_judge",
    "accept_failures",
    "give_up",
)
"""Options that mean nothing to the suite `test`, which makes neither runs nor a board."""


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
    evalwright: Evalwright,
    /,
    eval_name: str,
    config: str | None,
    init: bool,
    **given: Any,
) -> int:
    """Run a suite of a hallucination leaderboard: summarise, judge, aggregate, publish.

    No request is sent twice, so an interrupted evaluation goes on with the same command.
    """
    if init:
        return _write_example()
    path = Path(config or FILE)
    if config is None and not path.is_file():
        what = (
            "so the example that comes with evalwright is used; --init writes it to"
            " this folder"
        )
        click.echo(f"There is no {FILE} here, {what}.", err=True)
        path = _example()
    if eval_name == TEST:
        for name in _ABOUT_RUNS:
            if given[name]:
                typed = name.replace("_", "-")
                raise ConfigurationError(
                    f"--{typed} is about runs and their leaderboard, which the suite"
                    f" '{TEST}' does not make: leave it out."
                )
        evalwright.load_plugins(given["plugins"])
        return _smoke(path, given["trust_file"])
    return _evaluate(evalwright, path, eval_name, given)


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


def _smoke(path: Path, trust_file: str | None) -> int:
    """Three questions to each model of the suite, asked as its task asks.

    A model that cannot be asked does not stop the others.
    """
    from evalwright.evaluation.common_arguments import without_refused
    from evalwright.evaluation.configuration_file import read_configuration
    from evalwright.evaluation.smoke import SmokeTask, smoke_test
    from evalwright.models.registry import open_model

    configuration = read_configuration(path, TEST, trust_file)
    if not configuration.models:
        raise ConfigurationError(
            f"The suite '{TEST}' of {path.name} has no models: name some under"
            " 'models:'."
        )
    models, refusals = without_refused(configuration.models, open_model)
    for sentence in refusals:
        click.echo(sentence, err=True)
    task = SmokeTask.of(configuration)
    n_failed = 0
    n_refused = 0
    for spec in models:
        click.echo(spec.label or spec.model)
        try:
            verdicts = smoke_test(
                open_model(spec.model, spec.arguments),
                home=configuration.home,
                task=task,
            )
        except UsageError as error:
            click.echo(f"  fail  cannot be asked: {error}")
            n_refused += 1
            continue
        for verdict in verdicts:
            click.echo(
                f"  {verdict.result:<5} {verdict.case} ({verdict.words:,} words):"
                f" {verdict.why}"
            )
            for line in _answer_lines(verdict.answer):
                click.echo(f"        {line}")
        n_failed += any(verdict.result == "fail" for verdict in verdicts)
    if n_refused == len(models):
        return 2
    return int(n_failed + n_refused > 0)


def _answer_lines(answer: str) -> list[str]:
    """An answer as lines below its verdict, as much of it as a person reads."""
    text = " ".join(answer.split())
    if len(text) > SHOWN_ANSWER_CHARS:
        text = f"{text[:SHOWN_ANSWER_CHARS].rstrip()} … ({len(answer.split()):,} words)"
    return textwrap.wrap(text, LINE_CHARS)


def _evaluate(
    evalwright: Evalwright, path: Path, suite: str, given: Mapping[str, Any]
) -> int:
    """The suite's run, and a board of all its models in every form."""
    from evalwright.evaluation.configuration_file import read_configuration
    from evalwright.reports.markers import check_text_file

    check_file(Path(given["output_dir"]) / "leaderboard.md")
    if given["into"]:
        check_text_file(Path(given["into"]))
    trust_file = given["trust_file"]
    configuration = read_configuration(path, suite, trust_file)
    if given["no_judge"]:
        for name in ("into", "allow_baseline_judge"):
            if given[name]:
                typed = name.replace("_", "-")
                raise ConfigurationError(
                    f"--{typed} is about the leaderboard, and --no-judge makes none:"
                    " leave one of them out."
                )
    else:
        _refuse_baselines(configuration, suite, path, given["allow_baseline_judge"])
    name = given["name"] or configuration.name or suite
    if given["no_judge"]:
        return evalwright(
            [*_run_command(path, suite, f"{name}-summaries", given), "--no-judge"]
        )
    code = evalwright(_run_command(path, suite, name, given))
    several_models = len(configuration.models) > 1
    names = [
        f"{name}-{slug(one.label or one.model)}" if several_models else name
        for one in configuration.models
    ]
    runs = [
        run
        for run_id in names
        if ((run := Path(configuration.out) / run_id) / "run.json").is_file()
    ]
    if not runs or code > 1:
        return code
    return max(code, evalwright(_board_command(runs, given)))


def _refuse_baselines(
    configuration: Configuration, suite: str, path: Path, allowed: bool
) -> None:
    """Raise ConfigurationError for a judge whose scores make no board, before any request is sent."""
    for role, spec in configuration.roles.items():
        if spec.model.startswith("baseline/") and not allowed:
            raise ConfigurationError(
                f"The suite '{suite}' has '{spec.model}' in the role '{role}': a"
                " baseline, whose scores make no leaderboard. Name a trained judge in"
                f" {path.name}, or add --allow-baseline-judge to try things out."
            )


def _run_command(
    path: Path, suite: str, name: str, given: Mapping[str, Any]
) -> list[str]:
    """The arguments of `evalwright` that run the suite."""
    command = ["run", "--config", str(path), "--suite", suite, "--name", name]
    if given["trust_file"] is not None:
        command += ["--trust-file", given["trust_file"]]
    if given["accept_failures"]:
        command += ["--accept-failures", given["accept_failures"]]
    command += [f"--plugin={file}" for file in given["plugins"]]
    command += [f"--budget={budget}" for budget in given["budget"]]
    command += [f"--give-up={entry}" for entry in given["give_up"]]
    return [*command, "--replace"] if given["replace"] else command


def _board_command(runs: Sequence[Path], given: Mapping[str, Any]) -> list[str]:
    """The arguments of `evalwright` that make the board of some runs in every form."""
    output = Path(given["output_dir"])
    forms = {"markdown": "md", "html": "html", "csv": "csv", "json-file": "json"}
    command = ["leaderboard", *map(str, runs)]
    command += [
        f"--{form}={output / f'leaderboard.{suffix}'}" for form, suffix in forms.items()
    ]
    command += [f"--pages={output / 'models'}", "--title=Hallucination leaderboard"]
    if given["into"]:
        command.append(f"--into={given['into']}")
    if find_spec("matplotlib"):
        command.append(f"--plot={output / 'leaderboard.svg'}")
    else:
        click.echo(
            "The board has no plot: install it with pip install 'evalwright[plot]'.",
            err=True,
        )
    return (
        [*command, "--allow-baseline-judge"]
        if given["allow_baseline_judge"]
        else command
    )
