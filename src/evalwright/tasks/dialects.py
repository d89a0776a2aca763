"""The dialect protocol: tasks of another framework are named `DIALECT:NAME`, and no other room
knows which dialects there are.

A dialect is one line of the table here, an entry point of the group `evalwright.dialects`, or a
call of `register` in a plug-in. It is imported only when one of its tasks, or a finished run of
one, appears.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.outcomes import Outcome
from evalwright.core.tasks import MetricSpec, Scorer, Task
from evalwright.metrics.tree import Node
from evalwright.statistics import Estimate
from evalwright.tasks.entry_points import offered

DIALECTS = {
    "lm-eval": "evalwright.compat.lm_eval.tasks",
    "sea-helm": "evalwright.compat.sea_helm",
}
"""The dialects that come with the package: name -> "module:object"."""

SCORINGS = ("corrected", "published")
"""Whose arithmetic makes the numbers: ours, with the other framework's faults mended, or the other
framework's own.
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """How a recorded task's answers are scored again. found: the metrics, from the names in the
    scores by scorer.

    kept: scorers whose recorded scores stay as they are. as_empty: outcomes scored as an empty
    answer, None for those of the record.
    """

    scorers: Sequence[Scorer]
    metrics: Sequence[MetricSpec]
    found: Callable[[Mapping[str, Sequence[str]]], Sequence[MetricSpec]]
    kept: frozenset[str] = frozenset()
    as_empty: Sequence[Outcome] | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A name that can be loaded. kind: "task", "group" or the like; path: its file, "" for none;
    members: what it stands for.
    """

    name: str
    kind: str
    path: str = ""
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Averaged:
    """One number of a group: the average by `node` of a metric of its tasks.

    label: what it is called; found: the metric of each task that has it, as in `run.json`, by the
    task's name. published: the number by the other framework's own arithmetic, which then stands as
    it is.
    """

    label: str
    node: Node
    found: Mapping[str, Mapping[str, Any]]
    published: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A group of tasks with its averages, of which it stands for the first. label: the name shown;
    absent: asked for, and no task.
    """

    name: str
    label: str
    averages: tuple[Averaged, ...]
    absent: tuple[str, ...] = ()


class Dialect(Protocol):
    """Another framework's tasks.

    Its tasks' definitions have `dialect: NAME`, and their scorers the kind NAME; a scorer's score
    has a part for each metric. Whoever implements it imports what is heavy in the methods.
    right_or_wrong: metrics whose values are 0 or 1, for stopping rules. One may have
    `check_used(settings, tasks)` too, which raises for a setting that none of its tasks of a run
    uses, `keys`: those of its task files that ours do not have, and `takes_limit`: whether a run's
    limit is a setting of its tasks too; `takes_among_others` whether its setting `among_others` is,
    by which a task that cannot be loaded beside others fails alone.
    """

    right_or_wrong: frozenset[str]

    def names(self, roots: Sequence[Path]) -> Sequence[Listed]:
        """What can be loaded from folders of task files; without folders, from the installed
        package.
        """

    def load(
        self, name: str, settings: Mapping[str, Any], *, prompt_format: str, chat: bool
    ) -> list[Task]:
        """The tasks of a name, which comes without the dialect. settings: `dialect` of a
        configuration.

        prompt_format, chat: as of `load_tasks`. Raises UsageError.
        """

    def groups(self, tasks: Sequence[Mapping[str, Any]]) -> Sequence[Group]:
        """Groups of a run's tasks that are averaged, inner ones first. tasks: as in `run.json`,
        those of this dialect.
        """

    def rules(
        self,
        task: Mapping[str, Any],
        configuration: Mapping[str, Any],
        first: Mapping[str, Any],
        settings: Mapping[str, Any],
    ) -> Rules:
        """How a recorded task is scored again. task, configuration: as in `run.json`; first:
        metadata of its first answered sample.

        settings: given for this, as of the command line; what the run trusted counts for nothing.
        Raises UsageError.
        """


_registered: dict[str, Dialect] = {}


def register(name: str, dialect: Dialect) -> None:
    """Add a dialect.

    Raises ConfigurationError for a name that is empty, has a colon, or belongs to another.
    """
    if not name or ":" in name or name in DIALECTS:
        raise ConfigurationError(
            f"'{name}' cannot name a dialect: it must be non-empty, without ':', and"
            f" not one of {', '.join(DIALECTS)}."
        )
    _registered[name] = dialect


def names() -> list[str]:
    """All dialects, sorted."""
    return sorted({*_registered, *_all_dialects()})


def is_dialect(name: str) -> bool:
    """Whether a dialect has that name."""
    return name in _registered or name in _all_dialects()


def dialect(name: str) -> Dialect:
    """The dialect of that name. Raises UnknownName with the closest ones."""
    if name not in _registered:
        if name not in _all_dialects():
            raise UnknownName("dialect", name, names(), f"Known: {', '.join(names())}.")
        _registered[name] = resolve_name(_all_dialects()[name])
    return _registered[name]


def named(task: str) -> tuple[Dialect, str] | None:
    """The dialect that a task's name begins with, and the rest of the name; None for a task of
    ours.
    """
    head, colon, task_name = task.partition(":")
    return (dialect(head), task_name) if colon and is_dialect(head) else None


def dialect_of_file(keys: Collection[str]) -> tuple[str, str] | None:
    """The dialect whose task file has one of these keys, and the key; None where none has."""
    for name in DIALECTS:
        dialect_keys: Collection[str] = getattr(dialect(name), "keys", ())
        if key := next((key for key in keys if key in dialect_keys), None):
            return name, key
    return None


def dialect_of(definition: Mapping[str, Any]) -> Dialect | None:
    """The dialect of a task's definition; None for a task of ours, and for results that were only
    imported.
    """
    name = definition.get("dialect")
    return dialect(name) if isinstance(name, str) and is_dialect(name) else None


def check_used(
    settings: Mapping[str, Any], tasks: Sequence[Task], used: Collection[str]
) -> None:
    """Raise ConfigurationError for a setting that holds for none of the tasks.

    settings: `dialect` of a configuration. used: those that `load_tasks` told of.
    """
    trusted = settings.get("trust") or ()
    for folder in [trusted] if isinstance(trusted, str | Path) else trusted:
        if not Path(folder).expanduser().exists():
            raise ConfigurationError(
                f"The folder '{folder}', which --trust names, does not exist."
            )
    foreign = [task for task in tasks if dialect_of(task.definition) is not None]
    for name in dict.fromkeys(task.definition["dialect"] for task in foreign):
        if check := getattr(dialect(name), "check_used", None):
            check(
                settings,
                [task for task in foreign if task.definition["dialect"] == name],
            )
    if foreign:
        return
    for key in settings.keys() - used:
        value = settings[key]
        text = " ".join(map(str, value)) if isinstance(value, list | tuple) else value
        flag = (
            f"--{key.replace('_', '-')} {text}"
            if key in ("task_root", "trust", "scoring")
            else f"-D {key}={text}"
        )
        more = (
            ", or task files there that read files elsewhere" if key == "trust" else ""
        )
        raise ConfigurationError(
            f"{flag} has no effect: it is for tasks of other frameworks"
            f" (DIALECT:NAME){more}, and these are none:"
            f" {', '.join(task.name for task in tasks[:6])}. Leave it out."
        )


@lru_cache(maxsize=1)
def _all_dialects() -> Mapping[str, str]:
    return {**offered("evalwright.dialects"), **DIALECTS}
