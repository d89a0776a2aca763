"""What a plan is based on: earlier runs, a pilot that is really run, models and their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import AbilityError, ConfigurationError
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.evaluation.effects import check_effects
from evalwright.evaluation.objects import Objects
from evalwright.evaluation.planning import load_all, make_plans
from evalwright.evaluation.running import evaluate_configuration, run_blocking
from evalwright.models.base import Model
from evalwright.runs.confirmed import confirm
from evalwright.runs.measurements import Measured, Pace, judges_share, measure
from evalwright.runs.progress import ProgressReporter
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE
from evalwright.tasks.filtering import filtered, read_conditions


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run with what it measured by task."""

    run: Run
    tasks: Mapping[str, Measured]
    pace: Pace
    judges: float


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """A model under test with the tasks as it would get them."""

    spec: ModelSpec
    model: Model
    tasks: Sequence[Task]


def make_configuration(
    tasks: Any, models: Any, objects: Objects, settings: dict[str, Any]
) -> Configuration:
    """The planned evaluation, as `evaluate` would run it."""
    if settings.get("limit") is not None:
        raise ConfigurationError(
            "A plan covers whole tasks: leave out limit. To measure on some items, use"
            " pilot."
        )
    configuration = objects.configuration(tasks, models, settings)
    if not configuration.tasks:
        raise ConfigurationError(
            "Nothing to plan: name at least one task. `evalwright tasks list` shows"
            " them."
        )
    return configuration


def run_pilot(
    configuration: Configuration,
    pilot: int,
    objects: Objects,
    progress: ProgressReporter | None,
) -> list[Run]:
    """Run the first items of the planned run; an earlier pilot without failures is reused."""
    pilot_configuration = replace(configuration, limit=pilot, name="")
    finished: dict[int, Run] = {}
    for index, planned in enumerate(make_plans(pilot_configuration, objects)):
        if (planned.folder / RUN_FILE).exists() and not (
            run := open_run(planned.folder)
        ).n_missing:
            finished[index] = run
    remaining = [
        index
        for index in range(len(pilot_configuration.models))
        if index not in finished
    ]
    if remaining:
        left = replace(
            pilot_configuration,
            models=tuple(pilot_configuration.models[index] for index in remaining),
        )
        new = run_blocking(
            lambda: evaluate_configuration(left, progress=progress, objects=objects)
        )
        finished |= dict(zip(remaining, new, strict=True))
    return [finished[index] for index in sorted(finished)]


def resolve_run(run: Run | str | Path, folder: str) -> Run:
    """The run itself, or the one in a folder or of that name. Raises UnknownName."""
    return run if isinstance(run, Run) else open_run(run, Path(folder))


def measure_run(run: Run) -> MeasuredRun:
    """A run with what it measured. Raises RunError for unreadable records."""
    run = confirm(run)
    tasks, pace = measure(run)
    answered = sum(float(measured.requests.sum()) for measured in tasks.values())
    return MeasuredRun(run, tasks, pace, judges_share(run, answered))


def list_models(sources: Sequence[MeasuredRun]) -> tuple[ModelSpec, ...]:
    """The models of the runs, as their configurations name them."""
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


def plan_models(configuration: Configuration, objects: Objects) -> list[PlannedModel]:
    """The models under test, each with its tasks, without opening weights. Raises UsageError."""
    if not configuration.models:
        raise ConfigurationError(
            "The runs name no model: name one with --model, for example demo/small."
        )
    objects.providers(configuration)
    loaded: dict[bool, list[Task]] = {}
    planned_models = []
    for spec in configuration.models:
        model = objects.open(spec)
        chat = "chat" in model.abilities
        if chat not in loaded:
            loaded[chat] = _load_tasks(configuration, chat, objects)
        for task in loaded[chat]:
            missing = task.strategy.needs - model.abilities
            if missing:
                raise AbilityError(
                    f"The task '{task.name}' needs a model that can do:"
                    f" {', '.join(sorted(missing))}; '{model.name}' can do:"
                    f" {', '.join(sorted(model.abilities))}."
                )
        planned_models.append(PlannedModel(spec, model, loaded[chat]))
    roles = {
        role: objects.open(spec, home=configuration.home)
        for role, spec in configuration.roles.items()
    }
    every = [task for planned_model in planned_models for task in planned_model.tasks]
    check_effects(
        configuration,
        [planned_model.model for planned_model in planned_models],
        roles,
        every,
        objects.tasks,
    )
    names = [planned_model.model.name for planned_model in planned_models]
    if len(set(names)) != len(names):
        raise ConfigurationError(
            f"The model '{max(names, key=names.count)}' is named twice."
        )
    return planned_models


def _load_tasks(
    configuration: Configuration, chat: bool, objects: Objects
) -> list[Task]:
    tasks = load_all(configuration, chat, objects)
    tasks = list(filtered(tasks, read_conditions(configuration.where)).tasks)
    for task in tasks:
        if not len(task.samples):
            raise ConfigurationError(
                f"The task '{task.name}' has no samples, so there is nothing to plan."
            )
    return tasks
