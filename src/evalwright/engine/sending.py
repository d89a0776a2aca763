"""Decides where a remote model's requests go: one queue before one endpoint or a pool of replicas.

A request goes to the endpoint that can take it soonest; of several that can, to the one with
the least load. First come, first served; but retries go before new requests, and not to where
they have just failed while another endpoint is there.

An endpoint of a pool that fails repeatedly is set aside: at once if no connection is made, the
key is refused or the model is not there; after a while for server errors and the like. One
request at a time then probes, at growing gaps, whether it answers again. If all endpoints would
be set aside, none is: then they are treated like a single endpoint.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from evalwright.core.errors import BadReply, Rejected, RequestError
from evalwright.core.responses import Response
from evalwright.engine.event_loop import has_unread_replies
from evalwright.engine.pacing import Pacer, Permit
from evalwright.engine.retry import Breaker, is_closed_endpoint
from evalwright.models.model_interface import RemoteModel
from evalwright.models.replicas import Replica

_FIRST_GAP_SECONDS = 1.0
_MAX_GAP_SECONDS = 60.0
"""Longest time until an endpoint that was set aside is probed again."""


class Endpoint:
    """One endpoint of a model: its pace, its faults, its record."""

    def __init__(
        self, model: RemoteModel, record: Replica, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.model = model
        self.record = record
        self.name = record.name
        self.pacer = Pacer(model.pacing, loop)
        self.breaker = Breaker(model.name)
        self.changed: Callable[[], None] = lambda: None
        self.is_only = True
        """Whether the model has no other endpoint."""
        self._loop = loop
        self._aside_since = -1.0
        self._gap = _FIRST_GAP_SECONDS
        self._probe: Permit | None = None
        self._probe_at = 0.0

    def wait(self, size: float, now: float, *, probing: bool) -> float:
        """Return the seconds until a request may be sent, as the pacer says.

        `probing` says that endpoints that were set aside are only probed.
        """
        wait = self.pacer.wait(size, now)
        if probing and self.record.aside:
            wait = (
                math.inf if self._probe is not None else max(wait, self._probe_at - now)
            )
        return wait

    def admit(self, size: float, now: float) -> Permit:
        """Issue the permit for a request that may be sent now."""
        permit = self.pacer.admit(size, now)
        self.record.begin()
        if self.record.aside and self._probe is None:
            self._probe = permit
        return permit

    def answered(self, permit: Permit, response: Response) -> bool:
        """Note an answer; return whether the endpoint had been set aside until now."""
        self.breaker.succeeded()
        again = False
        if (
            permit.sent_at > self._aside_since
        ):  # a reply to an earlier sending says nothing about now
            again = self.record.aside != ""
            self.breaker.recovered()
            self.record.aside, self._gap, self._probe = "", _FIRST_GAP_SECONDS, None
        self.pacer.answered(permit, response)
        self.record.end()
        self.changed()
        return again

    def failed(self, permit: Permit, error: RequestError) -> bool:
        """Note a failure; return whether the endpoint is set aside for it.

        A single endpoint is never set aside.
        """
        now = self._loop.time()
        self.pacer.failed(permit, error)
        self.record.end(failed=True)
        newly = False
        if permit is self._probe:
            self._gap = min(2 * self._gap, _MAX_GAP_SECONDS)
            self._end_probe(now)
        elif not self.is_only and not self.record.aside and self._is_ill(error, now):
            newly = True
            self.record.aside, self._aside_since = str(error), now
            self._end_probe(now)
        self.changed()
        return newly

    def abandon(self, permit: Permit) -> None:
        """Note that a request ended without a reply to learn from."""
        if permit is self._probe:
            self._end_probe(self._loop.time())
        self.pacer.abandon(permit)
        self.record.end(failed=True)
        self.changed()

    def _end_probe(self, now: float) -> None:
        self._probe = None
        self._probe_at = now + self._gap * random.uniform(0.75, 1.0)

    def may_be_at_fault(self, error: RequestError) -> bool:
        """Return whether another endpoint may answer what this one did not.

        An endpoint that has never answered may be rejecting valid requests.
        """
        if is_closed_endpoint(error):
            return True
        if isinstance(error, Rejected):
            return not self.breaker.proven
        return error.retryable and error.kind in (
            "rate limited",
            "server error",
            "timed out",
        )

    def _is_ill(self, error: RequestError, now: float) -> bool:
        if self.pacer.hopeless is not None:
            return True
        at_fault = self.may_be_at_fault(error)
        if at_fault and error.kind == "rate limited":
            return False  # refusals of a rate limit are left to the pacer
        return self.breaker.is_ill(
            error, now, at_fault=at_fault or isinstance(error, BadReply)
        )


@dataclass(slots=True, eq=False)
class _Waiter:
    size: float
    avoid: frozenset[Endpoint]
    future: asyncio.Future[tuple[Endpoint, Permit]]


class SendingQueue:
    """The requests waiting to be sent. Belongs to one event loop and has no task of its own."""

    def __init__(
        self, endpoints: Sequence[Endpoint], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._endpoints = endpoints
        self._loop = loop
        self._fresh: deque[_Waiter] = deque()
        self._again: deque[_Waiter] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._is_held = False
        """Whether permits wait until the replies that have arrived are read."""
        for endpoint in endpoints:
            endpoint.changed = self._pump
            endpoint.is_only = len(endpoints) == 1

    async def enter(
        self,
        size: float = 0.0,
        time_left: float | None = None,
        avoid: Collection[Endpoint] = (),
    ) -> tuple[Endpoint, Permit]:
        """Wait until a request may be sent, and choose its endpoint.

        Args:
            size: a first guess of its tokens.
            time_left: seconds until the deadline of a request that was sent before; it goes ahead
                of new ones.
            avoid: endpoints to avoid while there are others.

        Raises:
            TimeoutError: the deadline has passed.
            RateLimited: every reply was a refusal for longer than any request may wait.
        """
        if (hopeless := self._hopeless()) is not None:
            raise hopeless
        if not self._fresh and not self._again:
            now = self._loop.time()
            endpoint, _ = self._choose(size, avoid, now)
            if endpoint is not None:
                return endpoint, endpoint.admit(size, now)
        waiter = _Waiter(size, frozenset(avoid), self._loop.create_future())
        deadline = None
        if time_left is None:
            self._fresh.append(waiter)
        else:
            self._again.appendleft(waiter)
            deadline = self._loop.call_later(
                max(time_left, 0.0), _expire, waiter.future
            )
        if (
            time_left is not None or len(self._fresh) == 1
        ):  # otherwise it waits behind others
            self._pump()
        try:
            return await waiter.future
        except asyncio.CancelledError:
            if (
                waiter.future.done()
                and not waiter.future.cancelled()
                and waiter.future.exception() is None
            ):
                endpoint, permit = waiter.future.result()
                endpoint.abandon(permit)
            raise
        finally:
            if deadline is not None:
                deadline.cancel()

    def untried(self, tried: Collection[Endpoint]) -> bool:
        """Return whether there is another endpoint worth trying: not set aside, unless all are."""
        return any(endpoint not in tried for endpoint in self._standing())

    def drop_waiting(self, error: Callable[[], Exception]) -> None:
        """Fail all waiting requests, each with an error of its own."""
        waiting = [*self._again, *self._fresh]
        self._again.clear()
        self._fresh.clear()
        for waiter in waiting:
            if not waiter.future.done():
                waiter.future.set_exception(error())

    def _hopeless(self) -> RequestError | None:
        for endpoint in self._endpoints:
            if (error := endpoint.pacer.hopeless) is None:
                return None
        return error

    def _standing(self) -> Sequence[Endpoint]:
        return [
            endpoint for endpoint in self._endpoints if not endpoint.record.aside
        ] or self._endpoints

    def _choose(
        self, size: float, avoid: Collection[Endpoint], now: float
    ) -> tuple[Endpoint | None, float]:
        """Return the endpoint that can take the request now, else the seconds until one may."""
        if len(self._endpoints) == 1:
            wait = self._endpoints[0].pacer.wait(size, now)
            return (None, wait) if wait > 0 else (self._endpoints[0], 0.0)
        soonest = math.inf
        best = None
        load = math.inf
        endpoints: Sequence[Endpoint] = self._endpoints
        probing = any(not endpoint.record.aside for endpoint in endpoints)
        if avoid and self.untried(avoid):
            endpoints = [endpoint for endpoint in endpoints if endpoint not in avoid]
        for endpoint in endpoints:
            wait = endpoint.wait(size, now, probing=probing)
            if wait > 0:
                soonest = min(soonest, wait)
            elif (endpoint_load := endpoint.pacer.load) < load:
                best = endpoint
                load = endpoint_load
        return best, soonest

    def _pump(self) -> None:
        """Give permits to waiting requests as far as allowed, and schedule the next round."""
        if not self._fresh and not self._again:
            return
        if has_unread_replies(self._loop):
            # Storing them takes less time than sending more, and a kill would lose them.
            if not self._is_held:
                self._is_held = True
                self._loop.call_soon(self._pump_again)
            return
        if (hopeless := self._hopeless()) is not None:
            self.drop_waiting(
                lambda: type(hopeless)(str(hopeless), status=hopeless.status)
            )
            return
        now = self._loop.time()
        soonest = self._hand_out(self._again, now) if self._again else math.inf
        soonest = min(soonest, self._hand_out(self._fresh, now))
        if soonest < math.inf:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_later(soonest, self._pump)

    def _pump_again(self) -> None:
        self._is_held = False
        self._pump()

    def _hand_out(self, queue: deque[_Waiter], now: float) -> float:
        """Send from a queue what can be sent now; return the seconds until more may be."""
        soonest = math.inf
        index = 0
        blocked: tuple[frozenset[Endpoint], ...] = ()
        while index < len(queue):
            waiter = queue[index]
            if waiter.future.done():
                del queue[index]
            elif waiter.avoid in blocked:
                index += 1
            else:
                endpoint, wait = self._choose(waiter.size, waiter.avoid, now)
                if endpoint is not None:
                    del queue[index]
                    waiter.future.set_result(
                        (endpoint, endpoint.admit(waiter.size, now))
                    )
                    continue
                soonest = min(soonest, wait)
                if not waiter.avoid:
                    break  # no endpoint is free for those behind it either
                blocked += (waiter.avoid,)
        return soonest


def _expire(future: asyncio.Future[tuple[Endpoint, Permit]]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())
