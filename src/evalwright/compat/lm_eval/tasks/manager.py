"""`TaskManager` and `get_task_dict`, for scripts that make them and hand them on to `simple_evaluate` or `evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from evalwright.compat.lm_eval.tasks.index import Index
from evalwright.compat.lm_eval.tasks.options import Options, installed_tasks


class TaskManager:
    """The names of tasks, groups and tags of some folders.

    include_path: one folder or several, which win over the installed package's; include_defaults: whether those count at all.
    metadata: values for tasks that make their data. verbosity is not used. Raises ConfigurationError where a folder does not exist.
    """

    def __init__(
        self,
        verbosity: str | None = None,
        include_path: str | Path | Sequence[str | Path] | None = None,
        include_defaults: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        several = [include_path] if isinstance(include_path, str | Path) else include_path or ()
        self.include_path = [Path(folder) for folder in several]
        self.include_defaults = include_defaults
        self.metadata = dict(metadata or {})
        roots = (*(installed_tasks() if include_defaults else ()), *self.include_path)
        self.task_index: Mapping[str, Any] = Index(Options(roots=roots).folders()) if roots else {}

    @property
    def all_tasks(self) -> list[str]:
        """All names, sorted."""
        return sorted(self.task_index)

    @property
    def all_groups(self) -> list[str]:
        """Those of groups."""
        return self._of("group")

    @property
    def all_subtasks(self) -> list[str]:
        """Those of single tasks."""
        return self._of("task", "python")

    @property
    def all_tags(self) -> list[str]:
        """Those of tags."""
        return self._of("tag")

    def match_tasks(self, task_list: Sequence[str]) -> list[str]:
        """The names that fit any of some patterns."""
        return [name for name in self.all_tasks if any(fnmatchcase(name, one) for one in task_list)]

    def _of(self, *kinds: str) -> list[str]:
        return [name for name in self.all_tasks if self.task_index[name].kind in kinds]


class TaskDict(dict[str, str]):
    """Names of tasks, each under itself, with the folders that they are in."""

    manager: TaskManager


def get_task_dict(
    task_name_list: str | Sequence[str], task_manager: TaskManager | None = None
) -> Mapping[str, str]:
    """What `evaluate` takes. Raises UnknownName; tasks are opened when they are evaluated."""
    names = [task_name_list] if isinstance(task_name_list, str) else task_name_list
    found = TaskDict((name, name) for name in names)
    found.manager = task_manager or TaskManager()
    for name in names:
        found.manager.task_index[name]
    return found
