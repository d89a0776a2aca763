"""Renaming or removing something public: it works for one more release and warns.

For names in files, settings and command-line options: `warn_old_name`, which warns once per
process. For functions and classes in Python: `@deprecated`. For parameters:
`@renamed_parameter`. docs/stability.md says what is public and for how long.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from evalwright.core.samples import Score

Deprecated = TypeVar("Deprecated", bound=Callable[..., Any])
"""A function or a class."""

CALLER = 2
"""The `stacklevel` that makes a warning point at the caller of the deprecated function."""

_warned: set[str] = set()


class OldName(FutureWarning):
    """Warning that a setting or name has been renamed."""


def warn_old_name(old: str, new: str, where: str = "") -> None:
    """Warn that a name has been renamed, once per process.

    Args:
        old: the name that was used.
        new: the name to use.
        where: what the name belongs to, such as "The setting" or "The scorer option".
    """
    message = (
        f"{where or 'The name'} '{old}' is now called '{new}'. The old name is read for"
        " one more release."
    )
    if message in _warned:
        return
    _warned.add(message)
    warnings.warn(OldName(message), stacklevel=3)


def Undecided(explanation: str = "") -> Score:
    """Deprecated: what scorers returned where their rules could not tell.

    Counts as wrong and unsure. Return `Score(value, unsure=why)` instead.

    Args:
        explanation: why the rules could not tell.

    Returns:
        A score of 0 with the reason in `unsure`.
    """
    from evalwright.core.samples import UNREADABLE, Score

    warn_old_name("Undecided(why)", "Score(value, unsure=why)", "What a scorer gives,")
    return Score(
        0.0, UNREADABLE, explanation, unsure=explanation or "the scorer could not tell"
    )


def deprecated(*, since: str, use_instead: str) -> Callable[[Deprecated], Deprecated]:
    """Mark a function, a method or a class as deprecated: it still works, but warns.

    A function warns when it is called, a class when it is instantiated or derived from. The warning
    points at the line of the caller. The docstring gets a note, which the reference shows.

    Args:
        since: the version that deprecates it, such as "0.2.0".
        use_instead: what to write in its place, such as "`evaluate`".

    Returns:
        The decorator.

    Example::

        @deprecated(since="0.2.0", use_instead="`evaluate`")
        def run_tasks(tasks, models):
            return evaluate(tasks, models)
    """

    def decorate(public: Any) -> Any:
        message = f"`{public.__qualname__}` is deprecated since {since}: use {use_instead} instead."
        note = f".. deprecated:: {since}\n   Use {use_instead} instead."
        public.__doc__ = f"{inspect.cleandoc(public.__doc__ or '')}\n\n{note}".lstrip()
        if isinstance(public, type):
            _warn_on_use(public, message)
            return public
        return _with_warning(public, message)

    return decorate


def _with_warning(function: Any, message: str) -> Any:
    """Wrap a function so that it warns first.

    An `async def` stays one, because registries check.
    """

    @functools.wraps(function)
    async def warn_and_await(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(message, DeprecationWarning, stacklevel=CALLER)
        return await function(*args, **kwargs)

    @functools.wraps(function)
    def warn_and_call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(message, DeprecationWarning, stacklevel=CALLER)
        return function(*args, **kwargs)

    wrapper = warn_and_await if inspect.iscoroutinefunction(function) else warn_and_call
    vars(wrapper)["__deprecated__"] = message
    return wrapper


def _warn_on_use(cls: Any, message: str) -> None:
    """Make a class warn when it is instantiated or derived from; its subclasses do not warn."""
    initialise = cls.__init__
    initialise_subclass = cls.__init_subclass__

    @functools.wraps(initialise)
    def warn_and_initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is cls:
            warnings.warn(message, DeprecationWarning, stacklevel=CALLER)
        initialise(self, *args, **kwargs)

    def warn_and_derive(subclass: Any, /, **kwargs: Any) -> None:
        if cls in subclass.__bases__:
            warnings.warn(message, DeprecationWarning, stacklevel=CALLER)
        initialise_subclass.__func__(subclass, **kwargs)

    cls.__init__ = warn_and_initialise
    cls.__init_subclass__ = classmethod(warn_and_derive)
    cls.__deprecated__ = message


def renamed_parameter(
    old: str, new: str, *, since: str
) -> Callable[[Deprecated], Deprecated]:
    """Let a function still accept a parameter under its old name, with a warning.

    For functions that people call. An option of a scorer, strategy or metric is read from files:
    its old name belongs in the table that reads them, with `warn_old_name`.

    Args:
        old: the name that callers may still write.
        new: the parameter's current name.
        since: the version that renames it, such as "0.2.0".

    Returns:
        The decorator.

    Raises:
        TypeError: `new` is not a parameter of the function, or `old` still is one; when decorating.
        ConfigurationError: a call sets both names; when calling.

    Example::

        @renamed_parameter("undecided", "unsure", since="0.2.0")
        def rescore(run, *, unsure=None): ...
    """

    def decorate(function: Any) -> Any:
        signature = inspect.signature(function)
        if new not in signature.parameters or old in signature.parameters:
            raise TypeError(
                f"`{function.__qualname__}` must have the parameter '{new}', "
                f"and none called '{old}'."
            )
        message = (
            f"The parameter '{old}' of `{function.__qualname__}` is deprecated since {since}: "
            f"use '{new}' instead."
        )

        def renamed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
            remaining = {name: kwargs[name] for name in kwargs if name != old}
            if new in signature.bind_partial(*args, **remaining).arguments:
                from evalwright.core.errors import ConfigurationError

                raise ConfigurationError(
                    f"'{old}' is the old name of '{new}', and both are set. Leave '{old}' out."
                )
            return {**remaining, new: kwargs[old]}

        @functools.wraps(function)
        async def rename_and_await(*args: Any, **kwargs: Any) -> Any:
            if old in kwargs:
                warnings.warn(message, DeprecationWarning, stacklevel=CALLER)
                kwargs = renamed(args, kwargs)
            return await function(*args, **kwargs)

        @functools.wraps(function)
        def rename_and_call(*args: Any, **kwargs: Any) -> Any:
            if old in kwargs:
                warnings.warn(message, DeprecationWarning, stacklevel=CALLER)
                kwargs = renamed(args, kwargs)
            return function(*args, **kwargs)

        is_async = inspect.iscoroutinefunction(function)
        return rename_and_await if is_async else rename_and_call

    return decorate
