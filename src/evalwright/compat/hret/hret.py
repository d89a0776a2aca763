"""HRET's facade: decorators, a context, one-call functions and a tracker.

The function that is given is the model that is evaluated.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from evalwright.compat.hret.config import LONG_NAMES, PipelineConfig, log, read_settings
from evalwright.compat.hret.models.native_model import NativeModel
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.row_samples import Given, Rows, plain
from evalwright.compat.hret.runner import PipelineRunner
from evalwright.compat.hret.utils.util import EvaluationResult, as_json
from evalwright.extend import (
    ConfigurationError,
    function_model,
    open_trackers,
    write_text,
)

Function = Callable[..., Any]

__all__ = [
    "EvaluationContext",
    "HRETConfig",
    "MetricsTracker",
    "benchmark",
    "compare_metric",
    "compare_models",
    "configure",
    "evaluate",
    "evaluation_context",
    "get_metrics_history",
    "load_config",
    "quick_eval",
    "track_metrics",
]


@dataclass
class HRETConfig:
    """Settings of this facade.

    mlflow_tracking, wandb_tracking, tensorboard_tracking: send every context's results there.
    custom_loggers: further trackers, each NAME or NAME=WHERE (`evalwright run --track`).
    max_workers: calls of a function at once. batch_size: prompts that a function of lists gets at
    once. log_level: of this package's log.
    """

    default_dataset: str = "kmmlu"
    default_model: str = "huggingface"
    default_split: str = "test"
    default_evaluation_method: str = "string_match"
    mlflow_tracking: bool = False
    wandb_tracking: bool = False
    tensorboard_tracking: bool = False
    log_level: str = "INFO"
    output_dir: str = "./hret_results"
    auto_save_results: bool = True
    batch_size: int | None = None
    max_workers: int | None = None
    custom_loggers: list[str] = field(default_factory=list)
    config_file: str | None = None

    def __post_init__(self) -> None:
        if self.config_file and Path(self.config_file).exists():
            self.load_from_file(self.config_file)

    def load_from_file(self, config_path: str | Path) -> None:
        """Take the values of a YAML or JSON file; keys that are no settings are logged and left
        out.
        """
        try:
            self.update(read_settings(Path(config_path)))
        except (OSError, ConfigurationError) as error:
            log.error("The configuration %s cannot be read: %s", config_path, error)

    def update(self, values: Given) -> None:
        """Set these; the others are logged."""
        known_names = {config_field.name for config_field in fields(self)}
        for key, value in values.items():
            if key in known_names:
                setattr(self, key, value)
            else:
                log.warning("Unknown configuration key: %s", key)
        log.setLevel(str(self.log_level).upper())


_global_config = HRETConfig()


def configure(**kwargs: Any) -> None:
    """Change settings of the facade."""
    _global_config.update(kwargs)


def load_config(config_path: str) -> None:
    """Change settings of the facade to those of a file."""
    _global_config.load_from_file(config_path)


FUNCTIONS = "functions"
"""The key of a run's metadata that names the functions it compared, whose metrics are each under
the function's name.
"""
_STATS = "_stats"
"""The key of `compare_runs` that is no run."""


class MetricsTracker:
    """Metrics of several runs, one after another."""

    def __init__(self) -> None:
        self.metrics_history: Rows = []
        self.current_run_metrics: dict[str, Any] = {}
        self.run_metadata: dict[str, Any] = {}

    def start_run(self, run_name: str | None = None, **metadata: Any) -> None:
        """Begin a run."""
        now = time.time()
        self.current_run_metrics = {}
        self.run_metadata = {
            "run_name": run_name or f"run_{int(now)}",
            "start_time": now,
            **metadata,
        }

    def log_metrics(self, metrics: Given) -> None:
        """Add to the run's metrics."""
        self.current_run_metrics.update(metrics)

    def end_run(self) -> dict[str, Any]:
        """End the run: {"metadata", "metrics"}, which joins the history."""
        now = time.time()
        self.run_metadata |= {
            "end_time": now,
            "duration": now - self.run_metadata.get("start_time", now),
        }
        finished_run = {
            "metadata": dict(self.run_metadata),
            "metrics": dict(self.current_run_metrics),
        }
        self.metrics_history.append(finished_run)
        return finished_run

    def get_history(self) -> Rows:
        """All runs that have ended."""
        return list(self.metrics_history)

    def compare_runs(self, metric_name: str) -> dict[str, Any]:
        """The metric by run, and of those that are numbers the best (highest), worst and average
        under `_stats`.

        A name that several runs have is followed by a number from the second on: "nightly",
        "nightly (2)". A run of several functions has an entry for each: "nightly: gpt", "nightly:
        llama".
        """
        entries: list[tuple[str, Any]] = []
        for run in self.metrics_history:
            run_name = str(run["metadata"]["run_name"])
            metrics = run["metrics"]
            if metric_name in metrics:
                entries.append((run_name, metrics[metric_name]))
            for function_name in run["metadata"].get(FUNCTIONS, ()):
                label = f"{function_name}.{metric_name}"
                if label in metrics:
                    entries.append((f"{run_name}: {function_name}", metrics[label]))
        names = _distinct([name for name, _ in entries])
        metric_by_name = dict(
            zip(names, (metric for _, metric in entries), strict=True)
        )
        values = [
            figure
            for figure in metric_by_name.values()
            if isinstance(figure, int | float) and not isinstance(figure, bool)
        ]
        stats: dict[str, Any] = dict.fromkeys(("best", "worst", "average"))
        if values:
            stats = {
                "best": max(values),
                "worst": min(values),
                "average": sum(values) / len(values),
            }
        return {**metric_by_name, _STATS: stats} if metric_by_name else {}


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, each further one of those that are equal with its number behind it.

    The name of the summary is taken.
    """
    taken_names = {_STATS, *names}
    seen = {_STATS}
    distinct = []
    for name in names:
        candidate = name
        number = 1
        while candidate in seen or (number > 1 and candidate in taken_names):
            number += 1
            candidate = f"{name} ({number})"
        seen.add(candidate)
        distinct.append(candidate)
    return distinct


_global_tracker = MetricsTracker()


class _Function(NativeModel):
    """A function as the model that is evaluated, one call for each prompt, or for lists of them.

    What it raises fails those samples alone.
    """

    def __init__(self, function: Function) -> None:
        self.model = model = function_model(function)
        sizes = {
            "batch_size": _global_config.batch_size,
            "max_workers": _global_config.max_workers,
        }
        unused = "batch_size"
        takes = "one prompt at a time"
        if model.signature.batched:
            unused = "max_workers"
            takes = "lists of prompts"
        if sizes.pop(unused):
            log.warning(
                "%s has no effect on '%s', which takes %s.", unused, model.name, takes
            )
        if any(sizes.values()):
            batch = sizes.get("batch_size")
            workers = sizes.get("max_workers")
            self.model = function_model(function, batch_size=batch, concurrency=workers)

    def native(self) -> Native:
        """As any model; a function whose parameter is called `messages` gets chat messages."""
        chat = "chat" in self.model.abilities
        return Native(self.model, chat=chat, vision=chat, is_function=True)


class EvaluationContext:
    """Several evaluations under one name, with what is to happen to their results in the end."""

    def __init__(
        self,
        dataset_name: str | None = None,
        model_backend_name: str | None = None,
        run_name: str | None = None,
        **kwargs: Any,
    ) -> None:
        settings = _global_config
        arguments = {LONG_NAMES.get(key, key): value for key, value in kwargs.items()}
        self.scoring = arguments.pop("scoring", None)
        for name, value, default in (
            ("dataset_name", dataset_name, settings.default_dataset),
            ("model_backend_name", model_backend_name, settings.default_model),
            ("evaluation_method_name", None, settings.default_evaluation_method),
            ("split", None, settings.default_split),
        ):
            arguments[name] = value or arguments.get(name) or default
        self.config = PipelineConfig(**arguments)
        self.metrics_tracker = MetricsTracker()
        self.run_name = run_name
        self.results: list[EvaluationResult] = []
        self.mlops_integrations: list[
            Callable[[dict[str, Any], list[EvaluationResult]], Any]
        ] = []
        self.track = [
            *(["tensorboard"] if settings.tensorboard_tracking else ()),
            *settings.custom_loggers,
        ]
        open_trackers(self.track)
        if settings.mlflow_tracking:
            self.log_to_mlflow()
        if settings.wandb_tracking:
            self.log_to_wandb()

    def __enter__(self) -> EvaluationContext:
        config = self.config.settings()
        about = {
            "dataset": config["dataset_name"],
            "model": config["model_backend_name"],
            "config": config,
        }
        self.metrics_tracker.start_run(self.run_name, **about)
        return self

    def __exit__(self, *raised: Any) -> None:
        ended = self.metrics_tracker.end_run()
        _global_tracker.metrics_history.append(ended)
        if _global_config.auto_save_results and self.results:
            self.save_results()
        failures = []
        for integration in self.mlops_integrations:
            try:
                integration(ended, self.results)
            except Exception as error:
                log.error("An integration failed: %s: %s", type(error).__name__, error)
                failures.append(error)
        if failures and raised[1] is None:
            raise failures[0]

    def evaluate(self, model_function: Function) -> EvaluationResult:
        """The function's own replies, evaluated."""
        result = self._evaluated(model_function)
        self.metrics_tracker.log_metrics(result.metrics)
        return result

    def _evaluated(self, model_function: Function) -> EvaluationResult:
        model = _Function(getattr(model_function, _UNDECORATED, model_function))
        config = self.config.settings() | {
            "model_backend_name": model.model.name,
            "model_backend_params": {},
        }
        result = PipelineRunner(
            **config, scoring=self.scoring, instance=model, track=self.track
        ).run()
        self.results.append(result)
        return result

    def benchmark(
        self, model_functions: Mapping[str, Function]
    ) -> dict[str, EvaluationResult]:
        """Each function evaluated, by its name.

        Metrics of the run are under the function's name ("gpt.accuracy"): under the metric's alone
        they would be those of the last.
        """
        results = {}
        compared = self.metrics_tracker.run_metadata.setdefault(FUNCTIONS, [])
        for name, function in model_functions.items():
            results[name] = self._evaluated(function)
            compared.append(name)
            named = {
                f"{name}.{metric}": value
                for metric, value in results[name].metrics.items()
            }
            self.metrics_tracker.log_metrics(named)
        return results

    def add_mlops_integration(
        self, integration_func: Callable[[dict[str, Any], list[EvaluationResult]], Any]
    ) -> None:
        """A function that is called with the run and its results in the end.

        What it raises is raised then.
        """
        self.mlops_integrations.append(integration_func)

    def log_to_mlflow(self, experiment_name: str | None = None) -> None:
        """Send metrics, parameters and results to MLflow in the end; without it installed, this is
        logged and nothing is sent.
        """

        def send(
            mlflow: Any, run: dict[str, Any], results: list[EvaluationResult]
        ) -> None:
            with mlflow.start_run(run_name=run["metadata"]["run_name"]):
                mlflow.log_metrics(_of_kind(run["metrics"], int | float))
                mlflow.log_params(
                    _of_kind(run["metadata"]["config"], str | int | float)
                )
                for number, result in enumerate(results):
                    mlflow.log_dict(plain(result.to_dict()), f"result_{number}.json")

        mlflow = self._sent_with("mlflow", send)
        if mlflow and experiment_name:
            mlflow.set_experiment(experiment_name)

    def log_to_wandb(self, project_name: str | None = None) -> None:
        """Send metrics, parameters and results to Weights & Biases in the end; without it
        installed, this is logged and nothing is sent.
        """

        def send(
            wandb: Any, run: dict[str, Any], results: list[EvaluationResult]
        ) -> None:
            name = run["metadata"]["run_name"]
            config = _of_kind(run["metadata"]["config"], str | int | float)
            began = wandb.init(
                project=project_name or "hret-evaluation", name=name, config=config
            )
            began.log(_of_kind(run["metrics"], int | float))
            for number, result in enumerate(results):
                artifact = wandb.Artifact(f"evaluation_result_{number}", type="result")
                with artifact.new_file(f"result_{number}.json") as file:
                    file.write(as_json(result.to_dict()))
                began.log_artifact(artifact)
            began.finish()

        self._sent_with("wandb", send)

    def _sent_with(self, name: str, send: Callable[..., None]) -> Any:
        """The library, once it is to be sent with; None where it is missing."""
        try:
            library = import_module(name)
        except ImportError:
            log.error("%s is not installed: pip install 'evalwright[%s]'", name, name)
            return None
        self.add_mlops_integration(functools.partial(send, library))
        return library

    def save_results(self, filename: str | None = None) -> str:
        """Write all results as JSON into `output_dir`, which is made where it is missing.

        Returns the path.
        """
        path = Path(_global_config.output_dir) / (
            filename or f"hret_results_{int(time.time())}.json"
        )
        tracker = self.metrics_tracker
        saved = {
            "run_metadata": tracker.run_metadata,
            "metrics": tracker.current_run_metrics,
        }
        write_text(
            path,
            as_json(
                {**saved, "results": [result.to_dict() for result in self.results]}
            ),
        )
        return str(path)


def _of_kind(values: Given, kinds: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if isinstance(value, kinds)}


_UNDECORATED = "_evalwright_function"
"""The attribute of a function under `@evaluate`: the function itself, which a context may be given
to evaluate.
"""

evaluation_context = EvaluationContext
"""HRET's name for making one; `dataset=` and `model=` are names of the first two as well."""


def _decorator(run: Callable[..., Any]) -> Callable[[Function], Callable[..., Any]]:
    """A decorator by which a call of the function becomes `run(function, *arguments)`."""

    def decorate(function: Function) -> Callable[..., Any]:
        return functools.wraps(function)(
            lambda *args, **named: run(function, *args, **named)
        )

    return decorate


def evaluate(
    dataset: str | None = None,
    model: str | None = None,
    evaluation_method: str | None = None,
    **kwargs: Any,
) -> Callable[[Function], Callable[..., EvaluationResult]]:
    """A decorator: calling the function evaluates it, and returns the result."""

    def run(function: Function, *args: Any, **named: Any) -> EvaluationResult:
        arguments = {"evaluation_method_name": evaluation_method, **kwargs}
        with evaluation_context(
            dataset, model, f"eval_{function.__name__}", **arguments
        ) as context:
            return context.evaluate(function)

    def decorate(function: Function) -> Callable[..., EvaluationResult]:
        decorated = _decorator(run)(function)
        setattr(decorated, _UNDECORATED, function)
        return decorated

    return decorate


def benchmark(
    dataset: str | None = None, models: Sequence[str] | None = None, **kwargs: Any
) -> Callable[[Function], Callable[..., dict[str, EvaluationResult]]]:
    """A decorator for a function that returns functions by name: calling it evaluates each. models:
    those of them that are wanted.
    """

    def run(
        function: Function, *args: Any, **named: Any
    ) -> dict[str, EvaluationResult]:
        functions = function(*args, **named)
        for name in set(models or ()) - functions.keys():
            raise ValueError(
                f"'{function.__name__}' returns no function for '{name}':"
                f" {', '.join(functions)}."
            )
        chosen = {
            name: candidate
            for name, candidate in functions.items()
            if not models or name in models
        }
        with evaluation_context(
            dataset, run_name=f"benchmark_{function.__name__}", **kwargs
        ) as context:
            return context.benchmark(chosen)

    return _decorator(run)


def track_metrics(metrics: Sequence[str]) -> Callable[[Function], Function]:
    """A decorator: these keys of the dict that the function returns join the history."""

    def run(function: Function, *args: Any, **named: Any) -> Any:
        result = function(*args, **named)
        if isinstance(result, Mapping):
            tracker = MetricsTracker()
            tracker.start_run(function.__name__)
            tracker.log_metrics(
                {key: value for key, value in result.items() if key in metrics}
            )
            _global_tracker.metrics_history.append(tracker.end_run())
        return result

    return _decorator(run)


def quick_eval(
    model_function: Function, dataset: str = "kmmlu", **kwargs: Any
) -> EvaluationResult:
    """One function on one dataset."""
    with evaluation_context(dataset, **kwargs) as context:
        return context.evaluate(model_function)


def compare_models(
    model_functions: Mapping[str, Function], dataset: str = "kmmlu", **kwargs: Any
) -> dict[str, EvaluationResult]:
    """Several functions on one dataset."""
    with evaluation_context(dataset, **kwargs) as context:
        return context.benchmark(model_functions)


get_metrics_history = _global_tracker.get_history
"""All runs of contexts, decorators and functions of this module, oldest first."""
compare_metric = _global_tracker.compare_runs
"""A metric over all of them."""
