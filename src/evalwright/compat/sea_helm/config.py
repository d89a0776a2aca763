"""SEA-HELM's configuration: every `config.yaml` of a folder merged into one tree, and its `${a.b.c}` resolved over all of it.

The files are a stranger's: nothing outside the folder is read, YAML tags are refused, and references can neither go in circles nor
grow without bound. The tree is kept on disk for one state of the files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from evalwright.compat.indexes import State, kept
from evalwright.core.errors import ConfigurationError, TaskError
from evalwright.core.secrets import remember_within
from evalwright.tasks.yaml_files import MAX_DEPTH, MAX_NODES, kind_of, plain, read_document, shown

FOLDER = "seahelm_tasks"
SEED = 1234
"""`--seed` of its command line where nothing is said."""

_CONFIG = "config.yaml"
_SETS, _CONSTANTS, _REASONING = BESIDE = (
    "task_config.yaml", "constants.yaml", "reasoning_generation_config.yaml",
)  # fmt: skip
"""The files that stand beside the folders of tasks."""
_MOST_BYTES, _MOST_TEXT = 8 << 20, 4_000_000
_REFERENCE = re.compile(r"\$\{([^${}]*)\}")


@dataclass(frozen=True)
class Tree:
    """A folder's tasks. root: what paths in its files start from. tasks: by name, resolved; files: where each was written last.

    sets: by name, for each language a list of names or "all". groups: tasks by aggregation group.
    """

    root: Path
    tasks: Mapping[str, Mapping[str, Any]]
    files: Mapping[str, str]
    sets: Mapping[str, Mapping[str, Sequence[str] | str]]
    constants: Mapping[str, Any]
    thinking: int = 20_000
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def languages(self, task: str) -> Sequence[str]:
        """Those that a task is defined for."""
        return tuple(self.tasks[task]["languages"])


def root_of(folders: Sequence[Path]) -> Path:
    """The folder that paths in the files start from. Raises ConfigurationError."""
    if len(folders) != 1:
        raise ConfigurationError(
            "Name one folder of SEA-HELM's files with --task-root, the one that holds its folder seahelm_tasks"
            + (f"; {len(folders)} were given." if folders else ".")
        )
    root = Path(folders[0]).expanduser().resolve()
    if not root.is_dir():
        raise ConfigurationError(f"The task folder '{folders[0]}' does not exist.")
    inside = root.name == FOLDER and (root / _SETS).is_file()
    return root.parent if inside else root


def _place(root: Path) -> Path:
    return root / FOLDER if (root / FOLDER).is_dir() else root


def has_tasks(root: Path) -> bool:
    """Whether there is any task file in a folder."""
    return any(Path(path).name == _CONFIG for path, _, _ in _files(_place(root)))


def read_tree(root: Path) -> Tree:
    """The tree of a folder, read once for one state of its files. Raises TaskError with the file and the name."""
    return _read(root, tuple(sorted(_files(_place(root)))))


def _files(place: Path) -> Iterator[State]:
    """All configuration files. Links are not followed, hidden folders are left out, as its own search does."""
    for folder, folders, names in os.walk(place):
        folders[:] = [one for one in folders if not one.startswith(".")]
        wanted = {_CONFIG, *BESIDE} if Path(folder) == place else {_CONFIG}
        for path in (Path(folder, name) for name in wanted.intersection(names)):
            try:
                outside = path.is_symlink() and not path.resolve().is_relative_to(place)
                status = path.stat()
            except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
                raise TaskError(f"The task file '{shown(path)}' cannot be read: {error}.") from None
            if outside:
                raise TaskError(
                    f"The task file '{shown(path)}' is a link out of its folder, so it is not read."
                )
            if status.st_size > _MOST_BYTES:
                size = f"{status.st_size:,} bytes, more than the {_MOST_BYTES:,} that are read"
                raise TaskError(f"The task file '{shown(path)}' has {size}.")
            yield str(path), status.st_size, status.st_mtime_ns


@lru_cache(maxsize=4)
def _read(root: Path, files: tuple[State, ...]) -> Tree:
    return Tree(root, **kept("sea-helm", root, files, lambda: _made(root, [path for path, *_ in files])))


def _made(root: Path, paths: Sequence[str]) -> dict[str, Any]:
    """What a Tree has beside its root, as plain values."""
    from evalwright.compat.sea_helm import entries
    from evalwright.tasks.definitions import merged

    whole: dict[str, Any] = {}
    files: dict[str, str] = {}
    beside: dict[str, Any] = {name: {} for name in BESIDE}
    for path in map(Path, paths):
        given = read_document(path).value
        if path.name == _CONFIG:
            whole = merged(whole, given)
            files |= dict.fromkeys(given, str(path))
        else:
            entries.check(entries.BESIDE[path.name], given, shown(path))
            beside[path.name] = given
    if not whole:
        raise TaskError(f"The folder '{shown(_place(root))}' has no {_CONFIG} with tasks of SEA-HELM.")
    tasks = plain(_resolved(whole, files))
    entries.check(entries.TASKS, tasks, {name: shown(Path(path)) for name, path in files.items()})
    remember_within(tasks)  # a key of a judge that stands in a file is in no file of ours
    groups: dict[str, list[str]] = {}
    for name, task in tasks.items():
        if isinstance(group := task.get("aggregation_group"), str) and group:
            groups.setdefault(group, []).append(name)
    thinking = (beside[_REASONING].get("reasoning_generation_kwargs") or {}).get("max_think_tokens")
    return {
        "tasks": tasks, "files": files, "sets": beside[_SETS], "constants": plain(beside[_CONSTANTS]),
        "thinking": thinking or 20_000, "groups": groups,
    }  # fmt: skip


def _resolved(whole: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """The tasks without references. Raises TaskError naming the file and the task."""
    resolver = _Resolver({**whole, "seed": SEED, "run_number": 0})
    tasks: dict[str, Any] = {}
    total = 0
    for name in whole:
        try:
            tasks[name] = resolver.value(whole[name])
            size, depth = resolver.measured(tasks[name])
            total += size
            if depth > MAX_DEPTH:
                raise RecursionError
            if total > MAX_NODES:
                raise ValueError(f"is larger than {MAX_NODES:,} values with its references written out")
        except (ValueError, RecursionError) as error:
            deep = "is nested too deeply with its references written out"
            what = deep if isinstance(error, RecursionError) else error
            raise TaskError(f"{shown(Path(files[name]))}: the task '{name}' {what}.") from None
    return tasks


class _Resolver:
    """Resolves references over the whole tree, each once: what several refer to is one object. Raises ValueError."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self._whole = whole
        self._done: dict[str, Any] = {}
        self._open: list[str] = []
        self._sizes: dict[int, tuple[int, int]] = {}

    def value(self, node: Any) -> Any:
        """A node without references."""
        if isinstance(node, dict):
            return {key: self.value(each) for key, each in node.items()}
        if isinstance(node, list):
            return [self.value(each) for each in node]
        if not isinstance(node, str) or "${" not in node:
            return node
        if whole := _REFERENCE.fullmatch(node):
            return self._reference(whole[1])
        parts = [
            self._in_text(part) if place % 2 else part for place, part in enumerate(_REFERENCE.split(node))
        ]
        if sum(map(len, parts)) > _MOST_TEXT:
            raise ValueError("has a text that grows too long with its references written out")
        return "".join(parts)

    def measured(self, value: Any) -> tuple[int, int]:
        """How many values it is written out, long texts counted as several, and how deep they are nested."""
        if not isinstance(value, dict | list):
            return 1 + (len(value) // 1000 if isinstance(value, str) else 0), 0
        if id(value) not in self._sizes:
            parts = [self.measured(one) for one in (value.values() if isinstance(value, dict) else value)]
            depth = max((deep for _, deep in parts), default=0)
            self._sizes[id(value)] = 1 + sum(size for size, _ in parts), 1 + depth
        return self._sizes[id(value)]

    def _in_text(self, name: str) -> str:
        found = self._reference(name)
        if isinstance(found, dict | list):
            raise ValueError(f"puts ${{{name}}} inside of a text, and it is {kind_of(found)}")
        return str(found)

    def _reference(self, name: str) -> Any:
        if name not in self._done:
            if name in self._open or len(self._open) > MAX_DEPTH:
                how = "refers to itself" if name in self._open else "refers through too many others"
                raise ValueError(f"{how}: {' -> '.join([*self._open[-3:], name])}")
            self._open.append(name)
            self._done[name] = self.value(self._at(name))
            self._open.pop()
        return self._done[name]

    def _at(self, name: str) -> Any:
        """The node of a dotted name."""
        node: Any = self._whole
        for key in name.split("."):
            if isinstance(node, str) and (inner := _REFERENCE.fullmatch(node)):
                node = self._reference(inner[1])
            if isinstance(node, list) and key.isdecimal() and int(key[:6]) < len(node):
                node = node[int(key[:6])]
            elif isinstance(node, Mapping) and key in node:
                node = node[key]
            else:
                raise ValueError(f"refers to ${{{name[:200]}}}, which is not in the folder's files")
        return node
