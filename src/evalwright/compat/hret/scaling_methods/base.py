"""Scaling methods by name, and what a plug-in of a user derives from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SCALING_REGISTRY: dict[str, type[Any]] = {}
"""The classes of scaling methods by their names."""


class BaseScalingMethod:
    """How several replies become one: `apply(data)` returns the samples with `prediction`, asking `self.model`."""

    def __init__(self, model: Any = None, use_cot: bool = False, **kwargs: Any) -> None:
        self.model = model
        self.use_cot = use_cot
        self.kwargs = kwargs

    def apply(self, data: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The samples with their predictions."""
        raise NotImplementedError("Subclasses must implement apply().")

    def set_params(self, **kwargs: Any) -> None:
        """Change parameters."""
        self.kwargs.update(kwargs)


def register_scaling_method(name: str) -> Callable[[type[Any]], type[Any]]:
    """A decorator that gives a scaling method a name. Raises ValueError for a name that is taken."""

    def register(cls: type[Any]) -> type[Any]:
        if name in SCALING_REGISTRY:
            raise ValueError(f"Scaling method '{name}' already registered.")
        if not callable(getattr(cls, "apply", None)):
            raise TypeError(f"The scaling method '{name}' needs a method apply(data).")
        SCALING_REGISTRY[name] = cls
        return cls

    return register


def load_scaling_method(name: str, **kwargs: Any) -> Any:
    """An instance of the scaling method of that name. Raises ValueError for an unknown one."""
    if name not in SCALING_REGISTRY:
        raise ValueError(f"Unknown scaling method: {name}. Available: {list(SCALING_REGISTRY)}")
    return SCALING_REGISTRY[name](**kwargs)
