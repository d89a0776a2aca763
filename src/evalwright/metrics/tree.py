"""A tree of tasks: how scores of tasks are put together at each node, and how much each task weighs
in it.

A node's value is a linear combination of its tasks' values. `macro`: each part of the node counts
the same; `weighted`: each by its number of items; `pooled`: all items below are one sample, so that
items of one passage are a cluster across tasks. A node of which a task has no number has none
either, unless the tree says `missing: ignore`; then its label says what is missing.
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
    """What a node's average is made of: one task, or several whose items are pooled, with its
    weight; weights of a node add to 1.
    """

    tasks: tuple[str, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a tree of tasks, with one average.

    Args:
        name: the node's name.
        parts: names of tasks, and nodes.
        average: "macro", each part counts the same; "weighted", each by its number of items;
            "pooled", all items below are one sample.
        ignores_missing: whether tasks without a number are left out, here and below.
    """

    name: str
    parts: tuple[str | Node, ...]
    average: Average = "macro"
    ignores_missing: bool = False

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks below, in order."""
        return tuple(
            name
            for part in self.parts
            for name in ((part,) if isinstance(part, str) else part.tasks)
        )

    def nodes(self) -> Iterator[Node]:
        """This node and those below it, inner ones first."""
        for part in self.parts:
            if isinstance(part, Node):
                yield from part.nodes()
        yield self

    def samples(self, sizes: Mapping[str, int]) -> tuple[Sample, ...]:
        """What the average is made of. sizes: items of each task that has a number.

        () where the node has no number.
        """
        return tuple(self._samples(sizes, False))

    def missing(self, there: Collection[str]) -> tuple[str, ...]:
        """The tasks below that are not among those that have a number."""
        return tuple(task for task in self.tasks if task not in there)

    def _samples(self, sizes: Mapping[str, int], ignores: bool) -> list[Sample]:
        ignores = ignores or self.ignores_missing
        found = []
        for part in self.parts:
            if isinstance(part, Node):
                own = part._samples(sizes, ignores)
            else:
                own = [Sample((part,), 1.0)] if part in sizes else []
            if own:
                found.append(own)
            elif not ignores:
                return []
        tasks = [tuple(task for one in own for task in one.tasks) for own in found]
        if self.average == "pooled":
            return (
                [Sample(tuple(task for own in tasks for task in own), 1.0)]
                if found
                else []
            )
        items = [
            sum(sizes[task] for task in own) if self.average == "weighted" else 1
            for own in tasks
        ]
        total = sum(items)
        return [
            Sample(one.tasks, one.weight * (n / total if total else 1 / len(found)))
            for own, n in zip(found, items, strict=True)
            for one in own
        ]

    def as_dict(self) -> dict[str, Any]:
        """The form that a suite file takes."""
        missing = {"missing": "ignore"} if self.ignores_missing else {}
        parts = [
            part if isinstance(part, str) else part.as_dict() for part in self.parts
        ]
        return {"name": self.name, "average": self.average, **missing, "parts": parts}


def distinct(nodes: Iterable[Node]) -> list[Node]:
    """Nodes to be shown: each name once, and none that is all that another has below, whose number
    is the same.
    """
    found = {node.name: node for node in nodes}
    only = [node.parts[0] for node in found.values() if len(node.parts) == 1]
    alone = {part.name for part in only if isinstance(part, Node)}
    return [node for name, node in found.items() if name not in alone]


def coverage(total: int, missing: Sequence[str]) -> str:
    """How many tasks have a number: "7 tasks", or "5 of 7 tasks; missing: law, logic"."""
    if not missing:
        return f"{total} task{'' if total == 1 else 's'}"
    return f"{total - len(missing)} of {total} tasks; missing: {', '.join(missing)}"


def read_tree(given: Any, where: str = "tree") -> Node:
    """The tree of a suite file. where: what messages call the place.

    Raises ConfigurationError and UnknownName for what is no tree, and for a name that occurs in it
    twice.
    """
    root = _node(given, where, "overall", 0)
    names = [*(node.name for node in root.nodes()), *root.tasks]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigurationError(
            f"{where}: '{twice}' occurs in the tree twice. Name each task and each node"
            " once."
        )
    return root


def _node(given: Any, where: str, name: str, depth: int) -> Node:
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            f"{where} must be a mapping with the keys 'name', 'average' and 'parts'."
        )
    check_known("key", given, _KEYS, f"'{where}' takes ")
    name = given.get("name", name)
    average = given.get("average", "macro")
    missing = given.get("missing", "")
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
    parts = given.get("parts")
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
            else _node(part, f"{where}.parts[{place}]", "", depth + 1)
        )
        for place, part in enumerate(parts)
    )
    return Node(name, inner, average, missing == "ignore")
