"""One event loop's side of the store: collects requests to the writer and wakes their waiters.

`claim` also waits for other processes: requests that they are sending are looked up again every
few tenths of a second, all of them in one query.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from evalwright.core.errors import StoreError
from evalwright.core.responses import Usage
from evalwright.engine.event_loop import has_unread_replies
from evalwright.engine.store_rows import MINE, Batch, BillKey, Row

MAX_BATCH_PUTS = 48
"""A batch with so many responses is submitted at once. So a kill loses at most 64 replies.

The others are those that the event loop has just read (`event_loop.MAX_EVENTS`).
"""
_GAP_SECONDS_PER_WISH = 0.005
_MAX_GAP_SECONDS = 0.04
"""Longest time between two batches; the time grows with the size of the last batch.

A lone request hardly waits. With hundreds a second, collecting them for a moment needs a tenth
of the transactions and wake-ups; nothing is delayed by it, because others are in flight.
"""
_MAX_RUNNING_SECONDS = 0.02
"""Longest processor time of the loop's thread between two batches that have responses.

A kill loses what was read since the last batch, so a busy loop commits more often than an idle one.
"""


class Outbox:
    """Collects what coroutines want from the store. Use it only from its event loop's thread."""

    def __init__(
        self,
        submit: Callable[[Batch], bool],
        loop: asyncio.AbstractEventLoop,
        poll_seconds: float,
    ) -> None:
        self._submit = submit
        self._loop = loop
        self._poll_seconds = poll_seconds
        self._batch = Batch(self._from_writer)
        self._is_empty = True
        self._scheduled = False
        self._next = 0.0
        """When the next batch is due."""
        self._next_running = 0.0
        """The thread's processor time at which a batch with responses is due."""
        self._claiming: dict[bytes, asyncio.Future[str]] = {}
        self._putting: list[asyncio.Future[None]] = []
        self._put_futures: dict[int, list[asyncio.Future[None]]] = {}
        self._foreign: dict[bytes, asyncio.Future[str]] = {}
        self._polling = False
        self.names: dict[str, str] = {}
        """Names of models by fingerprint, for people; they are written with the next answers."""

    def claim(self, key: bytes) -> asyncio.Future[str]:
        """Claim a request. The future resolves to MINE, STORED, or another owner's id.

        After MINE the caller sends the request, then calls `put` or `release`.
        """
        future: asyncio.Future[str] = self._loop.create_future()
        self._claiming[key] = future
        self._batch.claims.append(key)
        self._schedule()
        return future

    def claim_after(self, key: bytes) -> asyncio.Future[str]:
        """Wait until the owner of a claim has answered, given up or died; then do as `claim`."""
        future: asyncio.Future[str] = self._loop.create_future()
        self._foreign[key] = future
        if not self._polling:
            self._polling = True
            self._loop.call_later(self._poll_seconds, self._poll)
        return future

    def drop_foreign(self, error: Callable[[], Exception]) -> None:
        """Fail every wait for another owner."""
        waiting = self._foreign
        self._foreign = {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(error())

    def release(self, key: bytes) -> None:
        """End a claim without an answer. Harmless if there is none."""
        self._batch.releases.append(key)
        self._schedule()

    def give_up(self, key: bytes, claim: asyncio.Future[str]) -> None:
        """Release a claim whose request ended without an answer.

        The request may have been cancelled before it learned that the claim was granted.
        """
        if (
            claim.done()
            and not claim.cancelled()
            and claim.exception() is None
            and claim.result() == MINE
        ):
            self.release(key)

    def put(self, row: Row) -> asyncio.Future[None]:
        """Store a row. The future resolves once the row is committed."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._batch.puts.append(row)
        self._putting.append(future)
        self._schedule()
        return future

    def bill(self, key: BillKey, usage: Usage, dollars: float | None) -> None:
        """Add a sending to the ledger; it is written with the next batch."""
        sums = self._batch.bills.setdefault(key, [0, 0, 0, None])
        sums[0] += 1
        sums[1] += usage.input_tokens
        sums[2] += usage.output_tokens
        if dollars is not None:
            sums[3] = dollars + (sums[3] or 0.0)
        self._schedule()

    def empty(self, key: bytes, failure: str, checksum: int) -> None:
        """Remember that every reply to this request was empty."""
        self._batch.empty.append((key, failure, checksum))
        self._schedule()

    def damaged(self, key: bytes, content: bytes) -> None:
        """Delete a row that cannot be read, unless another process has replaced it meanwhile."""
        self._batch.damaged.append((key, content))
        self._schedule()

    def _schedule(self) -> None:
        self._is_empty = False
        if len(self._batch.puts) >= MAX_BATCH_PUTS:
            self._submit_batch()
        elif not self._scheduled:
            self._arm()
        elif self._batch.puts and (
            self._loop.time() > self._next or time.thread_time() > self._next_running
        ):
            # The loop is busy: it comes to its timers only after all that is ready now.
            self._submit_batch()

    def _arm(self) -> None:
        if self._loop.is_closed():
            self._submit_batch()  # the store is being closed, and no timer comes any more
            return
        self._scheduled = True
        if self._next <= self._loop.time():
            self._loop.call_soon(self._flush_if_due)
        else:
            self._loop.call_at(self._next, self._flush_if_due)

    def _flush_if_due(self) -> None:
        if self._is_empty:
            self._scheduled = False
        elif self._loop.time() < self._next:
            self._arm()  # a batch was full meanwhile, so this one began later
        else:
            self._flush()

    def flush(self) -> None:
        """Submit what is waiting.

        Called at the end of a run, whose last failures and bills nothing awaits.
        """
        if self._scheduled:
            self._flush()

    def _flush(self) -> None:
        self._scheduled = False
        if not self._is_empty:
            self._submit_batch()

    def _submit_batch(self) -> None:
        batch = self._batch
        self._batch = Batch(self._from_writer)
        self._is_empty = True
        wishes = len(batch.claims) + len(batch.puts) + len(batch.releases)
        self._next = self._loop.time() + min(
            _GAP_SECONDS_PER_WISH * wishes, _MAX_GAP_SECONDS
        )
        self._next_running = time.thread_time() + _MAX_RUNNING_SECONDS
        if batch.puts:
            batch.names = self.names
            self.names = {}
            self._put_futures[id(batch)] = self._putting
            self._putting = []
        if self._submit(batch):
            self._deliver_claims(batch, None)
            batch.claims = []
            batch.outcomes = []

    def _from_writer(self, batch: Batch, error: StoreError | None) -> None:
        # In the store's thread. A loop that has closed has no task left that waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver, batch, error)

    def _deliver(self, batch: Batch, error: StoreError | None) -> None:
        if has_unread_replies(self._loop):
            # What the waiters do next takes longer than to store what has arrived.
            self._loop.call_soon(self._deliver, batch, error)
            return
        for future in self._put_futures.pop(id(batch), ()):
            if not future.done():
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(StoreError(str(error)))
        self._deliver_claims(batch, error)
        if batch.polls:
            self._after_poll(batch, error)

    def _deliver_claims(self, batch: Batch, error: StoreError | None) -> None:
        outcomes = batch.outcomes if error is None else [""] * len(batch.claims)
        for key, outcome in zip(batch.claims, outcomes, strict=True):
            claim = self._claiming.pop(key, None)
            if claim is None:
                continue  # a second claim of the same key: it got the outcome of the first
            if claim.done() or self._loop.is_closed():
                if outcome == MINE:
                    self.release(key)  # the waiter was cancelled, or never goes on
            elif error is None:
                claim.set_result(outcome)
            else:
                claim.set_exception(StoreError(str(error)))

    def _poll(self) -> None:
        for key in [key for key, future in self._foreign.items() if future.done()]:
            del self._foreign[key]  # the waiter was cancelled
        if not self._foreign:
            self._polling = False
            return
        self._batch.polls.extend(self._foreign)
        self._schedule()

    def _after_poll(self, batch: Batch, error: StoreError | None) -> None:
        if error is not None:
            self.drop_foreign(lambda: StoreError(str(error)))
        for key in batch.changed:
            free = self._foreign.pop(key, None)
            if free is not None and not free.done():
                self._claiming[key] = free
                self._batch.claims.append(key)
                self._schedule()
        self._loop.call_later(self._poll_seconds, self._poll)
