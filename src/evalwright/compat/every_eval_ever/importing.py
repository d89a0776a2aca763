"""Makes runs of records of Every Eval Ever: a run for each aggregate, with its samples where they
lie beside it.

A number is made again from the rows that name it where it is a mean of their scores; any other is
kept as published.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.compat.every_eval_ever.exporting import (
    CLUSTER,
    DRAW,
    EXPLANATION,
    KEPT,
    LABEL,
    PARTS,
)
from evalwright.compat.recording import (
    Destination,
    Recorded,
    check_depth,
    count_of,
    digest_of,
    field,
    listed,
    mapping,
    nothing_at,
    number,
    parsed,
    read_rows,
    read_whole,
    started,
    task_record,
)
from evalwright.core.errors import RunError
from evalwright.core.requests import Message, Prompt
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.core.tasks import MetricSpec
from evalwright.core.text import printable
from evalwright.metrics.registry import is_known
from evalwright.models.base import fingerprint_of
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult, TaskResult
from evalwright.statistics import Estimate

FORMAT = "every_eval_ever"
_WANTED = "Name an aggregate of Every Eval Ever (.json), or a folder with some."
_MOST = 1 << 28
_MEANS = {
    "accuracy": "accuracy",
    "exact_match": "accuracy",
    "exact-match": "accuracy",
    "mean": "mean",
}


class _Result(Recorded):
    """One of `evaluation_results`."""

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
        """The scorer's name, where the record has it."""
        before = self.result_id.rpartition(":")[0]
        return str(
            mapping(self.metric.get("additional_details")).get("scorer")
            or before
            or self.label
        )


class _Row(Recorded):
    """A row of the samples."""

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


def import_eee(path: Path, out: Path, name: str = "") -> tuple[Run, ...]:
    """Make a run of an aggregate, or of each in a folder, under `out`. Raises RunError."""
    if not path.exists():
        raise nothing_at(path, _WANTED)
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not files:
        raise RunError(f"'{path}' has no JSON files. {_WANTED}")
    read = [(file, _aggregate(file)) for file in files]
    destination = Destination(out, name, alone=len(read) == 1)
    return tuple(_import(file, data, destination) for file, data in read)


def _aggregate(path: Path) -> Mapping[str, Any]:
    data = parsed(read_whole(path, _MOST), str(path))
    model = mapping(mapping(data).get("model_info"))
    results = mapping(data).get("evaluation_results")
    if (
        not isinstance(results, list)
        or not results
        or not (model.get("name") or model.get("id"))
    ):
        raise RunError(
            f"{path} is no aggregate of Every Eval Ever: it has no model_info or no"
            f" evaluation_results. {_WANTED}"
        )
    check_depth(data, str(path))
    return mapping(data)


def _import(path: Path, data: Mapping[str, Any], destination: Destination) -> Run:
    published = enumerate(data["evaluation_results"], 1)
    results = [_Result.of(one, f"{path}, result {place}") for place, one in published]
    beside = path.with_name(f"{path.stem}_samples.jsonl")
    files = [path, *([beside] if beside.exists() else [])]
    info = data["model_info"]
    model = printable(str(info.get("name") or info["id"]))
    tasks = list(dict.fromkeys(one.name for one in results))
    place = destination.place(model, tasks[:1], {"imported": digest_of(files)})
    notes: list[str] = []
    records = []
    parts = []
    rows = []
    seen: dict[str, str] = {}
    for where, _, row in read_rows(beside) if beside.exists() else ():
        check_depth(row, where)
        if (first := seen.setdefault(fingerprint_of(row), where)) != where:
            raise RunError(
                f"{where} is the same row as {first}: it would count twice. Remove one"
                " of them; where they are repeats of a sample, number them in their"
                ' metadata: "epoch": "1", "2".'
            )
        rows.append(_Row.of(row, where))
    for task in tasks:
        own = [one for one in results if one.name == task]
        named = {one.result_id: one.scorer for one in own}
        made = _records(task, [row for row in rows if row.name == task], named, notes)
        records += made
        parts.append(_task(task, own, made, notes))
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
        "eval_library": mapping(data.get("eval_library")),
        "source_metadata": mapping(data.get("source_metadata")),
        "evaluation_id": str(data.get("evaluation_id")),
    }
    whole = {
        "started": started([_time(data.get("evaluation_timestamp"))], [path]),
        "model": model,
        "code": {"imported": FORMAT, "model": info},
        "tasks": parts,
        "configuration": {"scoring": "published", "imported": imported},
    }
    return place.write(records, lambda: whole)


def _records(
    task: str, rows: Sequence[_Row], scorers: Mapping[str, str], notes: list[str]
) -> list[SampleRecord]:
    """Rows of one sample and draw are one record, with a score for each scorer.

    Raises RunError for a score that is there twice.
    """
    repeated: dict[str, None] = {}
    found: dict[tuple[str, int], tuple[_Row, dict[str, Score]]] = {}
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
        ours = DRAW in row.metadata
        label = row.metadata.get(LABEL, "") if ours else correct
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
        while scorer in found.setdefault((row.id, draw), (row, {}))[1]:
            if ours or "epoch" in row.metadata:
                raise RunError(
                    f"The sample '{printable(row.id)}' of '{printable(task)}' has two"
                    f" rows for repeat {draw + 1}, scored by '{printable(scorer)}'."
                    " Remove one of them, or number the repeats."
                )
            draw += 1  # records of others do not number them
            repeated[row.id] = None
        found[row.id, draw][1][scorer] = score
    if repeated:
        named = f"{', '.join(map(printable, list(repeated)[:3]))}{', ...' if len(repeated) > 3 else ''}"
        notes.append(
            f"Samples of '{printable(task)}' with several rows that are not numbered,"
            f" read as repeats: {len(repeated)} ({named})."
        )
    places = {
        name: place
        for place, name in enumerate(dict.fromkeys(name for name, _ in found))
    }
    ordered = sorted(found.items(), key=lambda one: (places[one[0][0]], one[0][1]))
    return [
        SampleRecord(task, places[name], draw, _sample(row), _answer(row), scores)
        for (name, draw), (row, scores) in ordered
    ]


def _repeat(metadata: Mapping[str, str]) -> int:
    """Which draw a row is of; records made of logs of inspect_ai count epochs from 1."""
    told, first = (
        (metadata[DRAW], 0) if DRAW in metadata else (metadata.get("epoch", "1"), 1)
    )
    return max(int(told) - first, 0) if told.isdecimal() and len(told) < 7 else 0


def _sample(row: _Row) -> Sample:
    targets, choices = (
        tuple(map(str, listed(row.input.get(key)))) for key in ("reference", "choices")
    )
    own = (DRAW, LABEL, EXPLANATION, CLUSTER, PARTS)
    metadata = {
        key.removeprefix(KEPT): _value(value) if key.startswith(KEPT) else value
        for key, value in row.metadata.items()
        if key not in own
    }
    gold = tuple(choices.index(one) for one in targets if one in choices)
    asked = str(row.input.get("raw") or "")
    cluster = row.metadata.get(CLUSTER, "")
    return Sample(
        row.id, asked, targets, choices, gold, metadata=metadata, cluster=cluster
    )


def _answer(row: _Row) -> Answer:
    replies = [str(one) for one in listed(row.output.get("raw"))]
    thoughts = "\n\n".join(
        str(one) for one in listed(row.output.get("reasoning_trace"))
    )
    asked = row.input.get("formatted")
    prompt: Prompt = (
        asked if isinstance(asked, str) else str(row.input.get("raw") or "")
    )
    if row.messages:
        *before, last = row.messages
        replies = [str(last.get("content") or "")]
        thoughts = str(last.get("reasoning_trace") or "")
        prompt = tuple(
            Message(_role(one.get("role")), str(one.get("content") or ""))
            for one in before
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
    whole = Response(
        replies[-1] if replies else "", thoughts, usage=Usage(*counts), latency=latency
    )
    return Answer(whole.text, thoughts, prompt=prompt, responses=(*replied, whole))


def _task(
    task: str,
    results: Sequence[_Result],
    records: Sequence[SampleRecord],
    notes: list[str],
) -> dict[str, Any]:
    scorers = list(dict.fromkeys(name for record in records for name in record.scores))
    specs: list[MetricSpec] = []
    kept = []
    named = [one.label for one in results]
    for one in results:
        label = (
            one.label
            if named.count(one.label) == 1
            else one.result_id or f"{one.label} {len(specs) + 1}"
        )
        details = mapping(one.metric.get("additional_details"))
        kind = str(one.metric.get("metric_id") or "")
        less = one.metric.get("lower_is_better") is True
        spec = MetricSpec(
            label, kind, one.scorer, mapping(_value(details.get("options", "{}"))), less
        )
        if not is_known(spec):
            spec = MetricSpec(
                label, _MEANS.get(kind, "mean"), one.scorer, lower_is_better=less
            )
        specs.append(spec)
        kept.append(
            MetricResult(
                spec.label,
                spec.kind,
                spec.scorer,
                _published(one),
                spec.lower_is_better,
            )
        )
    scored = [spec for spec in specs if spec.scorer in scorers]
    made = TaskTally(scorers, [], records).result(task, "1", scored)
    metrics = []
    for metric in kept:
        again = next((one for one in made.metrics if one.label == metric.label), None)
        told = metric.estimate.value
        value = again.estimate.value if again else math.nan
        same = again is not None and abs(value - told) <= 1e-6 * max(1.0, abs(told))
        metrics.append(again if again and same else metric)
        if again and not same:
            notes.append(
                f"'{printable(metric.label)}' of '{printable(task)}' is {told:.6g} as"
                f" published, and {value:.6g} over its rows: kept as published."
            )
    n = made.n_samples or max((one.estimate.n for one in metrics), default=0)
    source = mapping(results[0].source.get("additional_details"))
    rows = [
        [one.sample.id, one.sample.input, list(one.sample.targets)] for one in records
    ]
    version = str(source.get("version") or "1")
    about = (
        results[0].metric.get("evaluation_description")
        or "imported from Every Eval Ever"
    )
    return task_record(
        TaskResult(
            task, version, n, made.n_missing, tuple(metrics), outcomes=made.outcomes
        ),
        FORMAT,
        description=printable(str(about)),
        definition={"results": [one.model_dump() for one in results]},
        content_hash=fingerprint_of({"rows": rows}),
        scorers=[(one, FORMAT, {}) for one in scorers],
        metrics=specs,
        draws=max((record.draw for record in records), default=0) + 1,
    )


def _published(one: _Result) -> Estimate:
    """The number as published, with its interval where it has one."""
    doubt = mapping(one.details.get("uncertainty"))
    interval = mapping(doubt.get("confidence_interval"))
    error = number(mapping(doubt.get("standard_error")).get("value"))
    value = number(one.details.get("score"))
    low, high = (number(interval.get(end)) for end in ("lower", "upper"))
    if value is None:
        raise RunError(
            f"The result '{printable(one.name)}' has no number as its score."
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


def _value(text: Any) -> Any:
    with suppress(ValueError, RecursionError):
        found = json.loads(text) if isinstance(text, str) else text
        return found if not isinstance(found, str) else text
    return text


def _time(stamp: Any) -> str:
    """A time, which may be one of Unix."""
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
        for key, one in mapping(_value(text)).items()
        if (value := number(one)) is not None
    }


def _role(role: Any) -> Any:
    return role if role in ("system", "assistant") else "user"
