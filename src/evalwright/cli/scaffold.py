"""The files of `evalwright init`: questions asked, files composed and written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from evalwright.cli.output import echo
from evalwright.core.errors import ConfigurationError, EvalwrightError, UnknownName
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.tasks.safe_files import check_file, read_file, write_file

SUITE = "suite.yaml"
EXAMPLES = "questions.csv"
"""The data file that `init` creates with example questions if it does not exist."""
WORKFLOW = ".github/workflows/evalwright.yml"
BOARDS = ("leaderboard.md", "leaderboard.html")
DEMO_MODELS = "demo/small demo/large"
"""Models that come with the package, as an answer to the question for models."""
RUBRIC_KEYS = ("scorers", "metrics")
"""What a rubric sets in a task."""
TASK_QUESTION = (
    "What to evaluate: a CSV or JSONL file of your questions, or a benchmark"
    " (`evalwright tasks list`)"
)
MODELS_QUESTION = "Which models (provider/name, separated by spaces)"


@dataclass(frozen=True, slots=True)
class ComposedSuite:
    """A suite that is not written yet.

    Attributes:
        files: the texts of the suite file and of the files that it needs, by path.
        tasks: the tasks, by name or file.
        models: the models.
        roles: the judges, by role.
        unsure: how unsure answers are judged; empty if they are not.
        panel: how several judges decide; empty for one.
        name: the suite's name, with which the names of its runs begin.
        task_extras: extras of the package that reading the task's data needs.
        watched: files besides the suite whose change changes its results.
        needs_trust: whether it sets what only its user may decide, such as addresses.
        n_prompts: how many prompts every model has a run with.
    """

    files: dict[str, str]
    tasks: tuple[str, ...]
    models: tuple[ModelSpec, ...]
    roles: Mapping[str, ModelSpec]
    unsure: Mapping[str, Any]
    panel: Mapping[str, Any]
    name: str
    task_extras: tuple[str, ...]
    watched: tuple[str, ...]
    needs_trust: bool = False
    n_prompts: int = 1

    @property
    def all_models(self) -> Configuration:
        """A configuration of its models and judges alone, to look up what they need."""
        return Configuration(models=(*self.models, *self.roles.values()))

    @property
    def keys(self) -> list[str]:
        """Environment variables with keys; an endpoint's own address needs none by itself."""
        from evalwright.evaluation.needs import keys_of

        return keys_of(self.all_models)


def ask_task(params: Mapping[str, Any], default: str = EXAMPLES) -> str:
    """Return the task that --task names, or ask for one."""
    return params["task"] or ask(
        TASK_QUESTION, default, "--task", lambda answer: check_task(answer, params)
    )


def ask_models(
    params: Mapping[str, Any], default: str = DEMO_MODELS
) -> tuple[str, ...]:
    """Return the models that --model names, or ask for them."""
    if params["models"]:
        models: tuple[str, ...] = params["models"]
        return models
    answer = ask(
        MODELS_QUESTION,
        default,
        "--model",
        lambda answer: check_models(answer.split()),
    )
    return tuple(answer.split())


def ask(
    question: str,
    default: str,
    option: str,
    check: Callable[[str], None],
    when_unasked: str | None = None,
) -> str:
    """Ask a question until `check` accepts the answer, so that no earlier answer is lost.

    Args:
        question: the question.
        default: the answer of someone who only presses Enter.
        option: the option that answers it beforehand.
        check: raises an error for an answer that cannot be used.
        when_unasked: the answer where there is no terminal; without one that is an error.
    """
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
            if when_unasked is not None and not rejections:
                return when_unasked
            missing = click.UsageError(f"There is no terminal to ask on: add {option}.")
            raise (rejections[-1] if rejections else missing) from None
        raise


def check_task(task: str, params: Mapping[str, Any]) -> None:
    """Raise an error for a task that cannot be evaluated."""
    from evalwright.tasks.datasets.formats import SUFFIXES
    from evalwright.tasks.loading import find_definitions

    if Path(task).suffix.lower() in SUFFIXES:
        _convert_data_file(Path(task), params, {})
    else:
        find_definitions(task)


def check_models(names: Sequence[str]) -> None:
    """Raise UsageError for a provider, a demonstration model or a function that there is not."""
    from evalwright.models.function_files import PROVIDER, python_function
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
        if provider == PROVIDER:
            python_function(model)


def compose_suite(
    task: str,
    models: Sequence[str],
    params: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    suite_name: str = "",
    comments: Mapping[str, str] | None = None,
) -> ComposedSuite:
    """Compose a suite and the task that it needs; any error is raised before writing.

    Args:
        task: a data file, a task file or a benchmark.
        models: the models, by name.
        params: the parameters of `init`.
        settings: further settings of the suite.
        suite_name: the suite's name; by default that of the task.
        comments: a comment above a setting of the suite, by its key.
    """
    import yaml

    from evalwright.cli.arguments import judge_settings, role_specs
    from evalwright.evaluation.origins import proposed
    from evalwright.reports.starter import suite_text
    from evalwright.tasks.datasets.formats import SUFFIXES

    check_models((*models, *params["judges"]))
    if params["rubric"] and not params["judges"]:
        raise click.UsageError(
            "--rubric needs a judge: name one with --judge provider/name."
        )
    files: dict[str, str] = {}
    data_file = Path(task)
    if data_file.suffix.lower() in SUFFIXES:
        task_name, extras = _convert_data_file(data_file, params, files)
        name = Path(task_name).stem
    else:
        task_name, extras = task, _extras_of_task(task, params)
        name = re.sub(
            r"[^\w.-]+", "-", Path(task).stem if Path(task).is_file() else task
        )
    specs = _model_specs(models, params["arguments"])
    roles = role_specs((), params["role_arguments"], params["judges"])
    _refuse_secrets((*specs, *roles.values()))
    judging = judge_settings({**params, "tasks": [task]}, {})
    judging.pop("overrides", None)
    if not judging.get("panel"):
        judging.pop("panel", None)
    if roles:
        judging["roles"] = {role: _entry(spec) for role, spec in roles.items()}
    files[SUITE] = suite_text(
        suite_name or name,
        [task_name],
        [_entry(spec) for spec in specs],
        {**judging, **(settings or {})},
        comments,
    )
    return ComposedSuite(
        files=files,
        tasks=(task_name,),
        models=specs,
        roles=roles,
        unsure=judging.get("unsure", {}),
        panel=judging.get("panel", {}),
        name=suite_name or name,
        task_extras=tuple(extras),
        watched=tuple(
            dict.fromkeys(path for path in (task_name, task) if Path(path).suffix)
        ),
        needs_trust=bool(proposed(yaml.safe_load(files[SUITE]), Path())),
        n_prompts=len((settings or {}).get("prompts", ())) or 1,
    )


def _extras_of_task(task: str, params: Mapping[str, Any]) -> list[str]:
    """Return the extras that a benchmark's data need."""
    from evalwright.evaluation.needs import is_from_hub
    from evalwright.tasks.loading import find_definitions

    definitions = find_definitions(task)
    if params["columns"] or params["rubric"]:
        raise click.UsageError(
            "--column and --rubric are for a file of your own questions."
        )
    return ["hub"] if any(map(is_from_hub, definitions)) else []


def _model_specs(
    models: Sequence[str], arguments: Sequence[str]
) -> tuple[ModelSpec, ...]:
    from evalwright.cli.arguments import key_values

    shared_arguments = key_values(arguments, "-M")
    return tuple(ModelSpec(model, shared_arguments) for model in models)


def _entry(spec: ModelSpec) -> str | dict[str, Any]:
    """Write a model as a suite file has it."""
    return spec.as_dict() if spec.arguments else spec.model


def _refuse_secrets(specs: Sequence[ModelSpec]) -> None:
    """Raise UsageError for a key among the arguments: a suite file is read by many."""
    for spec in specs:
        if spec.as_dict() != {
            "model": spec.model,
            **({"arguments": spec.arguments} if spec.arguments else {}),
        }:
            raise click.UsageError(
                f"The arguments of {spec.model} hold a key, and a suite file is no place"
                " for one: put it into an environment variable, and name that with"
                " api_key_env=NAME."
            )


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
    overrides = judge_settings({**params, "tasks": [str(relative_path)]}, {}).get(
        "overrides", {}
    )
    if relative_path.is_file():
        definition = data_file_task(
            relative_path, {**overrides, "answer.mode": "generate"}
        )
        definition |= {key: overrides[key] for key in RUBRIC_KEYS if key in overrides}
        columns = columns_of(relative_path)
    elif str(relative_path) == EXAMPLES:
        files[str(relative_path)] = EXAMPLE
        columns = EXAMPLE.partition("\n")[0].split(",")
        sample = {"input": "{{ row['question'] }}", "target": "{{ row['answer'] }}"}
        definition = {
            "task": relative_path.stem,
            "sample": sample,
            "scorers": ["short-answer"],
            **{key: overrides[key] for key in RUBRIC_KEYS if key in overrides},
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


def board_workflow(suite: ComposedSuite) -> str:
    """Write the workflow that runs a suite and commits its leaderboard."""
    from evalwright.evaluation.needs import extras_of
    from evalwright.reports.workflow import Publication, requirement_here, workflow

    options = [
        word
        for path in BOARDS
        for word in (f"--{path.rpartition('.')[2].replace('md', 'markdown')}", path)
    ]
    all_extras = (*extras_of(suite.all_models), *suite.task_extras)
    return workflow(
        Publication(
            config=SUITE,
            options=tuple(options),
            published=BOARDS,
            secrets=tuple(suite.keys),
            extras=all_extras,
            trusted=suite.needs_trust,
            watched=suite.watched,
            requirements=(requirement_here(all_extras).text,),
        )
    )


def write_files(files: Mapping[str, str], replace: bool) -> None:
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


def show_secrets(suite: ComposedSuite) -> None:
    """Print which keys a workflow among the suite's files needs as secrets."""
    has_workflow = any(path.startswith(".github/") for path in suite.files)
    if suite.keys and has_workflow:
        listed = ", ".join(suite.keys)
        echo(f"For the workflow, add to the repository's secrets: {listed}.")


def show_missing_keys(keys: Sequence[str]) -> None:
    """Print which of these environment variables are not set."""
    if missing := [key for key in keys if not os.environ.get(key)]:
        echo(f"Set in this shell first: {', '.join(missing)}.")
