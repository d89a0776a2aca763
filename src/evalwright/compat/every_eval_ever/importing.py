"""Imports records of Every Eval Ever: one run for each aggregate, with the samples beside it.

A mean is computed again from the rows that name it; other numbers are kept as published.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright import (
    Answer,
    Message,
    Response,
    Run,
    Sample,
    SampleRecord,
    Score,
    Usage,
)
from evalwright.compat.every_eval_ever.exporting import (
    AVERAGE,
    CLUSTER,
    DRAW,
    EXPLANATION,
    LABEL,
    PARTS,
    SAMPLE_PREFIX,
)
from evalwright.compat.recording import (
    Recorded,
    as_list,
    as_mapping,
    check_depth,
    count_of,
    field,
    hash_files,
    nothing_at,
    number,
    read_whole,
    start_time,
    task_record,
)
from evalwright.extend import (
    ImportDestination,
    MetricResult,
    MetricSpec,
    Prompt,
    RunError,
    RunFacts,
    TaskResult,
    TaskTally,
    fingerprint_of,
    is_known_metric,
    parse_json,
    printable,
    read_json_lines,
)
from evalwright.statistics import Estimate

FORMAT = "every_eval_ever"
_ADVICE = "Name an aggregate of Every Eval Ever (.json), or a folder with some."
_MAX_BYTES = 1 << 28
_MEANS = {
    "accuracy": "accuracy",
    "exact_match": "accuracy",
    "exact-match": "accuracy",
    "mean": "mean",
}


class _Result(Recorded):
    """An entry of `evaluation_results`."""

    name: str = field("evaluation_name")
    result_id: str = field("evaluation_result_id", default="")
    source: dict[str, Any] = field("source_data", must="an object")
    metric: dict[str, Any] = field("metric_config", must="an object")
    details: dict[str, Any] = field("score_details", must="an object")

    @property
    def label(self) -> str:
        """The metric's name."""
        return str(
            self.metric.get("metric_name") or self.metric.get("metric_id") or "score"
        )

    @property
    def scorer(self) -> str:
        """The scorer's name, if the record has one."""
        id_prefix = self.result_id.rpartition(":")[0]
        return str(
            as_mapping(self.metric.get("additional_details")).get("scorer")
            or id_prefix
            or self.label
        )


class _Row(Recorded):
    """A row of the samples file."""

    evaluation: dict[str, Any] = field("evaluation", must="an object")
    name: str = field("evaluation_name")
    result_id: str = field("evaluation_result_id", default="")
    id: str = field("sample_id")
    input: dict[str, Any] = field("input", must="an object")
    output: dict[str, Any] = field("output", must="an object", default={})
    messages: list[dict[str, Any]] = field(
        "messages", must="a list of objects", default=[]
    )
    usage: dict[str, Any] = field("token_usage", must="an object", default={})
    performance: dict[str, Any] = field("performance", must="an object", default={})
    metadata: dict[str, str] = field("metadata", must="an object of texts", default={})


def import_eee(path: Path, runs_folder: Path, name: str = "") -> tuple[Run, ...]:
    """Import an aggregate, or each one in a folder, as a run. Raises RunError."""
    if not path.exists():
        raise nothing_at(path, _ADVICE)
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not files:
        raise RunError(f"'{path}' has no JSON files. {_ADVICE}")
    read = [(file, _aggregate(file)) for file in files]
    if len(read) > 1:
        # Our averages over tasks follow from the runs of the tasks, which are here too.
        read = [pair for pair in read if not _is_average(pair[1])] or read
    destination = ImportDestination(runs_folder, name, alone=len(read) == 1)
    return tuple(_import(file, aggregate, destination) for file, aggregate in read)


def _is_average(aggregate: Mapping[str, Any]) -> bool:
    """Tell whether an aggregate is an average over tasks that an export of ours wrote."""
    results = [as_mapping(entry) for entry in aggregate["evaluation_results"]]
    sources = [as_mapping(entry.get("source_data")) for entry in results]
    details = [as_mapping(source.get("additional_details")) for source in sources]
    return all(AVERAGE in of_result for of_result in details)


def _aggregate(path: Path) -> Mapping[str, Any]:
    aggregate = parse_json(read_whole(path, _MAX_BYTES), str(path))
    model = as_mapping(as_mapping(aggregate).get("model_info"))
    evaluations = as_mapping(aggregate).get("evaluation_results")
    if (
        not isinstance(evaluations, list)
        or not evaluations
        or not (model.get("name") or model.get("id"))
    ):
        raise RunError(
            f"{path} is no aggregate of Every Eval Ever: it has no model_info or no"
            f" evaluation_results. {_ADVICE}"
        )
    check_depth(aggregate, str(path))
    return as_mapping(aggregate)


def _import(
    path: Path, aggregate: Mapping[str, Any], destination: ImportDestination
) -> Run:
    published = enumerate(aggregate["evaluation_results"], 1)
    evaluations = [
        _Result.of(evaluation, f"{path}, result {position}")
        for position, evaluation in published
    ]
    samples_file = path.with_name(f"{path.stem}_samples.jsonl")
    files = [path, *([samples_file] if samples_file.exists() else [])]
    info = aggregate["model_info"]
    model = printable(str(info.get("name") or info["id"]))
    tasks = list(dict.fromkeys(evaluation.name for evaluation in evaluations))
    run_folder = destination.place(model, tasks[:1], {"imported": hash_files(files)})
    notes: list[str] = []
    records = []
    task_records = []
    rows = []
    seen: dict[str, str] = {}
    for where, _, row in read_json_lines(samples_file) if samples_file.exists() else ():
        check_depth(row, where)
        if (first := seen.setdefault(fingerprint_of(row), where)) != where:
            raise RunError(
                f"{where} is the same row as {first}: it would count twice. Remove one"
                " of them; where they are repeats of a sample, number them in their"
                ' metadata: "epoch": "1", "2".'
            )
        rows.append(_Row.of(row, where))
    for task in tasks:
        task_evaluations = [
            evaluation for evaluation in evaluations if evaluation.name == task
        ]
        named = {
            evaluation.result_id: evaluation.scorer for evaluation in task_evaluations
        }
        task_samples = _records(
            task, [row for row in rows if row.name == task], named, notes
        )
        records += task_samples
        task_records.append(_task(task, task_evaluations, task_samples, notes))
    if not rows:
        notes.append(
            "It has no samples beside it: its numbers are kept as published, and cannot"
            " be compared item by item."
        )
    imported = {
        "format": FORMAT,
        "file": path.name,
        "notes": notes,
        "model_info": info,
        "eval_library": as_mapping(aggregate.get("eval_library")),
        "source_metadata": as_mapping(aggregate.get("source_metadata")),
        "evaluation_id": str(aggregate.get("evaluation_id")),
    }
    run_fields = RunFacts(
        started=start_time([_time(aggregate.get("evaluation_timestamp"))], [path]),
        model=model,
        code={"imported": FORMAT, "model": info},
        tasks=task_records,
        configuration={"scoring": "published", "imported": imported},
    )
    return run_folder.write(records, lambda: run_fields)


def _records(
    task: str, rows: Sequence[_Row], scorers: Mapping[str, str], notes: list[str]
) -> list[SampleRecord]:
    """Build one record from the rows of a sample and draw, with a score for each scorer.

    Raises RunError for a score that occurs twice.
    """
    repeated: dict[str, None] = {}
    scored_rows: dict[tuple[str, int], tuple[_Row, dict[str, Score]]] = {}
    for row in rows:
        draw = _repeat(row.metadata)
        worth = number(row.evaluation.get("score"))
        if worth is None:
            raise RunError(
                f"The sample '{printable(row.id)}' of '{printable(task)}' has no number"
                " as its score."
            )
        correct = (
            "correct" if row.evaluation.get("is_correct") is True and worth >= 1 else ""
        )
        is_ours = DRAW in row.metadata
        label = row.metadata.get(LABEL, "") if is_ours else correct
        score = Score(
            worth,
            label,
            row.metadata.get(EXPLANATION, ""),
            _numbers(row.metadata.get(PARTS)),
        )
        scorer = (
            scorers.get(row.result_id)
            or row.result_id.removeprefix(f"{task}:")
            or "score"
        )
        while scorer in scored_rows.setdefault((row.id, draw), (row, {}))[1]:
            if is_ours or "epoch" in row.metadata:
                raise RunError(
                    f"The sample '{printable(row.id)}' of '{printable(task)}' has two"
                    f" rows for repeat {draw + 1}, scored by '{printable(scorer)}'."
                    " Remove one of them, or number the repeats."
                )
            draw += 1  # records of others do not number them
            repeated[row.id] = None
        scored_rows[row.id, draw][1][scorer] = score
    if repeated:
        first_ids = ", ".join(map(printable, list(repeated)[:3]))
        named = f"{first_ids}{', ...' if len(repeated) > 3 else ''}"
        notes.append(
            f"Samples of '{printable(task)}' with several rows that are not numbered,"
            f" read as repeats: {len(repeated)} ({named})."
        )
    indices = {
        name: index
        for index, name in enumerate(dict.fromkeys(name for name, _ in scored_rows))
    }
    ordered = sorted(
        scored_rows.items(),
        key=lambda keyed_row: (indices[keyed_row[0][0]], keyed_row[0][1]),
    )
    return [
        SampleRecord(task, indices[name], draw, _sample(row), _answer(row), scores)
        for (name, draw), (row, scores) in ordered
    ]


def _repeat(metadata: Mapping[str, str]) -> int:
    """The draw that a row belongs to; records made from inspect_ai's logs count epochs from 1."""
    repeat, first = (
        (metadata[DRAW], 0) if DRAW in metadata else (metadata.get("epoch", "1"), 1)
    )
    return max(int(repeat) - first, 0) if repeat.isdecimal() and len(repeat) < 7 else 0


def _sample(row: _Row) -> Sample:
    targets, choices = (
        tuple(map(str, as_list(row.input.get(key)))) for key in ("reference", "choices")
    )
    our_keys = (DRAW, LABEL, EXPLANATION, CLUSTER, PARTS)
    metadata = {
        key.removeprefix(SAMPLE_PREFIX): _parse_value(value)
        if key.startswith(SAMPLE_PREFIX)
        else value
        for key, value in row.metadata.items()
        if key not in our_keys
    }
    gold = tuple(choices.index(target) for target in targets if target in choices)
    question = str(row.input.get("raw") or "")
    cluster = row.metadata.get(CLUSTER, "")
    return Sample(
        row.id, question, targets, choices, gold, metadata=metadata, cluster=cluster
    )


def _answer(row: _Row) -> Answer:
    replies = [str(reply) for reply in as_list(row.output.get("raw"))]
    thoughts = "\n\n".join(
        str(thought) for thought in as_list(row.output.get("reasoning_trace"))
    )
    formatted = row.input.get("formatted")
    prompt: Prompt = (
        formatted if isinstance(formatted, str) else str(row.input.get("raw") or "")
    )
    if row.messages:
        *earlier_messages, last = row.messages
        replies = [str(last.get("content") or "")]
        thoughts = str(last.get("reasoning_trace") or "")
        prompt = tuple(
            Message(_role(message.get("role")), str(message.get("content") or ""))
            for message in earlier_messages
        )
    names = (
        "input_tokens",
        "output_tokens",
        "reasoning_tokens",
        "input_tokens_cache_read",
    )
    counts = [count_of(row.usage.get(key)) for key in names]
    latency = (number(row.performance.get("latency_ms")) or 0.0) / 1000
    replied = tuple(Response(text) for text in replies[:-1])
    response = Response(
        replies[-1] if replies else "", thoughts, usage=Usage(*counts), latency=latency
    )
    return Answer(
        response.text, thoughts, prompt=prompt, responses=(*replied, response)
    )


def _task(
    task: str,
    evaluations: Sequence[_Result],
    records: Sequence[SampleRecord],
    notes: list[str],
) -> dict[str, Any]:
    scorers = list(dict.fromkeys(name for record in records for name in record.scores))
    specs: list[MetricSpec] = []
    published_metrics = []
    named = [evaluation.label for evaluation in evaluations]
    for evaluation in evaluations:
        label = (
            evaluation.label
            if named.count(evaluation.label) == 1
            else evaluation.result_id or f"{evaluation.label} {len(specs) + 1}"
        )
        details = as_mapping(evaluation.metric.get("additional_details"))
        kind = str(evaluation.metric.get("metric_id") or "")
        less = evaluation.metric.get("lower_is_better") is True
        spec = MetricSpec(
            label,
            kind,
            evaluation.scorer,
            as_mapping(_parse_value(details.get("options", "{}"))),
            less,
        )
        if not is_known_metric(spec):
            spec = MetricSpec(
                label, _MEANS.get(kind, "mean"), evaluation.scorer, lower_is_better=less
            )
        specs.append(spec)
        published_metrics.append(
            MetricResult(
                spec.label,
                spec.kind,
                spec.scorer,
                _published(evaluation),
                spec.lower_is_better,
            )
        )
    scored = [spec for spec in specs if spec.scorer in scorers]
    recomputed = TaskTally(scorers, [], records).result(task, "1", scored)
    metrics = []
    for metric in published_metrics:
        recomputed_metric = next(
            (
                candidate
                for candidate in recomputed.metrics
                if candidate.label == metric.label
            ),
            None,
        )
        published = metric.estimate.value
        value = recomputed_metric.estimate.value if recomputed_metric else math.nan
        agrees = recomputed_metric is not None and abs(value - published) <= 1e-6 * max(
            1.0, abs(published)
        )
        metrics.append(recomputed_metric if recomputed_metric and agrees else metric)
        if recomputed_metric and not agrees:
            notes.append(
                f"'{printable(metric.label)}' of '{printable(task)}' is {published:.6g} as"
                f" published, and {value:.6g} over its rows: kept as published."
            )
    n = recomputed.n_samples or max(
        (metric.estimate.n for metric in metrics), default=0
    )
    source = as_mapping(evaluations[0].source.get("additional_details"))
    rows = [
        [record.sample.id, record.sample.input, list(record.sample.targets)]
        for record in records
    ]
    version = str(source.get("version") or "1")
    description = (
        evaluations[0].metric.get("evaluation_description")
        or "imported from Every Eval Ever"
    )
    return task_record(
        TaskResult(
            task,
            version,
            n,
            recomputed.n_missing,
            tuple(metrics),
            outcomes=recomputed.outcomes,
        ),
        FORMAT,
        description=printable(str(description)),
        definition={"results": [evaluation.model_dump() for evaluation in evaluations]},
        content_hash=fingerprint_of({"rows": rows}),
        scorers=[(scorer, FORMAT, {}) for scorer in scorers],
        metrics=specs,
        draws=max((record.draw for record in records), default=0) + 1,
    )


def _published(evaluation: _Result) -> Estimate:
    """The published number, with its interval if it has one."""
    doubt = as_mapping(evaluation.details.get("uncertainty"))
    interval = as_mapping(doubt.get("confidence_interval"))
    error = number(as_mapping(doubt.get("standard_error")).get("value"))
    value = number(evaluation.details.get("score"))
    low, high = (number(interval.get(end)) for end in ("lower", "upper"))
    if value is None:
        raise RunError(
            f"The result '{printable(evaluation.name)}' has no number as its score."
        )
    method = (
        "as published"
        if low is not None and high is not None
        else "as published: no interval"
    )
    level = number(interval.get("confidence_level")) or 0.95
    low, high = (math.nan if end is None else end for end in (low, high))
    return Estimate(
        value,
        low,
        high,
        level,
        count_of(doubt.get("num_samples")),
        0,
        None,
        error or None,
        method,
    )


def _parse_value(text: Any) -> Any:
    with suppress(ValueError, RecursionError):
        decoded = json.loads(text) if isinstance(text, str) else text
        return decoded if not isinstance(decoded, str) else text
    return text


def _time(stamp: Any) -> str:
    """A timestamp, which may be Unix time, in ISO format."""
    with suppress(ValueError, OverflowError, OSError):
        return (
            datetime.fromtimestamp(float(stamp), UTC).isoformat()
            if isinstance(stamp, str)
            else ""
        )
    return str(stamp)


def _numbers(text: str | None) -> dict[str, float]:
    return {
        key: value
        for key, raw in as_mapping(_parse_value(text)).items()
        if (value := number(raw)) is not None
    }


def _role(role: Any) -> Any:
    return role if role in ("system", "assistant") else "user"
