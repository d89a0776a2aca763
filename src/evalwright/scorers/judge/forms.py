"""What a verdict looks like: fields from which its instruction, its JSON schema and its parser are
all made.

A verdict is one JSON object that repeats the mark of its question, a hash of the material that is
judged. A text cannot contain its own hash, so a verdict that somebody planted in the material has
another mark, or none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

MOST_REASON = 300
"""Characters of a reason that are kept."""
_CHECK = "check"
_OPENING = re.compile(r'\{\s*"')
_SPACE = re.compile(r"[\s_-]+")
_ESCAPE = re.compile(r'\\(?:([\\"/nrt]|[bf](?![a-z])|u[0-9a-fA-F]{4})|)')
"""A backslash, with what it escapes in JSON; a judge that writes LaTeX has others."""
_MOST_BROKEN = 100
"""Beginnings of objects that may be none, before a reply is given up: each is read to its end."""


class BadVerdict(Exception):
    """A verdict that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a verdict. form: its value as the instruction shows it. read: the value that is
    given, or BadVerdict.
    """

    name: str
    form: str
    schema: Mapping[str, Any]
    read: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a verdict, in the order in which they are written: reasons before what they
    lead to.
    """

    fields: tuple[Field, ...]

    def instruction(self, mark: str) -> str:
        """The object as a judge is shown it."""
        return _shown_object(
            [(_CHECK, f'"{mark}"'), *((one.name, one.form) for one in self.fields)]
        )

    def schema(self) -> str:
        """The JSON schema of the object, as text.

        It does not hold the mark, so it is the same for all questions of a kind.
        """
        named = {
            _CHECK: {"type": "string"},
            **{one.name: dict(one.schema) for one in self.fields},
        }
        return json.dumps(
            _object_schema(named), ensure_ascii=False, separators=(",", ":")
        )

    def read(self, text: str, mark: str) -> dict[str, Any]:
        """The values in a judge's reply, by field. Raises BadVerdict, with the reason."""
        given = marked_object(text, mark, [_CHECK, *(one.name for one in self.fields)])
        return {one.name: one.read(given[one.name]) for one in self.fields}


# -- fields ----------------------------------------------------------------------------


def reason(name: str = "reason") -> Field:
    """A few words, kept in one line and of a length that people read."""
    return Field(name, '"a few words"', {"type": "string"}, one_line)


def choice(name: str, values: Sequence[str]) -> Field:
    """One of some words."""
    by_fold = {_SPACE.sub("_", value.casefold()): value for value in values}
    by_fold |= {value.casefold(): value for value in values}

    def read(value: Any) -> str:
        written = value.strip().casefold() if isinstance(value, str) else ""
        found = by_fold.get(written) or by_fold.get(
            _SPACE.sub("_", written)
        )  # "not attempted" is not_attempted
        if found is None:
            raise BadVerdict(
                f"the {name} is {shown(value)}, not one of {', '.join(values)}"
            )
        return found

    form = " or ".join(json.dumps(value, ensure_ascii=False) for value in values)
    return Field(name, form, {"type": "string", "enum": list(values)}, read)


def whole_number(name: str, values: Sequence[int]) -> Field:
    """One of some whole numbers, ascending."""

    def read(value: Any) -> int:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or value not in values
        ):
            raise BadVerdict(
                f"the {name} is {shown(value)}, not a whole number from {values[0]} to"
                f" {values[-1]}"
            )
        return int(value)

    form = f"a whole number from {values[0]} to {values[-1]}"
    return Field(name, form, {"type": "integer", "enum": list(values)}, read)


def group(name: str, fields: Sequence[Field]) -> Field:
    """An object of fields."""

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise BadVerdict(f"'{name}' is {shown(value)}, not an object")
        _check_fields(value, [one.name for one in fields], f" in '{name}'")
        return {one.name: one.read(value[one.name]) for one in fields}

    schema = _object_schema({one.name: dict(one.schema) for one in fields})
    return Field(
        name, _shown_object([(one.name, one.form) for one in fields]), schema, read
    )


def _shown_object(parts: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{name}": {form}' for name, form in parts) + "}"


def _object_schema(named: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(named),
        "required": list(named),
        "additionalProperties": False,
    }


# -- reading ---------------------------------------------------------------------------


def mark_of(*material: Any) -> str:
    """The mark of this material: sixteen hexadecimal digits."""
    return blake2b(
        json.dumps(material, ensure_ascii=True).encode(), digest_size=8
    ).hexdigest()


def one_line(given: Any) -> str:
    """A reason, in one line."""
    return " ".join(str(given).split())[:MOST_REASON]


def shown(value: Any) -> str:
    """A field of a verdict as a message quotes it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def marked_object(text: str, mark: str, fields: Iterable[str]) -> dict[str, Any]:
    """The object whose "check" is the mark.

    Raises BadVerdict where there is none, several that differ, or one that lacks a field.
    """
    found = list(json_objects(text))
    ours = [one for one in found if one.get(_CHECK) == mark]
    if not ours:
        if not found:
            raise BadVerdict("the reply has no JSON object")
        raise BadVerdict(
            "the reply has a JSON object without the mark of this question"
        )
    if any(one != ours[0] for one in ours):
        raise BadVerdict("the reply has several verdicts that differ")
    _check_fields(ours[0], fields)
    return ours[0]


def _check_fields(
    given: Mapping[str, Any], fields: Iterable[str], where: str = ""
) -> None:
    if missing := [name for name in fields if name not in given]:
        raise BadVerdict(f"the verdict has no '{missing[0]}'{where}")


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, outermost ones only.

    One with a key twice is none: it says two things at once.
    """
    # line breaks in a reason
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeats, strict=False)
    text = _ESCAPE.sub(lambda one: one[0] if one[1] else "\\\\", text)
    broken = 0
    end = 0
    while broken < _MOST_BROKEN and (found := _OPENING.search(text, end)) is not None:
        try:
            value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            broken = broken + 1
            end = found.start() + 1
        else:
            yield value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found
