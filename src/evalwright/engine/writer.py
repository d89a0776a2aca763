"""The one thread that writes to the store: everything that is waiting becomes one transaction.

A batch is what one event loop has collected in one of its rounds. While a transaction is on its
way to the disk, further batches collect; so the more there is to write, the less each write
costs (group commit). Between batches the thread renews the owner's lease.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from evalwright.core.errors import StoreError
from evalwright.engine.claims import RENEWAL_SECONDS, Owner
from evalwright.engine.database import Database
from evalwright.engine.store_rows import Batch, Group


class Writer:
    """Runs the writer thread. After the first error, `broken` is set and all later batches fail.

    `keep` saves batches elsewhere that could not be written, and returns a sentence that says so.
    """

    def __init__(
        self, database: Database, owner: Owner, keep: Callable[[Sequence[Batch]], str]
    ) -> None:
        self.broken: StoreError | None = None
        self._database = database
        self._owner = owner
        self._keep = keep
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._renew_at: float | None = None
        """When to renew the lease; None while this owner has claimed nothing and needs no lease."""
        self._closed = False
        # A daemon thread, so that a disk that hangs cannot keep the process from ending; `close`
        # waits for what was submitted.
        self._thread = threading.Thread(
            target=self._run, name="evalwright-store", daemon=True
        )
        self._thread.start()

    def submit(self, batch: Batch) -> None:
        """Submit a batch. Batches are processed in order."""
        if self._closed:
            batch.done(
                batch, StoreError(f"The store {self._database.place} is closed.")
            )
        else:
            self._queue.put(batch)

    def close(self, patience: float = 10.0) -> None:
        """Write what was submitted, end this owner's claims, and stop the thread."""
        self._closed = True
        self._database.closing.set()
        self._queue.put(None)
        self._thread.join(patience)
        self._owner.end()

    def _run(self) -> None:
        closing = False
        while not closing:
            batches: list[Batch] = []
            with contextlib.suppress(Empty):
                batch = self._queue.get(timeout=self._until_renewal())
                while batch is not None:
                    batches.append(batch)
                    batch = self._queue.get_nowait()
                closing = True
            if batches or not closing:
                self._work(batches)
        if self._renew_at is not None:
            # This only spares others some waiting, and is tried on a full disk too: a claim ends
            # with its owner in any case.
            with contextlib.suppress(Exception):
                self._database.forget(self._owner)
        self._database.close()

    def _until_renewal(self) -> float | None:
        if self._renew_at is None or self.broken is not None:
            return None
        return max(0.0, self._renew_at - time.monotonic())

    def _work(self, batches: list[Batch]) -> None:
        try:
            if self.broken is None:
                self._apply(batches)
        except (
            Exception
        ) as error:  # every waiting coroutine must end, whatever the error was
            self.broken = self._database.error(error)
            with contextlib.suppress(Exception):
                self._database.rollback()
        if self.broken is not None:
            saved_message = self._keep(batches)
            if saved_message and saved_message not in str(self.broken):
                self.broken = StoreError(f"{self.broken} {saved_message}")

        for batch in batches:
            batch.done(batch, self.broken)

    def _apply(self, batches: list[Batch]) -> None:
        releases = {key for batch in batches for key in batch.releases}
        if len(batches) > 1 and any(
            key in releases for batch in batches for key in batch.claims
        ):
            # One key is both claimed and released, so their order matters.
            for batch in batches:
                self._together([batch])
        else:
            self._together(batches)

    def _together(self, batches: list[Batch]) -> None:
        group = Group(batches)
        due = self._renew_at is not None and time.monotonic() >= self._renew_at
        group.renew = due or bool(group.claims and self._renew_at is None)
        group.first = self._renew_at is None
        outcomes, changed = self._database.apply(group, self._owner)
        if group.renew:
            self._renew_at = time.monotonic() + RENEWAL_SECONDS
        for batch in batches:
            batch.outcomes = [outcomes[key] for key in batch.claims]
            batch.changed = [key for key in batch.polls if key in changed]
