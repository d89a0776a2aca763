"""A tree of tasks: how task scores are averaged at each node, and the weight of each task.

A node's value is a linear combination of its tasks' values. `macro`: each part of the node
counts the same; `weighted`: each by its number of items; `pooled`: all items below form one
sample, and items on the same passage are one cluster even across tasks. A node has no number if
one of its tasks has none, unless the tree says `missing: ignore`; then its label says what is
missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from evalwright.core.errors import ConfigurationError, UnknownName, check_known

Average = Literal["macro", "weighted", "pooled"]
AVERAGES: tuple[Average, ...] = get_args(Average)
_KEYS = ("name", "average", "missing", "parts")
MOST_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Sample:
    """A term of a node's average: one task, or several whose items are pooled.

    The weights of a node add up to 1.
    """

    tasks: tuple[str, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree.

    Attributes:
        name: shown in reports.
        parts: names of tasks, and nodes.
        average: how the parts are combined.
        ignores_missing: whether tasks without a number are left out, in this node and all below it.
    """

    name: str
    parts: tuple[str | Node, ...]
    average: Average = "macro"
    ignores_missing: bool = False

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of all tasks below this node, in order."""
        return tuple(
            name
            for part in self.parts
            for name in ((part,) if isinstance(part, str) else part.tasks)
        )

    def nodes(self) -> Iterator[Node]:
        """Iterate over this node and those below it, inner ones first."""
        for part in self.parts:
            if isinstance(part, Node):
                yield from part.nodes()
        yield self

    def samples(self, sizes: Mapping[str, int]) -> tuple[Sample, ...]:
        """Return the terms of the average; empty where the node has no number.

        Args:
            sizes: number of items of each task that has a number.
        """
        return tuple(self._samples(sizes, False))

    def missing(self, there: Collection[str]) -> tuple[str, ...]:
        """Return the tasks below this node that have no number.

        Args:
            there: the tasks that have one.
        """
        return tuple(task for task in self.tasks if task not in there)

    def _samples(self, sizes: Mapping[str, int], ignores: bool) -> list[Sample]:
        ignores = ignores or self.ignores_missing
        samples_by_part = []
        for part in self.parts:
            if isinstance(part, Node):
                part_samples = part._samples(sizes, ignores)
            else:
                part_samples = [Sample((part,), 1.0)] if part in sizes else []
            if part_samples:
                samples_by_part.append(part_samples)
            elif not ignores:
                return []
        tasks = [
            tuple(task for sample in part_samples for task in sample.tasks)
            for part_samples in samples_by_part
        ]
        if self.average == "pooled":
            return (
                [
                    Sample(
                        tuple(task for part_tasks in tasks for task in part_tasks), 1.0
                    )
                ]
                if samples_by_part
                else []
            )
        weights = [
            sum(sizes[task] for task in part_tasks) if self.average == "weighted" else 1
            for part_tasks in tasks
        ]
        total = sum(weights)
        return [
            Sample(
                sample.tasks,
                sample.weight * (weight / total if total else 1 / len(samples_by_part)),
            )
            for part_samples, weight in zip(samples_by_part, weights, strict=True)
            for sample in part_samples
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the node in the form of a suite file."""
        missing = {"missing": "ignore"} if self.ignores_missing else {}
        parts = [
            part if isinstance(part, str) else part.as_dict() for part in self.parts
        ]
        return {"name": self.name, "average": self.average, **missing, "parts": parts}


def distinct(nodes: Iterable[Node]) -> list[Node]:
    """Select the nodes to show: each name once, without a node that is its parent's only part."""
    by_name = {node.name: node for node in nodes}
    only = [node.parts[0] for node in by_name.values() if len(node.parts) == 1]
    only_part_names = {part.name for part in only if isinstance(part, Node)}
    return [node for name, node in by_name.items() if name not in only_part_names]


def coverage(total: int, missing: Sequence[str]) -> str:
    """Say how many tasks have a number: "7 tasks", or "5 of 7 tasks; missing: law, logic"."""
    if not missing:
        return f"{total} task{'' if total == 1 else 's'}"
    return f"{total - len(missing)} of {total} tasks; missing: {', '.join(missing)}"


def read_tree(definition: Any, where: str = "tree") -> Node:
    """Read the tree of a suite file.

    Args:
        definition: the tree as parsed from YAML.
        where: what messages call the place.

    Raises:
        ConfigurationError: it is not a tree, or a name occurs in it twice.
        UnknownName: a key or average does not exist.
    """
    root = _node(definition, where, "overall", 0)
    names = [*(node.name for node in root.nodes()), *root.tasks]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigurationError(
            f"{where}: '{twice}' occurs in the tree twice. Name each task and each node"
            " once."
        )
    return root


def _node(definition: Any, where: str, name: str, depth: int) -> Node:
    if not isinstance(definition, Mapping):
        raise ConfigurationError(
            f"{where} must be a mapping with the keys 'name', 'average' and 'parts'."
        )
    check_known("key", definition, _KEYS, f"'{where}' takes ")
    name = definition.get("name", name)
    average = definition.get("average", "macro")
    missing = definition.get("missing", "")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(
            f"{where}: a node needs a name, such as 'name: science'."
        )
    if average not in AVERAGES:
        raise UnknownName(
            "average",
            str(average),
            AVERAGES,
            f"'{name}' in {where} takes {', '.join(AVERAGES)}.",
        )
    if missing not in ("", "ignore"):
        raise ConfigurationError(
            f"{where}: 'missing' of '{name}' can only be 'ignore', not '{missing}'."
        )
    parts = definition.get("parts")
    if not isinstance(parts, Sequence) or isinstance(parts, str) or not parts:
        raise ConfigurationError(
            f"{where}: the node '{name}' needs 'parts', a list of tasks and nodes."
        )
    if depth >= MOST_DEPTH:
        raise ConfigurationError(
            f"{where}: a tree can have {MOST_DEPTH} levels at most."
        )
    inner = tuple(
        (
            part
            if isinstance(part, str)
            else _node(part, f"{where}.parts[{index}]", "", depth + 1)
        )
        for index, part in enumerate(parts)
    )
    return Node(name, inner, average, missing == "ignore")
