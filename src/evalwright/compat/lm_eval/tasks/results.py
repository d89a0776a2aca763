"""A finished run's numbers in the published form, and the averages over groups of its tasks for `run.json`.

The published form is `{task: {"acc,none": 0.5, "acc_stderr,none": 0.1, ...}}`. Averages: corrected, every task counts the same or
by its items, as a tree of tasks (`metrics.tree`); published, lm-evaluation-harness's own arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalwright.compat.lm_eval.tasks.aggregation import by_error
from evalwright.compat.lm_eval.tasks.groups import Average, Group, group_results, pipelines_of_metric
from evalwright.compat.lm_eval.tasks.options import DIALECT, PREFIX
from evalwright.metrics.tree import Node
from evalwright.tasks import dialects

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


def dialect_groups(tasks: Tasks) -> list[dialects.Group]:
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
    group: Group, tasks: Tasks, absent: Sequence[str], results: Mapping[str, Mapping[str, Any]]
) -> Iterator[dialects.Averaged]:
    published = bool(tasks) and all(task["definition"].get("scoring") == "published" for task in tasks)
    there = [results[task["definition"]["task"]] for task in tasks]
    # A task of which every row failed has no metric at all; the average over the group then has no number.
    lost = [*absent, *(str(task["name"]) for task in tasks if not task["metrics"])]
    for average in group.averages:
        for pipeline in average.filter_list or pipelines_of_metric(average.metric, there):
            found = {
                str(task["name"]): one for task in tasks if (one := _metric(task, average.metric, pipeline))
            }
            if not found:
                continue
            node = Node(
                f"{PREFIX}{group.name}", (*found, *lost), "weighted" if average.weight_by_size else "macro"
            )
            label = average.metric if pipeline == "none" else f"{average.metric},{pipeline}"
            known = not lost and all(one["value"] is not None for one in found.values())
            own = (
                _published(group, average, pipeline, list(found.values()), results)
                if published and known
                else None
            )
            yield dialects.Averaged(label, node, found, own)


def _metric(task: Mapping[str, Any], metric: str, pipeline: str) -> Mapping[str, Any] | None:
    for found in task["metrics"]:
        if found["scorer"] == pipeline and found["label"].removesuffix(f",{pipeline}") == metric:
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
    value, error = found[f"{average.metric},{pipeline}"], found[f"{average.metric}_stderr,{pipeline}"]
    known = isinstance(error, int | float)
    weights = "by size" if average.weight_by_size else "each the same"
    how = f"average over a group of {len(parts)} tasks, {weights} (as published)"
    method = f"normal interval, {how}" if known else f"no interval, {how}"
    n, lost = (
        sum(one["n"] for one in parts),
        sum(one["n_failed"] + one.get("n_undecided", 0) for one in parts),
    )
    return by_error(value, float(error) if known else None, n, lost, method)
