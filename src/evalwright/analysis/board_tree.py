"""The tree of a leaderboard: every number of every model, from the overall score to a slice.

A board is shown at a node of this tree, with the node's parts as its columns. The first root has
the headline number; further roots have what is in no average with it: tasks in other units, tasks
that the tree does not name, and averages that another program published.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from evalwright.analysis.board_ranks import Cells
from evalwright.analysis.board_rows import BoardTask
from evalwright.analysis.words import counted, listed
from evalwright.core.plain import Plain
from evalwright.metrics.dimension_titles import value_title
from evalwright.metrics.registry import BOUNDED
from evalwright.metrics.tree import Node, is_named_by_dialect
from evalwright.runs.reader import Run
from evalwright.runs.results import GroupResult, MetricResult
from evalwright.statistics import Estimate

NodeKind = Literal["group", "task", "slice"]

OVERALL = "overall"
"""Name of the root of a board whose runs have no tree in common."""

SEPARATOR = "/"
"""Between the names in a node's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardNode:
    """A number of every model on a board: an average over tasks, a task, or a slice of a task.

    Args:
        id: unique on the board: the names from the root joined by "/", as in
            "Southeast Asia/Thai/understanding".
        title: the last of these names.
        kind: what it is.
        keys: the metadata that it selects, as in {"language": "th"}; empty if it selects by none.
        metric: the metric's label, or how the average is made ("mean of 5 tasks").
        bounded: whether values are between 0 and 1 and are shown in percentage points.
        measure: the unit of its numbers, "" where `bounded` or `metric` say enough.
        lower_is_better: None where neither direction is better.
        tasks: names of the tasks that the number is about.
        estimates: the models' numbers in the order of the board's rows; None where there is none.
        ranks: best and worst rank of each model; () if models are not ranked at this node.
        letters: models that share a letter cannot be separated; () if they are not ranked.
        reasons: by row, why there is no number or no interval, or which tasks it lacks.
        parts: the nodes below.
    """

    id: str
    title: str
    kind: NodeKind
    keys: Mapping[str, str] = field(default_factory=dict)
    metric: str
    bounded: bool
    measure: str = ""
    lower_is_better: bool | None
    tasks: tuple[str, ...]
    estimates: tuple[Estimate | None, ...]
    ranks: tuple[tuple[int, int] | None, ...] = ()
    letters: tuple[str, ...] = ()
    reasons: Mapping[int, str] = field(default_factory=dict)
    parts: tuple[BoardNode, ...] = ()

    def nodes(self) -> Iterator[BoardNode]:
        """Iterate over this node and those below it, outer ones first."""
        yield self
        for part in self.parts:
            yield from part.nodes()

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON, without the nodes below."""
        return {
            "id": self.id,
            "title": self.title,
            "kind": self.kind,
            "keys": dict(self.keys),
            "metric": self.metric,
            "bounded": self.bounded,
            "measure": self.measure,
            "lower_is_better": self.lower_is_better,
            "tasks": list(self.tasks),
        }


@dataclass(frozen=True, slots=True)
class Dimension(Plain):
    """A key by which the nodes of a board differ.

    Args:
        key: as in metadata: "language", "competency", "category"; or "task".
        title: as in a heading: "Language".
        values: each value with its title, as in ("th", "Thai"), in the order of the board.
    """

    key: str
    title: str
    values: tuple[tuple[str, str], ...]


class NodeIds:
    """Hands out ids of nodes, each once."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def new(self, parent: str, name: str) -> str:
        """Make the id of a node from that of its parent ("" for a root) and its name."""
        path = f"{parent}{SEPARATOR}{name}" if parent else name
        node_id = path
        number = 1
        while node_id in self._used:
            number += 1
            node_id = f"{path} ({number})"
        self._used.add(node_id)
        return node_id


@dataclass(frozen=True, slots=True)
class UnitScores:
    """The tasks of a board that share a unit, with the models' scores in the order of the runs.

    Args:
        tasks: the columns.
        cells: each run's metric by task.
        overall: each run's mean over the tasks; empty if there is no such mean.
        node: the node of the common tree that stands for all tasks, if there is one.
    """

    tasks: tuple[BoardTask, ...]
    cells: tuple[Cells, ...]
    overall: tuple[Estimate | None, ...]
    node: Node | None


class TreeMaker:
    """Builds the nodes of a board, with the models' numbers in the order of the runs.

    Args:
        runs: the runs.
        units: the tasks and scores by unit, the headline's first.
        trees: the trees that all runs have.
        metric: the metric shown, None for the main ones.

    Attributes:
        ids: the ids of nodes.
        sources: by id, the node of the tasks' tree whose number it is.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        units: Sequence[UnitScores],
        trees: Sequence[Node],
        metric: str | None,
    ) -> None:
        self.ids = NodeIds()
        self.sources: dict[str, Node] = {}
        self._units = units
        self._trees = trees
        self._metric = metric
        self._columns = {task.name: task for unit in units for task in unit.tasks}
        self._cells = [
            {name: cell for unit in units for name, cell in unit.cells[i].items()}
            for i in range(len(runs))
        ]
        self._groups = [{group.name: group for group in run.groups} for run in runs]

    def roots(self) -> tuple[BoardNode, ...]:
        """Build the roots, the headline's first."""
        roots: list[BoardNode] = []
        unused_trees = list(self._trees)
        for unit in self._units:
            names = {task.name for task in unit.tasks}
            unit_trees = [tree for tree in unused_trees if names & {*tree.tasks}]
            unused_trees = [tree for tree in unused_trees if tree not in unit_trees]
            roots += self._unit_roots(unit, unit_trees)
        roots += [self._group(tree, "") for tree in unused_trees]
        if self._metric is not None:
            return tuple(roots)
        in_trees = {node.name for tree in self._trees for node in tree.nodes()}
        published = dict.fromkeys(
            name for groups in self._groups for name in groups if name not in in_trees
        )
        return (*roots, *(self._published(name) for name in published))

    def _unit_roots(
        self, unit: UnitScores, trees: Sequence[Node]
    ) -> Iterator[BoardNode]:
        headline = unit.node if unit.node in trees else None
        if headline is None and any(unit.overall):
            yield self._overall(unit, trees)
            return
        if headline is not None:
            yield self._with_headline(self._group(headline, ""), unit)
        yield from (self._group(tree, "") for tree in trees if tree != headline)
        in_trees = {name for tree in self._trees for name in tree.tasks}
        for task in unit.tasks:
            if task.name not in in_trees:
                yield self._task(task.name, "")

    def _overall(self, unit: UnitScores, trees: Sequence[Node]) -> BoardNode:
        """Build the mean over all tasks of a unit, which is in no tree of the runs."""
        node_id = self.ids.new("", OVERALL)
        in_trees = {name for tree in trees for name in tree.tasks}
        parts = (
            *(self._group(tree, node_id) for tree in trees),
            *(
                self._task(task.name, node_id)
                for task in unit.tasks
                if task.name not in in_trees
            ),
        )
        first_task = unit.tasks[0]
        node = BoardNode(
            id=node_id,
            title=OVERALL,
            kind="group",
            metric=f"mean of {counted(len(unit.tasks), 'task')}",
            bounded=first_task.bounded,
            lower_is_better=first_task.lower_is_better,
            tasks=tuple(task.name for task in unit.tasks),
            estimates=(None,) * len(self._cells),
            parts=parts,
        )
        return self._with_headline(node, unit)

    def _with_headline(self, node: BoardNode, unit: UnitScores) -> BoardNode:
        """Give a node the overall scores of the runs."""
        overall = unit.overall or (None,) * len(self._cells)
        estimates = tuple(
            headline or average
            for headline, average in zip(overall, node.estimates, strict=True)
        )
        reasons = {}
        for i, estimate in enumerate(estimates):
            reason = (
                node.reasons.get(i)
                or self._lacking(i, node.tasks)
                or why_incomplete(estimate)
            )
            if reason:
                reasons[i] = reason
        return replace(node, estimates=estimates, reasons=reasons)

    def _group(self, node: Node, parent: str) -> BoardNode:
        """Build a node of a tree, with the nodes below it."""
        title = value_title(*node.keys[-1]) if node.keys else title_of(node)
        name = node.name if is_named_by_dialect(node) else title
        node_id = self.ids.new(parent, name)
        self.sources[node_id] = node
        parts = tuple(
            self._task(part, node_id)
            if isinstance(part, str)
            else self._group(part, node_id)
            for part in node.parts
        )
        group_node = self._averages(node_id, node.name, average_words(node), parts)
        return replace(group_node, title=title, keys=dict(node.keys))

    def _published(self, name: str) -> BoardNode:
        return self._averages(self.ids.new("", name), name, "as published", ())

    def _averages(
        self, node_id: str, name: str, average_text: str, parts: tuple[BoardNode, ...]
    ) -> BoardNode:
        """Build a node whose numbers are averages that the runs have."""
        groups = [run_groups.get(name) for run_groups in self._groups]
        averages = [self._average_of(group) for group in groups]
        numbers = [average for average in averages if average is not None]
        with_estimate = [
            number for number in numbers if _estimate_of(number)
        ] or numbers
        reasons = {}
        for i, (group, average) in enumerate(zip(groups, averages, strict=True)):
            if reason := self._why_no_average(group, average):
                reasons[i] = reason
        tasks = dict.fromkeys(task for group in groups if group for task in group.tasks)
        return BoardNode(
            id=node_id,
            title=name,
            kind="group",
            metric=average_text,
            bounded=all(number.kind in BOUNDED for number in with_estimate),
            measure=""
            if not with_estimate or with_estimate[0].kind in BOUNDED
            else with_estimate[0].label,
            lower_is_better=_direction(with_estimate[0]) if with_estimate else None,
            tasks=tuple(tasks),
            estimates=tuple(_estimate_of(average) for average in averages),
            reasons=reasons,
            parts=parts,
        )

    def _average_of(self, group: GroupResult | None) -> MetricResult | None:
        if group is None or not group.metrics:
            return None
        if self._metric is None:
            return group.metrics[0]
        return next(
            (average for average in group.metrics if average.label == self._metric),
            None,
        )

    def _why_no_average(
        self, group: GroupResult | None, average: MetricResult | None
    ) -> str:
        if group is None:
            return "the run has no such average"
        if average is None:
            return f"the run has no average of '{self._metric}'"
        if group.missing:
            return group.coverage
        return why_incomplete(average.estimate)

    def _task(self, name: str, parent: str) -> BoardNode:
        column = self._columns.get(name)
        cells = [cells.get(name) for cells in self._cells]
        node = task_node(self.ids.new(parent, name), name, cells)
        if column is None:
            return node
        return replace(node, metric=column.metric, bounded=column.bounded)

    def _lacking(self, index: int, tasks: Collection[str]) -> str:
        """Say which tasks a run has no number for; "" if it has all."""
        cells = self._cells[index]
        missing_tasks = [
            name for name in tasks if _estimate_of(cells.get(name)) is None
        ]
        if not missing_tasks:
            return ""
        return average_reason(
            len(tasks) - len(missing_tasks), len(tasks), missing_tasks
        )


def task_node(
    node_id: str, name: str, cells: Sequence[MetricResult | None]
) -> BoardNode:
    """Build the node of a task from each run's metric."""
    present_cells = [cell for cell in cells if cell is not None]
    reasons = {}
    for i, cell in enumerate(cells):
        reason = (
            "the run does not have this task"
            if cell is None
            else why_incomplete(cell.estimate)
        )
        if reason:
            reasons[i] = reason
    return BoardNode(
        id=node_id,
        title=name,
        kind="task",
        metric=present_cells[0].label if present_cells else "",
        bounded=present_cells[0].kind in BOUNDED if present_cells else True,
        lower_is_better=_direction(present_cells[0]) if present_cells else None,
        tasks=(name,),
        estimates=tuple(map(_estimate_of, cells)),
        reasons=reasons,
    )


def average_reason(n_present: int, n_tasks: int, missing_tasks: Sequence[str]) -> str:
    """Say which tasks an average lacks: "1 of 2 tasks; missing: law"."""
    return f"{n_present} of {counted(n_tasks, 'task')}; missing: {listed(missing_tasks, 5)}"


def reorder(node: BoardNode, order: Sequence[int]) -> BoardNode:
    """Put the models of a node, and of those below it, in another order.

    Args:
        node: the node.
        order: the present position of each model, in the new order.
    """
    position_by_index = {index: position for position, index in enumerate(order)}
    return replace(
        node,
        estimates=tuple(node.estimates[index] for index in order),
        ranks=tuple(node.ranks[index] for index in order) if node.ranks else (),
        letters=tuple(node.letters[index] for index in order) if node.letters else (),
        reasons=dict(
            sorted(
                (position_by_index[index], reason)
                for index, reason in node.reasons.items()
                if index in position_by_index
            )
        ),
        parts=tuple(reorder(part, order) for part in node.parts),
    )


def replace_node(
    roots: Sequence[BoardNode], replacements: Mapping[str, BoardNode]
) -> tuple[BoardNode, ...]:
    """Replace nodes by their ids, keeping the parts that stand below them."""
    replaced = []
    for root in roots:
        parts = replace_node(root.parts, replacements)
        replaced.append(replace(replacements.get(root.id, root), parts=parts))
    return tuple(replaced)


def find_in(roots: Sequence[BoardNode]) -> Iterator[BoardNode]:
    """Iterate over all nodes of a board, outer ones first."""
    for root in roots:
        yield from root.nodes()


def dimensions_of(roots: Sequence[BoardNode]) -> tuple[Dimension, ...]:
    """List the keys by which the nodes of a board differ, with their values; the tasks last."""
    values: dict[str, dict[str, str]] = {}
    tasks: dict[str, str] = {}
    for node in find_in(roots):
        for key, value in node.keys.items():
            values.setdefault(key, {}).setdefault(value, value_title(key, value))
        if node.kind == "task":
            tasks.setdefault(node.tasks[0], node.title)
    dimensions = [
        Dimension(key, dimension_title(key), tuple(titles.items()))
        for key, titles in values.items()
    ]
    if len(tasks) > 1:
        dimensions.append(Dimension("task", "Task", tuple(tasks.items())))
    return tuple(dimensions)


def dimension_title(key: str) -> str:
    """Write a metadata key as a heading: "aggregation_group" is "Aggregation group"."""
    words = key.replace("_", " ").strip() or key
    return words[:1].upper() + words[1:]


def title_of(node: Node) -> str:
    """Return a node's name without its dialect: "SEA" for "sea-helm:SEA"."""
    if is_named_by_dialect(node):
        return node.name.partition(":")[2] or node.name
    return node.name


def average_words(node: Node) -> str:
    """Say how a node's number is made: "mean of 5 tasks", "mean of 2 groups and 1 task"."""
    if node.average == "pooled":
        return f"all items of {counted(len(node.tasks), 'task')}"
    n_groups = sum(isinstance(part, Node) for part in node.parts)
    n_tasks = len(node.parts) - n_groups
    parts = [
        *([counted(n_groups, "group")] if n_groups else []),
        *([counted(n_tasks, "task")] if n_tasks else []),
    ]
    weighted = ", weighted by items" if node.average == "weighted" else ""
    return f"mean of {' and '.join(parts)}{weighted}"


def why_incomplete(estimate: Estimate | None) -> str:
    """Say why an estimate has no value or no interval; "" if it has both."""
    if estimate is None:
        return "no number"
    if math.isnan(estimate.value):
        no_number = estimate.method.removeprefix("no number: ")
        if no_number != estimate.method:
            return no_number
        if not estimate.n and estimate.n_missing:
            return "all answers are missing"
        return "no scored answer"
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return f"no interval: {estimate.method}"
    return ""


def _estimate_of(metric: MetricResult | None) -> Estimate | None:
    if metric is None or math.isnan(metric.estimate.value):
        return None
    return metric.estimate


def _direction(metric: MetricResult) -> bool | None:
    return metric.less_is_better if metric.has_direction else None
