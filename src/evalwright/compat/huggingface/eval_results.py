"""Exports a run as an entry for a model repository on the Hub: `.eval_results/<benchmark>.yaml`.

The fields are those of the Hub's documentation of evaluation results. A `value` there has no unit
(published examples are 20.90 and 0.412), so the notes give the unit, the interval and the number of
samples.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright import Run, __version__
from evalwright.compat.huggingface.hf_results import select_metric, select_task
from evalwright.compat.recording import writing
from evalwright.extend import (
    AS_PUBLISHED,
    BOUNDED_METRICS,
    ConfigurationError,
    MetricResult,
    TaskResult,
    UnknownName,
    write_text,
)

FOLDER = ".eval_results"
UNITS = {"percent": "percent", "share": "share of 1"}
"""Units of a bounded metric, and how the notes call them."""

_DATASET = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def export_eval_results(
    run: Run,
    repository: Path,
    *,
    dataset: str,
    task_id: str,
    name: str = "",
    revision: str = "",
    unit: str = "percent",
    source: Mapping[str, str] | None = None,
    framework: str = "evalwright",
    notes: str = "",
    task: str = "",
    metric: str = "",
) -> Path:
    """Write `.eval_results/<name>.yaml` with one result into a model's repository.

    Args:
        repository: the model's repository.
        dataset: the benchmark's id on the Hub.
        task_id: the task's id in the dataset's eval.yaml.
        name: the file's name; default: the dataset's.
        unit: of a bounded metric, "percent" or "share".
        source: url, name and user of a place where the result can be looked up.
        notes: text before our own notes.
        task, metric: which number; default: the only task and its main metric.

    Returns:
        The file.

    Raises:
        RunError: the run has several tasks, or no value.
        UnknownName: the task, metric or unit is unknown.
        ConfigurationError: an id, address or name is invalid.
    """
    import yaml

    task_result = select_task(run, task)
    name = name or dataset.rpartition("/")[2]
    where = {key: text for key, text in (source or {}).items() if text}
    _check(dataset, task_id, name, unit, where)
    chosen = select_metric(task_result, metric)
    row: dict[str, Any] = {
        "dataset": {
            "id": dataset,
            "task_id": task_id,
            **({"revision": revision} if revision else {}),
        },
        "value": _number(chosen, chosen.estimate.value, unit),
        "date": str(run.data["started"])[:10],
    }
    if where:
        row["source"] = where
    if framework:
        row["evaluation_framework"] = framework
    row["notes"] = "; ".join(
        note for note in (notes.strip(), _notes(run, task_result, chosen, unit)) if note
    )
    file = repository / FOLDER / f"{name}.yaml"
    with writing(file):
        write_text(
            file, yaml.safe_dump([row], sort_keys=False, allow_unicode=True, width=100)
        )
    return file


def _check(
    dataset: str, task_id: str, name: str, unit: str, source: Mapping[str, str]
) -> None:
    """Raise for values that the Hub would reject."""
    if not _DATASET.fullmatch(dataset):
        raise ConfigurationError(
            f"'{dataset}' is not the id of a data set on the Hub: it must be"
            " 'owner/name'."
        )
    if not task_id.strip():
        raise ConfigurationError(
            "The task id is empty: give the one in the data set's eval.yaml."
        )
    if unit not in UNITS:
        raise UnknownName("unit", unit, UNITS, "There are 'percent' and 'share'.")
    if source and not re.match(r"https?://\S+$", source.get("url", "")):
        url = source.get("url", "")
        raise ConfigurationError(
            f"The source '{url}' is not an address that begins with https://."
        )
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"'{name}' cannot be the file's name: use letters, digits, '-', '_' and '.'"
            " only."
        )


def _number(metric: MetricResult, value: float, unit: str) -> float:
    scaled = (
        100 * value if metric.kind in BOUNDED_METRICS and unit == "percent" else value
    )
    return round(scaled, 4 if unit == "percent" else 6)


def _notes(run: Run, task: TaskResult, metric: MetricResult, unit: str) -> str:
    """The unit, then the uncertainty of the number and what it is computed from."""
    estimate = metric.estimate
    unit_text = UNITS[unit] if metric.kind in BOUNDED_METRICS else "its own unit"
    unit_note = f"{metric.label} in {unit_text}"
    if metric.has_direction:
        direction = "lower" if metric.less_is_better else "higher"
        unit_note += f", {direction} is better"
    notes = [unit_note]
    as_published = run.is_as_published(task.name, metric.label)
    if as_published:
        notes.append(AS_PUBLISHED)
    elif estimate.low == estimate.low and estimate.high == estimate.high:
        low, high = (
            _number(metric, end, unit) for end in (estimate.low, estimate.high)
        )
        notes.append(
            f"{100 * estimate.level:g}% interval {low} to {high} ({estimate.method})"
        )
    failed = (
        f", {estimate.n_missing} failed ones left out" if estimate.n_missing else ""
    )
    notes.append(f"{estimate.n} items{failed}")
    notes.append(f"task {task.name} version {task.version}")
    if judge := _judge(run, task):
        notes.append(f"judge {judge}")
    return "; ".join([*notes, f"evalwright {__version__}"])


def _judge(run: Run, task: TaskResult) -> str:
    """The judge model, or what an imported task says of it."""
    role = run.data.get("roles", {}).get("judge", {})
    if role.get("name"):
        return str(role["name"])
    judge = next(
        (
            t["definition"].get("judge")
            for t in run.data["tasks"]
            if t["name"] == task.name
        ),
        None,
    )
    return judge if isinstance(judge, str) else ""
