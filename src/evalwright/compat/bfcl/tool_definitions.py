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
            for schema in properties.values():
                _as_text(schema, language)
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


def _as_text(schema: dict[str, Any], language: str) -> None:
    """Make a parameter a text that holds a value in the language's notation."""
    type_name = schema["type"]
    name = _NAMES[language]
    if type_name == "any":
        hint = (
            f" This parameter can be of any type of {name} object in string"
            " representation."
        )
    else:
        hint = f" This is {name} {type_name} type parameter in string representation."
    lists = ("Array", "ArrayList") if language == JAVA else ("array",)
    if type_name in lists:
        element_type_name = schema.pop("items")["type"]
        hint += (
            f" The list elements are of type {element_type_name}; they are not in string"
            " representation."
        )
    if language == JAVASCRIPT and type_name == "dict" and "properties" in schema:
        entries = json.dumps(schema.pop("properties"))
        hint += (
            " The dictionary entries have the following schema; they are not in string"
            f" representation. {entries}"
        )
    schema["description"] = f"{schema.get('description', '')}{hint}"
    schema["type"] = "string"


def _as_json_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _cast(dict(schema)) for name, schema in properties.items()}


def _cast(schema: dict[str, Any]) -> dict[str, Any]:
    type_name = schema.get("type", "string")
    if type_name == "float":
        schema["format"] = "float"
        schema["description"] = (
            f"{schema.get('description', '')} This is a float type value."
        )
    schema["type"] = _TYPES.get(type_name, "string")
    if schema["type"] not in ("array", "object"):
        return schema
    if "properties" in schema:
        schema["properties"] = _as_json_schema(schema["properties"])
    elif "items" in schema:
        schema["items"] = _cast_items(dict(schema["items"]), depth=2)
    return schema


def _cast_items(element_schema: dict[str, Any], depth: int) -> dict[str, Any]:
    """Cast the type of a list's elements, two levels deep as BFCL does."""
    element_schema["type"] = _TYPES.get(element_schema.get("type", "string"), "string")
    if element_schema["type"] == "array" and "items" in element_schema and depth > 1:
        element_schema["items"] = _cast_items(dict(element_schema["items"]), depth - 1)
    elif element_schema["type"] == "object" and "properties" in element_schema:
        element_schema["properties"] = _as_json_schema(element_schema["properties"])
    return element_schema
