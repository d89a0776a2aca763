"""Rows in the column shape that a task reads, found from its templates and by trying.

Columns and their kinds are read off the templates (`choices[0]` is a list, `choices.text` a
mapping, `['A', 'B'].index(x)` one of its letters). What the task's Python reads is found by asking
it: a missing column is added and the row tried again, with another kind of value where one does not
do.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from jinja2 import Environment, TemplateError, nodes

from parity.hash_model import WORDS

Kind = Any
"""A column: "text", "place" (a small whole number), "list", a list of values to pick from, or a
mapping of columns.
"""

_TEXT_METHODS = frozenset(dir(str)) - {"index", "count"}
_PLACES = re.compile(
    r"(^|_)(label|gold|idx|index|answer_idx|correct|target|answer)(s|_idx|_index|_id)?$",
    re.I,
)
_LISTS = re.compile(
    r"(choices|options|endings|answers|candidates|distractors|list)$", re.I
)


def columns_of(config: Any) -> dict[str, Kind]:
    """The columns that a task's settings name, with their kinds."""
    columns: dict[str, Kind] = {}
    shots = config.fewshot_config if isinstance(config.fewshot_config, dict) else {}
    has_choices = isinstance(config.doc_to_choice, list | dict)
    sources = [
        config.doc_to_text,
        config.doc_to_target,
        config.doc_to_choice,
        config.description,
        config.gen_prefix,
    ]
    for source in [*sources, *shots.values()]:
        if isinstance(source, str) and "{" in source:
            _from_template(source, columns)
    for role in ("doc_to_text", "doc_to_target", "doc_to_choice"):
        name = getattr(config, role)
        if isinstance(name, str) and name and "{" not in name and "\n" not in name:
            kind: Kind = (
                "text"
                if role == "doc_to_text"
                else "list"
                if role == "doc_to_choice"
                else "text"
            )
            if role == "doc_to_target" and (
                has_choices or config.doc_to_choice is not None
            ):
                kind = "place"
            columns.setdefault(name, kind)
    return columns


def _from_template(source: str, columns: dict[str, Kind]) -> None:
    try:
        tree = Environment().parse(source)
    except TemplateError:
        return
    bound = {node.name for node in tree.find_all(nodes.Name) if node.ctx == "store"}
    for node in tree.find_all(
        (nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Call, nodes.For)
    ):
        if (
            isinstance(node, nodes.Name)
            and node.name not in bound
            and node.name not in ("range", "loop", "enumerate")
        ):
            columns.setdefault(node.name, "text")
        elif isinstance(node, nodes.For) and isinstance(node.iter, nodes.Name):
            columns[node.iter.name] = "list"
        elif isinstance(node, nodes.Call):
            _from_call(node, columns)
        elif isinstance(node, nodes.Getattr | nodes.Getitem):
            _from_access(node, columns)


def _from_call(node: nodes.Call, columns: dict[str, Kind]) -> None:
    """`['A', 'B'].index(answer)`: the column is one of the list; `choices.index(answer)`: choices
    is a list.
    """
    method = node.node
    if not isinstance(method, nodes.Getattr) or method.attr != "index":
        return
    if (
        isinstance(method.node, nodes.List)
        and node.args
        and isinstance(node.args[0], nodes.Name)
    ):
        columns[node.args[0].name] = [item.as_const() for item in method.node.items]
    elif isinstance(method.node, nodes.Name):
        columns[method.node.name] = "list"


def _from_access(
    node: nodes.Getattr | nodes.Getitem, column_kinds: dict[str, Kind]
) -> None:
    owner = node.node
    if not isinstance(owner, nodes.Name):
        return
    if isinstance(node, nodes.Getattr):
        if node.attr in _TEXT_METHODS or node.attr == "index":
            return
        key: Any = node.attr
    elif isinstance(node.arg, nodes.Const):
        key = node.arg.value
    elif isinstance(node.arg, nodes.Name):
        column_kinds[owner.name] = "list"
        column_kinds[node.arg.name] = "place"
        return
    else:
        return
    if isinstance(key, int):
        if column_kinds.get(owner.name) in (None, "text"):
            column_kinds[owner.name] = "list"
    elif isinstance(key, str):
        nested = column_kinds.get(owner.name)
        columns = nested if isinstance(nested, dict) else {}
        columns.setdefault(key, guessed(key))
        column_kinds[owner.name] = columns


def guessed(name: str) -> Kind:
    """A kind by a column's name."""
    if _LISTS.search(name) or name in ("text", "label"):
        return "list"
    return "place" if _PLACES.search(name) else "text"


def row(columns: dict[str, Kind], chance: random.Random, number: int) -> dict[str, Any]:
    """One row of such columns."""
    return {name: _value(name, kind, chance, number) for name, kind in columns.items()}


def _value(name: str, kind: Kind, chance: random.Random, number: int) -> Any:
    if isinstance(kind, dict):
        return row(kind, chance, number)
    if isinstance(kind, list):
        return chance.choice(kind)
    if kind == "place":
        return chance.randrange(2)
    if kind == "digits":
        return str(chance.randrange(2))
    if kind == "letter":
        return chance.choice("ABCD")
    if kind == "list":
        return (
            ["A", "B", "C", "D"]
            if name == "label"
            else [_text(chance) for _ in range(4)]
        )
    if kind == "places":
        return [chance.randrange(2) for _ in range(4)]
    return f"{_text(chance)} {number}"


def _text(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 5)))


Try = Callable[[dict[str, Kind]], None]
_MISSING = re.compile(r"(?:KeyError: '([^']+)'|'(\w+)' is undefined)")
_OTHERS: tuple[Kind, ...] = ("place", "list", "letter", "digits", "text", "places")


def settle(
    columns: dict[str, Kind], attempt: Try, values: list[str], tries: int = 30
) -> dict[str, Kind] | None:
    """Columns with which `attempt` raises nothing, None where none are found in time.

    values: texts that the task's Python compares columns with, tried where no row is left.
    """
    columns = columns or {"id": "text"}
    seen: set[str] = set()
    for _ in range(tries):
        error = _error(attempt, columns)
        if error is None:
            return columns
        seen.add(_shape(error))
        missing = next((name for name in _names(error) if name not in columns), None)
        if missing is not None:
            columns = {**columns, missing: guessed(missing)}
            continue
        better = _change_column(
            columns, attempt, seen, values if "no rows" in error else []
        )
        if better is None:
            return None
        columns = better
    return None


def _change_column(
    columns: dict[str, Kind], attempt: Try, seen: set[str], values: list[str]
) -> dict[str, Kind] | None:
    """One column of another kind, with which the attempt fails otherwise than ever before, or not
    at all.
    """
    kinds: list[Kind] = [[value] for value in values] if values else list(_OTHERS)
    further = None
    for name in columns:
        for kind in kinds:
            if kind == columns[name]:
                continue
            candidate = {**columns, name: kind}
            error = _error(attempt, candidate)
            if error is None:
                return candidate
            if further is None and _shape(error) not in seen:
                further = candidate
    return further


def _error(attempt: Try, columns: dict[str, Kind]) -> str | None:
    try:
        attempt(columns)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _shape(error: str) -> str:
    """An error without the values in it."""
    words = "|".join(WORDS)
    return re.sub(rf"\b(?:{words})\b|\d+", "", error)[:160].replace(" ", "")


def _names(error: str) -> Iterator[str]:
    for match in _MISSING.finditer(error):
        yield next(group for group in match.groups() if group)


def constants(function: Any, depth: int = 0) -> list[str]:
    """String constants of a function, its closure and its bound arguments."""
    if isinstance(function, partial):
        bound = [*function.args, *function.keywords.values()]
        return [
            argument for argument in bound if isinstance(argument, str)
        ] + constants(function.func, depth)
    code = getattr(function, "__code__", None)
    if code is None or depth > 2:
        return []
    texts = [constant for constant in code.co_consts if isinstance(constant, str)]
    for inner in code.co_consts:
        if hasattr(inner, "co_consts"):
            texts += [
                constant for constant in inner.co_consts if isinstance(constant, str)
            ]
    for cell in getattr(function, "__closure__", None) or ():
        value = cell.cell_contents
        texts += [value] if isinstance(value, str) else constants(value, depth + 1)
    return list(dict.fromkeys(text for text in texts if 0 < len(text) < 60))
