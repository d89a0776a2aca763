"""Feeds a local model: one worker thread takes all waiting requests as a batch.

Each answer is delivered as it finishes. Requests that arrive while a batch is running form the
next one. Before it takes a batch, the worker waits until no request has arrived for a moment,
because larger batches make better use of the model.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from evalwright.core.errors import Failure, ModelError, RequestFailed, reason_of
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.engine.model_slots import ModelSlots, patience_of
from evalwright.engine.speed import Speed
from evalwright.models.model_interface import LocalModel, answers_of

_log = logging.getLogger("evalwright.engine")
_QUIET_SECONDS = 0.002
_MAX_SETTLE_SECONDS = 0.05

Waiting = tuple[Request | None, "asyncio.Future[Response]"]
"""A request; None for one that only has the model loaded."""


class Batcher:
    """One local model, its worker thread and the requests waiting for it.

    `submit`, `drop_waiting`, `drop_running` and `close` must be called in the event loop's thread.
    """

    def __init__(
        self,
        model: LocalModel,
        loop: asyncio.AbstractEventLoop,
        model_slots: ModelSlots,
    ) -> None:
        self.speed = Speed()
        self._model = model
        self._loop = loop
        self._slots = model_slots
        self._queue: deque[Waiting] = deque()
        self._wake = threading.Event()
        self._closing = False
        self._leave = False
        self._loaded = False
        self._patience = 0.0
        self._load_failure: Failure | None = None
        self._running: Sequence[Waiting] = ()
        self._abandoned = False
        self._finished: deque[tuple[asyncio.Future[Response], Response | Failure]] = (
            deque()
        )
        self._delivering = False
        self._thread: threading.Thread | None = None

    def submit(self, request: Request) -> asyncio.Future[Response]:
        """Queue a request. The future gets the response, or RequestFailed."""
        return self._enqueue(request)

    async def load(self) -> None:
        """Load the model, unless it is loaded.

        Raises:
            RequestFailed: it cannot be loaded, or the run ends.
        """
        await self._enqueue(None)

    def _enqueue(self, request: Request | None) -> asyncio.Future[Response]:
        future: asyncio.Future[Response] = self._loop.create_future()
        self._queue.append((request, future))
        if self._thread is None:
            # A daemon thread: a model that is stuck in a C call cannot keep the process from
            # ending.
            self._thread = threading.Thread(
                target=self._work, name=f"evalwright-{self._model.name}", daemon=True
            )
            self._thread.start()
        if not self._wake.is_set():
            self._wake.set()
        return future

    def leave_when_idle(self) -> None:
        """Free the model's slot once it is idle, because another model waits for it."""
        self._leave = True
        self._wake.set()

    def drop_waiting(self, failure: Failure) -> None:
        """Fail all requests that are not in a batch yet."""
        while self._queue:
            with suppress(IndexError):  # the worker takes from the same queue
                _settle(self._queue.popleft()[1], failure)

    def drop_running(self, failure: Failure) -> None:
        """Fail the unanswered requests of the running batch, which ends at its next answer."""
        self._abandoned = True
        for _, future in self._running:
            _settle(future, failure)

    async def close(self, patience: float) -> None:
        """End the thread and unload the model; give up a stuck thread after `patience` seconds."""
        self._closing = True
        self._abandoned = True
        self._wake.set()
        thread = self._thread
        until = time.monotonic() + patience
        while thread is not None and thread.is_alive() and time.monotonic() < until:
            await asyncio.sleep(0.005)

    # The methods from here on run in the worker's thread.

    def _work(self) -> None:
        while True:
            idle_for = (
                self._patience
                if self._leave and self._loaded and self._model.heavy
                else None
            )
            woken = self._wake.wait(idle_for)
            self._wake.clear()
            if self._closing:
                break
            if self._queue:
                self._coalesce()
                self._batch()
            elif not woken and self._slots.contended:
                self._unload()
            if self._queue:
                self._wake.set()
        self._unload()

    def _coalesce(self) -> None:
        until = time.monotonic() + _MAX_SETTLE_SECONDS
        seen = 0
        while seen != len(self._queue) and time.monotonic() < until:
            seen = len(self._queue)
            time.sleep(_QUIET_SECONDS)

    def _batch(self) -> None:
        failure = self._load()
        batch: list[tuple[Request, asyncio.Future[Response]]] = []
        while self._queue:
            request, future = self._queue.popleft()
            if future.done():
                continue
            if request is None:
                self._finish(future, failure or Response(""))
            else:
                batch.append((request, future))
        if failure is not None:
            for _, future in batch:
                self._finish(future, failure)
        elif batch:
            self._abandoned = self._closing
            self._running = batch
            began = self.speed.begin()
            try:
                self._answer(batch, began)
            finally:
                self.speed.end()
            self._running = ()

    def _answer(
        self,
        batch: Sequence[tuple[Request, asyncio.Future[Response]]],
        began: float,
    ) -> None:
        for index, answer in answers_of(self._model, [request for request, _ in batch]):
            if isinstance(answer, Response):
                self.speed.add(answer, began)
            self._finish(batch[index][1], answer)
            if self._abandoned:
                failure = self._failure(
                    "its batch was ended before this request was answered"
                )
                for (
                    _,
                    future,
                ) in batch:  # requests that are already answered keep their answers
                    self._finish(future, failure)
                break

    def _failure(self, reason: str) -> Failure:
        return ModelError(f"The model {self._model.name} failed: {reason}").as_failure()

    def _finish(
        self, future: asyncio.Future[Response], answer: Response | Failure
    ) -> None:
        self._finished.append((future, answer))
        # One wake-up of the loop delivers all answers that have gathered by then.
        if not self._delivering:
            self._delivering = True
            with suppress(RuntimeError):  # the loop has closed
                self._loop.call_soon_threadsafe(self._deliver)

    def _load(self) -> Failure | None:
        if self._loaded or self._load_failure is not None:
            return self._load_failure
        if self._model.heavy:
            self._slots.acquire(self.leave_when_idle)
        if self._closing:
            self._leave_slot()
            return self._failure("the run ended before it was loaded")
        self.speed.loading_since = started = time.monotonic()
        try:
            self._model.load()
        except Exception as error:
            # Remembered, so that later requests need not wait for the same failure again.
            self._load_failure = ModelError(
                f"The model {self._model.name} could not be loaded: {reason_of(error)}"
            ).as_failure()
            self._leave_slot()
            return self._load_failure
        finally:
            self.speed.loading_since = None
        self._loaded = True
        seconds = time.monotonic() - started
        self.speed.load_seconds = (self.speed.load_seconds or 0.0) + seconds
        self._patience = patience_of(seconds)
        _log.info("%s: loaded in %.1f s", self._model.name, seconds)
        return None

    def _unload(self) -> None:
        if self._loaded:
            self._loaded = False
            # A failure to unload changes nothing: the model is dropped in any case.
            with suppress(Exception):
                self._model.unload()
            self._leave_slot()

    def _leave_slot(self) -> None:
        self._leave = False
        if self._model.heavy:
            self._slots.release(self.leave_when_idle)

    # The methods from here on run in the event loop's thread again.

    def _deliver(self) -> None:
        # Cleared first: an answer that comes from here on makes a new wake-up or is seen below.
        self._delivering = False
        while self._finished:
            future, answer = self._finished.popleft()
            _settle(future, answer)


def _settle(future: asyncio.Future[Response], answer: Response | Failure) -> None:
    if future.done():
        return
    if isinstance(answer, Failure):
        future.set_exception(RequestFailed(answer))
    else:
        future.set_result(answer)
