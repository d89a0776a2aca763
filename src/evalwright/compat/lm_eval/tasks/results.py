"""A finished run's numbers in the published form, and the averages over groups of its tasks for `run.json`.

The published form is `{task: {"acc,none": 0.5, "acc_stderr,none": 0.1, ...}}`. Averages: corrected, every task counts the same or
by its items, with the interval of a macro average; published, lm-evaluation-harness's own arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalwright.compat.lm_eval.tasks.aggregation import by_error
from evalwright.compat.lm_eval.tasks.groups import Average, Group, group_results, pipelines_of_metric
from evalwright.compat.lm_eval.tasks.options import DIALECT, PREFIX
from evalwright.metrics.registry import BOUNDED
from evalwright.runs.results import GroupResult, MetricResult

if TYPE_CHECKING:
    from evalwright.runs.reader import Run
    from evalwright.statistics import Estimate

Tasks = Sequence[Mapping[str, Any]]


def task_results(tasks: Tasks) -> dict[str, dict[str, Any]]:
    """The results of the tasks of this dialect, under their own names. tasks: those of `run.json`."""
    out: dict[str, dict[str, Any]] = {}
    for task in _theirs(tasks):
        name = task["definition"]["task"]
        found: dict[str, Any] = {"name": name, "alias": task["definition"]["alias"]}
        found["sample_len"] = max((metric["n"] for metric in task["metrics"]), default=0)
        for metric in task["metrics"]:
            pipeline, error = metric["scorer"], metric["standard_error"]
            label = metric["label"].removesuffix(f",{pipeline}")
            found[f"{label},{pipeline}"] = metric["value"]
            found[f"{label}_stderr,{pipeline}"] = "N/A" if error is None else error
        out[name] = found
    return out


def groups_of(tasks: Tasks) -> dict[str, Group]:
    """The groups that the tasks were asked for through, inner ones first. tasks: those of `run.json`."""
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


# -- averages -----------------------------------------------------------------------------------------------------------


def group_records(tasks: Tasks) -> list[dict[str, Any]]:
    """The groups that are averaged, inner ones first, as plain mappings. tasks: those of `run.json`, of this dialect."""
    results = task_results(tasks)
    by_name = {task["definition"]["task"]: task for task in tasks}
    out = []
    for group in groups_of(tasks).values():
        there = [by_name[name] for name in group.tasks if name in by_name]
        metrics = tuple(_averages(group, there, results))
        if metrics:
            names = tuple(str(task["name"]) for task in there)
            out.append(GroupResult(f"{PREFIX}{group.name}", group.alias, names, metrics).as_dict())
    return out


def _averages(
    group: Group, tasks: Sequence[Mapping[str, Any]], results: Mapping[str, Mapping[str, Any]]
) -> Iterator[MetricResult]:
    published = bool(tasks) and all(task["definition"].get("scoring") == "published" for task in tasks)
    there = [results[task["definition"]["task"]] for task in tasks]
    for average in group.averages:
        for pipeline in average.filter_list or pipelines_of_metric(average.metric, there):
            parts = [found for task in tasks if (found := _metric(task, average.metric, pipeline))]
            if not parts:
                continue
            # A task of which every row failed has no metric at all.
            lost = any(not task["metrics"] for task in tasks)
            if lost or any(math.isnan(part.estimate.value) for part in parts):
                method = "no number: a task of the group has none"
                estimate = by_error(math.nan, None, *_counts(parts), method)
            elif published:
                estimate = _published(group, average, pipeline, parts, results)
            else:
                estimate = _corrected(average, parts)
            label = average.metric if pipeline == "none" else f"{average.metric},{pipeline}"
            kinds = {part.kind for part in parts}
            kind = parts[0].kind if len(kinds) == 1 else "mean"
            yield MetricResult(label, kind, pipeline, estimate, parts[0].lower_is_better)


def _metric(task: Mapping[str, Any], metric: str, pipeline: str) -> MetricResult | None:
    for found in task["metrics"]:
        if found["scorer"] == pipeline and found["label"].removesuffix(f",{pipeline}") == metric:
            return MetricResult.from_dict(found)
    return None


def _published(
    group: Group,
    average: Average,
    pipeline: str,
    parts: Sequence[MetricResult],
    results: Mapping[str, Mapping[str, Any]],
) -> Estimate:
    alone = replace(group, averages=(replace(average, filter_list=(pipeline,)),))
    found = group_results(alone, results)
    value, error = found[f"{average.metric},{pipeline}"], found[f"{average.metric}_stderr,{pipeline}"]
    known = isinstance(error, int | float)
    how = f"average over a group of {len(parts)} tasks, {_weights(average)} (as published)"
    method = f"normal interval, {how}" if known else f"no interval, {how}"
    return by_error(value, float(error) if known else None, *_counts(parts), method)


def _counts(parts: Sequence[MetricResult]) -> tuple[int, int]:
    """Items, and items that failed."""
    return sum(part.estimate.n for part in parts), sum(part.estimate.n_missing for part in parts)


def _weights(average: Average) -> str:
    return "by size" if average.weight_by_size else "each the same"


def _corrected(average: Average, parts: Sequence[MetricResult]) -> Estimate:
    """The macro average; by size, of the estimates each stretched by its weight, which is the weighted average."""
    from evalwright.statistics import macro_average

    estimates = [part.estimate for part in parts]
    bounded = all(part.kind in BOUNDED for part in parts)
    if len(estimates) > 1 and average.weight_by_size:
        total = sum(one.n for one in estimates)
        estimates = [_stretched(one, len(estimates) * one.n / total) for one in estimates]
    made = macro_average(estimates, value_range=(0.0, 1.0) if bounded else None)
    if len(estimates) == 1:
        return made
    method = f"average over {len(estimates)} fixed tasks, {_weights(average)}, Welch-Satterthwaite t"
    return replace(made, method=method)


def _stretched(one: Estimate, by: float) -> Estimate:
    return replace(
        one,
        value=one.value * by,
        low=one.low * by,
        high=one.high * by,
        standard_error=None if one.standard_error is None else one.standard_error * by,
        bounds=None if one.bounds is None else (one.bounds[0] * by, one.bounds[1] * by),
    )
