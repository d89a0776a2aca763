"""Settings of a call in Python: its tasks, models and functions get names in a Configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.evaluation.judge_setting import judge_fields
from evalwright.evaluation.settings import (
    Origin,
    Settings,
    as_list,
    fields_from_python,
)
from evalwright.models.functions import FunctionModel, function_model
from evalwright.models.local.cluster import Placement
from evalwright.models.model_interface import Model
from evalwright.models.remote.providers import add_file
from evalwright.tasks.yaml_files import kind_of

TaskLike = str | Path | Task
ModelLike = str | ModelSpec | Model | Callable[..., Any]


UNDER_TEST = 0
"""The occurrence of a model under test; models that only play a role count from 1."""


def are_models(argument: Any) -> bool:
    """Return whether a first argument has models, and not tasks."""
    arguments = as_list(argument)
    return bool(arguments) and all(
        isinstance(model, Mapping | Model) or callable(model) for model in arguments
    )


class Objects:
    """Task and Model objects by their names in a Configuration."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.models: dict[tuple[str, int], Model] = {}
        """By name and occurrence: which of several objects of that name it is."""

    def name_task(self, task: TaskLike) -> str:
        """Return the name of a task in a Configuration.

        Raises:
            ConfigurationError: another task has it.
        """
        if isinstance(task, Task):
            if self.tasks.setdefault(task.name, task) is not task:
                raise _name_taken("tasks", task.name)
            return task.name
        if not isinstance(task, str | Path):
            raise ConfigurationError(
                f"A task is a name, a file or a Task, not {kind_of(task)}."
            )
        return str(task)

    def name_model(self, model: ModelLike, *, role: bool = False) -> ModelSpec:
        """Return the name of a model in a Configuration.

        Args:
            model: a name, a ModelSpec, a Model or a function.
            role: whether it plays a role beside the models under test, such as the judge. Then it
                may have the name of another model, at another address, because runs and boards are
                named only after the models under test.

        Raises:
            ConfigurationError: it is not a model, or another model under test has that name.
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
        """Return the spec of a model object.

        Equal objects are one, so that their weights are loaded, and their server is paced, only
        once.
        """
        namesakes = self._named(model.name)
        for occurrence, namesake in namesakes.items():
            equal = model.is_known and namesake.fingerprint == model.fingerprint
            if (equal or namesake is model) and (role or occurrence == UNDER_TEST):
                return ModelSpec(model.name, occurrence=occurrence)
        if not role and UNDER_TEST in namesakes:
            raise _name_taken("models", model.name)
        number = max(namesakes, default=UNDER_TEST) + 1 if role else UNDER_TEST
        self.models[model.name, number] = model
        return ModelSpec(model.name, occurrence=number)

    def _named(self, name: str) -> dict[int, Model]:
        return {
            number: model
            for (model_name, number), model in self.models.items()
            if model_name == name
        }

    def _function(self, function: Callable[..., Any]) -> FunctionModel:
        """Return a function as a model of this evaluation alone.

        If it was named before, as in a role, it is the same model.
        """
        model = (
            function.fresh()
            if isinstance(function, FunctionModel)
            else function_model(function)
        )
        for namesake in self._named(model.name).values():
            if (
                isinstance(namesake, FunctionModel)
                and namesake.function is model.function
            ):
                return namesake
        return model

    def name_models(self, models: Any) -> list[ModelSpec]:
        """Return the names of one model, several, or a mapping from labels to models."""
        if not isinstance(models, Mapping):
            return [self.name_model(model) for model in as_list(models)]
        return [self._labelled(str(name), model) for name, model in models.items()]

    def _labelled(self, name: str, model: ModelLike) -> ModelSpec:
        if callable(model) and not isinstance(model, Model):
            model = function_model(model, name=name)
        elif isinstance(model, FunctionModel):
            model = model.fresh(name)
        return replace(self.name_model(model), label=name)


def settings_from_python(
    tasks: Any,
    models: Any,
    settings: Mapping[str, Any],
    *,
    on: Placement | None = None,
) -> Settings:
    """Make the settings of a call in Python.

    The providers and prices in files that the settings name are registered by it.

    Args:
        tasks: one or several names, files or Task objects.
        models: one or several names, ModelSpecs, Models or functions, or a mapping of labels to
            these.
        settings: the other fields of a Configuration; models of roles may be objects as well.
            `judge` is one or several models that score, or read unsure answers; a mapping with
            `panel` says how several decide.
        on: where local models have their replicas.

    Raises:
        UsageError: something cannot be part of an evaluation.
    """
    fields = dict(settings)
    roles = fields.pop("roles", None) or {}
    if not isinstance(roles, Mapping):
        raise ConfigurationError(
            f"'roles' must be a mapping of roles to models, not {kind_of(roles)}."
        )
    judge = fields.pop("judge", None)
    if judge is not None and judge not in ([], ()):
        judging = judge_fields(judge, roles)
        roles = judging["roles"]
        fields["panel"] = judging["panel"]
        if fields.get("unsure") is None:
            fields["unsure"] = judging["unsure"]
    objects = Objects()
    under_test = tuple(objects.name_models(models))
    configuration = Configuration(
        roles={
            str(role): objects.name_model(model, role=True)
            for role, model in roles.items()
        },
        tasks=tuple(objects.name_task(task) for task in as_list(tasks)),
        models=under_test,
        **fields_from_python(fields),
    )
    for plugin in configuration.plugins:
        add_file(Path(plugin))
    passed = {"tasks", "models", *settings}
    origins = {key: Origin("Python", key) for key in passed}
    return Settings(configuration, origins, objects.tasks, objects.models, on)


def _name_taken(noun: str, name: str) -> ConfigurationError:
    return ConfigurationError(
        f"Two different {noun} are named '{name}': give one of them another name."
    )
