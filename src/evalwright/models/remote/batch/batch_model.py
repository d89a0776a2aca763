"""A remote model through its provider's batch API: hours slower, half the price, same answers.

To the engine it is a remote model like any other, whose every answer takes long. Requests collect
until no more come for a moment, are submitted as one batch, and are answered when it has ended. A
batch is recorded in the journal before it is sent, so that after a crash or Ctrl-C the same command
finds it again and pays for nothing twice.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from evalwright.core.errors import (
    BadReply,
    ConfigurationError,
    ConnectionFailed,
    Overloaded,
    Rejected,
    RequestError,
    TimedOut,
)
from evalwright.core.requests import Generate, Request
from evalwright.core.responses import Response
from evalwright.models import arguments
from evalwright.models.model_interface import Forwarding, Pacing
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.batch import batch_api
from evalwright.models.remote.batch.interface import BatchState, Item, LostSubmission
from evalwright.models.remote.batch.journal import BatchEntry, Journal
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http import encode
from evalwright.models.remote.prices import Price

HOUR_SECONDS = 3600.0
_SETTLE_SECONDS = 1.0
_BATCHES_AT_ONCE = 2
"""Batches in progress at a time, so that one is answered while the next collects."""
_UNCERTAIN_ERRORS = (ConnectionFailed, TimedOut, BadReply, Overloaded)
"""Errors after which it is not known whether a batch was created."""


class BatchModel(Forwarding):
    """Sends the requests of `model` as batch jobs.

    Args:
        model: the model.
        home: the folder of the journal.
        size: requests per batch.
        poll: seconds between two looks at a batch.

    Raises:
        ConfigurationError: no batch interface of the provider is known.
    """

    batched = True
    resumes = True

    def __init__(
        self, model: ApiModel, home: Path, *, size: int = 10_000, poll: float = 30.0
    ) -> None:
        api = model.provider.batch
        if not api or model.wire.polling is not None:
            raise ConfigurationError(
                f"'{model.name}' has no batch jobs: no batch interface of"
                f" '{model.provider.name}' is known. Leave out --batch."
            )
        self._model: ApiModel
        # the model gives the same answers either way, so they are shared
        super().__init__(model)
        self._api = batch_api(api)(
            model.client, model.settings, model.wire.path(model.settings)
        )
        most = min(
            arguments.whole_number("batch_size", size) or 1, self._api.most_items
        )
        self._poll = arguments.number("batch_poll", poll, low=0) or 30.0
        self.pacing = Pacing(
            max_concurrency=_BATCHES_AT_ONCE * most,
            start_concurrency=_BATCHES_AT_ONCE * most,
            timeout=49 * HOUR_SECONDS,
            deadline=8 * 24 * HOUR_SECONDS,
            max_attempts=5,
            careful=False,
        )
        self._size = most
        self._home = home
        self._tell: Callable[[str], None] = lambda event: None
        self._journal: Journal | None = None
        self._waiting: dict[str, list[asyncio.Future[Any]]] = {}
        self._queue: dict[str, Generate] = {}
        self._early: dict[str, Any] = {}
        self._last = 0.0
        self._gathering: asyncio.Task[None] | None = None
        self._watching: dict[int, asyncio.Task[None]] = {}

    @property
    def price(self) -> Price | None:
        """The model's own price, which includes that of a batch."""
        return self._model.price

    @price.setter
    def price(self, price: Price | None) -> None:
        self._model.price = price

    def describe(self) -> dict[str, Any]:
        """Describe the model, with its batch interface."""
        return {**super().describe(), "batch": self._model.provider.batch}

    def listen(self, tell: Callable[[str], None]) -> None:
        """Store the callback that reports on the batches."""
        self._tell = tell

    async def answer(self, request: Request) -> Response:
        """Wait for the batch that this request is or will be in."""
        if not isinstance(request, Generate):
            raise Rejected(
                f"'{self.name}' cannot do '{request.ability}' in batch jobs: they only"
                " generate text."
            )
        self._model.ready()
        item_key = item_id(request)
        if item_key in self._early:
            payload = self._early.pop(item_key)
        else:
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            waiting = self._waiting.setdefault(item_key, [])
            waiting.append(future)
            if len(waiting) == 1:
                self._gather(item_key, request)
            try:
                payload = await future
            finally:
                waiting.remove(future)
                if not waiting:
                    self._waiting.pop(item_key, None)
                    self._queue.pop(item_key, None)
        try:
            return self._model.read(Reply(payload, 0.0, None), request, batched=True)
        except RequestError:
            # The request remains, so it goes into another batch.
            journal = self._opened()
            for number in journal.holding(self.fingerprint, [item_key]).values():
                journal.failed(number, [item_key])
            raise

    async def close(self) -> None:
        """Stop watching; the batches continue at the provider, and the journal keeps them."""
        tasks = [*self._watching.values(), *filter(None, [self._gathering])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._journal is not None:
            self._journal.close()
        await self._model.close()

    # -- gathering

    def _gather(self, item_key: str, request: Generate) -> None:
        self._queue[item_key] = request
        self._last = time.monotonic()
        if self._gathering is None or self._gathering.done():
            self._gathering = asyncio.create_task(self._collect())

    async def _collect(self) -> None:
        """Submit the queue at each lull or full batch until it is empty."""
        while self._queue:
            while (
                len(self._queue) < self._size
                and time.monotonic() - self._last < self._settle()
            ):
                await asyncio.sleep(self._settle() / 4)
            batch = dict(list(self._queue.items())[: self._size])
            for item_key in batch:
                del self._queue[item_key]
            try:
                await self._start(batch)
            except Exception as error:
                self._fail(batch, error)

    def _settle(self) -> float:
        return min(_SETTLE_SECONDS, self._poll)

    async def _start(self, batch: Mapping[str, Generate]) -> None:
        """Watch the batches that hold some of these already, and make new ones of the rest."""
        journal = self._opened()
        number_by_item = journal.holding(self.fingerprint, batch)
        for number in set(number_by_item.values()):
            if number in self._watching:
                continue  # a watched batch will deliver its answers
            entry = journal.entry(number)
            if entry is not None and not entry.batch:
                entry = await self._adopted(entry)
            if entry is None:
                number_by_item = {
                    item_key: holder
                    for item_key, holder in number_by_item.items()
                    if holder != number
                }
            else:
                self._watch(entry, found_again=True)
        new_items = [
            Item(item_key, self._model.body(request))
            for item_key, request in batch.items()
            if item_key not in number_by_item
        ]
        for chunk in _split_items(new_items, self._api.most_bytes):
            await self._submit(chunk)

    async def _submit(self, items: Sequence[Item]) -> None:
        journal = self._opened()
        model = self._model
        entry = journal.begin(
            f"evalwright-{secrets.token_hex(8)}",
            self.fingerprint,
            model.settings.where,
            self.name,
            [item.id for item in items],
        )
        try:
            batch = await self._api.submit(items, entry.mark)
        except RequestError as error:
            if not isinstance(error, _UNCERTAIN_ERRORS):
                journal.forget(entry.number)
            self._fail([item.id for item in items], error)
            return
        journal.submitted(entry.number, batch)
        self._watch(replace(entry, batch=batch))

    async def _adopted(self, entry: BatchEntry) -> BatchEntry | None:
        """Find a batch whose submission got no reply, or forget it if it was never created."""
        known_batches = {other_entry.batch for other_entry in self._opened().entries()}
        batch = await self._api.find(
            LostSubmission(entry.mark, entry.created, entry.n, known_batches)
        )
        if batch is None:
            self._opened().forget(entry.number)
            return None
        self._opened().submitted(entry.number, batch)
        return replace(entry, batch=batch)

    # -- waiting

    def _watch(self, entry: BatchEntry, *, found_again: bool = False) -> None:
        how = "Found again" if found_again else "Submitted"
        self._tell(f"{how}: batch {entry.batch} of {entry.n} requests to {self.name}.")
        task = asyncio.create_task(self._follow(entry))
        self._watching[entry.number] = task
        task.add_done_callback(lambda _: self._watching.pop(entry.number, None))

    async def _follow(self, entry: BatchEntry) -> None:
        """Check a batch until it has ended, then give each request its answer."""
        journal = self._opened()
        item_keys = [item_key for item_key in journal.items(entry.number) if item_key]
        try:
            state = await self._until_ended(entry)
            if state.error is not None and not state.done:
                journal.forget(entry.number)
                raise state.error
            journal.ended(entry.number)
            await self._deliver(entry, item_keys)
        except RequestError as error:
            if error.status == 404:
                # The provider no longer has the batch, so none of its answers can come any more.
                journal.forget(entry.number)
            self._fail(item_keys, error)
        except Exception as error:
            self._fail(item_keys, error)

    async def _until_ended(self, entry: BatchEntry) -> BatchState:
        reported = -1
        lost = 0
        while True:
            try:
                state = await self._api.state(entry.batch)
            except RequestError as error:
                # Checking costs nothing, so a bad connection is tolerated for some hours.
                lost += 1
                if not error.retryable or lost * self._poll > 6 * HOUR_SECONDS:
                    raise
                await asyncio.sleep(max(self._poll, error.retry_after or 0.0))
                continue
            lost = 0
            if state.ended:
                return state
            if state.done != reported and state.total:
                reported = state.done
                self._tell(
                    f"Batch {entry.batch}: {state.done} of {state.total} done"
                    f" ({state.status})."
                )
            await asyncio.sleep(self._poll)

    async def _deliver(self, entry: BatchEntry, item_keys: Sequence[str]) -> None:
        missing = set(item_keys)
        failed = dict[str, RequestError]()
        unread = False
        order = self._opened().items(entry.number)
        async for item_key, payload in self._api.answers(entry.batch, order):
            unread = unread or not item_key
            if item_key not in missing:
                continue
            missing.discard(item_key)
            if isinstance(payload, RequestError):
                failed[item_key] = payload
            elif not self._give(item_key, payload):
                self._early[item_key] = payload
        for item_key in missing:
            failed[item_key] = BadReply(
                f"Batch {entry.batch} of {self.name} has no answer to this request."
            )
        # Recorded first: a request that failed may be sent again at once.
        self._opened().failed(entry.number, failed)
        for item_key, error in failed.items():
            # An answer that arrived but cannot be read was computed, and may be billed.
            self._fail([item_key], error, may_be_billed=unread and item_key in missing)
        self._tell(
            f"Batch {entry.batch} has ended: {len(item_keys) - len(failed)} answered,"
            f" {len(failed)} to be sent again."
        )

    def _give(self, item_key: str, data: Any) -> bool:
        """Answer those who wait for this item; return whether anybody does."""
        waiting = [
            future for future in self._waiting.get(item_key, ()) if not future.done()
        ]
        for future in waiting:
            future.set_result(data)
        return bool(waiting)

    def _fail(
        self,
        item_keys: Sequence[str] | Mapping[str, Any],
        error: Exception,
        *,
        may_be_billed: bool = False,
    ) -> None:
        for item in item_keys:
            for future in self._waiting.get(item, ()):
                if not future.done():
                    # Each gets an error of its own: one object raised in many places would gather
                    # their tracebacks.
                    future.set_exception(_copy_of(error, may_be_billed))

    def _opened(self) -> Journal:
        if self._journal is None:
            self._journal = Journal(self._home)
        return self._journal


def _copy_of(error: Exception, billable: bool) -> Exception:
    if not isinstance(error, RequestError):
        return type(error)(*error.args)
    # Requests that failed in a batch are not billed, and whether a lost batch exists is found out
    # before its items are sent again.
    return type(error)(
        str(error), status=error.status, retry_after=error.retry_after, taken=billable
    )


def item_id(request: Generate) -> str:
    """Name a request by its content, in letters that every provider accepts."""
    text = json.dumps(
        request.payload(), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _split_items(items: Sequence[Item], most_bytes: int) -> Iterator[list[Item]]:
    """Split the items into batches that are small enough."""
    chunk: list[Item] = []
    size = 0
    for item in items:
        item_bytes = len(encode(item.body)) + 200
        if chunk and size + item_bytes > most_bytes:
            yield chunk
            chunk = []
            size = 0
        chunk.append(item)
        size += item_bytes
    if chunk:
        yield chunk
