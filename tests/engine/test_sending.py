"""A pool of endpoints behind one queue, on a clock of its own: what goes where, and what becomes
of an endpoint that fails.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from engine.support import (
    LimitedServer,
    Remote,
    account,
    number_of,
    question,
    run_virtually,
)
from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConnectionFailed,
    EmptyReply,
    Failure,
    Overloaded,
    RateLimited,
    Rejected,
    RequestError,
    RequestFailed,
    TimedOut,
)
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.engine.budget import Budget, Limits
from evalwright.engine.counts import Counts
from evalwright.engine.remote import RemoteSender
from evalwright.models.model_interface import Pacing
from evalwright.models.replicated import ReplicaPool

Reply = Callable[[Request], Awaitable[Response]]


class Server:
    """Answers after a moment; from `dies` seconds on (or always) with an error, until `returns`."""

    def __init__(
        self,
        error: RequestError | None = None,
        *,
        dies: float = 0.0,
        returns: float = 1e9,
        latency: float = 0.2,
    ) -> None:
        self.error = error
        self.dies = dies
        self.returns = returns
        self.latency = latency
        self.answered: Counter[str] = Counter()
        self.failed_at: list[float] = []

    async def reply(self, request: Request) -> Response:
        await asyncio.sleep(self.latency)
        now = asyncio.get_running_loop().time() - 1000
        if self.error is not None and self.dies <= now < self.returns:
            self.failed_at.append(now)
            raise type(self.error)(str(self.error), status=self.error.status)
        self.answered[number_of(request)] += 1
        return Response(text=number_of(request))


def pool_of(*replies: Reply, pacing: Pacing | None = None) -> ReplicaPool:
    models = [
        Remote(reply, pacing or Pacing(start_concurrency=8, max_concurrency=8))
        for reply in replies
    ]
    return ReplicaPool(
        models[0],
        [(f"endpoint {'abc'[place]}", model) for place, model in enumerate(models)],
    )


def send_all(
    pool: ReplicaPool, n: int, within: float = 1e6, counts: Counts | None = None
) -> tuple[list[Any], list[str], float]:
    """Outcomes of n requests sent at once, what was said, and the seconds that it took."""
    events: list[str] = []

    async def work() -> tuple[list[Any], float]:
        loop = asyncio.get_running_loop()
        sender = RemoteSender(pool, loop, events.append)
        async with asyncio.timeout(within):
            results = await asyncio.gather(
                *(
                    sender.send(account(question(number), counts))
                    for number in range(n)
                ),
                return_exceptions=True,
            )
        assert all(endpoint.pacer.in_flight == 0 for endpoint in sender.endpoints)
        return results, loop.time() - 1000

    results, seconds = run_virtually(work())
    return results, events, seconds


def once_each(servers: Sequence[Server], n: int) -> bool:
    """Whether every question was answered, and by one server, once."""
    total = sum((server.answered for server in servers), Counter())
    return total == Counter(str(number) for number in range(n))


def test_each_endpoint_takes_what_it_can() -> None:
    servers = Server(latency=0.1), Server(latency=0.2), Server(latency=0.8)
    results, events, seconds = send_all(
        pool_of(*(server.reply for server in servers)), 4000
    )
    assert [result.text for result in results] == [
        str(number) for number in range(4000)
    ]
    assert once_each(servers, 4000) and events == []
    allowed = 8 / 0.1 + 8 / 0.2 + 8 / 0.8
    assert seconds <= 4000 / allowed / 0.95
    assert Counter(result.replica for result in results).keys() == {
        "endpoint a",
        "endpoint b",
        "endpoint c",
    }


def test_limits_that_only_the_person_knows_are_kept() -> None:
    servers = Server(), Server()
    models = [
        Remote(server.reply, Pacing(requests_per_minute=rate))
        for server, rate in zip(servers, (600, 30), strict=True)
    ]
    pool = ReplicaPool(models[0], list(zip("ab", models, strict=True)))
    results, _, seconds = send_all(pool, 630)
    assert all(isinstance(result, Response) for result in results)
    assert 59 <= seconds <= 62
    assert [server.answered.total() for server in servers] == pytest.approx(
        [600, 30], abs=12
    )


@pytest.mark.parametrize("announces", [True, False], ids=["headers", "Retry-After"])
def test_unequal_limits_are_used_and_one_that_dies_is_left_out(announces: bool) -> None:
    """20, 50 and 100 requests a second; the one with 50 dies after half a minute."""
    limits = [
        LimitedServer("bucket", rate, 1, announces=announces, retry_after=not announces)
        for rate in (20, 50, 100)
    ]
    dead: list[float] = []

    async def dying(request: Request) -> Response:
        now = asyncio.get_running_loop().time() - 1000
        if now >= 30:
            dead.append(now)
            raise ConnectionFailed("refused", taken=False)
        return await limits[1].reply(request)

    pool = pool_of(
        limits[0].reply, dying, limits[2].reply, pacing=Pacing(max_concurrency=256)
    )
    n = 30 * 170 + 30 * 120
    results, events, seconds = send_all(pool, n)
    assert [result.text for result in results] == [str(number) for number in range(n)]
    assert sum(server.accepted for server in limits) == n
    assert len(events) == 1 and "endpoint b is set aside" in events[0]
    assert seconds <= 60 / 0.9, "at least 90% of what is allowed"
    later = [when for when in dead if when > 31]
    assert 3 <= len(later) <= 6, "it is tried again, at growing gaps"


@pytest.mark.parametrize(
    "error",
    [
        ConnectionFailed("refused", taken=False),
        AuthenticationFailed("Bad key", status=401),
        Rejected("No such model", status=404),
        Overloaded("down", status=503),
        TimedOut("no answer"),
    ],
    ids=lambda error: error.kind,
)
def test_no_request_is_lost_to_one_endpoint_that_never_answers(
    error: RequestError,
) -> None:
    servers = Server(), Server(error)
    counts = Counts()
    results, events, _ = send_all(
        pool_of(*(server.reply for server in servers)), 2000, counts=counts
    )
    assert all(isinstance(result, Response) for result in results)
    assert once_each(servers, 2000)
    assert [
        event for event in events if "endpoint b is set aside" in event
    ] == events and len(events) == 1
    assert counts.sent == 2000 and counts.retries == len(servers[1].failed_at) < 200


def test_one_that_answers_again_is_used_again() -> None:
    servers = (
        Server(),
        Server(ConnectionFailed("refused", taken=False), dies=5, returns=20),
    )
    results, events, _ = send_all(pool_of(*(server.reply for server in servers)), 4000)
    assert once_each(servers, 4000) and all(
        isinstance(result, Response) for result in results
    )
    assert [event.partition(": ")[2][:30] for event in events] == [
        "the replica endpoint b is set ",
        "the replica endpoint b answers",
    ]
    assert servers[1].answered.total() > 1000


@pytest.mark.parametrize(
    "error",
    [
        BadReply("A page of HTML"),
        EmptyReply("Nothing"),
        Rejected("Not known here", status=400),
    ],
    ids=lambda error: error.kind,
)
def test_one_that_answers_nonsense_at_once_fails_no_request(
    error: RequestError,
) -> None:
    """It is the quickest, and so the one that is asked most."""
    servers = Server(), Server(error, latency=0.01)
    results, _, _ = send_all(pool_of(*(server.reply for server in servers)), 400)
    assert all(isinstance(result, Response) for result in results) and once_each(
        servers, 400
    )


def test_replicas_that_answer_under_names_that_nothing_tells_apart_answer_nothing() -> (
    None
):
    """Nothing is known of the name that was asked: either may be the model that is meant."""

    async def other(request: Request) -> Response:
        await asyncio.sleep(0.2)
        return Response(text="x", model="another\x1b[2J")

    async def own(request: Request) -> Response:
        await asyncio.sleep(0.2)
        return Response(text="x", model="wanted-2026")

    assert send_all(pool_of(own, own), 20)[1] == []
    results, _, _ = send_all(pool_of(own, other), 200)
    failures = [
        result.failure for result in results if isinstance(result, RequestFailed)
    ]
    assert len(failures) > 100 and {failure.kind for failure in failures} == {
        "wrong model"
    }
    assert (
        "'wanted-2026'" in failures[-1].message
        and "replicas_differ=true" in failures[-1].message
    )
    assert not any("\x1b" in failure.message for failure in failures)


def test_what_all_reject_is_rejected() -> None:
    servers = [Server(Rejected("Wrong", status=400)) for _ in range(3)]
    results, _, _ = send_all(pool_of(*(server.reply for server in servers)), 50)
    failures = [
        result.failure for result in results if isinstance(result, RequestFailed)
    ]
    assert len(failures) == 50 and {
        (failure.kind, failure.attempts) for failure in failures
    } == {("request rejected", 3)}


def test_a_wrong_request_goes_to_one_endpoint_and_sets_none_aside() -> None:
    servers = Server(), Server()

    async def reject(request: Request) -> Response:
        if int(number_of(request)) % 2:
            raise Rejected("Wrong", status=400)
        return await servers[1].reply(request)

    results, events, _ = send_all(pool_of(reject, reject), 200)
    assert (
        sum(isinstance(result, RequestFailed) for result in results) == 100
        and events == []
    )


@pytest.mark.parametrize(
    "error", [AuthenticationFailed("Bad key", status=401), ConnectionFailed("Refused")]
)
def test_where_none_ever_answers_the_run_ends_as_with_one(error: RequestError) -> None:
    servers = [Server(error) for _ in range(3)]
    results, events, seconds = send_all(
        pool_of(*(server.reply for server in servers)), 3000
    )
    assert all(
        isinstance(result, RequestFailed) and str(error) in str(result)
        for result in results
    )
    assert seconds < 120 and "never answered" in events[-1]
    assert sum(len(server.failed_at) for server in servers) < 3 * 1500


def test_where_all_die_each_request_is_retried_as_with_one() -> None:
    """And what comes back in time answers all."""
    servers = [
        Server(ConnectionFailed("refused", taken=False), dies=3, returns=12)
        for _ in range(3)
    ]
    results, _, _ = send_all(pool_of(*(server.reply for server in servers)), 3000)
    assert once_each(servers, 3000) and all(
        isinstance(result, Response) for result in results
    )
    servers = [
        Server(ConnectionFailed("refused", taken=False), dies=3) for _ in range(3)
    ]
    results, _, _ = send_all(pool_of(*(server.reply for server in servers)), 600)
    failures = [
        result.failure for result in results if isinstance(result, RequestFailed)
    ]
    assert failures and all(
        isinstance(failure, Failure) and failure.kind == "connection failed"
        for failure in failures
    )
    assert max(failure.attempts for failure in failures) <= 3 * Pacing().max_attempts


def test_one_without_quota_is_set_aside_after_the_deadline() -> None:
    first = Server()

    async def refuse(request: Request) -> Response:
        await asyncio.sleep(0.01)
        raise RateLimited("Quota used up", status=429, retry_after=86400.0)

    pacing = Pacing(start_concurrency=8, max_concurrency=8, deadline=60)
    results, events, _ = send_all(pool_of(first.reply, refuse, pacing=pacing), 8000)
    assert once_each([first], 8000) and all(
        isinstance(result, Response) for result in results
    )
    assert any("endpoint b is set aside" in event for event in events)


def test_every_sending_is_paid_and_the_budget_holds() -> None:
    servers = Server(), Server(TimedOut("no answer"))
    budget = Budget(Limits(requests=300))
    pool = pool_of(*(server.reply for server in servers))
    sent = itertools.count()

    async def work() -> list[Any]:
        sender = RemoteSender(pool, asyncio.get_running_loop(), lambda event: None)

        async def one(number: int) -> Response:
            reservation = budget.reservation()
            booked = account(question(number))
            booked.reservation = reservation
            booked.model = pool
            try:
                return await sender.send(booked)
            finally:
                reservation.close()
                next(sent)

        return await asyncio.gather(
            *(one(number) for number in range(1000)), return_exceptions=True
        )

    results = run_virtually(work())
    answered = sum(isinstance(result, Response) for result in results)
    assert answered + len(servers[1].failed_at) == budget.spent.requests == 300
    assert servers[0].answered.total() == answered
