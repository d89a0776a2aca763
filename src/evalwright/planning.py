"""Before anything is asked: what a configuration means, checked to the last row, as one plan per run."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.configuration import Configuration, ModelSpec
from evalwright.core.errors import AbilityError, ConfigurationError, RunError
from evalwright.core.tasks import Task
from evalwright.models.base import Model, fingerprint_of
from evalwright.models.registry import open_model
from evalwright.runs.reader import open_run
from evalwright.runs.writer import RUN_FILE
from evalwright.strategies.generate import TARGET
from evalwright.tasks.loading import load_tasks

TaskLike = str | Path | Task
ModelLike = str | ModelSpec | Model


@dataclass(slots=True)
class Plan:
    """One run before it is asked: everything is resolved and checked, and nothing has been spent."""

    id: str
    folder: Path
    model: Model
    spec: ModelSpec
    roles: Mapping[str, Model]
    tasks: Sequence[Task]
    orders: Sequence[array[int]]
    identity: str
    configuration: Mapping[str, Any]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def total(self) -> int:
        """Answers wanted: samples times draws, over all tasks."""
        return sum(len(order) * task.draws for task, order in zip(self.tasks, self.orders, strict=True))

    def units(self) -> Iterator[tuple[int, int, int, int]]:
        """(place in the record, task number, sample index, draw) in the order of asking."""
        offset = 0
        for number, (task, order) in enumerate(zip(self.tasks, self.orders, strict=True)):
            for index in order:
                for draw in range(task.draws):
                    yield offset + index * task.draws + draw, number, index, draw
            offset += len(task.samples) * task.draws


class Objects:
    """Task and Model objects passed in Python, which a Configuration can only name."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.models: dict[str, Model] = {}

    def task(self, task: TaskLike) -> str:
        """What a Configuration calls it. Raises ConfigurationError where another one has that name."""
        if isinstance(task, Task):
            if self.tasks.setdefault(task.name, task) is not task:
                raise ConfigurationError(
                    f"Two different tasks are named '{task.name}': give one of them another name."
                )
            return task.name
        return str(task)

    def model(self, model: ModelLike) -> ModelSpec:
        """What a Configuration calls it. Raises ConfigurationError where another one has that name."""
        if isinstance(model, ModelSpec):
            return model
        if isinstance(model, Model):
            if self.models.setdefault(model.name, model) is not model:
                raise ConfigurationError(
                    f"Two different models are named '{model.name}': give one of them another name."
                )
            return ModelSpec(model.name)
        return ModelSpec(model)

    def open(self, spec: ModelSpec) -> Model:
        return self.models.get(spec.model) or open_model(spec.model, spec.arguments)


def make_plans(configuration: Configuration, objects: Objects) -> list[Plan]:
    """Resolve and check everything, for every model, before anything is asked. Raises UsageError."""
    if not configuration.tasks:
        raise ConfigurationError(
            "Nothing to evaluate: name at least one task. `evalwright tasks list` shows them."
        )
    if not configuration.models:
        raise ConfigurationError(
            "Nobody to ask: name at least one model with --model, for example demo/small."
        )
    if configuration.limit is not None and configuration.limit < 1:
        raise ConfigurationError(f"The limit must be at least 1, not {configuration.limit}.")
    roles = {role: objects.open(spec) for role, spec in configuration.roles.items()}
    plans = [_make_plan(configuration, spec, roles, objects) for spec in configuration.models]
    seen: dict[Path, Plan] = {}
    for plan in plans:
        if plan.folder in seen:
            raise ConfigurationError(
                f"Two of the models would write the same run '{plan.id}': give them labels."
            )
        seen[plan.folder] = plan
    for plan in plans:
        _check_folder(plan, configuration.replace)
    return plans


def _make_plan(
    configuration: Configuration, spec: ModelSpec, roles: Mapping[str, Model], objects: Objects
) -> Plan:
    model = objects.open(spec)
    model.check()
    for other in roles.values():
        other.check()
    tasks = _load(configuration, "chat" in model.abilities, objects)
    for task in tasks:
        _check_abilities(task, model, roles)
    orders = [
        _order(len(task.samples), configuration.seed, configuration.limit, task.order == "file")
        for task in tasks
    ]
    identity = fingerprint_of(
        {
            "model": model.fingerprint,
            "roles": {role: other.fingerprint for role, other in roles.items()},
            "tasks": [[task.name, task.definition, task.samples.content_hash] for task in tasks],
            "limit": configuration.limit,
            "seed": configuration.seed,
        }
    )
    run_id = _run_id(configuration, spec, identity)
    return Plan(
        id=run_id,
        folder=Path(configuration.out) / run_id,
        model=model,
        spec=spec,
        roles=roles,
        tasks=tasks,
        orders=orders,
        identity=identity,
        configuration=replace(configuration, models=(spec,), name=run_id).as_dict(),
    )


def _load(configuration: Configuration, chat: bool, objects: Objects) -> list[Task]:
    tasks: list[Task] = []
    for name in configuration.tasks:
        if name in objects.tasks:
            tasks.append(objects.tasks[name])
        else:
            tasks.extend(
                load_tasks(
                    name,
                    prompt_format=configuration.format,
                    chat=chat,
                    dialect=dict(configuration.dialect),
                )
            )
    names = [task.name for task in tasks]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"The task '{name}' is asked for twice.")
    return tasks


def _check_abilities(task: Task, model: Model, roles: Mapping[str, Model]) -> None:
    missing = task.strategy.needs - model.abilities
    if missing:
        raise AbilityError(
            f"The task '{task.name}' needs a model that can do: {', '.join(sorted(missing))}; "
            f"'{model.name}' can do: {', '.join(sorted(model.abilities))}."
        )
    for scorer in task.scorers:
        for role in scorer.roles:
            if role not in roles and role != TARGET:
                raise ConfigurationError(
                    f"The scorer '{scorer.name}' of the task '{task.name}' asks a model in the role '{role}': "
                    f"name it with --role {role}=provider/name."
                )


def _order(n: int, seed: int, limit: int | None, as_filed: bool = False) -> array[int]:
    """A random order of the samples, fixed by the seed alone, or that of the file; a limit takes its beginning."""
    order = array("q", range(n))
    if not as_filed:
        random.Random(seed).shuffle(order)
    return order if limit is None else order[:limit]


def _run_id(configuration: Configuration, spec: ModelSpec, identity: str) -> str:
    model = slug(spec.label or spec.model)
    if configuration.name:
        return (
            slug(configuration.name)
            if len(configuration.models) == 1
            else f"{slug(configuration.name)}-{model}"
        )
    names = [Path(name).stem if name.endswith((".yaml", ".yml")) else name for name in configuration.tasks]
    tasks = slug("+".join(names))
    return f"{tasks[:60]}--{model[:60]}--{identity[:8]}"


def slug(text: str) -> str:
    """A text as a file name: letters, digits, dot, dash, plus and underscore; never empty, hidden or a way out."""
    kept = "".join(char if char.isalnum() or char in "._+-" else "-" for char in text)
    return kept.strip(".-") or "run"


def _check_folder(plan: Plan, may_replace: bool) -> None:
    if (plan.folder / RUN_FILE).exists() and not may_replace:
        try:
            old = open_run(plan.folder).data.get("identity")
        except RunError as error:
            raise ConfigurationError(
                f"{error} Choose another --name, or replace it with --replace."
            ) from error
        if old != plan.identity:
            raise ConfigurationError(
                f"The run '{plan.id}' in '{plan.folder.parent}' was made from another configuration (model, task, data, "
                f"seed or limit). Choose another --name, or replace it with --replace."
            )
