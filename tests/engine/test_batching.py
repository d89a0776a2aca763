"""The worker thread of a local model: big batches, answers as they finish, and no request left
without one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import pytest

from engine.support import Echo, number_of, question
from evalwright.core.errors import Failure, MissingExtra, RequestFailed
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.engine.batching import Batcher
from evalwright.engine.model_slots import ModelSlots
from evalwright.engine.remote import cancelled

Answers = Iterator[tuple[int, Response | Failure]]


def with_batcher(
    model: Echo, work: Callable[[Batcher], Coroutine[Any, Any, None]]
) -> None:
    """Run with a batcher that is closed at the end."""

    async def main() -> None:
        batcher = Batcher(model, asyncio.get_running_loop(), ModelSlots(1))
        try:
            await work(batcher)
        finally:
            await batcher.close(2.0)

    asyncio.run(main())


async def outcomes(batcher: Batcher, count: int) -> list[str]:
    """Ask so many at once; the texts, or the failures' messages."""
    results = await asyncio.gather(
        *(batcher.submit(question(n)) for n in range(count)), return_exceptions=True
    )
    assert all(isinstance(result, Response | RequestFailed) for result in results)
    return [
        result.text if isinstance(result, Response) else str(result)
        for result in results
    ]


def test_requests_that_come_a_moment_later_are_waited_for() -> None:
    model = Echo()

    async def work(batcher: Batcher) -> None:
        futures = []
        for n in range(10):
            futures.append(batcher.submit(question(n)))
            await asyncio.sleep(0)
        await asyncio.gather(*futures)

    with_batcher(model, work)
    assert len(model.batches) == 1


def test_answers_come_as_they_finish() -> None:
    release = threading.Event()

    class Slow(Echo):
        def answer_batch(self, requests: Sequence[Request]) -> Answers:
            for index, request in reversed(list(enumerate(requests))):
                yield index, Response(text=number_of(request))
                if index == 1:
                    assert release.wait(100)

    async def work(batcher: Batcher) -> None:
        first, *others = [batcher.submit(question(n)) for n in range(3)]
        assert [(await other).text for other in others] == ["1", "2"]
        assert not first.done()
        release.set()
        assert (await first).text == "0"

    with_batcher(Slow(), work)


def test_requests_that_come_meanwhile_are_the_next_batch() -> None:
    started = threading.Event()
    release = threading.Event()

    class Slow(Echo):
        def answer_batch(self, requests: Sequence[Request]) -> Answers:
            started.set()
            assert release.wait(100)
            yield from super().answer_batch(requests)

    model = Slow()

    async def work(batcher: Batcher) -> None:
        first = batcher.submit(question(0))
        await asyncio.to_thread(started.wait)
        others = [batcher.submit(question(n)) for n in range(1, 5)]
        release.set()
        await asyncio.gather(first, *others)

    with_batcher(model, work)
    assert model.batches == [["0"], ["1", "2", "3", "4"]]


class Broken(Echo):
    """Answers the first request, then does what it was told."""

    def __init__(self, then: Callable[[], Answers]) -> None:
        super().__init__("broken")
        self.then = then

    def answer_batch(self, requests: Sequence[Request]) -> Answers:
        yield 0, Response(text="0")
        yield from self.then()


def _raise(error: BaseException) -> Callable[[], Answers]:
    def then() -> Answers:
        yield from ()
        raise error

    return then


@pytest.mark.parametrize(
    ("then", "message"),
    [
        (
            _raise(ValueError("bad weights")),
            "The model broken failed: ValueError: bad weights",
        ),
        (_raise(SystemExit(3)), "The model broken failed: SystemExit: 3"),
        (lambda: iter([(0, Response())]), "answered request 0 of its batch twice"),
        (lambda: iter([(7, Response())]), "answered request 7 of a batch of 3"),
        (lambda: iter([("a", Response())]), "answered request 'a' of a batch of 3"),
        (lambda: iter([(1, Response(text="1"))]), "without a response to this request"),
        (lambda: iter(()), "without a response to this request"),
        (lambda: iter([(1, "text"), (2, None)]), "not a Response"),
        (lambda: iter([None]), "TypeError"),
    ],
)
def test_a_misbehaving_batch_fails_only_what_it_did_not_answer(
    then: Callable[[], Answers], message: str
) -> None:
    async def work(batcher: Batcher) -> None:
        first, *others = await outcomes(batcher, 3)
        assert first == "0"
        assert any(message in other for other in others)
        assert all(
            other == "1" or "The model broken failed" in other for other in others
        )
        # And the worker goes on.
        again = await outcomes(batcher, 1)
        assert again in (["0"], ["1"])

    with_batcher(Broken(then), work)


def test_a_failure_as_an_answer_fails_that_request() -> None:
    class Picky(Echo):
        def answer_batch(self, requests: Sequence[Request]) -> Answers:
            for index, answer in super().answer_batch(requests):
                yield (
                    index,
                    Failure("request rejected", "model", "Too long")
                    if index == 1
                    else answer,
                )

    async def work(batcher: Batcher) -> None:
        assert await outcomes(batcher, 3) == ["0", "Too long", "2"]

    with_batcher(Picky(), work)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError("no such file"), "could not be loaded: OSError: no such file"),
        (MissingExtra("The model", "hf", "torch"), "pip install 'evalwright[hf]'"),
    ],
)
def test_a_model_that_cannot_be_loaded_fails_its_requests_at_once(
    error: Exception, message: str
) -> None:
    loads = []

    class Unloadable(Echo):
        def load(self) -> None:
            loads.append(1)
            raise error

    async def work(batcher: Batcher) -> None:
        for _ in range(2):
            assert all(message in outcome for outcome in await outcomes(batcher, 5))

    with_batcher(Unloadable(heavy=True), work)
    assert len(loads) == 1


def test_a_running_batch_is_ended_at_its_next_answer() -> None:
    class Slow(Echo):
        def answer_batch(self, requests: Sequence[Request]) -> Answers:
            for answer in super().answer_batch(requests):
                time.sleep(0.05)
                yield answer

    async def work(batcher: Batcher) -> None:
        futures = [batcher.submit(question(n)) for n in range(100)]
        await futures[0]
        batcher.drop_waiting(cancelled())
        batcher.drop_running(cancelled())
        results = await asyncio.gather(*futures, return_exceptions=True)
        answered = sum(isinstance(result, Response) for result in results)
        assert 1 <= answered < 20
        # The worker is free again.
        assert (
            await asyncio.wait_for(batcher.submit(question("next")), 60)
        ).text == "next"

    with_batcher(Slow(), work)
