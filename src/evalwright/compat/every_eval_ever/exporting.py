"""Exports runs as records of Every Eval Ever, schema 0.3.0.

There is an aggregate for each task and for each average over tasks, and a row for each sample, draw
and scorer. The same run gives the same bytes. The schema has no place for a number that does not
exist or a sample that failed: both are left out and counted.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from evalwright import Message, Run, SampleRecord, Score, __version__
from evalwright.compat.recording import file_name, writing
from evalwright.extend import (
    ANSWERED,
    AS_PUBLISHED,
    BOUNDED_METRICS,
    LOWER_IS_BETTER_METRICS,
    ExportSummary,
    metric_range,
    require_scores,
    to_json,
    write_text,
)

SCHEMA = "0.3.0"
LABEL = "label"
EXPLANATION = "explanation"
DRAW = "draw"
CLUSTER = "cluster"
PARTS = "parts"
"""Our keys in a row's metadata; the sample's own keys follow `SAMPLE_PREFIX`."""
SAMPLE_PREFIX = "sample."
AVERAGE = "average"
"""Our key in the details of a source, for an average over tasks: how it is made."""
_DETAILS = ("n", "n_missing", "n_unsure", "n_clusters", "bounds")
_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens")
_LIBRARIES = {"inspect_ai": "inspect_ai", "lm-eval": "lm_eval"}


def export_eee(
    runs: Sequence[Run],
    output_folder: Path,
    organisation: str = "unknown",
    relationship: str = "other",
) -> ExportSummary:
    """Write the tasks of runs under `output_folder/data`, and return the files and notes.

    Raises RunError.
    """
    require_scores(runs, "export")
    files: list[Path] = []
    notes: list[str] = []
    source = {
        "source_name": "evalwright",
        "source_type": "evaluation_run",
        "source_organization_name": organisation,
        "evaluator_relationship": relationship,
    }
    for run in runs:
        for name, records in groupby(run.samples(), key=lambda record: record.task):
            aggregate = _aggregate(run, run.record(name), source)
            rows, n_unscored = _rows(aggregate, records)
            # A name in the form of version 4, as the schema wants it, made of the content.
            digest = hashlib.sha256(
                to_json([aggregate, rows]).encode("utf-8", "backslashreplace")
            ).digest()
            stem = str(uuid.UUID(bytes=digest[:16], version=4))
            folder = _folder_of(name, aggregate)
            text = "".join(f"{to_json(row)}\n" for row in rows)
            if rows:
                path = folder / f"{stem}_samples.jsonl"
                checksum = hashlib.sha256(
                    text.encode("utf-8", "backslashreplace")
                ).hexdigest()
                aggregate["detailed_evaluation_results"] = {
                    "format": "jsonl",
                    "file_path": path.as_posix(),
                    "hash_algorithm": "sha256",
                    "checksum": checksum,
                    "total_rows": len(rows),
                }
            with writing(output_folder / folder):
                if rows:
                    write_text(output_folder / path, text)
                    files.append(output_folder / path)
                write_text(
                    output_folder / folder / f"{stem}.json",
                    to_json(aggregate, indent=2) + "\n",
                )
            files.append(output_folder / folder / f"{stem}.json")
            if n_unscored:
                reason = (
                    "Answers without a score have no row, where one must have a score"
                )
                notes.append(f"{run.id}, {name}: {reason}: {n_unscored}.")
            if without := [
                metric["label"]
                for metric in run.record(name)["metrics"]
                if metric["value"] is None
            ]:
                notes.append(
                    f"{run.id}, {name}: left out, because they have no number:"
                    f" {', '.join(without)}."
                )
        files += _write_averages(run, source, output_folder)
    return ExportSummary(files, notes)


def _write_averages(
    run: Run, source: Mapping[str, Any], output_folder: Path
) -> Iterator[Path]:
    """Write an aggregate without samples for each of a run's averages over tasks."""
    for group in run.data.get("groups", ()):
        aggregate = _aggregate(run, _average_record(group), source)
        if not aggregate["evaluation_results"]:
            continue
        text = to_json(aggregate, indent=2) + "\n"
        digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()
        stem = str(uuid.UUID(bytes=digest[:16], version=4))
        file = output_folder / _folder_of(group["name"], aggregate) / f"{stem}.json"
        with writing(file):
            write_text(file, text)
        yield file


def _average_record(group: Mapping[str, Any]) -> dict[str, Any]:
    """Describe an average over tasks like a task, for `_aggregate`."""
    how = group.get("average") or "as published"
    tasks = ", ".join(group.get("tasks", ()))
    return {
        "name": group["name"],
        "version": "",
        "description": f"Average over tasks ({how}): {tasks}",
        "definition": {},
        "metric_specs": [],
        "metrics": group["metrics"],
        AVERAGE: how,
        "tasks": tasks,
    }


def _folder_of(name: str, aggregate: Mapping[str, Any]) -> Path:
    maker, _, model = aggregate["model_info"]["id"].partition("/")
    return Path("data", *map(_slug, (name, maker, model.replace("/", "_"))))


def model_id(name: str) -> str:
    """A model's name in the form ORGANISATION/MODEL."""
    plain = name.removeprefix("hf/")
    return (
        plain if "/" in plain.strip("/") else f"unknown/{plain.strip('/') or 'model'}"
    )


def _aggregate(
    run: Run, task: Mapping[str, Any], source: Mapping[str, Any]
) -> dict[str, Any]:
    imported = run.data["configuration"].get("imported") or {}
    made_by = _LIBRARIES.get(str(imported.get("format")), "evalwright")
    version = run.data["evalwright"] if made_by == "evalwright" else "unknown"
    version = (
        (run.data.get("environment") or {}).get("libraries", {}).get(made_by, version)
    )
    started = str(run.data["started"])
    stamp = str(datetime.fromisoformat(started).timestamp())
    name = model_id(run.shown_model)
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{task['name']}/{name}/{stamp}",
        "evaluation_timestamp": started,
        "retrieved_timestamp": stamp,
        "source_metadata": dict(source),
        "eval_library": {
            "name": made_by,
            "version": str(version),
            "additional_details": {
                "exported_by": f"evalwright {__version__}",
                "run": run.id,
                "identity": str(run.data.get("identity", "")),
            },
        },
        "model_info": {
            "name": run.shown_model,
            "id": name,
            "developer": name.partition("/")[0],
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
            },
        },
        "evaluation_results": [
            _evaluation_result(
                task,
                metric,
                as_published=run.is_as_published(task["name"], metric["label"]),
            )
            for metric in task["metrics"]
            if metric["value"] is not None
        ],
    }


def _range_of(
    kind: str,
    options: Mapping[str, Any],
    declared: Sequence[float | None] | None,
) -> tuple[float | str, float | str]:
    """Return the ends of a metric's values, as the schema has them."""
    if declared is None:
        if kind in BOUNDED_METRICS:
            return metric_range(kind, options)
        declared = (None, None)
    low, high = declared
    return "-Infinity" if low is None else low, "Infinity" if high is None else high


def _evaluation_result(
    task: Mapping[str, Any], metric: Mapping[str, Any], *, as_published: bool
) -> dict[str, Any]:
    spec_by_label = {spec["label"]: spec for spec in task["metric_specs"]}
    spec = spec_by_label.get(metric["label"], {"options": {}})
    options = spec["options"]
    low, high = _range_of(metric["kind"], options, spec.get("value_range"))
    uncertainty: dict[str, Any] = {"num_samples": metric["n"]}
    if as_published:
        metric = {
            **metric,
            "standard_error": None,
            "low": None,
            "high": None,
            "bounds": None,
        }
    if metric.get("standard_error") is not None:
        uncertainty["standard_error"] = {
            "value": metric["standard_error"],
            "method": metric["method"],
        }
    if metric["low"] is not None and metric["high"] is not None:
        interval = {
            "lower": metric["low"],
            "upper": metric["high"],
            "confidence_level": metric["level"],
        }
        uncertainty["confidence_interval"] = {**interval, "method": metric["method"]}
    details = {
        key: json.dumps(metric[key]) for key in _DETAILS if metric.get(key) is not None
    }
    if as_published:
        details["source"] = json.dumps(AS_PUBLISHED)
    answer = task["definition"].get("answer") or {}
    sampling = {key: answer[key] for key in _SAMPLING if answer.get(key) is not None}
    return {
        "evaluation_result_id": f"{task['name']}:{metric['label']}",
        "evaluation_name": task["name"],
        "source_data": {
            "dataset_name": task["name"],
            "source_type": "other",
            "additional_details": {
                "version": str(task["version"]),
                "content_hash": str(task.get("content_hash", "")),
                **{key: str(task[key]) for key in (AVERAGE, "tasks") if key in task},
            },
        },
        "metric_config": {
            "evaluation_description": str(task.get("description", "")),
            "metric_id": metric["kind"],
            "metric_name": metric["label"],
            "lower_is_better": (
                bool(metric.get("lower_is_better"))
                or metric["kind"] in LOWER_IS_BETTER_METRICS
            ),
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
            "additional_details": {
                "scorer": metric["scorer"],
                "options": json.dumps(options),
            },
        },
        "score_details": {
            "score": metric["value"],
            "details": details,
            "uncertainty": uncertainty,
        },
        "generation_config": {"generation_args": sampling},
    }


def _rows(
    aggregate: Mapping[str, Any], records: Iterable[SampleRecord]
) -> tuple[list[dict[str, Any]], int]:
    """Build a task's rows, and count the draws without one.

    A row names the first metric of its scorer.
    """
    first: dict[str, str] = {}
    for evaluation in aggregate["evaluation_results"]:
        first.setdefault(
            evaluation["metric_config"]["additional_details"]["scorer"],
            evaluation["evaluation_result_id"],
        )
    rows = []
    n_unscored = 0
    for record in records:
        scored = record.scores.items()
        sample_rows = [
            _row(aggregate, record, scorer, score, first.get(scorer))
            for scorer, score in scored
        ]
        rows += sample_rows
        n_unscored += not sample_rows
    return rows, n_unscored


def _row(
    aggregate: Mapping[str, Any],
    record: SampleRecord,
    scorer: str,
    score: Score,
    result_id: str | None,
) -> dict[str, Any]:
    sample = record.sample
    answer = record.answer
    turns = () if answer is None or isinstance(answer.prompt, str) else answer.prompt
    multi_turn = any(turn.role == "assistant" for turn in turns)
    replies = [response.text for response in answer.responses] if answer else []
    text = answer.text if answer else ""
    metadata = {
        f"{SAMPLE_PREFIX}{key}": value if isinstance(value, str) else to_json(value)
        for key, value in sample.metadata.items()
    }
    our_metadata = {
        LABEL: score.label,
        EXPLANATION: score.explanation,
        CLUSTER: sample.cluster,
        PARTS: score.parts and to_json(dict(score.parts)),
    }
    usage = answer.usage if answer else None
    row: dict[str, Any] = {
        "schema_version": SCHEMA,
        "evaluation_id": aggregate["evaluation_id"],
        "model_id": aggregate["model_info"]["id"],
        "evaluation_name": record.task,
        "evaluation_result_id": result_id or f"{record.task}:{scorer}",
        "sample_id": sample.id,
        "sample_hash": (
            hashlib.sha256(
                (sample.input + "".join(sample.targets)).encode(
                    "utf-8", "backslashreplace"
                )
            ).hexdigest()
        ),
        "interaction_type": "multi_turn" if multi_turn else "single_turn",
        "input": {
            "raw": sample.input,
            "formatted": (
                answer.prompt
                if answer and isinstance(answer.prompt, str) and answer.prompt
                else None
            ),
            "reference": list(sample.targets),
            "choices": list(sample.choices) or None,
        },
        "output": (
            None
            if multi_turn
            else {
                "raw": replies or [text],
                "reasoning_trace": (
                    [answer.reasoning] if answer and answer.reasoning else None
                ),
            }
        ),
        "messages": (
            list(_messages(turns, text, answer.reasoning if answer else ""))
            if multi_turn
            else None
        ),
        "answer_attribution": [
            {
                "turn_idx": len(turns) if multi_turn else 0,
                "source": "messages[turn_idx].content" if multi_turn else "output.raw",
                "extracted_value": text,
                "extraction_method": scorer,
                "is_terminal": True,
            }
        ],
        "evaluation": {
            "score": score.value,
            "is_correct": (
                score.label == "correct" or (not score.label and score.value >= 1)
            ),
        },
        "metadata": {
            DRAW: str(record.draw),
            **{key: value for key, value in our_metadata.items() if value},
            **metadata,
        },
    }
    if multi_turn:
        row["evaluation"]["num_turns"] = len(turns) + 1
    if usage is not None and answer is not None and answer.responses:
        row["token_usage"] = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "input_tokens_cache_read": usage.cached_tokens,
        }
        row["performance"] = {
            "latency_ms": 1000 * sum(response.latency for response in answer.responses)
        }
    if record.outcome != ANSWERED:
        row["error"] = record.outcome
    return row


def _messages(
    turns: Sequence[Message], text: str, reasoning: str
) -> Iterator[dict[str, Any]]:
    for turn_index, turn in enumerate(turns):
        yield {"turn_idx": turn_index, "role": turn.role, "content": turn.text}
    yield {
        "turn_idx": len(turns),
        "role": "assistant",
        "content": text,
        "reasoning_trace": reasoning or None,
    }


def _slug(text: str) -> str:
    return file_name(text.strip("."), "unknown")
