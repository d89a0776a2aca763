"""Averages of runs by other trees of tasks than the one that they were made with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright.metrics.registry import metric_range
from evalwright.metrics.tree import (
    Average,
    Level,
    Node,
    group_by_metadata,
    read_levels,
    read_tree,
)
from evalwright.runs.grouping import (
    group_record,
    main_unit_tasks,
    metadata_of,
    trees_of,
)
from evalwright.runs.measures import Matrix, make_matrix
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult
from evalwright.runs.score_tables import item_scores
from evalwright.runs.scores import ItemScores
from evalwright.tasks.dialects import GroupAverage, TaskGroup


def task_metadata(runs: Sequence[Run]) -> dict[str, Mapping[str, Any]]:
    """Return the metadata of all tasks of some runs; where runs differ, the first one's."""
    metadata: dict[str, Mapping[str, Any]] = {}
    for run in runs:
        for name, values in metadata_of(run.data["tasks"]).items():
            metadata.setdefault(name, values)
    return metadata


def declared_tree(runs: Sequence[Run]) -> Node | None:
    """Return the tree `by` metadata that all runs were made with, over the tasks of all of them.

    None where runs have no such tree, or have different ones.
    """
    trees = [run.data["configuration"].get("tree") for run in runs]
    if not trees or not trees[0] or any(tree != trees[0] for tree in trees):
        return None
    if not read_levels(trees[0]):
        return None
    record_by_task = {task["name"]: task for run in runs for task in run.data["tasks"]}
    tasks = main_unit_tasks([*record_by_task.values()])
    tree = read_tree(trees[0], tasks=metadata_of(tasks))
    return tree if tree.parts else None


def tree_by(
    tasks: Mapping[str, Mapping[str, Any]],
    levels: Sequence[Level],
    *,
    name: str,
    used_names: Collection[str] = (),
    average: Average = "macro",
) -> Node | None:
    """Make a tree of tasks from their metadata.

    Args:
        tasks: the tasks' metadata.
        levels: the levels, outermost first. Keys that no task has make no level.
        name: the root's name.
        used_names: names that no node may have.
        average: how the root's parts are combined.

    Returns:
        The root; None if no task has any of the keys.
    """
    parts = group_by_metadata(tasks, levels, used_names=[name, *used_names, *tasks])
    return Node(name, parts, average) if parts else None


def with_trees(
    run: Run,
    trees: Sequence[Node],
    metric: str | None = None,
    *,
    replaces: bool = True,
) -> Run:
    """Return the run with the averages of some trees of tasks; those of dialects stay.

    Args:
        run: the run.
        trees: the trees.
        metric: the metric to average, a label or TASK.LABEL; None for the main ones.
        replaces: whether they stand in place of the tree that the run was made with.
    """
    tasks = run.data["tasks"]
    replaced_trees = trees_of(tasks, run.data["configuration"]) if replaces else []
    replaced = {
        node.name for root in (*replaced_trees, *trees) for node in root.nodes()
    }
    unchanged_groups = [
        group for group in run.data.get("groups", ()) if group["name"] not in replaced
    ]
    averages = _averages(run, trees, metric)
    groups = (
        [*unchanged_groups, *averages] if replaces else [*averages, *unchanged_groups]
    )
    return replace(run, data={**run.data, "groups": groups})


def _averages(
    run: Run, trees: Sequence[Node], label: str | None
) -> list[dict[str, Any]]:
    """Compute the averages of a metric of the tasks at each node, inner ones first."""
    tasks = run.data["tasks"]
    mains = {
        task["name"]: metric
        for task in tasks
        for metric in task["metrics"][: None if label else 1]
        if label in (None, metric["label"], f"{task['name']}.{metric['label']}")
    }
    main_scorers = {name: main["scorer"] for name, main in mains.items()}
    scores_by_task: dict[str, ItemScores] = {}
    matrix_by_task: dict[str, Matrix] = {}

    def matrix(task: str, metric: MetricResult) -> Matrix:
        if not scores_by_task:
            scores_by_task.update(item_scores(run, main_scorers))
        if task not in matrix_by_task:
            scores = [scores_by_task[task]]
            matrix_by_task[task] = make_matrix(task, [metric], scores)
        return matrix_by_task[task]

    ranges = {
        (task["name"], spec["label"]): metric_range(
            spec["kind"], spec.get("options") or {}
        )
        for task in tasks
        for spec in task.get("metric_specs", ())
    }
    sizes = {task["name"]: int(task["n_samples"]) for task in tasks}
    averages = []
    for node in (node for tree in trees for node in tree.nodes()):
        metrics = {name: mains[name] for name in node.tasks if name in mains}
        labels = {main["label"] for main in metrics.values()}
        name = labels.pop() if len(labels) == 1 else "main metrics"
        group = TaskGroup(node.name, node.name, (GroupAverage(name, node, metrics),))
        averages.append(group_record(group, sizes, matrix, ranges))
    return averages
