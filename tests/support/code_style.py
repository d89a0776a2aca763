"""How code reads, in figures: names that say nothing, density, and places where the formatter is
off.

The figures are there to notice; readers decide.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

EMPTY_NAMES = frozenset(
    [
        "result",
        "results",
        "value",
        "data",
        "item",
        "items",
        "entry",
        "x",
        "place",
        "part",
        "parts",
        "kind",
        "more",
        "what",
        "thing",
        "things",
    ]
)
"""Names of anything."""
VAGUE_NAMES = frozenset(
    [
        "found",
        "made",
        "given",
        "one",
        "said",
        "told",
        "own",
        "rest",
        "other",
        "wanted",
        "whole",
        "known",
        "out",
        "several",
        "bare",
        "asked",
        "shown",
        "held",
        "kept",
        "taken",
        "each",
        "both",
    ]
)
"""Names of how something was got, or that it is one of several, and not of what it is."""
_CODE_TOKENS = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class CodeStyle:
    """The figures of some files: shares of all names that are bound, and tokens on a line of
    code.
    """

    vague: float
    empty: float
    tokens_per_line: float
    unformatted: int


def code_style(
    trees: Mapping[Path, ast.Module], nodes_of: Callable[[ast.Module], list[ast.AST]]
) -> CodeStyle:
    """Measure Python files, each with its tree, of which a function has all nodes."""
    names: list[str] = []
    n_tokens = 0
    n_lines = 0
    unformatted = 0
    for file, tree in trees.items():
        source = file.read_text(encoding="utf-8")
        nodes = nodes_of(tree)
        names += [name.lstrip("_") for name in bound_names(nodes)]
        tokens, lines = _tokens_and_lines(source, nodes)
        n_tokens += tokens
        n_lines += lines
        unformatted += source.count("# fmt: skip")
    return CodeStyle(
        vague=sum(name in VAGUE_NAMES for name in names) / len(names),
        empty=sum(name in EMPTY_NAMES for name in names) / len(names),
        tokens_per_line=n_tokens / n_lines,
        unformatted=unformatted,
    )


def bound_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every name that is assigned, and every parameter."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if isinstance(node, ast.arg):
            yield node.arg


def _tokens_and_lines(source: str, nodes: Iterable[ast.AST]) -> tuple[int, int]:
    """Tokens of code and the lines that they are on, docstrings and comments left out."""
    docstring_lines: set[int] = set()
    for node in nodes:
        if (
            isinstance(node, _DOCUMENTED)
            and ast.get_docstring(node, clean=False) is not None
        ):
            first = node.body[0]
            docstring_lines |= set(
                range(first.lineno, (first.end_lineno or first.lineno) + 1)
            )
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    lines = source.splitlines()
    comment_lines = {
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT
        and lines[token.start[0] - 1].lstrip().startswith("#")
    }
    n_tokens = sum(
        token.type in _CODE_TOKENS and token.start[0] not in docstring_lines
        for token in tokens
    )
    n_lines = sum(
        bool(line.strip())
        and number not in docstring_lines
        and number not in comment_lines
        for number, line in enumerate(lines, 1)
    )
    return n_tokens, n_lines
