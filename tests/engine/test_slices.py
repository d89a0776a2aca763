"""Slices in the store: each is evaluated by one living worker, and done once for all."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import pytest

from evalwright.engine.opening import open_store
from evalwright.engine.slices import SharedSlices, WorkerNotes
from evalwright.engine.store import Store
from evalwright.engine.store_rows import MINE, STORED

pytestmark = pytest.mark.usefixtures("each_store")


def notes_in(store: Store, *name: str) -> WorkerNotes:
    return WorkerNotes(store, "fingerprint", ["run", *name])


def test_workers_share_out_all_slices_and_no_slice_twice(tmp_path: Path) -> None:
    async def work() -> None:
        with ExitStack() as stack:
            stores = [stack.enter_context(open_store(tmp_path)) for _ in range(3)]
            shared = [SharedSlices(notes_in(store), 40) for store in stores]
            taken: list[list[int]] = [[], [], []]

            async def take(worker: int) -> None:
                while (number := await shared[worker].claim()) is not None:
                    taken[worker].append(number)
                    await asyncio.sleep(0)
                    await shared[worker].finish(number, {"worker": worker})

            await asyncio.gather(*map(take, range(3)))
            assert sorted(chain(*taken)) == list(range(40))
            assert all(taken), "a worker got nothing"
            for slices in shared:
                await slices.look()
                assert slices.all_done
                assert slices.counts.elsewhere == slices.counts.workers == 0

    asyncio.run(work())


def test_slices_of_a_worker_that_stops_are_free_at_once(tmp_path: Path) -> None:
    async def claim_and_stop() -> None:
        with open_store(tmp_path) as store:
            slices = SharedSlices(notes_in(store), 4)
            assert {await slices.claim(), await slices.claim()} <= set(range(4))

    async def work() -> None:
        with open_store(tmp_path) as store, open_store(tmp_path) as other_store:
            slices = SharedSlices(notes_in(store), 4)
            other = SharedSlices(notes_in(other_store), 4)
            held = await other.claim()
            assert held is not None
            mine = {await slices.claim() for _ in range(3)}
            assert mine == set(range(4)) - {held}
            assert await slices.claim() is None
            assert (slices.counts.elsewhere, slices.counts.workers) == (1, 1)
            assert not slices.some_free
            await other.finish(held, {})
            await slices.look()
            assert not slices.some_free and slices.counts.done == 1

    asyncio.run(claim_and_stop())
    asyncio.run(work())


def test_with_a_budget_slices_are_taken_in_their_order(tmp_path: Path) -> None:
    async def work() -> None:
        with open_store(tmp_path) as store, open_store(tmp_path) as other_store:
            slices = SharedSlices(notes_in(store), 5, in_order=True)
            other = SharedSlices(notes_in(other_store), 5, in_order=True)
            numbers = [await slices.claim(), await other.claim(), await slices.claim()]
            assert numbers == [0, 1, 2]

    asyncio.run(work())


def test_a_note_is_read_by_all_and_replaced_by_a_later_one(tmp_path: Path) -> None:
    async def work() -> None:
        with open_store(tmp_path) as store, open_store(tmp_path) as other_store:
            notes = notes_in(store)
            other = notes_in(other_store)
            key = notes.key("end", 0)
            assert key == other.key("end", 0) != other.within("round 1").key("end", 0)
            assert await other.read([key]) == [None]
            assert await notes.claim(key) == MINE
            waiting = asyncio.create_task(other.claim_in_turn(key))
            await notes.write(key, {"by": "one"})
            assert await waiting == STORED
            await other.write(key, {"by": "two"})
            assert await notes.read([key, notes.key("none")]) == [{"by": "two"}, None]

    asyncio.run(work())


def test_one_worker_at_a_time_joins(tmp_path: Path) -> None:
    inside = 0

    async def work() -> None:
        with ExitStack() as stack:
            stores = [stack.enter_context(open_store(tmp_path)) for _ in range(3)]

            async def join(store: Store) -> None:
                nonlocal inside
                async with notes_in(store).alone("joining"):
                    inside += 1
                    assert inside == 1
                    await notes_in(store).register()
                    inside -= 1

            await asyncio.gather(*map(join, stores))
            notes = notes_in(stores[0])
            workers = await notes.workers()
            assert sorted(workers) == sorted(store.command for store in stores)
            stores[2].close()
            assert await notes.living(workers) == {
                store.command for store in stores[:2]
            }

    asyncio.run(work())
