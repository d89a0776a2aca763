"""Pacing against servers with exact books, on a clock of its own: what is used, what is refused,
who goes first.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from engine.support import (
    LimitedServer,
    Remote,
    VirtualClock,
    account,
    number_of,
    question,
    run_virtually,
)
from evalwright.core.errors import (
    ConnectionFailed,
    Overloaded,
    RateLimited,
    RequestError,
    RequestFailed,
)
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.engine.pacing import Pacer
from evalwright.engine.remote import RemoteSender
from evalwright.engine.sending import Endpoint, SendingQueue
from evalwright.models.model_interface import Pacing
from evalwright.models.replicas import Replica


def lone_endpoint(
    at_once: int, loop: asyncio.AbstractEventLoop
) -> tuple[Endpoint, SendingQueue]:
    """An endpoint that takes so many at once, and the queue before it."""

    async def none(request: Request) -> Response:
        raise AssertionError("nothing is sent")

    model = Remote(none, Pacing(start_concurrency=at_once, max_concurrency=at_once))
    endpoint = Endpoint(model, Replica("one"), loop)
    return endpoint, SendingQueue([endpoint], loop)


def drive(
    reply: Callable[[Request], Awaitable[Response]],
    seconds: float,
    workers: int = 600,
    pacing: Pacing | None = None,
) -> tuple[Pacer, list[str]]:
    """Ask without a pause for so many seconds; the pacer at the end, and the failures."""

    async def work() -> tuple[Pacer, list[str]]:
        loop = asyncio.get_running_loop()
        sender = RemoteSender(Remote(reply, pacing), loop, lambda event: None)
        numbers = itertools.count()
        failures: list[str] = []

        async def worker() -> None:
            while True:
                try:
                    await sender.send(account(question(next(numbers))))
                except RequestFailed as failed:
                    failures.append(failed.failure.message)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(worker() for _ in range(workers)))
        return sender.endpoints[0].pacer, failures

    return run_virtually(work())


@pytest.mark.parametrize(
    ("kind", "limit", "early", "whole_seconds"),
    [
        *itertools.product(("bucket", "window"), (600,), (True, False), (True, False)),
        ("bucket", 3000, True, False),
        ("window", 3000, False, True),
    ],
)
def test_announced_limits_are_used_and_hardly_ever_refused(
    kind: str, limit: int, early: bool, whole_seconds: bool
) -> None:
    """early: counted as the request comes. whole_seconds: resets are rounded down."""
    period = 60
    server = LimitedServer(
        kind, limit, period, early=early, whole_seconds=whole_seconds
    )
    seconds = 2 * period
    _, failures = drive(server.reply, seconds)
    assert server.accepted >= 0.85 * server.allowed(seconds)
    assert server.refused < 0.02 * (server.accepted + server.refused)
    assert failures == []


@pytest.mark.parametrize("kind", ["bucket", "window"])
def test_unannounced_limits_with_retry_after_are_used(kind: str) -> None:
    server = LimitedServer(kind, 3000, 60, announces=False, retry_after=True)
    _, failures = drive(server.reply, 180)
    assert server.accepted >= 0.85 * 3000 * 3
    assert server.refused < 0.06 * server.accepted
    assert failures == []


class AtOnce:
    """Allows so many at once, answers after a log-normal time of 0.2 s in the mean, and refuses
    the rest.

    share: refused at random besides. after: seconds until a refusal comes.
    """

    def __init__(
        self,
        capacity: int,
        retry_after: float | None = None,
        share: float = 0.0,
        after: float = 0.01,
    ) -> None:
        self.capacity = capacity
        self.retry_after = retry_after
        self.share = share
        self.after = after
        self.now = self.served = self.refused = 0
        self.chance = random.Random(3)

    async def reply(self, request: Request) -> Response:
        if self.now >= self.capacity or self.chance.random() < self.share:
            self.refused += 1
            await asyncio.sleep(self.after)
            raise RateLimited(
                "Too many at once", status=429, retry_after=self.retry_after
            )
        self.now += 1
        await asyncio.sleep(self.chance.lognormvariate(math.log(0.2) - 0.08, 0.4))
        self.now -= 1
        self.served += 1
        return Response(text="x")

    def used(self, seconds: float) -> float:
        """Share of what it would have answered at best."""
        return self.served * 0.2 / (self.capacity * seconds)

    @property
    def share_refused(self) -> float:
        """Of all that came."""
        return self.refused / (self.refused + self.served)


@pytest.mark.parametrize("capacity", [8, 64])
def test_concurrency_settles_just_below_what_the_server_allows(capacity: int) -> None:
    server = AtOnce(capacity)
    pacer, failures = drive(server.reply, 30, workers=400)
    assert 0.9 * capacity <= pacer.limit <= 1.1 * capacity + 1
    assert server.used(30) >= 0.95
    assert server.share_refused < 0.08
    assert failures == []


@pytest.mark.parametrize("start", [64, 512])
@pytest.mark.parametrize(
    "after", [0.002, 0.05], ids=["refused at once", "refused late"]
)
def test_a_burst_of_refusals_shows_what_is_taken_at_once(
    start: int, after: float
) -> None:
    server = AtOnce(128, after=after)
    pacing = Pacing(start_concurrency=start, max_concurrency=1024)
    pacer, failures = drive(server.reply, 12, workers=1100, pacing=pacing)
    assert server.used(12) >= 0.93
    assert 120 <= pacer.limit <= 136
    assert failures == []


@pytest.mark.parametrize(
    ("server", "start", "most"),
    [(AtOnce(128, retry_after=1.0), 512, 1024), (AtOnce(128, share=0.02), 128, 128)],
    ids=["Retry-After", "refusals that no pace would avoid"],
)
def test_refusals_cost_little(server: AtOnce, start: int, most: int) -> None:
    pacing = Pacing(start_concurrency=start, max_concurrency=most)
    _, failures = drive(server.reply, 20, workers=most + 100, pacing=pacing)
    assert server.used(20) >= 0.9
    assert failures == []


def test_until_the_first_reply_requests_are_sent_step_by_step() -> None:
    sent: list[float] = []

    async def reply(request: Request) -> Response:
        sent.append(asyncio.get_running_loop().time() - 1000)
        await asyncio.sleep(1.0)
        return Response(text="x")

    drive(reply, 0.95, workers=600, pacing=Pacing(start_concurrency=512))
    assert sum(at == 0 for at in sent) == 4
    assert [sum(at < limit for at in sent) for limit in (0.101, 0.201, 0.301)] == [
        8,
        16,
        32,
    ]
    assert len(sent) == 512
    again: list[float] = []

    async def fast(request: Request) -> Response:
        again.append(asyncio.get_running_loop().time() - 1000)
        await asyncio.sleep(0.05 if len(again) == 1 else 1.0)
        return Response(text="x")

    drive(fast, 0.5, workers=600, pacing=Pacing(start_concurrency=512))
    assert sum(at <= 0.051 for at in again) >= 512, "the first reply opens the door"


def test_single_server_errors_do_not_slow_down_but_many_do() -> None:
    def limit_after(share: float) -> float:
        numbers = itertools.count(1)

        async def reply(request: Request) -> Response:
            await asyncio.sleep(0.1)
            if next(numbers) * share % 1 < share:
                raise Overloaded("Sometimes", status=500)
            return Response(text="x")

        return drive(reply, 10, workers=100)[0].limit

    assert limit_after(0.02) >= 64
    assert limit_after(0.6) < 32


@pytest.mark.parametrize("error", [RateLimited, Overloaded])
def test_a_retry_after_holds_everybody_back(error: type[RequestError]) -> None:
    sent: list[float] = []

    async def reply(request: Request) -> Response:
        now = asyncio.get_running_loop().time()
        sent.append(now)
        await asyncio.sleep(0.1)
        if now < sent[0] + 0.105:  # nobody can know yet
            raise error("Wait", status=429, retry_after=20.0)
        return Response(text="x")

    drive(reply, 30)
    began = sent[0]
    held = [at - began for at in sent if at > began + 0.105]
    assert min(held) >= 20.0
    # And then they do not all come in the same moment.
    first_round = sorted(held)[:32]
    assert first_round[-1] - first_round[0] > 0.02


@pytest.mark.parametrize("absurd", [86400.0, 1e300, 1700.0])
def test_an_absurd_retry_after_fails_one_request(absurd: float) -> None:
    """The others find out one at a time, at growing gaps, and the first answer ends that."""
    sent: list[float] = []

    async def reply(request: Request) -> Response:
        sent.append(asyncio.get_running_loop().time() - 1000)
        await asyncio.sleep(0.1)
        if len(sent) == 1 or 20 < len(sent) <= 25:
            raise RateLimited("Quota used up", status=429, retry_after=absurd)
        return Response(text=number_of(request))

    async def work() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        sender = RemoteSender(Remote(reply), loop, lambda event: None)
        waiting = [
            asyncio.ensure_future(sender.send(account(question(n)))) for n in range(394)
        ]
        done, _ = await asyncio.wait(waiting, timeout=900)
        return sum(one.exception() is None for one in done), loop.time()

    answered, _ = run_virtually(work())
    assert answered >= 394 - 6


@pytest.mark.parametrize("wait", [86400.0, 20.0, None])
def test_a_provider_that_lets_nothing_through_fails_the_rest_after_the_deadline(
    wait: float | None,
) -> None:
    sent: list[float] = []

    async def reply(request: Request) -> Response:
        sent.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.1)
        raise RateLimited("Quota used up", status=429, retry_after=wait)

    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        sender = RemoteSender(Remote(reply), loop, lambda event: None)
        results = await asyncio.gather(
            *(sender.send(account(question(n))) for n in range(300)),
            return_exceptions=True,
        )
        assert loop.time() < 1000 + 1800 + 120
        return [str(result) for result in results if isinstance(result, RequestFailed)]

    messages = run_virtually(work())
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    assert len(messages) == 300 and all(
        "Quota used up" in message for message in messages
    )
    if wait == 86400.0:
        assert len(sent) < 60 and max(gaps) > 50 and sorted(gaps)[len(gaps) // 2] > 10


def test_who_came_first_goes_first_and_repetitions_before_all() -> None:
    async def work() -> list[str]:
        endpoint, queue = lone_endpoint(1, asyncio.get_running_loop())
        order: list[str] = []
        _, held = await queue.enter()

        async def one(name: str, time_left: float | None = None) -> None:
            _, permit = await queue.enter(time_left=time_left)
            order.append(name)
            await asyncio.sleep(0.01)
            endpoint.answered(permit, Response())

        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(one(str(number)))
            await asyncio.sleep(0)
            group.create_task(one("again", 100.0))
            await asyncio.sleep(0)
            endpoint.answered(held, Response())
        return order

    assert run_virtually(work()) == ["again", "0", "1", "2", "3", "4"]


def test_a_repetition_waits_no_longer_than_its_deadline() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        endpoint, queue = lone_endpoint(1, loop)
        _, held = await queue.enter()
        with pytest.raises(TimeoutError):
            await queue.enter(time_left=5.0)
        assert loop.time() == pytest.approx(1005)
        endpoint.answered(held, Response())
        await queue.enter()

    run_virtually(work())


def test_a_cancelled_waiter_is_not_sent() -> None:
    async def work() -> None:
        endpoint, queue = lone_endpoint(1, asyncio.get_running_loop())
        _, held = await queue.enter()
        waiting = [asyncio.ensure_future(queue.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        endpoint.abandon(
            held
        )  # the second gets its permit, and is cancelled before it can run
        waiting[1].cancel()
        _, permit = await waiting[2]
        endpoint.abandon(permit)
        assert endpoint.pacer.in_flight == 0

    run_virtually(work())


@pytest.mark.parametrize("late", [False, True], ids=["counted early", "counted late"])
@pytest.mark.parametrize("kind", ["bucket", "window"])
@pytest.mark.parametrize(
    ("limit", "period", "each", "latency"),
    [
        (5400, 60, 9, 0.2),
        (60_000, 60, 500, 0.5),
        (30_000, 60, 500, 1.0),
        (200_000, 3600, 500, 2.0),
    ],
)
def test_token_limits_are_kept(
    limit: int, period: float, each: int, latency: float, kind: str, late: bool
) -> None:
    server = LimitedServer(
        kind, limit, period, each=each, early=not late, latency=latency, spread=0.4
    )
    seconds = 3 * period
    _, failures = drive(server.reply, seconds, workers=300)
    assert server.accepted * each >= 0.85 * server.allowed(seconds)
    # The first of a new window finds out when it has begun; where a window holds few answers, these
    # are more than 2%.
    assert server.refused <= max(4, 0.02 * server.accepted)
    assert failures == []


def test_trouble_never_raises_the_limit_and_a_lone_error_is_none() -> None:
    for at_once, times, error in (
        (8, 1, ConnectionFailed("reset")),
        (1, 50, Overloaded("down", status=503)),
    ):
        loop = VirtualClock()
        endpoint, queue = lone_endpoint(at_once, loop)
        for _ in range(times):
            _, permit = loop.run_until_complete(queue.enter())
            loop.run_until_complete(asyncio.sleep(0.1))
            endpoint.failed(permit, error)
            assert endpoint.pacer.limit == at_once and endpoint.pacer.in_flight == 0
        loop.close()


@pytest.mark.parametrize("status", [500, 503])
def test_a_connection_that_hangs_after_errors_does_not_hold_up_the_others(
    status: int,
) -> None:
    numbers = itertools.count(1)
    answered_at: list[float] = []

    async def reply(request: Request) -> Response:
        number = next(numbers)
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0.1)
        if number <= 6:
            raise Overloaded("down", status=status)
        if number == 7:
            await asyncio.sleep(10_000)
        answered_at.append(loop.time())
        return Response(text="x")

    async def work() -> None:
        pacing = Pacing(max_concurrency=2, start_concurrency=2, timeout=300.0)
        loop = asyncio.get_running_loop()
        sender = RemoteSender(Remote(reply, pacing), loop, lambda sentence: None)
        requests = [account(question(number)) for number in range(20)]
        await asyncio.gather(*map(sender.send, requests))

    run_virtually(work())
    assert len(answered_at) == 20
    assert answered_at[-2] < 1000 + 300 < answered_at[-1]
