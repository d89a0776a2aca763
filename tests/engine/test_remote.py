"""Sending to a remote model: repeated where that helps, timed, cut off where it never will."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from engine.support import Remote, account, question, run_virtually
from evalwright.core import errors
from evalwright.core.errors import RequestFailed
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.engine.counts import Counts
from evalwright.engine.remote import RemoteSender, cancelled
from evalwright.models.model_interface import Pacing


def sender_of(model: Remote, events: list[str] | None = None) -> RemoteSender:
    """A sender on the running loop."""
    said = events if events is not None else []
    return RemoteSender(model, asyncio.get_running_loop(), said.append)


def scripted(*steps: Any) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """Replies one after another; the last one for ever. Exceptions are raised."""
    left = list(steps)

    async def reply(request: Request) -> Response:
        await asyncio.sleep(0.1)
        step = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(step, BaseException):
            raise step
        assert isinstance(step, Response)
        return step

    return reply


def failure_of(
    model: Remote, counts: Counts | None = None
) -> tuple[errors.Failure, float]:
    """Ask once; how it failed, and when."""

    async def work() -> tuple[errors.Failure, float]:
        with pytest.raises(RequestFailed) as caught:
            await sender_of(model).send(account(question(1), counts=counts))
        return caught.value.failure, asyncio.get_running_loop().time() - 1000

    return run_virtually(work())


def test_what_passes_is_asked_again() -> None:
    fine = Response(text="fine")
    model = Remote(
        scripted(
            errors.Overloaded("a"),
            errors.ConnectionFailed("b"),
            errors.BadReply("c"),
            fine,
        )
    )
    counts = Counts()

    async def work() -> None:
        assert await sender_of(model).send(account(question(1), counts=counts)) == fine

    run_virtually(work())
    assert len(model.asked) == 4 and counts.retries == 3


@pytest.mark.parametrize(
    ("steps", "sent", "message"),
    [
        ([errors.Rejected("No such model", status=404)], 1, "No such model"),
        (
            [errors.ConnectionFailed("first"), errors.Overloaded("last", status=502)],
            10,
            "last (sent 10 times; given up)",
        ),
    ],
)
def test_what_does_not_pass_is_given_up_with_its_last_reason(
    steps: list[Any], sent: int, message: str
) -> None:
    counts = Counts()
    model = Remote(scripted(*steps))
    failure, _ = failure_of(model, counts)
    assert (failure.message, failure.status, failure.attempts) == (
        message,
        steps[-1].status,
        sent,
    )
    assert (len(model.asked), counts.sent, counts.retries) == (sent, 1, sent - 1)


def test_retry_after_is_honoured() -> None:
    model = Remote(
        scripted(errors.RateLimited("Wait", retry_after=30.0), Response(text="x"))
    )
    events: list[str] = []

    async def work() -> float:
        await sender_of(model, events).send(account(question(1)))
        return asyncio.get_running_loop().time() - 1000

    assert 30.1 <= run_virtually(work()) <= 31
    assert events == ["remote says to wait 30 s: Wait"]


def test_a_retry_after_beyond_the_deadline_fails_at_once() -> None:
    model = Remote(
        scripted(errors.RateLimited("Wait", retry_after=50.0)), Pacing(deadline=40)
    )
    failure, when = failure_of(model)
    assert when < 1 and "says to wait 50 s" in failure.message


def test_an_attempt_that_hangs_is_ended_and_repeated() -> None:
    async def reply(request: Request) -> Response:
        if len(model.asked) == 1:
            await asyncio.sleep(1e6)
        return Response(text="x")

    model = Remote(reply, Pacing(timeout=10))

    async def work() -> float:
        await sender_of(model).send(account(question(1)))
        return asyncio.get_running_loop().time() - 1000

    assert 10 <= run_virtually(work()) <= 11


def test_the_deadline_ends_everything() -> None:
    async def reply(request: Request) -> Response:
        await asyncio.sleep(1e6)
        return Response()

    model = Remote(reply, Pacing(timeout=10, deadline=25))
    failure, when = failure_of(model)
    assert when <= 25.1
    assert failure.kind == "timed out" and "no answer within" in failure.message
    assert "deadline of 25 s" in failure.message
    assert len(model.asked) == 3


async def no_response(request: Request) -> Any:
    return {"text": "x"}


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (scripted(TimeoutError("connect")), "timed out", "connect"),
        (scripted(KeyError("choices")), "model error", "raised KeyError: 'choices'"),
        (no_response, "model error", "gave a dict, not a Response"),
        (scripted(errors.ConfigurationError("No key.")), "request failed", "No key."),
    ],
)
def test_a_backend_that_misbehaves_fails_the_request_only(
    reply: Any, kind: str, words: str
) -> None:
    failure, _ = failure_of(Remote(reply, Pacing(max_attempts=2)))
    assert failure.kind == kind and words in failure.message


@pytest.mark.parametrize(
    ("error", "most"),
    [
        (errors.AuthenticationFailed("Bad key", status=401), 80),
        (errors.ConnectionFailed("Refused"), 1500),
    ],
)
def test_a_hopeless_model_is_cut_off_and_it_is_said_once(
    error: errors.RequestError, most: int
) -> None:
    model = Remote(scripted(error))
    events: list[str] = []

    async def work() -> list[Any]:
        sender = sender_of(model, events)
        results = await asyncio.gather(
            *(sender.send(account(question(n))) for n in range(3000)),
            return_exceptions=True,
        )
        assert asyncio.get_running_loop().time() < 1060
        return results

    results = run_virtually(work())
    assert all(
        isinstance(result, RequestFailed) and str(error) in str(result)
        for result in results
    )
    assert len(model.asked) <= most
    assert len(events) == 1 and "never answered" in events[0]


def test_where_nothing_listens_a_single_request_is_given_up_within_seconds() -> None:
    error = errors.ConnectionFailed("No connection to localhost:9.", taken=False)
    events: list[str] = []

    async def work() -> None:
        started = asyncio.get_running_loop().time()
        with pytest.raises(RequestFailed, match=r"never answered.*Start the server"):
            await sender_of(Remote(scripted(error)), events).send(account(question(1)))
        assert (
            10 <= asyncio.get_running_loop().time() - started <= 45
        )  # at worst after the waits of 0.5, 1, ... 16 s

    run_virtually(work())
    assert (
        events[0] == "remote: No connection to localhost:9. It is tried again for 10 s."
        and len(events) == 2
    )


def test_a_server_that_starts_within_ten_seconds_is_waited_for() -> None:
    async def work() -> Response:
        loop = asyncio.get_running_loop()
        started = loop.time()

        async def reply(request: Request) -> Response:
            if loop.time() - started < 9:
                raise errors.ConnectionFailed("No connection.", taken=False)
            return Response(text="ready")

        return await sender_of(Remote(reply), []).send(account(question(1)))

    assert run_virtually(work()).text == "ready"


def test_stopping_fails_what_waits_and_lets_finish_what_is_sent() -> None:
    async def reply(request: Request) -> Response:
        await asyncio.sleep(1)
        return Response(text="x")

    model = Remote(reply, Pacing(start_concurrency=4, max_concurrency=4))

    async def work() -> list[Any]:
        sender = sender_of(model)
        sends = [
            asyncio.ensure_future(sender.send(account(question(n)))) for n in range(10)
        ]
        await asyncio.sleep(0.5)
        sender.drop_waiting(cancelled())
        results = await asyncio.gather(*sends, return_exceptions=True)
        with pytest.raises(RequestFailed):
            await sender.send(account(question(99)))
        return results

    results = run_virtually(work())
    assert [isinstance(result, Response) for result in results] == [True] * 4 + [
        False
    ] * 6
    assert all(result.failure.kind == "cancelled" for result in results[4:])
    assert len(model.asked) == 4


def test_what_is_sent_can_be_ended_too() -> None:
    async def reply(request: Request) -> Response:
        await asyncio.sleep(1e6)
        return Response()

    async def work() -> None:
        sender = sender_of(Remote(reply))
        send = asyncio.ensure_future(sender.send(account(question(1))))
        await asyncio.sleep(0.5)
        sender.drop_waiting(cancelled())
        sender.drop_running()
        with pytest.raises(RequestFailed) as caught:
            await send
        assert caught.value.failure.kind == "cancelled"
        assert asyncio.get_running_loop().time() < 1001

    run_virtually(work())
