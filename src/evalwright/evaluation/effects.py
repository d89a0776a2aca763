"""Rejects settings that would have no effect; the error says why, and what to do."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.tasks import Scorer, Task
from evalwright.metrics.tree import read_levels, read_tree
from evalwright.models.model_interface import LocalModel, Model
from evalwright.scorers.registry import BUNDLED, RUN_PROGRAMS, registry
from evalwright.tasks.images import BY_FLAG, VARIABLE


def check_effects(
    models: Sequence[Model],
    roles: Mapping[str, Model],
    tasks: Sequence[Task],
    *,
    max_resident: int,
    prompt_format: str,
    objects: Collection[str] = (),
) -> None:
    """Raise ConfigurationError for a setting that no model or task of an evaluation uses.

    Args:
        models: the models under test.
        roles: the models beside them, by role.
        tasks: the tasks of all models.
        max_resident: heavy local models in memory at a time.
        prompt_format: how prompts are rendered.
        objects: names of Task objects, which are rendered as they are.
    """
    check_roles_used(roles, tasks)
    check_image_urls(tasks)
    heavy = [
        model
        for model in (*models, *roles.values())
        if isinstance(model, LocalModel) and model.heavy
    ]
    if max_resident > 1 and len(heavy) < 2:
        raise ConfigurationError(
            f"--max-resident {max_resident} has no effect: it is for several heavy local"
            f" models, and there {'is one' if heavy else 'is none'}. Leave it out."
        )
    if prompt_format != "auto" and all(task.name in objects for task in tasks):
        raise ConfigurationError(
            f"format={prompt_format!r} has no effect on tasks that are given as"
            " objects: leave it out."
        )


def check_image_urls(tasks: Sequence[Task]) -> None:
    """Raise ConfigurationError if images may be fetched but no task has any."""
    if os.environ.get(VARIABLE) == BY_FLAG and not any(
        task.definition.get("prompt", {}).get("images") for task in tasks
    ):
        raise ConfigurationError(
            "--image-urls has no effect: no task here has images (`prompt.images`)."
            " Leave it out."
        )


def check_roles_used(roles: Collection[str], tasks: Sequence[Task]) -> None:
    """Raise ConfigurationError for a role that no scorer or strategy of the tasks uses."""
    used = {role for task in tasks for role in task.roles}
    for role in roles:
        if role not in used:
            usable = (
                f"their roles are: {', '.join(sorted(used))}"
                if used
                else "they use none"
            )
            to_read_unsure = (
                ", or name it with --judge ('judge' in a file) in place of the role: it"
                " then scores, or reads what rules are unsure of"
                if role.partition("-")[0] == "judge"
                else ""
            )
            raise ConfigurationError(
                "No scorer or strategy of"
                f" {', '.join(repr(task.name) for task in tasks[:6])} uses a model in"
                f" the role '{role}'; {usable}. Leave out --role {role}=... (`roles` in"
                f" a file), or add a scorer that uses it{to_read_unsure}."
            )


def check_tree(tree: Mapping[str, Any], tasks: Sequence[Task]) -> None:
    """Raise ConfigurationError for a tree that has none of the run's tasks.

    Raises:
        UnknownName: no task has a key of the tree, in its metadata or as a slice.
    """
    if not tree:
        return
    metadata = {task.name: task.metadata for task in tasks}
    slices = {key for task in tasks for key in task.slices}
    task_keys = {key for keys in metadata.values() for key in keys}
    for level in read_levels(tree):
        if level.key not in task_keys | slices:
            there = ", ".join(sorted(task_keys | slices)) or "none"
            raise UnknownName(
                "metadata key in tree",
                level.key,
                sorted(task_keys | slices),
                f"The tasks of this run have {there}.",
            )
    tree_tasks = read_tree(tree, tasks=metadata).tasks
    if tree_tasks and not {*tree_tasks} & metadata.keys():
        raise ConfigurationError(
            "The tree has none of the tasks of this run. It names"
            f" {', '.join(tree_tasks[:6])}; the run has {', '.join([*metadata][:6])}."
        )


def check_sandbox(chosen: str | None, scorers: Collection[Scorer]) -> None:
    """Raise ConfigurationError if a sandbox was chosen but no scorer runs programs.

    Scorers of plug-ins may run them.
    """
    others = set(registry.names()) - BUNDLED.keys()
    if chosen and not any(
        scorer.kind in RUN_PROGRAMS or scorer.kind in others for scorer in scorers
    ):
        raise ConfigurationError(
            f"--sandbox {chosen} has no effect: no scorer here runs programs"
            f" ({', '.join(sorted(RUN_PROGRAMS))} does). Leave it out."
        )
