"""A task file's settings with their defaults, checked key by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks.filters import Pipeline, build_pipelines
from evalwright.compat.lm_eval.tasks.registered import registered_metric
from evalwright.extend import TaskError, UnknownName, check_known, closest_names

OUTPUT_TYPES = (
    "loglikelihood",
    "loglikelihood_rolling",
    "multiple_choice",
    "generate_until",
)
MAX_TOKENS = 256
"""Default token limit of generation."""

STRUCTURE = frozenset({"tag", "group", "task_list"})
"""Keys that place a task among others and do not describe it."""

DEFAULT_METRICS: Mapping[str, tuple[str, ...]] = {
    "loglikelihood": ("perplexity", "acc"),
    "loglikelihood_rolling": ("word_perplexity", "byte_perplexity", "bits_per_byte"),
    "multiple_choice": ("acc", "acc_norm"),
    "generate_until": ("exact_match",),
}
_METRIC_KEYS = ("metric", "aggregation", "higher_is_better", "hf_evaluate")
_EXACT_MATCH = (
    "regexes_to_ignore",
    "ignore_case",
    "ignore_punctuation",
    "ignore_numbers",
)


@dataclass(frozen=True, slots=True)
class MetricEntry:
    """One entry of `metric_list`.

    function: a metric that the task defines. options: keyword arguments for it.
    """

    name: str
    aggregation: Any = None
    higher_is_better: bool | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    function: Callable[..., Any] | None = None
    from_evaluate: bool = False


@dataclass(frozen=True, slots=True)
class FewShot:
    """How few-shot examples are chosen and written; defaults are those of the task's questions."""

    sampler: Any = "default"
    split: str | None = None
    process_docs: Callable[..., Any] | None = None
    fewshot_indices: Sequence[int] | None = None
    samples: Any = None
    doc_to_text: Any = None
    doc_to_choice: Any = None
    doc_to_target: Any = None
    gen_prefix: str | None = None
    fewshot_delimiter: str | None = None
    target_delimiter: str | None = None


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """A task's settings under the names of its file; see `read`."""

    task: str = ""
    task_alias: str | None = None
    custom_dataset: Callable[..., Any] | None = None
    dataset_path: str | None = None
    dataset_name: str | None = None
    dataset_kwargs: Mapping[str, Any] | None = None
    training_split: str | None = None
    validation_split: str | None = None
    test_split: str | None = None
    fewshot_split: str | None = None
    process_docs: Callable[..., Any] | None = None
    doc_to_text: Any = None
    doc_to_target: Any = None
    doc_to_image: Any = None
    doc_to_audio: Any = None
    unsafe_code: bool = False
    doc_to_choice: Any = None
    process_results: Callable[..., Any] | None = None
    use_prompt: str | None = None
    description: str = ""
    target_delimiter: str = " "
    fewshot_delimiter: str = "\n\n"
    fewshot_config: Any = None
    num_fewshot: int | None = None
    metric_list: Sequence[Any] | None = None
    output_type: str = "generate_until"
    generation_kwargs: dict[str, Any] | None = None
    repeats: int = 1
    filter_list: Any = None
    should_decontaminate: bool = False
    doc_to_decontamination_query: str | None = None
    gen_prefix: str | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A task's settings and everything derived from them.

    findings: sentences about oddities in the file. source: the task file, "" or another word
    without one.
    """

    config: TaskConfig
    shots: FewShot
    metrics: tuple[MetricEntry, ...]
    pipelines: tuple[Pipeline, ...]
    generation: Mapping[str, Any]
    findings: tuple[str, ...]
    source: str = ""

    @property
    def folder(self) -> Path | None:
        """The folder of the task file."""
        return (
            Path(self.source).parent if self.source.endswith(("yaml", "yml")) else None
        )

    @property
    def name(self) -> str:
        """The task's name in lm-evaluation-harness."""
        return self.config.task


def read(settings: Mapping[str, Any], where: str = "") -> Definition:
    """Build a task's definition from its merged settings, with `!function` resolved.

    where: the file, for errors. Raises UnknownName for an unknown key, TaskError for an unusable
    value.
    """
    task_settings = {
        key: value for key, value in settings.items() if key not in STRUCTURE
    }
    name = str(task_settings.get("task", ""))
    _check_keys(task_settings, TaskConfig, f"key of the task '{name}'", where)
    config = TaskConfig(
        **{
            key: value
            for key, value in task_settings.items()
            if value is not None or key == "task"
        }
    )
    check_known(
        f"output_type of the task '{name}'", [config.output_type], OUTPUT_TYPES, ""
    )
    findings: list[str] = []
    shots = _few_shot(config, where)
    if shots.fewshot_indices is not None:
        findings.append("`fewshot_config.fewshot_indices` has no effect, as published.")
    metrics = _metrics(config, findings)
    pipelines = build_pipelines(config.filter_list, name)
    generation = _generation(config, findings)
    return Definition(
        config, shots, metrics, pipelines, generation, tuple(findings), where
    )


def _check_keys(
    settings: Mapping[str, Any], cls: Any, description: str, where: str
) -> None:
    names = [field.name for field in fields(cls)]
    for key in settings:
        if key not in names:
            raise UnknownName(
                description, str(key), names, f"({where})" if where else ""
            )


def _few_shot(config: TaskConfig, where: str) -> FewShot:
    few_shot = config.fewshot_config or {}
    if not isinstance(few_shot, Mapping):
        raise TaskError(
            f"The task '{config.task}': `fewshot_config` is a mapping. ({where})"
        )
    _check_keys(
        few_shot, FewShot, f"key of `fewshot_config` of the task '{config.task}'", where
    )
    shared = {field.name for field in fields(FewShot)} & {
        field.name for field in fields(TaskConfig)
    }
    inherited = {key: getattr(config, key) for key in shared}
    return FewShot(**{"split": config.fewshot_split, **inherited, **few_shot})


def _metrics(config: TaskConfig, findings: list[str]) -> tuple[MetricEntry, ...]:
    if config.metric_list is None:
        return tuple(MetricEntry(name) for name in DEFAULT_METRICS[config.output_type])
    entries: dict[str, MetricEntry] = {}
    for metric_settings in config.metric_list:
        if not isinstance(metric_settings, Mapping) or "metric" not in metric_settings:
            raise TaskError(
                f"The task '{config.task}': every entry of `metric_list` needs the key"
                " `metric`."
            )
        metric = _metric(config, metric_settings, findings)
        entries[metric.name] = metric
    return tuple(entries.values())


def _metric(
    config: TaskConfig, metric_settings: Mapping[str, Any], findings: list[str]
) -> MetricEntry:
    metric = metric_settings["metric"]
    function = metric if callable(metric) else None
    name = str(getattr(metric, "__name__", metric) if function else metric)
    options = {
        key: value for key, value in metric_settings.items() if key not in _METRIC_KEYS
    }
    from_evaluate = metric_settings.get("hf_evaluate") is True
    registered = None
    if function is None and not from_evaluate and name not in TABLES["aggregations"]:
        registered = registered_metric(name)
    if registered is not None:
        function = registered.function
        metric_settings = {
            "aggregation": registered.aggregation,
            "higher_is_better": registered.higher_is_better,
            **metric_settings,
        }
    exact = name == "exact_match" and function is None
    called = (
        function is not None
        or from_evaluate
        or (exact and config.output_type == "generate_until")
    )
    unused = config.process_results is not None or not called
    for key in options:
        if unused or (exact and key not in _EXACT_MATCH):
            closest_keys = (
                [] if key in _EXACT_MATCH else closest_names(str(key), _METRIC_KEYS)
            )
            meant = f" Was '{closest_keys[0]}' meant?" if closest_keys else ""
            findings.append(
                f"The metric '{name}' has the key '{key}', which has no effect.{meant}"
            )
    better = metric_settings.get("higher_is_better")
    if better is not None and not isinstance(better, bool):
        findings.append(
            f"The metric '{name}' has `higher_is_better: {better}`, which is neither"
            " true nor false."
        )
    if config.process_results is not None:
        function = None
        options = {}
    way = None if better is None else bool(better)
    return MetricEntry(
        name, metric_settings.get("aggregation"), way, options, function, from_evaluate
    )


def _generation(config: TaskConfig, findings: list[str]) -> dict[str, Any]:
    """Generation settings in lm_eval's terms: until, do_sample, temperature, max_gen_toks, ..."""
    generates = config.output_type == "generate_until"
    generation_kwargs = config.generation_kwargs
    if generation_kwargs is None:
        generation_kwargs = (
            {"temperature": 0.0, "do_sample": False, "max_gen_toks": MAX_TOKENS}
            if generates
            else None
        )
    elif not generates:
        findings.append(
            "`generation_kwargs` has no effect where the output type is"
            f" {config.output_type}."
        )
    if generation_kwargs is None:
        return {}
    warm = (
        {"temperature": float(generation_kwargs["temperature"])}
        if "temperature" in generation_kwargs
        else {}
    )
    return {
        **generation_kwargs,
        **warm,
        "until": generation_kwargs.get("until", [config.fewshot_delimiter]),
    }
