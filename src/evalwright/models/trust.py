"""What the user trusts from one command to the next: `trust.toml` in their configuration.

    [keys]                                      # keys that may go to other hosts than the provider
    "gateway.example.com" = ["OPENAI_API_KEY"]
    [files]                                     # files that may decide what only the user decides,
    "9f86d081884c7d65..." = "suite.yaml"        # by SHA-256 of their content

The folder is $XDG_CONFIG_HOME/evalwright or ~/.config/evalwright; no other file counts. A relative
$XDG_CONFIG_HOME is ignored, so that no working folder can bring such a file, and a file that other
people may write is refused.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.private import check_ordinary, config_folder


@dataclass(frozen=True, slots=True)
class Trusted:
    """What the user trusts.

    Attributes:
        keys: by host, the variables of keys that may be sent to it.
        files: digests of files that may decide everything.
    """

    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    files: frozenset[str] = frozenset()


def trust_path() -> Path:
    """Return where the file is, whether or not it exists."""
    return config_folder() / "trust.toml"


def trusted() -> Trusted:
    """Read the file; an empty record if there is none.

    Raises:
        ConfigurationError: the file cannot be used.
    """
    path = trust_path()
    try:
        with check_ordinary(path).open("rb") as file:
            state = os.fstat(file.fileno())
            tables = tomllib.load(file)
    except FileNotFoundError:
        return Trusted()
    except (OSError, ValueError) as error:
        reason = (
            error.strerror if isinstance(error, OSError) else f"it is not TOML: {error}"
        )
        raise ConfigurationError(
            f"The trust file '{path}' cannot be read: {reason}."
        ) from None
    if hasattr(os, "getuid") and (
        state.st_uid not in (0, os.getuid()) or state.st_mode & 0o022
    ):
        raise ConfigurationError(
            f"The trust file '{path}' can be changed by other people, so it is not"
            " used: make it yours alone (chmod 600)."
        )
    for key in tables:
        if key not in ("keys", "files"):
            raise UnknownName(
                "table of the trust file", key, ("keys", "files"), f"({path})"
            )
    keys = _table(tables, "keys", path)
    files = _table(tables, "files", path)
    named = {}
    for host, variables in keys.items():
        names = [variables] if isinstance(variables, str) else variables
        if not isinstance(names, list) or not all(
            isinstance(name, str) for name in names
        ):
            raise ConfigurationError(
                f"{path}: '{host}' under [keys] must be the names of variables, such as"
                ' ["OPENAI_API_KEY"].'
            )
        named[host.lower()] = tuple(names)
    return Trusted(named, frozenset(files))


def _table(tables: Mapping[str, Any], key: str, path: Path) -> Mapping[str, Any]:
    table = tables.get(key, {})
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{path}: '{key}' must be a table, [{key}].")
    return table
