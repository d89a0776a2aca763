"""SEA-HELM's configuration: every `config.yaml` of a folder merged into one tree, and its `${a.b.c}` resolved over all of it.

The files are a stranger's: nothing outside the folder is read, YAML tags are refused, and references can neither go in circles nor
grow without bound.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.core.errors import ConfigurationError, TaskError
from evalwright.tasks.definitions import merged
from evalwright.tasks.yaml_files import MAX_DEPTH, MAX_NODES, kind_of, read_document, shown

FOLDER = "seahelm_tasks"
SEED = 1234
"""`--seed` of its command line where nothing is said."""

_CONFIG, _SETS, _CONSTANTS, _REASONING = (
    "config.yaml",
    "task_config.yaml",
    "constants.yaml",
    "reasoning_generation_config.yaml",
)
_MOST_FILES, _MOST_BYTES, _MOST_TEXT = 20_000, 8 << 20, 4_000_000
_MOST_COUNT = 10_000_000
"""Of tokens, shots and runs."""
_REFERENCE = re.compile(r"\$\{([^${}]*)\}")
_REQUIRED = ("competency", "metric_file", "metric_class", "metric")


@dataclass(frozen=True)
class Tree:
    """A folder's tasks. root: what paths in its files start from. tasks: by name, resolved; files: where each was written last.

    sets: by name, for each language a list of names or "all". groups: tasks by aggregation group.
    """

    root: Path
    tasks: Mapping[str, Mapping[str, Any]]
    files: Mapping[str, Path]
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
    return any(path.endswith(f"{os.sep}{_CONFIG}") for path, _, _ in _files(_place(root)))


def read_tree(root: Path) -> Tree:
    """The tree of a folder, read once for one state of its files. Raises TaskError with the file and the name."""
    return _read(root, _place(root), tuple(sorted(_files(_place(root)))))


def _files(place: Path) -> Iterator[tuple[str, int, int]]:
    """All configuration files: (path, size, time). Links are not followed, hidden folders are left out, as its own search does."""
    named = {_SETS, _CONSTANTS, _REASONING}
    count = 0
    for folder, folders, names in os.walk(place):
        folders[:] = [one for one in folders if not one.startswith(".")]
        for name in names:
            if name != _CONFIG and not (name in named and Path(folder) == place):
                continue
            path, count = Path(folder, name), count + 1
            try:
                if path.is_symlink() and not path.resolve().is_relative_to(place):
                    raise TaskError(
                        f"The task file '{shown(path)}' is a link out of its folder, so it is not read."
                    )
                status = path.stat()
            except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
                raise TaskError(f"The task file '{shown(path)}' cannot be read: {error}.") from None
            if status.st_size > _MOST_BYTES:
                raise TaskError(
                    f"The task file '{shown(path)}' has {status.st_size:,} bytes, more than the {_MOST_BYTES:,} that are read."
                )
            if count > _MOST_FILES:
                raise TaskError(f"The folder '{shown(place)}' has more than {_MOST_FILES:,} task files.")
            yield str(path), status.st_size, status.st_mtime_ns


@lru_cache(maxsize=4)
def _read(root: Path, place: Path, files: tuple[tuple[str, int, int], ...]) -> Tree:
    paths = [Path(path) for path, _, _ in files]
    whole: dict[str, Any] = {}
    origins: dict[str, Path] = {}
    for path in paths:
        if path.name == _CONFIG:
            given = read_document(path).value
            whole = merged(whole, given)
            origins.update(dict.fromkeys(given, path))
    if not whole:
        raise TaskError(f"The folder '{shown(place)}' has no {_CONFIG} with tasks of SEA-HELM.")
    resolver = _Resolver({**whole, "seed": SEED, "run_number": 0}, origins)
    tasks = {name: _checked(name, resolver.top(name), origins[name]) for name in whole}
    groups: dict[str, list[str]] = {}
    for name, task in tasks.items():
        if isinstance(group := task.get("aggregation_group"), str) and group:
            groups.setdefault(group, []).append(name)
    beside = {path.name: read_document(path).value for path in paths if path.name != _CONFIG}
    constants, reasoning = beside.get(_CONSTANTS, {}), beside.get(_REASONING, {})
    _check(constants, _IN_CONSTANTS, shown(place / _CONSTANTS))
    _check(reasoning, {"reasoning_generation_kwargs": _MAPPING}, shown(place / _REASONING))
    thinking = reasoning.get("reasoning_generation_kwargs") or {}
    _check(
        thinking, {"max_think_tokens": _COUNT}, f"{shown(place / _REASONING)}: `reasoning_generation_kwargs`"
    )
    return Tree(
        root,
        tasks,
        origins,
        _checked_sets(beside.get(_SETS, {}), place / _SETS),
        constants,
        thinking.get("max_think_tokens") or 20_000,
        groups,
    )


def _checked(name: str, task: Any, file: Path) -> Mapping[str, Any]:
    """A task's settings. Raises TaskError where they are not whole."""
    where = f"{shown(file)}: the task '{name}'"
    if not isinstance(task, Mapping):
        raise TaskError(f"{where} is {kind_of(task)}, not a mapping of settings.")
    for key in _REQUIRED:
        if not isinstance(task.get(key), str):
            raise TaskError(f"{where} has no text at `{key}`.")
    _check(task, _IN_TASKS, where)
    if task.get("dataloader_class") and not task.get("dataloader_file"):
        raise TaskError(f"{where} has a `dataloader_class` without its `dataloader_file`.")
    shots = task.get("fewshot_num_examples")
    for key, count in shots.items() if isinstance(shots, Mapping) else [("fewshot_num_examples", shots)]:
        _check({key: count}, {key: _COUNT}, where)
    languages = task.get("languages")
    if not isinstance(languages, Mapping) or not languages:
        raise TaskError(f"{where} has no mapping of `languages`.")
    for language, here in languages.items():
        template = here.get("prompt_template") if isinstance(here, Mapping) else None
        if not isinstance(template, Mapping):
            raise TaskError(f"{where} has no `prompt_template` for the language '{language}'.")
        if not isinstance(language, str):
            raise TaskError(f"{where} has {kind_of(language)} for a language: put it in quotation marks.")
        _check(here, {"max_tokens": _TOKENS, "labels": _LIST}, f"{where} ({language})")
        for key in ("preamble", "task_template", "answer_template", "answer_tag"):
            if not isinstance(template.get(key), str | None):
                raise TaskError(f"{where} ({language}) has {kind_of(template[key])} at `{key}`, not text.")
    return task


class _Kind(NamedTuple):
    """What a setting may be, beside null."""

    words: str
    fits: Callable[[Any], bool]


_TEXT = _Kind("text", lambda value: isinstance(value, str))
_MAPPING = _Kind("a mapping", lambda value: isinstance(value, Mapping))
_LIST = _Kind(
    "a list of texts",
    lambda value: isinstance(value, list) and value != [] and all(isinstance(one, str) for one in value),
)
_COUNT = _Kind(
    f"a whole number from 0 to {_MOST_COUNT:,}",
    lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_COUNT,
)
_TOKENS = _Kind(f"a whole number from 1 to {_MOST_COUNT:,}", lambda value: value != 0 and _COUNT.fits(value))
_IN_TASKS = {
    "metadata": _MAPPING, "labels": _LIST, "dataloader_file": _TEXT, "dataloader_class": _TEXT, "max_n_runs": _COUNT,
}  # fmt: skip
_NAMES = _Kind("a list of texts", lambda value: value == [] or _LIST.fits(value))
_IN_CONSTANTS = {
    "base_models_skip_tasks": _NAMES, "instruct_models_skip_tasks": _NAMES, "few_shot_stop_tokens": _NAMES,
    "base_num_in_context_examples": _COUNT, "instruct_num_in_context_examples": _COUNT,
}  # fmt: skip


def _check(given: Mapping[str, Any], kinds: Mapping[str, _Kind], where: str) -> None:
    """Raises TaskError where a setting is there and is nothing of its kind."""
    for key, kind in kinds.items():
        if (value := given.get(key)) is not None and not kind.fits(value):
            raise TaskError(f"{where} has {str(value)[:80]!r} at `{key}`, which is not {kind.words}.")


def _checked_sets(sets: Mapping[str, Any], file: Path) -> Mapping[str, Any]:
    for name, languages in sets.items():
        if not isinstance(languages, Mapping) or not all(
            each == "all" or (isinstance(each, list) and all(isinstance(one, str) for one in each))
            for each in languages.values()
        ):
            raise TaskError(
                f"{shown(file)}: the set '{name}' must have a list of tasks, or the word all, for each language."
            )
    return sets


class _Resolved(NamedTuple):
    """A value without references. size: its values and a share of its text, written out; depth: how deep it is nested."""

    value: Any
    size: int
    depth: int


class _Resolver:
    """Resolves references over the whole tree, each once. files: by task, for errors."""

    def __init__(self, whole: Mapping[str, Any], files: Mapping[str, Path]) -> None:
        self._whole = whole
        self._files = files
        self._done: dict[str, _Resolved] = {}
        self._open: list[str] = []
        self._task = ""
        self._total = 0

    def top(self, name: str) -> Any:
        """The value of a name at the top."""
        self._task = name
        found = self._value(self._whole[name])
        self._total += found.size
        if self._total > MAX_NODES:
            raise self._error(
                f"makes the folder's tasks larger than {MAX_NODES:,} values with its references written out"
            )
        return found.value

    def _error(self, what: str) -> TaskError:
        file = self._files.get(self._task)
        return TaskError(f"{f'{shown(file)}: ' if file else ''}the task '{self._task}' {what}.")

    def _value(self, node: Any) -> _Resolved:
        if isinstance(node, str):
            return self._text(node)
        if isinstance(node, dict):
            parts = {key: self._value(each) for key, each in node.items()}
            return self._sized({key: each.value for key, each in parts.items()}, parts.values())
        if isinstance(node, list):
            items = [self._value(each) for each in node]
            return self._sized([each.value for each in items], items)
        return _Resolved(node, 1, 0)

    def _sized(self, value: Any, parts: Any) -> _Resolved:
        size = 1 + sum(each.size for each in parts)
        depth = 1 + max((each.depth for each in parts), default=0)
        if size > MAX_NODES or depth > MAX_DEPTH:
            how = f"larger than {MAX_NODES:,} values" if size > MAX_NODES else "nested too deeply"
            raise self._error(f"is {how} with its references written out")
        return _Resolved(value, size, depth)

    def _text(self, text: str) -> _Resolved:
        if "${" not in text:
            return _Resolved(text, 1 + len(text) // 1000, 0)
        if whole := _REFERENCE.fullmatch(text):
            return self._reference(whole[1])
        pieces: list[str] = []
        length = 0
        for place, piece in enumerate(_REFERENCE.split(text)):
            found = piece if place % 2 == 0 else self._reference(piece).value
            if isinstance(found, dict | list):
                raise self._error(f"puts ${{{piece}}} inside of a text, and it is {kind_of(found)}")
            pieces.append(str(found))
            length += len(pieces[-1])
            if length > _MOST_TEXT:
                raise self._error("has a text that grows too long with its references written out")
        return _Resolved("".join(pieces), 1 + length // 1000, 0)

    def _reference(self, name: str) -> _Resolved:
        if name in self._done:
            return self._done[name]
        if name in self._open or len(self._open) > MAX_DEPTH:
            how = "refers to itself" if name in self._open else "refers through too many others"
            raise self._error(f"{how}: {' -> '.join([*self._open[-3:], name])}")
        self._open.append(name)
        node: Any = self._whole
        for key in name.split("."):
            if isinstance(node, str) and (inner := _REFERENCE.fullmatch(node)):
                node = self._reference(inner[1]).value
            if isinstance(node, list) and key.isdecimal() and int(key[:6]) < len(node):
                node = node[int(key[:6])]
            elif isinstance(node, Mapping) and key in node:
                node = node[key]
            else:
                raise self._error(f"refers to ${{{name[:200]}}}, which is not in the folder's files")
        found = self._value(node)
        self._open.pop()
        self._done[name] = found
        return found
