"""Weights & Biases: logs a run to the project `where` (ENTITY/PROJECT for a team's).

Without `where` the project is $WANDB_PROJECT, else "evalwright". Set WANDB_MODE=offline to log
offline.
"""

from __future__ import annotations

import os

from evalwright.core.errors import ConfigurationError
from evalwright.trackers.facts import TrackedRun


def _check() -> None:
    """Raise ConfigurationError if there is no API key, for which it would prompt after the run."""
    import wandb

    if wandb.setup().settings.mode == "online" and not wandb.login(
        prompt=False, verify=False
    ):
        raise ConfigurationError(
            "wandb has no key: run `wandb login`, or set WANDB_MODE=offline."
        )


def log(run: TrackedRun, where: str, before: str) -> str:
    """Write the run's settings and numbers, and its files as an artifact.

    The id is the run's key, so logging again updates the same W&B run.
    """
    import wandb

    entity, _, project = (
        where or os.environ.get("WANDB_PROJECT") or "evalwright"
    ).rpartition("/")
    options = {
        "console": "off",
        "silent": True,
        "disable_git": True,
        "disable_code": True,
    }
    quiet = wandb.Settings(**options, x_disable_stats=True)
    with wandb.init(
        project=project,
        entity=entity or None,
        id=run.key,
        name=run.name,
        job_type="evaluation",
        resume="allow",
        settings=quiet,
        reinit="create_new",
        config=dict(run.settings),
        allow_val_change=True,
    ) as logged:
        logged.summary.update({**run.numbers, **run.usage})
        artifact = wandb.Artifact(f"run-{run.key[:16]}", "evaluation")
        for file in run.files:
            artifact.add_file(str(file))
        logged.log_artifact(artifact)
    return run.key


log.check = _check  # type: ignore[attr-defined]
