"""Actions of trajectories in the store: durable, masked, carried out by one at a time, unbilled."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.core import secrets
from evalwright.core.responses import Response
from evalwright.engine.actions import StoredActions
from evalwright.engine.engine import Engine
from evalwright.engine.exchange import merge, read_lines, write_lines
from evalwright.engine.memory import MemoryStore
from evalwright.engine.opening import open_store
from evalwright.engine.sqlite import SqliteDatabase
from evalwright.engine.store_rows import unpack
from support.acting import ActingModel, after, with_log

KEY = bytes(range(16))
DONE = Response("Done.", finish_reason="stop", latency=1.5, provider_content='{"a":1}')


async def _log(engine: Engine) -> StoredActions:
    return engine.door({"target": ActingModel(after())}).actions.of_task("t")


def test_an_action_is_stored_once_and_for_all(tmp_path: Path) -> None:
    async def store(log: StoredActions) -> None:
        assert log.folder == tmp_path and log.task == "t"
        assert await log.stored(KEY) is None
        await log.store(KEY, {"name": "bash", "arguments": "{}"}, DONE)
        assert await log.stored(KEY) == DONE

    async def look(log: StoredActions) -> Response | None:
        return await log.stored(KEY)

    asyncio.run(with_log(tmp_path, store))
    assert asyncio.run(with_log(tmp_path, look)) == DONE
    database = SqliteDatabase(tmp_path / "store.sqlite")
    [(key, model, request, *_)] = [row for page in database.pages() for row in page]
    assert (key, model) == (KEY, "acting")
    assert json.loads(unpack(request)) == {
        "kind": "action", "name": "bash", "arguments": "{}"
    }  # fmt: skip
    assert database.ledger() == []  # nothing was sent, and nothing paid
    database.close()


def test_secrets_are_masked(tmp_path: Path) -> None:
    secret = "sk-" + "actions" * 5
    secrets.remember(secret)

    async def store(log: StoredActions) -> Response | None:
        await log.store(
            KEY, {"arguments": f"echo {secret}"}, Response(f"it is {secret}")
        )
        return await log.stored(KEY)

    stored = asyncio.run(with_log(tmp_path, store))
    assert stored is not None and secret not in stored.text
    assert secret.encode() not in (tmp_path / "store.sqlite").read_bytes()


def test_equal_claims_wait_for_each_other(tmp_path: Path) -> None:
    carried_out: list[str] = []

    async def carry_out(log: StoredActions, who: str) -> Response:
        stored = await log.claim(KEY)
        if stored is not None:
            return stored
        carried_out.append(who)
        await asyncio.sleep(0.05)
        await log.store(KEY, {}, Response(who))
        return Response(who)

    async def work() -> list[Response]:
        with open_store(tmp_path) as first, open_store(tmp_path) as second:
            async with Engine(first) as one, Engine(second) as two:
                logs = [
                    await _log(one),
                    await _log(one),
                    await _log(two),
                    await _log(two),
                ]
                return await asyncio.gather(
                    *(carry_out(log, str(index)) for index, log in enumerate(logs))
                )

    outcomes = asyncio.run(work())
    assert len(carried_out) == 1
    assert {outcome.text for outcome in outcomes} == set(carried_out)


def test_a_claim_that_is_given_up_is_free(tmp_path: Path) -> None:
    async def work() -> None:
        with open_store(tmp_path) as first, open_store(tmp_path) as second:
            async with Engine(first) as one, Engine(second) as two:
                log = await _log(one)
                other_log = await _log(two)
                assert await log.claim(KEY) is None
                logs = {
                    asyncio.create_task(waiting_log.claim(KEY)): waiting_log
                    for waiting_log in (log, other_log)
                }
                await asyncio.sleep(0.05)
                assert not any(claim.done() for claim in logs)
                log.give_up(KEY)
                log.give_up(KEY)  # harmless
                while logs:
                    claimed, _ = await asyncio.wait(
                        logs, return_when=asyncio.FIRST_COMPLETED
                    )
                    (claim,) = claimed  # the other still waits
                    assert await claim is None
                    logs.pop(claim).give_up(KEY)

    asyncio.run(asyncio.wait_for(work(), 60))


def test_actions_are_exported_merged_and_pruned_with_the_model(tmp_path: Path) -> None:
    async def store(log: StoredActions) -> None:
        await log.store(KEY, {"name": "bash"}, DONE)

    asyncio.run(with_log(tmp_path / "a", store))
    source = SqliteDatabase(tmp_path / "a" / "store.sqlite")
    exported = tmp_path / "store.jsonl"
    with exported.open("w") as file:
        counts = write_lines(file, source.pages(), [], [], [])
    assert counts.responses == 1 and counts.damaged == 0
    (tmp_path / "b").mkdir()
    for name in ("b", "c"):
        with open_store(tmp_path / name):
            pass
    imported = SqliteDatabase(tmp_path / "b" / "store.sqlite")
    with exported.open("rb") as lines:
        assert read_lines(lines, "store.jsonl", imported).new == 1
    merged = SqliteDatabase(tmp_path / "c" / "store.sqlite")
    assert merge(imported, merged).new == 1
    [row] = [row for page in merged.pages() for row in page]
    assert row[:2] == (KEY, "acting")
    for database in (source, imported, merged):
        database.close()

    async def look(log: StoredActions) -> Response | None:
        return await log.stored(KEY)

    assert asyncio.run(with_log(tmp_path / "c", look)) == DONE


def test_a_damaged_action_counts_as_none(tmp_path: Path) -> None:
    async def store(log: StoredActions) -> None:
        await log.store(KEY, {"name": "bash"}, DONE)

    asyncio.run(with_log(tmp_path, store))
    database = SqliteDatabase(tmp_path / "store.sqlite")
    database.change("UPDATE responses SET response=? WHERE key=?", [(b"{}", KEY)])
    database.close()

    async def claim(log: StoredActions) -> Any:
        assert await log.claim(KEY) is None
        await log.store(KEY, {"name": "bash"}, DONE)
        return await log.claim(KEY)

    assert asyncio.run(asyncio.wait_for(with_log(tmp_path, claim), 60)) == DONE


def test_a_round_has_actions_of_its_own(tmp_path: Path) -> None:
    async def fingerprints() -> list[str]:
        with open_store(tmp_path) as store:
            async with Engine(store) as plain, Engine(store, asked_in="two") as again:
                return [
                    (await _log(engine)).fingerprint("target")
                    for engine in (plain, again)
                ]

    assert asyncio.run(fingerprints()) == ["acting", "acting two"]


def test_a_store_in_memory_leaves_no_snapshots() -> None:
    store = MemoryStore()
    home = store.home
    (home / "sandboxes").mkdir()
    assert home == store.home
    store.close()
    assert not home.exists()


@pytest.mark.parametrize("closes", [True, False])
def test_the_outbox_takes_what_a_broken_store_cannot(
    tmp_path: Path, closes: bool
) -> None:
    async def work() -> None:
        with open_store(tmp_path) as store:
            async with Engine(store) as engine:
                log = await _log(engine)
                assert await log.claim(KEY) is None
                if closes:
                    log.give_up(KEY)
                # The engine closes with a claim that nobody ended.

    asyncio.run(asyncio.wait_for(work(), 60))
