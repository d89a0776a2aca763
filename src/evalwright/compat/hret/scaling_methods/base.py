"""Scaling methods by name, and what a plug-in of a user derives from."""

from __future__ import annotations

from typing import Any

from evalwright.compat.hret.settings import Classes

SCALING_REGISTRY = Classes("scaling method", "Unknown scaling method: {name}. Available: {known}", ("apply",))
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


register_scaling_method = SCALING_REGISTRY.register
load_scaling_method = SCALING_REGISTRY.made
