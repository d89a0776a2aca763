"""The embedded store: one SQLite file, for any number of processes on one host.

Statements carry many rows each, because every step of SQLite releases Python's interpreter lock
and has to wait to get it back.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Self, TypeVar

from evalwright.core.errors import StoreError, UsageError
from evalwright.core.private import open_private, own_database, private_folder
from evalwright.core.responses import Response
from evalwright.engine.claims import Owner
from evalwright.engine.database import Database, StoredRow
from evalwright.engine.exchange import restore_unwritten
from evalwright.engine.schema import connect, retry_while_locked, store_error
from evalwright.engine.store import Store
from evalwright.engine.store_rows import MINE, STORED, Batch, Group, Row

FILE = "store.sqlite"
RESERVE_BYTES = 8 * 2**20
"""Disk space freed when the disk is full, for answers in flight: a thousand of some KB each."""
CHECKPOINT_PAGES = 1000
"""Pages written to the log after which they are moved into the file; SQLite's own default."""
LONG_LOG_PAGES = 4000
"""Pages in the log, 16 MB, after which commits pause for a moment so that it can begin anew."""
_PAGES_PER_COMMIT = 6
_GET_ROW = "SELECT key, model, request, response, checksum FROM responses WHERE key=?"
_CHUNK_SIZES = (128, 16, 4, 1)
_NETWORK_FILE_SYSTEMS = frozenset({
    "afs", "beegfs", "ceph", "cifs", "fhgfs", "fuse.beegfs", "fuse.ceph-fuse",
    "fuse.glusterfs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs",
    "nfs4", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "wekafs",
})  # fmt: skip

T = TypeVar("T")


class SqliteDatabase(Database):
    """A connection to the file."""

    kind = "SQLite"
    order = ("id", -1)

    def __init__(self, path: Path, *, waits: bool = True) -> None:
        super().__init__(str(path))
        self.path = path
        self._connection = connect(path)
        self._durable = True
        self._log: IO[bytes] | None = None
        """The write-ahead log, for flushing it to the disk; opened when it is there."""
        self._log_pages = 0
        """About how many pages were written to the log since the last checkpoint."""
        self._checkpointing: sqlite3.Connection | None = None
        ((mode,),) = self.rows("PRAGMA journal_mode")
        self._has_log = mode == "wal"  # a file system without shared memory has none
        if not waits:
            # SQLite itself does not wait for locks; `retry_while_locked` does
            self._connection.execute("PRAGMA busy_timeout=0")
            self.commits_at_once = self._has_log
            if self._has_log:
                self._connection.execute("PRAGMA wal_autocheckpoint=0")

    def read(self, keys: Sequence[bytes]) -> list[StoredRow]:
        execute = self._connection.execute
        return [
            row
            for key in keys
            if (row := execute(_GET_ROW, (key,)).fetchone()) is not None
        ]

    def apply(self, group: Group, owner: Owner) -> tuple[dict[bytes, str], set[bytes]]:
        changed = (
            retry_while_locked(lambda: self.freed(group.polls))
            if group.polls
            else set()
        )
        if not self._changes_anything(group):
            return {}, changed
        self._begin(durable=not self._has_log)
        return self._commit(group, owner), changed

    def try_apply(self, group: Group, owner: Owner) -> dict[bytes, str] | None:
        if not self._changes_anything(group):
            return {}
        self._set_durable(not self._has_log)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            return self._commit(group, owner)
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                self.rollback()
            if isinstance(error, Exception):
                # Another process is writing, or it is an error that the writer's thread gets too.
                return None
            raise

    def sync(self) -> None:
        if not self._has_log:
            return
        path = self.path.with_name(f"{self.path.name}-wal")
        if not path.exists():  # SQLite would go on writing, for nobody
            raise StoreError(
                f"The store {self.path} was moved or deleted while it was in use: put it"
                " back if you have it, and run again."
            )
        if self._log is None:
            # SQLite has no locks on this file, which closing it here would end.
            self._log = path.open("r+b", buffering=0)
            _sync_folder(path.parent)  # the log may be new
        os.fsync(self._log.fileno())

    def checkpoint(self, *, is_paused: bool = False) -> bool:
        if not is_paused and self._log_pages < CHECKPOINT_PAGES:
            return False
        self._log_pages = 0
        with contextlib.suppress(sqlite3.Error):  # a later one moves what stays
            if self._checkpointing is None:
                self._checkpointing = sqlite3.connect(
                    self.path, isolation_level=None, check_same_thread=False
                )
            ((_, log_pages, _),) = self._checkpointing.execute(
                "PRAGMA wal_checkpoint(PASSIVE)"
            ).fetchall()
            # The log begins anew if all of it has been moved when the next commit begins. What is
            # committed during a checkpoint stays.
            return bool(log_pages > LONG_LOG_PAGES)
        return False

    def holders(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        owner_by_key: dict[bytes, str] = {}
        for chunk in _chunks(keys):
            owner_by_key.update(
                self.rows(
                    f"SELECT key, owner FROM claims WHERE key IN ({_marks(len(chunk))})",
                    chunk,
                )
            )
        return owner_by_key

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def change(self, statement: str, values: Sequence[Sequence[Any]]) -> int:
        if not values:
            return 0
        self._begin(durable=True)
        try:
            changed = self._connection.executemany(statement, values).rowcount
            self._connection.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise
        return changed

    def exclusively(self, step: Callable[[], T]) -> T:
        self._begin(durable=True)
        try:
            outcome = step()
            self._connection.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise
        return outcome

    def now(self) -> float:
        return time.time()

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def error(self, error: Exception) -> StoreError:
        return store_error(self.path, error)

    def size(self) -> int:
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def shrink(self) -> None:
        retry_while_locked(lambda: self._connection.execute("VACUUM"))
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def check(self) -> list[str]:
        return [
            problem
            for (problem,) in self.rows("PRAGMA quick_check(10)")
            if problem != "ok"
        ]

    def close(self) -> None:
        for resource in (self._log, self._checkpointing, self._connection):
            if resource is not None:
                resource.close()

    def _changes_anything(self, group: Group) -> bool:
        return bool(
            group.claims or group.renew or group.writes or self._unwritten_bills
        )

    def _commit(self, group: Group, owner: Owner) -> dict[bytes, str]:
        """Carry out a group in the transaction that has begun, and commit it."""
        self.add_bills(group, owner)
        if group.renew:
            self.register(owner)
            if group.first:
                self.sweep()
        self.write_small(group)
        self._put(group.puts)
        for chunk in _chunks(group.releases):
            marks = _marks(len(chunk))
            self._connection.execute(
                f"DELETE FROM claims WHERE key IN ({marks}) AND owner=?",
                (*chunk, owner.id),
            )
        outcomes = self._claim(group.claims, owner) if group.claims else {}
        self._connection.execute("COMMIT")
        self.bills_written()
        self._log_pages += _PAGES_PER_COMMIT + 2 * len(group.puts)
        return outcomes

    def _begin(self, durable: bool) -> None:
        self._set_durable(durable)
        retry_while_locked(lambda: self._connection.execute("BEGIN IMMEDIATE"))

    def _set_durable(self, durable: bool) -> None:
        """Choose whether commits wait until they survive a loss of power."""
        if durable is not self._durable:
            self._connection.execute(
                f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}"
            )
            self._durable = durable

    def _put(self, rows: list[Row]) -> None:
        for chunk in _chunks(rows):
            values = ",".join(["(?,?,?,?,?,?)"] * len(chunk))
            self._connection.execute(
                "INSERT OR REPLACE INTO responses (key, model, request, response,"
                f" created, checksum) VALUES {values}",
                [column for row in chunk for column in row],
            )

    def _claim(self, keys: list[bytes], owner: Owner) -> dict[bytes, str]:
        outcomes: dict[bytes, str] = dict.fromkeys(keys, MINE)
        owner_by_key = self.holders(keys)
        alive = self.living(sorted(set(owner_by_key.values()) - {owner.id}))
        outcomes.update(
            (key, holder) for key, holder in owner_by_key.items() if holder in alive
        )
        for chunk in _chunks(keys):
            stored_keys = self.rows(
                f"SELECT key FROM responses WHERE key IN ({_marks(len(chunk))})", chunk
            )
            outcomes.update((key, STORED) for (key,) in stored_keys)
        mine = [key for key, outcome in outcomes.items() if outcome is MINE]
        for chunk in _chunks(mine):
            values = ",".join(["(?,?)"] * len(chunk))
            self._connection.execute(
                f"INSERT OR REPLACE INTO claims (key, owner) VALUES {values}",
                [parameter for key in chunk for parameter in (key, owner.id)],
            )
        return outcomes


class SqliteStore(Store):
    """A store in one file. Use `SqliteStore.open`."""

    def __init__(
        self, path: Path, reading: SqliteDatabase, writing: SqliteDatabase
    ) -> None:
        self._reserve = reserve_space(path.parent)
        super().__init__(reading, writing, path.parent)
        self.path = path

    @classmethod
    def open(cls, home: Path) -> Self:
        """Open or create `<home>/store.sqlite`.

        Raises:
            StoreError: the folder cannot be written, the disk is full, the file is damaged, or a
                newer version wrote it.
        """
        path = home / FILE
        reading: SqliteDatabase | None = None
        try:
            reading = open_file(path)
            reading.rows("SELECT count(*) FROM (SELECT key FROM responses LIMIT 1)")
            restored = restore_unwritten(home, reading)
            store = cls(path, reading, SqliteDatabase(path, waits=False))
        except (OSError, sqlite3.Error, UsageError) as error:
            if reading is not None:
                reading.close()
            raise store_error(path, error) from error
        store.notices += [
            notice for notice in (network_warning(path), restored) if notice
        ]
        return store

    async def get_many(self, keys: Sequence[bytes]) -> list[Response | None]:
        # A look into the file takes microseconds: handing it to a thread would take longer.
        return self._read_out(keys, self._look("read", keys))

    def close(self) -> None:
        super().close()
        self._reserve.close()

    def _keep(self, batches: Sequence[Batch]) -> str:
        self._reserve.close()  # on a full disk, this frees space for what is waiting
        return super()._keep(batches)


def reserve_space(folder: Path) -> IO[bytes]:
    """Reserve disk space that is freed when the file is closed, also by the death of the process.

    The file has no name. It is empty if there is no space.
    """
    file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  # the caller closes it
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
    except OSError:  # too little space is left, or the file system cannot reserve any
        file.truncate(0)
    return file


def _sync_folder(folder: Path) -> None:
    """Flush the names of a folder's files to the disk, where the system can do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def open_file(path: Path) -> SqliteDatabase:
    """Open or create a store's file, readable by its owner alone.

    Raises:
        OSError, sqlite3.Error, StoreError: it cannot be opened.
    """
    private_folder(path.parent)
    # SQLite gives the files beside it the same permissions
    open_private(own_database(path), "ab").close()
    return SqliteDatabase(path)


def network_warning(path: Path, mounts: str | None = None) -> str:
    """Return a warning if the file is on a network file system; "" if it is not or that is unknown.

    `mounts` is the content of /proc/self/mountinfo.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(
                encoding="utf-8", errors="replace"
            )
        except OSError:
            return ""
    real_path = Path(os.path.realpath(path))
    best = ("", "")
    for line in mounts.splitlines():
        mount, _, system = line.partition(" - ")
        with contextlib.suppress(IndexError):
            folder = mount.split()[4].encode().decode("unicode_escape")
            if real_path.is_relative_to(folder) and len(folder) >= len(best[0]):
                best = (folder, system.split()[0])
    if best[1] not in _NETWORK_FILE_SYSTEMS:
        return ""
    return (
        f"The store {path} is on a network file system ({best[1]}, mounted at"
        f" {best[0]}). SQLite cannot lock a file between hosts there, and the file can"
        " be damaged if two hosts use it. Choose a local folder with --home or"
        " EVALWRIGHT_HOME, or a PostgreSQL server with EVALWRIGHT_STORE."
    )


def _chunks(sequence: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield slices of a few fixed lengths, so that their SQL statements stay prepared."""
    start = 0
    for size in _CHUNK_SIZES:
        while len(sequence) - start >= size:
            yield sequence[start : start + size]
            start += size


def _marks(count: int) -> str:
    return ",".join("?" * count)
