"""A server that sends two replies to a request: none is ever taken for another request's,
whenever the second one comes.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter

import pytest

from evalwright.core.errors import RequestError
from evalwright.models.remote.exchange import Call
from evalwright.models.remote.http import HttpClient

Delay = Callable[[int], float | None]
"""By the number of a request, the seconds after which its reply is sent again; None for never, 0
for in one piece.
"""


RESTING_SECONDS = 0.005
"""A connection rests for so long after a reply, and sees what comes in that time."""
FIRST_RESTING_SECONDS = 0.1
"""As long after the first reply of a host no connection to it is used again."""


class DuplicatingServer:
    """Answers each request with its own JSON after `seconds`, and again after a delay.

    delayed: numbers of requests whose second reply a busy machine held back until their connection
    might be in use again, so that nobody could tell it from the next one's.
    """

    def __init__(self, delay: Delay, seconds: float) -> None:
        self.n_connections = 0
        self.n_requests = 0
        self.delayed: set[int] = set()
        self._delay = delay
        self._seconds = seconds
        self._first_reply_at: float | None = None

    def expect_new_client(self) -> None:
        """Start again to count the time since the first reply."""
        self._first_reply_at = None

    async def talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.n_connections += 1
        tasks = []
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(
                    head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                )
                body = await reader.readexactly(length)
                self.n_requests += 1
                reply = (
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                    % (
                        length,
                        body,
                    )
                )
                number = json.loads(body)["number"]
                delay = self._delay(number)
                await asyncio.sleep(self._seconds)
                replied_at = time.monotonic()
                if self._first_reply_at is None:
                    self._first_reply_at = replied_at
                resting_until = max(
                    replied_at + RESTING_SECONDS,
                    self._first_reply_at + FIRST_RESTING_SECONDS,
                )
                writer.write(reply + reply if delay == 0 else reply)
                if delay:
                    again = self._again(writer, reply, delay, number, resting_until)
                    tasks.append(asyncio.create_task(again))
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            for task in tasks:
                task.cancel()
            writer.close()

    async def _again(
        self,
        writer: asyncio.StreamWriter,
        reply: bytes,
        delay: float,
        number: int,
        resting_until: float,
    ) -> None:
        await asyncio.sleep(delay)
        writer.write(reply)
        if time.monotonic() > resting_until:
            self.delayed.add(number)


@contextmanager
def serving(delay: Delay, seconds: float) -> Iterator[tuple[str, DuplicatingServer]]:
    """The address of such a server, which runs in a thread of its own."""
    server = DuplicatingServer(delay, seconds)
    addresses: list[int] = []
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        listening = await asyncio.start_server(
            server.talk, "127.0.0.1", 0, backlog=1024
        )
        addresses.append(listening.sockets[0].getsockname()[1])
        ready.set()
        await stop.wait()
        listening.close()
        tasks = [
            task for task in asyncio.all_tasks() if task is not asyncio.current_task()
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.05)  # closed transports say so to their loop

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield f"http://127.0.0.1:{addresses[0]}", server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()


async def ask_all(
    url: str, count: int, at_once: int, busy_seconds: float
) -> dict[int, int | None]:
    """What each of `count` requests got: the number in its reply, None where it failed.
    busy_seconds: for which the loop is busy.
    """
    client = HttpClient(url, max_connections=at_once)
    answers: dict[int, int | None] = {}
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            try:
                reply = await client.send(Call("/", {"number": number}))
            except RequestError as error:
                assert error.retryable
                answers[number] = None
            else:
                answers[number] = reply.data["number"]
            if busy_seconds:
                time.sleep(busy_seconds)  # as under load

    await asyncio.gather(*(work() for _ in range(at_once)))
    await client.close()
    return answers


N_REQUESTS = 200
DELAYS: dict[str, Delay] = {
    "in one piece": lambda number: 0,
    "at once": lambda number: 0.0001,
    "after 1 ms": lambda number: 0.001,
    "after 5 ms": lambda number: 0.005,
    "after 20 ms": lambda number: 0.02,
    "after 80 ms": lambda number: 0.08,
    "now and then at once": lambda number: 0.0001 if number % 37 == 5 else None,
    "now and then in one piece": lambda number: 0 if number % 37 == 5 else None,
    "now and then after 2 ms": lambda number: 0.002 if number % 37 == 5 else None,
    "once in 179": lambda number: 0.0005 if number % 179 == 100 else None,
}


@pytest.mark.parametrize("seconds", [0.0, 0.01])
@pytest.mark.parametrize("busy_seconds", [0.0, 0.002])
@pytest.mark.parametrize("delay", DELAYS)
def test_no_reply_is_another_requests(
    delay: str, busy_seconds: float, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(DELAYS[delay], seconds) as (url, server):
        answers = asyncio.run(ask_all(url, N_REQUESTS, 16, busy_seconds))
        server.expect_new_client()
        again = asyncio.run(ask_all(url, 20, 1, busy_seconds))
    # A second reply that came too late shifts those behind it on its connection, too.
    shifted = set(server.delayed)
    wrong = dict[int, int | None]()
    for number, answer in sorted([*answers.items(), *again.items()], key=itemgetter(0)):
        if answer in shifted and answer != number:
            shifted.add(number)
        elif answer not in (number, None):
            wrong[number] = answer
    assert not wrong and len(answers) == N_REQUESTS
    assert sum(answer is None for answer in answers.values()) <= N_REQUESTS // 10
    assert "more than one reply" in caplog.text or server.delayed
    assert server.n_requests == N_REQUESTS + 20


def test_a_tidy_server_keeps_its_connections() -> None:
    with serving(lambda number: None, 0.001) as (url, server):
        answers = asyncio.run(ask_all(url, 400, 8, 0.0))
    assert answers == {number: number for number in range(400)}
    assert server.n_connections == 8


def test_a_malformed_reply_ends_its_connection() -> None:
    """What follows it may be the rest of it."""
    n_connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal n_connections
        n_connections += 1
        while await reader.readline():
            while (await reader.readline()).strip():
                pass
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{bad}"
            )
        writer.close()

    async def ask() -> None:
        listening = await asyncio.start_server(talk, "127.0.0.1", 0)
        client = HttpClient(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        for _ in range(3):
            with pytest.raises(RequestError, match="JSON"):
                await client.send(Call("/", method="GET"))
        await client.close()
        listening.close()
        await asyncio.sleep(0.05)

    asyncio.run(ask())
    assert n_connections == 3
