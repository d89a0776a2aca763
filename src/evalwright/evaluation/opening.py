"""Opens models by name: Python objects, providers, batch jobs, a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from evalwright.core.errors import ConfigurationError
from evalwright.core.tasks import Scorer, Task
from evalwright.evaluation.configuration import ModelSpec
from evalwright.models.local.cluster import Cluster
from evalwright.models.model_interface import LocalModel, Model
from evalwright.models.oracle import OracleModel
from evalwright.models.remote.batch.opening import open_batched
from evalwright.scorers.registry import RUN_PROGRAMS


def open_under_test(
    spec: ModelSpec,
    objects: Mapping[tuple[str, int], Model],
    *,
    home: Path,
    batch: bool = False,
    cluster: Cluster | None = None,
) -> Model:
    """Open the model under test.

    Args:
        spec: names the model.
        objects: models that were passed as objects, by name and occurrence.
        home: the folder of the store, in which batch jobs are kept.
        batch: whether to ask it through its provider's batch jobs; its own argument may say so too.
        cluster: where local models have their replicas.

    Raises:
        UsageError: the model cannot be opened.
    """
    model = _open(spec, objects, home, batch=batch)
    if cluster is None:
        return model
    passed = (spec.model, spec.occurrence) in objects
    if isinstance(model, LocalModel) and not passed:
        return _on_cluster(spec, model, cluster)
    reason = (
        "is an object of this process"
        if passed
        else "is answered by a server, which has its own replicas"
    )
    raise ConfigurationError(
        f"--on has no effect on '{model.name}': it {reason}. Leave out --on."
    )


def open_roles(
    specs: Mapping[str, ModelSpec],
    objects: Mapping[tuple[str, int], Model],
    *,
    home: Path,
    cluster: Cluster | None = None,
) -> dict[str, Model]:
    """Open the models that play roles beside the model under test, by role.

    Raises:
        UsageError: a model cannot be opened.
    """
    models = {}
    for role, spec in specs.items():
        model = _open(spec, objects, home)
        passed = (spec.model, spec.occurrence) in objects
        if cluster and isinstance(model, LocalModel) and model.heavy and not passed:
            model = _on_cluster(spec, model, cluster)
        models[role] = model
    return models


def check_roles(roles: Mapping[str, Model]) -> None:
    """Raise UsageError for a model that cannot play its role."""
    for role, model in roles.items():
        if isinstance(model, OracleModel):
            raise ConfigurationError(
                f"'{model.name}' is a simulation, and cannot be the model for the role"
                f" '{role}'."
            )
        model.check()


def _open(
    spec: ModelSpec,
    objects: Mapping[tuple[str, int], Model],
    home: Path,
    *,
    batch: bool = False,
) -> Model:
    passed = objects.get((spec.model, spec.occurrence))
    if passed is not None:
        return passed
    return open_batched(spec.model, spec.arguments, batch=batch, home=home)


def _on_cluster(spec: ModelSpec, model: LocalModel, cluster: Cluster) -> Model:
    for argument in ("replicas", "devices", "devices_per_replica"):
        if spec.arguments.get(argument) is not None:
            raise ConfigurationError(
                "With --on, --replicas says how many there are on the cluster: leave out"
                f" -M {argument}."
            )
    return cluster.open(spec.model, spec.arguments, model)


def place_scorers(task: Task, cluster: Cluster | None) -> Task:
    """Return the task with slow scorers that send no requests placed on the cluster."""
    if cluster is None:
        return task
    scorers = [
        (
            replace(scorer, function=cluster.scored(scorer.function, asks=scorer.asks))
            if _is_slow(scorer)
            else scorer
        )
        for scorer in task.scorers
    ]
    return replace(task, scorers=tuple(scorers))


def _is_slow(scorer: Scorer) -> bool:
    is_math = scorer.options.get("kind") == "math" and not scorer.asks
    return scorer.kind in RUN_PROGRAMS or is_math
