"""What every part asks: which arithmetic counts where a call does not say, and classes by their
names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, cast

from evalwright.extend import UnknownName

Scoring = Literal["published", "corrected"]
"""HRET's own arithmetic, faults included, or ours."""

Row = dict[str, Any]
"""A sample as HRET has it."""
Rows = list[Row]
Given = Mapping[str, Any]
"""A row, or parameters by their names, to be read."""

_chosen: list[Scoring] = ["corrected"]
_of_call: ContextVar[Scoring | None] = ContextVar("hret_scoring", default=None)


def scoring() -> Scoring:
    """That of the call that is running, else what `set_scoring` chose last; at first
    `corrected`.
    """
    return _of_call.get() or _chosen[0]


def is_published() -> bool:
    """Whether HRET's own arithmetic counts."""
    return scoring() == "published"


def set_scoring(value: str) -> None:
    """Choose for every later call that names none. Raises ValueError for anything but the two."""
    _chosen[0] = _checked(value)


@contextmanager
def using(value: str | None) -> Iterator[Scoring]:
    """Choose for what is called inside; None changes nothing.

    Raises ValueError for anything but the two.
    """
    token = _of_call.set(scoring() if value is None else _checked(value))
    try:
        yield scoring()
    finally:
        _of_call.reset(token)


def _checked(value: str) -> Scoring:
    if value not in ("published", "corrected"):
        raise ValueError(f"scoring is 'published' or 'corrected', not {value!r}.")
    return cast(Scoring, value)


class Unknown(UnknownName, ValueError):
    """A name that nothing carries, of HRET's kind of error. Says the closest names, and all."""

    def __init__(self, kind: str, name: str, known_names: Collection[str]) -> None:
        super().__init__(
            kind, str(name), known_names, f"Known: {', '.join(known_names) or 'none'}."
        )


class UnknownParameter(Unknown, TypeError):
    """A parameter that there is not; a TypeError too, as Python's own for an argument that a class
    does not take.
    """


def check_parameters(
    of: str, names: Iterable[str], known_names: Collection[str]
) -> None:
    """Raise UnknownParameter for the first parameter that there is not. of: what takes them."""
    for name in names:
        if name not in known_names:
            raise UnknownParameter(f"parameter of {of}", name, known_names)


class Classes(dict[str, type[Any]]):
    """HRET's own classes of one kind and those that a person registers. what: the kind. missing:
    HRET's sentence. needs: the methods of which a class has at least one. replaced: published, a
    second class of one name takes the place of the first.
    """

    def __init__(
        self,
        what: str,
        missing: str,
        needs: Sequence[str] = (),
        *,
        replaced: bool = False,
    ) -> None:
        super().__init__()
        self.what = what
        self.missing = missing
        self.needs = needs
        self.replaced = replaced

    def register(self, name: str) -> Callable[[type[Any]], type[Any]]:
        """A decorator that gives a class a name.

        Raises ValueError for a name that is taken, TypeError for a class that lacks its method.
        """

        def register_class(cls: type[Any]) -> type[Any]:
            if name in self and not (self.replaced and is_published()):
                raise ValueError(
                    f"{self.what.capitalize()} '{name}' already registered."
                )
            if self.needs and not any(
                callable(getattr(cls, method, None)) for method in self.needs
            ):
                methods = " or ".join(f"{method}(...)" for method in self.needs)
                raise TypeError(f"The {self.what} '{name}' needs a method {methods}.")
            self[name] = cls
            return cls

        return register_class

    def register_own(self, name: str) -> Callable[[type[Any]], type[Any]]:
        """As `register`, for a class of this package, which keeps its name."""

        def register_class(cls: type[Any]) -> type[Any]:
            cls.name = name
            return self.register(name)(cls)

        return register_class

    def make(self, name: str, **arguments: Any) -> Any:
        """An instance of the class of that name.

        Raises ValueError for an unknown one: published in HRET's words.
        """
        if name in self:
            return self[name](**arguments)
        if is_published():
            raise ValueError(self.missing.format(name=name, known=list(self)))
        raise Unknown(self.what, name, self)
