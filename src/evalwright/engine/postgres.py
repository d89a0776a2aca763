"""The store on a PostgreSQL server, for any number of hosts.

If the server goes away, the store waits for it, with growing gaps and up to a stated time, and
then carries out what was under way. A transaction whose outcome is unknown is repeated, and
nothing in it counts twice. If the server stays away, answers that were paid for are saved in a
file of the home folder and stored when the store is next opened there.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from evalwright.core.errors import Failure, StoreError, UsageError
from evalwright.core.postgres import (
    LOCK,
    SCHEMA,
    Link,
    display_url,
    server_error,
    use_percent_placeholders,
)
from evalwright.core.responses import Response
from evalwright.engine import schema
from evalwright.engine.claims import Owner
from evalwright.engine.database import Database, StoredRow, check_version
from evalwright.engine.exchange import restore_unwritten
from evalwright.engine.store import Store
from evalwright.engine.store_rows import MINE, STORED, Group, Row
from evalwright.models.remote.batch.journal import in_postgres

if TYPE_CHECKING:
    import psycopg

_POLL_SECONDS = 0.25
_ENCODINGS = ("UTF8", "SQL_ASCII")

_FIRST_VERSIONS = 3
"""Number of versions of the SQLite tables that the server's first version combines.

Later versions of the two keep in step.
"""

_TABLES = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    """CREATE TABLE responses (
        key BYTEA PRIMARY KEY,
        model TEXT NOT NULL,
        request BYTEA NOT NULL,
        response BYTEA NOT NULL,
        created DOUBLE PRECISION NOT NULL,
        checksum BIGINT
    )""",
    # PostgreSQL need not compress these columns: they are compressed already where that pays.
    (
        "ALTER TABLE responses ALTER COLUMN request SET STORAGE EXTERNAL, ALTER COLUMN"
        " response SET STORAGE EXTERNAL"
    ),
    *(
        in_postgres(table)
        for version in schema.MIGRATIONS[:_FIRST_VERSIONS]
        for table in version
        if table.startswith("CREATE TABLE") and " responses " not in table
    ),
    "CREATE TABLE version (schema INTEGER NOT NULL)",
)
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    _TABLES,
    *(
        tuple(map(in_postgres, version))
        for version in schema.MIGRATIONS[_FIRST_VERSIONS:]
    ),
)
"""`MIGRATIONS[n]` takes a schema of version n to version n + 1."""
_WRITE_RESPONSES = """INSERT INTO responses (key, model, request, response, created, checksum)
    SELECT * FROM unnest(%b::bytea[], %b::text[], %b::bytea[], %b::bytea[],
    %b::float8[], %b::int8[])
    ON CONFLICT (key) DO UPDATE SET model = excluded.model, request = excluded.request,
    response = excluded.response, created = excluded.created, checksum = excluded.checksum"""

T = TypeVar("T")


class PostgresDatabase(Database):
    """A connection to the server, replaced when it is lost."""

    kind = "PostgreSQL"
    order = ("key", b"")

    def __init__(
        self,
        url: str,
        closing: threading.Event | None = None,
        patience: float | None = None,
    ) -> None:
        super().__init__(display_url(url))
        self.closing = closing or self.closing
        self._url = url
        self._link = Link(url, self.closing, patience)

    def open(self) -> None:
        """Connect, and migrate the tables to this version.

        Raises:
            psycopg.Error: the server cannot be reached.
            StoreError: the tables are newer than this version supports.
        """
        self._link.open()
        if (
            encoding := self._link.connection().info.parameter_status("server_encoding")
        ) not in _ENCODINGS:
            raise StoreError(
                f"The store {self.place} cannot hold every text, as its encoding is"
                f" {encoding}: create a database with 'createdb --encoding UTF8"
                " --template template0'."
            )
        if self._version() != len(MIGRATIONS):
            self._link.again(self._migrate, transaction=True)

    def watch(self, say: Callable[[str, bool], None]) -> None:
        """Report to `say` when the server is away, silent, or back."""
        self._link.say = say
        self._link.watch()

    def read(self, keys: Sequence[bytes]) -> list[StoredRow]:
        return self._link.again(
            lambda connection: connection.execute(
                "SELECT key, model, request, response, checksum FROM responses WHERE"
                " key = ANY(%b)",
                (list(keys),),
                binary=True,
            ).fetchall()
        )

    def apply(self, group: Group, owner: Owner) -> tuple[dict[bytes, str], set[bytes]]:
        changed = self.freed(group.polls) if group.polls else set()
        if group.writes:
            self._write(group, owner)
        outcomes: dict[bytes, str] = {}
        if group.claims or group.renew:
            outcomes = self._link.again(
                lambda _: self._claim(group, owner), transaction=True
            )
        return outcomes, changed

    def holders(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        return dict(
            self.rows("SELECT key, owner FROM claims WHERE key = ANY(?)", (list(keys),))
        )

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        def step(connection: psycopg.Connection[Any]) -> list[Any]:
            cursor = connection.execute(
                use_percent_placeholders(statement), values, binary=True
            )
            return cursor.fetchall() if cursor.description else []

        return (
            step(self._link.connection())
            if self._link.inside
            else self._link.again(step)
        )

    def change(self, statement: str, values: Sequence[Sequence[Any]]) -> int:
        if not values:
            return 0

        def step(connection: psycopg.Connection[Any]) -> int:
            with connection.cursor() as cursor:
                cursor.executemany(use_percent_placeholders(statement), values)
                return cursor.rowcount

        return self._link.again(step, transaction=True)

    def exclusively(self, step: Callable[[], T]) -> T:
        def locked(connection: psycopg.Connection[Any]) -> T:
            connection.execute(b"SELECT pg_advisory_xact_lock(%d)" % LOCK)
            return step()

        return self._link.again(locked, transaction=True)

    def now(self) -> float:
        return float(
            self.rows("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0]
        )

    def lease_from(self) -> float:
        started = float(
            self.rows("SELECT extract(epoch FROM pg_postmaster_start_time())::float8")[
                0
            ][0]
        )
        if self._link.regained is None:
            return started
        # A standby that took over had started long before, with a clock of its own: other processes
        # were cut off when this connection was.
        return max(started, self.now() - (time.monotonic() - self._link.regained))

    def rollback(self) -> None:
        self._link.rollback()

    def error(self, error: Exception) -> StoreError:
        if isinstance(error, UsageError):
            return StoreError(str(error))
        return server_error(self._url, error)

    def size(self) -> int:
        tables = ("responses", "claims", "empty", "ledger", "owners")
        return sum(
            int(self.rows("SELECT pg_total_relation_size(?::regclass)", (table,))[0][0])
            for table in tables
        )

    def shrink(self) -> None:
        self.rows("VACUUM responses")

    def check(self) -> list[str]:
        return []

    def close(self) -> None:
        self._link.close()

    # -- one transaction

    def _write(self, group: Group, owner: Owner) -> None:
        """Write everything but claims; these locks are never held while waiting for claims."""
        self.add_bills(group, owner)

        def step(connection: psycopg.Connection[Any]) -> None:
            self.write_small(group)
            if group.puts:
                # Sorted, so that no two processes wait for each other; one row for each key.
                rows: list[Row] = sorted({row[0]: row for row in group.puts}.values())
                connection.execute(
                    _WRITE_RESPONSES,
                    [list(column) for column in zip(*rows, strict=True)],
                )
            if group.releases:
                connection.execute(
                    "DELETE FROM claims WHERE key = ANY(%b) AND owner = %s",
                    (group.releases, owner.id),
                )

        self._link.again(step, transaction=True)
        self.bills_written()

    def _claim(self, group: Group, owner: Owner) -> dict[bytes, str]:
        connection = self._link.connection()
        if group.renew:
            self.register(owner)
            if group.first:
                self.sweep()
        outcomes: dict[bytes, str] = {}
        left = sorted(set(group.claims))
        while left:
            claimed = connection.execute(
                "INSERT INTO claims (key, owner) SELECT key, %s FROM"
                " unnest(%b::bytea[]) AS key ORDER BY key ON CONFLICT (key) DO NOTHING"
                " RETURNING key",
                (owner.id, left),
                binary=True,
            )
            outcomes.update((key, MINE) for (key,) in claimed)
            left = [key for key in left if key not in outcomes]
            if not left:
                break
            owner_by_key = self.holders(left)
            alive = self.living(sorted(set(owner_by_key.values())))
            outcomes.update(
                (key, MINE if holder == owner.id else holder)
                for key, holder in owner_by_key.items()
                if holder in alive
            )
            dead = sorted(set(owner_by_key.values()) - alive)
            if dead:
                taken_over = connection.execute(
                    "UPDATE claims SET owner = %s WHERE key = ANY(%b) AND owner ="
                    " ANY(%b) RETURNING key",
                    (owner.id, sorted(owner_by_key), dead),
                    binary=True,
                )
                outcomes.update((key, MINE) for (key,) in taken_over)
            # given up meanwhile, or claimed by another process
            left = [key for key in left if key not in outcomes]
        # Read after the claims were made: whoever claimed them before has stored the answer or
        # given up.
        stored = connection.execute(
            "SELECT key FROM responses WHERE key = ANY(%b)",
            (list(outcomes),),
            binary=True,
        ).fetchall()
        if stored:
            outcomes.update((key, STORED) for (key,) in stored)
            connection.execute(
                "DELETE FROM claims WHERE key = ANY(%b) AND owner = %s",
                ([key for (key,) in stored], owner.id),
            )
        return outcomes

    def _migrate(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        # Read the version again: another process may have migrated while this one waited for the
        # lock.
        for number in range(self._version(), len(MIGRATIONS)):
            for statement in MIGRATIONS[number]:
                connection.execute(statement.encode())
            connection.execute("DELETE FROM version")
            connection.execute("INSERT INTO version VALUES (%s)", (number + 1,))

    def _version(self) -> int:
        # Read as rows: names that were not there a moment ago are remembered by the connection as
        # missing.
        if not self.rows(
            "SELECT 1 FROM pg_tables WHERE schemaname=? AND tablename='version'",
            (SCHEMA,),
        ):
            return 0
        # Names the schema, so that a user without rights to it gets an error that says so.
        (version,) = next(
            iter(self.rows(f"SELECT schema FROM {SCHEMA}.version")), (-1,)
        )
        check_version(
            f"The store {self.place}", version, len(MIGRATIONS), "another database"
        )
        return int(version)


class PostgresStore(Store):
    """A store on a PostgreSQL server. Use `PostgresStore.open`.

    `home` is the folder for answers that the server did not take.
    """

    poll_seconds = _POLL_SECONDS

    def __init__(
        self, reading: PostgresDatabase, writing: PostgresDatabase, home: Path
    ) -> None:
        super().__init__(reading, writing, home)
        self._reader = ThreadPoolExecutor(1, "evalwright-store-reader")
        self._lookups: list[tuple[bytes, asyncio.Future[Response | None]]] = []
        self._away: set[int] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def open(cls, url: str, home: Path) -> Self:
        """Open the store on a server, and create its tables if there are none.

        Raises:
            StoreError: the server cannot be reached, denies access or has the tables of a newer
                version. The message has no password.
        """
        closing = threading.Event()
        reading, writing = (PostgresDatabase(url, closing) for _ in range(2))
        try:
            for database in (reading, writing):
                database.open()
            restored = restore_unwritten(home, reading)
            store = cls(reading, writing, home)
        except Exception as error:
            reading.close()
            writing.close()
            if isinstance(error, UsageError):
                raise
            raise reading.error(error) from None
        for number, database in enumerate((reading, writing)):
            database.watch(partial(store._tell, number))
        if restored:
            store.notices.append(restored)
        return store

    async def get_many(self, keys: Sequence[bytes]) -> list[Response | None]:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._lookups = []
        futures = []
        for key in keys:
            future: asyncio.Future[Response | None] = loop.create_future()
            if not self._lookups:
                loop.call_soon(self._fetch)
            self._lookups.append((key, future))
            futures.append(future)
        return (
            [await futures[0]] if len(futures) == 1 else await asyncio.gather(*futures)
        )

    def _tell(self, link: int, sentence: str, away: bool) -> None:
        """Report once that the server is away or back.

        Each connection notices by itself: the first to lose it and the last to regain it report.
        """
        before = len(self._away)
        (self._away.add if away else self._away.discard)(link)
        if (before == 0 and away) or (before and not self._away):
            self.say(sentence)

    async def empty(self, key: bytes, *, lately: bool = False) -> Failure | None:
        if not lately and key not in self._empty:
            return None
        failure: Failure | None = await asyncio.get_running_loop().run_in_executor(
            self._reader, super()._look, "empty", key
        )
        return failure

    def close(self) -> None:
        self._reading.closing.set()
        self._reader.shutdown(cancel_futures=True)
        super().close()

    async def look(self, name: str, *arguments: Any) -> Any:
        look = super()._look
        return await asyncio.get_running_loop().run_in_executor(
            self._reader, look, name, *arguments
        )

    def _look(self, name: str, *arguments: Any) -> Any:
        # One thread uses the connection.
        return self._reader.submit(super()._look, name, *arguments).result()

    def _fetch(self) -> None:
        """Look up in one query the keys that all coroutines of this round want."""
        lookups = self._lookups
        self._lookups = []
        look = super()._look
        keys = [key for key, _ in lookups]

        def deliver(done: asyncio.Future[Any]) -> None:
            try:
                responses = self._read_out(keys, done.result())
            except (StoreError, asyncio.CancelledError) as error:
                for _, future in lookups:
                    if not future.done():
                        future.set_exception(
                            StoreError(
                                str(error) or f"The store {self.place} is closed."
                            )
                        )
                return
            for (_, future), response in zip(lookups, responses, strict=True):
                if not future.done():
                    future.set_result(response)

        asyncio.get_running_loop().run_in_executor(
            self._reader, look, "read", keys
        ).add_done_callback(deliver)


def open_server(url: str) -> PostgresDatabase:
    """Open a database for work on the store as a whole. Raises like `PostgresStore.open`."""
    database = PostgresDatabase(url, patience=0.0)
    try:
        database.open()
    except UsageError:
        raise
    except Exception as error:
        database.close()
        raise database.error(error) from None
    return database
