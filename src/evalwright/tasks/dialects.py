"""The dialect protocol: tasks of another framework, named `DIALECT:NAME`.

No other module knows which dialects there are. A dialect is one line of the table here, an entry
point of the group `evalwright.dialects`, or a call of `register` in a plug-in. It is imported only
when one of its tasks, or a finished run of one, appears.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol, cast

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.outcomes import Outcome
from evalwright.core.tasks import MetricSpec, Scorer, Task
from evalwright.metrics.tree import Node
from evalwright.statistics import Estimate
from evalwright.tasks.entry_points import offered

DIALECTS = {
    "bfcl": "evalwright.compat.bfcl",
    "lm-eval": "evalwright.compat.lm_eval.tasks",
    "sea-helm": "evalwright.compat.sea_helm",
    "terminal-bench": "evalwright.compat.terminal_bench",
}
"""The dialects that come with the package: name -> "module:object"."""

HOW_TO_LOAD = (
    "A dialect of your own is loaded with --plugin FILE, or by installing its package."
)

SCORINGS = ("corrected", "published")
"""Which arithmetic makes the numbers.

"corrected" is ours, without the other framework's faults; "published" is the other framework's own.
"""


@dataclass(frozen=True, slots=True)
class ScoringRules:
    """How a recorded task's answers are scored again.

    Args:
        scorers: the task's scorers, bound.
        metrics: the task's metrics, over the columns of these scorers.
        choose_metrics: chooses the metrics by the names of the scores' parts, by scorer; None if
            the metrics are always the same.
        kept: names of scorers whose recorded scores stay as they are.
        as_empty: outcomes that are scored as an empty answer; None for those of the record.
    """

    scorers: Sequence[Scorer]
    metrics: Sequence[MetricSpec]
    choose_metrics: (
        Callable[[Mapping[str, Sequence[str]]], Sequence[MetricSpec]] | None
    ) = None
    kept: frozenset[str] = frozenset()
    as_empty: Sequence[Outcome] | None = None

    def metrics_for(self, parts: Mapping[str, Sequence[str]]) -> Sequence[MetricSpec]:
        """Return the metrics of scores that have these parts, by scorer."""
        if self.choose_metrics is None:
            return self.metrics
        return self.choose_metrics(parts)


@dataclass(frozen=True, slots=True)
class ListedTask:
    """A name that a dialect can load.

    Args:
        name: the name, without the dialect's.
        kind: "task", or the kind of a name for several tasks, such as "group".
        path: the file that defines it; "" for none.
        members: the names that it stands for.
    """

    name: str
    kind: str
    path: str = ""
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupAverage:
    """One number of a group of tasks: the average of a metric over the tasks that have it.

    Args:
        label: the number's name.
        node: the tasks, and how their metrics are averaged.
        metric_by_task: by the task's name, its metric as in `run.json`.
        published: the number by the other framework's own arithmetic, which is then shown as it is.
    """

    label: str
    node: Node
    metric_by_task: Mapping[str, Mapping[str, Any]]
    published: Estimate | None = None


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """A group of tasks with its averages.

    Args:
        name: the group's name, unique in a run.
        label: the name shown.
        averages: its numbers; the first is the one that stands for the group.
        absent: requested members that are not tasks of the run.
    """

    name: str
    label: str
    averages: tuple[GroupAverage, ...]
    absent: tuple[str, ...] = ()


class Dialect(Protocol):
    """Another framework's tasks, which are named `DIALECT:NAME`.

    Registered by an entry point of the group `evalwright.dialects`, or by `register_dialect` in a
    plug-in. It may be a module, a class or an object; import what is heavy inside the methods.

    The definitions of its tasks have `dialect: NAME`. Each of its scorers has the kind NAME, unless
    it is one of ours, and gives scores with a part for each metric.

    It may have more: `check_used(settings, tasks)`, which raises ConfigurationError for a setting
    that none of its tasks of a run uses; `keys`, the keys that only its task files have;
    `takes_limit`, True if a run's limit is a setting of its tasks; `takes_among_others`, True if
    its setting `among_others` lets a task that cannot be loaded fail alone; `files_from`, a
    sentence on where its files come from, for messages that found none.

    Attributes:
        right_or_wrong: metrics whose scores are 0 or 1, for stopping rules.
    """

    right_or_wrong: frozenset[str]

    def names(self, roots: Sequence[Path]) -> Sequence[ListedTask]:
        """List what can be loaded, for `evalwright tasks list --dialect NAME` and for patterns.

        Args:
            roots: folders with task files, from `--task-root`; without any, list what the installed
                package has.

        Returns:
            Tasks, and names that stand for several.
        """

    def load(
        self, name: str, settings: Mapping[str, Any], *, prompt_format: str, chat: bool
    ) -> list[Task]:
        """Make the tasks of a name.

        Args:
            name: the name, without the dialect's.
            settings: the settings of the command line: `task_root` and `trust` (folders), `scoring`
                ("corrected" or "published"), `num_fewshot`, and any given as `-D key=value`.
            prompt_format: "auto", "chat" or "text".
            chat: whether the model under test takes messages.

        Returns:
            The tasks, whose names begin with the name of the dialect and a colon.

        Raises:
            UsageError: there is no such task, or it cannot be used.
        """

    def groups(self, tasks: Sequence[Mapping[str, Any]]) -> Sequence[TaskGroup]:
        """Average over the tasks of a run.

        Args:
            tasks: the tasks of this dialect, as in `run.json`.

        Returns:
            Groups, inner ones first; none if nothing is averaged.
        """

    def rules(
        self,
        task: Mapping[str, Any],
        configuration: Mapping[str, Any],
        first: Mapping[str, Any],
        settings: Mapping[str, Any],
    ) -> ScoringRules:
        """Say how a recorded task is scored again, without its files.

        Args:
            task: the task, as in `run.json`.
            configuration: the run's configuration, as in `run.json`.
            first: metadata of its first answered sample.
            settings: the settings of this command line; what the recorded run trusted is ignored.

        Returns:
            The scorers and metrics.

        Raises:
            UsageError: the record does not say enough.
        """


_METHODS = ("load", "names", "groups", "rules")
_registered: dict[str, Dialect] = {}


def register(name: str, dialect: Dialect) -> None:
    """Register a dialect for this process, as a plug-in does.

    Args:
        name: what its tasks' names begin with.
        dialect: a module, class or object with the methods of `Dialect`.

    Raises:
        ConfigurationError: the name is empty, has a colon, or belongs to another.
    """
    if not name or ":" in name or name in DIALECTS:
        raise ConfigurationError(
            f"'{name}' cannot name a dialect: it must be non-empty, without ':', and"
            f" not one of {', '.join(DIALECTS)}."
        )
    _registered[name] = _check_dialect(name, dialect)


def names() -> list[str]:
    """List all dialects, sorted."""
    return sorted({*_registered, *_all_dialects()})


def is_dialect(name: str) -> bool:
    """Return whether a dialect has that name."""
    return name in _registered or name in _all_dialects()


def dialect(name: str) -> Dialect:
    """Return the dialect of that name.

    Raises:
        UnknownName: there is none; the message has the closest names.
    """
    if name not in _registered:
        if name not in _all_dialects():
            hint = f"Known: {', '.join(names())}. {HOW_TO_LOAD}"
            raise UnknownName("dialect", name, names(), hint)
        _registered[name] = _load_dialect(name, _all_dialects()[name])
    return _registered[name]


def _load_dialect(name: str, target: str) -> Dialect:
    """Load the dialect of an entry point, "module:object".

    Raises:
        ConfigurationError: it cannot be imported, or lacks a method.
    """
    try:
        loaded = resolve_name(target)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"The dialect '{name}' ({target}) cannot be loaded: {error}."
        ) from error
    return _check_dialect(name, loaded)


def _check_dialect(name: str, dialect: Any) -> Dialect:
    """Check a dialect and return it; of a class, an instance.

    Raises:
        ConfigurationError: it lacks a method.
    """
    if isinstance(dialect, type):
        dialect = dialect()
    lacking = [
        method for method in _METHODS if not callable(getattr(dialect, method, None))
    ]
    if lacking:
        raise ConfigurationError(
            f"The dialect '{name}' has no method {' and no method '.join(lacking)}: it"
            f" is a module, a class or an object with {', '.join(_METHODS)}."
        )
    return cast("Dialect", dialect)


def named(task: str) -> tuple[Dialect, str] | None:
    """Split a task's name into its dialect and the rest; None for a task of ours."""
    head, colon, task_name = task.partition(":")
    return (dialect(head), task_name) if colon and is_dialect(head) else None


def dialect_of_file(keys: Collection[str]) -> tuple[str, str] | None:
    """Return the dialect whose task file has one of these keys, and the key; None if none has."""
    for name in DIALECTS:
        dialect_keys: Collection[str] = getattr(dialect(name), "keys", ())
        if key := next((key for key in keys if key in dialect_keys), None):
            return name, key
    return None


def dialect_of(definition: Mapping[str, Any]) -> Dialect | None:
    """Return the dialect of a task's definition.

    It is None for a task of ours, and for results that were only imported.
    """
    name = definition.get("dialect")
    return dialect(name) if isinstance(name, str) and is_dialect(name) else None


def check_used(
    settings: Mapping[str, Any], tasks: Sequence[Task], used: Collection[str]
) -> None:
    """Raise ConfigurationError for a dialect setting that applies to none of the tasks.

    `settings` are those in a configuration, `used` those that `load_tasks` reported as used.
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
