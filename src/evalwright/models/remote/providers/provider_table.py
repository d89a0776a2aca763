"""The table of providers: `providers.toml` of this package, and files of the same form that a
person names.

A row of a person's own file wins over the package's. Such files are those that
$EVALWRIGHT_PROVIDERS names, and those given to `add_file`; none is looked for, because a row
decides where keys are sent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.models.built_in import BUILT_IN
from evalwright.models.remote import prices
from evalwright.models.remote.providers.provider import Provider
from evalwright.models.remote.providers.provider_rows import (
    check_rows,
    read_rows,
    read_table,
)

TABLE = Path(__file__).with_name("providers.toml")
VARIABLE = "EVALWRIGHT_PROVIDERS"
"""Names files of the user's own providers, separated like paths by the operating system."""

_added: dict[str, Provider] = {}


def find(name: str) -> Provider | None:
    """Return the provider's row, or None.

    Raises:
        ConfigurationError: a user's file is invalid.
    """
    _read_variable(os.environ.get(VARIABLE, ""))
    return _added.get(name) or _packaged().get(name)


def is_packaged(row: Provider) -> bool:
    """Return whether a row is the package's own, whose variables hold no secret."""
    return row.name in _packaged() and row.name not in _added


def names() -> list[str]:
    """List all names, sorted."""
    _read_variable(os.environ.get(VARIABLE, ""))
    return sorted({*_packaged(), *_added})


def user_names() -> frozenset[str]:
    """Return the names of the user's own rows."""
    return frozenset(_added)


def add_file(path: Path) -> list[str]:
    """Read a user's own file of providers and prices, and return the names in it.

    A table with nothing but `prices` gives prices for a provider that is known already.

    Raises:
        ConfigurationError: the file cannot be used.
    """
    rows = read_rows(path)
    priced = {
        name: row["prices"]
        for name, row in rows.items()
        if isinstance(row, Mapping) and "prices" in row
    }
    only = {
        name
        for name in priced
        if len(rows[name]) == 1 and (name in _added or name in _packaged())
    }
    new_rows = check_rows(
        {name: row for name, row in _without_prices(rows).items() if name not in only},
        path.name,
    )
    for name in new_rows:
        _check_name(name, path)
    for name, price_rows in priced.items():
        at = f"{path.name}, prices of '{name}'"
        if not isinstance(price_rows, Mapping):
            raise ConfigurationError(
                f"{path.name}, provider '{name}': 'prices' must be a table by model."
            )
        prices.add(name, price_rows, at)
    _added.update(new_rows)
    return list(rows)


def _check_name(name: str, path: Path) -> None:
    """Reject the name of a built-in backend, because such a row would never be used."""
    if name in BUILT_IN and name not in _packaged():
        raise ConfigurationError(
            f"{path.name}, provider '{name}': '{name}/...' are models of a backend in"
            " this package; give yours another name."
        )


def _without_prices(rows: Mapping[str, Any]) -> dict[str, Any]:
    def without_prices(row: Any) -> Any:
        return (
            {key: row[key] for key in row if key != "prices"}
            if isinstance(row, Mapping)
            else row
        )

    return {name: without_prices(row) for name, row in rows.items()}


@cache
def _read_variable(paths: str) -> None:
    for file_name in filter(None, paths.split(os.pathsep)):
        try:
            add_file(Path(file_name))
        except ConfigurationError as error:
            raise ConfigurationError(f"{error} (named by ${VARIABLE})") from None


@cache
def _packaged() -> dict[str, Provider]:
    return read_table(TABLE)
