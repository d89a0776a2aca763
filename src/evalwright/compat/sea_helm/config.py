"""SEA-HELM's configuration: every `config.yaml` of a folder, checked and merged into one tree.

The files are a stranger's: nothing outside the folder is read, YAML tags are refused, and
references can neither go in circles nor grow without bound. The tree is kept on disk for one state
of the files. Whatever is not named here may be anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, create_model

from evalwright.compat.indexes import State, cached_index
from evalwright.compat.sea_helm.folder_files import shown_path
from evalwright.compat.sea_helm.sea_task import plain
from evalwright.extend import (
    ConfigurationError,
    TaskError,
    first_mistake,
    read_yaml,
    remember_secrets,
)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping over another, key by key all the way down."""
    combined = dict(base)
    for key, value in over.items():
        below = combined.get(key)
        are_mappings = isinstance(below, Mapping) and isinstance(value, Mapping)
        combined[key] = merged(below, value) if are_mappings else value  # type: ignore[arg-type]
    return combined


# -- what the files must hold ----------------------------------------------------------

_MOST = 10_000_000
_COUNT: Any = Annotated[int, Field(ge=0, le=_MOST)]
_TOKENS: Any = Annotated[int, Field(ge=1, le=_MOST)]
_TEXTS: Any = Annotated[list[str], Field(min_length=1)]


def _settings(**kinds: Any) -> Any:
    """A mapping with these keys among others; one that may be null may be left out."""
    fields = {
        name: (kind, None if type(None) in get_args(kind) else ...)
        for name, kind in kinds.items()
    }
    strict = ConfigDict(strict=True)
    return create_model("Settings", __config__=strict, **fields)  # type: ignore[call-overload]


_TEMPLATE = ("preamble", "task_template", "answer_template", "answer_tag")
_LANGUAGE: Any = _settings(
    prompt_template=_settings(**dict.fromkeys(_TEMPLATE, str | None)),
    max_tokens=_TOKENS | None,
    labels=_TEXTS | None,
)
_TASK: Any = _settings(
    competency=str,
    metric=str,
    metric_file=str,
    metric_class=str,
    languages=Annotated[dict[str, _LANGUAGE], Field(min_length=1)],
    metadata=dict[str, Any] | None,
    labels=_TEXTS | None,
    dataloader_file=str | None,
    dataloader_class=str | None,
    max_n_runs=_COUNT | None,
    fewshot_num_examples=dict[str, _COUNT | None] | _COUNT | None,
)
TASKS: TypeAdapter[Any] = TypeAdapter(dict[str, _TASK])
_SETS = "task_config.yaml"
_CONSTANTS = "constants.yaml"
_REASONING = "reasoning_generation_config.yaml"
_BESIDE: Mapping[str, TypeAdapter[Any]] = {
    _SETS: TypeAdapter(dict[str, dict[str, list[str] | Literal["all"]]]),
    _CONSTANTS: TypeAdapter(
        _settings(
            base_models_skip_tasks=list[str] | None,
            instruct_models_skip_tasks=list[str] | None,
            few_shot_stop_tokens=list[str] | None,
            base_num_in_context_examples=_COUNT | None,
            instruct_num_in_context_examples=_COUNT | None,
        )
    ),
    _REASONING: TypeAdapter(
        _settings(reasoning_generation_kwargs=dict[str, Any] | None)
    ),
}
"""The files that stand beside the folders of tasks."""


def check(kind: TypeAdapter[Any], value: Any, files: Mapping[str, str] | str) -> None:
    """Raise TaskError for the first thing that is wrong. files: where `value`, or what each of its
    keys has, was read.
    """
    try:
        kind.validate_python(value)
    except ValidationError as error:
        name = str(next(iter(error.errors(include_url=False)[0]["loc"]), ""))
        file = files if isinstance(files, str) else files[name]
        raise TaskError(f"{file}: {first_mistake(error, value)}") from None


# -- the tree --------------------------------------------------------------------------

FOLDER = "seahelm_tasks"
SEED = 1234
"""`--seed` of its command line where nothing is said."""

_CONFIG = "config.yaml"
_MOST_BYTES = 8 << 20
_MOST_TEXT = 4_000_000
_MOST_DEEP = 100
_MOST_VALUES = 2_000_000
"""Of all tasks with their references written out."""
_REFERENCE = re.compile(r"\$\{([^${}]*)\}")


@dataclass(frozen=True)
class Tree:
    """A folder's tasks. root: what paths in its files start from. tasks: by name, resolved; files:
    where each was written last.

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


def is_name(name: str) -> bool:
    """Whether files and commands can be named so: printable, of one part."""
    return name not in ("", ".", "..") and name.isprintable() and "/" not in name


def root_of(folders: Sequence[Path]) -> Path:
    """The folder that paths in the files start from. Raises ConfigurationError."""
    if len(folders) != 1:
        raise ConfigurationError(
            "Name one folder of SEA-HELM's files with --task-root, the one that holds"
            " its folder seahelm_tasks"
            + (f"; {len(folders)} were given." if folders else ".")
        )
    root = Path(folders[0]).expanduser().resolve()
    if not root.is_dir():
        raise ConfigurationError(
            f"The task folder '{folders[0]}' does not exist. It is a clone of SEA-HELM: git"
            f" clone --depth 1 https://github.com/aisingapore/SEA-HELM {folders[0]}"
        )
    inside = root.name == FOLDER and (root / _SETS).is_file()
    return root.parent if inside else root


def tree_of(folders: Sequence[str | Path]) -> Tree:
    """The tree of the one folder that is named."""
    return read_tree(root_of([Path(folder) for folder in folders]))


def _place(root: Path) -> Path:
    return root / FOLDER if (root / FOLDER).is_dir() else root


def read_tree(root: Path) -> Tree:
    """The tree of a folder, read once for one state of its files.

    Raises TaskError with the file and the name.
    """
    return _read(root, tuple(sorted(_files(_place(root)))))


def has_tasks(root: Path) -> bool:
    """Whether a folder has tasks of SEA-HELM at all."""
    return any(Path(path).name == _CONFIG for path, _, _ in _files(_place(root)))


def _files(place: Path) -> Iterator[State]:
    """All configuration files.

    Links are not followed, hidden folders are left out, as its own search does.
    """
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if not name.startswith(".")]
        config_names = {_CONFIG, *_BESIDE} if Path(folder) == place else {_CONFIG}
        for path in (Path(folder, name) for name in config_names.intersection(names)):
            wrong = ""
            try:
                if path.is_symlink() and not path.resolve().is_relative_to(place):
                    wrong = "is a link out of its folder, so it is not read"
                elif (status := path.stat()).st_size > _MOST_BYTES:
                    wrong = (
                        f"has {status.st_size:,} bytes, more than the {_MOST_BYTES:,}"
                        " that are read"
                    )
            except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
                wrong = f"cannot be read: {error}"
            if wrong:
                raise TaskError(f"The task file '{shown_path(path)}' {wrong}.")
            yield str(path), status.st_size, status.st_mtime_ns


@lru_cache(maxsize=4)
def _read(root: Path, files: tuple[State, ...]) -> Tree:
    return Tree(
        root,
        **cached_index(
            "sea-helm",
            root,
            files,
            lambda: _read_files(root, [path for path, *_ in files]),
        ),
    )


def _read_files(root: Path, paths: Sequence[str]) -> dict[str, Any]:
    """What a Tree has beside its root, as plain values."""
    all_tasks: dict[str, Any] = {}
    files: dict[str, str] = {}
    beside: dict[str, Any] = {name: {} for name in _BESIDE}
    for path in map(Path, paths):
        content = read_yaml(path).value
        if path.name == _CONFIG:
            all_tasks = merged(all_tasks, content)
            files |= dict.fromkeys(content, str(path))
        else:
            check(_BESIDE[path.name], content, shown_path(path))
            beside[path.name] = content
    if not all_tasks:
        raise TaskError(
            f"The folder '{shown_path(_place(root))}' has no {_CONFIG} with tasks of"
            " SEA-HELM."
        )
    tasks = plain(_resolved(all_tasks, files))
    check(TASKS, tasks, {name: shown_path(Path(path)) for name, path in files.items()})
    for name, task in tasks.items():
        if wrong := [
            language_or_name
            for language_or_name in (name, *task["languages"])
            if not is_name(language_or_name)
        ]:
            raise TaskError(
                f"{shown_path(Path(files[name]))}: {wrong[0][:200]!r} is no name of a task"
                " or a language."
            )
    remember_secrets(
        tasks
    )  # a key of a judge that stands in a file is in no file of ours
    groups: dict[str, list[str]] = {}
    for name, task in tasks.items():
        if isinstance(group := task.get("aggregation_group"), str) and group:
            groups.setdefault(group, []).append(name)
    thinking = (beside[_REASONING].get("reasoning_generation_kwargs") or {}).get(
        "max_think_tokens"
    )
    return {
        "tasks": tasks,
        "files": files,
        "sets": beside[_SETS],
        "constants": plain(beside[_CONSTANTS]),
        "thinking": thinking or 20_000,
        "groups": groups,
    }


def _resolved(all_tasks: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """The tasks without references. Raises TaskError naming the file and the task."""
    resolver = _Resolver({**all_tasks, "seed": SEED, "run_number": 0})
    sizes: dict[int, tuple[int, int]] = {}

    def measured(value: Any) -> tuple[int, int]:
        """How many values it is written out, long texts counted as several, and how deep they are
        nested.
        """
        if not isinstance(value, dict | list):
            return 1 + (len(value) // 1000 if isinstance(value, str) else 0), 0
        if id(value) not in sizes:
            parts = [
                measured(member)
                for member in (value.values() if isinstance(value, dict) else value)
            ]
            depth = max((deep for _, deep in parts), default=0)
            sizes[id(value)] = 1 + sum(size for size, _ in parts), 1 + depth
        return sizes[id(value)]

    tasks = dict[str, Any]()
    total = 0
    for name in all_tasks:
        try:
            tasks[name] = resolver.value(all_tasks[name])
            size, depth = measured(tasks[name])
            total += size
            if depth > _MOST_DEEP:
                raise RecursionError
            if total > _MOST_VALUES:
                raise ValueError(
                    f"is larger than {_MOST_VALUES:,} values with its references"
                    " written out"
                )
        except (ValueError, RecursionError) as error:
            deep = "is nested too deeply with its references written out"
            reason = deep if isinstance(error, RecursionError) else error
            raise TaskError(
                f"{shown_path(Path(files[name]))}: the task '{name}' {reason}."
            ) from None
    return tasks


class _Resolver:
    """Resolves references over the whole tree, each once: what several refer to is one object.

    Raises ValueError.
    """

    def __init__(self, all_tasks: Mapping[str, Any]) -> None:
        self._whole = all_tasks
        self._done = dict[str, Any]()
        self._open = list[str]()

    def value(self, node: Any) -> Any:
        """A node without references."""
        if isinstance(node, dict):
            return {key: self.value(child) for key, child in node.items()}
        if isinstance(node, list):
            return [self.value(child) for child in node]
        if not isinstance(node, str) or "${" not in node:
            return node
        if reference := _REFERENCE.fullmatch(node):
            return self._named(reference[1])
        texts = _REFERENCE.split(node)  # texts and names in turn
        for place, name in list(enumerate(texts))[1::2]:
            if isinstance(referenced := self._named(name), dict | list):
                kind = "a list" if isinstance(referenced, list) else "a mapping"
                raise ValueError(f"puts ${{{name}}} inside of a text, and it is {kind}")
            texts[place] = str(referenced)
        if sum(map(len, texts)) > _MOST_TEXT:
            raise ValueError(
                "has a text that grows too long with its references written out"
            )
        return "".join(texts)

    def _named(self, name: str) -> Any:
        """What a dotted name refers to."""
        if name in self._done:
            return self._done[name]
        if name in self._open or len(self._open) > _MOST_DEEP:
            how = (
                "refers to itself"
                if name in self._open
                else "refers through too many others"
            )
            raise ValueError(f"{how}: {' -> '.join([*self._open[-3:], name])}")
        self._open.append(name)
        node: Any = self._whole
        for key in name.split("."):
            if isinstance(node, str) and (inner := _REFERENCE.fullmatch(node)):
                node = self._named(inner[1])
            if isinstance(node, list) and key.isdecimal() and int(key[:6]) < len(node):
                node = node[int(key[:6])]
            elif isinstance(node, Mapping) and key in node:
                node = node[key]
            else:
                raise ValueError(
                    f"refers to ${{{name[:200]}}}, which is not in the folder's files"
                )
        self._done[name] = self.value(node)
        self._open.pop()
        return self._done[name]
