"""Averages over the tasks of a run.

They come from the tree of its configuration, from groups by which tasks were requested, and
from dialects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright.metrics.registry import BOUNDED, metric_range
from evalwright.metrics.tree import SHARED_KEYS, Node, read_tree
from evalwright.runs.measures import UNIT_RANGE, Matrix, make_matrix, pooled
from evalwright.runs.results import GroupResult, MetricResult
from evalwright.runs.score_tables import ScoreTable, means_of
from evalwright.statistics import Estimate
from evalwright.tasks.dialects import GroupAverage, TaskGroup, dialect, is_dialect

Records = Sequence[Mapping[str, Any]]
"""Tasks in the form of `run.json`."""


def group_records(
    tasks: Records,
    configuration: Mapping[str, Any],
    tables: Callable[[str], ScoreTable],
) -> list[dict[str, Any]]:
    """Compute the averages for `run.json`, inner ones first.

    Args:
        tasks: as in `run.json`.
        configuration: as in `run.json`.
        tables: returns the scores of a task.
    """
    groups = groups_of(tasks, configuration)
    matrices: dict[tuple[str, str], Matrix] = {}

    def matrix(task: str, metric: MetricResult) -> Matrix:
        key = task, metric.label
        if key not in matrices:
            matrices[key] = make_matrix(
                task, [metric], [means_of(tables(task), metric.scorer)]
            )
        return matrices[key]

    ranges = {
        (task["name"], spec["label"]): metric_range(
            spec["kind"], spec.get("options") or {}
        )
        for task in tasks
        for spec in task.get("metric_specs", ())
    }
    sizes = {task["name"]: int(task["n_samples"]) for task in tasks}
    return [group_record(group, sizes, matrix, ranges) for group in groups]


def groups_of(tasks: Records, configuration: Mapping[str, Any]) -> list[TaskGroup]:
    """List the groups of tasks to average over, inner ones first."""
    by_dialect: dict[str, list[Mapping[str, Any]]] = {}
    for task in tasks:
        by_dialect.setdefault(str(task["definition"].get("dialect", "")), []).append(
            task
        )
    groups = [
        _of_node(node, tasks)
        for tree in trees_of(tasks, configuration)
        for node in tree.nodes()
    ]
    for name, dialect_tasks in by_dialect.items():
        groups += dialect(name).groups(dialect_tasks) if is_dialect(name) else []
    return groups


def trees_of(tasks: Records, configuration: Mapping[str, Any]) -> list[Node]:
    """Return the trees of tasks: the configured one, or else one per group that was requested.

    Only groups of this package count; dialects have their own.
    """
    if tree := configuration.get("tree"):
        root = read_tree(tree, tasks=metadata_of(main_unit_tasks(tasks)))
        return [root] if root.parts else []
    names = [task["name"] for task in tasks]
    nodes = []
    for group_name in dict.fromkeys(configuration.get("tasks", ())):
        members = [
            task["name"]
            for task in tasks
            if group_name in _listed(task["definition"].get("group"))
        ]
        dialects = [
            str(task["definition"].get("dialect"))
            for task in tasks
            if task["name"] in members
        ]
        if members and group_name not in names and not any(map(is_dialect, dialects)):
            nodes.append(Node(group_name, tuple(members)))
    return nodes


def main_unit_tasks(tasks: Records) -> list[Mapping[str, Any]]:
    """Select the tasks that can be averaged: the largest number whose main metrics share a unit.

    A tree that is made from metadata has these, since a mean over several units means nothing.
    """
    tasks_by_unit: dict[tuple[bool, bool, str], list[Mapping[str, Any]]] = {}
    for task in tasks:
        if task["metrics"]:
            main = MetricResult.from_dict(task["metrics"][0])
            bounded = main.kind in BOUNDED
            unit = bounded, main.less_is_better, "" if bounded else main.kind
            tasks_by_unit.setdefault(unit, []).append(task)
    return max(tasks_by_unit.values(), key=len, default=[])


def metadata_of(tasks: Records) -> dict[str, Mapping[str, Any]]:
    """Return the metadata of tasks by their names, with what dialects group their tasks by."""
    metadata: dict[str, Mapping[str, Any]] = {}
    for task in tasks:
        definition = task.get("definition") or {}
        groups = SHARED_KEYS if is_dialect(str(definition.get("dialect", ""))) else ()
        shared = {key: definition[key] for key in groups if definition.get(key)}
        metadata[str(task["name"])] = {**shared, **(task.get("metadata") or {})}
    return metadata


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _of_node(node: Node, tasks: Records) -> TaskGroup:
    """Build a node's group: the averages of the main metrics, and of others that all tasks have."""
    members = [task for task in tasks if task["name"] in node.tasks and task["metrics"]]
    mains = {task["name"]: task["metrics"][0] for task in members}
    labels = {main["label"] for main in mains.values()}
    averages = [
        GroupAverage(labels.pop() if len(labels) == 1 else "main metrics", node, mains)
    ]
    for metric in members[0]["metrics"] if members else ():
        all_metrics = (
            (task["name"], task_metric)
            for task in members
            for task_metric in task["metrics"]
        )
        metric_by_task = {
            task: task_metric
            for task, task_metric in all_metrics
            if task_metric["label"] == metric["label"]
        }
        if len(metric_by_task) == len(members) and metric["label"] != averages[0].label:
            averages.append(GroupAverage(metric["label"], node, metric_by_task))
    return TaskGroup(node.name, node.name, tuple(averages))


def group_record(
    group: TaskGroup,
    sizes: Mapping[str, int],
    matrix: Callable[[str, MetricResult], Matrix],
    ranges: Mapping[tuple[str, str], tuple[float, float]],
) -> dict[str, Any]:
    """Compute the averages of one group, in the form of `run.json`.

    Args:
        group: the group.
        sizes: number of items of each task.
        matrix: returns the item scores of a task's metric.
        ranges: the range of scores by task and label.
    """
    metrics = []
    node = group.averages[0].node
    missing: dict[str, None] = dict.fromkeys(group.absent)
    for average in group.averages:
        metric_results = {
            task: metric_result
            for task, record in average.metric_by_task.items()
            if not math.isnan(
                (metric_result := MetricResult.from_dict(record)).estimate.value
            )
        }
        missing |= dict.fromkeys(average.node.missing(metric_results))
        estimate = average.published or _estimate(
            average.node, metric_results, sizes, matrix, ranges
        )
        node_metrics = list(metric_results.values()) or [
            MetricResult.from_dict(record) for record in average.metric_by_task.values()
        ]
        kinds = {metric.kind for metric in node_metrics}
        mixed = "macro" if kinds <= BOUNDED else "mean"
        average_kind = node_metrics[0].kind if len(kinds) == 1 else mixed
        scorer = node_metrics[0].scorer if node_metrics else ""
        less = bool(node_metrics) and node_metrics[0].less_is_better
        metrics.append(
            MetricResult(
                average.label,
                average_kind if node_metrics else "mean",
                scorer,
                estimate,
                less,
            )
        )
    has_number = any(not math.isnan(metric.estimate.value) for metric in metrics)
    without = f" (without {', '.join(missing)})" if missing and has_number else ""
    return GroupResult(
        name=group.name,
        label=group.label + without,
        tasks=tuple(task for task in node.tasks if task in sizes),
        metrics=tuple(metrics),
        average=node.average,
        parts=tuple(
            part if isinstance(part, str) else part.name for part in node.parts
        ),
        missing=tuple(missing),
        n_tasks=len(node.tasks) + len(group.absent),
        ignores_missing=node.ignores_missing,
    ).as_dict()


def _estimate(
    node: Node,
    results: Mapping[str, MetricResult],
    sizes: Mapping[str, int],
    matrix: Callable[[str, MetricResult], Matrix],
    ranges: Mapping[tuple[str, str], tuple[float, float]],
) -> Estimate:
    from evalwright.statistics import Estimate, macro_average, mean_interval
    from evalwright.statistics.shared_units import unit_sums

    def nothing(why: str) -> Estimate:
        n_missing = sum(
            metric_result.estimate.n_missing for metric_result in results.values()
        )
        n = sum(metric_result.estimate.n for metric_result in results.values())
        return Estimate(
            math.nan,
            math.nan,
            math.nan,
            0.95,
            n,
            n_missing,
            None,
            None,
            f"no number: {why}",
        )

    samples = node.samples({task: sizes[task] for task in results})
    if not samples:
        return nothing("a task of the group has none")
    used = [results[task] for group_sample in samples for task in group_sample.tasks]
    bounded = all(metric_result.kind in BOUNDED for metric_result in used)
    if len({metric_result.less_is_better for metric_result in used}) > 1 or not (
        bounded or len({metric_result.kind for metric_result in used}) == 1
    ):
        return nothing("the tasks have different units or directions")
    estimates = []
    units = []
    for group_sample in samples:
        pooled_matrix = pooled(
            [matrix(task, results[task]) for task in group_sample.tasks], node.name
        )
        if len(group_sample.tasks) == 1:
            estimates.append(results[group_sample.tasks[0]].estimate)
        elif pooled_matrix.measure.is_mean:
            value_range = pooled_matrix.measure.value_range
            pooled_estimate = mean_interval(
                pooled_matrix.values[0],
                clusters=pooled_matrix.clusters,
                value_range=value_range,
            )
            n_unsure = sum(
                results[task].estimate.n_unsure for task in group_sample.tasks
            )
            estimates.append(replace(pooled_estimate, n_unsure=n_unsure))
        else:
            return nothing("only means of items can be pooled")
        units.append(unit_sums(pooled_matrix.values[0], pooled_matrix.units))
    weights = [group_sample.weight for group_sample in samples]
    equal = node.average == "macro" and len(set(weights)) == 1
    spans = [
        ranges.get(
            (group_sample.tasks[0], results[group_sample.tasks[0]].label), UNIT_RANGE
        )
        for group_sample in samples
    ]
    ranges_of = spans if bounded else None
    return macro_average(
        estimates,
        weights=None if equal else weights,
        units=units,
        value_range=ranges_of,
    )
