"""Exports runs as model-card metadata of the Hugging Face Hub: the `model-index` of a card.

The form is that of the Hub's documentation of model cards, which `huggingface_hub.ModelCard` and
`metadata_update` read: results with a task, a dataset and metrics. It has no place for intervals
and counts, so that each metric's name gives them. `verified` is never set: only the Hub may.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright import Run, __version__
from evalwright.compat.huggingface.eval_results import UNITS
from evalwright.compat.huggingface.hf_results import labelled_name
from evalwright.compat.recording import file_name, writing
from evalwright.extend import (
    AS_PUBLISHED,
    BOUNDED_METRICS,
    ConfigurationError,
    ExportSummary,
    MetricResult,
    TaskResult,
    UnknownName,
    require_scores,
    write_text,
)

DEFAULT_TASK_TYPE = "text-generation"
"""The Hub's name for what most tasks ask of a model."""
MAX_NAME_CHARS = 60
"""Longest part of a file's name: 240 bytes in scripts of four bytes a character."""
_TASK_TYPE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_REVISION = re.compile(r"[0-9a-f]{40}")
_ADDRESS = re.compile(r"https?://\S+")
_END_FORMAT = ".4g"
"""How the ends of an interval are written: with four significant digits."""


def export_model_cards(
    runs: Sequence[Run],
    folder: Path,
    *,
    task_type: str = DEFAULT_TASK_TYPE,
    unit: str = "percent",
    source_url: str = "",
    source_name: str = "",
    all_metrics: bool = False,
) -> ExportSummary:
    """Write a Markdown file for each model, with a YAML header that a model card can take over.

    Args:
        runs: the runs; those of one model go into one file.
        folder: where the files are written: ORGANISATION/MODEL.md.
        task_type: the Hub's name of what the tasks ask, such as "text-generation".
        unit: of bounded metrics, "percent" or "share".
        source_url: where the results can be looked up.
        source_name: the name of that address.
        all_metrics: whether to write all metrics of a task, not only the main one.

    Raises:
        RunError: a run has no scores, or a file cannot be written.
        UnknownName: there is no such unit.
        ConfigurationError: the task type or address is invalid, or nothing was scored.
    """
    require_scores(runs, "export")
    _check(task_type, unit, source_url)
    source = {"name": source_name, "url": source_url} if source_url else {}
    source = {name: text for name, text in source.items() if text}
    results_by_model: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        results = list(_results(run, task_type, unit, source, all_metrics))
        results_by_model.setdefault(labelled_name(run), []).extend(results)
    files: list[Path] = []
    for name, results in results_by_model.items():
        if not results:
            raise ConfigurationError(
                f"'{name}' has no number to export: nothing was scored."
            )
        file = folder / _file_of(name)
        if file in files:
            raise ConfigurationError(
                f"'{file}' would have the results of two models whose names are alike."
                " Export one of them."
            )
        with writing(file):
            write_text(file, _card(name, _distinct(results)))
        files.append(file)
    return ExportSummary(
        files,
        [
            "Copy the header into the README.md of the model's repository, or:"
            " huggingface_hub.metadata_update(REPOSITORY,"
            " ModelCard.load(FILE).data.to_dict())"
        ],
    )


def _file_of(model: str) -> Path:
    """Return the file of a model: ORGANISATION/MODEL.md, inside the folder whatever the name."""
    *owners, name = (
        file_name(part.strip("."), "model", MAX_NAME_CHARS) for part in model.split("/")
    )
    return Path(*owners, f"{name}.md")


def _check(task_type: str, unit: str, source_url: str) -> None:
    if not _TASK_TYPE.fullmatch(task_type):
        raise ConfigurationError(
            f"'{task_type}' is no task of the Hub: write it like text-generation or"
            " question-answering."
        )
    if unit not in UNITS:
        raise UnknownName("unit", unit, UNITS, "There are 'percent' and 'share'.")
    if source_url and not _ADDRESS.fullmatch(source_url):
        raise ConfigurationError(
            f"The source '{source_url}' is not an address that begins with https://."
        )


def model_index(
    name: str, results: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the `model-index` of one model."""
    model = name.rpartition("/")[2] or name
    return [{"name": model, "results": list(results)}]


def _results(
    run: Run,
    task_type: str,
    unit: str,
    source: Mapping[str, str],
    all_metrics: bool,
) -> Iterator[dict[str, Any]]:
    """Iterate over the results of a run's tasks, then those of its averages over tasks."""
    for task in run.tasks:
        listed_metrics = task.metrics if all_metrics else task.metrics[:1]
        metrics = _metrics(run, task.name, listed_metrics, unit)
        if metrics:
            yield {
                "task": {"type": task_type, "name": task.name},
                "dataset": _dataset(run, task),
                "metrics": metrics,
                **({"source": dict(source)} if source else {}),
            }
    for group in run.groups:
        listed_metrics = group.metrics if all_metrics else group.metrics[:1]
        metrics = _metrics(run, group.name, listed_metrics, unit)
        if metrics:
            yield {
                "task": {"type": task_type, "name": group.name},
                "dataset": {
                    "type": group.name,
                    "name": f"{group.label} ({group.coverage})",
                },
                "metrics": metrics,
                **({"source": dict(source)} if source else {}),
            }


def _metrics(
    run: Run, task: str, metrics: Sequence[MetricResult], unit: str
) -> list[dict[str, Any]]:
    return [
        {
            "type": metric.kind.replace("-", "_"),
            "value": _number(metric, metric.estimate.value, unit),
            "name": _metric_name(run, task, metric, unit),
        }
        for metric in metrics
        if math.isfinite(metric.estimate.value)
    ]


def _number(metric: MetricResult, number: float, unit: str) -> float:
    is_percent = metric.kind in BOUNDED_METRICS and unit == "percent"
    return round(100 * number, 4) if is_percent else round(number, 6)


def _metric_name(run: Run, task: str, metric: MetricResult, unit: str) -> str:
    """Name a metric with its unit, interval and counts: `accuracy (%, 95% interval ...)`."""
    estimate = metric.estimate
    facts = []
    if metric.kind in BOUNDED_METRICS:
        facts.append("%" if unit == "percent" else "share of 1")
    if metric.less_is_better:
        facts.append("lower is better")
    if run.is_as_published(task, metric.label):
        facts.append(AS_PUBLISHED)
    elif math.isfinite(estimate.low) and math.isfinite(estimate.high):
        low = _number(metric, estimate.low, unit)
        high = _number(metric, estimate.high, unit)
        ends = f"{low:{_END_FORMAT}} to {high:{_END_FORMAT}}"
        facts.append(f"{100 * estimate.level:g}% interval {ends}")
    else:
        facts.append("no interval")
    facts.append(f"{estimate.n} items")
    if estimate.n_missing:
        facts.append(f"{estimate.n_missing} missing")
    return f"{metric.label} ({', '.join(facts)})"


def _dataset(run: Run, task: TaskResult) -> dict[str, Any]:
    """Name a task's data set: its id on the Hub where the task names one, else the task."""
    record = run.record(task.name)
    definition = record.get("definition") or {}
    dataset = definition.get("dataset")
    fields = dataset if isinstance(dataset, Mapping) else {}
    path = fields.get("hub")
    name = f"{task.name} (version {task.version})"
    if not isinstance(path, str) or not path:
        return {"type": task.name, "name": name}
    revision = str(fields.get("revision") or "")
    config = fields.get("config")
    if not isinstance(config, str):
        config = ", ".join(config) if config else ""
    return {
        "type": path,
        "name": name,
        **({"config": config} if config else {}),
        **({"split": str(fields["split"])} if fields.get("split") else {}),
        **({"revision": revision} if _REVISION.fullmatch(revision) else {}),
    }


def _distinct(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tell results of one data set apart, which readers would merge, by their config.

    Readers take results for the same that agree in dataset type, config, split and revision.
    """
    marks = [_identity(result) for result in results]
    counts = Counter(marks)
    distinct = []
    seen: Counter[tuple[str, ...]] = Counter()
    for result, mark in zip(results, marks, strict=True):
        dataset = dict(result["dataset"])
        if counts[mark] > 1:
            seen[mark] += 1
            task = result["task"]["name"]
            config = f"{dataset['config']} {task}" if "config" in dataset else task
            further = (*mark, config)
            seen[further] += 1
            number = f" {seen[further]}" if seen[further] > 1 else ""
            dataset["config"] = f"{config}{number}"
        distinct.append({**result, "dataset": dataset})
    return distinct


def _identity(result: Mapping[str, Any]) -> tuple[str, ...]:
    dataset = result["dataset"]
    keys = ("type", "config", "split", "revision")
    return tuple(str(dataset.get(key, "")) for key in keys)


def _card(name: str, results: Sequence[Mapping[str, Any]]) -> str:
    import yaml

    header = yaml.safe_dump(
        {"model-index": model_index(name, results)},
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )
    return f"---\n{header}---\n\nResults computed with evalwright {__version__}.\n"
