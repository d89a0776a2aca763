"""Classes by their names: HRET's own, and those that a person registers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from evalwright.compat.hret.rules import current
from evalwright.extend import UnknownName


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


def refuse_parameters(
    of: str, names: Iterable[str], known_names: Collection[str]
) -> None:
    """As `check_parameters`, of parameters that HRET passes over."""
    try:
        check_parameters(of, names, known_names)
    except UnknownParameter as error:
        current().refuse(error)


class Classes(dict[str, type[Any]]):
    """HRET's own classes of one kind and those that a person registers. what: the kind. missing:
    HRET's sentence. needs: the methods of which a class has at least one. replaced: in HRET, a
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
            if name in self:
                duplicate = ValueError(
                    f"{self.what.capitalize()} '{name}' already registered."
                )
                if not self.replaced:
                    raise duplicate
                current().refuse(duplicate)
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

        Raises ValueError for an unknown one, in HRET's words where these are the rules.
        """
        if name in self:
            return self[name](**arguments)
        current().refuse(Unknown(self.what, name, self))
        raise ValueError(self.missing.format(name=name, known=list(self)))
