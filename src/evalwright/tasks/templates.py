"""Templates over a row's columns: jinja2's immutable sandbox with strict undefined names.

`text` makes a function that renders a string, `native` one that keeps the type if the whole value
is one `{{ expression }}`, and `condition` one that returns true or false. Each is compiled once.
Most templates only put columns into text; those are rendered without jinja2, and whatever is not
that simple falls back to it, so both ways give the same. A template whose work could grow beyond
its row (nested loops, arithmetic on texts, macros) is rendered in a process with limits of time and
memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evalwright.core.errors import closest
from evalwright.core.samples import Passage
from evalwright.tasks.template_limits import TemplateError as TemplateError

Context = Mapping[str, Any]

_NAME = r"[A-Za-z_]\w*"
_STEP = rf"\.{_NAME}|\[-?\d+\]|\['[^'\\\n]*'\]|\[\"[^\"\\\n]*\"\]"
_SIMPLE = re.compile(rf"\{{\{{\s*({_NAME}(?:{_STEP})*)\s*\}}\}}")
_STEPS = re.compile(rf"\.({_NAME})|\[(-?\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_WORDS = frozenset(
    ("true", "false", "none", "True", "False", "None", "not", "loop", "self", "super")
)


_GET = re.compile(r"""\{\{\s*row\.get\((?:'([^'\\\n]*)'|"([^"\\\n]*)")\)\s*\}\}""")


class _Fallback(Exception):
    """The quick way cannot render this; jinja2 can."""


@lru_cache(maxsize=4096)
def text(source: str) -> Callable[[Context], str]:
    """Make a function that renders `source` to a string.

    Raises:
        TemplateError: it does not parse; raised at once.
    """
    pieces = _pieces(source)
    if pieces is None:
        return _jinja_text(source)
    literals, paths = pieces
    if not paths:
        return lambda context: source
    if literals == ["", ""] and len(paths[0]) == 1:
        return _text_of_column(str(paths[0][0]), source)

    def render(context: Context) -> str:
        rendered = [literals[0]]
        for index, path in enumerate(paths, 1):
            rendered.append(_as_text(_walk(context, path)))
            rendered.append(literals[index])
        return "".join(rendered)

    return _quick(render, source, _jinja_text)


@lru_cache(maxsize=4096)
def native(source: str) -> Callable[[Context], Any]:
    """Compile a template; `{{ expression }}` alone keeps its type: a list stays a list.

    Args:
        source: the template, as in task files.

    Returns:
        From the columns of a row to the value.

    Raises:
        TemplateError: a ValueError; it is no template. The function raises it where a column is
            missing.
    """
    simple = _SIMPLE.fullmatch(source.strip())
    if simple and (path := _path(simple[1])):
        if len(path) == 1:
            return _column(str(path[0]), source)
        return _quick(lambda context: _walk(context, path), source, _jinja_native)
    if _is_one_expression(source):
        return _jinja_native(source)
    return text(source)


@dataclass(frozen=True, slots=True)
class ColumnReference:
    """A template that puts out a column of a row as it is.

    Attributes:
        column: the column.
        name_read: the variable that the template reads: "row", or the column's own name.
        may_be_missing: whether it is null in a row without the column, and not an error.
    """

    column: str
    name_read: str
    may_be_missing: bool = False


def column_reference(source: object) -> ColumnReference | None:
    """Return which column a template puts out.

    Args:
        source: the template, compiled by `native`.

    Returns:
        The column of `{{ name }}`, `{{ row.name }}`, `{{ row['name'] }}` or `{{ row.get('name')
        }}`; None if the template is anything else.
    """
    if not isinstance(source, str):
        return None
    stripped = source.strip()
    if optional := _GET.fullmatch(stripped):
        name = optional[1] if optional[1] is not None else optional[2]
        return ColumnReference(name, "row", may_be_missing=True)
    simple = _SIMPLE.fullmatch(stripped)
    path = _path(simple[1]) if simple else ()
    if len(path) == 1 and path[0] != "row":
        name = str(path[0])
        return ColumnReference(name, name)
    if len(path) == 2 and path[0] == "row" and isinstance(path[1], str):
        return ColumnReference(path[1], "row")
    return None


def reads_only(source: str, names: Collection[str]) -> bool:
    """Return whether a template only puts the texts of some variables into text.

    It can then be rendered wherever they are texts.
    """
    pieces = _pieces(source)
    if pieces is None:
        return False
    return all(len(path) == 1 and path[0] in names for path in pieces[1])


def structure(value: Any) -> Callable[[Context], Any]:
    """Make a function that renders every string inside lists and mappings by `native`.

    Other values stay as they are.
    """
    if isinstance(value, str):
        return native(value)
    if isinstance(value, Mapping):
        table = {key: structure(item) for key, item in value.items()}
        return lambda context: {key: render(context) for key, render in table.items()}
    if isinstance(value, list):
        items = [structure(item) for item in value]
        return lambda context: [render(context) for render in items]
    return lambda context: value


@lru_cache(maxsize=4096)
def condition(source: str) -> Callable[[Context], bool]:
    """Make a function that returns whether an expression (with or without the braces) is true."""
    inner = source.strip()
    if inner.startswith("{{") and inner.endswith("}}"):
        inner = inner[2:-2]
    evaluate = _compile_expression(inner.strip())
    return lambda context: bool(evaluate(context))


def is_template(value: object) -> bool:
    """Return whether a value has anything to render."""
    return isinstance(value, str) and ("{{" in value or "{%" in value or "{#" in value)


@lru_cache(maxsize=4096)
def names(source: str) -> frozenset[str]:
    """Return the variables that a template reads."""
    from evalwright.tasks._sandbox import variables

    return variables(source)


def names_in(source: object) -> frozenset[str]:
    """Return the variables that the templates of a value read; it may be a list or a mapping."""
    if isinstance(source, str):
        try:
            return names(source)
        except TemplateError:
            return frozenset()
    if isinstance(source, Mapping):
        source = list(source.values())
    if isinstance(source, list):
        return frozenset().union(*map(names_in, source))
    return frozenset()


def missing_column(name: str, columns: Mapping[str, Any]) -> str:
    """Return a part of a sentence: the row has no such column, and which ones are similar."""
    near = closest(name, columns)
    hint = (
        f"; did you mean {' or '.join(repr(found) for found in near)}?" if near else ""
    )
    listed = ", ".join(sorted(map(str, columns))[:20])
    return (
        f"there is no column '{name}'{hint or '.'} The columns are:"
        f" {listed or 'none'}{other_separator(columns)}"
    )


def other_separator(columns: Iterable[str]) -> str:
    """Return the end of a sentence if a table's only column seems to be several, else "".

    Another sign may separate them.
    """
    only, *more = columns or [""]
    names = {";": "semicolons", "\t": "tabs", "|": "vertical bars", ",": "commas"}
    separator = (
        ""
        if more
        else next((name for sign, name in names.items() if sign in str(only)), "")
    )
    how = "save the file as .csv with commas or as .tsv with tabs"
    return (
        f" (the cells seem to be separated by {separator}: {how})" if separator else ""
    )


def _pieces(source: str) -> tuple[list[str], list[tuple[str | int, ...]]] | None:
    """Split a template into literal texts and the paths between; None if it has anything else."""
    parts = _SIMPLE.split(source)
    literals = parts[::2]
    if any(mark in literal for literal in literals for mark in ("{{", "{%", "{#")):
        return None
    paths = [_path(expression) for expression in parts[1::2]]
    if not all(paths):
        return None
    return literals, paths


def _path(expression: str) -> tuple[str | int, ...]:
    head = re.match(_NAME, expression)
    if head is None or head[0] in _WORDS:
        return ()
    steps: list[str | int] = [head[0]]
    for name, number, single, double in _STEPS.findall(expression[head.end() :]):
        steps.append(int(number) if number else name or single or double)
    return tuple(steps)


def _column(name: str, source: str) -> Callable[[Context], Any]:
    """Make the function of the commonest template, which is the name of a column alone."""

    def render(context: Context) -> Any:
        if type(context) is dict and name in context:
            return context[name]
        return _jinja_native(source)(context)

    return render


def _text_of_column(name: str, source: str) -> Callable[[Context], str]:
    """Make the function of a template that puts one column into a text, and nothing else."""

    def render(context: Context) -> str:
        content = context.get(name) if type(context) is dict else None
        if type(content) is str:
            return content
        return _jinja_text(source)(context) if content is None else str(content)

    return render


def _walk(context: Any, path: tuple[str | int, ...]) -> Any:
    value = context
    for step in path:
        kind = type(value)
        if kind is dict or kind is list or kind is tuple:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                raise _Fallback from None
        elif kind is Passage and step in ("id", "text"):
            value = getattr(value, step)
        else:
            raise _Fallback
    return value


def _as_text(value: Any) -> str:
    if type(value) is str:
        return value
    if value is None:
        raise _Fallback
    return str(value)


def _quick(
    quick: Callable[[Context], Any],
    source: str,
    slow: Callable[[str], Callable[[Context], Any]],
) -> Callable[[Context], Any]:
    def render(context: Context) -> Any:
        try:
            return quick(context)
        except _Fallback:
            return slow(source)(context)

    return render


@lru_cache(maxsize=4096)
def _jinja_text(source: str) -> Callable[[Context], str]:
    from evalwright.tasks._sandbox import renderer

    return renderer(source)


@lru_cache(maxsize=4096)
def _jinja_native(source: str) -> Callable[[Context], Any]:
    return _compile_expression(source.strip()[2:-2].strip("-+ \n\t"))


def _compile_expression(expression: str) -> Callable[[Context], Any]:
    from evalwright.tasks._sandbox import renderer

    return renderer(expression, expression=True)


def _is_one_expression(source: str) -> bool:
    stripped = source.strip()
    if not (stripped.startswith("{{") and stripped.endswith("}}")):
        return False
    from jinja2 import nodes

    body = _tree(stripped).body
    return (
        len(body) == 1
        and isinstance(body[0], nodes.Output)
        and len(body[0].nodes) == 1
        and not isinstance(body[0].nodes[0], nodes.TemplateData)
    )


def _tree(source: str) -> Any:
    from evalwright.tasks._sandbox import ENVIRONMENT, problem

    try:
        return ENVIRONMENT.parse(source)
    except Exception as error:
        raise problem(error, source) from None
