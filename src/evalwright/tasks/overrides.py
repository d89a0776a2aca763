"""Settings put over a task's file from outside: by `-T key=value`, a suite file, or `load_task(overrides=...)`.

Keys nest or are dotted ("prompt.few_shot.count"). Scorers and metrics are lists in a file, and are reached by their names:
`scorers.consistency.threshold`. File names start from the folder that the person is in, not from that of the task's file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.core.errors import TaskError, UnknownName
from evalwright.tasks.definitions import merge, merged
from evalwright.tasks.names import SOURCES
from evalwright.tasks.yaml_files import Document, KeyPath, kind_of

_LISTS = ("scorers", "metrics")
_OF_SOURCES = (*SOURCES, "format", "key", "revision", "config", "split")


def with_overrides(document: Document, overrides: Mapping[str, Any], base: Path | None = None) -> Document:
    """The document with values put over it. base: the folder of relative file names in them; default: the document's.

    Raises UnknownName for a scorer or metric that the task does not have.
    """
    value = nested(overrides)
    for name in _LISTS:
        if isinstance(value.get(name), Mapping):
            value[name] = _with_options(document, name, value[name])
    _replace_sources(document.value, value)
    bases = {} if base is None else dict.fromkeys(_leaves(value), base)
    return merge(document, Document(value, "the overrides", document.base, bases=bases))


def _replace_sources(own: Any, given: dict[str, Any]) -> None:
    """Data from outside stand in place of the task's own: what says where those are is taken away."""
    for steps in (("dataset",), ("prompt", "few_shot", "dataset")):
        there: Any = own
        put: Any = given
        for step in steps:
            there = there.get(step) if isinstance(there, Mapping) else None
            put = put.get(step) if isinstance(put, dict) else None
        if isinstance(there, Mapping) and isinstance(put, dict) and any(name in put for name in SOURCES):
            put.update({name: None for name in _OF_SOURCES if name in there and name not in put})


def nested(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with dotted keys as mappings in mappings; of two for one key the later wins."""
    value: dict[str, Any] = {}
    for key, item in overrides.items():
        inner: Any = nested(item) if isinstance(item, Mapping) else item
        for step in reversed(str(key).split(".")):
            inner = {step: inner}
        value = merged(value, inner)
    return value


def _leaves(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    else:
        yield path


def _with_options(document: Document, key: str, given: Mapping[str, Any]) -> list[Any]:
    """The task's own list of scorers or metrics with options put over those that are named."""
    own = document.value.get(key)
    uses = list(own) if isinstance(own, list) else []
    names = [_name_of(use) for use in uses]
    for name, options in given.items():
        if name not in names:
            kind = key.removesuffix("s")
            hint = f"It has: {', '.join(names)}." if names else f"It names no {key}."
            raise UnknownName(f"{kind} of the task", name, names, hint)
        if not isinstance(options, Mapping):
            raise TaskError(
                f"'{key}.{name}' takes options, such as {key}.{name}.option=value, not {kind_of(options)}."
            )
        place = names.index(name)
        uses[place] = _changed(uses[place], options)
    return uses


def _name_of(use: Any) -> str:
    if isinstance(use, Mapping):
        return str(use.get("name") or use.get("use") or next(iter(use), ""))
    return str(use)


def _changed(use: Any, options: Mapping[str, Any]) -> Any:
    if not isinstance(use, Mapping):
        return {str(use): dict(options)}
    if "use" in use:
        return merged(use, options)
    name = next(iter(use))
    return {name: merged(use[name] or {}, options)}
