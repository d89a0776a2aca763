"""Indexes the tasks, groups and tags of a folder of task files; and `TaskManager`, for scripts.

The index is cached under `$EVALWRIGHT_HOME/lm-eval` for one state of all files (path, size, time).
Reading it imports no yaml.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from evalwright.compat.indexes import State, cached_index, stamp
from evalwright.compat.lm_eval.tasks.options import (
    DIALECT,
    Options,
    as_paths,
    installed_tasks,
)
from evalwright.extend import ListedTask, TaskError, UnknownName

_SKIPPED_FOLDERS = {"__pycache__", ".ipynb_checkpoints"}


class Index(Mapping[str, ListedTask]):
    """The names in one or more folders; of equal names the later folder's wins.

    problems: files that define nothing or cannot be read, with the reason.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._entries: dict[str, ListedTask] = {}
        self.problems: dict[str, str] = {}
        for folder in folders:
            entries, problems = _read_folder_index(folder)
            self._entries.update((listed.name, listed) for listed in entries)
            self.problems.update(problems)

    def __getitem__(self, name: str) -> ListedTask:
        """Return what a name stands for. Raises UnknownName with the closest names."""
        try:
            return self._entries[name]
        except KeyError:
            hint = f"`evalwright tasks list --dialect {DIALECT}` shows all of them."
            # A file that is called as the task is wanted comes first.
            problems = sorted(
                self.problems.items(), key=lambda problem: Path(problem[0]).stem != name
            )
            if unread := [text for _, text in problems if "names no task" not in text]:
                suffix = f" (and {len(unread) - 1} more files)" if unread[1:] else ""
                hint += f" Not used: {unread[0]}{suffix}"
            raise UnknownName("lm-eval task", name, self._entries, hint) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        return len(self._entries)


def _read_folder_index(folder: Path) -> tuple[list[ListedTask], dict[str, str]]:
    files = sorted(_yaml_files(str(folder)))
    index = cached_index(
        DIALECT, folder, files, lambda: _read(folder, [path for path, *_ in files])
    )
    entries = [
        ListedTask(name, kind, path, tuple(members))
        for name, kind, path, members in index["entries"]
    ]
    return entries, dict(index["problems"])


def _yaml_files(folder: str) -> Iterator[State]:
    """Yield (path, size, time) of all files below, including those without a suffix.

    Links out of the folder and links to folders are skipped: they could lead through a whole disk.
    """
    stack = [folder]
    while stack:
        try:
            children = list(os.scandir(stack.pop()))
        except OSError:
            continue
        for child in children:
            with suppress(OSError):
                if child.is_symlink() and (
                    child.is_dir()
                    or not Path(child.path).resolve().is_relative_to(folder)
                ):
                    continue
                if child.is_dir():
                    if child.name not in _SKIPPED_FOLDERS:
                        stack.append(child.path)
                elif child.name.endswith("yaml"):
                    status = child.stat()
                    yield child.path, status.st_size, status.st_mtime_ns


def _read(folder: Path, paths: Sequence[str]) -> dict[str, Any]:
    from evalwright.compat.lm_eval.tasks.task_yaml import Files

    files = Files()
    entries: dict[str, ListedTask] = {}
    tags: dict[str, set[str]] = {}
    problems: dict[str, str] = {}
    for path in paths:
        if not path.endswith(".yaml"):
            continue
        try:
            _register(files.read(Path(path)), path, entries, tags)
        except TaskError as error:
            problems[path] = str(error)
    for tag, members in tags.items():
        entries.setdefault(tag, ListedTask(tag, "tag", members=tuple(sorted(members))))
    inside = set(paths)
    outside = {
        str(read_path): stamp(str(read_path))
        for read_path in files.used()
        if str(read_path) not in inside
    }
    rows = [
        [listed.name, listed.kind, listed.path, listed.members]
        for listed in entries.values()
    ]
    return {"outside": outside, "entries": rows, "problems": problems}


def names(roots: Sequence[Path]) -> Sequence[ListedTask]:
    """List the tasks, groups, tags and classes of some folders."""
    return list(Index(Options(roots=tuple(roots)).folders()).values())


def kind_and_name(config: Mapping[str, Any]) -> tuple[str, str | None]:
    """The kind and name of what a task file defines."""
    kind = "group" if "group" in config else "task"
    if "class" in config:
        kind = "python"
    name = config.get("group" if kind == "group" else "task")
    return kind, name if isinstance(name, str) else None


def _register(
    config: Mapping[str, Any],
    path: str,
    entries: dict[str, ListedTask],
    tags: dict[str, set[str]],
) -> None:
    kind, name = kind_and_name(config)
    if name is None:
        raise TaskError(
            f"{path}: the file names no task and no group; other files include it."
        )
    if name in entries:
        raise TaskError(
            f"{path}: the name '{name}' is already used by {entries[name].path}; this"
            " file is not used."
        )
    entries[name] = ListedTask(name, kind, path)
    if kind != "group":
        tag = config.get("tag") or ()
        for tag_name in [tag] if isinstance(tag, str) else tag:
            tags.setdefault(str(tag_name), set()).add(name)


class TaskManager:
    """The names of tasks, groups and tags of some folders.

    Args:
        verbosity: ignored.
        include_path: one folder or several; they override the installed package's tasks.
        include_defaults: also use the installed package's tasks.
        metadata: values for tasks that generate their data.

    Raises:
        ConfigurationError: a folder does not exist.
    """

    def __init__(
        self,
        verbosity: str | None = None,
        include_path: str | Path | Sequence[str | Path] | None = None,
        include_defaults: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.include_path = list(as_paths(include_path))
        self.include_defaults = include_defaults
        self.metadata = dict(metadata or {})
        roots = (*(installed_tasks() if include_defaults else ()), *self.include_path)
        self.task_index: Mapping[str, Any] = (
            Index(Options(roots=roots).folders()) if roots else {}
        )

    @property
    def all_tasks(self) -> list[str]:
        """All names, sorted."""
        return sorted(self.task_index)

    @property
    def all_groups(self) -> list[str]:
        """Names of groups."""
        return self._names_of_kind("group")

    @property
    def all_subtasks(self) -> list[str]:
        """Names of single tasks."""
        return self._names_of_kind("task", "python")

    @property
    def all_tags(self) -> list[str]:
        """Names of tags."""
        return self._names_of_kind("tag")

    def match_tasks(self, task_list: Sequence[str]) -> list[str]:
        """The names that match any of some patterns."""
        return [
            name
            for name in self.all_tasks
            if any(fnmatchcase(name, pattern) for pattern in task_list)
        ]

    def _names_of_kind(self, *kinds: str) -> list[str]:
        return [name for name in self.all_tasks if self.task_index[name].kind in kinds]


class TaskDict(dict[str, str]):
    """Task names, each mapped to itself, with the TaskManager of their folders."""

    manager: TaskManager


def get_task_dict(
    task_name_list: str | Sequence[str], task_manager: TaskManager | None = None
) -> Mapping[str, str]:
    """Select tasks for `evaluate`. Raises UnknownName; tasks are opened when they are evaluated."""
    names = [task_name_list] if isinstance(task_name_list, str) else task_name_list
    task_dict = TaskDict((name, name) for name in names)
    task_dict.manager = task_manager or TaskManager()
    for name in names:
        task_dict.manager.task_index[name]
    return task_dict
