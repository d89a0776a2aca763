"""Sends requests to one remote model: paced, timed, and retried where that may help.

A retry goes to another replica first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace

from evalwright.core.errors import (
    BadReply,
    Cancelled,
    EmptyReply,
    EvalwrightError,
    Failure,
    ModelError,
    RequestError,
    RequestFailed,
    TimedOut,
)
from evalwright.core.responses import Response
from evalwright.engine.ledger import Account
from evalwright.engine.name_guard import NameGuard
from evalwright.engine.pacing import Permit
from evalwright.engine.retry import Attempts, format_seconds
from evalwright.engine.sending import Endpoint, SendingQueue
from evalwright.models.model_interface import RemoteModel
from evalwright.models.replicas import Replica
from evalwright.models.replicated import ReplicaPool
from evalwright.models.reply_names import NameRule
from evalwright.models.timeouts import Timeouts

CLIENT_GRACE_SECONDS = 0.25
"""Seconds that the engine waits longer than a model's own client.

The client can tell a reply that is still being written from silence, so it should time out
first.
"""
# Least Retry-After, in seconds, to report to a person; later ones only if twice as long.
_log = logging.getLogger("evalwright.engine")
_LONG_WAIT_SECONDS = 20.0


class RemoteSender:
    """One remote model with its endpoints and the requests waiting for them.

    It runs in its callers' coroutines and has no task of its own.
    """

    def __init__(
        self,
        model: RemoteModel,
        loop: asyncio.AbstractEventLoop,
        on_event: Callable[[str], None],
    ) -> None:
        self._model = model
        self._loop = loop
        self._on_event = on_event
        model.listen(on_event)
        self._pacing = model.pacing
        self._is_pool = isinstance(model, ReplicaPool)
        members = (
            model.members()
            if isinstance(model, ReplicaPool)
            else [(model, Replica(model.name))]
        )
        self.endpoints = [Endpoint(member, record, loop) for member, record in members]
        self._queue = SendingQueue(self.endpoints, loop)
        self._sleeping: set[asyncio.Future[None]] = set()
        self._timeouts = Timeouts(loop)
        self._stopped: Failure | None = None
        self._told_wait = _LONG_WAIT_SECONDS / 2
        self.names = NameGuard(
            model.name,
            {endpoint.name: self._name_rule(endpoint) for endpoint in self.endpoints},
            models_differ=isinstance(model, ReplicaPool) and model.differ,
            say=on_event,
        )

    def _name_rule(self, endpoint: Endpoint) -> NameRule:
        """Return the rule for model names in an endpoint's replies.

        Replicas must agree, even where nothing is known about their kind, unless they may differ.
        """
        rule = endpoint.model.name_rule()
        if not isinstance(self._model, ReplicaPool):
            return rule
        says_nothing = type(endpoint.model).name_rule is RemoteModel.name_rule
        return (
            replace(rule, check="first") if says_nothing or self._model.differ else rule
        )

    async def send(self, account: Account) -> Response:
        """Send a request until it is answered; raise RequestFailed once it is clear that it fails.

        Every sending is billed to the account.
        """
        attempts: Attempts | None = None
        tried: dict[Endpoint, RequestError] = {}
        while True:
            self._refuse_if_over()
            await account.reserve()
            try:
                self._refuse_if_over()
                endpoint, permit = await self._enter(account.size, attempts, tried)
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
                return await self._attempt(
                    account, endpoint, permit, attempts.timeout(now)
                )
            except RequestError as error:
                delay = self._after(error, attempts, endpoint, tried)
            if delay:
                await self._sleep(delay)

    def drop_waiting(self, failure: Failure) -> None:
        """Fail every request that is not being sent at this moment, and all later ones."""
        self._stopped = failure
        self._wake_all(failure)

    def drop_running(self) -> None:
        """End the sendings in flight. Call it only after `drop_waiting`."""
        self._timeouts.end_all()

    async def close(self) -> None:
        """Release the model's connections."""
        await self._model.close()

    async def _enter(
        self, size: int, attempts: Attempts | None, tried: Collection[Endpoint]
    ) -> tuple[Endpoint, Permit]:
        left = None if attempts is None else attempts.time_left(self._loop.time())
        try:
            # Text has about four bytes per token; this is only the first guess.
            return await self._queue.enter(size / 4, left, tried)
        except TimeoutError:
            # Only a request that was sent before has a deadline here, and a reason for it.
            assert attempts is not None and attempts.last is not None
            why = (
                f"the deadline of {self._pacing.deadline:g} s passed before it could be"
                " retried"
            )
            raise RequestFailed(attempts.failure(attempts.last, why)) from None
        except RequestError as error:
            raise RequestFailed(
                error.as_failure(attempts=attempts.sent if attempts else 0)
            ) from None

    async def _attempt(
        self, account: Account, endpoint: Endpoint, permit: Permit, timeout: float
    ) -> Response:
        """Send once.

        Every outcome returns the permit and settles the account; only a RequestError allows a
        retry.
        """
        error: Exception
        cause: BaseException
        grace = CLIENT_GRACE_SECONDS if timeout >= self._pacing.timeout else 0.0
        limit = self._timeouts.limit(timeout + grace)
        try:
            with limit:
                response = await endpoint.model.answer(account.request)
            if not isinstance(response, Response):
                raise ModelError(
                    f"{self._model.name} gave a {type(response).__name__}, not a"
                    " Response"
                )
            self.names.accept(endpoint.name, response)
            account.settle(response)
            if endpoint.answered(permit, response):
                self._on_event(
                    f"{self._model.name}: the replica {endpoint.name} answers again."
                )
            return (
                replace(response, replica=endpoint.name) if self._is_pool else response
            )
        except (RequestError, RequestFailed) as failed:
            error = cause = failed
        except TimeoutError as failed:
            why = (
                f"no answer within {timeout:.0f} s"
                if limit.expired
                else str(failed) or "timed out"
            )
            error = cause = TimedOut(f"{self._model.name}: {why}")
            if limit.expired and self._stopped is not None:
                error = RequestFailed(self._stopped)
                cause = failed
        except EvalwrightError as unforeseen:
            error = RequestFailed(
                Failure("request failed", unforeseen.party, str(unforeseen))
            )
            cause = unforeseen
        except Exception as defect:
            # A defect of the backend, or an unforeseen error, fails this request but not the run.
            error = cause = ModelError(
                f"{self._model.name} raised {type(defect).__name__}: {defect}"
            )
        except BaseException as ended:
            account.settle(ended)
            endpoint.abandon(permit)
            raise
        account.settle(cause)
        if not isinstance(error, RequestError):
            endpoint.abandon(permit)
        elif endpoint.failed(permit, error):
            self._on_event(
                f"{self._model.name}: the replica {endpoint.name} is set aside, and its"
                f" requests go to the others: {str(error).rstrip('.')}. It is tried"
                " again from time to time."
            )
        try:
            raise error
        finally:
            # these exceptions hold this frame: a reference cycle, which is collected only rarely
            del error, cause

    def _after(
        self,
        error: RequestError,
        attempts: Attempts,
        endpoint: Endpoint,
        tried: dict[Endpoint, RequestError],
    ) -> float:
        """Return the seconds until the request is sent again.

        `tried` has the endpoints where it failed since it last waited, or that gave no answer; the
        next sending does not go there at once.
        """
        now = self._loop.time()
        if (
            endpoint.breaker.failed(error, now)
            and (over := self._final_failure()) is not None
        ):
            self._on_event(over.message)
            self._wake_all(over)
        elif not self._is_pool and endpoint.breaker.is_first_unreached(error):
            self._on_event(
                f"{self._model.name}: {error} It is tried again for"
                f" {endpoint.breaker.UNREACHED[1]:.0f} s."
            )
        if isinstance(error, BadReply | EmptyReply):
            tried[endpoint] = (
                error  # it counts as an attempt, and the next one goes elsewhere
            )
        elif endpoint.may_be_at_fault(error):
            tried[endpoint] = error
            if self._queue.untried(tried) and attempts.time_left(now) > 0:
                attempts.last = error
                attempts.moved += 1
                self._refuse_if_over()
                return 0.0
            # The error that leaves the most hope of an answer.
            hopeful = (
                tried_error
                for tried_error in tried.values()
                if not isinstance(tried_error, BadReply | EmptyReply)
            )
            error = min(
                hopeful,
                key=lambda tried_error: (
                    not tried_error.retryable,
                    tried_error.retry_after or 0.0,
                ),
            )
            tried.clear()
        if error.retryable and (error.retry_after or 0) >= 2 * self._told_wait:
            self._told_wait = error.retry_after or 0
            self._on_event(
                f"{endpoint.name} says to wait {format_seconds(error.retry_after or 0)}"
                f" s: {error}"
            )
        following = attempts.after(error, now)
        if isinstance(following, Failure):
            raise RequestFailed(following) from None
        self._refuse_if_over()
        _log.debug("%s: %s; sent again in %.1f s", self._model.name, error, following)
        return following

    def _refuse_if_over(self) -> None:
        failure = self._stopped or self._final_failure()
        if failure is not None:
            raise RequestFailed(failure)

    def _final_failure(self) -> Failure | None:
        """Return why every request fails at once: no endpoint ever answered, and none will."""
        for endpoint in self.endpoints:
            if (failure := endpoint.breaker.failure) is None:
                return None
        return failure

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
        self._queue.drop_waiting(lambda: RequestFailed(failure))
        for future in self._sleeping:
            if not future.done():
                future.set_exception(RequestFailed(failure))


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def cancelled() -> Failure:
    """Make the failure of a request that was not answered before the run was stopped."""
    return Cancelled(
        "The run was stopped before this was answered; run again to go on"
    ).as_failure(attempts=0)
