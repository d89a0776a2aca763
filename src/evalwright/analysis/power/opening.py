"""The sources of a plan: earlier runs, a pilot that is really run, models and their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.core.errors import AbilityError, ConfigurationError
from evalwright.core.private import home_folder
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration import ModelSpec, PromptSpec
from evalwright.evaluation.effects import check_effects
from evalwright.evaluation.evaluating import evaluate_settings
from evalwright.evaluation.objects import settings_from_python
from evalwright.evaluation.opening import open_roles, open_under_test
from evalwright.evaluation.origins import refuse_recorded_python
from evalwright.evaluation.planning import make_plan
from evalwright.evaluation.prompts import prompt_record, with_prompt
from evalwright.evaluation.resolving import resolve
from evalwright.evaluation.running import run_blocking
from evalwright.evaluation.settings import Settings
from evalwright.evaluation.task_choice import task_choice
from evalwright.models.model_interface import Model
from evalwright.runs.confirmed import confirm
from evalwright.runs.measurements import Measured, Pace, judges_share, measure
from evalwright.runs.progress import ProgressReporter
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE
from evalwright.tasks.filtering import filtered, read_conditions


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run with what it measured by task.

    Attributes:
        run: the run.
        tasks: the measurements by task.
        pace: how fast the run went.
        judges: requests to judges per request to the model under test.
    """

    run: Run
    tasks: Mapping[str, Measured]
    pace: Pace
    judges: float


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """A model under test with one prompt, and the tasks as it would get them.

    Attributes:
        name: what the plan calls it, with its prompt where there are several.
        spec: names the model.
        model: the model, without its weights.
        tasks: the tasks with this prompt.
        prompt: what the tasks have in place of their own prompt; None for that.
    """

    name: str
    spec: ModelSpec
    model: Model
    tasks: Sequence[Task]
    prompt: PromptSpec | None = None

    @property
    def is_one_of_prompts(self) -> bool:
        """Whether the plan has this model with other prompts, too."""
        return self.name != self.model.name

    def is_run_by(self, run: Run) -> bool:
        """Whether a run is of this model, and where prompts are compared of this prompt."""
        if run.model != self.model.name:
            return False
        if self.prompt is None or not self.is_one_of_prompts:
            return True
        recorded: Mapping[str, Any] = run.data.get("prompt") or {}
        return recorded.get("hash") == prompt_record(self.prompt)["hash"]


def make_settings(tasks: Any, models: Any, fields: dict[str, Any]) -> Settings:
    """Make the settings of the planned evaluation, as `evaluate` would.

    `fields` are its other settings.
    """
    if fields.get("limit") is not None:
        raise ConfigurationError(
            "A plan covers whole tasks: leave out limit. To measure on some items, use"
            " pilot."
        )
    return settings_from_python(tasks, models, fields)


def run_pilot(
    settings: Settings,
    pilot: int,
    progress: ProgressReporter | None,
) -> list[Run]:
    """Run the first items of the planned run; an earlier pilot without failures is reused.

    Returns:
        One run per model and prompt, in the order of the models.
    """
    settings = settings.having(limit=pilot, name="")
    models = settings.configuration.models
    planned_runs = make_plan(resolve(settings)).runs
    n_prompts = len(planned_runs) // len(models)
    finished: dict[int, Run] = {}
    for index, planned in enumerate(planned_runs):
        if not (planned.folder / RUN_FILE).exists():
            continue
        run = open_run(planned.folder)
        if not run.n_missing:
            finished[index] = run
    # A model of which one prompt is left is asked with all: stored answers cost nothing.
    remaining = sorted(
        {
            index // n_prompts
            for index in range(len(planned_runs))
            if index not in finished
        }
    )
    if remaining:
        left = settings.having(models=tuple(models[number] for number in remaining))
        new = run_blocking(lambda: evaluate_settings(left, progress=progress))
        places = [
            number * n_prompts + prompt_number
            for number in remaining
            for prompt_number in range(n_prompts)
        ]
        finished |= dict(zip(places, new, strict=True))
    return [finished[index] for index in sorted(finished)]


def resolve_run(run: Run | str | Path, folder: str) -> Run:
    """Return the run itself, or open the one in a folder or of that name. Raises UnknownName."""
    return run if isinstance(run, Run) else open_run(run, Path(folder))


def measure_run(run: Run) -> MeasuredRun:
    """Measure a run. Raises RunError for unreadable records."""
    run = confirm(run)
    tasks, pace = measure(run)
    answered = sum(float(measured.requests.sum()) for measured in tasks.values())
    return MeasuredRun(run, tasks, pace, judges_share(run, answered))


def list_models(sources: Sequence[MeasuredRun]) -> tuple[ModelSpec, ...]:
    """List the models of the runs, as their configurations name them."""
    if not sources:
        raise ConfigurationError(
            "No models given. Name at least one with --model, for example demo/small."
        )
    specs = {}
    for source in sources:
        for named in source.run.data["configuration"].get("models", ()):
            fields: Mapping[str, Any] = (
                {"model": named} if isinstance(named, str) else named
            )
            name = str(fields.get("model", source.run.model))
            refuse_recorded_python(name, "--model ")
            specs[source.run.model] = ModelSpec(
                name, fields.get("arguments", {}), fields.get("label", "")
            )
    return tuple(specs.values())


def plan_models(settings: Settings) -> list[PlannedModel]:
    """Open the models under test without their weights, each with its tasks, for each prompt.

    Raises:
        UsageError: a model or task cannot be used.
    """
    configuration = settings.configuration
    if not configuration.models:
        raise ConfigurationError(
            "The runs name no model: name one with --model, for example demo/small."
        )
    home = home_folder(configuration.home)
    prompts = configuration.prompts or (None,)
    loaded: dict[tuple[bool, int], list[Task]] = {}
    planned_models = []
    for spec in configuration.models:
        model = open_under_test(spec, settings.models, home=home)
        chat = "chat" in model.abilities
        for number, prompt in enumerate(prompts):
            if (chat, number) not in loaded:
                loaded[chat, number] = _load_tasks(settings, chat, prompt)
            tasks = loaded[chat, number]
            _check_abilities(model, tasks)
            name = model.name
            if prompt is not None and len(prompts) > 1:
                name = f"{model.name} · {prompt.name}"
            planned_models.append(PlannedModel(name, spec, model, tasks, prompt))
    check_effects(
        [planned_model.model for planned_model in planned_models],
        open_roles(configuration.roles, settings.models, home=home),
        [task for planned_model in planned_models for task in planned_model.tasks],
        max_resident=configuration.max_resident,
        prompt_format=configuration.format,
        objects=settings.tasks,
    )
    names = [planned_model.model.name for planned_model in planned_models]
    for name in names:
        if names.count(name) > len(prompts):
            raise ConfigurationError(f"The model '{name}' is named twice.")
    return planned_models


def _check_abilities(model: Model, tasks: Sequence[Task]) -> None:
    for task in tasks:
        missing = task.strategy.needs - model.abilities
        if missing:
            raise AbilityError(
                f"The task '{task.name}' needs a model that can do:"
                f" {', '.join(sorted(missing))}; '{model.name}' can do:"
                f" {', '.join(sorted(model.abilities))}."
            )


def _load_tasks(
    settings: Settings, chat: bool, prompt: PromptSpec | None
) -> list[Task]:
    if prompt is not None:
        configuration = with_prompt(settings.configuration, prompt)
        settings = settings.having(overrides=configuration.overrides)
    loaded = task_choice(settings).load(chat)
    conditions = read_conditions(settings.configuration.where)
    tasks = list(filtered(loaded, conditions).tasks)
    for task in tasks:
        if not len(task.samples):
            raise ConfigurationError(
                f"The task '{task.name}' has no samples, so there is nothing to plan."
            )
    return tasks
