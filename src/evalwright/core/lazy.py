"""What is made on first use, which keeps `import` fast: modules, regular expressions."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast


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


def lazy_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled when one of its methods is first used.

    Compiling hundreds of them takes longer than importing their modules, and most commands use few.
    A pattern that cannot be compiled raises re.error then. Functions of `re` do not take it.

    Args:
        source: the pattern.
        flags: as in `re.compile`.
    """
    return cast("re.Pattern[str]", _LazyPattern(source, flags))


class _LazyPattern:
    """Becomes like a compiled pattern by copying its methods at the first use of one."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        # Only called for what is not there yet; later uses find the copied method.
        if name.startswith("__"):
            raise AttributeError(name)
        member = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, member)
        return member
