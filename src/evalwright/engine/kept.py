"""A store in a database: one connection reads, one thread writes through another."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from evalwright.core.errors import Failure, StoreError
from evalwright.core.responses import Response
from evalwright.core.secrets import mask
from evalwright.engine.claims import Owner
from evalwright.engine.database import Database
from evalwright.engine.rows import Batch, checksum_of, dump, plain, response_of
from evalwright.engine.store import Store
from evalwright.engine.writer import Writer


class DatabaseStore(Store):
    """What stores in databases have in common. Its kinds say how keys are looked up without holding up the event loop."""

    def __init__(self, reading: Database, writing: Database) -> None:
        super().__init__()
        self.place = reading.place
        self._reading = reading
        self._has_empty = reading.has_empty()
        self._owner = Owner.new()
        self.command = self._owner.id
        self._writer = Writer(writing, self._owner, self._keep)
        self._closed = False

    @property
    def broken(self) -> StoreError | None:
        return self._writer.broken

    def holds(self, key: bytes) -> bool:
        return self._responses((key,))[0] is not None

    async def empty(self, key: bytes) -> Failure | None:
        return self._look("empty", key) if self._has_empty else None

    def remember_empty(self, key: bytes, failure: Failure) -> None:
        text = plain(mask(dump(failure.as_dict())))
        self.outbox().empty(key, text, checksum_of(key, text))
        self._has_empty = True

    def submit(self, batch: Batch) -> None:
        self._writer.submit(batch)

    def ledger(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._look("ledger")
        return found

    def __len__(self) -> int:
        return int(self._look("count"))

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        self._reading.close()

    def _look(self, name: str, *arguments: Any) -> Any:
        """What a method of the database finds."""
        try:
            return getattr(self._reading, name)(*arguments)
        except Exception as error:
            raise self._reading.error(error) from error

    def _responses(self, keys: Sequence[bytes]) -> list[Response | None]:
        return self._read_out(keys, self._look("read", keys))

    def _read_out(self, keys: Sequence[bytes], rows: Sequence[Any]) -> list[Response | None]:
        """The responses that rows hold, in the order of the keys."""
        if not rows:
            return [None] * len(keys)
        found: dict[bytes, Response] = {}
        for row in rows:
            try:
                found[row[0]] = response_of(*row)
            except ValueError:
                self.damaged.add(row[0])
                with suppress(RuntimeError):  # outside an event loop it stays until somebody asks
                    self.outbox().damaged(row[0], row[3])
        return [found.get(key) for key in keys]

    def _keep(self, batches: Sequence[Batch]) -> str:
        """Put what could not be written elsewhere. A disk that is full has no room beside the store either."""
        return ""
