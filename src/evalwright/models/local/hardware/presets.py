"""Presets: arguments of local models for kinds of machines, as data in `presets.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName

_OPEN = (None, "auto", False)
"""What an argument is where a person has said nothing of it."""


@cache
def presets() -> Mapping[str, Mapping[str, Any]]:
    """All presets by name: `title`, and a table of arguments for each backend that it is for."""
    text = (
        files("evalwright.models.local.hardware")
        .joinpath("presets.toml")
        .read_text(encoding="utf-8")
    )
    return tomllib.loads(text)


def with_preset(
    name: Any, backend: str, given: Mapping[str, Any], longest: int | None = None
) -> dict[str, Any]:
    """The arguments `given`, those left open (None, "auto", False) filled in from the preset. name
    None: as given.

    longest: the context of the model, above which the preset's max_length is not set. Raises
    UnknownName for another preset, ConfigurationError for one that has nothing for this backend.
    """
    if name is None:
        return dict(given)
    known = presets()
    if not isinstance(name, str) or name not in known:
        raise UnknownName(
            "preset", str(name), list(known), f"Known: {', '.join(known)}."
        )
    settings = known[name].get(backend)
    if settings is None:
        fitting = [each for each, found in known.items() if backend in found]
        raise ConfigurationError(
            f"The preset '{name}' has no settings for {backend}/ models; use"
            f" {', '.join(fitting)}."
        )
    out = dict(given)
    for key, value in settings.items():
        if out.get(key) in _OPEN:
            out[key] = value
            if key == "max_length" and longest is not None and longest <= value:
                out[key] = given.get(key)
    return out
