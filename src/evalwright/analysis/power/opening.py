"""What a plan goes by and for: runs with what they measured, a pilot that is really run, and models
with their tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.core.errors import AbilityError, ConfigurationError
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration import ModelSpec
from evalwright.evaluation.effects import check_effects
from evalwright.evaluation.evaluating import evaluate_settings
from evalwright.evaluation.objects import settings_from_python
from evalwright.evaluation.opening import open_roles, open_under_test
from evalwright.evaluation.planning import make_plan
from evalwright.evaluation.resolving import resolve
from evalwright.evaluation.running import run_blocking
from evalwright.evaluation.settings import Settings
from evalwright.evaluation.task_choice import task_choice
from evalwright.models.base import Model
from evalwright.runs.confirmed import confirm
from evalwright.runs.measurements import Measured, Pace, judges_share, measure
from evalwright.runs.progress import ProgressReporter
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE
from evalwright.tasks.filtering import filtered, read_conditions


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run with what it measured."""

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


def read_settings(tasks: Any, models: Any, named: dict[str, Any]) -> Settings:
    """The evaluation that is planned, as `evaluate` would have it. named: its other settings."""
    if named.get("limit") is not None:
        raise ConfigurationError(
            "A plan covers whole tasks: leave out limit. To measure on some items, use"
            " pilot."
        )
    settings = settings_from_python(tasks, models, named)
    if not settings.configuration.tasks:
        raise ConfigurationError(
            "Nothing to plan: name at least one task. `evalwright tasks list` shows"
            " them."
        )
    return settings


def pilot_runs(
    settings: Settings,
    pilot: int,
    progress: ProgressReporter | None,
) -> list[Run]:
    """The first items of the run that follows, really run.

    A pilot that was made before, without failures, is read.
    """
    settings = settings.having(limit=pilot, name="")
    models = settings.configuration.models
    made: dict[int, Run] = {}
    for place, planned in enumerate(make_plan(resolve(settings)).runs):
        if (planned.folder / RUN_FILE).exists() and not (
            run := open_run(planned.folder)
        ).n_missing:
            made[place] = run
    rest = [place for place in range(len(models)) if place not in made]
    if rest:
        left = settings.having(models=tuple(models[place] for place in rest))
        new = run_blocking(lambda: evaluate_settings(left, progress=progress))
        made |= dict(zip(rest, new, strict=True))
    return [made[place] for place in sorted(made)]


def opened(run: Run | str | Path, folder: str) -> Run:
    """The run at a folder, or of that name in `folder`. Raises UnknownName with the closest names."""
    return run if isinstance(run, Run) else open_run(run, Path(folder))


def measured_run(run: Run) -> MeasuredRun:
    """A run with what it measured. Raises RunError where its records cannot be read."""
    run = confirm(run)
    tasks, pace = measure(run)
    answered = sum(float(found.requests.sum()) for found in tasks.values())
    return MeasuredRun(run, tasks, pace, judges_share(run, answered))


def models_of(sources: Sequence[MeasuredRun]) -> tuple[ModelSpec, ...]:
    """The models of the runs, as their configurations name them."""
    if not sources:
        raise ConfigurationError(
            "No models given. Name at least one with --model, for example demo/small."
        )
    specs = {}
    for source in sources:
        for named in source.run.data["configuration"].get("models", ()):
            given: Mapping[str, Any] = (
                {"model": named} if isinstance(named, str) else named
            )
            name = str(given.get("model", source.run.model))
            specs[source.run.model] = ModelSpec(
                name, given.get("arguments", {}), given.get("label", "")
            )
    return tuple(specs.values())


def planned_models(settings: Settings) -> list[PlannedModel]:
    """The models under test, each with the tasks as it would get them.

    Raises UsageError; opens no weights.
    """
    configuration = settings.configuration
    if not configuration.models:
        raise ConfigurationError(
            "The runs name no model: name one with --model, for example demo/small."
        )
    loaded: dict[bool, list[Task]] = {}
    out = []
    for spec in configuration.models:
        model = open_under_test(spec, settings.models)
        chat = "chat" in model.abilities
        if chat not in loaded:
            loaded[chat] = _tasks_of(settings, chat)
        for task in loaded[chat]:
            missing = task.strategy.needs - model.abilities
            if missing:
                raise AbilityError(
                    f"The task '{task.name}' needs a model that can do:"
                    f" {', '.join(sorted(missing))}; '{model.name}' can do:"
                    f" {', '.join(sorted(model.abilities))}."
                )
        out.append(PlannedModel(spec, model, loaded[chat]))
    check_effects(
        [one.model for one in out],
        open_roles(configuration.roles, settings.models, home=configuration.home),
        [task for one in out for task in one.tasks],
        max_resident=configuration.max_resident,
        prompt_format=configuration.format,
        objects=settings.tasks,
    )
    names = [one.model.name for one in out]
    if len(set(names)) != len(names):
        raise ConfigurationError(
            f"The model '{max(names, key=names.count)}' is named twice."
        )
    return out


def _tasks_of(settings: Settings, chat: bool) -> list[Task]:
    loaded = task_choice(settings).load(chat)
    conditions = read_conditions(settings.configuration.where)
    out = list(filtered(loaded, conditions).tasks)
    for task in out:
        if not len(task.samples):
            raise ConfigurationError(
                f"The task '{task.name}' has no samples, so there is nothing to plan."
            )
    return out
