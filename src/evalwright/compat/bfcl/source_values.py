"""Reads values in Java's and JavaScript's notation as BFCL's checker does.

What cannot be read stays the text, and so equals nothing but a text. The patterns are those of the
package `bfcl-eval` (Apache-2.0).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from evalwright.extend import LimitExceeded, call_with_limits

INTEGER = re.compile(r"-?\d+")
JAVA_LONG = re.compile(r"-?\d+[lL]")
JAVA_FLOAT = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?[fF]")
JAVA_DOUBLE = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
JS_FLOAT = re.compile(r"-?\d+(\.\d+)?")
JS_BIGINT = re.compile(r"-?\d+n")
_BOOLEANS = {"true": True, "false": False}
MAX_SOURCE_CHARS = 4_000
"""Longest value that is read: some of the patterns take the square of its length."""
_BLANKS = re.compile(r"\s{40}")
"""So much white space is in no value: some of the patterns take its cube."""


class Unreadable(Exception):
    """BFCL's checker raises an error of Python on this value."""


def read_java(text: str, type_name: str, element_type_name: str = "") -> Any:
    """Read a value in Java's notation.

    Args:
        text: the value.
        type_name: its type by the function's description, such as "long" or "ArrayList".
        element_type_name: the type of its elements; "" where none is stated.

    Raises:
        Unreadable: the type is one that BFCL's checker cannot read.
    """
    if len(text) > MAX_SOURCE_CHARS or _BLANKS.search(text):
        return text
    if type_name in ("byte", "short", "integer"):
        return int(text) if _fits(INTEGER, text) else text
    if type_name == "long":
        return int(text.rstrip("\n")[:-1]) if _fits(JAVA_LONG, text) else text
    if type_name == "float":
        return float(text.rstrip("\n")[:-1]) if _fits(JAVA_FLOAT, text) else text
    if type_name == "double":
        return float(text) if _fits(JAVA_DOUBLE, text) else text
    if type_name == "boolean":
        return _BOOLEANS.get(text, text)
    if type_name == "ArrayList":
        return _java_list(text, element_type_name)
    if type_name == "Array":
        return _java_array(text, element_type_name)
    if type_name == "HashMap":
        return _java_map(text)
    if type_name in ("char", "String", "any"):
        return text
    raise Unreadable(f"the type {type_name} is not read")


def _fits(pattern: re.Pattern[str], text: str) -> bool:
    """Match like `re.match` with `$` at the end, which allows a line break behind."""
    return pattern.fullmatch(text.removesuffix("\n")) is not None


def _java_list(text: str, element_type_name: str) -> Any:
    as_list = re.search(r"new\s+ArrayList<\w*>\(Arrays\.asList\((.+?)\)\)", text)
    if as_list:
        sources = [source.strip() for source in as_list.group(1).split(",")]
        return [_java_element(source, element_type_name) for source in sources]
    block = re.search(
        r"new\s+ArrayList<\w*>\(\)\s*\{\{\s*(.+?)\s*\}\}", text, re.DOTALL
    )
    if block:
        element_sources = re.findall(r"add\((.+?)\)", block.group(1))
        return [
            _java_element(source.strip(), element_type_name)
            for source in element_sources
        ]
    return [] if re.search(r"new\s+ArrayList<\w*>\(\)", text) else text


def _java_element(source: str, element_type_name: str) -> Any:
    if element_type_name in ("char", "String"):
        return source[1:-1]
    return (
        read_java(source, element_type_name)
        if element_type_name
        else _java_value(source)
    )


def _java_array(text: str, element_type_name: str) -> Any:
    block = re.search(r"new\s+\w+\[\]\s*\{(.*?)\}", text)
    if not block:
        return text
    sources = [source.strip() for source in block.group(1).split(",")]
    return [
        read_java(source, element_type_name)
        if element_type_name
        else _java_value(source)
        for source in sources
        if source
    ]


def _java_map(text: str) -> Any:
    block = re.search(
        r"new\s+HashMap<.*?>\s*\(\)\s*\{\s*\{?\s*(.*?)\s*\}?\s*\}", text, re.DOTALL
    )
    if not block:
        return {} if re.search(r"new\s+HashMap<.*?>\s*\(\)", text) else text
    pairs = re.findall(r"put\(\"(.*?)\",\s*(.*?)\)", block.group(1))
    return {key: _java_value(source.strip()) for key, source in pairs}


def _java_value(source: str) -> Any:
    """Read a value whose type is not stated."""
    if source in _BOOLEANS:
        return _BOOLEANS[source]
    if source.startswith('"') and source.endswith('"'):
        return source[1:-1]
    if _fits(JAVA_LONG, source):
        return int(source[:-1])
    if _fits(JAVA_FLOAT, source):
        return float(source[:-1])
    return _number_or_text(source)


def _number_or_text(source: str) -> Any:
    readers: list[Callable[[str], Any]] = [int, float]
    for reader in readers:
        try:
            return reader(source)
        except ValueError:
            continue
    return source


def read_javascript(text: str, type_name: str, element_type_name: str = "") -> Any:
    """Read a value in JavaScript's notation; arguments and errors as in `read_java`."""
    if len(text) > MAX_SOURCE_CHARS or _BLANKS.search(text):
        return text
    if type_name == "String":
        return text[1:-1] if _is_quoted(text) else text
    if type_name == "integer":
        return int(text) if _fits(INTEGER, text) else text
    if type_name == "float":
        return float(text) if _fits(JS_FLOAT, text) else text
    if type_name == "Bigint":
        return int(text[:-1]) if _fits(JS_BIGINT, text) else text
    if type_name == "Boolean":
        return _BOOLEANS.get(text, text)
    if type_name == "array":
        return _js_array(text.strip(), element_type_name)
    if type_name == "dict":
        return _js_object(text.strip())
    if type_name == "any":
        return text
    raise Unreadable(f"the type {type_name} is not read")


_JS_ARRAYS = re.compile(
    r"\[\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\]"
    r"|\bnew\s+Array\(\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\)"
)
MAX_QUICK_BRACKETS = 10
"""Lists within a list whose pattern is matched at once: its time can double with each."""
MATCH_SECONDS = 2.0
"""Processor seconds for more of them."""
_JS_ARRAY = re.compile(r"\[(.*?)\]|\bnew\s+Array\((.*?)\)")
_JS_PAIR = re.compile(r"([^:]+):\s*(.*?)(?:,\s*(?=[^,]+:)|$)")


def _is_quoted(text: str) -> bool:
    double = text.startswith('"') and text.endswith('"')
    return double or (text.startswith("'") and text.endswith("'"))


def _nested_arrays(text: str) -> str | None:
    """Return the list of lists that a text begins with; None without one."""
    if text.count("[") <= MAX_QUICK_BRACKETS:
        return _match_arrays(text)
    try:
        matched: str | None = call_with_limits(
            _match_arrays, text, seconds=MATCH_SECONDS
        )
    except LimitExceeded:
        return None
    return matched


def _match_arrays(text: str) -> str | None:
    match = _JS_ARRAYS.match(text)
    return None if match is None else match.group(0)


def _js_array(text: str, element_type_name: str) -> Any:
    nested = _nested_arrays(text)
    if nested is not None:
        inner_texts = re.findall(r"\[(.*?)\]", nested)
        arrays = []
        for index, inner_text in enumerate(inner_texts):
            inner = inner_text.strip()
            if index == 0:
                inner = inner.removeprefix("[")
            arrays.append([_js_value(source.strip()) for source in inner.split(",")])
        return arrays
    flat = _JS_ARRAY.match(text)
    if not flat:
        return text
    elements_text = next(
        (group for group in flat.groups() if group is not None), ""
    ).strip()
    sources = (
        [source.strip() for source in elements_text.split(",")] if elements_text else []
    )
    if not element_type_name:
        return [_js_value(source) for source in sources]
    try:
        return [read_javascript(source, element_type_name) for source in sources]
    except Unreadable:
        return text


def _js_object(text: str) -> Any:
    if text == "{}":
        return {}
    block = re.match(r"\{(.*?)\}", text)
    if not block:
        return text
    table: dict[str, Any] = {}
    for key_source, source in _JS_PAIR.findall(block.group(1)):
        key = key_source.strip().strip("'\"")
        source = source.strip()
        if source.startswith("[") and source.endswith("]"):
            table[key] = _js_array(source, "")
        elif source.startswith("{") and source.endswith("}"):
            table[key] = _js_object(source)
        else:
            table[key] = _js_value(source.strip("'\""))
    return table


def _js_value(source: str) -> Any:
    source = source.strip()
    if source in _BOOLEANS:
        return _BOOLEANS[source]
    return source[1:-1] if _is_quoted(source) else _number_or_text(source)
