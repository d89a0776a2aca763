"""What a program has used, and when it is over a limit, on a clock of the test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from evalwright.core.responses import Response, Usage
from evalwright.proxy.program_limits import PROGRAM_SECONDS, ProgramMeter
from evalwright.strategies.limits import Limits

Work = Callable[[ProgramMeter, "Clock"], Awaitable[None]]


class Clock:
    """A clock that a test moves on, in place of the event loop's."""

    now = 0.0

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ProgramMeter, "_now", lambda meter: self.now)


def measured(
    limits: Limits, monkeypatch: pytest.MonkeyPatch, work: Work
) -> tuple[ProgramMeter, list[str]]:
    """Run a program's life in a test; return the meter and what it was ended by."""
    ended: list[str] = []

    async def live() -> ProgramMeter:
        clock = Clock(monkeypatch)
        meter = ProgramMeter(limits, ended.append)
        meter.start()
        await work(meter, clock)
        meter.end()
        return meter

    return asyncio.run(live()), ended


def test_waiting_for_the_model_counts_as_its_reply_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work(meter: ProgramMeter, clock: Clock) -> None:
        clock.now = 3.0
        assert meter.open() is None
        clock.now = 500.0  # a rate limit
        meter.close(Response("a", latency=2.0))
        clock.now = 501.0
        assert meter.program_seconds == 4.0
        assert meter.open() is None
        assert meter.open() is None
        meter.close(Response("b", latency=1.5))
        clock.now = 600.0
        meter.close(None)
        clock.now = 602.5

    meter, ended = measured(Limits(seconds=20), monkeypatch, work)
    assert meter.program_seconds == 6.5
    assert meter.model_seconds == 3.5
    assert meter.n_replies == 2
    assert not ended


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Limits(messages=2), "messages"),
        (Limits(tokens=20), "tokens"),
        (Limits(messages=None, dollars=0.4), "dollars"),
        (Limits(seconds=6), "seconds"),
    ],
)
def test_each_limit_forbids_the_next_request(
    monkeypatch: pytest.MonkeyPatch, limits: Limits, name: str
) -> None:
    async def work(meter: ProgramMeter, clock: Clock) -> None:
        reply = Response("a", usage=Usage(7, 3), cost=0.2, latency=3.0)
        for _ in range(2):
            assert meter.open() is None
            meter.close(reply)
        assert meter.open() == name
        assert meter.open() == name

    _, ended = measured(limits, monkeypatch, work)
    assert ended == [name]


def test_requests_that_are_open_count_as_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work(meter: ProgramMeter, clock: Clock) -> None:
        assert [meter.open() for _ in range(3)] == [None, None, "messages"]
        meter.close(None)
        meter.close(None)

    _, ended = measured(Limits(messages=2), monkeypatch, work)
    assert ended == ["messages"]


@pytest.mark.parametrize("seconds", [None, 60.0])
def test_a_program_that_asks_nothing_is_ended(
    monkeypatch: pytest.MonkeyPatch, seconds: float | None
) -> None:
    most = PROGRAM_SECONDS if seconds is None else seconds
    waits: list[float] = []

    async def work(meter: ProgramMeter, clock: Clock) -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", _noted(loop.call_later, waits))
        clock.now = most / 4
        meter.open()
        clock.now = 10.0 * most
        meter.close(None)
        clock.now += most / 2
        meter.open()
        meter.close(None)
        assert meter.over is None
        meter._out_of_time()

    meter, ended = measured(Limits(seconds=seconds), monkeypatch, work)
    assert waits == [most * 3 / 4, most / 4]
    assert meter.over == "seconds"
    assert ended == ["seconds"]


def _noted(call_later: Callable[..., Any], waits: list[float]) -> Callable[..., Any]:
    """The loop's method, which notes how long it is to wait."""

    def noted(delay: float, *rest: Any) -> Any:
        waits.append(delay)
        return call_later(delay, *rest)

    return noted


def test_limits_that_replies_do_not_count_towards_are_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("evalwright.strategies.limits._warned", set())

    async def work(meter: ProgramMeter, clock: Clock) -> None:
        for _ in range(2):
            assert meter.open() is None
            meter.close(Response("a"))

    measured(Limits(dollars=0.1, tokens=5), monkeypatch, work)
    assert [record.message.split()[0] for record in caplog.records] == [
        "`limits.dollars`",
        "`limits.tokens`",
    ]
