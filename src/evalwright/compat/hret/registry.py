"""Classes by their names: HRET's own, and those that a person registers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from evalwright.compat.hret import settings
from evalwright.core.errors import UnknownName


class Unknown(UnknownName, ValueError):
    """A name that nothing carries, of HRET's kind of error. Says the closest names, and all."""

    def __init__(self, kind: str, name: str, known: Collection[str]) -> None:
        super().__init__(kind, str(name), known, f"Known: {', '.join(known) or 'none'}.")


class Classes(dict[str, type[Any]]):
    """A table of one kind of class. what: of which kind. missing: HRET's sentence. needs: the methods of which a class has at least one."""

    def __init__(self, what: str, missing: str, needs: Sequence[str] = ()) -> None:
        super().__init__()
        self.what, self.missing, self.needs = what, missing, needs

    def register(self, name: str) -> Callable[[type[Any]], type[Any]]:
        """A decorator that gives a class a name. Raises ValueError for a name that is taken, TypeError for a class that lacks its method."""

        def taken(cls: type[Any]) -> type[Any]:
            if name in self:
                raise ValueError(f"{self.what.capitalize()} '{name}' already registered.")
            if self.needs and not any(callable(getattr(cls, method, None)) for method in self.needs):
                methods = " or ".join(f"{method}(...)" for method in self.needs)
                raise TypeError(f"The {self.what} '{name}' needs a method {methods}.")
            self[name] = cls
            return cls

        return taken

    def made(self, name: str, **given: Any) -> Any:
        """An instance of the class of that name. Raises ValueError for an unknown one: published in HRET's words."""
        if name in self:
            return self[name](**given)
        if settings.scoring() == "published":
            raise ValueError(self.missing.format(name=name, known=list(self)))
        raise Unknown(self.what, name, self)


def check_parameters(of: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise Unknown for the first parameter that there is not. of: what takes them."""
    for name in given:
        if name not in known:
            raise Unknown(f"parameter of {of}", name, known)
