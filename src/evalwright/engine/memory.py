"""A store that is never written to disk: it holds what fits in memory, and ends with its process.

For prompts of others, which nobody may keep. Nothing is shared with other processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn, TypeVar

from evalwright.core.errors import Failure, StoreError
from evalwright.core.responses import Response
from evalwright.engine.claims import Owner
from evalwright.engine.database import LEDGER, Database, StoredRow
from evalwright.engine.store import Store
from evalwright.engine.store_rows import MINE, STORED, Batch, Group

MAX_MEMORY_BYTES = 512 * 2**20
"""Most bytes of responses that are held; the oldest are dropped first."""
_ROW_BYTES = 400
"""Bytes that a row takes beside its response."""
MAX_REMEMBERED_FAILURES = 100_000

T = TypeVar("T")


class MemoryDatabase(Database):
    """Rows in a dictionary.

    One thread writes and another reads; each step that both see is a single operation on a
    dictionary.
    """

    kind = "memory"
    order = ("id", -1)

    def __init__(self, max_bytes: int = MAX_MEMORY_BYTES) -> None:
        super().__init__("memory")
        self._max_bytes = max_bytes
        self._bytes = 0
        self._rows: dict[bytes, StoredRow] = {}
        self._failures: dict[bytes, str] = {}

    def read(self, keys: Sequence[bytes]) -> list[StoredRow]:
        return [row for key in keys if (row := self._rows.get(key)) is not None]

    def apply(self, group: Group, owner: Owner) -> tuple[dict[bytes, str], set[bytes]]:
        self.add_bills(group, owner)
        self.bills_written()
        for key, content in group.damaged:
            row = self._rows.get(key)
            if row is not None and row[3] == content:
                self._remove(key)
        for key, failure, _ in group.empty:
            if len(self._failures) < MAX_REMEMBERED_FAILURES:
                self._failures[key] = failure
        for key, model, request, response, _, checksum in group.puts:
            self._remove(key)
            self._rows[key] = (key, model, request, response, checksum)
            self._bytes += len(request) + len(response) + _ROW_BYTES
        while self._bytes > self._max_bytes and self._rows:
            self._remove(next(iter(self._rows)))
        outcomes = {key: STORED if key in self._rows else MINE for key in group.claims}
        return dict(outcomes), set(group.polls)

    def _remove(self, key: bytes) -> None:
        row = self._rows.pop(key, None)
        if row is not None:
            self._bytes -= len(row[2]) + len(row[3]) + _ROW_BYTES

    def holders(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        return {}

    def forget(self, owner: Owner) -> None:
        """Do nothing: claims are not kept, because no other process sees them."""

    def empty_keys(self) -> set[bytes]:
        return set(self._failures)

    def empty(self, key: bytes) -> Failure | None:
        failure = self._failures.get(key)
        return None if failure is None else Failure(**json.loads(failure))

    def ledger(self) -> list[dict[str, Any]]:
        return [
            dict(zip(LEDGER, (*key, *sums), strict=True))
            for key, sums in self._bills.items()
        ]

    def count(self) -> int:
        return len(self._rows)

    def rows(self, statement: str, values: Sequence[Any] = ()) -> NoReturn:
        raise StoreError("A store in memory has no tables.")

    def change(self, statement: str, values: Sequence[Sequence[Any]]) -> NoReturn:
        self.rows(statement)

    def exclusively(self, step: Callable[[], T]) -> NoReturn:
        self.rows("")

    def now(self) -> float:
        return 0.0

    def rollback(self) -> None:
        """Do nothing: no step of `apply` can fail half-way."""

    def error(self, error: Exception) -> StoreError:
        return StoreError(
            f"The store in memory failed: {type(error).__name__}: {error}"
        )

    def size(self) -> int:
        return self._bytes

    def shrink(self) -> None:
        """Do nothing: a removed row takes no space."""

    def check(self) -> list[str]:
        return []

    def close(self) -> None:
        """Do nothing: the rows end with the process."""


class MemoryStore(Store):
    """A store in memory alone.

    Args:
        max_bytes: most bytes of responses to hold.
    """

    def __init__(self, max_bytes: int = MAX_MEMORY_BYTES) -> None:
        database = MemoryDatabase(max_bytes)
        super().__init__(database, database, Path())
        self._scratch: TemporaryDirectory[str] | None = None

    @property
    def home(self) -> Path:
        """A folder that goes with the store, for what does not fit into memory."""
        if self._scratch is None:
            self._scratch = TemporaryDirectory(prefix="evalwright-")
        return Path(self._scratch.name)

    def close(self) -> None:
        super().close()
        if self._scratch is not None:
            self._scratch.cleanup()

    async def get_many(self, keys: Sequence[bytes]) -> list[Response | None]:
        return self._read_out(keys, self._look("read", keys))

    def _keep(self, batches: Sequence[Batch]) -> str:
        """Save nothing elsewhere."""
        return ""
