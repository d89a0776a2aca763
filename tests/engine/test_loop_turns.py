"""Turns of the event loop: how much is worked on in one, and that every worker comes to its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from evalwright.engine import loop_turns
from evalwright.engine.loop_turns import LoopTurns


async def works_off(
    samples: Iterator[int], turns: LoopTurns, worked: list[int]
) -> None:
    for sample in samples:
        await turns.take()
        worked.append(sample)


def test_a_turn_lasts_as_long_as_it_may_whatever_the_number_of_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_turns, "TURN_SECONDS", 0.0)

    async def longest_turn() -> tuple[int, list[int]]:
        loop = asyncio.get_running_loop()
        turns = LoopTurns(loop)
        samples = iter(range(500))
        worked = list[int]()
        workers = [
            asyncio.create_task(works_off(samples, turns, worked)) for _ in range(100)
        ]
        longest = before = 0
        while not all(worker.done() for worker in workers):
            await asyncio.sleep(0)
            longest = max(longest, len(worked) - before)
            before = len(worked)
        return longest, worked

    longest, worked = asyncio.run(longest_turn())
    assert sorted(worked) == list(range(500))
    assert longest <= 2


def test_within_a_turn_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_turns, "TURN_SECONDS", 600.0)

    async def in_one_turn() -> int:
        turns = LoopTurns(asyncio.get_running_loop())
        samples = iter(range(500))
        worked = list[int]()
        worker = asyncio.create_task(works_off(samples, turns, worked))
        await asyncio.sleep(0)
        await worker
        return len(worked)

    assert asyncio.run(in_one_turn()) == 500


def test_whoever_is_cancelled_in_line_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_turns, "TURN_SECONDS", 0.0)

    async def some_are_cancelled() -> list[int]:
        turns = LoopTurns(asyncio.get_running_loop())
        samples = iter(range(200))
        worked = list[int]()
        workers = [
            asyncio.create_task(works_off(samples, turns, worked)) for _ in range(20)
        ]
        await asyncio.sleep(0)
        for worker in workers[1:10]:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        return worked

    assert len(asyncio.run(some_are_cancelled())) >= 200 - 9
