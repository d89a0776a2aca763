"""Migrations, and what SQLite's errors mean."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evalwright.core.errors import StoreError
from evalwright.engine import schema


def test_an_older_file_is_migrated_and_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.sqlite"
    with closing(schema.connect(path)) as connection:
        schema.migrate(connection, path)
        connection.execute(
            "INSERT INTO responses VALUES (1, x'00', 'm', '{}', '{}', 0, NULL)"
        )
        newer = (
            *schema.MIGRATIONS,
            ("ALTER TABLE responses ADD COLUMN note TEXT NOT NULL DEFAULT ''",),
        )
        monkeypatch.setattr(schema, "MIGRATIONS", newer)
        monkeypatch.setattr(schema, "VERSION", len(newer))
        schema.migrate(connection, path)
        assert connection.execute("SELECT model, note FROM responses").fetchall() == [
            ("m", "")
        ]
        assert connection.execute("PRAGMA user_version").fetchone() == (len(newer),)


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.sqlite"
    with closing(schema.connect(path)) as connection:
        schema.migrate(connection, path)
        broken = (*schema.MIGRATIONS, ("CREATE TABLE fine (x)", "CREATE NONSENSE"))
        monkeypatch.setattr(schema, "MIGRATIONS", broken)
        monkeypatch.setattr(schema, "VERSION", len(broken))
        with pytest.raises(sqlite3.OperationalError):
            schema.migrate(connection, path)
        names = {
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type='table'"
            )
        }
        assert "fine" not in names
        assert connection.execute("PRAGMA user_version").fetchone() == (
            len(broken) - 1,
        )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (sqlite3.OperationalError("database or disk is full"), "disk is full"),
        (sqlite3.OperationalError("disk I/O error"), "check the disk"),
        (
            sqlite3.OperationalError("attempt to write a readonly database"),
            "cannot be written",
        ),
        (sqlite3.OperationalError("unable to open database file"), "cannot be written"),
        (sqlite3.OperationalError("database is locked"), "locked by another process"),
        (sqlite3.DatabaseError("database disk image is malformed"), "damaged"),
        (sqlite3.DatabaseError("file is not a database"), "damaged"),
        (PermissionError(13, "Permission denied"), "cannot be written"),
        (NotADirectoryError(20, "Not a directory"), "is a file, not a folder"),
        (StoreError("as it is"), "as it is"),
    ],
)
def test_errors_are_sentences(error: Exception, words: str) -> None:
    assert words in str(schema.store_error(Path("home/store.sqlite"), error))
