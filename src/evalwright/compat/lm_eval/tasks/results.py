"""Names that stand for several tasks, and a finished run's numbers in the published form: `{task:
{"acc,none": 0.5, ...}}`.

A group's average is over all tasks below it, however deep. Corrected, every task counts the same or
by its items, as a tree of tasks (`metrics.tree`); published, lm-evaluation-harness's own
arithmetic. A tag only stands for its tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from evalwright.compat.lm_eval.tasks.aggregation import by_error
from evalwright.compat.lm_eval.tasks.files import FunctionRef
from evalwright.compat.lm_eval.tasks.options import DIALECT, PREFIX
from evalwright.core.errors import TaskError, check_known
from evalwright.metrics.tree import Node
from evalwright.runs.reader import Run
from evalwright.statistics import Estimate
from evalwright.tasks import dialects


@dataclass(frozen=True, slots=True)
class Average:
    """One entry of `aggregate_metric_list`. filter_list None: every pipeline that any task has this
    metric for.
    """

    metric: str
    aggregation: str = "mean"
    weight_by_size: bool = True
    filter_list: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A group. children: what stands directly in it; tasks: all tasks below it, in order."""

    name: str
    alias: str
    averages: tuple[Average, ...] = ()
    version: str = "N/A"
    children: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    findings: tuple[str, ...] = field(default=(), compare=False)

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        out = asdict(self)
        out.pop("findings")
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Group:
        """The inverse of `as_dict`."""
        averages = tuple(
            Average(
                **{
                    **one,
                    "filter_list": one["filter_list"] and tuple(one["filter_list"]),
                }
            )
            for one in data["averages"]
        )
        lists = {key: tuple(data[key]) for key in ("children", "tasks")}
        return cls(
            **{**data, **lists, "alias": str(data["alias"]), "averages": averages}
        )


def averages_of(given: Any, group: str) -> tuple[tuple[Average, ...], tuple[str, ...]]:
    """`aggregate_metric_list` as averages, and what is odd in it.

    Raises UnknownName at an unknown key.
    """
    known = [one.name for one in fields(Average)]
    out = []
    findings = []
    for entry in [given] if isinstance(given, Mapping) else given or ():
        check_known(
            f"key of `aggregate_metric_list` of the group '{group}'", entry, known, ""
        )
        if "metric" not in entry:
            raise TaskError(
                f"The group '{group}': every entry of `aggregate_metric_list` needs the"
                " key `metric`."
            )
        how = entry.get("aggregation", "mean")
        if isinstance(how, FunctionRef):
            # The published runner takes a function here and never calls it.
            findings.append(
                f"`aggregation: {how}` has no effect, as published: the group is"
                " averaged."
            )
            how = "mean"
        if how != "mean":
            raise TaskError(
                f"The group '{group}' is averaged by '{how}'; only mean is known."
            )
        weight = entry.get("weight_by_size", True)
        if not isinstance(weight, bool):
            findings.append(
                f"`weight_by_size: {weight}` is neither true nor false and counts as"
                f" {bool(weight)}."
            )
        pipelines = entry.get("filter_list")
        if pipelines is not None:
            pipelines = (pipelines,) if isinstance(pipelines, str) else tuple(pipelines)
        out.append(Average(str(entry["metric"]), how, bool(weight), pipelines))
    return tuple(out), tuple(findings)


Results = Mapping[str, Mapping[str, Any]]
"""Task -> "metric,pipeline" -> value, with "metric_stderr,pipeline" and "sample_len" beside."""


def group_results(group: Group, results: Results) -> dict[str, Any]:
    """The group's averages in the published form."""
    out: dict[str, Any] = {"alias": group.alias, "name": group.name}
    if not group.averages:
        return out
    there = [results[name] for name in group.tasks if name in results]
    out["sample_len"] = sum(result.get("sample_len", 0) for result in there)
    # A task whose every request failed has no metric at all, and an average of the others would
    # pass for one of all.
    all_have_numbers = all(any("," in key for key in result) for result in there)
    counts: dict[str, int] = {}
    for average in group.averages:
        for pipeline in average.filter_list or pipelines_of_metric(
            average.metric, there
        ):
            key = f"{average.metric},{pipeline}"
            error_key = f"{average.metric}_stderr,{pipeline}"
            having = [result for result in there if key in result]
            if not having:
                continue
            is_numeric = all(isinstance(result[key], int | float) for result in having)
            if not (all_have_numbers and is_numeric):
                out[key] = out[error_key] = "N/A"
                continue
            sizes = [result.get("sample_len", 0) for result in having]
            weights = sizes if average.weight_by_size else [1] * len(having)
            out[key] = sum(
                w * result[key] for w, result in zip(weights, having, strict=True)
            ) / sum(weights)
            counts[key] = sum(sizes)
            errors = [result.get(error_key) for result in having]
            out[error_key] = _error(errors, sizes, average.weight_by_size)
    if counts:
        out["sample_count"] = counts
    return out


def pipelines_of_metric(metric: str, results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The filter pipelines that any of the results has a metric for."""
    start = f"{metric},"
    return sorted(
        {
            key[len(start) :]
            for result in results
            for key in result
            if key.startswith(start)
        }
    )


def _error(errors: Sequence[Any], sizes: Sequence[int], weighted: bool) -> Any:
    """Weighted: from the pooled variance within tasks. Unweighted: of a mean of independent means."""
    if any(not isinstance(error, int | float) for error in errors):
        return "N/A"
    if not weighted:
        return math.sqrt(sum(error**2 for error in errors)) / len(errors)
    within = sum(
        (size - 1) * size * error**2 for size, error in zip(sizes, errors, strict=True)
    )
    freedom = sum(sizes) - len(sizes)
    return math.sqrt(within / freedom / sum(sizes)) if freedom else "N/A"


Tasks = Sequence[Mapping[str, Any]]


def task_results(tasks: Tasks) -> dict[str, dict[str, Any]]:
    """The results of the tasks of this dialect, under their own names. tasks: those of `run.json`."""
    out: dict[str, dict[str, Any]] = {}
    for task in _theirs(tasks):
        name = task["definition"]["task"]
        found: dict[str, Any] = {"name": name, "alias": task["definition"]["alias"]}
        found["sample_len"] = max(
            (metric["n"] for metric in task["metrics"]), default=0
        )
        for metric in task["metrics"]:
            pipeline = metric["scorer"]
            error = metric["standard_error"]
            label = metric["label"].removesuffix(f",{pipeline}")
            found[f"{label},{pipeline}"] = metric["value"]
            found[f"{label}_stderr,{pipeline}"] = "N/A" if error is None else error
        out[name] = found
    return out


def groups_of(tasks: Tasks) -> dict[str, Group]:
    """The groups that the tasks were asked for through, inner ones first. tasks: those of
    `run.json`.
    """
    groups: dict[str, Group] = {}
    for task in _theirs(tasks):
        for group in task["definition"]["groups"]:
            groups.setdefault(group["name"], Group.from_dict(group))
    return groups


def all_results(run: Run) -> dict[str, dict[str, Any]]:
    """As `task_results`, with the averages of groups."""
    results = task_results(run.data["tasks"])
    for name, group in groups_of(run.data["tasks"]).items():
        results[name] = group_results(group, results)
    return results


def _theirs(tasks: Tasks) -> list[Mapping[str, Any]]:
    return [task for task in tasks if task["definition"].get("dialect") == DIALECT]


# -- averages --------------------------------------------------------------------------


def groups(tasks: Tasks) -> list[dialects.Group]:
    """The groups that are averaged, inner ones first. tasks: those of `run.json`, of this dialect."""
    results = task_results(tasks)
    by_name = {task["definition"]["task"]: task for task in tasks}
    out = []
    for group in groups_of(tasks).values():
        there = [by_name[name] for name in group.tasks if name in by_name]
        absent = [f"{PREFIX}{name}" for name in group.tasks if name not in by_name]
        averages = tuple(_averages(group, there, absent, results))
        if averages:
            out.append(dialects.Group(f"{PREFIX}{group.name}", group.alias, averages))
    return out


def _averages(
    group: Group,
    tasks: Tasks,
    absent: Sequence[str],
    results: Mapping[str, Mapping[str, Any]],
) -> Iterator[dialects.Averaged]:
    published = bool(tasks) and all(
        task["definition"].get("scoring") == "published" for task in tasks
    )
    there = [results[task["definition"]["task"]] for task in tasks]
    # A task of which every row failed has no metric at all; the average over the group then has no
    # number.
    lost = [*absent, *(str(task["name"]) for task in tasks if not task["metrics"])]
    for average in group.averages:
        for pipeline in average.filter_list or pipelines_of_metric(
            average.metric, there
        ):
            found = {
                str(task["name"]): one
                for task in tasks
                if (one := _metric(task, average.metric, pipeline))
            }
            if not found:
                continue
            parts = (*found, *lost)
            node = Node(
                f"{PREFIX}{group.name}",
                parts,
                "weighted" if average.weight_by_size else "macro",
            )
            label = (
                average.metric if pipeline == "none" else f"{average.metric},{pipeline}"
            )
            own = None
            if (
                published
                and not lost
                and all(one["value"] is not None for one in found.values())
            ):
                own = _published(
                    group, average, pipeline, list(found.values()), results
                )
            yield dialects.Averaged(label, node, found, own)


def _metric(
    task: Mapping[str, Any], metric: str, pipeline: str
) -> Mapping[str, Any] | None:
    for found in task["metrics"]:
        if (
            found["scorer"] == pipeline
            and found["label"].removesuffix(f",{pipeline}") == metric
        ):
            return dict(found)
    return None


def _published(
    group: Group,
    average: Average,
    pipeline: str,
    parts: Tasks,
    results: Mapping[str, Mapping[str, Any]],
) -> Estimate:
    alone = replace(group, averages=(replace(average, filter_list=(pipeline,)),))
    found = group_results(alone, results)
    value = found[f"{average.metric},{pipeline}"]
    error = found[f"{average.metric}_stderr,{pipeline}"]
    error = float(error) if isinstance(error, int | float) else None
    weights = "by size" if average.weight_by_size else "each the same"
    interval = "no interval" if error is None else "normal interval"
    method = (
        f"{interval}, average over a group of {len(parts)} tasks, {weights} (as"
        " published)"
    )
    lost = sum(one["n_missing"] for one in parts)
    return by_error(value, error, sum(one["n"] for one in parts), lost, method)
