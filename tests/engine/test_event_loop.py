"""The event loop of a run: an interrupt ends everything that runs in it."""

from __future__ import annotations

import asyncio

import pytest

from evalwright.engine.event_loop import run_in_loop


def test_an_interrupt_in_one_task_lets_those_that_wait_for_it_clean_up() -> None:
    is_cleaned_up = False

    async def raise_interrupt() -> None:
        raise KeyboardInterrupt

    async def wait_for_both() -> None:
        await asyncio.gather(raise_interrupt(), asyncio.sleep(3600))

    async def work() -> None:
        nonlocal is_cleaned_up
        try:
            await asyncio.ensure_future(wait_for_both())
        finally:
            await asyncio.sleep(0)
            is_cleaned_up = True

    with pytest.raises(KeyboardInterrupt):
        run_in_loop(work())
    assert is_cleaned_up
