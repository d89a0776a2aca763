"""What a kill can lose is bounded by a number of replies, and what is acknowledged is on disk."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from engine.support import put_rows
from evalwright.core.errors import StoreError
from evalwright.core.responses import Response
from evalwright.engine import sqlite
from evalwright.engine.event_loop import (
    MAX_EVENTS,
    MAX_HELD_TURNS,
    FewEventsSelector,
    has_unread_replies,
    run_in_loop,
)
from evalwright.engine.opening import open_store
from evalwright.engine.sqlite import FILE, SqliteDatabase
from evalwright.engine.store_rows import row_of

_TESTS = Path(__file__).parent.parent
_MAX_LOST = 64
_ROW = row_of(b"k", "m", b"{}", Response(text="x"))


@pytest.mark.skipif(sys.platform == "win32", reason="no process kills itself there")
@pytest.mark.parametrize("killed_at", [100, 150, 200])
def test_a_kill_within_a_burst_loses_few_replies(
    tmp_path: Path, killed_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVALWRIGHT_STORE", raising=False)
    paths = [str(_TESTS), str(_TESTS.parent / "src")]
    script = Path(__file__).with_name("burst_child.py")
    child = subprocess.run(
        [sys.executable, str(script), str(tmp_path), "200", str(killed_at)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    with open_store(tmp_path) as store:
        assert len(store) >= killed_at - 1 - _MAX_LOST


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux names open files")
def test_a_response_is_acknowledged_after_it_was_flushed_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVALWRIGHT_STORE", raising=False)
    steps: list[str] = []
    flush = os.fsync

    def record_flush(descriptor: int) -> None:
        steps.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        flush(descriptor)

    async def work() -> None:
        with open_store(tmp_path) as store:
            await store.outbox().claim(b"first")
            monkeypatch.setattr(os, "fsync", record_flush)
            await put_rows(store, [_ROW])
            steps.append("acknowledged")
            monkeypatch.undo()

    asyncio.run(work())
    folder = tmp_path.resolve()  # which names the log
    assert steps == [str(folder), f"{folder / FILE}-wal", "acknowledged"]


def test_the_log_begins_anew_while_responses_keep_coming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVALWRIGHT_STORE", raising=False)
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 50)
    monkeypatch.setattr(sqlite, "LONG_LOG_PAGES", 200)
    written_bytes = 0

    async def work() -> None:
        nonlocal written_bytes
        with open_store(tmp_path) as store:
            for start in range(0, 2000, 100):
                texts = [os.urandom(1500).hex() for _ in range(100)]
                rows = [
                    row_of(b"%d" % (start + n), "m", b"{}", Response(text=text))
                    for n, text in enumerate(texts)
                ]
                written_bytes += sum(len(row[3]) for row in rows)
                await put_rows(store, rows)
            log = tmp_path / f"{FILE}-wal"
            assert log.stat().st_size < written_bytes

    asyncio.run(work())
    with open_store(tmp_path) as store:
        assert len(store) == 2000
        assert isinstance(store._reading, SqliteDatabase)
        assert store._reading.check() == []


@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be moved there")
def test_a_store_that_is_moved_away_refuses_responses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVALWRIGHT_STORE", raising=False)
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 1)
    home = tmp_path / "home"

    async def work() -> None:
        with open_store(home) as store:
            await store.outbox().claim(b"first")
            home.rename(tmp_path / "elsewhere")
            for _ in range(2):
                with pytest.raises(StoreError, match="moved or deleted"):
                    await store.outbox().put(_ROW)

    asyncio.run(asyncio.wait_for(work(), 60))
    with open_store(home) as store:
        assert store.holds(b"k")
        assert "that an earlier run could not store" in store.notices[0]


def test_few_sockets_are_reported_at_a_time_and_all_come_to_their_turn() -> None:
    with ExitStack() as stack:
        selector = stack.enter_context(FewEventsSelector())
        readers = set()
        for _ in range(3 * MAX_EVENTS):
            ends = socket.socketpair()
            for end in ends:
                stack.enter_context(end)
            ends[1].send(b"ready")
            selector.register(ends[0], 1)
            readers.add(ends[0].fileno())
        turns = [[key.fd for key, _ in selector.select(0)] for _ in range(6)]
        assert [len(turn) for turn in turns] == [MAX_EVENTS] * 6
        assert {fd for turn in turns[:3] for fd in turn} == readers
        assert {fd for turn in turns[3:] for fd in turn} == readers
        assert selector.has_more
        # They are never read: other work goes on all the same.
        held = list[bool]()
        for _ in range(MAX_HELD_TURNS):
            selector.select(0)
            held.append(selector.has_more)
        assert sum(held) == MAX_HELD_TURNS - 1


def test_a_run_knows_whether_replies_are_unread() -> None:
    async def work() -> bool:
        return has_unread_replies(asyncio.get_running_loop())

    assert run_in_loop(work()) is False
    assert asyncio.run(work()) is False
