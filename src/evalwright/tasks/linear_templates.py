"""Decides which templates take work in proportion to the row that they render, whatever is in it.

Everything that is not on these lists (assignments, macros, `*`, `**`, `%`, nested loops, filters
that pad) may grow without bounds, and is rendered in a process with limits. What is on them grows
by a constant factor at most.
"""

from __future__ import annotations

from typing import Any

from jinja2 import nodes

LONGEST = 20_000
"""Longest template, in characters, that is even parsed outside of that process."""
_STATEMENTS = (nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For)
_EXPRESSIONS = (
    nodes.Name,
    nodes.Const,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.CondExpr,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Neg,
    nodes.Add,
    nodes.Sub,
    nodes.Concat,
    nodes.List,
    nodes.Tuple,
    nodes.Test,
    nodes.Filter,
    nodes.Call,
    nodes.Keyword,
)
_FILTERS = frozenset(
    [
        "abs",
        "capitalize",
        "count",
        "d",
        "default",
        "first",
        "float",
        "int",
        "last",
        "length",
        "lower",
        "required",
        "trim",
        "truncate",
        "upper",
        "first_part",
        "last_part",
        "masked_words",
        "shuffled_sentences",
        "without_sentences",
    ]
)
_GROWING_FILTERS = frozenset(("join", "list", "map", "replace", "string"))
_METHODS = frozenset(
    [
        "capitalize",
        "count",
        "endswith",
        "find",
        "get",
        "index",
        "lower",
        "lstrip",
        "rstrip",
        "startswith",
        "strip",
        "title",
        "upper",
    ]
)
_GROWING_METHODS = frozenset(
    ("items", "join", "keys", "replace", "rsplit", "split", "splitlines", "values")
)
_MAPPED = _FILTERS | {"replace"}
_MOST_GROWING = 2
_LONGEST_CONSTANT = 16
"""Largest constant factor of one step: two such steps make a text at most 256 times as long."""


def is_linear(tree: nodes.Template) -> bool:
    """Return whether a parsed template's work is linear in its row."""
    for node in tree.find_all(nodes.Node):
        if not isinstance(node, _STATEMENTS + _EXPRESSIONS):
            return False
    if (
        sum(_grows(node) for node in tree.find_all((nodes.Filter, nodes.Call)))
        > _MOST_GROWING
    ):
        return False
    if not all(_allowed(node) for node in tree.find_all((nodes.Filter, nodes.Call))):
        return False
    return all(_is_simple_loop(loop) for loop in tree.find_all(nodes.For))


def _arguments(node: Any) -> list[Any]:
    """Return the values of a call's arguments; None for one that is not a constant."""
    argument_nodes = [*node.args, *(keyword.value for keyword in node.kwargs)]
    constants = [
        argument.value if isinstance(argument, nodes.Const) else None
        for argument in argument_nodes
    ]
    return [
        *constants,
        *(None for dynamic in (node.dyn_args, node.dyn_kwargs) if dynamic is not None),
    ]


def _shrinks(values: list[Any]) -> bool:
    """Return whether `replace` with these arguments cannot make a text longer."""
    texts = values[:2]
    return (
        len(texts) == 2
        and all(isinstance(text, str) for text in texts)
        and 0 < len(texts[0]) >= len(texts[1])
    )


def _name_of(node: Any) -> str:
    """Return the name of a filter or method; of a function, its name with brackets."""
    if isinstance(node, nodes.Filter):
        return str(node.name)
    called = node.node
    if isinstance(called, nodes.Getattr):
        return str(called.attr)
    return f"{called.name}()" if isinstance(called, nodes.Name) else ""


def _grows(node: Any) -> bool:
    name = _name_of(node)
    growing = _GROWING_FILTERS if isinstance(node, nodes.Filter) else _GROWING_METHODS
    values = _arguments(node)
    if name == "map":
        return not (
            values[:1] == ["trim"]
            or (values[:1] == ["replace"] and _shrinks(values[1:]))
        )
    return name in growing and not (name == "replace" and _shrinks(values))


def _allowed(node: Any) -> bool:
    name = _name_of(node)
    values = _arguments(node)
    if isinstance(node, nodes.Call) and name == "range()":
        # As often as something has elements.
        return (
            len(node.args) == 1
            and isinstance(node.args[0], nodes.Filter)
            and node.args[0].name in ("length", "count")
        )
    if isinstance(node, nodes.Call) and name == "zip()":
        return node.dyn_args is None and node.dyn_kwargs is None
    if name in (_FILTERS if isinstance(node, nodes.Filter) else _METHODS):
        return name != "truncate" or all(
            isinstance(constant, int) for constant in values
        )
    if name == "map" and values[:1] and values[0] not in _MAPPED:
        return False
    growing = _GROWING_FILTERS if isinstance(node, nodes.Filter) else _GROWING_METHODS
    if name == "join" and isinstance(node, nodes.Call):
        joint: Any = node.node
        return (
            isinstance(joint.node, nodes.Const)
            and len(str(joint.node.value)) <= _LONGEST_CONSTANT
        )
    # An argument that is not a constant may be as long as the row.
    return name in growing and all(
        constant is not None and len(str(constant)) <= _LONGEST_CONSTANT
        for constant in values
    )


def _is_simple_loop(loop: nodes.For) -> bool:
    """Return whether a loop has no loop inside and only puts out paths.

    Anything else in it must be about the loop's own variable.
    """
    loop_names = {name.name for name in loop.target.find_all(nodes.Name)} | {"loop"}
    if isinstance(loop.target, nodes.Name):
        loop_names.add(loop.target.name)
    if loop.recursive:
        return False
    for statement in (*loop.body, *loop.else_, *([loop.test] if loop.test else [])):
        if (
            isinstance(statement, nodes.For)
            or next(iter(statement.find_all(nodes.For)), None) is not None
        ):
            return False
        for part in (statement, *statement.find_all(nodes.Expr)):
            if not isinstance(part, nodes.Expr) or isinstance(
                part, (nodes.Name, nodes.Const, nodes.Getattr, nodes.Getitem)
            ):
                continue
            if not {name.name for name in part.find_all(nodes.Name)} <= loop_names:
                return False
    return True
