"""Presets: arguments of local models for kinds of machines, as data in `presets.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName

_OPEN_VALUES = (None, "auto", False)
"""Values with which the user leaves an argument open."""


@cache
def presets() -> Mapping[str, Mapping[str, Any]]:
    """Load all presets by name: `title`, and a table of arguments for each backend."""
    text = (
        files("evalwright.models.local.hardware")
        .joinpath("presets.toml")
        .read_text(encoding="utf-8")
    )
    return tomllib.loads(text)


def with_preset(
    name: Any, backend: str, arguments: Mapping[str, Any], longest: int | None = None
) -> dict[str, Any]:
    """Fill arguments that are left open (None, "auto", False) from a preset.

    Args:
        name: the preset; None for none.
        backend: the model's backend.
        arguments: the user's arguments.
        longest: the model's context length; the preset's max_length is not set above it.

    Raises:
        UnknownName: there is no such preset.
        ConfigurationError: it has nothing for this backend.
    """
    if name is None:
        return dict(arguments)
    all_presets = presets()
    if not isinstance(name, str) or name not in all_presets:
        raise UnknownName(
            "preset", str(name), list(all_presets), f"Known: {', '.join(all_presets)}."
        )
    settings = all_presets[name].get(backend)
    if settings is None:
        fitting = [
            preset for preset, backends in all_presets.items() if backend in backends
        ]
        raise ConfigurationError(
            f"The preset '{name}' has no settings for {backend}/ models; use"
            f" {', '.join(fitting)}."
        )
    filled = dict(arguments)
    for key, value in settings.items():
        if filled.get(key) in _OPEN_VALUES:
            filled[key] = value
            if key == "max_length" and longest is not None and longest <= value:
                filled[key] = arguments.get(key)
    return filled
