"""What the engine's tests share: small real models, an event loop with a clock of its own, and
servers with exact books.
"""

from __future__ import annotations

import asyncio
import math
import random
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from evalwright.core.errors import Failure, RateLimited
from evalwright.core.requests import Ability, Generate, Request
from evalwright.core.responses import RateLimits, Response, Usage
from evalwright.engine.counts import Counts
from evalwright.engine.ledger import Account
from evalwright.engine.store import Store
from evalwright.engine.store_rows import Row
from evalwright.models.model_interface import LocalModel, Pacing, RemoteModel
from evalwright.models.scripted import ScriptedModel

T = TypeVar("T")


def question(number: int | str) -> Generate:
    """A request of its own for each number."""
    return Generate(f"Question {number}", max_tokens=8)


def number_of(request: Request) -> str:
    """The inverse of `question`."""
    assert isinstance(request, Generate) and isinstance(request.prompt, str)
    return request.prompt.removeprefix("Question ")


class Echo(LocalModel):
    """A local model that answers with the question's number, and keeps books of its batches."""

    abilities: frozenset[Ability] = frozenset({"generate"})

    def __init__(self, name: str = "echo", heavy: bool = False) -> None:
        self.name = name
        self.fingerprint = f"fingerprint of {name}"
        self.heavy = heavy
        self.batches: list[list[str]] = []

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        self.batches.append([number_of(request) for request in requests])
        for index, request in enumerate(requests):
            yield (
                index,
                Response(
                    text=number_of(request), finish_reason="stop", usage=Usage(3, 1)
                ),
            )

    @property
    def asked(self) -> list[str]:
        """All questions of all batches."""
        return [number for batch in self.batches for number in batch]


class Remote(RemoteModel):
    """A remote model whose server is a function."""

    abilities: frozenset[Ability] = frozenset({"generate"})

    def __init__(
        self,
        reply: Callable[[Request], Awaitable[Response]],
        pacing: Pacing | None = None,
        name: str = "remote",
    ) -> None:
        self.name = name
        self.fingerprint = f"fingerprint of {name}"
        self.pacing = pacing or Pacing()
        self.reply = reply
        self.asked: list[str] = []
        self.closed = 0

    async def answer(self, request: Request) -> Response:
        self.asked.append(number_of(request))
        return await self.reply(request)

    async def close(self) -> None:
        self.closed += 1


class FileCounting(Remote):
    """Answers after a moment and appends every question to a file, which all processes share."""

    def __init__(
        self, log: Path, latency: float = 0.002, pacing: Pacing | None = None
    ) -> None:
        super().__init__(
            self._reply, pacing or Pacing(start_concurrency=16), name="counting"
        )
        self.log = log
        self.latency = latency

    async def _reply(self, request: Request) -> Response:
        with self.log.open("ab", buffering=0) as file:
            file.write(f"{number_of(request)}\n".encode())
        await asyncio.sleep(self.latency)
        return Response(text=f"answer {number_of(request)}", usage=Usage(3, 2))


async def claims(store: Store, *keys: bytes) -> list[str]:
    """Claim these; what became of each."""
    return await asyncio.gather(*map(store.outbox().claim, keys))


async def put_rows(store: Store, rows: Sequence[Row]) -> None:
    """Store these rows, durably."""
    await asyncio.gather(*map(store.outbox().put, rows))


def account(request: Request, counts: Counts | None = None) -> Account:
    """What a request's sendings are counted in, without a store and a budget."""
    return Account(
        ScriptedModel(""), request, 40, counts or Counts(), lambda *bill: None
    )


class VirtualClock(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while nothing else is to be done: an hour's pacing is
    tested in a moment.

    For code without threads and sockets.
    """

    def __init__(self) -> None:
        self._virtual = 1000.0
        selector = selectors.SelectSelector()
        super().__init__(selector)
        look: Callable[[float | None], list[Any]] = selector.select

        def select(timeout: float | None = None) -> list[Any]:
            if timeout is None:
                raise RuntimeError("everybody waits and nothing is due: a lost wake-up")
            if timeout > 0:
                self._virtual += timeout
            return look(0)

        selector.select = select  # type: ignore[method-assign]

    def time(self) -> float:
        return self._virtual


def run_virtually(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on a clock of its own, with the same jitter each time."""
    random.seed(1)
    with asyncio.Runner(loop_factory=VirtualClock) as runner:
        return runner.run(work)


class LimitedServer:
    """A provider with a limit and exact books, on the event loop's clock.

    kind "bucket": refilled steadily, `limit` at most; "window": `limit` per window of `period`
    seconds, then anew. each: tokens that an answer takes, where tokens are limited; None where
    requests are. announces: whether replies name what remains. early: whether units are counted as
    the request comes, or as it is answered. whole_seconds: whether resets are rounded down. spread:
    of the log-normal time that an answer takes, so that answers overtake one another.
    """

    def __init__(
        self,
        kind: str,
        limit: int,
        period: float,
        *,
        each: int | None = None,
        latency: float = 0.2,
        announces: bool = True,
        early: bool = True,
        whole_seconds: bool = False,
        retry_after: bool = False,
        spread: float = 0.0,
    ) -> None:
        self.kind = kind
        self.limit = limit
        self.period = period
        self.latency = latency
        self.units = each or 1
        self.of_tokens = each is not None
        self.spread = spread
        self.announces = announces
        self.early = early
        self.whole_seconds = whole_seconds
        self.retry_after = retry_after
        self.level = float(limit)
        self.at: float | None = None
        self.started = 0.0
        self.accepted = self.refused = 0
        self.chance = random.Random(2)

    async def reply(self, request: Request) -> Response:
        now = self._advance()
        late = (
            self.of_tokens and not self.early
        )  # these are taken when the answer is whole
        if self.level < (1 if late else self.units):
            self.refused += 1
            limits = self._limits(now)
            wait = self._wait(now) if self.retry_after else None
            await asyncio.sleep(0.01)
            raise RateLimited(
                "Too many requests", status=429, rate_limits=limits, retry_after=wait
            )
        self.level -= 0 if late else self.units
        self.accepted += 1
        limits = self._limits(now)
        seconds = self.chance.lognormvariate(
            math.log(self.latency) - self.spread**2 / 2, self.spread
        )
        await asyncio.sleep(seconds if self.spread else self.latency)
        if not self.early:
            now = self._advance()
            self.level -= self.units if late else 0
            limits = self._limits(now)
        usage = Usage(self.units - 1, 1) if self.of_tokens else Usage(10, 5)
        return Response(text=number_of(request), rate_limits=limits, usage=usage)

    def allowed(self, seconds: float) -> float:
        """Units in so many seconds from the start."""
        if self.kind == "bucket":
            return self.limit * (1 + seconds / self.period)
        return self.limit * math.ceil(seconds / self.period - 1e-9)

    def _advance(self) -> float:
        now = asyncio.get_running_loop().time()
        if self.at is None:
            self.at = self.started = now
        if self.kind == "bucket":
            self.level = min(
                self.limit, self.level + (now - self.at) * self.limit / self.period
            )
        elif now - self.started >= self.period:
            self.started += (now - self.started) // self.period * self.period
            self.level = float(self.limit)
        self.at = now
        return now

    def _wait(self, now: float) -> float:
        if self.kind == "bucket":
            return (1 - self.level) * self.period / self.limit
        return self.started + self.period - now

    def _limits(self, now: float) -> RateLimits | None:
        if not self.announces:
            return None
        reset = self.started + self.period - now
        if self.kind == "bucket":
            reset = (self.limit - self.level) * self.period / self.limit
        reset = float(int(reset)) if self.whole_seconds else reset
        told: tuple[Any, ...] = (self.limit, max(0, int(self.level)), reset)
        return RateLimits(*(None, None, None, *told) if self.of_tokens else told)
