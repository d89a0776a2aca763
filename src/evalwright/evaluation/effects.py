"""A setting that would do nothing is an error: what was set, why it has no effect here, what to
do.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

from evalwright.core.errors import ConfigurationError
from evalwright.core.tasks import Scorer, Task
from evalwright.evaluation.configuration import Configuration
from evalwright.models.base import LocalModel, Model
from evalwright.scorers.registry import BUNDLED, RUN_PROGRAMS, registry
from evalwright.tasks.images import BY_FLAG, VARIABLE


def check_effects(
    configuration: Configuration,
    models: Sequence[Model],
    roles: Mapping[str, Model],
    tasks: Sequence[Task],
    objects: Collection[str] = (),
) -> None:
    """Raise ConfigurationError for a setting that no model or task of an evaluation uses. objects:
    names of Task objects.
    """
    check_roles_used(roles, tasks)
    check_image_urls(tasks)
    if configuration.seed < 0:
        raise ConfigurationError(
            f"The seed must be 0 or more, not {configuration.seed}."
        )
    heavy = [
        model
        for model in (*models, *roles.values())
        if isinstance(model, LocalModel) and model.heavy
    ]
    most = configuration.max_resident
    if most < 1:
        raise ConfigurationError(
            f"--max-resident must be at least 1, not {most}: nothing could be loaded."
        )
    if most > 1 and len(heavy) < 2:
        raise ConfigurationError(
            f"--max-resident {most} has no effect: it is for several heavy local"
            f" models, and there {'is one' if heavy else 'is none'}. Leave it out."
        )
    if configuration.format != "auto" and all(task.name in objects for task in tasks):
        raise ConfigurationError(
            f"format={configuration.format!r} has no effect on tasks that are given as"
            " objects: leave it out."
        )


def check_image_urls(tasks: Sequence[Task]) -> None:
    """Raise ConfigurationError where images may be fetched and no task has any."""
    if os.environ.get(VARIABLE) == BY_FLAG and not any(
        task.definition.get("prompt", {}).get("images") for task in tasks
    ):
        raise ConfigurationError(
            "--image-urls has no effect: no task here has images (`prompt.images`)."
            " Leave it out."
        )


def check_roles_used(roles: Collection[str], tasks: Sequence[Task]) -> None:
    """Raise ConfigurationError for a role that no scorer or strategy of the tasks asks."""
    used = {role for task in tasks for role in task.roles}
    for role in roles:
        if role not in used:
            known = (
                f"their roles are: {', '.join(sorted(used))}"
                if used
                else "they use none"
            )
            raise ConfigurationError(
                "No scorer or strategy of"
                f" {', '.join(repr(task.name) for task in tasks[:6])} uses a model in"
                f" the role '{role}'; {known}. Leave out --role {role}=... (`roles` in"
                " a file), or add a scorer that uses it."
            )


def check_sandbox(chosen: str | None, scorers: Collection[Scorer]) -> None:
    """Raise ConfigurationError where a place for programs was chosen and no scorer runs any.

    Scorers of plug-ins may.
    """
    others = set(registry.names()) - BUNDLED.keys()
    if chosen and not any(
        scorer.kind in RUN_PROGRAMS or scorer.kind in others for scorer in scorers
    ):
        raise ConfigurationError(
            f"--sandbox {chosen} has no effect: no scorer here runs programs"
            f" ({', '.join(sorted(RUN_PROGRAMS))} does). Leave it out."
        )
