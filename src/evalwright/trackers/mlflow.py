"""MLflow: a run in the experiment $MLFLOW_EXPERIMENT_NAME or "evalwright". where: the tracking URI,
in place of MLflow's own.
"""

from __future__ import annotations

import os

from evalwright.trackers.facts import TrackedRun

MOST = 100
"""Numbers and settings that a server takes at once."""


def log(run: TrackedRun, where: str, before: str) -> str:
    """Write the run's settings, numbers and files; the id is MLflow's."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client = MlflowClient(where or None)
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "evalwright"
    started, ended = (int(1000 * time.timestamp()) for time in (run.started, run.ended))
    known = client.get_experiment_by_name(name)
    experiment = known.experiment_id if known else client.create_experiment(name)
    # Also one that was begun, and not finished.
    begun = client.search_runs([experiment], f"tags.evalwright_run = '{run.key}'")
    made = before or (begun[0].info.run_id if begun else "")
    if not made:
        tags = {"evalwright_run": run.key, "mlflow.source.name": "evalwright"}
        made = client.create_run(experiment, started, tags, run.name).info.run_id
    numbers = [
        Metric(key, value, ended, 0)
        for key, value in {**run.numbers, **run.usage}.items()
    ]
    settings = (
        [] if before else [Param(key, value) for key, value in run.settings.items()]
    )
    for start in range(0, max(len(numbers), len(settings)), MOST):
        client.log_batch(
            made, numbers[start : start + MOST], settings[start : start + MOST]
        )
    for file in run.files:
        client.log_artifact(made, str(file))
    client.set_terminated(made, "FINISHED", ended)
    return str(made)
