"""Tasks, models and functions that are given in Python, which a Configuration can only name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.private import home_folder
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration import (
    Configuration,
    ModelSpec,
    as_list,
    settings_of,
)
from evalwright.models.base import LocalModel, Model
from evalwright.models.functions import FunctionModel, function_model
from evalwright.models.local.cluster import Cluster
from evalwright.models.remote.batch.opening import open_batched
from evalwright.models.remote.providers import add_file
from evalwright.scorers.registry import RUN_PROGRAMS
from evalwright.tasks.index import TaskIndex
from evalwright.tasks.names import is_name
from evalwright.tasks.yaml_files import kind_of

TaskLike = str | Path | Task
ModelLike = str | ModelSpec | Model | Callable[..., Any]


UNDER_TEST = 0
"""The occurrence of a model under test; those that only play a role count from 1."""


def are_models(value: Any) -> bool:
    """Whether a first argument is what is evaluated, and no task."""
    several = as_list(value)
    return bool(several) and all(
        isinstance(one, Mapping | Model) or callable(one) for one in several
    )


def written_form(task: str) -> str:
    """A task whose answer is written, for a model that cannot score options: "kmmlu-generate" for
    "kmmlu", where there is one.
    """
    form = f"{task}-generate"
    is_listed = is_name(task) and form in TaskIndex().names()
    return form if is_listed else task


class Objects:
    """Task and Model objects passed in Python, which a Configuration can only name. cluster: where
    local models have their replicas.
    """

    cluster: Cluster | None = None

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.models: dict[tuple[str, int], Model] = {}
        """By name, and which of several of that name."""

    def task(self, task: TaskLike) -> str:
        """What a Configuration calls it.

        Raises ConfigurationError where another one has that name.
        """
        if isinstance(task, Task):
            if self.tasks.setdefault(task.name, task) is not task:
                raise _taken("tasks", task.name)
            return task.name
        if not isinstance(task, str | Path):
            raise ConfigurationError(
                f"A task is a name, a file or a Task, not {kind_of(task)}."
            )
        return str(task)

    def model(self, model: ModelLike, *, role: bool = False) -> ModelSpec:
        """What a Configuration calls it.

        Args:
            model: the model, however it is given.
            role: whether it plays a role beside the models under test, such as the judge. Then it
            may have the name of
                another one, at another address: runs and boards are named after the models under
                test alone.

        Raises:
            ConfigurationError: it is no model, or another model under test has that name.
        """
        if isinstance(model, ModelSpec):
            return model
        if isinstance(model, FunctionModel) or (
            callable(model) and not isinstance(model, Model)
        ):
            model = self._function(model)
        if isinstance(model, Model):
            return self._spec_of(model, role)
        if not isinstance(model, str):
            raise ConfigurationError(
                "A model is a name, a ModelSpec, a Model or a function, not"
                f" {kind_of(model)}."
            )
        return ModelSpec(model)

    def _spec_of(self, model: Model, role: bool) -> ModelSpec:
        """The object by its name.

        Equal ones are one, so that its weights are loaded and its server is paced once.
        """
        namesakes = self._named(model.name)
        for occurrence, namesake in namesakes.items():
            equal = model.is_known and namesake.fingerprint == model.fingerprint
            if (equal or namesake is model) and (role or occurrence == UNDER_TEST):
                return ModelSpec(model.name, occurrence=occurrence)
        if not role and UNDER_TEST in namesakes:
            raise _taken("models", model.name)
        number = max(namesakes, default=UNDER_TEST) + 1 if role else UNDER_TEST
        self.models[model.name, number] = model
        return ModelSpec(model.name, occurrence=number)

    def _named(self, name: str) -> dict[int, Model]:
        return {
            number: model
            for (known, number), model in self.models.items()
            if known == name
        }

    def _function(self, function: Callable[..., Any]) -> FunctionModel:
        """The function as a model of this evaluation alone; the same one where it was named before,
        as in a role.
        """
        made = (
            function.fresh()
            if isinstance(function, FunctionModel)
            else function_model(function)
        )
        for known in self._named(made.name).values():
            if isinstance(known, FunctionModel) and known.function is made.function:
                return known
        return made

    def configuration(
        self, tasks: Any, models: Any, settings: Mapping[str, Any]
    ) -> Configuration:
        """The evaluation of a call in Python. Raises UsageError for what cannot be part of one."""
        rest = dict(settings)
        roles = rest.pop("roles", None) or {}
        if not isinstance(roles, Mapping):
            raise ConfigurationError(
                f"'roles' must be a mapping of roles to models, not {kind_of(roles)}."
            )
        models_under_test = tuple(self.several(models))
        return Configuration(
            roles={
                str(role): self.model(model, role=True) for role, model in roles.items()
            },
            tasks=tuple(self.task(task) for task in as_list(tasks)),
            models=models_under_test,
            **settings_of(rest),
        )

    def several(self, models: Any) -> list[ModelSpec]:
        """As `model`, for one, several, or a mapping from names to models."""
        if not isinstance(models, Mapping):
            return [self.model(one) for one in as_list(models)]
        return [self._labelled(str(name), one) for name, one in models.items()]

    def _labelled(self, name: str, model: ModelLike) -> ModelSpec:
        if callable(model) and not isinstance(model, Model):
            model = function_model(model, name=name)
        elif isinstance(model, FunctionModel):
            model = model.fresh(name)
        return replace(self.model(model), label=name)

    def providers(self, configuration: Configuration) -> None:
        """Take in the providers and prices that the configuration's own files hold.

        Raises ConfigurationError.
        """
        for file in configuration.plugins:
            add_file(Path(file))

    def open(
        self,
        spec: ModelSpec,
        *,
        batch: bool = False,
        home: str | None = None,
        role: bool = False,
    ) -> Model:
        """The model, through its provider's batches where `batch` or its own argument of that name
        says so, or on the cluster.

        role: whether it plays one beside the model under test.
        """
        given = self.models.get((spec.model, spec.occurrence))
        made = given or open_batched(
            spec.model, spec.arguments, batch=batch, home=home_folder(home)
        )
        if self.cluster is None:
            return made
        if isinstance(made, LocalModel) and given is None and (made.heavy or not role):
            if spec.arguments.get("replicas") is not None:
                raise ConfigurationError(
                    "With --on, --replicas says how many there are on the cluster:"
                    " leave out -M replicas."
                )
            return self.cluster.open(spec.model, spec.arguments, made)
        if role:
            return made
        what = (
            "is an object of this process"
            if given
            else "is answered by a server, which has its own replicas"
        )
        raise ConfigurationError(
            f"--on has no effect on '{made.name}': it {what}. Leave out --on."
        )

    def placed(self, task: Task) -> Task:
        """The task with the scorers on the cluster, where there is one, that take long to compute
        and ask no model.
        """
        cluster = self.cluster
        if cluster is None:
            return task
        scorers = [
            (
                replace(one, function=cluster.scored(one.function, asks=one.asks))
                if one.kind in RUN_PROGRAMS
                or (one.options.get("kind") == "math" and not one.asks)
                else one
            )
            for one in task.scorers
        ]
        return replace(task, scorers=tuple(scorers))


def _taken(kind: str, name: str) -> ConfigurationError:
    return ConfigurationError(
        f"Two different {kind} are named '{name}': give one of them another name."
    )
