"""The sources of a plan: earlier runs, a pilot that is really run, models and their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.core.errors import AbilityError, ConfigurationError
from evalwright.core.private import home_folder
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration import ModelSpec
from evalwright.evaluation.effects import check_effects
from evalwright.evaluation.evaluating import evaluate_settings
from evalwright.evaluation.objects import settings_from_python
from evalwright.evaluation.opening import open_roles, open_under_test
from evalwright.evaluation.planning import make_plan
from evalwright.evaluation.prompts import with_prompt
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
    """A model under test, with the tasks as it would get them."""

    spec: ModelSpec
    model: Model
    tasks: Sequence[Task]


def make_settings(tasks: Any, models: Any, fields: dict[str, Any]) -> Settings:
    """Make the settings of the planned evaluation, as `evaluate` would.

    `fields` are its other settings.
    """
    if fields.get("limit") is not None:
        raise ConfigurationError(
            "A plan covers whole tasks: leave out limit. To measure on some items, use"
            " pilot."
        )
    settings = settings_from_python(tasks, models, fields)
    if not settings.configuration.tasks:
        raise ConfigurationError(
            "Nothing to plan: name at least one task. `evalwright tasks list` shows"
            " them."
        )
    return settings


def run_pilot(
    settings: Settings,
    pilot: int,
    progress: ProgressReporter | None,
) -> list[Run]:
    """Run the first items of the planned run; an earlier pilot without failures is reused."""
    settings = settings.having(limit=pilot, name="")
    models = settings.configuration.models
    finished: dict[int, Run] = {}
    for index, planned in enumerate(make_plan(resolve(settings)).runs):
        if (planned.folder / RUN_FILE).exists() and not (
            run := open_run(planned.folder)
        ).n_missing:
            finished[index] = run
    remaining = [index for index in range(len(models)) if index not in finished]
    if remaining:
        left = settings.having(models=tuple(models[index] for index in remaining))
        new = run_blocking(lambda: evaluate_settings(left, progress=progress))
        finished |= dict(zip(remaining, new, strict=True))
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
            specs[source.run.model] = ModelSpec(
                name, fields.get("arguments", {}), fields.get("label", "")
            )
    return tuple(specs.values())


def plan_models(settings: Settings) -> list[PlannedModel]:
    """Open the models under test without their weights, each with its tasks. Raises UsageError."""
    configuration = settings.configuration
    if not configuration.models:
        raise ConfigurationError(
            "The runs name no model: name one with --model, for example demo/small."
        )
    home = home_folder(configuration.home)
    loaded: dict[bool, list[Task]] = {}
    planned_models = []
    for spec in configuration.models:
        model = open_under_test(spec, settings.models, home=home)
        chat = "chat" in model.abilities
        if chat not in loaded:
            loaded[chat] = _load_tasks(settings, chat)
        for task in loaded[chat]:
            missing = task.strategy.needs - model.abilities
            if missing:
                raise AbilityError(
                    f"The task '{task.name}' needs a model that can do:"
                    f" {', '.join(sorted(missing))}; '{model.name}' can do:"
                    f" {', '.join(sorted(model.abilities))}."
                )
        planned_models.append(PlannedModel(spec, model, loaded[chat]))
    check_effects(
        [planned_model.model for planned_model in planned_models],
        open_roles(configuration.roles, settings.models, home=home),
        [task for planned_model in planned_models for task in planned_model.tasks],
        max_resident=configuration.max_resident,
        prompt_format=configuration.format,
        objects=settings.tasks,
    )
    names = [planned_model.model.name for planned_model in planned_models]
    if len(set(names)) != len(names):
        raise ConfigurationError(
            f"The model '{max(names, key=names.count)}' is named twice."
        )
    return planned_models


def _load_tasks(settings: Settings, chat: bool) -> list[Task]:
    prompts = settings.configuration.prompts
    if len(prompts) > 1:
        raise ConfigurationError(
            "A plan is of one prompt: name one with --prompt. With several, requests"
            " and costs are those of each, added up."
        )
    if prompts:
        configuration = with_prompt(settings.configuration, prompts[0])
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
