"""Every answer that was ever given, in one SQLite file, by the content of its request.

An answer is acknowledged only after it is on disk, so an acknowledged answer outlives `kill -9`. Several processes may use
one store at a time: what one of them is asking, the others wait for.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from evalwright.core.errors import Failure, StoreError
from evalwright.core.private import open_private, own_database, private_folder
from evalwright.core.responses import Response
from evalwright.core.secrets import mask, mask_json
from evalwright.engine.claims import Owner
from evalwright.engine.outbox import Outbox
from evalwright.engine.schema import connect, store_error
from evalwright.engine.writer import Row, Writer

FILE = "store.sqlite"
_COMPRESS_FROM = 1024
_GET = "SELECT model, request, response, checksum FROM responses WHERE key=?"

_dump = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Store:
    """An open store. Use `Store.open`; close it when the work is done. One `Engine` at a time may use it."""

    def __init__(self, path: Path, reader: sqlite3.Connection, writer: Writer, owner: Owner) -> None:
        self.path = path
        self._reader = reader
        self._writer = writer
        self._owner = owner
        self.damaged = 0
        """Rows that were found damaged, and count as absent."""
        self._has_empty = reader.execute("SELECT key FROM empty LIMIT 1").fetchone() is not None
        self._outboxes: dict[asyncio.AbstractEventLoop, Outbox] = {}
        self._closed = False

    @classmethod
    def open(cls, home: Path) -> Self:
        """Open or create `<home>/store.sqlite`.

        Raises StoreError, with a plain sentence, where the folder cannot be written, the disk is full, the file is
        damaged, or a newer version wrote it.
        """
        path = home / FILE
        reader: sqlite3.Connection | None = None
        owner: Owner | None = None
        try:
            private_folder(home)
            open_private(
                own_database(path), "ab"
            ).close()  # SQLite gives the files beside it the same permissions
            owner = Owner(home / "owners")
            reader = connect(path)
            reader.execute("SELECT count(*) FROM (SELECT key FROM responses LIMIT 1)").fetchone()
            writing = connect(path)
        except (OSError, sqlite3.Error, StoreError) as error:
            if reader is not None:
                reader.close()
            if owner is not None:
                owner.close()
            raise store_error(path, error) from error
        return cls(path, reader, Writer(path, writing, owner), owner)

    @property
    def broken(self) -> StoreError | None:
        """The error that ended the store's service, if one did."""
        return self._writer.broken

    def get(self, key: bytes) -> Response | None:
        """The stored answer, or None. A row that cannot be read counts as absent and is removed."""
        try:
            row = self._reader.execute(_GET, (key,)).fetchone()
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error
        if row is None:
            return None
        try:
            model, request, response, checksum = row
            if checksum is not None and checksum != checksum_of(key, model, request, response):
                raise ValueError("another checksum")
            return Response.from_dict(json.loads(unpack(response))).without_secrets()
        except (ValueError, TypeError, AttributeError, zlib.error):
            self.damaged += 1
            with suppress(RuntimeError):  # outside an event loop it stays until somebody asks
                self.outbox().damaged(key, row[2])
            return None

    def empty(self, key: bytes) -> Failure | None:
        """The failure that is remembered of a request to which every reply was empty, or None."""
        if not self._has_empty:
            return None
        try:
            row = self._reader.execute("SELECT failure, checksum FROM empty WHERE key=?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error
        if row is None or row[1] != checksum_of(key, row[0]):
            return None
        return Failure(**json.loads(row[0]))

    def remember_empty(self, key: bytes, failure: Failure) -> None:
        """Keep the failure of such a request."""
        text = mask(_dump(failure.as_dict()))
        self.outbox().empty(key, text, checksum_of(key, text))
        self._has_empty = True

    def ledger(self) -> list[dict[str, Any]]:
        """What was sent and paid, by command, model and outcome; docs/records.md describes the columns."""
        rows = self._reader.execute("SELECT * FROM ledger ORDER BY first")
        names = [column[0] for column in rows.description]
        return [dict(zip(names, row, strict=True)) for row in rows]

    @property
    def command(self) -> str:
        """What the ledger calls this opening of the store."""
        return self._owner.id

    def outbox(self) -> Outbox:
        """The running event loop's way to the writer. Raises RuntimeError where no loop is running."""
        loop = asyncio.get_running_loop()
        found = self._outboxes.get(loop)
        if found is None:
            self._outboxes = {one: box for one, box in self._outboxes.items() if not one.is_closed()}
            found = self._outboxes[loop] = Outbox(self._writer, loop)
        return found

    def __len__(self) -> int:
        """How many answers are stored."""
        try:
            return int(self._reader.execute("SELECT count(*) FROM responses").fetchone()[0])
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    def close(self) -> None:
        """Write what is still waiting, give up all claims, and close the file. May be called twice."""
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        self._owner.close()
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def row_of(key: bytes, fingerprint: str, payload: bytes, response: Response) -> Row:
    """The row as it is written: request and response as JSON, compressed where that pays."""
    answer = _dump(response.as_dict()).encode("utf-8", "surrogatepass")
    request, packed = pack(mask_json(payload)), pack(answer)
    return key, fingerprint, request, packed, time.time(), checksum_of(key, fingerprint, request, packed)


def checksum_of(key: bytes, text: str, *more: bytes) -> int:
    """CRC-32 of a row's columns: against damage, not against forgery."""
    found = zlib.crc32(key + text.encode("utf-8", "surrogatepass"))
    for part in more:
        found = zlib.crc32(part, found)
    return found


def pack(text: bytes) -> bytes:
    """JSON as it is, or compressed from 1 KB on. A small window costs a third of zlib's default time at this size."""
    if len(text) < _COMPRESS_FROM:
        return text
    squeezer = zlib.compressobj(1, zlib.DEFLATED, 13, 6)
    return squeezer.compress(text) + squeezer.flush()


def unpack(data: bytes) -> str:
    """The inverse of `pack`. Raises ValueError or zlib.error for what `pack` cannot have made."""
    text = data if data[:1] == b"{" else zlib.decompress(data)
    return text.decode("utf-8", "surrogatepass")
