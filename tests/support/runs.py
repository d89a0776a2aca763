"""Run folders made on the spot, through the same writer and tally as a real run, from nothing
but scores.

    run = make_run(tmp_path, model="demo/small", scores=[1, 0, None, 1])
    run = make_run(tmp_path, model="demo/large", scores={"factual": [1, 0], "arithmetic": [0.5, 1]})

A score of None is a failed sample, and a Score is taken as it is. The same arguments give the same
bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalwright.core.errors import Failure
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.core.tasks import MetricSpec
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.models.model_interface import fingerprint_of
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE, SCHEMA_VERSION, RunWriter

Scores = Sequence[float | Score | str | None]
"""None is a failed request, a text an answer that has no score."""

FAILED = Failure(
    "rate limited",
    "provider",
    "HTTP 429: slow down.",
    retryable=True,
    status=429,
    attempts=10,
)


@contextmanager
def edited(folder: str | Path) -> Iterator[dict[str, Any]]:
    """A run's `run.json`, to be changed."""
    file = Path(folder) / RUN_FILE
    data = json.loads(file.read_text(encoding="utf-8"))
    yield data
    file.write_text(json.dumps(data), encoding="utf-8")


def make_run(
    folder: Path,
    *,
    scores: Scores | Mapping[str, Scores],
    model: str = "demo/small",
    label: str = "",
    name: str = "",
    metric: str | Mapping[str, str] = "accuracy",
    more_metrics: Sequence[str] = (),
    metric_options: Mapping[str, Mapping[str, Any]] | None = None,
    domains: Sequence[str] = (),
    cluster_size: int = 0,
    failure: Failure = FAILED,
    started: str = "2026-11-20T09:30:00+00:00",
    seed: int = 0,
    limit: int | None = None,
    cost: float | None = None,
    text: str = "an answer",
    ids: str = "item-{}",
    version: str = "0.1.0",
) -> Run:
    """Write `folder/<name>` and open it. A list of scores is of the task "factual".

    metric: the main metric, for all tasks or by task; more_metrics: further kinds on the same
    scores. metric_options: by kind. domains: the samples' domains in turn. cluster_size: that many neighbours share a
    cluster. ids: the form of sample ids.
    """
    by_task: Mapping[str, Scores] = (
        scores if isinstance(scores, Mapping) else {"factual": scores}
    )
    name = name or "--".join(
        ("+".join(by_task), "".join(c if c.isalnum() else "-" for c in label or model))
    )
    tasks = []
    offset = 0
    with RunWriter(folder / name) as writer:
        for task, values in by_task.items():
            kind = metric if isinstance(metric, str) else metric.get(task, "accuracy")
            specs = [
                MetricSpec(
                    metric_kind,
                    metric_kind,
                    "score",
                    (metric_options or {}).get(metric_kind, {}),
                )
                for metric_kind in (kind, *more_metrics)
            ]
            tally = TaskTally(["score"], ["domain"])
            for index, value in enumerate(values):
                record = _record(
                    task, index, value, domains, cluster_size, failure, text, ids
                )
                writer.add(offset + index, record)
                tally.add(record)
            offset += len(values)
            tasks.append(
                {**tally.result(task, "1", specs).as_dict(), **_definition(task, specs)}
            )
        writer.finish(
            _data(
                name, model, label, by_task, tasks, started, seed, limit, cost, version
            )
        )
    return open_run(folder / name)


def _record(
    task: str,
    index: int,
    value: float | Score | str | None,
    domains: Sequence[str],
    cluster_size: int,
    failure: Failure,
    text: str,
    ids: str,
) -> SampleRecord:
    sample = Sample(
        id=ids.format(index),
        input=f"Question {index} of {task}?"
        if ids == "item-{}"
        else f"Question {ids.format(index)} of {task}?",
        targets=("yes",),
        metadata={"domain": domains[index % len(domains)]} if domains else {},
        cluster=f"cluster-{index // cluster_size}" if cluster_size else "",
    )
    if value is None:
        return SampleRecord(task, index, 0, sample, None, {}, failure=failure)
    response = Response(text=text, finish_reason="stop", usage=Usage(40, 8))
    if isinstance(value, str):
        silent_answer = Answer(text=value, prompt=sample.input, responses=(response,))
        return SampleRecord(task, index, 0, sample, silent_answer, {})
    answer = Answer(text=text, prompt=sample.input, responses=(response,))
    if isinstance(value, Score):
        return SampleRecord(task, index, 0, sample, answer, {"score": value})
    parts = (
        {"log_likelihood": float(value), "tokens": 10.0, "bytes": 44.0, "words": 8.0}
        if value < 0
        else {}
    )
    label = "" if value not in (0, 1) else "correct" if value else "incorrect"
    return SampleRecord(
        task,
        index,
        0,
        sample,
        answer,
        {"score": Score(float(value), label, parts=parts)},
    )


def _definition(task: str, specs: Sequence[MetricSpec]) -> dict[str, Any]:
    return {
        "description": f"Questions of {task}.",
        "metadata": {},
        "definition": {"name": task, "prompt": {"user": "{{ question }}"}},
        "content_hash": fingerprint_of({"task": ascii(task)}),
        "draws": 1,
        "slice_keys": ["domain"],
        "scorers": [{"name": "score", "kind": "exact", "options": {}}],
        "metric_specs": [
            {
                "label": spec.label,
                "kind": spec.kind,
                "scorer": spec.scorer,
                "options": dict(spec.options),
            }
            for spec in specs
        ],
    }


def _data(
    name: str,
    model: str,
    label: str,
    by_task: Mapping[str, Scores],
    tasks: list[dict[str, Any]],
    started: str,
    seed: int,
    limit: int | None,
    cost: float | None,
    version: str,
) -> dict[str, Any]:
    n_scored = sum(value is not None for values in by_task.values() for value in values)
    failed = sum(task["n_missing"] for task in tasks)
    fingerprint = fingerprint_of({"model": ascii(model), "label": ascii(label)})
    configuration = Configuration(
        tuple(by_task),
        (ModelSpec(model, label=label),),
        limit=limit,
        seed=seed,
        name=name,
    )
    return {
        "schema": SCHEMA_VERSION,
        "evalwright": version,
        "id": name,
        "identity": fingerprint_of({"name": ascii(name)}),
        "started": started,
        "seconds": 12.345,
        "model": {
            "name": model,
            "abilities": ["generate"],
            "fingerprint": fingerprint,
            **({"label": label} if label else {}),
        },
        "roles": {},
        "configuration": configuration.as_dict(),
        "environment": {
            "python": "3.11.9",
            "platform": "linux-x86_64",
            "libraries": {"numpy": "2.4.0"},
        },
        "usage": {
            "requested": n_scored + failed,
            "asked": n_scored,
            "stored": 0,
            "joined": 0,
            "failed": failed,
            "retries": 9 * failed,
            "usage": Usage(40 * n_scored, 8 * n_scored).as_dict(),
            "cost": cost,
            "failures": {},
        },
        "tasks": tasks,
    }


def rewrite(run: Run, change: Callable[[dict[str, Any], int], object]) -> Run:
    """The run with each line of its samples changed in place, as if it had been recorded so."""
    rows = [
        json.loads(line)
        for line in run.samples_file.read_text(encoding="utf-8").splitlines()
    ]
    for row_index, row in enumerate(rows):
        change(row, row_index)
    return rewritten(run, "".join(json.dumps(row) + "\n" for row in rows))


def rewritten(run: Run, samples: str | bytes) -> Run:
    """The run with other samples, as if they had been recorded."""
    data = samples.encode() if isinstance(samples, str) else samples
    run.samples_file.write_bytes(data)
    record = json.loads((run.folder / RUN_FILE).read_text(encoding="utf-8"))
    record["samples"]["sha256"] = hashlib.sha256(data).hexdigest()
    (run.folder / RUN_FILE).write_text(json.dumps(record), encoding="utf-8")
    return open_run(run.folder)
