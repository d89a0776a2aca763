"""`evalwright init`: the files of an evaluation, and its first command, from a few questions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from evalwright.cli.board_init import init_board
from evalwright.cli.exit_codes import say
from evalwright.cli.first_command import suite_command
from evalwright.cli.init_jobs import (
    JOBS,
    PULL_REQUEST_WORKFLOW,
    ask_job,
    check_options,
    set_up,
)
from evalwright.cli.options import (
    COLUMNS,
    JUDGES,
    MODEL_ARGUMENTS,
    ROLE_ARGUMENTS,
    RUBRIC,
    flag,
    option,
    repeatable_option,
)
from evalwright.cli.output import echo
from evalwright.cli.scaffold import (
    SUITE,
    WORKFLOW,
    ComposedSuite,
    ask_models,
    ask_task,
    board_workflow,
    compose_suite,
    show_missing_keys,
    show_secrets,
    write_files,
)
from evalwright.core.errors import ConfigurationError
from evalwright.evaluation.configuration import Configuration

WITHOUT_JOB = ("task", "models", "judges", "rubric", "columns", "no_workflow")
"""Parameters that stand for the evaluation of no special job, as long as --job names none."""


@click.command()
@click.argument("folder", required=False)
@option(
    "--job",
    "JOB",
    f"What it is for: {', '.join(JOBS)}. Its files are written, and its first command is"
    f" run where it costs nothing. pull-request writes {PULL_REQUEST_WORKFLOW}, leaderboard"
    f" (and no --job) {WORKFLOW}; the others write no workflow.",
)
@option(
    "--task",
    "FILE|TASK",
    "A CSV or JSONL file of your own questions, or a bundled benchmark. questions.csv"
    " is begun with examples where there is none.",
)
@repeatable_option("--model models", "M", "A model, provider/name.")
@MODEL_ARGUMENTS
@JUDGES
@ROLE_ARGUMENTS
@RUBRIC
@COLUMNS
@repeatable_option(
    "--prompt prompts", "FILE", "With --job prompts: a text file with a prompt."
)
@repeatable_option(
    "--run runs",
    "RUN",
    "With --job paper: a run, by name or folder, or results of another program, as"
    " inspect:logs.",
)
@option(
    "--from source",
    "FILE",
    "The configuration of another system, such as promptfooconfig.yaml: what of it can"
    " be taken over becomes a suite, a task, prompts and rows.",
)
@click.option(
    "--leaderboard",
    metavar="KIND",
    is_flag=False,
    flag_value="blank",
    help="Write the repository of a leaderboard by pull requests, into FOLDER: hhem,"
    " sea-helm or blank (the default). It runs nothing.",
)
@flag("--no-workflow", "Write no GitHub workflow.")
@flag("--no-run", "With a job: write its files, and only print its first command.")
@flag("--replace", "Replace files that are there.")
def init(**params: Any) -> int:
    """Set up an evaluation in this folder: choose one of five jobs, and answer what it needs.

    Options answer the questions beforehand. With --task or --model and without --job, a task, a
    suite and a GitHub workflow are written and nothing is run; --from takes the answers from
    another system's configuration. No file is replaced without a question or --replace, and no
    request is sent but to models in this process.
    """
    if params["leaderboard"]:
        return init_board(params)
    if params["folder"]:
        raise click.UsageError(
            f"FOLDER ('{params['folder']}') is for --leaderboard alone; the others write"
            " into the working folder."
        )
    if params["source"]:
        _convert(Path(params["source"]), params)
        return 0
    job = params["job"]
    if not job and not any(params[name] for name in WITHOUT_JOB):
        job = ask_job()
    if job:
        return set_up(job, params)
    check_options("", params)
    suite = compose_suite(ask_task(params), ask_models(params), params)
    files = suite.files
    if not params["no_workflow"]:
        files[WORKFLOW] = board_workflow(suite)
    write_files(files, params["replace"])
    _show_next_steps(suite)
    return 0


def _convert(source: Path, params: Mapping[str, Any]) -> None:
    """Write the files that the configuration of another system becomes."""
    from evalwright.cli.foreign import convert_configuration
    from evalwright.evaluation.needs import keys_of

    answered = [
        name for name in ("job", "prompts", "runs", *WITHOUT_JOB[:-1]) if params[name]
    ]
    if answered:
        raise click.UsageError(
            "--from says what is evaluated, and with which models: leave out the other"
            " options, and change suite.yaml afterwards."
        )
    converted = convert_configuration(source)
    write_files(converted.files, params["replace"])
    for sentence in converted.notes:
        say(f"Note: {sentence}")
    command = ["evalwright", "run", "--config", SUITE, *converted.options]
    configuration = _read_allowed(Path(SUITE))
    needs_trust = configuration is None
    if needs_trust:
        configuration = _read_allowed(Path(SUITE), SUITE)
        command += ["--trust-file", SUITE]
    if configuration is not None:
        show_missing_keys(keys_of(configuration))
    if needs_trust:
        say(
            f"Note: {SUITE} sends requests to addresses of the configuration: read it."
            " --trust-file says that you agree."
        )
    echo(f"Next: {' '.join(command)}")


def _read_allowed(suite: Path, trust_file: str | None = None) -> Configuration | None:
    """Read a suite; None if it sets what only the user may decide."""
    from evalwright.evaluation.configuration_file import read_configuration

    try:
        return read_configuration(suite, trust_file=trust_file)
    except ConfigurationError:
        return None


def _show_next_steps(suite: ComposedSuite) -> None:
    """Print what to do next."""
    show_secrets(suite)
    show_missing_keys(suite.keys)
    echo(f"Next: {suite_command(suite)}")
