"""Averages over the tasks of a run: the tree of its configuration, groups that tasks were asked for
through, and those of dialects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.metrics.registry import BOUNDED, metric_range
from evalwright.metrics.tree import Node, read_tree
from evalwright.runs.measures import UNIT_RANGE, Matrix, make_matrix, pooled
from evalwright.runs.results import GroupResult, MetricResult
from evalwright.runs.score_tables import ScoreTable, means_of
from evalwright.statistics import Estimate
from evalwright.tasks.dialects import Averaged, Group, dialect, is_dialect

Records = Sequence[Mapping[str, Any]]
"""Tasks as in `run.json`."""


def group_records(
    tasks: Records,
    configuration: Mapping[str, Any],
    tables: Callable[[str], ScoreTable],
) -> list[dict[str, Any]]:
    """The averages for `run.json`, inner ones first. configuration: as in `run.json`; tables: the
    scores of a task.
    """
    groups = groups_of(tasks, configuration)
    known: dict[tuple[str, str], Matrix] = {}

    def matrix(task: str, metric: MetricResult) -> Matrix:
        key = task, metric.label
        if key not in known:
            known[key] = make_matrix(
                task, [metric], [means_of(tables(task), metric.scorer)]
            )
        return known[key]

    ranges = {
        (task["name"], spec["label"]): metric_range(
            spec["kind"], spec.get("options") or {}
        )
        for task in tasks
        for spec in task.get("metric_specs", ())
    }
    sizes = {task["name"]: int(task["n_samples"]) for task in tasks}
    return [_record(group, sizes, matrix, ranges) for group in groups]


def groups_of(tasks: Records, configuration: Mapping[str, Any]) -> list[Group]:
    """What is averaged over, inner ones first."""
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
    for name, own in by_dialect.items():
        groups += dialect(name).groups(own) if is_dialect(name) else []
    return groups


def trees_of(tasks: Records, configuration: Mapping[str, Any]) -> list[Node]:
    """The tree of a configuration; without one a node for each group of ours that tasks were asked
    for through.
    """
    if tree := configuration.get("tree"):
        return [read_tree(tree)]
    names = [task["name"] for task in tasks]
    out = []
    for asked in dict.fromkeys(configuration.get("tasks", ())):
        members = [
            task["name"]
            for task in tasks
            if asked in _listed(task["definition"].get("group"))
        ]
        dialects = [
            str(task["definition"].get("dialect"))
            for task in tasks
            if task["name"] in members
        ]
        if members and asked not in names and not any(map(is_dialect, dialects)):
            out.append(Node(asked, tuple(members)))
    return out


def check_tree(configuration: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise ConfigurationError for a tree that has none of the run's tasks, or names that cannot
    stand in it.
    """
    if tree := configuration.get("tree"):
        own = read_tree(tree).tasks
        if not set(own) & set(names):
            raise ConfigurationError(
                "The tree has none of the tasks of this run. It names"
                f" {', '.join(own[:6])}; the run has {', '.join(names[:6])}."
            )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _of_node(node: Node, tasks: Records) -> Group:
    """A node of ours: the average of the tasks' main metrics, and of other metrics that all of them
    have.
    """
    there = [task for task in tasks if task["name"] in node.tasks and task["metrics"]]
    mains = {task["name"]: task["metrics"][0] for task in there}
    labels = {main["label"] for main in mains.values()}
    averages = [
        Averaged(labels.pop() if len(labels) == 1 else "main metrics", node, mains)
    ]
    for metric in there[0]["metrics"] if there else ():
        all_metrics = ((task["name"], own) for task in there for own in task["metrics"])
        found = {
            task: own for task, own in all_metrics if own["label"] == metric["label"]
        }
        if len(found) == len(there) and metric["label"] != averages[0].label:
            averages.append(Averaged(metric["label"], node, found))
    return Group(node.name, node.name, tuple(averages))


def _record(
    group: Group,
    sizes: Mapping[str, int],
    matrix: Callable[[str, MetricResult], Matrix],
    ranges: Mapping[tuple[str, str], tuple[float, float]],
) -> dict[str, Any]:
    metrics = []
    node = group.averages[0].node
    missing: dict[str, None] = dict.fromkeys(group.absent)
    for average in group.averages:
        results = {
            task: one
            for task, record in average.found.items()
            if not math.isnan((one := MetricResult.from_dict(record)).estimate.value)
        }
        missing |= dict.fromkeys(average.node.missing(results))
        made = average.published or _estimate(
            average.node, results, sizes, matrix, ranges
        )
        parts = list(results.values()) or [
            MetricResult.from_dict(one) for one in average.found.values()
        ]
        kinds = {part.kind for part in parts}
        mixed = "macro" if kinds <= BOUNDED else "mean"
        kind = parts[0].kind if len(kinds) == 1 else mixed
        scorer = parts[0].scorer if parts else ""
        less = bool(parts) and parts[0].less_is_better
        metrics.append(
            MetricResult(average.label, kind if parts else "mean", scorer, made, less)
        )
    there = any(not math.isnan(metric.estimate.value) for metric in metrics)
    without = f" (without {', '.join(missing)})" if missing and there else ""
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
        lost = sum(one.estimate.n_missing for one in results.values())
        n = sum(one.estimate.n for one in results.values())
        return Estimate(
            math.nan, math.nan, math.nan, 0.95, n, lost, None, None, f"no number: {why}"
        )

    samples = node.samples({task: sizes[task] for task in results})
    if not samples:
        return nothing("a task of the group has none")
    used = [results[task] for one in samples for task in one.tasks]
    bounded = all(one.kind in BOUNDED for one in used)
    if len({one.less_is_better for one in used}) > 1 or not (
        bounded or len({one.kind for one in used}) == 1
    ):
        return nothing("the tasks have different units or directions")
    parts = []
    units = []
    for one in samples:
        found = pooled([matrix(task, results[task]) for task in one.tasks], node.name)
        if len(one.tasks) == 1:
            parts.append(results[one.tasks[0]].estimate)
        elif found.measure.is_mean:
            value_range = found.measure.value_range
            made = mean_interval(
                found.values[0], clusters=found.clusters, value_range=value_range
            )
            n_unsure = sum(results[task].estimate.n_unsure for task in one.tasks)
            parts.append(replace(made, n_unsure=n_unsure))
        else:
            return nothing("only means of items can be pooled")
        units.append(unit_sums(found.values[0], found.units))
    weights = [one.weight for one in samples]
    equal = node.average == "macro" and len(set(weights)) == 1
    spans = [
        ranges.get((one.tasks[0], results[one.tasks[0]].label), UNIT_RANGE)
        for one in samples
    ]
    ranges_of = spans if bounded else None
    return macro_average(
        parts, weights=None if equal else weights, units=units, value_range=ranges_of
    )
