"""Owners of claims: alive while their store is open, and not a moment longer on the same host."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.support import claims
from evalwright.core.errors import StoreError
from evalwright.core.processes import process_start, this_host
from evalwright.core.responses import Response
from evalwright.engine.claims import (
    LEASE_SECONDS,
    OPEN_OWNERS,
    Owner,
    is_running,
    process_of,
)
from evalwright.engine.opening import open_store
from evalwright.engine.postgres import PostgresDatabase
from evalwright.engine.store import Store
from evalwright.engine.store_rows import row_of
from support.stores import Statements, make_read_only


def test_an_owner_is_this_process() -> None:
    one = Owner.new()
    other = Owner.new()
    assert one.id != other.id
    assert process_of(one.id) == f"{os.getpid()} on {platform.node()}"
    parent = os.getppid()
    start = process_start(parent) or "never"
    assert is_running(one.host, parent, start) is True
    assert is_running(one.host, parent, "another start") is False
    assert is_running("another host", parent, start) is None
    assert is_running(one.host, parent, "") is None
    for owner in (one, other):
        assert owner.id in OPEN_OWNERS
        owner.end()
        assert owner.id not in OPEN_OWNERS


@pytest.mark.skipif(
    sys.platform == "win32", reason="there are no processes that nobody waited for"
)
def test_a_process_that_ended_and_was_not_waited_for_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start = process_start(child.pid)
    assert start is not None and is_running(this_host(), child.pid, start)
    child.kill()
    until = time.monotonic() + 600
    while is_running(this_host(), child.pid, start):
        assert time.monotonic() < until
        time.sleep(0.01)
    child.communicate()
    assert process_start(child.pid) is None


def claimed_by(
    home: Path, behind: Statements, host: str, pid: int, start: str, expires: str
) -> None:
    """A claim on the key "k" of an owner whose lease ends then; in SQL, by the store's clock."""
    asyncio.run(_touched(home))
    behind(
        home,
        f"INSERT INTO owners VALUES ('them', '{host}', {pid}, '{start}', {expires})",
    )
    behind(
        home,
        f"INSERT INTO claims VALUES ({_KEY[os.environ.get('EVALWRIGHT_STORE', '') != '']}, 'them')",
    )


rows = PostgresDatabase.rows
_KEY = {False: "x'6b'", True: "'k'"}


async def _touched(home: Path) -> None:
    with open_store(home) as store:
        assert len(store) == 0


def now(each_store: str) -> str:
    return (
        "extract(epoch FROM clock_timestamp())"
        if each_store == "postgres"
        else "unixepoch('now')"
    )


async def outcome(home: Path) -> str:
    with open_store(home) as store:
        return await store.outbox().claim(b"k")


def test_an_owner_on_another_host_holds_its_claims_until_its_lease_ends(
    tmp_path: Path, each_store: str, behind: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed_by(tmp_path, behind, "another host", 1, "1", f"{now(each_store)} + 1000")
    assert asyncio.run(outcome(tmp_path)) == "them"
    behind(tmp_path, f"UPDATE owners SET expires = {now(each_store)} - 1")
    # the server has run for longer
    monkeypatch.setattr("evalwright.engine.database.LEASE_SECONDS", 0.0)
    assert asyncio.run(outcome(tmp_path)) == "mine"


def test_time_in_which_the_server_was_down_does_not_count(
    tmp_path: Path, each_store: str, behind: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    if each_store == "sqlite":
        pytest.skip("a file has no server")
    # it was started just now
    monkeypatch.setattr(PostgresDatabase, "lease_from", lambda self: self.now())
    claimed_by(tmp_path, behind, "another host", 1, "1", f"{now(each_store)} - 1000")
    assert asyncio.run(outcome(tmp_path)) == "them"


def test_who_lost_its_connection_gives_others_a_whole_lease(
    tmp_path: Path, each_store: str, behind: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may have lost theirs too, to a server that a standby stands in for now: no server was
    started then.
    """
    if each_store == "sqlite":
        pytest.skip("a file has no server")
    started = time.time() - 10_000
    monkeypatch.setattr(
        "evalwright.engine.postgres.PostgresDatabase.rows",
        lambda self, statement, values=(): [(started,)] if "postmaster" in statement else rows(self, statement, values),
    )  # fmt: skip
    claimed_by(tmp_path, behind, "another host", 1, "1", f"{now(each_store)} + 1000")

    async def work() -> None:
        with open_store(tmp_path) as store:
            assert await claims(store, b"k") == ["them"]
            behind(
                tmp_path,
                f"UPDATE owners SET expires = {now(each_store)} - 30 WHERE id = 'them'",
            )
            behind(
                tmp_path,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            assert await claims(store, b"k") == ["them"]
        with open_store(tmp_path) as store:
            assert await claims(store, b"k") == ["mine"]

    asyncio.run(work())


@pytest.mark.parametrize("hours", [-30, 30])
def test_a_clock_that_is_wrong_changes_no_lease_on_a_server(
    tmp_path: Path,
    each_store: str,
    behind: Statements,
    monkeypatch: pytest.MonkeyPatch,
    hours: int,
) -> None:
    if each_store == "sqlite":
        pytest.skip("all processes of a host have one clock")
    claimed_by(tmp_path, behind, "another host", 1, "1", f"{now(each_store)} + 1000")
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + hours * 3600)

    async def work() -> None:
        with open_store(tmp_path) as store:
            assert await claims(store, b"k", b"own") == ["them", "mine"]
            ((left,),) = behind(
                tmp_path,
                f"SELECT expires - {now(each_store)} FROM owners WHERE id <> 'them'",
            )
            assert LEASE_SECONDS - 50 < left <= LEASE_SECONDS

    asyncio.run(work())


_ELSEWHERE = """
import asyncio, sys
from pathlib import Path
from evalwright.engine import claims
claims.this_host = lambda: "another host"
from evalwright.engine.opening import open_store
async def main():
    with open_store(Path(sys.argv[1])) as store:
        print(await store.outbox().claim(b"k"), flush=True)
        await asyncio.sleep(3600)
asyncio.run(main())
"""


def test_what_a_process_killed_on_another_host_claimed_is_free_after_its_lease(
    tmp_path: Path, each_store: str, behind: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _ELSEWHERE, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None and child.stdout.readline() == "mine\n"
    assert f"{child.pid}@" in asyncio.run(outcome(tmp_path))
    child.kill()
    child.communicate()
    assert f"{child.pid}@" in asyncio.run(outcome(tmp_path)), (
        "nobody on this host knows that it is dead"
    )
    behind(
        tmp_path, f"UPDATE owners SET expires = expires - {LEASE_SECONDS}"
    )  # so much later
    # the server has run for longer
    monkeypatch.setattr("evalwright.engine.database.LEASE_SECONDS", 0.0)
    assert asyncio.run(outcome(tmp_path)) == "mine"


def test_a_process_of_this_host_counts_by_whether_it_runs(
    tmp_path: Path, each_store: str, behind: Statements
) -> None:
    host = this_host()
    pid = os.getppid()
    # Its lease ran out, but it is there: it was asleep.
    claimed_by(
        tmp_path,
        behind,
        host,
        pid,
        process_start(pid) or "",
        f"{now(each_store)} - 1000",
    )
    assert asyncio.run(outcome(tmp_path)) == "them"
    # Another process has its number now, and its lease would go on.
    behind(
        tmp_path,
        f"UPDATE owners SET started = 'before', expires = {now(each_store)} + 1000",
    )
    assert asyncio.run(outcome(tmp_path)) == "mine"
    assert behind(tmp_path, "SELECT * FROM owners") == [], "the dead owner is left"


def test_a_claim_of_an_owner_that_is_not_known_is_free(
    tmp_path: Path, each_store: str, behind: Statements
) -> None:
    """As older versions left them, whose owners were locked files."""
    claimed_by(tmp_path, behind, "h", 1, "1", f"{now(each_store)} + 1000")
    behind(tmp_path, "DELETE FROM owners")
    assert asyncio.run(outcome(tmp_path)) == "mine"


def test_a_lease_is_renewed_while_the_store_is_open(
    tmp_path: Path, each_store: str, behind: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalwright.engine.writer.RENEWAL_SECONDS", 0.05)

    def expires() -> float:
        return float(behind(tmp_path, "SELECT expires FROM owners")[0][0])

    async def work(store: Store) -> None:
        assert behind(tmp_path, "SELECT * FROM owners") == [], (
            "one that claimed nothing needs no lease"
        )
        await store.outbox().claim(b"k")
        first = expires()
        until = time.monotonic() + 600
        while expires() <= first + 0.1:
            assert time.monotonic() < until
            await asyncio.sleep(0.02)
        behind(tmp_path, "DELETE FROM owners")  # another host took it for dead
        while not behind(tmp_path, "SELECT * FROM owners"):
            assert time.monotonic() < until
            await asyncio.sleep(0.02)

    with open_store(tmp_path) as store:
        asyncio.run(work(store))
    assert behind(tmp_path, "SELECT * FROM owners") == []
    assert behind(tmp_path, "SELECT * FROM claims") == []


def test_what_a_store_of_this_process_claimed_is_free_once_it_is_closed(
    tmp_path: Path, each_store: str, behind: Statements
) -> None:
    """Also where it broke and could give nothing up: a notebook runs the same command again."""

    async def breaks() -> None:
        with open_store(tmp_path) as store:
            assert await store.outbox().claim(b"k") == "mine"
            make_read_only(store)
            with pytest.raises(StoreError):
                await store.outbox().put(
                    row_of(b"other", "m", b"{}", Response(text="x"))
                )

    asyncio.run(breaks())
    assert len(behind(tmp_path, "SELECT * FROM claims")) == 1, (
        "it could give its claims up"
    )
    assert asyncio.run(outcome(tmp_path)) == "mine"
