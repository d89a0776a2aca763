"""Where a remote model's requests go: one queue, and behind it an endpoint, or several that answer
alike (a pool of replicas).

A request goes to the endpoint that can take it soonest; of several that can, to the one that is
used least. Who came first goes first; what is sent again goes before it, and not to where it has
just failed while another endpoint is there.

An endpoint of a pool that fails in a row is set aside: at once where no connection is made, the key
is refused or the model is not there, after a while of server errors and the like. One request at a
time finds out, at growing gaps, whether it answers again. Where all are set aside, none is: then
they fare as a single endpoint does.
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
from evalwright.engine.pacing import Pacer, Permit
from evalwright.engine.retry import Breaker, lets_nothing_in
from evalwright.models.base import RemoteModel
from evalwright.models.replicas import Replica

_FIRST_GAP = 1.0
_LONGEST_GAP = 60.0
"""Seconds until an endpoint that was set aside is tried again."""


class Endpoint:
    """One place that answers for a model: its pace, its faults, its record."""

    def __init__(
        self, model: RemoteModel, record: Replica, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.model = model
        self.record = record
        self.name = record.name
        self.pacer = Pacer(model.pacing, loop)
        self.breaker = Breaker(model.name)
        self.changed: Callable[[], None] = lambda: None
        self.alone = True
        self._loop = loop
        self._aside_since = -1.0
        self._gap = _FIRST_GAP
        self._probe: Permit | None = None
        self._probe_at = 0.0

    def wait(self, size: float, now: float, *, probing: bool) -> float:
        """As the pacer's. probing: whether what is set aside is only tried."""
        wait = self.pacer.wait(size, now)
        if probing and self.record.aside:
            wait = (
                math.inf if self._probe is not None else max(wait, self._probe_at - now)
            )
        return wait

    def admit(self, size: float, now: float) -> Permit:
        """The permit for a request that may be sent now."""
        permit = self.pacer.admit(size, now)
        self.record.begin()
        if self.record.aside and self._probe is None:
            self._probe = permit
        return permit

    def answered(self, permit: Permit, response: Response) -> bool:
        """The request was answered. True where the endpoint had been set aside."""
        self.breaker.succeeded()
        again = False
        if (
            permit.sent_at > self._aside_since
        ):  # what was sent before says nothing of now
            again = self.record.aside != ""
            self.breaker.well()
            self.record.aside, self._gap, self._probe = "", _FIRST_GAP, None
        self.pacer.answered(permit, response)
        self.record.end()
        self.changed()
        return again

    def failed(self, permit: Permit, error: RequestError) -> bool:
        """The request failed.

        True where the endpoint is set aside for it; one that is alone never is.
        """
        now = self._loop.time()
        self.pacer.failed(permit, error)
        self.record.end(failed=True)
        newly = False
        if permit is self._probe:
            self._gap = min(2 * self._gap, _LONGEST_GAP)
            self._end_probe(now)
        elif not self.alone and not self.record.aside and self._is_ill(error, now):
            newly = True
            self.record.aside, self._aside_since = str(error), now
            self._end_probe(now)
        self.changed()
        return newly

    def abandon(self, permit: Permit) -> None:
        """The request ended without a reply that would tell anything."""
        if permit is self._probe:
            self._end_probe(self._loop.time())
        self.pacer.abandon(permit)
        self.record.end(failed=True)
        self.changed()

    def _end_probe(self, now: float) -> None:
        self._probe = None
        self._probe_at = now + self._gap * random.uniform(0.75, 1.0)

    def may_be_at_fault(self, error: RequestError) -> bool:
        """Whether another endpoint may answer what this one did not.

        One that never answered may reject what is no fault of the request.
        """
        if lets_nothing_in(error):
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
            return False  # the pacer's matter
        return self.breaker.is_ill(
            error, now, at_fault=at_fault or isinstance(error, BadReply)
        )


@dataclass(slots=True, eq=False)
class _Waiting:
    size: float
    avoid: frozenset[Endpoint]
    future: asyncio.Future[tuple[Endpoint, Permit]]


class SendingQueue:
    """Those who wait to send a request. Belongs to one event loop; has no task of its own."""

    def __init__(
        self, endpoints: Sequence[Endpoint], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._endpoints = endpoints
        self._loop = loop
        self._fresh: deque[_Waiting] = deque()
        self._again: deque[_Waiting] = deque()
        self._timer: asyncio.TimerHandle | None = None
        for endpoint in endpoints:
            endpoint.changed = self._pump
            endpoint.alone = len(endpoints) == 1

    async def enter(
        self,
        size: float = 0.0,
        time_left: float | None = None,
        avoid: Collection[Endpoint] = (),
    ) -> tuple[Endpoint, Permit]:
        """Wait until a request may be sent, and where.

        size: a first guess of its tokens. time_left: for a request that was sent before; it goes
        ahead of those that were not. avoid: where it shall not go while others are there. Raises
        TimeoutError when the time is over, RateLimited where nothing was let through for longer
        than any request may wait.
        """
        if (hopeless := self._hopeless()) is not None:
            raise hopeless
        if not self._fresh and not self._again:
            now = self._loop.time()
            endpoint, _ = self._choose(size, avoid, now)
            if endpoint is not None:
                return endpoint, endpoint.admit(size, now)
        entry = _Waiting(size, frozenset(avoid), self._loop.create_future())
        deadline = None
        if time_left is None:
            self._fresh.append(entry)
        else:
            self._again.appendleft(entry)
            deadline = self._loop.call_later(max(time_left, 0.0), _expire, entry.future)
        if (
            time_left is not None or len(self._fresh) == 1
        ):  # else it is behind others that wait
            self._pump()
        try:
            return await entry.future
        except asyncio.CancelledError:
            if (
                entry.future.done()
                and not entry.future.cancelled()
                and entry.future.exception() is None
            ):
                endpoint, permit = entry.future.result()
                endpoint.abandon(permit)
            raise
        finally:
            if deadline is not None:
                deadline.cancel()

    def untried(self, tried: Collection[Endpoint]) -> bool:
        """Whether there is an endpoint besides those, and it is not set aside while others are not."""
        return any(endpoint not in tried for endpoint in self._standing())

    def drop_waiting(self, error: Callable[[], Exception]) -> None:
        """Whoever waits gets an error of their own."""
        waiting = [*self._again, *self._fresh]
        self._again.clear()
        self._fresh.clear()
        for entry in waiting:
            if not entry.future.done():
                entry.future.set_exception(error())

    def _hopeless(self) -> RequestError | None:
        for endpoint in self._endpoints:
            if (error := endpoint.pacer.hopeless) is None:
                return None
        return error

    def _standing(self) -> Sequence[Endpoint]:
        return [
            one for one in self._endpoints if not one.record.aside
        ] or self._endpoints

    def _choose(
        self, size: float, avoid: Collection[Endpoint], now: float
    ) -> tuple[Endpoint | None, float]:
        """The endpoint that takes it now, else the seconds until one may."""
        if len(self._endpoints) == 1:
            wait = self._endpoints[0].pacer.wait(size, now)
            return (None, wait) if wait > 0 else (self._endpoints[0], 0.0)
        soonest = math.inf
        best = None
        load = math.inf
        endpoints: Sequence[Endpoint] = self._endpoints
        probing = any(not one.record.aside for one in endpoints)
        if avoid and self.untried(avoid):
            endpoints = [one for one in endpoints if one not in avoid]
        for endpoint in endpoints:
            wait = endpoint.wait(size, now, probing=probing)
            if wait > 0:
                soonest = min(soonest, wait)
            elif (its := endpoint.pacer.load) < load:
                best = endpoint
                load = its
        return best, soonest

    def _pump(self) -> None:
        """Give permits to those who wait, as far as is allowed now; else come back when it will be."""
        if not self._fresh and not self._again:
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

    def _hand_out(self, queue: deque[_Waiting], now: float) -> float:
        """Send from a queue what can be sent now; gives the seconds until more may be."""
        soonest = math.inf
        place = 0
        blocked: tuple[frozenset[Endpoint], ...] = ()
        while place < len(queue):
            entry = queue[place]
            if entry.future.done():
                del queue[place]
            elif entry.avoid in blocked:
                place += 1
            else:
                endpoint, wait = self._choose(entry.size, entry.avoid, now)
                if endpoint is not None:
                    del queue[place]
                    entry.future.set_result((endpoint, endpoint.admit(entry.size, now)))
                    continue
                soonest = min(soonest, wait)
                if not entry.avoid:
                    break  # nothing is free for those behind it either
                blocked += (entry.avoid,)
        return soonest


def _expire(future: asyncio.Future[tuple[Endpoint, Permit]]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())
