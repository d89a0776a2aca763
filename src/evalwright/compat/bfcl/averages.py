"""BFCL's averages over its categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.extend import GroupAverage, TaskGroup, TreeNode

DIALECT = "bfcl"
_SIMPLE = ("simple_python", "simple_java", "simple_javascript")
_AST = ("multiple", "parallel", "parallel_multiple")
_LIVE = ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple")
_IRRELEVANCE = ("irrelevance", "live_irrelevance")
_METRIC = "accuracy"


def groups(tasks: Sequence[Mapping[str, Any]]) -> Sequence[TaskGroup]:
    """Return BFCL's averages: categories of written questions, live ones, those without a call.

    The overall number is not among them: 55% of it are categories that are not run here.
    """
    metric_by_task = {
        str(task["name"]): metric
        for task in tasks
        for metric in task.get("metrics", ())
        if metric.get("kind") == _METRIC
    }

    def there(names: Sequence[str]) -> tuple[str, ...]:
        full = (f"{DIALECT}:{name}" for name in names)
        return tuple(name for name in full if name in metric_by_task)

    simple = there(_SIMPLE)
    simple_part: tuple[str | TreeNode, ...] = (
        (TreeNode(f"{DIALECT}:simple", simple),) if len(simple) > 1 else simple
    )
    nodes = (
        ("non_live_ast", "Non-live AST", "macro", (*simple_part, *there(_AST))),
        ("live_ast", "Live AST", "weighted", there(_LIVE)),
        ("irrelevance", "Irrelevance", "macro", there(_IRRELEVANCE)),
    )
    task_groups = []
    for name, label, average, parts in nodes:
        if len(parts) < 2:
            continue
        full_name = f"{DIALECT}:group:{name}"
        node = TreeNode(full_name, parts, average)  # type: ignore[arg-type]
        averages = (GroupAverage(_METRIC, node, metric_by_task),)
        task_groups.append(TaskGroup(full_name, label, averages))
    return task_groups
