"""A finished run as HRET's `EvaluationResult`: metrics by its names, samples as its dicts, and what the run says besides in `info`."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from typing import Any

from evalwright.compat.hret.config import PipelineConfig, log
from evalwright.compat.hret.evaluation.built_in import BuiltIn
from evalwright.compat.hret.internal.benchhub_info import benchmark_details
from evalwright.compat.hret.pipeline import Components
from evalwright.compat.hret.rows import row_of, scored_row
from evalwright.compat.hret.utils.metrics import language_penalizer
from evalwright.compat.hret.utils.util import EvaluationResult
from evalwright.core.samples import Answer, SampleRecord
from evalwright.core.tasks import Task
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult

PENALTY = "language_penalizer"


def result_of(run: Run, task: Task, parts: Components, seconds: float) -> EvaluationResult:
    """The run in HRET's words. Where nothing was answered, its metric is `pipeline_error`: why the first sample failed."""
    found = run.task(task.name)
    records = list(run.samples())
    info = _info(parts, seconds) | {
        "scoring": "published" if parts.published else "corrected",
        "run": str(run.folder),
    }
    info |= {"model": run.model, "n_failed": found.n_failed}
    samples = [_sample(record, task, parts) for record in records]
    failures = [record.failure or next(iter(record.score_failures.values()), None) for record in records]
    if failures[0] is not None and all(failures):
        info |= {"status": "failed", "error": failures[0].message}
        return EvaluationResult({"pipeline_error": failures[0].message}, samples, info, run)
    if isinstance(parts.evaluator, BuiltIn):
        metrics: dict[str, Any] = _values(found.metrics)
        if not parts.published:
            # A metric of nothing is there all the same: None.
            metrics = {**dict.fromkeys(one.label for one in found.metrics), **metrics}
            info |= _numbers(found.metrics, found.slices.get("subset", {}))
    else:
        metrics, samples, more = _by_plugin(samples, parts)
        info = {**more, **info}
    for name in ("n_failed", "n_undecided"):
        if getattr(found, name) and not parts.published:
            metrics[name] = getattr(found, name)
    if parts.config.dataset_name == "benchhub" and (details := benchmark_details(samples)):
        info["benchmark_details"] = details
    return EvaluationResult(metrics, samples, info, run)


def failed_result(names: Mapping[str, Any], error: Exception) -> EvaluationResult:
    """The result of an evaluation that failed as a whole. names: what it was of."""
    log.error("The evaluation failed: %s: %s", type(error).__name__, error)
    info = {**names, "error": f"Pipeline failed: {error}", "error_message": str(error), "status": "failed"}
    return EvaluationResult({"pipeline_error": str(error)}, [], info)


def _sample(record: SampleRecord, task: Task, parts: Components) -> dict[str, Any]:
    """The sample's dict. Its objects are those of the dataset where the record has only their texts."""
    sample = task.samples[record.index]
    row = row_of(sample, record.answer or Answer())
    row |= {
        key: copy.deepcopy(value)
        for key, value in sample.row.items()
        if row.get(key) != value and key in sample.row
    }
    if record.answer is not None:
        row |= _added(record.answer)
        raw = [one.text for one in record.answer.responses]
        if not parts.published and raw:
            row["raw_responses"] = raw
    if record.failure is not None:
        row |= {"prediction": None, "error": record.failure.message, "finish_reason": "error"}
    row = scored_row(row, record.scores)
    if record.undecided:
        row["undecided"] = next(iter(record.undecided.values())).explanation
    failures = [failure.message for failure in record.score_failures.values()]
    return {**row, "score_error": failures[0]} if failures else row


def _added(answer: Answer) -> dict[str, Any]:
    added = answer.strategy.get("row", {})
    said = {"prediction": answer.text} if "prediction" not in added else {}
    return {**added, **said}


def _by_plugin(
    samples: list[dict[str, Any]], parts: Components
) -> tuple[dict[str, Any], list[dict[str, Any]], Mapping[str, Any]]:
    """What a user's evaluator makes of copies of the samples, and the language penalty as HRET adds it."""
    answered = [sample for sample in samples if parts.published or not sample.get("error")]
    given = [copy.deepcopy(sample) for sample in answered]
    found = parts.evaluator.evaluate(given, model=parts.model)
    metrics, made = dict(found.get("metrics", {})), list(found.get("samples", given))
    if parts.config.language_penalize:
        for sample in made:
            raw = sample.get("original_prediction", sample.get("prediction", ""))
            sample[PENALTY] = language_penalizer(raw, target_lang=parts.config.target_lang)
        values = [sample[PENALTY] for sample in made]
        metrics[f"{PENALTY}_average"] = sum(values) / len(values) if values else 0.0
    lost = [sample for sample in samples if not parts.published and sample.get("error")]
    return metrics, [*made, *lost], found.get("info", {})


def _info(parts: Components, seconds: float) -> dict[str, Any]:
    config: PipelineConfig = parts.config
    shots = parts.shots
    applied = bool(shots and shots.n)
    notes = [*getattr(parts.dataset, "notes", []), *(shots.notes if shots else ()), *parts.notes]
    return {
        **config.names(),
        "scaling_method_name": config.scaling_method_name,
        "evaluation_method_name": config.evaluation_method_name,
        "elapsed_time_sec": seconds,
        "num_few_shot_configured": config.num_few_shot,
        "num_few_shot_applied": (config.num_few_shot if parts.published else shots.n)
        if shots and applied
        else 0,
        "few_shot_source_split": shots.source if shots and applied else None,
        "language_penalize_enabled": config.language_penalize,
        "target_lang_for_penalty": config.target_lang if config.language_penalize else None,
        **({"notes": notes} if notes else {}),
    }


def _numbers(metrics: Any, subsets: Mapping[str, tuple[MetricResult, ...]]) -> dict[str, Any]:
    """Intervals, of how many samples a metric is, between which bounds it is where samples are missing, and the metrics of every subset."""
    known = {one.label: one.estimate for one in metrics if not math.isnan(one.estimate.value)}
    found = {
        "intervals": {label: [one.low, one.high] for label, one in known.items()},
        "counts": {label: one.n for label, one in known.items()},
        "bounds": {label: list(one.bounds) for label, one in known.items() if one.bounds},
        "subset_metrics": {name: _values(several) for name, several in subsets.items()},
    }
    return {name: one for name, one in found.items() if one or name == "intervals"}


def _values(metrics: Iterable[MetricResult]) -> dict[str, float]:
    return {one.label: one.estimate.value for one in metrics if not math.isnan(one.estimate.value)}
