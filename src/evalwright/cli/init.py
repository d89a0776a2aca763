"""`evalwright init`: a task, a suite and a GitHub workflow, from two questions."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.options import (
    COLUMNS,
    JUDGES,
    RUBRIC,
    flag,
    option,
    repeatable_option,
)
from evalwright.cli.output import echo
from evalwright.core.errors import ConfigurationError, EvalwrightError, UnknownName
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.tasks.safe_files import check_file, read_file, write_file

SUITE = "suite.yaml"
EXAMPLES = "questions.csv"
"""The data file that `init` creates with example questions if it does not exist."""
WORKFLOW = ".github/workflows/evalwright.yml"
BOARDS = ("leaderboard.md", "leaderboard.html")


@click.command()
@option(
    "--task",
    "FILE|TASK",
    "A CSV or JSONL file of your own questions, or a bundled benchmark. questions.csv"
    " is begun with examples where there is none.",
)
@repeatable_option("--model models", "M", "A model, provider/name.")
@JUDGES
@RUBRIC
@COLUMNS
@option(
    "--from source",
    "FILE",
    "The configuration of another system, such as promptfooconfig.yaml: what of it can"
    " be taken over becomes a suite, a task, prompts and rows.",
)
@flag("--no-workflow", "Write no GitHub workflow.")
@flag("--replace", "Replace files that are there.")
def init(**params: Any) -> None:
    """Write a task, a suite file and a GitHub workflow into this folder, from two questions.

    --task and --model answer the questions beforehand; --from takes the answers from another
    system's configuration. No file is replaced without a question or
    --replace, and no request is sent.
    """
    if params["source"]:
        _convert(Path(params["source"]), params)
        return
    question = (
        "What to evaluate: a CSV or JSONL file of your questions, or a benchmark"
        " (`evalwright tasks list`)"
    )
    task = params["task"] or _ask(
        question, EXAMPLES, "--task", lambda answer: _check_task(answer, params)
    )
    models = params["models"]
    if not models:
        question = "Which models (provider/name, separated by spaces)"
        default = "demo/small demo/large"
        models = tuple(
            _ask(
                question,
                default,
                "--model",
                lambda answer: _check_models(answer.split()),
            ).split()
        )
    files = _compose_files(task, models, params)
    _write(files, params["replace"])
    _show_next_steps(files)


def _convert(source: Path, params: Mapping[str, Any]) -> None:
    """Write the files that the configuration of another system becomes."""
    from evalwright.cli.foreign import convert_configuration

    answered = [
        name
        for name in ("task", "models", "judges", "rubric", "columns")
        if params[name]
    ]
    if answered:
        raise click.UsageError(
            "--from says what is evaluated, and with which models: leave out the other"
            " options, and change suite.yaml afterwards."
        )
    converted = convert_configuration(source)
    _write(converted.files, params["replace"])
    for sentence in converted.notes:
        say(f"Note: {sentence}")
    command = ["evalwright", "run", "--config", SUITE, *converted.options]
    configuration = _read_allowed(Path(SUITE))
    if configuration is None:
        configuration = _read_allowed(Path(SUITE), SUITE)
        say(
            f"Note: {SUITE} sends requests to addresses of the configuration: read it."
            " --trust-file says that you agree."
        )
        command += ["--trust-file", SUITE]
    if configuration is not None:
        _show_missing_keys(configuration)
    echo(f"Next: {' '.join(command)}")


def _read_allowed(suite: Path, trust_file: str | None = None) -> Configuration | None:
    """Read a suite; None if it sets what only the user may decide."""
    from evalwright.evaluation.configuration_file import read_configuration

    try:
        return read_configuration(suite, trust_file=trust_file)
    except ConfigurationError:
        return None


def _ask(question: str, default: str, option: str, check: Callable[[str], None]) -> str:
    """Ask a question until `check` accepts the answer, so that no earlier answer is lost."""
    rejections: list[click.UsageError] = []

    def checked(answer: str) -> str:
        try:
            check(answer.strip())
        except (EvalwrightError, click.UsageError) as error:
            rejections.append(click.UsageError(str(error)))
            raise rejections[-1] from None
        return answer.strip()

    try:
        return str(
            click.prompt(question, default=default, err=True, value_proc=checked)
        )
    except click.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            echo("", error=True)
            missing = click.UsageError(f"There is no terminal to ask on: add {option}.")
            raise (rejections[-1] if rejections else missing) from None
        raise


def _check_task(task: str, params: Mapping[str, Any]) -> None:
    """Raise an error for a task that cannot be evaluated."""
    from evalwright.tasks.datasets.formats import SUFFIXES
    from evalwright.tasks.loading import find_definitions

    if Path(task).suffix.lower() in SUFFIXES:
        _convert_data_file(Path(task), params, {})
    else:
        find_definitions(task)


def _check_models(names: Sequence[str]) -> None:
    """Raise UnknownName for an unknown provider, or an unknown demonstration model."""
    from evalwright.models.local.demo import check_demo_name
    from evalwright.models.registry import parse_name, providers

    for name in names:
        provider, model, _ = parse_name(name)
        if provider not in providers():
            raise UnknownName(
                "model provider",
                provider,
                providers(),
                "`evalwright models list` shows all.",
            )
        if provider == "demo":
            check_demo_name(model)


def _compose_files(
    task: str, models: tuple[str, ...], params: Mapping[str, Any]
) -> dict[str, str]:
    """Return the texts of the files to write, by path; any error is raised before writing."""
    from evalwright.cli.arguments import judge_settings, role_specs
    from evalwright.evaluation.needs import is_from_hub
    from evalwright.reports.starter import suite_text
    from evalwright.tasks.datasets.formats import SUFFIXES

    _check_models((*models, *params["judges"]))
    if params["rubric"] and not params["judges"]:
        raise click.UsageError(
            "--rubric needs a judge: name one with --judge provider/name."
        )
    files: dict[str, str] = {}
    data_file = Path(task)
    if data_file.suffix.lower() in SUFFIXES:
        task_file, extras = _convert_data_file(data_file, params, files)
        tasks = [task_file]
        name = Path(task_file).stem
    else:
        from evalwright.tasks.loading import find_definitions

        if params["columns"] or params["rubric"]:
            raise click.UsageError(
                "--column and --rubric are for a file of your own questions."
            )
        tasks = [task]
        extras = ["hub"] if any(map(is_from_hub, find_definitions(task))) else []
        name = re.sub(
            r"[^\w.-]+", "-", Path(task).stem if Path(task).is_file() else task
        )
    judging = judge_settings({**params, "tasks": [task]}, {})
    judging.pop("overrides", None)
    if params["judges"]:
        judging["roles"] = {
            role: spec.model
            for role, spec in role_specs((), (), params["judges"]).items()
        }
    files[SUITE] = suite_text(name, tasks, models, judging)
    if not params["no_workflow"]:
        files[WORKFLOW] = _workflow(
            models + params["judges"],
            extras,
            [path for path in (*tasks, task) if Path(path).suffix],
        )
    return files


def _convert_data_file(
    data_file: Path, params: Mapping[str, Any], files: dict[str, str]
) -> tuple[str, list[str]]:
    """Make a task of a data file, and add the files to write to `files`.

    Returns:
        The task's file, and the extras that reading the data file needs.
    """
    from evalwright.cli.arguments import judge_settings
    from evalwright.reports.starter import EXAMPLE, task_text
    from evalwright.tasks.data_files import columns_of, data_file_task
    from evalwright.tasks.datasets.formats import SUFFIXES

    relative_path = Path(
        os.path.relpath(data_file.expanduser().resolve(), Path.cwd().resolve())
    )
    if relative_path.parts[0] == "..":
        raise ConfigurationError(
            f"'{data_file}' is outside this folder: copy it here, so that both can be in one"
            " repository."
        )
    if relative_path.is_file():
        overrides = judge_settings({**params, "tasks": [str(relative_path)]}, {}).get(
            "overrides", {}
        )
        definition = data_file_task(
            relative_path, {**overrides, "answer.mode": "generate"}
        )
        definition |= {
            key: overrides[key] for key in ("scorers", "metrics") if key in overrides
        }
        columns = columns_of(relative_path)
    elif str(relative_path) == EXAMPLES:
        files[str(relative_path)] = EXAMPLE
        columns = EXAMPLE.partition("\n")[0].split(",")
        sample = {"input": "{{ row['question'] }}", "target": "{{ row['answer'] }}"}
        definition = {
            "task": relative_path.stem,
            "sample": sample,
            "scorers": ["short-answer"],
        }
    else:
        data_files = [
            path.name
            for path in relative_path.parent.glob("*")
            if path.suffix.lower() in SUFFIXES
        ]
        hint = f"`--task {EXAMPLES}` begins a file of that name with example questions."
        raise UnknownName(
            "data file", str(data_file), data_files, f"It does not exist. {hint}"
        )
    file = f"{definition['task']}.yaml"
    if file == SUITE:
        raise ConfigurationError(
            f"The task of '{data_file}' would be {SUITE}, which is the suite: rename the"
            " data file."
        )
    files[file] = task_text(definition, relative_path.as_posix(), columns)
    file_format = relative_path.suffix.lower().removeprefix(".")
    return file, [file_format] if file_format in ("parquet", "xlsx") else []


def _workflow(models: tuple[str, ...], extras: list[str], watched: list[str]) -> str:
    from evalwright.evaluation.needs import extras_of, keys_of
    from evalwright.reports.workflow import Publication, requirement_here, workflow

    configuration = Configuration(models=tuple(map(ModelSpec, models)))
    options = [
        word
        for path in BOARDS
        for word in (f"--{path.rpartition('.')[2].replace('md', 'markdown')}", path)
    ]
    all_extras = (*extras_of(configuration), *extras)
    return workflow(
        Publication(
            config=SUITE,
            options=tuple(options),
            published=BOARDS,
            secrets=tuple(dict.fromkeys(keys_of(configuration))),
            extras=all_extras,
            watched=tuple(watched),
            requirements=(requirement_here(all_extras).text,),
        )
    )


def _write(files: Mapping[str, str], replace: bool) -> None:
    """Write all files, or none if one exists and is not to be replaced."""
    from evalwright.reports.starter import EXAMPLE

    for path in files:
        check_file(Path(path))
    changed_files = [
        path
        for path, text in files.items()
        if Path(path).exists() and read_file(Path(path)) != text.encode()
    ]
    if changed_files and not replace:
        listed = ", ".join(changed_files)
        try:
            replaces = click.confirm(f"Replace what is there ({listed})?", err=True)
        except click.Abort as abort:
            if not isinstance(abort.__context__, EOFError):
                raise
            echo("", error=True)
            replaces = False
        if not replaces:
            raise ConfigurationError(
                f"Nothing was written: {listed} would be replaced. Add --replace if"
                " that is meant."
            )
    for path, text in files.items():
        verb = "Written" if write_file(Path(path), text) else "Unchanged"
        if path in changed_files:
            verb = "Replaced"
        note = " (examples: put your own questions in)" if text == EXAMPLE else ""
        echo(f"{verb}: {path}{note}")


def _show_next_steps(files: Mapping[str, str]) -> None:
    """Print what to do next."""
    from evalwright.evaluation.configuration_file import read_configuration
    from evalwright.evaluation.needs import keys_of

    configuration = read_configuration(Path(SUITE))
    keys = keys_of(configuration)
    if keys and WORKFLOW in files:
        echo(f"For the workflow, add to the repository's secrets: {', '.join(keys)}.")
    _show_missing_keys(configuration)
    echo(f"Next: evalwright run --config {SUITE}")


def _show_missing_keys(configuration: Configuration) -> None:
    """Print which environment variables the models need that are not set."""
    from evalwright.evaluation.needs import keys_of

    keys = keys_of(configuration)
    if missing := [key for key in keys if not os.environ.get(key)]:
        echo(f"Set in this shell first: {', '.join(missing)}.")
