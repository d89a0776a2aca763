"""Which store is opened: the server that $EVALWRIGHT_STORE names, else the file in the home folder."""

from __future__ import annotations

from pathlib import Path

from evalwright.core.postgres import is_url, shown, store_url
from evalwright.engine.database import Database
from evalwright.engine.sqlite import FILE, SqliteStore, open_file
from evalwright.engine.store import Store


def open_store(home: Path) -> Store:
    """Open the store of a home folder. Raises ConfigurationError or StoreError with a plain sentence."""
    if url := store_url():
        from evalwright.engine.postgres import PostgresStore

        return PostgresStore.open(url, home)
    return SqliteStore.open(home)


def existing_store(home: Path) -> Store | None:
    """As `open_store`, but a file that is not there is not made: None."""
    return open_store(home) if store_url() or (home / FILE).is_file() else None


def open_database(place: str | Path) -> Database:
    """A connection for work on a store as a whole. place: a URL, a store's file, or a home folder.

    Raises what its library raises, ConfigurationError, or StoreError where there is no store and it is not to be made.
    """
    if isinstance(place, str) and is_url(place):
        from evalwright.engine.postgres import open_server

        return open_server(place)
    path = Path(place)
    return open_file(path / FILE if path.is_dir() or not path.suffix else path)


def where(home: Path) -> str | Path:
    """What `open_database` opens for the store of a home folder."""
    return store_url() or home


def name_of(place: str | Path) -> str:
    """A place for people, without a password."""
    return shown(place) if isinstance(place, str) and is_url(place) else str(place)
