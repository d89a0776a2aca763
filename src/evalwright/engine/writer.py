"""The one thread that writes to the store: everything that waits becomes one transaction (group commit).

A batch is what one event loop has gathered in one of its rounds. While a transaction is on its way to the disk, further
batches gather; so the more there is to write, the less each write costs. Statements carry many rows each, because
every step of SQLite gives Python's interpreter lock away and has to wait to get it back.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from evalwright.core.errors import StoreError
from evalwright.engine.claims import Owner
from evalwright.engine.schema import patiently, store_error

Row = tuple[bytes, str, bytes, bytes, float, int]
"""key, model fingerprint, request, response, seconds since 1970, checksum."""

BillKey = tuple[str, str, bool]
"""model, what became of a sending, whether its bill is an estimate."""

MINE: Final = "mine"
STORED: Final = "stored"

_SIZES = (128, 16, 4, 1)

_ADD_BILL = """INSERT INTO ledger VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET
    sendings = sendings + excluded.sendings, input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens, last = excluded.last,
    dollars = CASE WHEN dollars IS NULL THEN excluded.dollars ELSE dollars + ifnull(excluded.dollars, 0) END"""

T = TypeVar("T")


@dataclass(slots=True)
class Batch:
    """What one event loop wants of the store.

    claims: keys to be claimed. puts: answers to be stored, which ends their claims. releases: keys whose claims end
    without an answer. damaged: key and content of rows to be removed because they cannot be read. empty: keys with the failure
    to be remembered, as JSON, and its checksum. bills: sendings, tokens read and written, and dollars to be added to the ledger.
    polls: keys that somebody else claimed. done: called once in the writer's thread, with a StoreError if it failed.
    After it, `outcomes` has for each claim MINE, STORED or the other owner's id, and `changed` the polled keys that are
    worth claiming again.
    """

    done: Callable[[Batch, StoreError | None], None]
    claims: list[bytes] = field(default_factory=list)
    puts: list[Row] = field(default_factory=list)
    releases: list[bytes] = field(default_factory=list)
    damaged: list[tuple[bytes, bytes]] = field(default_factory=list)
    empty: list[tuple[bytes, str, int]] = field(default_factory=list)
    bills: dict[BillKey, list[Any]] = field(default_factory=dict)
    polls: list[bytes] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    changed: list[bytes] = field(default_factory=list)


class Writer:
    """Runs the thread. `broken` is set at the first error; from then on every batch fails with it."""

    def __init__(self, path: Path, connection: sqlite3.Connection, owner: Owner) -> None:
        self.broken: StoreError | None = None
        self._path = path
        self._connection = connection
        self._owner = owner
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._durable = True
        self._closed = False
        connection.execute("PRAGMA busy_timeout=0")  # `patiently` waits instead
        # A daemon, so that a disk that hangs cannot keep the process from ending; `close` waits for what was handed over.
        self._thread = threading.Thread(target=self._run, name="evalwright-store", daemon=True)
        self._thread.start()

    def submit(self, batch: Batch) -> None:
        """Hand a batch over. Batches are worked off in order."""
        if self._closed:
            batch.done(batch, StoreError(f"The store {self._path} is closed."))
        else:
            self._queue.put(batch)

    def close(self, patience: float = 10.0) -> None:
        """Write what was handed over, end this owner's claims, and stop the thread."""
        self._closed = True
        self._queue.put(None)
        self._thread.join(patience)

    def _run(self) -> None:
        closing = False
        while not closing:
            batches: list[Batch] = []
            item = self._queue.get()
            with contextlib.suppress(Empty):
                while item is not None:
                    batches.append(item)
                    item = self._queue.get_nowait()
                closing = True
            if batches:
                self._work(batches)
        self._forget_own_claims()
        self._connection.close()

    def _work(self, batches: list[Batch]) -> None:
        try:
            if self.broken is None:
                self._transaction(batches)
        except Exception as error:  # whatever it was, every wait must end
            self.broken = store_error(self._path, error)
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
        for batch in batches:
            batch.done(batch, self.broken)

    def _transaction(self, batches: list[Batch]) -> None:
        releases = {key for batch in batches for key in batch.releases}
        if len(batches) > 1 and any(key in releases for batch in batches for key in batch.claims):
            # One key is both claimed and released: their order counts.
            for batch in batches:
                self._together([batch])
        else:
            self._together(batches)

    def _together(self, batches: list[Batch]) -> None:
        polls = [key for batch in batches for key in batch.polls]
        if polls:
            changed = patiently(lambda: self._changed(polls))
            for batch in batches:
                batch.changed = [key for key in batch.polls if key in changed]
        puts = [row for batch in batches for row in batch.puts]
        releases = [key for batch in batches for key in batch.releases]
        releases += [row[0] for row in puts]
        claims = [key for batch in batches for key in batch.claims]
        damaged = [pair for batch in batches for pair in batch.damaged]
        bills = [(*key, *sums) for batch in batches for key, sums in batch.bills.items()]
        empty = [row for batch in batches for row in batch.empty]
        if not (claims or releases or damaged or bills or empty):
            return
        self._begin(durable=bool(puts or empty))
        now = time.time()
        for bill in bills:
            self._connection.execute(_ADD_BILL, (self._owner.id, *bill, now, now))
        for row in empty:
            self._connection.execute("INSERT OR REPLACE INTO empty VALUES (?,?,?)", row)
        for pair in damaged:
            self._connection.execute("DELETE FROM responses WHERE key=? AND response=?", pair)
        self._put(puts)
        for part in _parts(releases):
            marks = _marks(len(part))
            self._connection.execute(
                f"DELETE FROM claims WHERE key IN ({marks}) AND owner=?", (*part, self._owner.id)
            )
        if claims:
            outcomes = self._claim(claims)
            for batch in batches:
                batch.outcomes = [outcomes[key] for key in batch.claims]
        self._connection.execute("COMMIT")

    def _begin(self, durable: bool) -> None:
        # Answers survive a loss of power; claims need not, they end with the process anyway.
        if durable is not self._durable:
            self._connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        patiently(lambda: self._connection.execute("BEGIN IMMEDIATE"))

    def _put(self, rows: list[Row]) -> None:
        for part in _parts(rows):
            values = ",".join(["(?,?,?,?,?,?)"] * len(part))
            self._connection.execute(
                f"INSERT OR REPLACE INTO responses (key, model, request, response, created, checksum) VALUES {values}",
                [value for row in part for value in row],
            )

    def _claim(self, keys: list[bytes]) -> dict[bytes, str]:
        outcomes: dict[bytes, str] = dict.fromkeys(keys, MINE)
        alive: dict[str, bool] = {}
        for part in _parts(keys):
            marks = _marks(len(part))
            for (key,) in self._rows(f"SELECT key FROM responses WHERE key IN ({marks})", part):
                outcomes[key] = STORED
            foreign = f"SELECT key, owner FROM claims WHERE key IN ({marks}) AND owner<>?"
            for key, owner in self._rows(foreign, (*part, self._owner.id)):
                if owner not in alive:
                    alive[owner] = self._owner.is_alive(owner)
                if outcomes[key] is MINE and alive[owner]:
                    outcomes[key] = owner
        mine = [key for key, outcome in outcomes.items() if outcome is MINE]
        for part in _parts(mine):
            values = ",".join(["(?,?)"] * len(part))
            self._connection.execute(
                f"INSERT OR REPLACE INTO claims (key, owner) VALUES {values}",
                [value for key in part for value in (key, self._owner.id)],
            )
        return outcomes

    def _changed(self, keys: list[bytes]) -> set[bytes]:
        """Those keys that no living owner claims any more: answered, given up, or left by a dead process."""
        changed: set[bytes] = set()
        for part in _parts(keys):
            marks = _marks(len(part))
            owners = self._rows(f"SELECT DISTINCT owner FROM claims WHERE key IN ({marks})", part)
            dead = [owner for (owner,) in owners if not self._owner.is_alive(owner)]
            gone = f"WHERE owner NOT IN ({_marks(len(dead))})" if dead else ""
            given = ",".join(["(?)"] * len(part))
            free = f"WITH given(key) AS (VALUES {given}) SELECT key FROM given WHERE key NOT IN (SELECT key FROM claims {gone})"
            changed.update(key for (key,) in self._rows(free, (*part, *dead)))
        return changed

    def _rows(self, statement: str, values: Sequence[Any]) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def _forget_own_claims(self) -> None:
        # Only a courtesy to others: a claim ends with its owner in any case.
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("DELETE FROM claims WHERE owner=?", (self._owner.id,))


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Slices of a few fixed lengths, so that the statements for them stay prepared."""
    start = 0
    for size in _SIZES:
        while len(items) - start >= size:
            yield items[start : start + size]
            start += size


def _marks(count: int) -> str:
    return ",".join("?" * count)
