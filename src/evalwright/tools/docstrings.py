"""What a docstring says of a function and of its parameters: Google's form, NumPy's, or reST."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_SECTIONS = (
    "args|arguments|parameters|params|other parameters|keyword args|keyword arguments|returns?|"
    "yields?|raises|examples?|notes?|warnings?|see also|references|attributes|warns|todo"
)
_PARAMETER_SECTIONS = frozenset(
    (
        "args",
        "arguments",
        "keyword args",
        "keyword arguments",
        "other parameters",
        "parameters",
        "params",
    )
)
_GOOGLE_SECTION = re.compile(rf"({_SECTIONS}):\s*", re.IGNORECASE)
_NUMPY_SECTION = re.compile(rf"({_SECTIONS})\s*", re.IGNORECASE)
_GOOGLE_PARAMETER = re.compile(r"\*{0,2}([A-Za-z_]\w*)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_PARAMETER = re.compile(r"\*{0,2}([A-Za-z_]\w*)\s*(?::.*)?")
_REST_FIELD = re.compile(r":(\w+)((?: +[^:\s]+)*) *: *(.*)")
"""A field of reST, such as `:param int count: how many`; the last of its words is the name."""


@dataclass(frozen=True, slots=True)
class ParsedDocstring:
    """A docstring, taken apart.

    Args:
        summary: what stands before its sections.
        parameters: the descriptions of parameters, by name.
    """

    summary: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def parse_docstring(docstring: str) -> ParsedDocstring:
    """Take a docstring apart.

    Args:
        docstring: the text as it stands in the source, or "".

    Returns:
        Its summary, and the descriptions of parameters that it has in any of the three forms.
    """
    lines = inspect.cleandoc(docstring).splitlines()
    start = next(
        (index for index in range(len(lines)) if _begins_section(lines, index)),
        len(lines),
    )
    summary = "\n".join(lines[:start]).strip()
    parameters: dict[str, str] = {}
    index = start
    while index < len(lines):
        if _REST_FIELD.match(lines[index]):
            index = _read_rest_field(lines, index, parameters)
            continue
        section = _GOOGLE_SECTION.fullmatch(lines[index])
        if section:
            end = _end_of_section(lines, index + 1)
            if section[1].lower() in _PARAMETER_SECTIONS:
                parameters |= _read_google(lines[index + 1 : end])
            index = end
            continue
        if _is_numpy_section(lines, index):
            end = _end_of_numpy_section(lines, index + 2)
            if lines[index].strip().lower() in _PARAMETER_SECTIONS:
                parameters |= _read_numpy(lines[index + 2 : end])
            index = end
            continue
        index += 1
    return ParsedDocstring(summary, parameters)


def _begins_section(lines: list[str], index: int) -> bool:
    return bool(
        _GOOGLE_SECTION.fullmatch(lines[index])
        or _REST_FIELD.match(lines[index])
        or _is_numpy_section(lines, index)
    )


def _is_numpy_section(lines: list[str], index: int) -> bool:
    is_underlined = index + 1 < len(lines) and re.fullmatch(
        r"-{3,}\s*", lines[index + 1]
    )
    return bool(is_underlined and _NUMPY_SECTION.fullmatch(lines[index]))


def _end_of_section(lines: list[str], index: int) -> int:
    """Return the first line behind an indented section."""
    while index < len(lines) and (
        not lines[index].strip() or lines[index][0].isspace()
    ):
        index += 1
    return index


def _end_of_numpy_section(lines: list[str], index: int) -> int:
    while index < len(lines) and not _is_numpy_section(lines, index):
        index += 1
    return index


def _read_google(lines: list[str]) -> dict[str, str]:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    outermost = min(indents, default=0)
    texts: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        indent = len(line) - len(line.lstrip())
        parameter = _GOOGLE_PARAMETER.fullmatch(line.strip())
        if line.strip() and indent == outermost and parameter:
            name = parameter[1]
            texts[name] = [parameter[2]]
        elif name:
            texts[name].append(line.strip())
    return _joined(texts)


def _read_numpy(lines: list[str]) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    names: list[str] = []
    for line in lines:
        if line.strip() and not line[0].isspace():
            declared = line.partition(":")[0].split(",")
            matches = [_NUMPY_PARAMETER.fullmatch(part.strip()) for part in declared]
            names = [match[1] for match in matches if match]
            texts |= {name: [] for name in names}
        else:
            for name in names:
                texts[name].append(line.strip())
    return _joined(texts)


def _read_rest_field(lines: list[str], index: int, parameters: dict[str, str]) -> int:
    """Read a field such as `:param int count: how many`, and return the line behind it."""
    match = _REST_FIELD.match(lines[index])
    assert match is not None
    texts = [match[3]]
    index += 1
    while index < len(lines) and lines[index][:1].isspace():
        texts.append(lines[index].strip())
        index += 1
    kind = match[1]
    name = match[2].split()[-1].lstrip("*") if match[2].strip() else ""
    if kind in ("param", "parameter", "arg", "argument", "key", "keyword") and name:
        parameters |= _joined({name: texts})
    return index


def _joined(texts: dict[str, list[str]]) -> dict[str, str]:
    return {
        name: " ".join(text for text in lines if text).strip()
        for name, lines in texts.items()
    }
