"""The backends of this package by provider name, as `built_in.toml` states them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

_ROWS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
BUILT_IN: dict[str, str] = {name: row["at"] for name, row in _ROWS.items()}
OPEN_ARGUMENTS = frozenset(
    name for name, row in _ROWS.items() if "open_arguments" in row
)
"""Backends that pass their arguments to another class, where they may mean anything."""
EXTRAS: dict[str, str] = {
    name: row["extra"] for name, row in _ROWS.items() if "extra" in row
}
"""For backends that need it: the package extra to install."""
KEYS: dict[str, str] = {name: row["key"] for name, row in _ROWS.items() if "key" in row}
"""For backends in code: the variable that holds the API key.

Other keys are in the table of providers.
"""
EXAMPLES: dict[str, tuple[str, str]] = {
    name: (row["example"], row["what"]) for name, row in _ROWS.items()
}
"""For each backend, an example of a model name and what that is."""
