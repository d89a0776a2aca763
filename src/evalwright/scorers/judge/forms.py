"""The form of a verdict: one list of fields defines its instruction, JSON schema and parser.

A verdict is one JSON object that repeats the mark of its question, a hash of the material to be
judged. A text cannot contain its own hash, so a verdict planted in the material has another mark,
or none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

MAX_REASON_CHARS = 300
"""A longer reason is cut."""
_CHECK = "check"
_OPENING = re.compile(r'\{\s*"')
_SPACE = re.compile(r"[\s_-]+")
_ESCAPE = re.compile(r'\\(?:([\\"/nrt]|[bf](?![a-z])|u[0-9a-fA-F]{4})|)')
"""A backslash and what it escapes in JSON; a judge that writes LaTeX has other backslashes too."""
_MAX_BROKEN_OBJECTS = 100
"""A reply with more broken objects is given up, since each is read to its end."""


class BadVerdict(Exception):
    """A verdict that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a verdict.

    Attributes:
        name: its key in the object.
        form: its value as the instruction describes it.
        schema: its JSON schema.
        read: checks and converts a value; raises BadVerdict.
    """

    name: str
    form: str
    schema: Mapping[str, Any]
    read: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a verdict in the order of writing: reasons come before what they lead to."""

    fields: tuple[Field, ...]

    def instruction(self, mark: str) -> str:
        """Describe the object to the judge."""
        return _describe_object(
            [
                (_CHECK, f'"{mark}"'),
                *((field.name, field.form) for field in self.fields),
            ]
        )

    def schema(self) -> str:
        """Write the JSON schema of the object.

        The schema leaves the mark open, so it is the same for all questions of a kind.
        """
        named = {
            _CHECK: {"type": "string"},
            **{field.name: dict(field.schema) for field in self.fields},
        }
        return json.dumps(
            _object_schema(named), ensure_ascii=False, separators=(",", ":")
        )

    def read(self, text: str, mark: str) -> dict[str, Any]:
        """Read the fields of a judge's reply. Raises BadVerdict, with the reason."""
        answers = find_marked_object(
            text, mark, [_CHECK, *(field.name for field in self.fields)]
        )
        return {field.name: field.read(answers[field.name]) for field in self.fields}


# -- fields ----------------------------------------------------------------------------


def reason(name: str = "reason") -> Field:
    """Make a field for a short explanation, kept on one line."""
    return Field(name, '"a few words"', {"type": "string"}, shorten_reason)


def choice(name: str, values: Sequence[str]) -> Field:
    """Make a field whose value is one of the words `values`."""
    by_fold = {_SPACE.sub("_", word.casefold()): word for word in values}
    by_fold |= {word.casefold(): word for word in values}

    def read(answer: Any) -> str:
        written = answer.strip().casefold() if isinstance(answer, str) else ""
        word = by_fold.get(written) or by_fold.get(
            _SPACE.sub("_", written)
        )  # "not attempted" is not_attempted
        if word is None:
            raise BadVerdict(
                f"the {name} is {quote_field(answer)}, not one of {', '.join(values)}"
            )
        return word

    form = " or ".join(json.dumps(word, ensure_ascii=False) for word in values)
    return Field(name, form, {"type": "string", "enum": list(values)}, read)


def whole_number(name: str, values: Sequence[int]) -> Field:
    """Make a field whose value is one of the ascending whole numbers `values`."""

    def read(answer: Any) -> int:
        if (
            isinstance(answer, bool)
            or not isinstance(answer, int | float)
            or answer not in values
        ):
            raise BadVerdict(
                f"the {name} is {quote_field(answer)}, not a whole number from {values[0]} to"
                f" {values[-1]}"
            )
        return int(answer)

    form = f"a whole number from {values[0]} to {values[-1]}"
    return Field(name, form, {"type": "integer", "enum": list(values)}, read)


def group(name: str, fields: Sequence[Field]) -> Field:
    """Make a field whose value is an object of further fields."""

    def read(answer: Any) -> dict[str, Any]:
        if not isinstance(answer, dict):
            raise BadVerdict(f"'{name}' is {quote_field(answer)}, not an object")
        _check_fields(answer, [field.name for field in fields], f" in '{name}'")
        return {field.name: field.read(answer[field.name]) for field in fields}

    schema = _object_schema({field.name: dict(field.schema) for field in fields})
    return Field(
        name,
        _describe_object([(field.name, field.form) for field in fields]),
        schema,
        read,
    )


def _describe_object(named_forms: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{name}": {form}' for name, form in named_forms) + "}"


def _object_schema(named: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(named),
        "required": list(named),
        "additionalProperties": False,
    }


# -- reading ---------------------------------------------------------------------------


def hash_material(*material: Any) -> str:
    """Hash the material into the sixteen hexadecimal digits of its mark."""
    return blake2b(
        json.dumps(material, ensure_ascii=True).encode(), digest_size=8
    ).hexdigest()


def shorten_reason(reason_text: Any) -> str:
    """Put a reason on one line and cut it to `MAX_REASON_CHARS`."""
    return " ".join(str(reason_text).split())[:MAX_REASON_CHARS]


def quote_field(answer: Any) -> str:
    """Quote a field of a verdict for a message, shortened."""
    text = json.dumps(answer, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def find_marked_object(text: str, mark: str, fields: Iterable[str]) -> dict[str, Any]:
    """Find the object whose "check" is the mark.

    Raises:
        BadVerdict: there is no such object, several differ, or it lacks a field.
    """
    objects = list(json_objects(text))
    marked = [candidate for candidate in objects if candidate.get(_CHECK) == mark]
    if not marked:
        if not objects:
            raise BadVerdict("the reply has no JSON object")
        raise BadVerdict(
            "the reply has a JSON object without the mark of this question"
        )
    if any(candidate != marked[0] for candidate in marked):
        raise BadVerdict("the reply has several verdicts that differ")
    _check_fields(marked[0], fields)
    return marked[0]


def _check_fields(
    answers: Mapping[str, Any], fields: Iterable[str], where: str = ""
) -> None:
    if missing := [name for name in fields if name not in answers]:
        raise BadVerdict(f"the verdict has no '{missing[0]}'{where}")


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Find the outermost JSON objects in a text, such as a judge's reply.

    Args:
        text: the text.

    Yields:
        The objects in their order. One that has a key twice is skipped: it says two things at once.
    """
    # `strict=False` allows line breaks in a reason.
    decoder = json.JSONDecoder(object_pairs_hook=_reject_repeated_keys, strict=False)
    text = _ESCAPE.sub(lambda escape: escape[0] if escape[1] else "\\\\", text)
    broken = 0
    end = 0
    while (
        broken < _MAX_BROKEN_OBJECTS
        and (opening := _OPENING.search(text, end)) is not None
    ):
        try:
            parsed, end = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            broken = broken + 1
            end = opening.start() + 1
        else:
            yield parsed


def _reject_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    pairs_by_key = dict(pairs)
    if len(pairs_by_key) < len(pairs):
        raise ValueError("a key occurs twice")
    return pairs_by_key
