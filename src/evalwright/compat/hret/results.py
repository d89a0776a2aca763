"""A run in HRET's words: its metrics, its samples as HRET's dicts, and what there is to say."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from evalwright import Run, SampleRecord, Task
from evalwright.compat.hret.call import log
from evalwright.compat.hret.internal.benchhub_info import benchmark_details
from evalwright.compat.hret.methods import PENALTY
from evalwright.compat.hret.row_samples import Given, Rows, answered, scored_row
from evalwright.compat.hret.rules import Rules
from evalwright.compat.hret.utils.metrics import language_penalizer
from evalwright.compat.hret.utils.util import EvaluationResult

Evaluation = Callable[[Rows], Mapping[str, Any]]
"""What a user's evaluator makes of samples: metrics, samples, and info."""


def result_of(
    run: Run,
    task: Task,
    rules: Rules,
    info: Given,
    evaluation: Evaluation | None,
) -> EvaluationResult:
    """The result. evaluation: a user's, None where the task has the scorers.

    Where nothing was answered, the metric is `pipeline_error`: why the first sample failed.
    """
    task_result = run.task(task.name)
    records = list(run.samples())
    info = {**info, "n_missing": task_result.n_missing}
    samples = [_sample(record, task, rules) for record in records]
    failures = [
        record.failure or next(iter(record.score_failures.values()), None)
        for record in records
    ]
    if failures[0] is not None and all(failures):
        info |= {"status": "failed", "error": failures[0].message}
        return EvaluationResult(
            {"pipeline_error": failures[0].message}, samples, info, run
        )
    metrics, further_info = rules.metrics(task_result)
    if evaluation is None:
        info |= further_info
    else:
        evaluated, left_out = rules.without_faults(samples)
        returned = evaluation(evaluated)
        counts = {name: metrics[name] for name in COUNTS if name in metrics}
        metrics = {**returned["metrics"], **counts}
        samples = [*returned["samples"], *left_out]
        info = {**returned["info"], **info}
    if info["dataset_name"] == "benchhub" and (details := benchmark_details(samples)):
        info["benchmark_details"] = details
    return EvaluationResult(metrics, samples, info, run)


COUNTS = ("n_missing", "n_unsure")
"""Metrics that say how many samples are missing, and of how many a reader might argue."""


def user_evaluation(evaluator: Any, model: Any, language: str | None) -> Evaluation:
    """A user's evaluator, which gets copies, with the language penalty as HRET adds it."""

    def evaluate(samples: Rows) -> Mapping[str, Any]:
        copies = [copy.deepcopy(sample) for sample in samples]
        returned = evaluator.evaluate(copies, model=model)
        metrics = dict(returned.get("metrics", {}))
        evaluated = list(returned.get("samples", copies))
        if language is not None:
            for sample in evaluated:
                raw = sample.get("original_prediction", sample.get("prediction", ""))
                sample[PENALTY] = language_penalizer(raw, target_lang=language)
            shares = [sample[PENALTY] for sample in evaluated]
            average = sum(shares) / len(shares) if shares else 0.0
            metrics[f"{PENALTY}_average"] = average
        return {
            "metrics": metrics,
            "samples": evaluated,
            "info": returned.get("info", {}),
        }

    return evaluate


def _sample(record: SampleRecord, task: Task, rules: Rules) -> dict[str, Any]:
    """The sample's dict.

    Its objects are those of the dataset, of which the record has only the texts.
    """
    row = copy.deepcopy(dict(task.samples[record.index].row))
    if record.answer is not None:
        row = {**answered(row, record.answer), **rules.reply_fields(record.answer)}
    if record.failure is not None:
        row |= {
            "prediction": None,
            "error": record.failure.message,
            "finish_reason": "error",
        }
    scored_row(row, record.scores)
    if doubts := [score.unsure for score in record.scores.values() if score.unsure]:
        row["unsure"] = doubts[0]
    failures = [failure.message for failure in record.score_failures.values()]
    return {**row, "score_error": failures[0]} if failures else row


def failed_result(names: Given, error: Exception) -> EvaluationResult:
    """The result of an evaluation that failed as a whole. names: what it was of."""
    log.error("The evaluation failed: %s: %s", type(error).__name__, error)
    info = {
        **names,
        "error": f"Pipeline failed: {error}",
        "error_message": str(error),
        "status": "failed",
    }
    return EvaluationResult({"pipeline_error": str(error)}, [], info)
