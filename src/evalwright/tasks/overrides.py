"""Overrides of a task's file: by `-T key=value`, a suite file, or `load_task(overrides=...)`.

Keys nest or are dotted ("prompt.few_shot.count"). Scorers and metrics are lists in a file, and are
reached by their names: `scorers.consistency.threshold`. File names start from the user's working
folder, not from the folder of the task's file.

An override changes the values that it names and leaves the others, even if the file gives a whole
mapping as one template (`answer: "{{ {'mode': mode, ...} }}"`): it is applied to each task of
`for_each` after its templates are rendered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import TaskError, UnknownName
from evalwright.tasks.definitions import filled, merge, merged
from evalwright.tasks.names import SOURCES
from evalwright.tasks.yaml_files import Document, KeyPath, kind_of

_LISTS = ("scorers", "metrics")
_FORMS = ("text", "chat")
_OF_SOURCES = (*SOURCES, "format", "key", "revision", "config", "split")


BEFORE_FOR_EACH = ("for_each", "task")
"""Keys that decide which tasks a file has."""


def with_overrides(
    document: Document,
    overrides: Mapping[str, Any],
    base: Path | None = None,
    variables: Mapping[str, Any] | None = None,
) -> Document:
    """Return the document with overridden values.

    Args:
        document: a task's definition, with the templates over `for_each` rendered.
        overrides: the values, by nested or dotted keys.
        base: the folder of relative file names in them; by default the document's.
        variables: the task's values of `for_each`, for templates in the overrides.

    Raises:
        UnknownName: the task has no scorer or metric of that name.
    """
    values = nested(overrides)
    if variables:
        values = filled(_document_of(values, document, base), variables).value
    for name in _LISTS:
        if isinstance(values.get(name), Mapping):
            values[name] = _with_options(document, name, values[name])
    document = replace(document, value=_long_dataset(document.value, values))
    _replace_sources(document.value, values)
    document = replace(document, value=_without_forms(document.value, values))
    return merge(document, _document_of(values, document, base))


def _document_of(
    values: dict[str, Any], document: Document, base: Path | None
) -> Document:
    bases = {} if base is None else dict.fromkeys(_leaves(values), base)
    return Document(values, "the overrides", document.base, bases=bases)


def _long_dataset(
    task_values: dict[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Expand the short form `dataset: FILE` if an override changes another key of the dataset."""
    if isinstance(task_values.get("dataset"), str) and isinstance(
        values.get("dataset"), Mapping
    ):
        return {**task_values, "dataset": {"path": task_values["dataset"]}}
    return task_values


def _without_forms(
    task_values: dict[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Remove from `answer.text` and `answer.chat` the settings that an override changes."""
    answer = task_values.get("answer")
    changed = values.get("answer")
    if not isinstance(answer, Mapping) or not isinstance(changed, Mapping):
        return task_values
    remaining = dict(answer)
    for form in _FORMS:
        if isinstance(answer.get(form), Mapping):
            remaining[form] = {
                key: setting
                for key, setting in answer[form].items()
                if key not in changed
            }
    return {**task_values, "answer": remaining}


def _replace_sources(task_values: Any, values: dict[str, Any]) -> None:
    """Remove the source of the task's own data if an override gives another source."""
    for steps in (("dataset",), ("prompt", "few_shot", "dataset")):
        there: Any = task_values
        put: Any = values
        for step in steps:
            there = there.get(step) if isinstance(there, Mapping) else None
            put = put.get(step) if isinstance(put, dict) else None
        if (
            isinstance(there, Mapping)
            and isinstance(put, dict)
            and any(name in put for name in SOURCES)
        ):
            put.update(
                {
                    name: None
                    for name in _OF_SOURCES
                    if name in there and name not in put
                }
            )


def nested(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Turn dotted keys into nested mappings; of two values for one key the later counts."""
    value: dict[str, Any] = {}
    for key, setting in overrides.items():
        inner: Any = nested(setting) if isinstance(setting, Mapping) else setting
        for step in reversed(str(key).split(".")):
            inner = {step: inner}
        value = merged(value, inner)
    return value


def _leaves(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    if isinstance(value, Mapping) and value:
        for key, setting in value.items():
            yield from _leaves(setting, (*path, key))
    else:
        yield path


def _with_options(
    document: Document, key: str, options_by_name: Mapping[str, Any]
) -> list[Any]:
    """Return the task's list of scorers or metrics with options overridden by name."""
    listed = document.value.get(key)
    uses = list(listed) if isinstance(listed, list) else []
    names = [_name_of(use) for use in uses]
    for name, options in options_by_name.items():
        if name not in names:
            noun = key.removesuffix("s")
            hint = f"It has: {', '.join(names)}." if names else f"It names no {key}."
            raise UnknownName(f"{noun} of the task", name, names, hint)
        if not isinstance(options, Mapping):
            raise TaskError(
                f"'{key}.{name}' takes options, such as {key}.{name}.option=value, not"
                f" {kind_of(options)}."
            )
        position = names.index(name)
        uses[position] = _changed(uses[position], options)
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
