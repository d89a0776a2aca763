"""What `compat` imports from inside: everything but `evalwright`, `evalwright.extend` with
its `acting`, `evalwright.statistics` and itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src" / "evalwright"
PUBLIC_MODULES = {
    *("evalwright", "evalwright.extend", "evalwright.extend.acting"),
    "evalwright.statistics",
}


@cache
def is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


def attributes_of(nodes: list[ast.AST], alias: str) -> set[str]:
    """The attributes of a module that a file uses."""
    return {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == alias
    }


def imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name) of all that a file imports from the package; of a whole module, the
    attributes that it uses.
    """
    nodes = list(ast.walk(tree))
    for node in nodes:
        if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
            continue
        if node.module.partition(".")[0] != "evalwright":
            continue
        for alias in node.names:
            imported_module = f"{node.module}.{alias.name}"
            if is_module(imported_module):
                yield from (
                    (imported_module, name)
                    for name in attributes_of(nodes, alias.asname or alias.name)
                )
            else:
                yield node.module, alias.name


def inside_names() -> list[str]:
    """A line "SYSTEM MODULE NAME" for each name that is not public."""
    lines = set()
    for path in (SOURCE / "compat").rglob("*.py"):
        system = path.relative_to(SOURCE / "compat").parts[0].removesuffix(".py")
        for module, name in imported_names(ast.parse(path.read_text(encoding="utf-8"))):
            if module not in PUBLIC_MODULES and not module.startswith(
                "evalwright.compat"
            ):
                lines.add(f"{system} {module.removeprefix('evalwright.')} {name}")
    return sorted(lines)
