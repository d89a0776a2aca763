"""Claims and releases through the writer: their order counts, and nobody is left waiting."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import StoreError
from evalwright.core.responses import Response
from evalwright.engine import outbox
from evalwright.engine.opening import open_store
from evalwright.engine.sqlite import FILE
from evalwright.engine.store import Store
from evalwright.engine.store_rows import MINE, STORED, row_of
from support.stores import make_read_only

_ROW = row_of(b"k", "m", b"{}", Response(text="x"))


def with_stores(
    home: Path, work: Callable[[Store, Store], Coroutine[Any, Any, None]]
) -> None:
    """Run with two stores on one folder: two owners, as two processes would be."""

    async def both() -> None:
        with open_store(home) as one, open_store(home) as other:
            await work(one, other)

    asyncio.run(both())


@pytest.mark.usefixtures("each_store")
def test_a_claim_given_up_goes_to_who_waits(tmp_path: Path) -> None:
    async def work(one: Store, other: Store) -> None:
        assert await one.outbox().claim(b"k") == MINE
        waiting = other.outbox().claim_after(b"k")
        one.outbox().release(b"k")
        assert await asyncio.wait_for(waiting, 60) == MINE

    with_stores(tmp_path, work)


@pytest.mark.usefixtures("each_store")
def test_a_cancelled_claim_is_not_left_behind(tmp_path: Path) -> None:
    async def work(one: Store, other: Store) -> None:
        future = one.outbox().claim(b"k")
        await asyncio.sleep(0)  # handed to the writer, not yet answered
        future.cancel()
        waiting = other.outbox().claim_after(b"k")
        assert await asyncio.wait_for(waiting, 60) == MINE

    with_stores(tmp_path, work)


@pytest.mark.usefixtures("each_store")
def test_a_claim_after_a_cancelled_one_of_the_same_key_holds(tmp_path: Path) -> None:
    async def work(one: Store, other: Store) -> None:
        first = one.outbox().claim(b"k")
        await asyncio.sleep(0)
        first.cancel()
        assert await one.outbox().claim(b"k") == MINE
        await asyncio.sleep(0.1)
        assert await other.outbox().claim(b"k") == one.command

    with_stores(tmp_path, work)


@pytest.mark.usefixtures("each_store")
def test_a_broken_store_leaves_nobody_waiting(tmp_path: Path) -> None:
    async def work(one: Store, other: Store) -> None:
        assert await one.outbox().claim(b"k") == MINE
        waiting = other.outbox().claim_after(b"k")
        make_read_only(other)
        with pytest.raises(StoreError):
            await other.outbox().put(_ROW)
        with pytest.raises(StoreError):
            await other.outbox().claim(b"other")
        with pytest.raises(StoreError):
            await asyncio.wait_for(waiting, 60)
        # The other owner is not affected.
        await one.outbox().put(_ROW)

    with_stores(tmp_path, work)


def test_a_lock_held_by_another_process_is_waited_for(tmp_path: Path) -> None:
    async def work(one: Store, other: Store) -> None:
        with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as blocker:
            blocker.execute("BEGIN IMMEDIATE")
            put = one.outbox().put(_ROW)
            await asyncio.sleep(0.2)
            assert not put.done()
            blocker.execute("COMMIT")
        await asyncio.wait_for(put, 60)

    with_stores(tmp_path, work)


@pytest.mark.usefixtures("each_store")
def test_a_claim_and_an_answer_of_one_batch_are_delivered_once(tmp_path: Path) -> None:
    async def work(one: Store, other: Store) -> None:
        errors: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(context))
        outbox = one.outbox()
        assert await outbox.claim(b"k") == MINE
        put = outbox.put(_ROW)
        assert await outbox.claim(b"later") == MINE
        await put
        assert await outbox.claim(b"k") == STORED
        assert not errors

    with_stores(tmp_path, work)


@pytest.mark.usefixtures("each_store")
def test_a_busy_loop_writes_responses_after_a_while_of_its_own_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_MAX_GAP_SECONDS", 600.0)
    monkeypatch.setattr(outbox, "_GAP_SECONDS_PER_WISH", 600.0)
    monkeypatch.setattr(outbox, "_MAX_RUNNING_SECONDS", -1.0)

    async def work(one: Store, other: Store) -> None:
        await one.outbox().put(_ROW)
        waiting = one.outbox().put(row_of(b"l", "m", b"{}", Response(text="y")))
        assert not one.outbox().claim(b"later").done()
        await asyncio.wait_for(waiting, 60)

    with_stores(tmp_path, work)
