"""Groups of tasks, and a run's numbers in lm_eval's form: `{task: {"acc,none": 0.5, ...}}`.

A group's average covers all tasks below it, at any depth. Corrected, tasks are weighted equally or
by size, as a tree of tasks (`metrics.tree`); published, by lm-evaluation-harness's own arithmetic.
A tag is only a name for its tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from evalwright import Run
from evalwright.compat.lm_eval.tasks.aggregation import by_error
from evalwright.compat.lm_eval.tasks.options import DIALECT, PREFIX
from evalwright.compat.lm_eval.tasks.task_yaml import FunctionRef
from evalwright.extend import GroupAverage, TaskError, TaskGroup, TreeNode, check_known
from evalwright.statistics import Estimate


@dataclass(frozen=True, slots=True)
class Average:
    """One entry of `aggregate_metric_list`.

    filter_list: None means every pipeline for which any task has this metric.
    """

    metric: str
    aggregation: str = "mean"
    weight_by_size: bool = True
    filter_list: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A group of tasks. children: its direct members. tasks: all tasks below it, in order."""

    name: str
    alias: str
    averages: tuple[Average, ...] = ()
    version: str = "N/A"
    children: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    findings: tuple[str, ...] = field(default=(), compare=False)

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        plain = asdict(self)
        plain.pop("findings")
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Group:
        """The inverse of `as_dict`."""
        averages = tuple(
            Average(
                **{
                    **average,
                    "filter_list": average["filter_list"]
                    and tuple(average["filter_list"]),
                }
            )
            for average in data["averages"]
        )
        lists = {key: tuple(data[key]) for key in ("children", "tasks")}
        return cls(
            **{**data, **lists, "alias": str(data["alias"]), "averages": averages}
        )


def parse_averages(
    setting: Any, group: str
) -> tuple[tuple[Average, ...], tuple[str, ...]]:
    """Parse `aggregate_metric_list`, and report oddities in it.

    Raises UnknownName for an unknown key.
    """
    keys = [field.name for field in fields(Average)]
    averages = []
    findings = []
    for average_settings in (
        [setting] if isinstance(setting, Mapping) else setting or ()
    ):
        check_known(
            f"key of `aggregate_metric_list` of the group '{group}'",
            average_settings,
            keys,
            "",
        )
        if "metric" not in average_settings:
            raise TaskError(
                f"The group '{group}': every entry of `aggregate_metric_list` needs the"
                " key `metric`."
            )
        aggregation = average_settings.get("aggregation", "mean")
        if isinstance(aggregation, FunctionRef):
            # The published runner takes a function here and never calls it.
            findings.append(
                f"`aggregation: {aggregation}` has no effect, as published: the group is"
                " averaged."
            )
            aggregation = "mean"
        if aggregation != "mean":
            raise TaskError(
                f"The group '{group}' is averaged by '{aggregation}'; only mean is known."
            )
        weight = average_settings.get("weight_by_size", True)
        if not isinstance(weight, bool):
            findings.append(
                f"`weight_by_size: {weight}` is neither true nor false and counts as"
                f" {bool(weight)}."
            )
        pipelines = average_settings.get("filter_list")
        if pipelines is not None:
            pipelines = (pipelines,) if isinstance(pipelines, str) else tuple(pipelines)
        averages.append(
            Average(
                str(average_settings["metric"]), aggregation, bool(weight), pipelines
            )
        )
    return tuple(averages), tuple(findings)


Results = Mapping[str, Mapping[str, Any]]
"""Values by "metric,pipeline", with "metric_stderr,pipeline" and "sample_len", by task."""


def group_results(group: Group, results_by_task: Results) -> dict[str, Any]:
    """The group's averages in lm_eval's form."""
    summary: dict[str, Any] = {"alias": group.alias, "name": group.name}
    if not group.averages:
        return summary
    member_results = [
        results_by_task[name] for name in group.tasks if name in results_by_task
    ]
    summary["sample_len"] = sum(
        task_result.get("sample_len", 0) for task_result in member_results
    )
    # A task whose every request failed has no metric at all, and an average of the others would
    # pass for one of all.
    all_have_numbers = all(
        any("," in key for key in task_result) for task_result in member_results
    )
    counts: dict[str, int] = {}
    for average in group.averages:
        for pipeline in average.filter_list or pipelines_of_metric(
            average.metric, member_results
        ):
            key = f"{average.metric},{pipeline}"
            error_key = f"{average.metric}_stderr,{pipeline}"
            having = [
                task_result for task_result in member_results if key in task_result
            ]
            if not having:
                continue
            is_numeric = all(
                isinstance(task_result[key], int | float) for task_result in having
            )
            if not (all_have_numbers and is_numeric):
                summary[key] = summary[error_key] = "N/A"
                continue
            sizes = [task_result.get("sample_len", 0) for task_result in having]
            weights = sizes if average.weight_by_size else [1] * len(having)
            summary[key] = sum(
                w * task_result[key]
                for w, task_result in zip(weights, having, strict=True)
            ) / sum(weights)
            counts[key] = sum(sizes)
            errors = [task_result.get(error_key) for task_result in having]
            summary[error_key] = _error(errors, sizes, average.weight_by_size)
    if counts:
        summary["sample_count"] = counts
    return summary


def pipelines_of_metric(
    metric: str, task_scores: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The filter pipelines for which any of the results has a metric."""
    start = f"{metric},"
    keys = {key for scores in task_scores for key in scores}
    return sorted(key.removeprefix(start) for key in keys if key.startswith(start))


def _error(errors: Sequence[Any], sizes: Sequence[int], weighted: bool) -> Any:
    """The standard error of a group's average.

    Weighted, from the pooled variance within tasks; unweighted, of a mean of independent means.
    """
    if any(not isinstance(error, int | float) for error in errors):
        return "N/A"
    if not weighted:
        return math.sqrt(sum(error**2 for error in errors)) / len(errors)
    variance = sum(
        (size - 1) * size * error**2 for size, error in zip(sizes, errors, strict=True)
    )
    freedom = sum(sizes) - len(sizes)
    return math.sqrt(variance / freedom / sum(sizes)) if freedom else "N/A"


Tasks = Sequence[Mapping[str, Any]]


def task_results(tasks: Tasks) -> dict[str, dict[str, Any]]:
    """Results of this dialect's tasks, under lm_eval's names. tasks: those of `run.json`."""
    results_by_task: dict[str, dict[str, Any]] = {}
    for task in _theirs(tasks):
        name = task["definition"]["task"]
        numbers: dict[str, Any] = {"name": name, "alias": task["definition"]["alias"]}
        numbers["sample_len"] = max(
            (metric["n"] for metric in task["metrics"]), default=0
        )
        for metric in task["metrics"]:
            pipeline = metric["scorer"]
            error = metric["standard_error"]
            label = metric["label"].removesuffix(f",{pipeline}")
            numbers[f"{label},{pipeline}"] = metric["value"]
            numbers[f"{label}_stderr,{pipeline}"] = "N/A" if error is None else error
        results_by_task[name] = numbers
    return results_by_task


def selected_groups(tasks: Tasks) -> dict[str, Group]:
    """The groups through which the tasks were selected, inner ones first.

    tasks: those of `run.json`.
    """
    groups: dict[str, Group] = {}
    for task in _theirs(tasks):
        for group in task["definition"]["groups"]:
            groups.setdefault(group["name"], Group.from_dict(group))
    return groups


def all_results(run: Run) -> dict[str, dict[str, Any]]:
    """As `task_results`, with the averages of groups."""
    results_by_task = task_results(run.data["tasks"])
    for name, group in selected_groups(run.data["tasks"]).items():
        results_by_task[name] = group_results(group, results_by_task)
    return results_by_task


def _theirs(tasks: Tasks) -> list[Mapping[str, Any]]:
    return [task for task in tasks if task["definition"].get("dialect") == DIALECT]


# -- averages --------------------------------------------------------------------------


def groups(tasks: Tasks) -> list[TaskGroup]:
    """The groups that have averages, inner ones first. tasks: those of `run.json`."""
    results_by_task = task_results(tasks)
    by_name = {task["definition"]["task"]: task for task in tasks}
    averaged_groups = []
    for group in selected_groups(tasks).values():
        members = [by_name[name] for name in group.tasks if name in by_name]
        absent = [f"{PREFIX}{name}" for name in group.tasks if name not in by_name]
        averages = tuple(_averages(group, members, absent, results_by_task))
        if averages:
            averaged_groups.append(
                TaskGroup(f"{PREFIX}{group.name}", group.alias, averages)
            )
    return averaged_groups


def _averages(
    group: Group,
    tasks: Tasks,
    absent: Sequence[str],
    results_by_task: Mapping[str, Mapping[str, Any]],
) -> Iterator[GroupAverage]:
    published = bool(tasks) and all(
        task["definition"].get("scoring") == "published" for task in tasks
    )
    member_results = [results_by_task[task["definition"]["task"]] for task in tasks]
    # A task of which every row failed has no metric at all; the average over the group then has no
    # number.
    lost_tasks = [
        *absent,
        *(str(task["name"]) for task in tasks if not task["metrics"]),
    ]
    for average in group.averages:
        for pipeline in average.filter_list or pipelines_of_metric(
            average.metric, member_results
        ):
            metrics_by_task = {
                str(task["name"]): task_metric
                for task in tasks
                if (task_metric := _metric(task, average.metric, pipeline))
            }
            if not metrics_by_task:
                continue
            members = (*metrics_by_task, *lost_tasks)
            node = TreeNode(
                f"{PREFIX}{group.name}",
                members,
                "weighted" if average.weight_by_size else "macro",
            )
            label = (
                average.metric if pipeline == "none" else f"{average.metric},{pipeline}"
            )
            published_estimate = None
            if (
                published
                and not lost_tasks
                and all(
                    metric["value"] is not None for metric in metrics_by_task.values()
                )
            ):
                published_estimate = _published(
                    group,
                    average,
                    pipeline,
                    list(metrics_by_task.values()),
                    results_by_task,
                )
            yield GroupAverage(label, node, metrics_by_task, published_estimate)


def _metric(
    task: Mapping[str, Any], metric: str, pipeline: str
) -> Mapping[str, Any] | None:
    for recorded in task["metrics"]:
        if (
            recorded["scorer"] == pipeline
            and recorded["label"].removesuffix(f",{pipeline}") == metric
        ):
            return dict(recorded)
    return None


def _published(
    group: Group,
    average: Average,
    pipeline: str,
    task_metrics: Tasks,
    results_by_task: Mapping[str, Mapping[str, Any]],
) -> Estimate:
    single_average = replace(
        group, averages=(replace(average, filter_list=(pipeline,)),)
    )
    summary = group_results(single_average, results_by_task)
    value = summary[f"{average.metric},{pipeline}"]
    error = summary[f"{average.metric}_stderr,{pipeline}"]
    error = float(error) if isinstance(error, int | float) else None
    weights = "by size" if average.weight_by_size else "each the same"
    interval = "no interval" if error is None else "normal interval"
    method = (
        f"{interval}, average over a group of {len(task_metrics)} tasks, {weights} (as"
        " published)"
    )
    n_missing = sum(metric["n_missing"] for metric in task_metrics)
    return by_error(
        value, error, sum(metric["n"] for metric in task_metrics), n_missing, method
    )
