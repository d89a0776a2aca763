"""Sends requests to one remote model: paced, timed, and sent again where that may help."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from evalwright.core.errors import (
    Cancelled,
    EvalwrightError,
    Failure,
    ModelError,
    RequestError,
    RequestFailed,
    TimedOut,
)
from evalwright.core.responses import Response
from evalwright.engine.ledger import Account
from evalwright.engine.pacing import Pacer, Permit
from evalwright.engine.retry import Attempts, Breaker, seconds_shown
from evalwright.models.base import RemoteModel
from evalwright.models.timeouts import Timeouts

# From how many seconds on a Retry-After is worth telling a person; later ones if they are twice as long.
_log = logging.getLogger("evalwright.engine")
_LONG_WAIT = 20.0


class RemoteSender:
    """One remote model with its pacer and breaker. Runs in its callers' coroutines; has no task of its own."""

    def __init__(
        self, model: RemoteModel, loop: asyncio.AbstractEventLoop, on_event: Callable[[str], None]
    ) -> None:
        self._model = model
        self._loop = loop
        self._on_event = on_event
        model.listen(on_event)
        self._pacing = model.pacing
        self._pacer = Pacer(self._pacing, loop)
        self._breaker = Breaker(model.name)
        self._sleeping: set[asyncio.Future[None]] = set()
        self._timeouts = Timeouts(loop)
        self._stopped: Failure | None = None
        self._told_wait = _LONG_WAIT / 2

    async def send(self, account: Account) -> Response:
        """The answer, or RequestFailed once it is clear that there will be none. Every sending is in the account."""
        attempts: Attempts | None = None
        while True:
            self._refuse_if_over()
            await account.reserve()
            try:
                self._refuse_if_over()
                permit = await self._enter(account.size, attempts)
            except BaseException:
                account.release()
                raise
            now = self._loop.time()
            if attempts is None:
                attempts = Attempts(self._pacing, started=now)
                account.counts.sent += 1
            else:
                account.counts.retries += 1
            attempts.sent += 1
            try:
                response = await self._attempt(account, permit, attempts.timeout(now))
            except RequestError as error:
                delay = self._after(error, attempts)
            else:
                self._breaker.succeeded()
                return response
            await self._sleep(delay)

    def drop_waiting(self, failure: Failure) -> None:
        """Fail what is not being sent at this moment, and everything that comes later."""
        self._stopped = failure
        self._wake_all(failure)

    def drop_running(self) -> None:
        """End the sendings that are under way. Only after `drop_waiting`."""
        self._timeouts.end_all()

    async def close(self) -> None:
        """Release the model's connections."""
        await self._model.close()

    async def _enter(self, size: int, attempts: Attempts | None) -> Permit:
        left = None if attempts is None else attempts.time_left(self._loop.time())
        try:
            # About four bytes of text are a token; it is only the first guess.
            return await self._pacer.enter(size / 4, left)
        except TimeoutError:
            # Only a request that was sent before has a deadline here, and a reason for it.
            assert attempts is not None and attempts.last is not None
            why = f"the deadline of {self._pacing.deadline:g} s passed before it could be retried"
            raise RequestFailed(attempts.failure(attempts.last, why)) from None
        except RequestError as error:
            raise RequestFailed(error.as_failure(attempts=attempts.sent if attempts else 0)) from None

    async def _attempt(self, account: Account, permit: Permit, timeout: float) -> Response:
        """Send once. Every end gives the permit back and settles the account; what is not a RequestError ends the request."""
        error: Exception
        cause: BaseException
        limit = self._timeouts.limit(timeout)
        try:
            with limit:
                response = await self._model.answer(account.request)
            if not isinstance(response, Response):
                raise ModelError(f"{self._model.name} gave a {type(response).__name__}, not a Response")
            account.settle(response)
            self._pacer.answered(permit, response)
            return response
        except (RequestError, RequestFailed) as failed:
            error = cause = failed
        except TimeoutError as failed:
            why = f"no answer within {timeout:.0f} s" if limit.expired else str(failed) or "timed out"
            error = cause = TimedOut(f"{self._model.name}: {why}")
            if limit.expired and self._stopped is not None:
                error, cause = RequestFailed(self._stopped), failed
        except EvalwrightError as other:
            error, cause = RequestFailed(Failure("request failed", other.party, str(other))), other
        except Exception as defect:
            # A defect of the backend, or an error that was not foreseen: this request fails, not the run.
            error = cause = ModelError(f"{self._model.name} raised {type(defect).__name__}: {defect}")
        except BaseException as ended:
            account.settle(ended)
            self._pacer.abandon(permit)
            raise
        account.settle(cause)
        if isinstance(error, RequestError):
            self._pacer.failed(permit, error)
        else:
            self._pacer.abandon(permit)
        try:
            raise error
        finally:
            del error, cause  # they know this frame: a cycle, which only the rare collector would find

    def _after(self, error: RequestError, attempts: Attempts) -> float:
        now = self._loop.time()
        if self._breaker.failed(error, now) and self._breaker.failure is not None:
            self._on_event(self._breaker.failure.message)
            self._wake_all(self._breaker.failure)
        if error.retryable and (error.retry_after or 0) >= 2 * self._told_wait:
            self._told_wait = error.retry_after or 0
            self._on_event(
                f"{self._model.name} says to wait {seconds_shown(error.retry_after or 0)} s: {error}"
            )
        following = attempts.after(error, now)
        if isinstance(following, Failure):
            raise RequestFailed(following) from None
        self._refuse_if_over()
        _log.debug("%s: %s; sent again in %.1f s", self._model.name, error, following)
        return following

    def _refuse_if_over(self) -> None:
        failure = self._stopped or self._breaker.failure
        if failure is not None:
            raise RequestFailed(failure)

    async def _sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        timer = self._loop.call_later(seconds, _wake, future)
        self._sleeping.add(future)
        try:
            await future
        finally:
            timer.cancel()
            self._sleeping.discard(future)

    def _wake_all(self, failure: Failure) -> None:
        self._pacer.drop_waiting(lambda: RequestFailed(failure))
        for future in self._sleeping:
            if not future.done():
                future.set_exception(RequestFailed(failure))


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def cancelled() -> Failure:
    """What a stopped run says of a request that was not answered."""
    return Cancelled("The run was stopped before this was answered; run again to go on").as_failure(
        attempts=0
    )
