"""Validates a document against the schema; errors are one sentence with file and line."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import (
    ConfigurationError,
    TaskError,
    closest,
    listed,
)
from evalwright.tasks.schema import FILE_KEYS, PARTS, Drawing, TaskFile
from evalwright.tasks.yaml_files import Document, KeyPath, kind_of

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

MIN_LIKENESS_ELSEWHERE = 0.75
"""How like a key of another part must be to be named, from 0 to 1."""
_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a mapping"),
}


def validated(document: Document) -> TaskFile:
    """Return the document as a TaskFile.

    Raises:
        TaskError: its first mistake, in the order of the file's lines.
    """
    from pydantic import ValidationError

    try:
        return TaskFile.model_validate(document.value)
    except ValidationError as error:
        raise _error(document, error) from None


def first_mistake(error: ValidationError, value: Any) -> str:
    """What is first wrong with a value.

    Args:
        error: pydantic's, of any model.
        value: what was validated.

    Returns:
        A sentence that names the place in the value, and what may have been meant.
    """
    first = error.errors(include_url=False)[0]
    return _message(first, _path(first, value))


def checked_sampling(settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Settings of how text is drawn, checked as those of a task file's `answer`.

    Args:
        settings: fields of `Sampling` with their values.
        where: what has them, for errors.

    Returns:
        The settings.

    Raises:
        ConfigurationError: a setting that there is not, or a value that it cannot have.
    """
    from pydantic import ValidationError

    try:
        drawn = Drawing.model_validate(dict(settings))
    except ValidationError as error:
        raise ConfigurationError(f"{where}: {first_mistake(error, settings)}") from None
    return drawn.model_dump(include=set(settings))


def _error(document: Document, error: ValidationError) -> TaskError:
    mistakes = error.errors(include_url=False)

    def order(details: ErrorDetails) -> tuple[int, int]:
        place = document.place(_path(details, document.value))
        # A misspelt key is often why another is missing, so it comes first.
        return (
            0 if details["type"] == "extra_forbidden" else 1,
            place.line if place else 0,
        )

    first = min(mistakes, key=order)
    path = _path(first, document.value)
    return document.error(path, _message(first, path))


def _path(details: ErrorDetails, value: Any) -> KeyPath:
    """Return the error's location, without pydantic's names for the branches of a union."""
    steps: list[str | int] = []
    missing = details["type"] in ("missing", "extra_forbidden")
    for count, step in enumerate(details["loc"], 1):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            if not (missing and count == len(details["loc"])):
                continue
        steps.append(step)
    return tuple(steps)


def _message(details: ErrorDetails, path: KeyPath) -> str:
    kind = details["type"]
    name = _dotted(path)
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "missing":
        return f"the key `{name}` is missing."
    if kind == "value_error":
        return f"{details['ctx']['error']}."
    if kind in _KINDS:
        quoted = kind == "string_type" and isinstance(
            details["input"], bool | type(None)
        )
        hint = " (put quotes around it to make it text)" if quoted else ""
        return (
            f"`{name}` must be {_KINDS[kind]}, not {kind_of(details['input'])}{hint}."
        )
    if kind == "literal_error":
        wanted = str(details["ctx"]["expected"]).replace("'", "")
        near = closest(str(details["input"]), wanted.replace(" or ", ", ").split(", "))
        hint = f" Did you mean {near[0]}?" if near else ""
        return f"`{name}` must be {wanted}, not '{details['input']}'.{hint}"
    message = details["msg"].replace("Input should be", "must be")
    return f"`{name}` {message[0].lower()}{message[1:]}, not {details['input']!r}."


def _unknown_key(path: KeyPath) -> str:
    key = str(path[-1])
    part = tuple(step for step in path[:-1] if isinstance(step, str))
    model = PARTS.get(part)
    known_keys = [*(model.model_fields if model else ()), *(() if part else FILE_KEYS)]
    where = f" in `{'.'.join(part)}`" if part else ""
    near = closest(key, known_keys)
    if near:
        return f"unknown key `{key}`{where}; did you mean `{near[0]}`?"
    homes = [
        ".".join((*place, key))
        for place, other_model in PARTS.items()
        if key in other_model.model_fields
    ]
    if homes:
        return (
            f"unknown key `{key}`{where}; it belongs in"
            f" `{homes[0].rpartition('.')[0] or 'the file itself'}`."
        )
    elsewhere: dict[str, str] = {}
    for place, other_model in PARTS.items():
        for name in other_model.model_fields:
            elsewhere.setdefault(name, ".".join((*place, name)))
    alike = closest(key, elsewhere, 1)
    if alike and SequenceMatcher(None, key, alike[0]).ratio() >= MIN_LIKENESS_ELSEWHERE:
        return f"unknown key `{key}`{where}; did you mean `{elsewhere[alike[0]]}`?"
    return f"unknown key `{key}`{where}. Known: {listed(known_keys)}."


def _dotted(path: KeyPath) -> str:
    dotted = ""
    for step in path:
        dotted += (
            f"[{step}]" if isinstance(step, int) else f".{step}" if dotted else step
        )
    return dotted or "the file"
