"""`PipelineRunner`: loads what a configuration names, in HRET's order and with its guards, runs it as a task and shows the run."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from evalwright.compat.hret import settings
from evalwright.compat.hret.config import PipelineConfig
from evalwright.compat.hret.datasets import load_datasets
from evalwright.compat.hret.evaluation import get_evaluator
from evalwright.compat.hret.evaluation.base import ALIASES
from evalwright.compat.hret.models import HuggingFaceModel, load_model
from evalwright.compat.hret.pipeline import Components, roles_of, task_of
from evalwright.compat.hret.results import failed_result, result_of
from evalwright.compat.hret.scaling import DRAWN, parser_of
from evalwright.compat.hret.scaling_methods import load_scaling_method
from evalwright.compat.hret.utils.util import EvaluationResult
from evalwright.evaluation.running import evaluate
from evalwright.strategies.generate import TARGET

NO_SAMPLES = "No samples for evaluation after few-shot processing"

__all__ = ["PipelineConfig", "PipelineRunner", "components_of"]


@dataclass(eq=False, repr=False)
class PipelineRunner(PipelineConfig):
    """One evaluation. scoring: `published` or `corrected`; None takes what `set_scoring` chose. instance: an object in place of the named model.

    Raises what the parts raise when they are made: ValueError for a name that is not registered, or for what the dataset forbids.
    """

    _: KW_ONLY
    scoring: str | None = None
    instance: Any = None
    track: Sequence[str] = ()

    def __post_init__(self) -> None:
        with settings.using(self.scoring):
            super().__post_init__()
        self.components = components_of(self, self.scoring, self.instance)

    @property
    def config(self) -> PipelineConfig:
        """What is run."""
        return self

    @property
    def dataset(self) -> Any:
        """The dataset."""
        return self.components.dataset

    @property
    def model(self) -> Any:
        """The model, a `multi` where there is a judge or a reward model."""
        return self.components.model

    @property
    def scaler(self) -> Any:
        """The scaling method, None for one reply to each row."""
        return self.components.scaler

    @property
    def evaluator(self) -> Any:
        """The evaluator."""
        return self.components.evaluator

    def run(self, *, raise_on_error: bool = False) -> EvaluationResult:
        """The result; what fails as a whole is its metric `pipeline_error`, or is raised where raise_on_error says so."""
        with settings.using(self.scoring):
            try:
                return self._run(time.perf_counter())
            except Exception as error:
                if raise_on_error:
                    raise
                return failed_result(self.names(), error)

    def _run(self, began: float) -> EvaluationResult:
        parts = self.components
        task = task_of(self, parts)
        shots = parts.shots
        if not len(task.samples):
            if not parts.published:
                raise ValueError(f"The dataset '{self.dataset_name}' has no rows to evaluate.")
            applied = {"num_few_shot_applied": shots.n if shots else 0, "error": NO_SAMPLES}
            return EvaluationResult({}, [], {**self.names(), **applied})
        for role in sorted(task.roles - {TARGET, *parts.roles}):
            raise ValueError(
                f"'{parts.method}' asks a model in the role '{role}', and none is named: give {role}_model."
            )
        used = {role: parts.model_of(role) for role in sorted(task.roles) if role in parts.roles}
        if TARGET not in parts.roles:
            raise ValueError("No model generates: name one besides the judge and the reward model.")
        for role in sorted(set(parts.roles) - {TARGET, *used}):
            note = f"The model for '{role}' has no part in '{parts.method}' and was not asked."
            parts.notes += [] if parts.published or role not in _named(parts) else [note]
        (run,) = evaluate(task, parts.model_of(TARGET), roles=used, track=self.track)
        return result_of(run, task, parts, time.perf_counter() - began)


def components_of(config: PipelineConfig, scoring: str | None = None, model: Any = None) -> Components:
    """What a configuration names, in the order dataset, model, scaling method, evaluator. Raises ValueError and what the parts raise."""
    with settings.using(scoring) as chosen:
        published = chosen == "published"
        params = dict(config.dataset_params or {})
        dataset = load_datasets(config.dataset_name, **_dataset_arguments(config, params, published))
        about = dataset.info() if callable(getattr(dataset, "info", None)) else {}
        given = dict(config.model_backend_params or {})
        if config.custom_cot_parser is not None:
            given["cot_parser"] = parser_of(config.custom_cot_parser, published=published)
        loaded = model if model is not None else load_model(config.model_backend_name, **given)
        scaler = _scaler(config, about, loaded, published)
        evaluator = _evaluator(config, about, loaded, published)
        method = ALIASES.get(config.evaluation_method_name, config.evaluation_method_name)
        for part in (loaded, getattr(loaded, "generate_model", None)):
            if isinstance(part, HuggingFaceModel):
                part.likelihood = method == "log_likelihood"
        roles = roles_of(loaded, config.model_backend_name, published=published)
        return Components(config, published, dataset, loaded, scaler, evaluator, roles)


def _dataset_arguments(config: PipelineConfig, params: dict[str, Any], published: bool) -> dict[str, Any]:
    """A parameter that repeats an argument takes its place, where scoring is corrected; HRET raises TypeError."""
    arguments: dict[str, Any] = {"subset": config.subset, "split": config.split}
    twice = sorted(set(params) & set(arguments))
    if published and twice:
        raise TypeError(f"load_datasets() got multiple values for keyword argument '{twice[0]}'")
    return {**arguments, **params}


def _scaler(config: PipelineConfig, about: Any, model: Any, published: bool) -> Any:
    name, only = config.scaling_method_name, about.get("scaling_only")
    allowed = [only] if isinstance(only, str) and not published else only
    if not name:
        if only is not None:
            raise ValueError(
                f"Dataset '{config.dataset_name}' requires a scaling method from {only}, but scaling_method_name is None."
            )
        if config.scaling_params and not published:
            raise ValueError(
                "scaling_params have no effect without a scaling method: name one, or leave them out."
            )
        return None
    if only is not None and name not in allowed:
        raise ValueError(
            f"Dataset '{config.dataset_name}' only allows scaling methods {only}, but got '{name}'."
        )
    if not published and name in DRAWN:
        return None
    return load_scaling_method(name, model=model, **(config.scaling_params or {}))


def _evaluator(config: PipelineConfig, about: Any, model: Any, published: bool) -> Any:
    name, only = config.evaluation_method_name, about.get("evaluation_only")
    if only is True:
        raise ValueError(
            f"Dataset '{config.dataset_name}' requires a specific evaluation method, but no specific methods were provided."
        )
    # A string is a part of itself in HRET: "math" allows "math_match" there, and here only itself.
    allowed: Collection[str] = [only] if isinstance(only, str) and not published else only or ()
    if only is not None and not isinstance(only, bool) and name not in allowed:
        raise ValueError(
            f"Dataset '{config.dataset_name}' only allows evaluation methods {only}, but got '{name}'."
        )
    more = {"model": model} if name == "llm_judge" else {}
    return get_evaluator(name, **more, **(config.evaluator_params or {}))


def _named(parts: Components) -> set[str]:
    """The roles that were asked for by name, besides the model itself."""
    return {"judge", "reward"} if hasattr(parts.model, "judge_model") else set()
