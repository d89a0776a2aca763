"""A table of named functions with options: what scorers, strategies and metrics have in common.

A function is registered under a name; its keyword-only parameters are its options, as a task file
may set them. What does not fit is refused at registration, not at call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from evalwright.core.errors import ConfigurationError, check_known

Function = TypeVar("Function", bound=Callable[..., Any])


class Registry(Generic[Function]):
    """Names of one kind ("scorer").

    `built_in` maps names to "module:function", imported when first asked for.

    Functions may also come from the entry point group `evalwright.<plural>` (default: the kind with
    an "s").
    """

    def __init__(
        self,
        kind: str,
        built_in: Mapping[str, str],
        check: Callable[[str, Function], None],
        plural: str = "",
    ) -> None:
        self.kind = kind
        self._plural = plural or f"{kind}s"
        self._built_in = dict(built_in)
        self._check = check
        self._found: dict[str, Function] = {}
        self._registered: set[str] = set()

    def register(self, name: str, function: Function) -> Function:
        """Add a function; raises ConfigurationError where its signature does not fit."""
        self.check_name(name)
        if not name or name != name.strip():
            raise ConfigurationError(
                f"A {self.kind} needs a name that does not begin or end with a space,"
                f" not '{name}'."
            )
        self._check(name, function)
        self._found[name] = function
        self._registered.add(name)
        return function

    def check_name(self, name: object) -> None:
        """Raise ConfigurationError for what is no name, as a decorator without brackets has the
        function there.
        """
        if not isinstance(name, str):
            raise ConfigurationError(
                f'A {self.kind} is registered under a name: write @{self.kind}("name")'
                " above the function."
            )

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(
            {*self._found, *self._built_in, *(point.name for point in self._points())}
        )

    def is_built_in(self, name: str) -> bool:
        """Whether the name is the package's own, and nobody has registered another function under
        it.
        """
        return name in self._built_in and name not in self._registered

    def get(self, name: str) -> Function:
        """The function of that name; raises UnknownName with the closest ones."""
        if name not in self._found:
            self._found[name] = self._load(name)
        return self._found[name]

    def options(self, name: str) -> dict[str, inspect.Parameter]:
        """The options that a function takes, by name."""
        parameters = inspect.signature(self.get(name)).parameters
        return {
            key: value
            for key, value in parameters.items()
            if value.kind is value.KEYWORD_ONLY
        }

    def check_options(self, name: str, given: Mapping[str, Any]) -> None:
        """Raise where `given` has an option that the function does not take, or lacks one that it
        must have.
        """
        known = self.options(name)
        hint = "Known: " if known else "It takes no options"
        check_known(f"option of the {self.kind} '{name}'", given, known, hint)
        missing = [
            key
            for key, value in known.items()
            if value.default is value.empty and key not in given
        ]
        if missing:
            raise ConfigurationError(
                f"The {self.kind} '{name}' needs the option '{missing[0]}'."
            )

    def _load(self, name: str) -> Function:
        target = self._built_in.get(name)
        if target is not None:
            function: Function = resolve_name(target)
        else:
            check_known(self.kind, [name], self.names())
            function = next(
                point.load() for point in self._points() if point.name == name
            )
        self._check(name, function)
        return function

    def _points(self) -> Any:
        return entry_points(group=f"evalwright.{self._plural}")


def positional_count(function: Callable[..., Any]) -> int:
    """How many positional parameters a function has."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        parameter.kind in kinds
        for parameter in inspect.signature(function).parameters.values()
    )
