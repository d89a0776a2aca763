"""A table of named functions with options, shared by scorers, strategies and metrics.

A function is registered under a name; its keyword-only parameters are its options, which a task
file may set. A function with the wrong signature is rejected at registration, not when it is
called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from evalwright.core.errors import ConfigurationError, check_known
from evalwright.core.installed import points_of

Function = TypeVar("Function", bound=Callable[..., Any])


class Registry(Generic[Function]):
    """Functions of one kind, such as scorers, by name.

    Functions may also come from the entry point group `evalwright.<plural>`.

    Args:
        kind: what the functions are called in messages, such as "scorer".
        built_in: maps names to "module:function", imported on first use.
        check: called with name and function; raises if the signature is wrong.
        plural: plural of the kind; by default `kind` with an "s".
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
        """Add a function under a name. Raises ConfigurationError if its signature is wrong."""
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
        """Raise ConfigurationError unless the name is a string.

        A decorator used without brackets passes the function as the name.
        """
        if not isinstance(name, str):
            raise ConfigurationError(
                f'A {self.kind} is registered under a name: write @{self.kind}("name")'
                " above the function."
            )

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(
            {*self._found, *self._built_in, *(point.name for point in self._points())}
        )

    def is_built_in(self, name: str) -> bool:
        """Whether the name is built in and has not been registered again."""
        return name in self._built_in and name not in self._registered

    def get(self, name: str) -> Function:
        """Return the function of that name; raises UnknownName with the closest ones."""
        if name not in self._found:
            self._found[name] = self._load(name)
        return self._found[name]

    def options(self, name: str) -> dict[str, inspect.Parameter]:
        """Return the options of a function: its keyword-only parameters, by name."""
        parameters = inspect.signature(self.get(name)).parameters
        return {
            key: parameter
            for key, parameter in parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY
        }

    def check_options(self, name: str, options: Mapping[str, Any]) -> None:
        """Raise an error for an unknown option or a missing required one."""
        parameters = self.options(name)
        hint = "Known: " if parameters else "It takes no options"
        check_known(f"option of the {self.kind} '{name}'", options, parameters, hint)
        missing = [
            key
            for key, parameter in parameters.items()
            if parameter.default is parameter.empty and key not in options
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
        return points_of(f"evalwright.{self._plural}")


def positional_count(function: Callable[..., Any]) -> int:
    """Count the positional parameters of a function."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        parameter.kind in kinds
        for parameter in inspect.signature(function).parameters.values()
    )
