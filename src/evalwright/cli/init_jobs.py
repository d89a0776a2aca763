"""The five everyday jobs of `evalwright init`: the files of each, and its first command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.first_command import (
    run_here,
    runs_for_free,
    say_price,
    suite_command,
)
from evalwright.cli.output import echo
from evalwright.cli.scaffold import (
    SUITE,
    WORKFLOW,
    ComposedSuite,
    ask,
    ask_models,
    ask_task,
    board_workflow,
    check_models,
    compose_suite,
    show_missing_keys,
    show_secrets,
    write_files,
)
from evalwright.core.errors import ConfigurationError, check_known
from evalwright.evaluation.configuration import Configuration, ModelSpec

FIRST_ITEMS = 5
"""Items of the first run: enough to see that everything works."""
RELEASED_ITEMS = 20
"""Items of the run that a test compares with; `test_evaluation.py` has the same number."""
COMMENTS = {
    "tasks": "Files, or names: `evalwright tasks list`.",
    "models": "provider/name: `evalwright models list`; -M of a command is `arguments` here.",
    "prompts": "Text files with {{ input }} where the question goes: any number.",
}
"""Comments in a suite file, above what is most often changed."""
NO_JUDGE = "none"
DEFAULT_RUBRIC = "Gives the answer that the reference gives."
PULL_REQUEST_WORKFLOW = ".github/workflows/evaluate.yml"
TEST_FILE = "test_evaluation.py"
PAPER_FILE = "paper.sh"
DEMO_RUN = "demo"
"""The answer that asks for runs of the demonstration models."""

Params = Mapping[str, Any]

MODEL_OPTIONS = ("task", "models", "arguments", "judges", "role_arguments")
TASK_OPTIONS = (*MODEL_OPTIONS, "rubric", "columns")


@dataclass(frozen=True, slots=True)
class Job:
    """What someone sets up an evaluation for.

    Attributes:
        about: one line of the menu.
        options: the parameters of `init` that say something about it.
        set_up: writes its files, and runs or prints its first command; returns the exit code.
    """

    about: str
    options: tuple[str, ...]
    set_up: Callable[[Params], int]


def ask_job() -> str:
    """Show the jobs, and ask for one by number or name."""
    echo("What is it for?", error=True)
    names = list(JOBS)
    for number, (name, job) in enumerate(JOBS.items(), 1):
        echo(f"  {number}  {name:<14}{job.about}", error=True)

    def name_of(answer: str) -> str:
        return names[int(answer) - 1] if answer in numbers else answer

    numbers = [str(number) for number in range(1, len(names) + 1)]
    answer = ask(
        "Number or name",
        names[0],
        "--job",
        lambda answer: check_known("job", [name_of(answer)], names),
    )
    return name_of(answer)


def set_up(name: str, params: Params) -> int:
    """Set up a job; returns the exit code of its first command."""
    check_known("job", [name], list(JOBS))
    check_options(name, params)
    return JOBS[name].set_up(params)


def check_options(job_name: str, params: Params) -> None:
    """Raise UsageError for an option that the job has no use for; "" is no job."""
    always_used = {"job", "task", "source", "replace"}
    if job_name:
        used = {*always_used, "no_run", *JOBS[job_name].options}
        used -= {"task"} - set(JOBS[job_name].options)
    else:
        used = {*always_used, *TASK_OPTIONS, "no_workflow"}
    for param in click.get_current_context().command.params:
        name = param.name or ""
        if params.get(name) and name not in used:
            where = f"with --job {job_name}" if job_name else "without --job"
            raise click.UsageError(f"{param.opts[0]} has no effect {where}.")


def _set_up_model(params: Params) -> int:
    suite = compose_suite(
        ask_task(params), ask_models(params), params, comments=COMMENTS
    )
    write_files(suite.files, params["replace"])
    own_tasks = [task for task in suite.tasks if task in suite.files]
    next_steps = [
        f"evalwright tasks {verb} {task}"
        for task in own_tasks
        for verb in ("preview", "check")
    ]
    next_steps.append(suite_command(suite))
    if len(suite.models) > 1:
        names = " ".join(_run_names(suite))
        next_steps += [f"evalwright compare {names}", f"evalwright view {names}"]
    else:
        next_steps.append(f"evalwright view {_run_names(suite)[0]}")
    return _start(suite, params, next_steps)


def _set_up_prompts(params: Params) -> int:
    task = ask_task(params)
    models = ask_models(params, default="demo/large")
    answered = _ask_endpoint(models, _ask_judge(task, params))
    prompt_files = list(answered["prompts"]) or ["plain.txt", "careful.txt"]
    if len(prompt_files) < 2:
        raise click.UsageError("--prompt is given once for each prompt: two or more.")
    for file in answered["prompts"]:
        if not Path(file).is_file():
            raise ConfigurationError(f"The prompt '{file}' does not exist.")
    suite = compose_suite(
        task,
        models,
        answered,
        {"prompts": prompt_files},
        comments=COMMENTS,
    )
    own_prompt = _prompt_of(suite)
    texts = [own_prompt, _careful(own_prompt)]
    if not answered["prompts"]:
        for file, text in zip(prompt_files, texts, strict=True):
            if not Path(file).exists():
                suite.files[file] = text
    write_files(suite.files, answered["replace"])
    names = _run_names(suite, [Path(file).stem for file in prompt_files])
    next_steps = [
        f"put your own prompts into {' and '.join(prompt_files)}",
        suite_command(suite),
        f"evalwright compare {' '.join(names)} --flips 6",
        f"evalwright view {' '.join(names)}",
    ]
    return _start(suite, answered, next_steps)


def _ask_judge(task: str, params: Params) -> Params:
    """Ask for a judge, and for a rubric if there is one and the task is a file of questions."""
    from evalwright.tasks.datasets.formats import SUFFIXES

    if params["judges"]:
        return params
    judge = ask(
        "Which judge (provider/name; none: rules compare answers with the reference)",
        NO_JUDGE,
        "--judge",
        lambda answer: check_models([answer] if answer != NO_JUDGE else []),
        when_unasked=NO_JUDGE,
    )
    if judge == NO_JUDGE:
        return params
    rubric = params["rubric"]
    if not rubric and Path(task).suffix.lower() in SUFFIXES:
        question = "What a good answer does, for the judge"
        rubric = (ask(question, DEFAULT_RUBRIC, "--rubric", lambda answer: None),)
    return {**params, "judges": (judge,), "rubric": rubric}


def _ask_endpoint(models: Sequence[str], params: Params) -> Params:
    """Ask where models behind OpenAI's interface listen, unless -M says it."""
    is_named = any("base_url" in argument for argument in params["arguments"]) or any(
        model.partition("/")[2].startswith(("http://", "https://")) for model in models
    )
    if is_named or not all(model.startswith("openai/") for model in models):
        return params
    address = ask(
        "The endpoint's address, such as http://127.0.0.1:8000/v1 (openai: OpenAI's own)",
        "openai",
        "-M base_url=ADDRESS",
        _check_address,
        when_unasked="openai",
    )
    if address == "openai":
        return params
    arguments = (*params["arguments"], f"base_url={address}")
    return {**params, "arguments": arguments}


def _check_address(answer: str) -> None:
    if answer != "openai" and not answer.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"'{answer}' is no address: it begins with http:// or https://."
        )


def _prompt_of(suite: ComposedSuite) -> str:
    """Return the prompt of the suite's task, as a template."""
    import yaml

    from evalwright.tasks.loading import find_definitions

    (task,) = suite.tasks
    if task in suite.files:
        definition = yaml.safe_load(suite.files[task])
    else:
        first_definition = next(iter(find_definitions(task)))
        document = getattr(first_definition, "document", None)
        definition = document.value if document else {}
    prompt = definition.get("prompt")
    user = prompt.get("user") if isinstance(prompt, Mapping) else None
    return user if isinstance(user, str) else "{{ input }}"


def _careful(prompt: str) -> str:
    """Return the prompt with an instruction before it."""
    if prompt.startswith("{{ passages"):
        return f"Use only this text: {prompt}"
    return f"Answer in as few words as possible.\n\n{prompt}"


def _set_up_leaderboard(params: Params) -> int:
    suite = compose_suite(
        ask_task(params, default="factual-choice"),
        ask_models(params),
        params,
        suite_name="board",
        comments=COMMENTS,
    )
    if not params["no_workflow"]:
        suite.files[WORKFLOW] = board_workflow(suite)
    write_files(suite.files, params["replace"])
    names = " ".join(_run_names(suite))
    next_steps = [
        suite_command(suite),
        f"evalwright leaderboard {names} --title 'Our board' --markdown leaderboard.md"
        " --html leaderboard.html",
    ]
    if not params["no_workflow"]:
        next_steps.append(
            f"commit {SUITE} and {WORKFLOW}: the workflow does both when they change"
        )
    return _start(suite, params, next_steps)


def _set_up_pull_request(params: Params) -> int:
    from evalwright.models.function_files import function_file

    is_new = not Path(SUITE).exists() or any(
        params[name] for name in ("task", "models", "judges", "rubric")
    )
    if is_new:
        suite = compose_suite(
            ask_task(params),
            ask_models(params, default="demo/large"),
            params,
            comments=COMMENTS,
        )
    else:
        suite = _read_suite()
    metric = _main_metric(suite)
    runs = [
        "released" if len(suite.models) == 1 else f"released-{name}"
        for name in _model_files(suite)
    ]
    command = suite_command(suite, "--limit", str(RELEASED_ITEMS), "--name", "released")
    suite.files[PULL_REQUEST_WORKFLOW] = _pull_request_workflow(suite, metric)
    is_plain = is_new or _has_tasks_and_models_alone()
    if is_plain:
        suite.files[TEST_FILE] = _test_text(suite, metric, runs, command)
    write_files(suite.files, params["replace"])
    function_files = [
        file.as_posix()
        for spec in suite.all_models.models
        if (file := function_file(spec.model)) is not None
    ]
    committed = ", ".join(sorted({*suite.files, *function_files}))
    next_steps = [f"commit {committed}, and open a pull request"]
    if is_plain:
        next_steps.append(f"python -m pytest {TEST_FILE}")
    else:
        say(
            f"Note: no {TEST_FILE} was written, because {SUITE} sets more than tasks,"
            " models and judges. See docs/pytest.md for a test of your own."
        )
    return _start(suite, params, next_steps, command)


def _read_suite() -> ComposedSuite:
    """Return the suite that is there, with no file to write."""
    from evalwright.evaluation.configuration_file import read_configuration
    from evalwright.evaluation.needs import extras_of, files_of

    needs_trust = False
    try:
        configuration = read_configuration(Path(SUITE))
    except ConfigurationError as error:
        # One that only its user may decide on; any other fault is raised again.
        needs_trust = True
        try:
            configuration = read_configuration(Path(SUITE), trust_file=SUITE)
        except ConfigurationError:
            raise error from None
    say(f"The suite is the {SUITE} that is there; --task and --model begin another.")
    return ComposedSuite(
        files={},
        tasks=configuration.tasks,
        models=configuration.models,
        roles=configuration.roles,
        unsure=configuration.unsure,
        panel=configuration.panel,
        name=configuration.name or "first",
        task_extras=tuple(extras_of(configuration)),
        watched=tuple(files_of(configuration)),
        needs_trust=needs_trust,
        n_prompts=len(configuration.prompts) or 1,
    )


def _has_tasks_and_models_alone() -> bool:
    """Return whether a Python call with tasks, models and judges is all that the suite says."""
    import yaml

    content = yaml.safe_load(Path(SUITE).read_text(encoding="utf-8"))
    return set(content) <= {"name", "tasks", "models", "roles", "panel", "unsure"}


def _main_metric(suite: ComposedSuite) -> str:
    """Return the label of the suite's first metric."""
    import yaml

    from evalwright.tasks.loading import find_definitions, names_like

    task = suite.tasks[0]
    if task in suite.files:
        metrics = yaml.safe_load(suite.files[task]).get("metrics")
    else:
        name = next(iter(names_like(task)), task)
        definition = next(iter(find_definitions(name)))
        document = getattr(definition, "document", None)
        metrics = document.value.get("metrics") if document else None
    first_metric = metrics[0] if metrics else "accuracy"
    if isinstance(first_metric, Mapping):
        return str(first_metric.get("name") or next(iter(first_metric)))
    return str(first_metric)


def _pull_request_workflow(suite: ComposedSuite, metric: str) -> str:
    from evalwright.evaluation.needs import extras_of
    from evalwright.reports.starter import template

    extras = sorted({*extras_of(suite.all_models), *suite.task_extras})
    lines = "".join(
        f"          {key}: ${{{{ secrets.{key} }}}}\n" for key in suite.keys
    )
    return template(
        "evaluate.yml",
        {
            "@METRIC@": metric,
            "@OPTIONS@": f"--trust-file {SUITE}" if suite.needs_trust else '""',
            "          @EXTRAS@\n": f"          extras: {','.join(extras)}\n"
            if extras
            else "",
            "        @KEYS@\n": f"        env:\n{lines}" if lines else "",
        },
    )


def _test_text(
    suite: ComposedSuite, metric: str, runs: Sequence[str], command: str
) -> str:
    from evalwright.reports.starter import template

    models = "".join(
        f"    ({json.dumps(run)}, {_python_model(spec)}),\n"
        for run, spec in zip(runs, suite.models, strict=True)
    )
    settings = ""
    if suite.roles:
        roles = ", ".join(
            f"{json.dumps(role)}: {_python_model(spec)}"
            for role, spec in suite.roles.items()
        )
        settings += f"\n        roles={{{roles}}},"
    if suite.panel:
        settings += f"\n        panel={json.dumps(suite.panel)},"
    if suite.unsure:
        settings += f"\n        unsure={json.dumps(suite.unsure)},"
    has_arguments = any(spec.arguments for spec in suite.all_models.models)
    return template(
        "test_evaluation.txt",
        {
            "@IMPORTS@": "ModelSpec, evaluate" if has_arguments else "evaluate",
            "@TASKS@": json.dumps(list(suite.tasks)),
            "@MODELS@": f"[\n{models}]",
            "@COMMAND@": f"{command} --replace",
            "@METRIC@": metric,
            "@SETTINGS@": settings,
        },
    )


def _python_model(spec: ModelSpec) -> str:
    """Write a model as a Python call takes it."""
    name = json.dumps(spec.model)
    return f"ModelSpec({name}, {dict(spec.arguments)!r})" if spec.arguments else name


def _set_up_paper(params: Params) -> int:
    names = params["runs"] or _ask_runs()
    if list(names) == [DEMO_RUN] and not Path("runs", DEMO_RUN).exists():
        names = _make_demo_runs()
    run_names = [run_name for name in names for run_name in _opened(name)]
    has_several = len(run_names) > 1
    write_files({PAPER_FILE: _paper_text(run_names)}, params["replace"])
    next_steps = [
        f"sh {PAPER_FILE}",
        shlex.join(["evalwright", "runs", "samples", run_names[0]])
        + " --where label=incorrect --limit 5",
        f"evalwright view {shlex.join(run_names)}",
    ]
    command = (
        f"evalwright compare {shlex.join(run_names)} --flips 10"
        if has_several
        else f"evalwright runs show {shlex.join(run_names)} --details"
    )
    if params["no_run"]:
        next_steps.insert(0, command)
        return _show_next(next_steps, 0)
    return _show_next(next_steps, run_here(command))


def _paper_text(run_names: Sequence[str]) -> str:
    from evalwright.reports.starter import template

    name = "paper.sh" if len(run_names) > 1 else "paper_of_one_run.sh"
    return template(name, {"@RUNS@": shlex.join(run_names)})


def _ask_runs() -> tuple[str, ...]:
    from evalwright.runs.reader import list_runs

    newest_runs = [run.name for run in list_runs(Path("runs"))][-2:]
    default = " ".join(newest_runs) or DEMO_RUN
    answer = ask(
        "Which runs (names or folders; inspect:logs takes in results of inspect;"
        f" {DEMO_RUN}: two small models are run first)",
        default,
        "--run",
        lambda answer: None if answer else _refuse_empty(),
    )
    return tuple(answer.split())


def _refuse_empty() -> None:
    raise ConfigurationError("Name one run or more.")


def _make_demo_runs() -> tuple[str, ...]:
    code = run_here(
        "evalwright run factual-closed-book --model demo/small --model demo/large"
        " --limit 60 --name look"
    )
    if code:
        raise click.exceptions.Exit(code)
    return ("look-demo-small", "look-demo-large")


def _opened(name: str) -> list[str]:
    """Return the run of this name, or the runs that results of another program become.

    Raises:
        EvalwrightError: there is no such run, or the results cannot be read.
    """
    from evalwright.api import open_run
    from evalwright.cli.foreign import IMPORTERS
    from evalwright.runs.reader import list_runs

    program, colon, path = name.partition(":")
    if not colon or Path(name).exists():
        open_run(name)
        return [name]
    check_known("program whose results can be taken in", [program], list(IMPORTERS))
    earlier_runs = {run.name for run in list_runs(Path("runs"))}
    code = run_here(shlex.join(["evalwright", "import", program, path]))
    if code:
        raise click.exceptions.Exit(code)
    imported_runs = [
        run.name for run in list_runs(Path("runs")) if run.name not in earlier_runs
    ]
    if not imported_runs:
        raise ConfigurationError(
            f"'{path}' was taken in before: name its runs (`evalwright runs list`)."
        )
    return imported_runs


def _model_files(suite: ComposedSuite) -> list[str]:
    from evalwright.evaluation.configuration import model_file_name

    return [model_file_name(spec) for spec in suite.models]


def _run_names(suite: ComposedSuite, prompts: Sequence[str] = ()) -> list[str]:
    """Return the names of the suite's runs, a run for each model and prompt."""
    configuration = Configuration(name=suite.name, models=suite.models)
    names = [configuration.run_name(spec) for spec in suite.models]
    if not prompts:
        return names
    return [f"{name}-{prompt}" for name in names for prompt in prompts]


def _start(
    suite: ComposedSuite,
    params: Params,
    next_steps: Sequence[str],
    command: str = "",
) -> int:
    """Run the first command where it costs nothing, or print it with its price."""
    command = command or suite_command(
        suite, "--limit", str(FIRST_ITEMS), "--name", f"{suite.name}-first"
    )
    if runs_for_free(suite) and not params["no_run"]:
        code = 2
        try:
            code = run_here(command + (" --replace" if params["replace"] else ""))
        finally:
            _show_next(next_steps, code)
        return code
    if not runs_for_free(suite):
        say_price(suite)
        show_secrets(suite)
        show_missing_keys(suite.keys)
        if suite.needs_trust:
            say(
                f"Note: {SUITE} says where prompts and keys go, or what Python is run, as you"
                " asked."
                " --trust-file says that you agree."
            )
    return _show_next([command, *next_steps], 0)


def _show_next(steps: Sequence[str], code: int) -> int:
    """Print what to do next, and return the exit code."""
    echo("")
    echo("Next:")
    for step in steps:
        echo(f"  {step}")
    return code


JOBS = {
    "model": Job(
        "a local model, on your own questions or a benchmark",
        TASK_OPTIONS,
        _set_up_model,
    ),
    "prompts": Job(
        "two prompts on one model or endpoint, with a judge or a reference",
        (*TASK_OPTIONS, "prompts"),
        _set_up_prompts,
    ),
    "leaderboard": Job(
        "a public leaderboard that a GitHub workflow keeps up to date",
        (*TASK_OPTIONS, "no_workflow"),
        _set_up_leaderboard,
    ),
    "pull-request": Job(
        "a gate for pull requests: a GitHub workflow and a test for pytest",
        TASK_OPTIONS,
        _set_up_pull_request,
    ),
    "paper": Job(
        "a closer look at runs you have: comparison, table and figures",
        ("runs",),
        _set_up_paper,
    ),
}
"""The jobs, by the name that --job takes, in the order of the menu."""
