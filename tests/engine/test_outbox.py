"""Claims and releases through the writer: their order counts, and nobody is left waiting."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import StoreError
from evalwright.core.responses import Response, Usage
from evalwright.engine import outbox
from evalwright.engine.claims import Owner
from evalwright.engine.opening import open_store
from evalwright.engine.sqlite import FILE, SqliteDatabase
from evalwright.engine.store import Store
from evalwright.engine.store_rows import MINE, STORED, Batch, Group, Row, row_of
from support.stores import Statements, make_read_only

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


@pytest.mark.usefixtures("each_store")
@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_claim_that_outlives_its_loop_ends_with_the_store(
    tmp_path: Path, behind: Statements, is_cancelled: bool
) -> None:
    async def claim_late() -> None:
        outbox = store.outbox()
        await outbox.claim(b"k")
        outbox._next = (
            loop.time() + 600
        )  # the next batch waits longer than this loop lives
        waiter = asyncio.ensure_future(wait(outbox.claim(b"late")))
        await asyncio.sleep(0)
        if is_cancelled:
            waiter.cancel()
            await asyncio.wait([waiter])
        waiters.append(waiter)

    async def wait(claim: asyncio.Future[str]) -> None:
        await claim

    waiters: list[asyncio.Task[None]] = []
    store = open_store(tmp_path)
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # a task that is pending for ever
    loop.run_until_complete(claim_late())
    loop.close()
    store.close()
    assert behind(tmp_path, "SELECT count(*) FROM claims") == [(0,)]
    assert behind(tmp_path, "SELECT count(*) FROM owners") == [(0,)]


@pytest.mark.usefixtures("each_store")
def test_what_a_closed_loop_left_is_stored_when_the_next_begins(tmp_path: Path) -> None:
    async def put_late() -> None:
        outbox = store.outbox()
        await outbox.put(_ROW)
        outbox._next = asyncio.get_running_loop().time() + 600
        outbox.put(row_of(b"late", "m", b"{}", Response(text="y")))

    async def put_again() -> None:
        await store.outbox().put(row_of(b"again", "m", b"{}", Response(text="z")))

    with open_store(tmp_path) as store:
        asyncio.run(put_late())
        asyncio.run(put_again())
        assert store.holds(b"late")


def test_an_interrupted_commit_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_rows = SqliteDatabase._put
    interrupts = iter([KeyboardInterrupt()])

    def interrupted_put(database: SqliteDatabase, rows: list[Row]) -> None:
        put_rows(database, rows)
        for interrupt in interrupts:
            raise interrupt

    async def put_and_bill() -> None:
        outbox = store.outbox()
        outbox.bill(("m", "answer", False), Usage(5, 2), 0.25)
        outbox.put(_ROW)
        outbox.flush()

    with open_store(tmp_path) as store:
        monkeypatch.setattr(SqliteDatabase, "_put", interrupted_put)
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(put_and_bill())
    with open_store(tmp_path) as store:
        assert store.holds(b"k")
        (bill,) = store.ledger()
        assert (bill["sendings"], bill["dollars"]) == (1, 0.25)


def test_a_store_that_closes_during_a_commit_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try_apply = SqliteDatabase.try_apply
    committing = threading.Event()
    closing_began = threading.Event()

    def slow_try_apply(
        database: SqliteDatabase, group: Group, owner: Owner
    ) -> dict[bytes, str] | None:
        committing.set()
        assert closing_began.wait(60)
        closer.join(0.05)  # it would end now if it did not wait
        return try_apply(database, group, owner)

    def close_store() -> None:
        assert committing.wait(60)
        closing_began.set()
        store.close()

    batch_errors: list[StoreError | None] = []

    def note_end(batch: Batch, error: StoreError | None) -> None:
        batch_errors.append(error)

    store = open_store(tmp_path)
    monkeypatch.setattr(SqliteDatabase, "try_apply", slow_try_apply)
    closer = threading.Thread(target=close_store)
    closer.start()
    is_committed = store._writer.submit(Batch(note_end, puts=[_ROW]))
    closer.join(60)
    assert is_committed
    assert batch_errors == [None]
    store._writer.submit(Batch(note_end, puts=[_ROW]))
    assert "is closed" in str(batch_errors[1])
    with open_store(tmp_path) as store:
        assert store.holds(b"k")
