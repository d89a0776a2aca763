"""Checks a JSON value against a JSON schema: the keywords of draft 2020-12 that assertions use.

Older spellings (`definitions`, a list of `items`) work, too. A keyword that is not known here is an
error of the schema, never passed over: a schema that checks less than it says is worse than none.
Patterns are searched with Python's regular expressions, so callers run `first_fault` in the bounded
process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from ipaddress import IPv4Address, IPv6Address
from typing import Any, NoReturn
from urllib.parse import urlsplit
from uuid import UUID

from evalwright.core.errors import ConfigurationError, check_known

MAX_DEPTH = 100
"""Levels of schemas within schemas, and of references, that are followed."""
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_ANNOTATIONS = [
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
]
"""Keywords that check nothing."""
_SCHEMA_KEYWORDS = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
]
"""Keywords whose value is a schema."""
_LIST_KEYWORDS = ("allOf", "anyOf", "oneOf", "prefixItems")
"""Keywords whose value is a list of schemas."""
_TABLE_KEYWORDS = ("$defs", "definitions", "patternProperties", "properties")
"""Keywords whose value is a mapping of schemas."""

Schema = Mapping[str, Any] | bool


def parse_json(text: str) -> Any:
    """Parse strict JSON: no NaN, no Infinity.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def json_objects(text: str) -> list[Any]:
    """Return the JSON objects in a text, in order; those within others are not listed."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    objects: list[Any] = []
    start = text.find("{")
    while start >= 0:
        try:
            json_object, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            objects.append(json_object)
        start = text.find("{", end)
    return objects


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def check_schema(schema: Any, where: str, depth: int = 0) -> None:
    """Check that a schema is one, with keywords that are known here.

    Args:
        schema: the schema, a mapping, True or False.
        where: what messages call it.

    Raises:
        ConfigurationError: it is not; the message says what is wrong.
        UnknownName: it has an unknown keyword, type or format.
    """
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise ConfigurationError(
            f"{where} is a JSON schema: a mapping, true or false, not {schema!r:.80}."
        )
    if depth > MAX_DEPTH:
        raise ConfigurationError(f"{where} is nested too deeply for a JSON schema.")
    check_known("keyword of a JSON schema", schema, (*_CHECKS, *_ANNOTATIONS))
    _check_values(schema, where)
    for keyword in _SCHEMA_KEYWORDS:
        if keyword in schema and not isinstance(schema[keyword], list):
            check_schema(schema[keyword], f"{where}, '{keyword}',", depth + 1)
    for keyword in (*_LIST_KEYWORDS, "items"):
        inner_schemas = schema.get(keyword)
        if keyword != "items" and inner_schemas is not None:
            _require(inner_schemas, list, f"{where}: '{keyword}' is a list of schemas.")
        if isinstance(inner_schemas, list):
            for inner in inner_schemas:
                check_schema(inner, f"{where}, '{keyword}',", depth + 1)
    for keyword in _TABLE_KEYWORDS:
        _require(
            schema.get(keyword, {}),
            Mapping,
            f"{where}: '{keyword}' is a mapping of schemas.",
        )
        for inner in schema.get(keyword, {}).values():
            check_schema(inner, f"{where}, '{keyword}',", depth + 1)


def _check_values(schema: Mapping[str, Any], where: str) -> None:
    """Check the values of the keywords that hold no schema."""
    types = schema.get("type", [])
    check_known("type of JSON", types if isinstance(types, list) else [types], TYPES)
    if "format" in schema:
        check_known("format in a JSON schema", [schema["format"]], _FORMATS)
    for keyword in _NUMBERS:
        limit = schema.get(keyword, 0)
        if not _is_number(limit) or (keyword == "multipleOf" and limit < 0):
            raise ConfigurationError(
                f"{where}: '{keyword}' is a number, not {limit!r:.80}."
            )
    for keyword in ("enum", "required"):
        _require(schema.get(keyword, []), list, f"{where}: '{keyword}' is a list.")
    for pattern in (schema.get("pattern", ""), *schema.get("patternProperties", {})):
        try:
            re.compile(pattern)
        except (re.error, TypeError, RecursionError, OverflowError) as error:
            raise ConfigurationError(
                f"{where}: {pattern!r:.80} is not a regular expression: {error}."
            ) from None


def _require(keyword_value: Any, kind: type, message: str) -> None:
    if not isinstance(keyword_value, kind):
        raise ConfigurationError(message)


def first_fault(schema: Schema, document: Any) -> str:
    """Return what is first wrong with a JSON value by a schema, "" if nothing is."""
    return next(_faults(document, schema, schema, "$", 0), "")


def _faults(
    document: Any, schema: Schema, root: Schema, path: str, depth: int
) -> Iterator[str]:
    if schema is True:
        return
    if schema is False:
        yield f"{path} is not allowed"
        return
    if depth > MAX_DEPTH:
        yield f"{path} is nested too deeply to be checked"
        return

    def check(inner: Any, inner_schema: Schema, step: str = "") -> Iterator[str]:
        return _faults(inner, inner_schema, root, path + step, depth + 1)

    assert isinstance(schema, Mapping)
    if "$ref" in schema:
        yield from check(document, _referred(schema["$ref"], root))
    for keyword in schema:
        yield from _CHECKS.get(keyword, _nothing)(document, schema, check, path)


def _referred(reference: Any, root: Schema) -> Schema:
    """Return the schema that a `$ref` within the same document names."""
    node: Any = root
    steps = str(reference).removeprefix("#").strip("/").split("/")
    for step in filter(None, steps):
        name = step.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, Mapping) else None
    if not str(reference).startswith("#") or not isinstance(node, bool | Mapping):
        raise ConfigurationError(
            f"The JSON schema refers to '{reference}', which is not in it."
        )
    return node


def _is_number(number: Any) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool)


def has_type(document: Any, name: str) -> bool:
    """Return whether a parsed JSON value has a type of JSON schema."""
    match name:
        case "array":
            return isinstance(document, list)
        case "boolean":
            return isinstance(document, bool)
        case "integer":
            return _is_number(document) and float(document).is_integer()
        case "null":
            return document is None
        case "number":
            return _is_number(document)
        case "object":
            return isinstance(document, Mapping)
    return isinstance(document, str)


def same_json(first: Any, second: Any) -> bool:
    """Return whether two JSON values are equal: 1 is 1.0, but true is not 1."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(
            same_json(first[key], second[key]) for key in first
        )
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same_json, first, second))
    return bool(first == second)


# -- keywords --------------------------------------------------------------------------

Inner = Callable[..., Iterator[str]]
"""Checks an inner value by an inner schema; the step is what its path adds."""
Check = Callable[[Any, Mapping[str, Any], Inner, str], Iterator[str]]


def _nothing(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    return iter(())


def _type(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(has_type(document, name) for name in types):
        yield f"{path} is not of type {' or '.join(types)}"


def _enum(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if not any(same_json(document, allowed) for allowed in schema["enum"]):
        yield f"{path} is none of {_shown(schema['enum'])}"


def _const(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if not same_json(document, schema["const"]):
        yield f"{path} is not {_shown(schema['const'])}"


def _shown(document: Any) -> str:
    text = json.dumps(document, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _required(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if isinstance(document, Mapping):
        for name in schema["required"]:
            if name not in document:
                yield f"{path}.{name} is missing"


def _properties(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if isinstance(document, Mapping):
        for name, inner in schema["properties"].items():
            if name in document:
                yield from check(document[name], inner, f".{name}")


def _pattern_properties(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if isinstance(document, Mapping):
        for pattern, inner in schema["patternProperties"].items():
            for name in document:
                if re.search(pattern, name):
                    yield from check(document[name], inner, f".{name}")


def _additional_properties(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if not isinstance(document, Mapping):
        return
    for name in document:
        if name in schema.get("properties", {}) or any(
            re.search(pattern, name) for pattern in schema.get("patternProperties", {})
        ):
            continue
        yield from check(document[name], schema["additionalProperties"], f".{name}")


def _property_names(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if isinstance(document, Mapping):
        for name in document:
            yield from check(name, schema["propertyNames"], f" (the name '{name}')")


def _prefix(schema: Mapping[str, Any]) -> Sequence[Any]:
    items = schema.get("items")
    prefix: Sequence[Any] = (
        items if isinstance(items, list) else schema.get("prefixItems", [])
    )
    return prefix


def _prefix_items(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if isinstance(document, list):
        for index, inner in enumerate(_prefix(schema)[: len(document)]):
            yield from check(document[index], inner, f"[{index}]")


def _items(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if isinstance(schema["items"], list):
        yield from _prefix_items(document, schema, check, path)
    elif isinstance(document, list):
        for index in range(len(_prefix(schema)), len(document)):
            yield from check(document[index], schema["items"], f"[{index}]")


def _additional_items(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if isinstance(document, list) and isinstance(schema.get("items"), list):
        for index in range(len(_prefix(schema)), len(document)):
            yield from check(document[index], schema["additionalItems"], f"[{index}]")


def _contains(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if isinstance(document, list) and all(
        any(check(element, schema["contains"])) for element in document
    ):
        yield f"{path} holds nothing that it has to hold"


def _unique_items(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if not isinstance(document, list) or not schema["uniqueItems"]:
        return
    for index, element in enumerate(document):
        if any(same_json(element, earlier) for earlier in document[:index]):
            yield f"{path}[{index}] is a duplicate"
            return


def _format(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if isinstance(document, str):
        try:
            fits = _FORMATS[schema["format"]](document) is not False
        except ValueError:
            fits = False
        if not fits:
            yield f"{path} is not a valid {schema['format']}"


def _pattern(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if isinstance(document, str) and not re.search(schema["pattern"], document):
        yield f"{path} does not match '{schema['pattern']}'"


def _all_of(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    for inner in schema["allOf"]:
        yield from check(document, inner)


def _any_of(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if all(any(check(document, inner)) for inner in schema["anyOf"]):
        yield f"{path} fits none of the schemas in 'anyOf'"


def _one_of(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    fitting = sum(not any(check(document, inner)) for inner in schema["oneOf"])
    if fitting != 1:
        yield f"{path} fits {fitting} of the schemas in 'oneOf', not 1"


def _not(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    if not any(check(document, schema["not"])):
        yield f"{path} fits the schema in 'not'"


def _if(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    branch = "else" if any(check(document, schema["if"])) else "then"
    if branch in schema:
        yield from check(document, schema[branch])


def _multiple_of(
    document: Any, schema: Mapping[str, Any], check: Inner, path: str
) -> Iterator[str]:
    step = schema["multipleOf"]
    if _is_number(document) and step and not float(document / step).is_integer():
        yield f"{path} is not a multiple of {step}"


def _limit(
    keyword: str, is_met: Callable[[Any, Any], bool], measure: Callable[[Any], Any]
) -> Check:
    """Make the check of a limit; `measure` returns None for what the limit is not about."""

    def check_limit(
        document: Any, schema: Mapping[str, Any], check: Inner, path: str
    ) -> Iterator[str]:
        measured = measure(document)
        if measured is not None and not is_met(measured, schema[keyword]):
            yield f"{path} does not meet '{keyword}: {schema[keyword]}'"

    return check_limit


def _at_least(measured: Any, limit: Any) -> bool:
    return bool(measured >= limit)


def _at_most(measured: Any, limit: Any) -> bool:
    return bool(measured <= limit)


def _number(document: Any) -> Any:
    return document if _is_number(document) else None


def _length_of(kind: type[str | list[Any] | dict[str, Any]]) -> Callable[[Any], Any]:
    return lambda document: len(document) if isinstance(document, kind) else None


_LIMITS: Mapping[str, Check] = {
    "minimum": _limit("minimum", _at_least, _number),
    "maximum": _limit("maximum", _at_most, _number),
    "exclusiveMinimum": _limit(
        "exclusiveMinimum", lambda measured, limit: bool(measured > limit), _number
    ),
    "exclusiveMaximum": _limit(
        "exclusiveMaximum", lambda measured, limit: bool(measured < limit), _number
    ),
    "minLength": _limit("minLength", _at_least, _length_of(str)),
    "maxLength": _limit("maxLength", _at_most, _length_of(str)),
    "minItems": _limit("minItems", _at_least, _length_of(list)),
    "maxItems": _limit("maxItems", _at_most, _length_of(list)),
    "minProperties": _limit("minProperties", _at_least, _length_of(dict)),
    "maxProperties": _limit("maxProperties", _at_most, _length_of(dict)),
}
_NUMBERS = (*_LIMITS, "multipleOf")

_CHECKS: Mapping[str, Check] = {
    **_LIMITS,
    "$ref": _nothing,
    "additionalItems": _additional_items,
    "additionalProperties": _additional_properties,
    "allOf": _all_of,
    "anyOf": _any_of,
    "const": _const,
    "contains": _contains,
    "else": _nothing,
    "enum": _enum,
    "format": _format,
    "if": _if,
    "items": _items,
    "multipleOf": _multiple_of,
    "not": _not,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "prefixItems": _prefix_items,
    "properties": _properties,
    "propertyNames": _property_names,
    "required": _required,
    "then": _nothing,
    "type": _type,
    "uniqueItems": _unique_items,
}

_FORMATS: Mapping[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "date-time": datetime.fromisoformat,
    "email": lambda text: re.fullmatch(r"[^@\s]+@[^@\s]+", text) is not None,
    "ipv4": IPv4Address,
    "ipv6": IPv6Address,
    "uri": lambda text: bool(urlsplit(text).scheme),
    "uuid": UUID,
}
"""By format: raises ValueError, or returns False, for a text that has it not."""
