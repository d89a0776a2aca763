"""A tree of tasks: how task scores are averaged at each node, and the weight of each task.

A node's value is a linear combination of its tasks' values. `macro`: each part of the node
counts the same; `weighted`: each by its number of items; `pooled`: all items below form one
sample, and items on the same passage are one cluster even across tasks. A node has no number if
one of its tasks has none, unless the tree says `missing: ignore`; then its label says what is
missing.

A tree can also be made from the tasks' metadata (`by: [language, competency]`): a level for each
key, with a node for each of its values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from evalwright.core.errors import ConfigurationError, UnknownName, check_known
from evalwright.core.tasks import metadata_texts
from evalwright.metrics.dimension_titles import value_title

Average = Literal["macro", "weighted", "pooled"]
AVERAGES: tuple[Average, ...] = get_args(Average)
_KEYS = ("name", "average", "missing", "parts")
_ROOT_KEYS = (*_KEYS, "by")
_LEVEL_KEYS = ("key", "average")
SHARED_KEYS = ("language", "competency", "aggregation_group")
"""Metadata by which dialects group their tasks, outermost first."""
MOST_DEPTH = 20

Metadata = Mapping[str, Mapping[str, Any]]
"""The metadata of tasks, by the task's name."""


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
        keys: the metadata by which its tasks were selected, outermost first.
    """

    name: str
    parts: tuple[str | Node, ...]
    average: Average = "macro"
    ignores_missing: bool = False
    keys: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of all tasks below this node, each once, in order."""
        names = dict.fromkeys(
            name
            for part in self.parts
            for name in ((part,) if isinstance(part, str) else part.tasks)
        )
        return tuple(names)

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
        weights: dict[tuple[str, ...], float] = {}
        for sample in self._samples(sizes, False):
            weights[sample.tasks] = weights.get(sample.tasks, 0.0) + sample.weight
        return tuple(Sample(tasks, weight) for tasks, weight in weights.items())

    def missing(self, present: Collection[str]) -> tuple[str, ...]:
        """Return the tasks below this node that have no number.

        Args:
            present: the tasks that have one.
        """
        return tuple(task for task in self.tasks if task not in present)

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
                        tuple(
                            dict.fromkeys(
                                task for part_tasks in tasks for task in part_tasks
                            )
                        ),
                        1.0,
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


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a tree that is made from metadata.

    Attributes:
        key: the metadata key whose values are the nodes.
        average: how the parts of these nodes are combined.
    """

    key: str
    average: Average = "macro"


def read_tree(
    definition: Any, where: str = "tree", tasks: Metadata | None = None
) -> Node:
    """Read the tree of a suite file.

    Args:
        definition: the tree as parsed from YAML.
        where: what messages call the place.
        tasks: the tasks that a tree `by` metadata is made of; without them, such a tree has only
            the parts that it names.

    Raises:
        ConfigurationError: it is not a tree, or a name occurs in it twice.
        UnknownName: a key or average does not exist.
    """
    levels = read_levels(definition, where)
    root = _node(definition, where, "overall", 0)
    names = [*(node.name for node in root.nodes()), *_task_places(root)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigurationError(
            f"{where}: '{twice}' occurs in the tree twice. Name each task and each node"
            " once."
        )
    if not levels or tasks is None:
        return root
    others = {name: keys for name, keys in tasks.items() if name not in root.tasks}
    grouped = group_by_metadata(
        others,
        levels,
        used_names=[*names, *tasks],
        ignores_missing=root.ignores_missing,
    )
    return replace(root, parts=(*grouped, *root.parts))


def read_levels(definition: Any, where: str = "tree") -> tuple[Level, ...]:
    """Read the levels of a tree that is made from metadata (`by`); () where it is written out."""
    by = definition.get("by") if isinstance(definition, Mapping) else None
    if by is None:
        return ()
    entries = [by] if isinstance(by, str | Mapping) else by
    wrong = ConfigurationError(
        f"{where}: 'by' must be a metadata key or a list of them, such as 'by: [language,"
        " competency]'; a key can be {key: ..., average: ...} too."
    )
    if not isinstance(entries, Sequence) or not entries:
        raise wrong
    levels = []
    for entry in entries:
        settings = entry if isinstance(entry, Mapping) else {"key": entry}
        check_known("key", settings, _LEVEL_KEYS, f"'by' in {where} takes ")
        key = settings.get("key")
        average = settings.get("average", definition.get("average", "macro"))
        if not isinstance(key, str) or not key:
            raise wrong
        _check_average(average, f"by {key}", where)
        levels.append(Level(key, average))
    keys = [level.key for level in levels]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise ConfigurationError(f"{where}: 'by' has the key '{twice}' twice.")
    if len(levels) >= MOST_DEPTH:
        raise ConfigurationError(
            f"{where}: a tree can have {MOST_DEPTH} levels at most."
        )
    return tuple(levels)


def group_by_metadata(
    tasks: Metadata,
    levels: Sequence[Level],
    *,
    used_names: Collection[str] = (),
    ignores_missing: bool = False,
) -> tuple[Node, ...]:
    """Make the nodes of a tree from the tasks' metadata, in the order of the tasks.

    A task without the first key is in none of them; one without a later key is a part of the node
    above. A task whose metadata is a list is in the node of each of its values. Keys that no task
    has make no level.

    Args:
        tasks: the tasks' metadata.
        levels: the levels, outermost first.
        used_names: names that no node may have, such as those of tasks.
        ignores_missing: whether the nodes leave out tasks without a number.
    """
    used = [
        level
        for level in levels
        if any(metadata_texts(metadata.get(level.key)) for metadata in tasks.values())
    ]
    names = {*used_names}
    if not used:
        return ()
    parts = _grouped(tasks, used, (), "", names, ignores_missing)
    return tuple(part for part in parts if isinstance(part, Node))


def _grouped(
    tasks: Metadata,
    levels: Sequence[Level],
    keys: tuple[tuple[str, str], ...],
    path: str,
    names: set[str],
    ignores_missing: bool,
) -> tuple[str | Node, ...]:
    """Group tasks by the first of some levels; those without its key stay as they are."""
    if not levels:
        return tuple(tasks)
    level, *further_levels = levels
    tasks_by_value: dict[str, dict[str, Mapping[str, Any]]] = {}
    without_key = []
    for name, metadata in tasks.items():
        values = metadata_texts(metadata.get(level.key))
        for value in values:
            tasks_by_value.setdefault(value, {})[name] = metadata
        if not values:
            without_key.append(name)
    nodes = []
    for value, members in tasks_by_value.items():
        selected = (*keys, (level.key, value))
        title = value_title(level.key, value)
        node_name = _new_name(f"{path}/{title}" if path else title, level.key, names)
        parts = _grouped(
            members, further_levels, selected, node_name, names, ignores_missing
        )
        nodes.append(
            Node(node_name, parts, level.average, ignores_missing, keys=selected)
        )
    return (*nodes, *without_key)


def is_named_by_dialect(node: Node) -> bool:
    """Tell whether a node's name begins with the dialect of its tasks, as in "sea-helm:th"."""
    dialect, colon, _ = node.name.partition(":")
    prefix = dialect + colon
    return bool(colon) and all(task.startswith(prefix) for task in node.tasks)


def with_shared_keys(
    node: Node, tasks: Metadata, above: Mapping[str, str] | None = None
) -> Node:
    """Add the metadata that the tasks of a dialect's node share, a key more than the node above.

    The node "sea-helm:th" then selects {"language": "th"}, as a node made from metadata does, and
    "sea-helm:th/safety" below it the competency too.

    Args:
        node: the tree.
        tasks: the tasks' metadata.
        above: the metadata that the node above selects.
    """
    keys = dict(above or {})
    next_key = next((key for key in SHARED_KEYS if key not in keys), "")
    if next_key and not node.keys and is_named_by_dialect(node):
        values = {
            tuple(metadata_texts(tasks.get(name, {}).get(next_key)))
            for name in node.tasks
        }
        shared = values.pop() if len(values) == 1 else ()
        if len(shared) == 1:
            keys[next_key] = shared[0]
    parts = tuple(
        part if isinstance(part, str) else with_shared_keys(part, tasks, keys)
        for part in node.parts
    )
    is_new = keys != (above or {})
    return replace(node, parts=parts, keys=tuple(keys.items()) if is_new else node.keys)


def _new_name(title: str, key: str, names: set[str]) -> str:
    """Choose a name that no task and no other node has."""
    name = title if title not in names else f"{title} ({key})"
    number = 1
    while name in names:
        number += 1
        name = f"{title} ({key} {number})"
    names.add(name)
    return name


def _task_places(node: Node) -> Iterator[str]:
    """Iterate over the tasks below a node, once for each place."""
    for part in node.parts:
        if isinstance(part, str):
            yield part
        else:
            yield from _task_places(part)


def _check_average(average: Any, name: str, where: str) -> None:
    if average not in AVERAGES:
        raise UnknownName(
            "average",
            str(average),
            AVERAGES,
            f"'{name}' in {where} takes {', '.join(AVERAGES)}.",
        )


def _node(definition: Any, where: str, name: str, depth: int) -> Node:
    if not isinstance(definition, Mapping):
        raise ConfigurationError(
            f"{where} must be a mapping with the keys 'name', 'average' and 'parts'."
        )
    known_keys = _KEYS if depth else _ROOT_KEYS
    check_known("key", definition, known_keys, f"'{where}' takes ")
    name = definition.get("name", name)
    average = definition.get("average", "macro")
    missing = definition.get("missing", "")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(
            f"{where}: a node needs a name, such as 'name: science'."
        )
    _check_average(average, name, where)
    if missing not in ("", "ignore"):
        raise ConfigurationError(
            f"{where}: 'missing' of '{name}' can only be 'ignore', not '{missing}'."
        )
    parts = definition.get("parts")
    if parts is None and definition.get("by") is not None:
        return Node(name, (), average, missing == "ignore")
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
