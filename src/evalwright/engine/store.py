"""The store as the engine sees it: every response so far, by request, and who is sending what now.

An answer is acknowledged only once it is durable, so an acknowledged answer survives `kill -9`.
Several processes may use one store at a time: if one of them is sending a request, the others
wait for its answer. One connection to the database reads, one thread writes through another.
`sqlite.py` and `postgres.py` are such stores; `opening.py` opens the right one.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from evalwright.core.errors import Failure, StoreError
from evalwright.core.responses import Response
from evalwright.core.secrets import mask
from evalwright.engine.claims import Owner
from evalwright.engine.database import Database
from evalwright.engine.exchange import save_unwritten
from evalwright.engine.outbox import Outbox
from evalwright.engine.store_rows import (
    Batch,
    Group,
    checksum_of,
    dump,
    response_of,
    storable_text,
)
from evalwright.engine.writer import Writer


class Store(ABC):
    """An open store. Close it when the work is done. One `Engine` at a time may use it.

    Subclasses implement how keys are looked up without blocking the event loop.
    """

    poll_seconds = 0.1
    """Seconds between two looks for answers that another owner is waiting for."""

    def __init__(self, reading: Database, writing: Database, home: Path) -> None:
        self.place = reading.place
        """Where the store is, for people: a file, or a server's host and database.

        It contains no password.
        """
        self.damaged: set[bytes] = set()
        """Keys of damaged rows, which count as absent; whoever reports one removes it from here."""
        self.notices: list[str] = []
        """Sentences that a person should know about the place."""
        self.say: Callable[[str], None] = _ignore
        """Called with a sentence about what happens during the run, in any thread."""
        self._outboxes: dict[asyncio.AbstractEventLoop, Outbox] = {}
        self._reading = reading
        self._writing = writing
        self._home = home
        self._empty = reading.empty_keys()
        self._owner = Owner.new()
        self.command = self._owner.id
        """The id of this opening of the store, in the ledger and the claims."""
        self._writer = Writer(writing, self._owner, self._keep)
        self._closed = False

    @property
    def home(self) -> Path:
        """The home folder."""
        return self._home

    @property
    def broken(self) -> StoreError | None:
        """The error that ended the store's service; None if it works."""
        return self._writer.broken

    @abstractmethod
    async def get_many(self, keys: Sequence[bytes]) -> list[Response | None]:
        """Return the stored response for each key, or None.

        A row that cannot be read counts as absent and is deleted.
        """

    async def allot(
        self, budget: str, amounts: Mapping[str, float], limits: Mapping[str, float]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """See `Database.allot`; the command is this opening of the store."""
        allotment: tuple[dict[str, float], dict[str, float]] = await self.look(
            "allot", budget, self.command, amounts, limits
        )
        return allotment

    async def settle_allotment(self, budget: str, spent: Mapping[str, float]) -> None:
        """Give back what was allotted to this opening of the store and not spent."""
        await self.look("settle_allotment", budget, self.command, spent)

    async def look(self, name: str, *arguments: Any) -> Any:
        """Call a method of the database, without blocking the event loop if that takes long."""
        return self._look(name, *arguments)

    @property
    def remembers_failures(self) -> bool:
        """Whether this owner knows of any request to which every reply was empty."""
        return bool(self._empty)

    async def empty(self, key: bytes, *, lately: bool = False) -> Failure | None:
        """Return the remembered failure of a request to which every reply was empty, or None.

        `lately` says that another owner may have sent it since this store was opened.
        """
        return self._look("empty", key) if lately or key in self._empty else None

    def remember_empty(self, key: bytes, failure: Failure) -> None:
        """Remember the failure of a request to which every reply was empty."""
        text = storable_text(mask(dump(failure.as_dict())))
        self.outbox().empty(key, text, checksum_of(key, text))
        self._empty.add(key)

    def holds(self, key: bytes) -> bool:
        """Return whether there is a readable answer; for code outside an event loop."""
        return self._read_out((key,), self._look("read", (key,)))[0] is not None

    def ledger(self) -> list[dict[str, Any]]:
        """Return what was sent and paid, by command, model and outcome.

        docs/records.md describes the columns.
        """
        rows: list[dict[str, Any]] = self._look("ledger")
        return rows

    def __len__(self) -> int:
        """Return the number of stored answers."""
        return int(self._look("count"))

    def close(self) -> None:
        """Write what is still waiting, give up all claims, and close. May be called twice."""
        if self._closed:
            return
        self._closed = True
        try:
            for outbox in self._outboxes.values():
                outbox.flush()
        finally:
            self._writer.close()
            self._reading.close()

    def outbox(self) -> Outbox:
        """Return the running event loop's access to the store.

        Raises:
            RuntimeError: no event loop is running.
        """
        loop = asyncio.get_running_loop()
        outbox = self._outboxes.get(loop)
        if outbox is None:
            for other_loop in list(self._outboxes):
                if other_loop.is_closed():
                    # What it still holds was paid for, and no timer of its loop comes any more.
                    self._outboxes.pop(other_loop).flush()
            outbox = self._outboxes[loop] = Outbox(
                self._writer.submit, loop, self.poll_seconds
            )
        return outbox

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self, name: str, *arguments: Any) -> Any:
        """Call a method of the database."""
        try:
            return getattr(self._reading, name)(*arguments)
        except Exception as error:
            raise self._reading.error(error) from error

    def _read_out(
        self, keys: Sequence[bytes], rows: Sequence[Any]
    ) -> list[Response | None]:
        """Decode the responses in these rows, in the order of the keys."""
        if not rows:
            return [None] * len(keys)
        responses: dict[bytes, Response] = {}
        for row in rows:
            try:
                responses[row[0]] = response_of(*row)
            except ValueError:
                self.damaged.add(row[0])
                with suppress(
                    RuntimeError
                ):  # outside an event loop it stays until a later look-up
                    self.outbox().damaged(row[0], row[3])
        return [responses.get(key) for key in keys]

    def _keep(self, batches: Sequence[Batch]) -> str:
        """Save what could not be written in a file of the home folder, for the next opening."""
        group = Group(batches)
        self._writing.add_bills(group, self._owner)
        notice = save_unwritten(
            self._home, self.command, group, self._writing.unwritten_bills()
        )
        self._writing.bills_written()
        return notice


def _ignore(event: str) -> None:
    pass
