"""Lazy package attributes: a module is imported on first use, which keeps `import` fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Create the `__getattr__` and `__dir__` of a package whose modules load on first use.

    Args:
        package: its import name.
        names: for each module of the package, the names it provides, separated by spaces.

    Returns:
        The two functions, for the package to assign.
    """
    homes = {
        name: module for module, listed in names.items() for name in listed.split()
    }
    namespace = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = getattr(import_module(f"{package}.{homes[name]}"), name)
        return namespace[name]

    return get, lambda: sorted({*namespace, *homes})
