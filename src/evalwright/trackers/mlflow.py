"""MLflow: logs a run to the experiment $MLFLOW_EXPERIMENT_NAME or "evalwright".

`where` is the tracking URI; it replaces MLflow's own.
"""

from __future__ import annotations

import os

from evalwright.trackers.facts import TrackedRun

MAX_BATCH = 100
"""Most numbers or settings that a server takes in one request."""


def log(run: TrackedRun, where: str, before: str) -> str:
    """Write the run's settings, numbers and files; return MLflow's id of the run."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client = MlflowClient(where or None)
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "evalwright"
    started, ended = (int(1000 * time.timestamp()) for time in (run.started, run.ended))
    existing = client.get_experiment_by_name(name)
    experiment = existing.experiment_id if existing else client.create_experiment(name)
    # Also finds a run whose logging was begun but not finished.
    begun = client.search_runs([experiment], f"tags.evalwright_run = '{run.key}'")
    run_id = before or (begun[0].info.run_id if begun else "")
    if not run_id:
        tags = {"evalwright_run": run.key, "mlflow.source.name": "evalwright"}
        run_id = client.create_run(experiment, started, tags, run.name).info.run_id
    numbers = [
        Metric(key, value, ended, 0)
        for key, value in {**run.numbers, **run.usage}.items()
    ]
    settings = (
        [] if before else [Param(key, value) for key, value in run.settings.items()]
    )
    for start in range(0, max(len(numbers), len(settings)), MAX_BATCH):
        client.log_batch(
            run_id,
            numbers[start : start + MAX_BATCH],
            settings[start : start + MAX_BATCH],
        )
    for file in run.files:
        client.log_artifact(run_id, str(file))
    client.set_terminated(run_id, "FINISHED", ended)
    return str(run_id)
