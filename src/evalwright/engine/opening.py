"""Opens the store: the server that $EVALWRIGHT_STORE names, else the file in the home folder."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from evalwright.core.errors import ConfigurationError, StoreError
from evalwright.core.local_paths import scheme_of
from evalwright.core.postgres import display_url, is_url, store_url
from evalwright.core.secrets import mask, without_login
from evalwright.engine.database import Database
from evalwright.engine.schema import store_error
from evalwright.engine.sqlite import FILE, SqliteStore, open_file
from evalwright.engine.store import Store


def open_store(home: Path) -> Store:
    """Open the store of a home folder.

    Raises:
        ConfigurationError: the server's address cannot be used.
        StoreError: the store cannot be used.
    """
    if url := store_url():
        from evalwright.engine.postgres import PostgresStore

        return PostgresStore.open(url, home)
    return SqliteStore.open(home)


def existing_store(home: Path) -> Store | None:
    """Open the store like `open_store`, but return None instead of creating a missing file."""
    return open_store(home) if store_url() or (home / FILE).is_file() else None


def open_database(place: str | Path, *, new: bool = False) -> Database:
    """Open the database of a store, for work on the store as a whole.

    Args:
        place: a URL, a store's file, or a home folder.
        new: whether it may be created.

    Raises:
        ConfigurationError: there is no store.
        StoreError: the store cannot be used.
    """
    if isinstance(place, str) and is_url(place):
        from evalwright.engine.postgres import open_server

        return open_server(place)
    path = Path(place) if Path(place).is_file() else Path(place) / FILE
    if not new and not path.is_file():
        if scheme_of(place):
            raise ConfigurationError(
                f"'{mask(without_login(str(place)))}' is not a folder, a store file or"
                " a postgresql:// address."
            )
        raise ConfigurationError(
            f"There is no store at {place}: no {FILE} is in that folder."
        )
    try:
        return open_file(path)
    except (OSError, sqlite3.Error, StoreError) as error:
        raise store_error(path, error) from error


def store_location(home: Path) -> str | Path:
    """Return what `open_database` opens for the store of a home folder."""
    return store_url() or home


def store_name(place: str | Path) -> str:
    """Name a store's place for people, without a password."""
    return (
        display_url(place) if isinstance(place, str) and is_url(place) else str(place)
    )
