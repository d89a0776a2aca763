"""`PipelineRunner`: loads what a configuration names, in HRET's order and with its guards, runs it
as a task and shows the run.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from evalwright import Run, SampleRecord, Task, evaluate
from evalwright.compat.hret import settings
from evalwright.compat.hret.asking import model_of
from evalwright.compat.hret.config import PipelineConfig, Shots, log
from evalwright.compat.hret.datasets import load_datasets
from evalwright.compat.hret.evaluation.base import BuiltIn, get_evaluator
from evalwright.compat.hret.internal.benchhub_info import benchmark_details
from evalwright.compat.hret.models import HuggingFaceModel, load_model
from evalwright.compat.hret.pipeline import JUDGE, REWARD, roles_of, task_of
from evalwright.compat.hret.published import PENALTY, share
from evalwright.compat.hret.row_samples import (
    answered,
    counts_of,
    scored_row,
    values_of,
)
from evalwright.compat.hret.scaling import DRAWN, parser_of
from evalwright.compat.hret.scaling_methods import load_scaling_method
from evalwright.compat.hret.scoring import ALIASES
from evalwright.compat.hret.settings import Given, Rows
from evalwright.compat.hret.utils.metrics import language_penalizer
from evalwright.compat.hret.utils.util import EvaluationResult
from evalwright.extend import TARGET, MetricResult

NO_SAMPLES = "No samples for evaluation after few-shot processing"

__all__ = ["PipelineConfig", "PipelineRunner"]


@dataclass(eq=False, repr=False)
class PipelineRunner(PipelineConfig):
    """One evaluation. scoring: `published` or `corrected`; None takes what `set_scoring` chose.
    instance: an object in place of the named model.

    dataset, model (a `multi` where there is a judge or a reward model), scaler (None for one reply
    to each row) and evaluator are loaded at once, in this order. roles: who plays them: a plug-in,
    or a model of this package. Raises what the parts raise when they are made: ValueError for a
    name that is not registered, or for what the dataset forbids.
    """

    _: KW_ONLY
    scoring: str | None = None
    instance: Any = None
    track: Sequence[str] = ()
    shots: Shots = field(init=False)

    def __post_init__(self) -> None:
        with settings.using(self.scoring):
            super().__post_init__()
            self.notes: list[str] = []
            self.published = settings.is_published()
            # A parameter that repeats an argument takes its place, where scoring is corrected; HRET
            # raises TypeError.
            arguments = {"subset": self.subset, "split": self.split}
            params = self.dataset_params or {}
            if self.published and (twice := sorted(params.keys() & arguments)):
                raise TypeError(
                    "load_datasets() got multiple values for keyword argument"
                    f" '{twice[0]}'"
                )
            self.dataset = load_datasets(self.dataset_name, **{**arguments, **params})
            about = (
                self.dataset.info()
                if callable(getattr(self.dataset, "info", None))
                else {}
            )
            model_params = dict(self.model_backend_params or {})
            if self.custom_cot_parser is not None:
                model_params["cot_parser"] = parser_of(
                    self.custom_cot_parser, published=self.published
                )
            named = self.instance is None
            self.model = (
                load_model(self.model_backend_name, **model_params)
                if named
                else self.instance
            )
            self.scaler = self._scaler(about.get("scaling_only"))
            self.evaluator = self._evaluator(about.get("evaluation_only"))
            for part in (self.model, getattr(self.model, "generate_model", None)):
                if isinstance(part, HuggingFaceModel):
                    part.likelihood = bool(
                        getattr(self.evaluator, "requires_logits", False)
                    )
            self.roles = roles_of(
                self.model, self.model_backend_name, published=self.published
            )

    @property
    def config(self) -> PipelineConfig:
        """What is run."""
        return self

    @property
    def method(self) -> str:
        """The evaluation method, by its own name."""
        return ALIASES.get(self.evaluation_method_name, self.evaluation_method_name)

    @property
    def judge(self) -> str:
        """The registry name of the judge, "" for none."""
        judge_config = (self.model_backend_params or {}).get("judge_model")
        named = (
            str(judge_config.get("name"))
            if isinstance(judge_config, Mapping)
            else self.model_backend_name
        )
        return named if JUDGE in self.roles else ""

    def note(self, text: str) -> None:
        """Say something about this call: in the log, and in the result's `info["notes"]`."""
        log.warning("%s", text)
        self.notes.append(text)

    def run(self, *, raise_on_error: bool = False) -> EvaluationResult:
        """The result; what fails as a whole is its metric `pipeline_error`, or is raised where
        raise_on_error says so.
        """
        with settings.using(self.scoring):
            try:
                return self._run(time.perf_counter())
            except Exception as error:
                if raise_on_error:
                    raise
                return failed_result(self.names(), error)

    def _run(self, began: float) -> EvaluationResult:
        task = task_of(self)
        if not len(task.samples):
            if not self.published:
                raise ValueError(
                    f"The dataset '{self.dataset_name}' has no rows to evaluate."
                )
            applied = {"num_few_shot_applied": self.shots.n, "error": NO_SAMPLES}
            return EvaluationResult({}, [], {**self.names(), **applied})
        for role in sorted(task.roles - {TARGET, *self.roles}):
            raise ValueError(
                f"'{self.method}' asks a model in the role '{role}', and none is named:"
                f" give {role}_model."
            )
        if TARGET not in self.roles:
            raise ValueError(
                "No model generates: name one besides the judge and the reward model."
            )
        used = {
            role: model_of(self.roles[role])
            for role in sorted(task.roles)
            if role in self.roles
        }
        if not self.published and hasattr(self.model, "judge_model"):
            for role in sorted({JUDGE, REWARD}.intersection(self.roles) - used.keys()):
                self.notes.append(
                    f"The model for '{role}' has no part in '{self.method}' and was not"
                    " asked."
                )
        (run,) = evaluate(
            task, model_of(self.roles[TARGET]), roles=used, track=self.track
        )
        return self._result(run, task, time.perf_counter() - began)

    def _scaler(self, only: Any) -> Any:
        name = self.scaling_method_name
        if not name:
            if only is not None:
                raise ValueError(
                    f"Dataset '{self.dataset_name}' requires a scaling method from"
                    f" {only}, but scaling_method_name is None."
                )
            if self.scaling_params:
                self.note("scaling_params have no effect without scaling_method.")
            return None
        self._check_allowed("scaling", name, only)
        if not self.published and name in DRAWN:
            return None
        return load_scaling_method(
            name, model=self.model, **(self.scaling_params or {})
        )

    def _evaluator(self, only: Any) -> Any:
        name = self.evaluation_method_name
        if only is True:
            raise ValueError(
                f"Dataset '{self.dataset_name}' requires a specific evaluation method,"
                " but no specific methods were provided."
            )
        self._check_allowed("evaluation", name, None if only is False else only)
        more = {"model": self.model} if name == "llm_judge" else {}
        return get_evaluator(name, **more, **(self.evaluator_params or {}))

    def _check_allowed(self, what: str, name: str, only: Any) -> None:
        """Raise ValueError for a method that the dataset forbids.

        Text is one name here, where HRET takes it apart: "math" is in "math_match".
        """
        allowed = [only] if isinstance(only, str) and not self.published else only
        if only is not None and name not in allowed:
            raise ValueError(
                f"Dataset '{self.dataset_name}' only allows {what} methods {only}, but"
                f" got '{name}'."
            )

    # -- the run in HRET's words --

    def _result(self, run: Run, task: Task, seconds: float) -> EvaluationResult:
        """Where nothing was answered, the metric is `pipeline_error`: why the first sample
        failed.
        """
        task_result = run.task(task.name)
        records = list(run.samples())
        info = self._info(run, seconds) | {"n_missing": task_result.n_missing}
        samples = [self._sample(record, task) for record in records]
        failures = [
            record.failure or next(iter(record.score_failures.values()), None)
            for record in records
        ]
        if failures[0] is not None and all(failures):
            info |= {"status": "failed", "error": failures[0].message}
            return EvaluationResult(
                {"pipeline_error": failures[0].message}, samples, info, run
            )
        metrics: dict[str, Any]
        if isinstance(self.evaluator, BuiltIn) and not self.evaluator.is_derived:
            metrics = values_of(task_result.metrics)
            if not self.published:
                # A metric of nothing is there all the same: None.
                metrics = {
                    **dict.fromkeys(metric.label for metric in task_result.metrics),
                    **metrics,
                }
                info |= _numbers(
                    task_result.metrics, task_result.slices.get("subset", {})
                )
        else:
            metrics, samples, more = self._by_plugin(samples)
            info = {**more, **info}
        if not self.published:
            metrics.update(counts_of(task_result))
        if self.dataset_name == "benchhub" and (details := benchmark_details(samples)):
            info["benchmark_details"] = details
        return EvaluationResult(metrics, samples, info, run)

    def _info(self, run: Run, seconds: float) -> dict[str, Any]:
        notes = [*getattr(self.dataset, "notes", []), *self.shots.notes, *self.notes]
        return {
            **self.names(),
            "scaling_method_name": self.scaling_method_name,
            "evaluation_method_name": self.evaluation_method_name,
            "elapsed_time_sec": seconds,
            "num_few_shot_configured": self.num_few_shot,
            "num_few_shot_applied": self.shots.n,
            "few_shot_source_split": self.shots.source,
            "language_penalize_enabled": self.language_penalize,
            "target_lang_for_penalty": (
                self.target_lang if self.language_penalize else None
            ),
            **({"notes": notes} if notes else {}),
            "scoring": "published" if self.published else "corrected",
            "run": str(run.folder),
            "model": run.model,
        }

    def _sample(self, record: SampleRecord, task: Task) -> dict[str, Any]:
        """The sample's dict.

        Its objects are those of the dataset, of which the record has only the texts.
        """
        row = copy.deepcopy(dict(task.samples[record.index].row))
        if record.answer is not None:
            row = answered(row, record.answer)
            raw = [response.text for response in record.answer.responses]
            if not self.published and raw:
                row["raw_responses"] = raw
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

    def _by_plugin(self, samples: Rows) -> tuple[dict[str, Any], Rows, Given]:
        """What a user's evaluator makes of copies of the samples, and the language penalty as HRET
        adds it.
        """
        lost = [
            sample for sample in samples if not self.published and sample.get("error")
        ]
        evaluated = [
            copy.deepcopy(sample)
            for sample in samples
            if self.published or not sample.get("error")
        ]
        evaluation = self.evaluator.evaluate(evaluated, model=self.model)
        metrics = dict(evaluation.get("metrics", {}))
        evaluated_samples = list(evaluation.get("samples", evaluated))
        if self.language_penalize:
            for sample in evaluated_samples:
                raw = sample.get("original_prediction", sample.get("prediction", ""))
                sample[PENALTY] = language_penalizer(raw, target_lang=self.target_lang)
            metrics[f"{PENALTY}_average"] = share(
                [sample[PENALTY] for sample in evaluated_samples]
            )
        return metrics, [*evaluated_samples, *lost], evaluation.get("info", {})


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


def _numbers(
    metrics: Any, subsets: Mapping[str, tuple[MetricResult, ...]]
) -> dict[str, Any]:
    """Intervals, of how many samples a metric is, between which bounds it is where samples are
    missing, and the metrics of every subset.
    """
    estimates = {
        metric.label: metric.estimate
        for metric in metrics
        if not math.isnan(metric.estimate.value)
    }
    numbers = {
        "intervals": {
            label: [estimate.low, estimate.high]
            for label, estimate in estimates.items()
        },
        "counts": {label: estimate.n for label, estimate in estimates.items()},
        "bounds": {
            label: list(estimate.bounds)
            for label, estimate in estimates.items()
            if estimate.bounds
        },
        "subset_metrics": {
            name: values_of(subset_metrics) for name, subset_metrics in subsets.items()
        },
    }
    return {
        name: entries
        for name, entries in numbers.items()
        if entries or name == "intervals"
    }
