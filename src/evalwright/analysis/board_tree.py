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

from evalwright.analysis.board_rows import BoardRow, BoardTask
from evalwright.analysis.words import counted, listed
from evalwright.core.plain import Plain
from evalwright.metrics.registry import BOUNDED
from evalwright.metrics.tree import Node
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


@dataclass(frozen=True, slots=True)
class UnitRows:
    """The tasks of a board that share a unit, and its rows in the order of the whole board.

    Args:
        tasks: the columns.
        rows: the models.
        node: the node of the common tree that stands for all tasks, if there is one.
        has_overall: whether there is a mean over the tasks.
    """

    tasks: tuple[BoardTask, ...]
    rows: tuple[BoardRow, ...]
    node: Node | None
    has_overall: bool


def make_tree(
    runs: Sequence[Run],
    units: Sequence[UnitRows],
    trees: Sequence[Node],
    metric: str | None = None,
) -> tuple[BoardNode, ...]:
    """Build the tree of a board.

    Args:
        runs: the runs in the order of the rows.
        units: its tasks and rows by unit, the headline's first.
        trees: the trees that all runs have.
        metric: the metric shown, None for the main ones.
    """
    return _TreeMaker(runs, units, trees, metric).roots()


def find_in(roots: Sequence[BoardNode]) -> Iterator[BoardNode]:
    """Iterate over all nodes of a board, outer ones first."""
    for root in roots:
        yield from root.nodes()


class _TreeMaker:
    """Builds the nodes of a board; remembers which ids and trees are used already."""

    def __init__(
        self,
        runs: Sequence[Run],
        units: Sequence[UnitRows],
        trees: Sequence[Node],
        metric: str | None,
    ) -> None:
        self._runs = runs
        self._units = units
        self._trees = trees
        self._metric = metric
        self._columns = {task.name: task for unit in units for task in unit.tasks}
        self._n_rows = len(units[0].rows)
        self._cells = [
            {name: cell for unit in units for name, cell in unit.rows[i].cells.items()}
            for i in range(self._n_rows)
        ]
        self._groups = [{group.name: group for group in run.groups} for run in runs]
        self._ids: set[str] = set()

    def roots(self) -> tuple[BoardNode, ...]:
        roots: list[BoardNode] = []
        unused_trees = list(self._trees)
        for unit in self._units:
            names = {task.name for task in unit.tasks}
            inside = [tree for tree in unused_trees if names & {*tree.tasks}]
            unused_trees = [tree for tree in unused_trees if tree not in inside]
            roots += self._unit_roots(unit, inside)
        roots += [self._group(tree, "") for tree in unused_trees]
        in_trees = {node.name for tree in self._trees for node in tree.nodes()}
        published = dict.fromkeys(
            name
            for groups in self._groups
            for name in groups
            if name not in in_trees and self._metric is None
        )
        return (*roots, *(self._published(name) for name in published))

    def _unit_roots(self, unit: UnitRows, trees: Sequence[Node]) -> Iterator[BoardNode]:
        headline = unit.node if unit.node in trees else None
        if headline is None and unit.has_overall:
            yield self._overall(unit, trees)
            return
        if headline is not None:
            yield self._with_headline(self._group(headline, ""), unit)
        yield from (self._group(tree, "") for tree in trees if tree != headline)
        in_trees = {name for tree in trees for name in tree.tasks}
        for task in unit.tasks:
            if task.name not in in_trees:
                node = self._task(task.name, "")
                is_ranked = len(unit.tasks) == 1
                yield self._with_ranks(node, unit) if is_ranked else node

    def _overall(self, unit: UnitRows, trees: Sequence[Node]) -> BoardNode:
        """Build the mean over all tasks of a unit, which is in no tree of the runs."""
        node_id = self._new_id("", OVERALL)
        in_trees = {name for tree in trees for name in tree.tasks}
        parts = (
            *(self._group(tree, node_id) for tree in trees),
            *(
                self._task(task.name, node_id)
                for task in unit.tasks
                if task.name not in in_trees
            ),
        )
        first = unit.tasks[0]
        node = BoardNode(
            id=node_id,
            title=OVERALL,
            kind="group",
            metric=f"mean of {counted(len(unit.tasks), 'task')}",
            bounded=first.bounded,
            lower_is_better=first.lower_is_better,
            tasks=tuple(task.name for task in unit.tasks),
            estimates=(None,) * self._n_rows,
            parts=parts,
        )
        return self._with_headline(node, unit)

    def _with_headline(self, node: BoardNode, unit: UnitRows) -> BoardNode:
        """Give a node the overall scores and ranks of the rows."""
        estimates = tuple(
            row.overall or recorded
            for row, recorded in zip(unit.rows, node.estimates, strict=True)
        )
        reasons = {
            i: reason
            for i, estimate in enumerate(estimates)
            if (
                reason := node.reasons.get(i)
                or self._lacking(i, node.tasks)
                or why_incomplete(estimate)
            )
        }
        return self._with_ranks(
            replace(node, estimates=estimates, reasons=reasons), unit
        )

    def _with_ranks(self, node: BoardNode, unit: UnitRows) -> BoardNode:
        if all(row.ranks is None for row in unit.rows):
            return node
        return replace(
            node,
            ranks=tuple(row.ranks for row in unit.rows),
            letters=tuple(row.letters for row in unit.rows),
        )

    def _group(self, node: Node, parent: str) -> BoardNode:
        """Build a node of a tree, with the nodes below it."""
        node_id = self._new_id(parent, node.name)
        parts = tuple(
            self._task(part, node_id)
            if isinstance(part, str)
            else self._group(part, node_id)
            for part in node.parts
        )
        return self._averages(node_id, node.name, average_words(node), parts)

    def _published(self, name: str) -> BoardNode:
        return self._averages(self._new_id("", name), name, "as published", ())

    def _averages(
        self, node_id: str, name: str, how: str, parts: tuple[BoardNode, ...]
    ) -> BoardNode:
        """Build a node whose numbers are averages that the runs have."""
        groups = [run_groups.get(name) for run_groups in self._groups]
        averages = [self._average_of(group) for group in groups]
        numbers = [average for average in averages if average is not None]
        shown = [number for number in numbers if _estimate_of(number)] or numbers
        reasons = {}
        for i, (group, average) in enumerate(zip(groups, averages, strict=True)):
            if reason := self._why_no_average(group, average):
                reasons[i] = reason
        return BoardNode(
            id=node_id,
            title=name,
            kind="group",
            metric=how,
            bounded=all(number.kind in BOUNDED for number in shown),
            measure="" if not shown or shown[0].kind in BOUNDED else shown[0].label,
            lower_is_better=_direction(shown[0]) if shown else None,
            tasks=tuple(
                dict.fromkeys(name for group in groups if group for name in group.tasks)
            ),
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
        node_id = self._new_id(parent, name)
        there = [cell for cell in cells if cell is not None]
        return BoardNode(
            id=node_id,
            title=name,
            kind="task",
            metric=column.metric if column else "",
            bounded=column.bounded if column else True,
            lower_is_better=_direction(there[0]) if there else None,
            tasks=(name,),
            estimates=tuple(_estimate_of(cell) for cell in cells),
            reasons={
                i: reason
                for i, cell in enumerate(cells)
                if (reason := self._why_no_score(cell))
            },
        )

    def _why_no_score(self, cell: MetricResult | None) -> str:
        if cell is None:
            return "the run does not have this task"
        return why_incomplete(cell.estimate)

    def _lacking(self, row: int, tasks: Collection[str]) -> str:
        """Say which tasks a row has no number for; "" if it has all."""
        cells = self._cells[row]
        lacking = [name for name in tasks if _estimate_of(cells.get(name)) is None]
        if not lacking:
            return ""
        there = len(tasks) - len(lacking)
        return (
            f"{there} of {counted(len(tasks), 'task')}; missing: {listed(lacking, 5)}"
        )

    def _new_id(self, parent: str, name: str) -> str:
        wanted = f"{parent}{SEPARATOR}{name}" if parent else name
        node_id = wanted
        number = 1
        while node_id in self._ids:
            number += 1
            node_id = f"{wanted} ({number})"
        self._ids.add(node_id)
        return node_id


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
