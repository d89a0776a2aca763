"""Which requests are in which batch, in one small SQLite file, so that a batch outlives the program that made it.

A batch is written down before it is sent: what was paid for is known even if the program ends between the two. A row of
`items` says that this request's answer is, or will be, in that batch; one whose request failed there is taken out.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evalwright.core.errors import StoreError
from evalwright.core.private import open_private, own_database, private_folder

FILE = "batches.sqlite"
_TABLES = (
    """CREATE TABLE IF NOT EXISTS batches (
        number INTEGER PRIMARY KEY,
        mark TEXT NOT NULL UNIQUE,
        model TEXT NOT NULL,
        place TEXT NOT NULL,
        name TEXT NOT NULL,
        batch TEXT NOT NULL DEFAULT '',
        created REAL NOT NULL,
        ended INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE IF NOT EXISTS items (
        batch INTEGER NOT NULL REFERENCES batches (number) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        item TEXT NOT NULL,
        PRIMARY KEY (batch, place)
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS item_of ON items (item)",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A batch that was submitted, or was about to be.

    mark: our name for it. model: the fingerprint of the model. place: the host. name: the model's name, for people. batch:
    the provider's name for it, "" until it is known. created: Unix seconds. ended: nothing more will come. n: items.
    """

    number: int
    mark: str
    model: str
    place: str
    name: str
    batch: str
    created: float
    ended: bool
    n: int


class Journal:
    """An open journal. Every call is one short transaction; several processes may use the file."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE
        try:
            private_folder(home)
            open_private(own_database(self.path), "ab").close()
            self._connection = sqlite3.connect(
                self.path, isolation_level=None, timeout=60.0, check_same_thread=False
            )
            self._connection.execute("PRAGMA foreign_keys=ON")
            self._connection.execute("PRAGMA synchronous=FULL")
            for statement in _TABLES:
                self._connection.execute(statement)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"The journal of batches {self.path} cannot be used: {error}.") from error

    def begin(self, mark: str, model: str, place: str, name: str, items: Sequence[str]) -> Entry:
        """Write down a batch that is about to be submitted."""
        created = time.time()
        with self._transaction() as run:
            number = run.execute(
                "INSERT INTO batches (mark, model, place, name, created) VALUES (?, ?, ?, ?, ?)",
                (mark, model, place, name, created),
            ).lastrowid
            assert number is not None
            run.executemany(
                "INSERT INTO items (batch, place, item) VALUES (?, ?, ?)",
                ((number, position, item) for position, item in enumerate(items)),
            )
        return Entry(number, mark, model, place, name, "", created, False, len(items))

    def submitted(self, number: int, batch: str) -> None:
        """The provider's name of a batch."""
        with self._transaction() as run:
            run.execute("UPDATE batches SET batch=? WHERE number=?", (batch, number))

    def ended(self, number: int) -> None:
        """Nothing more will come of a batch; its answers can be fetched."""
        with self._transaction() as run:
            run.execute("UPDATE batches SET ended=1 WHERE number=?", (number,))

    def forget(self, number: int) -> None:
        """A batch that came to nothing: its requests may be sent again."""
        with self._transaction() as run:
            run.execute("DELETE FROM batches WHERE number=?", (number,))

    def failed(self, number: int, items: Iterable[str]) -> None:
        """Requests that have no answer in their batch and may be sent again."""
        with self._transaction() as run:
            run.executemany("DELETE FROM items WHERE batch=? AND item=?", ((number, item) for item in items))

    def holding(self, model: str, items: Iterable[str]) -> dict[str, int]:
        """For those of these requests that are in a batch: its number, the newest where there are several."""
        found: dict[str, int] = {}
        for item in items:
            row = self._connection.execute(
                "SELECT max(number) FROM items JOIN batches ON number = items.batch WHERE item=? AND model=?",
                (item, model),
            ).fetchone()
            if row[0] is not None:
                found[item] = row[0]
        return found

    def entry(self, number: int) -> Entry | None:
        """One batch."""
        return next(iter(self._entries("WHERE number=?", (number,))), None)

    def entries(self) -> list[Entry]:
        """All batches, the newest first."""
        return self._entries("", ())

    def items(self, number: int) -> list[str]:
        """A batch's requests in their order; "" where one was taken out."""
        rows = self._connection.execute("SELECT place, item FROM items WHERE batch=?", (number,)).fetchall()
        out = [""] * (max((place for place, _ in rows), default=-1) + 1)
        for place, item in rows:
            out[place] = item
        return out

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _entries(self, where: str, values: tuple[object, ...]) -> list[Entry]:
        rows = self._connection.execute(
            "SELECT number, mark, model, place, name, batch, created, ended, "
            "(SELECT count(*) FROM items WHERE items.batch = number) FROM batches "
            f"{where} ORDER BY number DESC",
            values,
        )
        return [
            Entry(number, mark, model, place, name, batch, created, bool(ended), n)
            for number, mark, model, place, name, batch, created, ended, n in rows
        ]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise StoreError(f"The journal of batches {self.path} cannot be written: {error}.") from error
