"""The index of a folder of runs, built from the runs alone: the same runs give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalwright.analysis.factual import factual_shares, hardware_of, is_factual
from evalwright.core.errors import RunError
from evalwright.runs.confirmed import confirm
from evalwright.runs.reader import Run, open_run
from evalwright.runs.results import MetricResult
from evalwright.runs.writer import RUN_FILE

INDEX_JSON = "index.json"
INDEX_MD = "index.md"
MADE_BY = "Made by `evalwright runs index`; do not edit."


def build_index(folder: Path) -> dict[str, Any]:
    """Build the index of a folder: all its runs, oldest first, and those that cannot be read.

    Raises:
        RunError: there is no such folder.
    """
    if not folder.is_dir():
        raise RunError(
            f"The folder '{folder}' does not exist: name the folder of runs with --out."
        )
    runs = []
    damaged = []
    for file in sorted(folder.glob(f"*/{RUN_FILE}")):
        try:
            run = confirm(open_run(file.parent))
            runs.append((run, _index_record(run)))
        except RunError as error:
            why = str(error).replace(str(folder), folder.name)
            damaged.append({"folder": file.parent.name, "error": why})
    runs.sort(key=lambda pair: (str(pair[0].data["started"]), pair[0].folder.name))
    records = [record for _, record in runs]
    by_slice = _index_slices([run for run, _ in runs])
    return {
        "made_by": MADE_BY,
        "runs": records,
        "by_slice": by_slice,
        "damaged": damaged,
    }


def _index_record(run: Run) -> dict[str, Any]:
    configuration = run.data["configuration"]
    shares = factual_shares(run) if is_factual([run]) else {}
    record = {
        "folder": run.folder.name,
        "run": run.id,
        "model": run.shown_model,
        "label": run.label,
        "fingerprint": run.data["model"].get("fingerprint"),
        "hardware": hardware_of(run),
        "date": str(run.data["started"])[:10],
        "n_missing": run.n_missing,
        "n_unsure": run.n_unsure,
        "samples_sha256": run.data["samples"].get("sha256"),
        "tasks": {
            task.name: {
                "version": task.version,
                "n_samples": task.n_samples,
                "metrics": {
                    metric.label: _metric_numbers(metric) for metric in task.metrics
                },
            }
            for task in run.tasks
        },
        "shares": {name: share.as_dict() for name, share in shares.items()},
        "scoring": configuration.get("scoring"),
        "where": configuration.get("where"),
        "limit": configuration.get("limit"),
        "simulation": run.simulated,
    }
    return {
        key: content
        for key, content in record.items()
        if content not in (None, "", {}, False)
    }


def _metric_numbers(metric: MetricResult) -> dict[str, Any]:
    estimate = metric.estimate.as_dict()
    return {
        key: estimate[key]
        for key in ("value", "low", "high", "n", "n_missing", "method")
    }


def _index_slices(
    runs: Sequence[Run],
) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """Index metrics by slice: task -> metadata key -> value -> run's folder -> the main metric."""
    by_task: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for run in runs:
        for task in run.tasks:
            for key, by_value in task.slices.items():
                for slice_value, metrics in by_value.items():
                    if metrics:
                        keys = by_task.setdefault(task.name, {}).setdefault(key, {})
                        keys.setdefault(slice_value, {})[run.folder.name] = (
                            _metric_numbers(metrics[0])
                        )
    return {
        task: {
            key: dict(sorted(values.items())) for key, values in sorted(keys.items())
        }
        for task, keys in sorted(by_task.items())
    }
