"""BFCL's descriptions of functions as tools, as BFCL itself sends them to providers."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.compat.bfcl.checker import JAVA, JAVASCRIPT, PYTHON, offered_name

_SYNTAX = {
    JAVA: "Java 8 SDK",
    JAVASCRIPT: "JavaScript",
    PYTHON: "Python 3",
}
_NAMES = {JAVA: "Java", JAVASCRIPT: "JavaScript"}
_TYPES = {
    "Any": "string",
    "Array": "array",
    "ArrayList": "array",
    "Bigint": "integer",
    "HashMap": "object",
    "Hashtable": "object",
    "Queue": "array",
    "Stack": "array",
    "String": "string",
    "any": "string",
    "array": "array",
    "bool": "boolean",
    "boolean": "boolean",
    "byte": "integer",
    "char": "string",
    "dict": "object",
    "double": "number",
    "float": "number",
    "integer": "integer",
    "list": "array",
    "long": "integer",
    "number": "number",
    "object": "object",
    "short": "integer",
    "string": "string",
    "tuple": "array",
}
"""Types of BFCL's descriptions, and those of JSON schemas; all others are texts."""


def offered_tools(
    functions: Sequence[Mapping[str, Any]], language: str
) -> list[dict[str, Any]]:
    """Return the tools that a row offers: name, description and parameters of each.

    Dots in names are underscores. In Java and JavaScript all arguments are texts, which hold values
    in the language's notation.
    """
    tools = []
    for function in functions:
        parameters = copy.deepcopy(dict(function["parameters"]))
        properties = parameters["properties"]
        if language != PYTHON:
            for described in properties.values():
                _as_text(described, language)
        parameters["properties"] = _as_json_schema(properties)
        parameters["type"] = "object"
        hint = f" Note that the provided function is in {_SYNTAX[language]} syntax."
        description = f"{function.get('description', '')}{hint}"
        tools.append(
            {
                "name": offered_name(function["name"]),
                "description": description,
                "parameters": parameters,
            }
        )
    return tools


def _as_text(described: dict[str, Any], language: str) -> None:
    """Make a parameter a text that holds a value in the language's notation."""
    kind = described["type"]
    name = _NAMES[language]
    if kind == "any":
        hint = (
            f" This parameter can be of any type of {name} object in string"
            " representation."
        )
    else:
        hint = f" This is {name} {kind} type parameter in string representation."
    lists = ("Array", "ArrayList") if language == JAVA else ("array",)
    if kind in lists:
        element_kind = described.pop("items")["type"]
        hint += (
            f" The list elements are of type {element_kind}; they are not in string"
            " representation."
        )
    if language == JAVASCRIPT and kind == "dict" and "properties" in described:
        entries = json.dumps(described.pop("properties"))
        hint += (
            " The dictionary entries have the following schema; they are not in string"
            f" representation. {entries}"
        )
    described["description"] = f"{described.get('description', '')}{hint}"
    described["type"] = "string"


def _as_json_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _cast(dict(described)) for name, described in properties.items()}


def _cast(described: dict[str, Any]) -> dict[str, Any]:
    kind = described.get("type", "string")
    if kind == "float":
        described["format"] = "float"
        described["description"] = (
            f"{described.get('description', '')} This is a float type value."
        )
    described["type"] = _TYPES.get(kind, "string")
    if described["type"] not in ("array", "object"):
        return described
    if "properties" in described:
        described["properties"] = _as_json_schema(described["properties"])
    elif "items" in described:
        described["items"] = _cast_items(dict(described["items"]), depth=2)
    return described


def _cast_items(items: dict[str, Any], depth: int) -> dict[str, Any]:
    """Cast the type of a list's elements, two levels deep as BFCL does."""
    items["type"] = _TYPES.get(items.get("type", "string"), "string")
    if items["type"] == "array" and "items" in items and depth > 1:
        items["items"] = _cast_items(dict(items["items"]), depth - 1)
    elif items["type"] == "object" and "properties" in items:
        items["properties"] = _as_json_schema(items["properties"])
    return items
