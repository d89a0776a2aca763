"""What the engine needs of a store: every response that was ever given, by the content of its
request, and who asks what now.

An answer is acknowledged only after it is durable, so an acknowledged answer outlives `kill -9`.
Several processes may use one store at a time: what one of them is asking, the others wait for. One
connection to its database reads, one thread writes through another. `sqlite.py` and `postgres.py`
are such stores; `opening.py` opens the one that is named.
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
from evalwright.engine.exchange import keep
from evalwright.engine.outbox import Outbox
from evalwright.engine.rows import Batch, Group, checksum_of, dump, plain, response_of
from evalwright.engine.writer import Writer


class Store(ABC):
    """An open store. Close it when the work is done. One `Engine` at a time may use it.

    Its kinds say how keys are looked up without holding up the event loop.
    """

    poll_seconds = 0.1
    """Between two looks for requests that another owner has sent."""

    def __init__(self, reading: Database, writing: Database, home: Path) -> None:
        self.place = reading.place
        """Where it is, for people: a file, or a server's host and database. No password."""
        self.damaged: set[bytes] = set()
        """Keys whose rows were found damaged, and count as absent; who reports one takes it out."""
        self.notices: list[str] = []
        """What a person should know of the place, in a sentence each."""
        self.say: Callable[[str], None] = _ignore
        """Told, in any thread, of what happens meanwhile."""
        self._outboxes: dict[asyncio.AbstractEventLoop, Outbox] = {}
        self._reading = reading
        self._writing = writing
        self._home = home
        self._empty = reading.empty_keys()
        self._owner = Owner.new()
        self.command = self._owner.id
        """What the ledger and the claims call this opening of the store."""
        self._writer = Writer(writing, self._owner, self._keep)
        self._closed = False

    @property
    def broken(self) -> StoreError | None:
        """The error that ended the store's service, if one did."""
        return self._writer.broken

    @abstractmethod
    async def get_many(self, keys: Sequence[bytes]) -> list[Response | None]:
        """The stored answer to each, or None.

        A row that cannot be read counts as absent and is removed.
        """

    async def allot(
        self, budget: str, wanted: Mapping[str, float], limits: Mapping[str, float]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """As `Database.allot`, to this opening of the store."""
        allotment: tuple[dict[str, float], dict[str, float]] = await self.look(
            "allot", budget, self.command, wanted, limits
        )
        return allotment

    async def settle_allotment(self, budget: str, spent: Mapping[str, float]) -> None:
        """What was allotted to this opening of the store and not spent is free for others."""
        await self.look("settle_allotment", budget, self.command, spent)

    async def look(self, name: str, *arguments: Any) -> Any:
        """What a method of the database finds, without holding up the event loop where that would
        take long.
        """
        return self._look(name, *arguments)

    async def empty(self, key: bytes, *, lately: bool = False) -> Failure | None:
        """The failure that is remembered of a request to which every reply was empty, or None.

        lately: another owner may have sent it since this store was opened.
        """
        return self._look("empty", key) if lately or key in self._empty else None

    def remember_empty(self, key: bytes, failure: Failure) -> None:
        """Keep the failure of such a request."""
        text = plain(mask(dump(failure.as_dict())))
        self.outbox().empty(key, text, checksum_of(key, text))
        self._empty.add(key)

    def holds(self, key: bytes) -> bool:
        """Whether there is an answer that can be read, for code outside of an event loop."""
        return self._read_out((key,), self._look("read", (key,)))[0] is not None

    def ledger(self) -> list[dict[str, Any]]:
        """What was sent and paid, by command, model and outcome; docs/records.md describes the
        columns.
        """
        found: list[dict[str, Any]] = self._look("ledger")
        return found

    def __len__(self) -> int:
        """How many answers are stored."""
        return int(self._look("count"))

    def close(self) -> None:
        """Write what is still waiting, give up all claims, and close. May be called twice."""
        if self._closed:
            return
        self._closed = True
        for outbox in self._outboxes.values():
            outbox.flush()
        self._writer.close()
        self._reading.close()

    def outbox(self) -> Outbox:
        """The running event loop's way to the store. Raises RuntimeError where no loop is running."""
        loop = asyncio.get_running_loop()
        found = self._outboxes.get(loop)
        if found is None:
            self._outboxes = {
                one: box for one, box in self._outboxes.items() if not one.is_closed()
            }
            found = self._outboxes[loop] = Outbox(
                self._writer.submit, loop, self.poll_seconds
            )
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self, name: str, *arguments: Any) -> Any:
        """What a method of the database finds."""
        try:
            return getattr(self._reading, name)(*arguments)
        except Exception as error:
            raise self._reading.error(error) from error

    def _read_out(
        self, keys: Sequence[bytes], rows: Sequence[Any]
    ) -> list[Response | None]:
        """The responses that rows hold, in the order of the keys."""
        if not rows:
            return [None] * len(keys)
        found: dict[bytes, Response] = {}
        for row in rows:
            try:
                found[row[0]] = response_of(*row)
            except ValueError:
                self.damaged.add(row[0])
                with suppress(
                    RuntimeError
                ):  # outside an event loop it stays until somebody asks
                    self.outbox().damaged(row[0], row[3])
        return [found.get(key) for key in keys]

    def _keep(self, batches: Sequence[Batch]) -> str:
        """Put what could not be written into a file of the home folder, where the next opening
        takes it back.
        """
        group = Group(batches)
        self._writing.owe(group, self._owner)
        kept = keep(self._home, self.command, group, self._writing.owed())
        self._writing.settled()
        return kept


def _ignore(event: str) -> None:
    pass
