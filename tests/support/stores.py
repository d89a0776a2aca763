"""The stores that tests of the store run on: a file, and a database on a real server."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.postgres import Server, missing, running

if TYPE_CHECKING:
    from evalwright.engine.store import Store


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One PostgreSQL server for all tests that do not end it."""
    if why := missing():
        pytest.skip(why)
    with running() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def each_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """`open_store` opens a new store of this kind: the test runs once with each."""
    if request.param == "postgres":
        monkeypatch.setenv("EVALWRIGHT_STORE", request.getfixturevalue("server").url())
    else:
        monkeypatch.delenv("EVALWRIGHT_STORE", raising=False)
    kind: str = request.param
    return kind


Statements = Callable[[Path, str], list[Any]]


@pytest.fixture
def behind(each_store: str) -> Statements:
    """Carries out a statement behind the store's back, on the store of that home folder."""

    def run(home: Path, statement: str) -> list[Any]:
        if each_store == "postgres":
            import psycopg

            with psycopg.connect(os.environ["EVALWRIGHT_STORE"]) as connection:
                connection.execute("SET search_path = evalwright")
                cursor = connection.execute(statement.encode())
                return cursor.fetchall() if cursor.description else []
        with closing(sqlite3.connect(home / "store.sqlite")) as file, file:
            return file.execute(statement).fetchall()

    return run


def make_read_only(store: Store) -> None:
    """From now on, whatever the store writes fails."""
    from evalwright.engine.sqlite import SqliteDatabase

    database = store._writer._database
    if isinstance(database, SqliteDatabase):
        database._connection.execute("PRAGMA query_only=ON")
    else:
        database.rows("SET default_transaction_read_only = on")
