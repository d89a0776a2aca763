"""Records of runs made of simulated scores, by the package's own writer and tally."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evalwright import Run, open_run
from evalwright.core.errors import Failure
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.core.tasks import MetricSpec
from evalwright.runs import writer
from evalwright.runs.aggregation import TaskTally

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SCORER = "score"
METRIC = "accuracy"
"""A mean of scores between 0 and 1, what boards show for most tasks, graded ones too."""
WHY_UNSURE = "a reader might argue"
STARTED = "2026-11-20T09:30:00+00:00"
NO_REPLY = Failure(
    "server error",
    "provider",
    "HTTP 500: try again.",
    retryable=True,
    status=500,
    attempts=4,
)
"""A failure that is not the model's."""


@dataclass(frozen=True, eq=False)
class TaskScores:
    """What one model scored on one task.

    Args:
        readings: (items, draws), the best reading of each answer, 0 to 1.
        missing: (items, draws), where no reply came.
        unsure: (items, draws), where a careful reader might argue with the reading.
        clusters: (items,), which items share a passage; None where each stands alone.
    """

    readings: F64
    missing: Bools
    unsure: Bools
    clusters: I64 | None = None

    @property
    def scored(self) -> F64:
        """(items,), the mean reading of each item, nan where every draw is missing."""
        there = ~self.missing
        count = there.sum(axis=1)
        total = np.where(there, self.readings, 0.0).sum(axis=1)
        means: F64 = np.divide(
            total, count, out=np.full(len(count), np.nan), where=count > 0
        )
        return means


def task_scores(
    readings: npt.ArrayLike,
    *,
    missing: npt.ArrayLike | None = None,
    unsure: npt.ArrayLike | None = None,
    clusters: I64 | None = None,
) -> TaskScores:
    """Scores of a task from arrays of shape (items,) or (items, draws)."""
    by_draw = np.atleast_2d(np.asarray(readings, dtype=np.float64).T).T
    none = np.zeros(by_draw.shape, dtype=bool)

    def flags(marks: npt.ArrayLike | None) -> Bools:
        if marks is None:
            return none
        return np.broadcast_to(
            np.atleast_2d(np.asarray(marks, dtype=bool).T).T, by_draw.shape
        )

    return TaskScores(by_draw, flags(missing), flags(unsure), clusters)


def write_run(folder: Path, name: str, tasks: Mapping[str, TaskScores]) -> Run:
    """Write a run of one simulated model and open it.

    Args:
        folder: where run folders are written.
        name: the run's and the model's name.
        tasks: its scores, by task.
    """
    spec = MetricSpec(METRIC, METRIC, SCORER)
    task_records: list[dict[str, Any]] = []
    position = 0
    with writer.RunWriter(folder / name) as run_writer:
        for task, scores in tasks.items():
            tally = TaskTally([SCORER], [])
            for record in _records(task, scores):
                run_writer.add(position, record)
                tally.add(record)
                position += 1
            task_records.append(
                tally.result(task, "1", [spec]).as_dict() | task_definition(task, spec)
            )
        run_writer.finish(run_record(name, list(tasks), task_records))
    return open_run(folder / name)


def _records(task: str, scores: TaskScores) -> list[SampleRecord]:
    clusters = [] if scores.clusters is None else scores.clusters.tolist()
    records = []
    readings = scores.readings.tolist()
    missing = scores.missing.tolist()
    unsure = scores.unsure.tolist()
    for index, by_draw in enumerate(readings):
        sample = _sample(task, index, clusters[index] if clusters else -1)
        for draw, reading in enumerate(by_draw):
            outcome = _outcome(reading, missing[index][draw], unsure[index][draw])
            records.append(SampleRecord(task, index, draw, sample, **outcome))
    return records


@cache
def _sample(task: str, index: int, cluster: int) -> Sample:
    return Sample(
        id=f"item-{index}",
        input=f"Question {index} of {task}?",
        targets=("yes",),
        cluster=f"passage-{cluster}" if cluster >= 0 else "",
    )


_ANSWER = Answer(
    text="an answer",
    prompt="a prompt",
    responses=(Response("an answer", finish_reason="stop"),),
)


@cache
def _outcome(reading: float, missing: bool, unsure: bool) -> dict[str, Any]:
    """What a record holds of one answer beside its sample."""
    if missing:
        return {"answer": None, "scores": {}, "failure": NO_REPLY}
    label = "correct" if reading == 1 else "incorrect" if reading == 0 else ""
    score = Score(reading, label, unsure=WHY_UNSURE if unsure else "")
    return {"answer": _ANSWER, "scores": {SCORER: score}}


def task_definition(task: str, spec: MetricSpec) -> dict[str, Any]:
    """Return what a record says of a simulated task beside its numbers."""
    return {
        "description": f"Simulated questions of {task}.",
        "metadata": {},
        "definition": {"name": task},
        "content_hash": f"simulated {task}",
        "draws": 1,
        "slice_keys": [],
        "scorers": [{"name": SCORER, "kind": "exact-match", "options": {}}],
        "metric_specs": [
            {
                "label": spec.label,
                "kind": spec.kind,
                "scorer": spec.scorer,
                "options": {},
            }
        ],
    }


def run_record(
    name: str, tasks: list[str], task_records: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the record of a simulated run."""
    return {
        "schema": writer.SCHEMA_VERSION,
        "evalwright": "0.1.0",
        "id": name,
        "identity": f"simulated {name}",
        "started": STARTED,
        "seconds": 1.0,
        "model": {
            "name": f"simulated/{name}",
            "abilities": ["generate"],
            "fingerprint": f"simulated {name}",
        },
        "roles": {},
        "configuration": {
            "tasks": tasks,
            "models": [{"model": f"simulated/{name}"}],
            "seed": 0,
            "name": name,
        },
        "environment": {"python": "3.11", "platform": "simulated", "libraries": {}},
        "usage": {
            "requested": 0,
            "asked": 0,
            "stored": 0,
            "joined": 0,
            "failed": 0,
            "retries": 0,
            "usage": {},
            "cost": None,
            "failures": {},
        },
        "tasks": task_records,
    }
