"""Exports a run as the structured results of leaderboard spaces on the Hub.

There is a JSON file for each model, in the format of the hallucination leaderboard's files:
`config`, `results`, `model_annotations`, `category_results` and `text_complexity_results`; rates in
percent, numbers to three decimals. Unknown values are null: a model's precision, its revision, the
numbers of a category without samples. Intervals and counts are under `evalwright`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright import Run, __version__
from evalwright.compat.lm_eval.runs.names import file_safe
from evalwright.compat.recording import writing
from evalwright.extend import (
    AS_PUBLISHED,
    BOUNDED_METRICS,
    ConfigurationError,
    MetricResult,
    RunError,
    TaskResult,
    check_known,
    read_json,
    read_rows,
    read_yaml,
    require_scores,
    to_json,
    write_text,
)

NAMES = {"mean-words": "average_summary_length"}
"""Hub names of metrics that are not ours with underscores."""

COMPLEXITY = {
    "standard_text": "low_complexity_text",
    "intensive_text": "high_complexity_text",
}
"""Hub names of the data set's text types."""

OF_ALL = (
    "hallucination_rate",
    "factual_consistency_rate",
    "answer_rate",
    "average_summary_length",
)
OF_A_PART = ("hallucination_rate", "answer_rate", "average_summary_length")
"""Metrics for all samples and for a category, if the run has a hallucination rate.

Other runs export all their metrics.
"""

NAME_KEYS = ("model", "label", "name")
"""Columns of a table, and keys in a list, that name the model; the first one there counts."""

Annotations = Mapping[str, Mapping[str, Any]]


def export_hf_results(
    run: Run,
    output_folder: Path,
    *,
    task: str = "",
    annotations: Annotations | None = None,
    category: str = "category",
) -> Path:
    """Write `<company>/<model>/results_<time>.json` under a folder, and return the file.

    Args:
        task: which task's numbers, if the run has several.
        annotations: by model, as `read_annotations` returns them.
        category: the slice key for `category_results`.

    Raises:
        RunError: the run has several tasks and none is named.
        UnknownName: there is no such task.
    """
    task_result = select_task(run, task)
    name = labelled_name(run)
    started = str(run.data["started"])[:19].replace(":", "-")
    folder = output_folder.joinpath(
        *(file_safe(segment) for segment in name.split("/"))
    )
    file = folder / f"results_{file_safe(started)}.json"
    texts = task_result.slices.get("text_type", {})
    contents = {
        "config": {
            "model_dtype": _model_fact(run, "dtype", "[a-z]+[0-9]+[a-z0-9_]*"),
            "model_name": name,
            "model_sha": _model_fact(run, "revision", "[0-9a-f]{40}"),
        },
        "results": _rates(task_result.metrics),
        "model_annotations": _annotated(annotations or {}, run),
        "category_results": {
            slice_name: _rates(metrics, OF_A_PART)
            for slice_name, metrics in task_result.slices.get(category, {}).items()
        },
        "text_complexity_results": {
            hub_name_of_type: _rates(texts[text_type], OF_A_PART)
            if text_type in texts
            else None
            for text_type, hub_name_of_type in COMPLEXITY.items()
        },
        "evalwright": {
            "version": __version__,
            "run": run.id,
            "model": run.shown_model,
            "task": task_result.name,
            "started": run.data["started"],
            "rates": "percent",
            "metrics": {
                _their_name(metric.label): _with_uncertainty(
                    metric,
                    as_published=run.is_as_published(task_result.name, metric.label),
                )
                for metric in task_result.metrics
            },
        },
    }
    with writing(file):
        write_text(file, to_json(contents, indent=2) + "\n")
    return file


def select_task(run: Run, name: str) -> TaskResult:
    """The task of that name, or the only one.

    Raises RunError if the name is missing, UnknownName if it is unknown.
    """
    require_scores([run], "export")
    if name:
        return run.task(name)
    tasks = [task for task in run.tasks if task.main]
    if len(tasks) != 1:
        names = ", ".join(f"'{task.name}'" for task in tasks) or "none with a metric"
        raise RunError(
            f"The run '{run.id}' has several tasks ({names}): name one with --task."
        )
    return tasks[0]


def select_metric(task: TaskResult, label: str) -> MetricResult:
    """The task's metric of that label, or its main one. Raises UnknownName."""
    metrics_by_label = {metric.label: metric for metric in task.metrics}
    if label:
        check_known(f"metric of '{task.name}'", [label], metrics_by_label)
    metric = metrics_by_label[label] if label else task.main
    if metric is None or math.isnan(metric.estimate.value):
        raise RunError(f"'{task.name}' has no value to export: nothing was scored.")
    return metric


def hub_name(model: str) -> str:
    """A model's name on the Hub: without the provider `hf` and without a revision."""
    name = model.removeprefix("hf/")
    return name.partition("@")[0] if name != model else name


def labelled_name(run: Run) -> str:
    """company/model, with the run's label instead of the model's name if it has one."""
    name = hub_name(run.shown_model)
    label = run.label
    if label in ("", run.model, run.shown_model, name):
        return name
    is_full_name = re.fullmatch(r"[^/\s]+/[^/\s]+", label)
    return label if is_full_name else f"{name.split('/')[0]}/{label.replace('/', '-')}"


def read_annotations(file: Path) -> Annotations:
    """Read annotations by model, as they are written: a table of facts in YAML, JSON or CSV.

    Raises ConfigurationError naming what is wrong.
    """
    if not file.is_file():
        raise ConfigurationError(f"The annotations '{file}' do not exist.")
    table: dict[str, Any] = {}
    for name, fields in _annotation_rows(file):
        if not isinstance(fields, Mapping):
            raise ConfigurationError(
                f"{file}: '{name}' must be a mapping, for example {{model_size: small,"
                " accessibility: open}."
            )
        table[str(name)] = dict(fields)
    return table


def _annotation_rows(file: Path) -> Iterable[tuple[Any, Any]]:
    """Iterate over the names of models with what a table says of them."""
    suffix = file.suffix.lower()
    if suffix in (".csv", ".tsv"):
        return [_named_row(file, row) for row in read_rows(file)]
    if suffix == ".json":
        content = read_json(file)
        if isinstance(content, list):
            return [_named_row(file, row) for row in content]
        if isinstance(content, Mapping):
            return content.items()
        raise ConfigurationError(f"{file} must be a mapping of models, or a list.")
    content = read_yaml(file, "file of annotations", "models").value
    if list(content) == ["models"] and isinstance(content["models"], list):
        return [_named_row(file, row) for row in content["models"]]
    return content.items()


def _named_row(file: Path, row: Any) -> tuple[Any, Any]:
    """Split a row into the model that it names, and the rest."""
    keys = row if isinstance(row, Mapping) else {}
    by_lower = {str(key).strip().lower(): key for key in keys}
    key = next((by_lower[name] for name in NAME_KEYS if name in by_lower), None)
    if key is None:
        raise ConfigurationError(
            f"{file}: each entry must be a mapping with 'model', the label or name of a"
            " model."
        )
    return row[key], {name: fact for name, fact in row.items() if name != key}


def is_annotated(annotations: Annotations, run: Run) -> bool:
    """Whether the table has the run's model."""
    return any(name in annotations for name in _names(run))


def _names(run: Run) -> tuple[str, ...]:
    """Names under which a table may list the run's model."""
    return run.model, hub_name(run.model), run.label, labelled_name(run)


def _annotated(annotations: Annotations, run: Run) -> dict[str, Any]:
    """The model's annotations; null for keys that only other models have."""
    keys = dict.fromkeys(key for fields in annotations.values() for key in fields)
    model_annotations = next(filter(None, map(annotations.get, _names(run))), {})
    return {key: model_annotations.get(key) for key in keys}


def _model_fact(run: Run, key: str, form: str) -> str | None:
    """A fact about the model; None if its form is wrong, such as a branch instead of a hash."""
    fact = str(run.data["model"].get(key, ""))
    return fact if re.fullmatch(form, fact) else None


def _rates(
    metrics: Sequence[MetricResult], names: Sequence[str] = OF_ALL
) -> dict[str, float | None]:
    numbers = {
        _their_name(metric.label): _scale(metric, metric.estimate.value)
        for metric in metrics
    }
    return (
        {name: numbers[name] for name in names if name in numbers}
        if names[0] in numbers
        else numbers
    )


def _with_uncertainty(metric: MetricResult, *, as_published: bool) -> dict[str, Any]:
    estimate = metric.estimate
    if as_published:
        value = _scale(metric, estimate.value)
        return {
            "value": value,
            "interval": [None, None],
            "n": estimate.n,
            "n_missing": estimate.n_missing,
            "source": AS_PUBLISHED,
        }
    value, *interval = (
        _scale(metric, number)
        for number in (estimate.value, estimate.low, estimate.high)
    )
    counts = {
        key: getattr(estimate, key) for key in ("level", "n", "n_missing", "method")
    }
    return {"value": value, "interval": interval, **counts}


def _their_name(label: str) -> str:
    plain = label.replace(" ", "-")
    return NAMES.get(plain, plain.replace("-", "_"))


def _scale(metric: MetricResult, value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return round(100 * value if metric.kind in BOUNDED_METRICS else value, 3)
