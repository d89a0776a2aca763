"""The tables of a store in SQLite, their migrations, and SQLite's errors in plain words."""

from __future__ import annotations

import random
import re
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from evalwright.core.errors import StoreError, UsageError
from evalwright.engine.database import check_version

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # Answers are appended in the order in which they come; only the small index on `key` is
        # written at random places.
        """CREATE TABLE responses (
            id INTEGER PRIMARY KEY,
            key BLOB NOT NULL UNIQUE,
            model TEXT NOT NULL,
            request BLOB NOT NULL,
            response BLOB NOT NULL,
            created REAL NOT NULL
        )""",
        "CREATE TABLE claims (key BLOB PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID",
    ),
    (
        # NULL: written before there were checksums.
        "ALTER TABLE responses ADD COLUMN checksum INTEGER",
        # Requests to which every reply was empty and paid for.
        (
            "CREATE TABLE empty (key BLOB PRIMARY KEY, failure TEXT NOT NULL, checksum"
            " INTEGER NOT NULL) WITHOUT ROWID"
        ),
        # What was sent and paid, by command (an opening of the store), model and outcome.
        """CREATE TABLE ledger (
            command TEXT NOT NULL,
            model TEXT NOT NULL,
            outcome TEXT NOT NULL,
            estimated INTEGER NOT NULL,
            sendings INTEGER NOT NULL,
            input_tokens INTEGER NOT NULL,
            output_tokens INTEGER NOT NULL,
            dollars REAL,
            first REAL NOT NULL,
            last REAL NOT NULL,
            PRIMARY KEY (command, model, outcome, estimated)
        ) WITHOUT ROWID""",
    ),
    (
        # Who claims: an opening of the store. Before, an owner was a file that its process had
        # locked.
        """CREATE TABLE owners (
            id TEXT PRIMARY KEY,
            host TEXT NOT NULL,
            pid INTEGER NOT NULL,
            started TEXT NOT NULL,
            expires REAL NOT NULL
        ) WITHOUT ROWID""",
        # The models' names, for the fingerprints in `responses`.
        (
            "CREATE TABLE models (model TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT"
            " ROWID"
        ),
    ),
    (
        # What each command has taken of a budget that several processes share.
        """CREATE TABLE allotments (
            budget TEXT NOT NULL,
            command TEXT NOT NULL,
            requests REAL NOT NULL,
            tokens REAL NOT NULL,
            dollars REAL NOT NULL,
            PRIMARY KEY (budget, command)
        ) WITHOUT ROWID""",
    ),
)
"""`MIGRATIONS[n]` takes a file of version n to version n + 1."""

VERSION = len(MIGRATIONS)

LOCK_PATIENCE_SECONDS = 60.0

_FIND_FOREIGN_OBJECTS = (
    "SELECT 1 FROM sqlite_master WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE"
    " VIRTUAL%' LIMIT 1"
)
"""Finds what this package never creates: a view, trigger or virtual table.

A view under a table's name could run without end.
"""

T = TypeVar("T")


def connect(path: Path) -> sqlite3.Connection:
    """Open a connection in autocommit mode to a file, and migrate it to this version's tables.

    One thread at a time may use the connection.

    Raises:
        sqlite3.Error: SQLite failed, or the file has more than tables and indexes.
        StoreError: the file is newer than this version supports.
    """
    connection = sqlite3.connect(
        path,
        isolation_level=None,
        check_same_thread=False,
        timeout=LOCK_PATIENCE_SECONDS,
    )
    try:
        # SQLite does not wait for the lock that the change to WAL needs, so two processes that open
        # a new file at the same moment would collide.
        retry_while_locked(lambda: connection.execute("PRAGMA journal_mode=WAL"))
        if connection.execute(_FIND_FOREIGN_OBJECTS).fetchone() is not None:
            raise sqlite3.DatabaseError("it has a view, a trigger or a virtual table")
        connection.execute("PRAGMA journal_size_limit=67108864")
        connection.execute("PRAGMA cache_size=-16384")
        connection.execute("PRAGMA synchronous=FULL")
        migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def retry_while_locked(step: Callable[[], T]) -> T:
    """Run a step, repeating it while another process holds the lock.

    It gives up after `LOCK_PATIENCE_SECONDS`.
    """
    until = time.monotonic() + LOCK_PATIENCE_SECONDS
    while True:
        try:
            return step()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
        # Short random waits share the lock more fairly among processes than SQLite's own growing
        # waits.
        time.sleep(random.uniform(0.0005, 0.004))


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate the file to this version's tables.

    Raises:
        StoreError: the file is newer than this version supports.
    """
    if _version(connection, path) == VERSION:
        return
    retry_while_locked(lambda: connection.execute("BEGIN IMMEDIATE"))
    try:
        # Read the version again: another process may have migrated while this one waited for the
        # lock.
        for number in range(_version(connection, path), VERSION):
            for statement in MIGRATIONS[number]:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, path: Path) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    check_version(
        f"The store {path}", version, VERSION, "another folder with EVALWRIGHT_HOME"
    )
    return version


def store_error(path: Path, error: Exception) -> StoreError:
    """Make the StoreError for an error of SQLite or the file system, with advice for the user."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, UsageError):
        return StoreError(str(error))
    message = str(error)
    reason = message.lower()
    if "full" in reason:
        problem = (
            "could not be written because the disk is full: free some space and run"
            " again"
        )
    elif "not a database" in reason and path.suffix != ".sqlite":
        problem = "is no store: check the path"
    elif (
        "not a database" in reason
        or "malformed" in reason
        or "corrupt" in reason
        or "encrypted" in reason
    ):
        problem = (
            "is damaged: move the file away (its requests are then sent again) or"
            " restore a copy"
        )
    elif "locked" in reason or "busy" in reason:
        problem = "stayed locked by another process: end that process and run again"
    elif (
        "readonly" in reason
        or "unable to open" in reason
        or isinstance(error, PermissionError)
    ):
        problem = (
            "cannot be written: check the permissions of its folder, or name another"
            " with EVALWRIGHT_HOME"
        )
    elif isinstance(error, FileExistsError | NotADirectoryError):
        file = next((parent for parent in path.parents if parent.is_file()), path)
        return StoreError(
            f"'{file}' is a file, not a folder. Choose another folder with --home or"
            " EVALWRIGHT_HOME."
        )
    elif isinstance(error, OSError):
        problem = (
            "cannot be used as a folder for the store: name another with"
            " EVALWRIGHT_HOME"
        )
    elif not isinstance(error, sqlite3.Error) or re.search(
        "no such|already exists|duplicate|view|constraint", reason
    ):
        problem = (
            "holds what evalwright did not write: move the file away (its requests are"
            " then sent again) or restore a copy"
        )
    else:
        problem = "failed to write or read: check the disk and run again"
    return StoreError(f"The store {path} {problem}. ({message})")
