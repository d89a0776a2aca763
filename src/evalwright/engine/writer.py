"""Writes batches to the store: at once where that is possible, else in a thread of its own.

A batch is what one event loop has collected in one of its rounds. Where the store is a file, it
is committed in the loop's own thread, and then survives the end of the process. To hand it over
first would cost a thread switch for each step of SQLite: half a second on a loaded machine, in
which a kill loses it.

What takes long is done in the thread: flushing to the disk, waiting for another process, and the
network. Meanwhile further batches collect, and become one flush or one transaction; so the more
there is to write, the less each write costs (group commit). Between batches the thread renews the
owner's lease.
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
        self._queue: SimpleQueue[tuple[Batch, bool] | None] = SimpleQueue()
        self._renew_at: float | None = None
        """When to renew the lease; None while this owner has claimed nothing and needs no lease."""
        self._closed = False
        self._submitting = threading.Lock()
        self._committing = threading.Lock()
        """Held while `database` is in use."""
        self._queued_count = 0
        """Batches that were queued uncommitted so far. Later ones must wait for them."""
        self._processed_count = 0
        """Batches of those that the thread has processed."""
        # A daemon thread, so that a disk that hangs cannot keep the process from ending; `close`
        # waits for what was submitted.
        self._thread = threading.Thread(
            target=self._run, name="evalwright-store", daemon=True
        )
        self._thread.start()

    def submit(self, batch: Batch) -> bool:
        """Submit a batch. Batches are committed in order.

        `batch.done` is called in the writer's thread once the batch is on the disk or the server,
        or has failed; but not for one that is committed at once and stores nothing.

        Returns:
            Whether the batch is committed at once. Then the outcomes of its claims are there, and
            it survives the end of this process, though perhaps not a loss of power.
        """
        with self._submitting:
            if not self._closed:
                return self._commit_or_queue(batch)
        batch.done(batch, StoreError(f"The store {self._database.place} is closed."))
        return False

    def close(self, patience: float = 10.0) -> None:
        """Write what was submitted, end this owner's claims, and stop the thread."""
        with self._submitting:
            self._closed = True
            self._queue.put(None)
        self._database.closing.set()
        self._thread.join(patience)
        self._owner.end()

    def _commit_or_queue(self, batch: Batch) -> bool:
        is_committed = False
        try:
            is_committed = self._try_commit(batch)
        finally:  # a Ctrl-C in the middle of a commit must not lose what was paid for
            if not is_committed:
                self._queued_count += 1
            if not is_committed or batch.stores:
                self._queue.put((batch, is_committed))
        return is_committed

    def _try_commit(self, batch: Batch) -> bool:
        """Commit a batch in the caller's thread, unless that could take long."""
        if not self._database.commits_at_once or batch.polls:
            return False
        if not self._committing.acquire(blocking=False):
            return False
        try:
            is_first_claim = self._renew_at is None and batch.claims
            is_behind = self._queued_count > self._processed_count
            if is_first_claim or is_behind or self.broken is not None:
                return False
            outcomes = self._database.try_apply(Group([batch]), self._owner)
            if outcomes is None:
                return False
            batch.outcomes = [outcomes[key] for key in batch.claims]
            return True
        finally:
            self._committing.release()

    def _run(self) -> None:
        closing = False
        while not closing:
            committed: list[Batch] = []
            waiting: list[Batch] = []
            with contextlib.suppress(Empty):
                submission = self._queue.get(timeout=self._until_renewal())
                while submission is not None:
                    batch, is_committed = submission
                    (committed if is_committed else waiting).append(batch)
                    submission = self._queue.get_nowait()
                closing = True
            if committed or waiting or not closing:
                self._work(committed, waiting)
        if self._renew_at is not None:
            # This only spares others some waiting, and is tried on a full disk too: a claim ends
            # with its owner in any case.
            with contextlib.suppress(Exception), self._committing:
                self._database.forget(self._owner)
        self._database.close()

    def _until_renewal(self) -> float | None:
        if self._renew_at is None or self.broken is not None:
            return None
        return max(0.0, self._renew_at - time.monotonic())

    def _work(self, committed: list[Batch], waiting: list[Batch]) -> None:
        """Commit the waiting batches, and see that all are on the disk."""
        failed: list[Batch] = []
        if waiting or self._until_renewal() == 0.0:
            with self._committing:
                if not self._attempt(lambda: self._apply(waiting)):
                    failed = waiting
                self._processed_count += len(waiting)
        if failed is waiting:
            waiting = []
        if any(batch.stores for batch in (*committed, *waiting)):
            try:
                self._database.sync()
            except Exception as error:
                with self._committing:
                    self._break(error)
                failed = [*committed, *waiting, *failed]
                committed = waiting = []
        if failed:
            self._save(failed)
        for batch in (*committed, *waiting):
            batch.done(batch, None)
        for batch in failed:
            batch.done(batch, self.broken)
        if self._database.checkpoint():
            with self._committing:
                self._database.checkpoint(is_paused=True)

    def _attempt(self, step: Callable[[], None]) -> bool:
        """Carry out a step; return whether it succeeded. After an error, none does."""
        if self.broken is None:
            try:
                step()
            except (
                Exception
            ) as error:  # every waiting coroutine must end, whatever the error was
                self._break(error)
        return self.broken is None

    def _break(self, error: Exception) -> None:
        self.broken = self._database.error(error)
        with contextlib.suppress(Exception):
            self._database.rollback()

    def _save(self, failed: list[Batch]) -> None:
        """Save batches elsewhere, and say so in the error."""
        saved_message = self._keep(failed)
        if saved_message and saved_message not in str(self.broken):
            self.broken = StoreError(f"{self.broken} {saved_message}")

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
