"""The store on a real disk: what it keeps, what it refuses, and what it says then."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.support import question
from evalwright.core.errors import StoreError
from evalwright.core.responses import RateLimits, Response, Usage
from evalwright.engine.key import canonical, request_key
from evalwright.engine.schema import VERSION
from evalwright.engine.store import FILE, Store, pack, row_of, unpack

_TEXT = st.text(st.characters(exclude_categories=()))
_RESPONSES = st.builds(
    Response,
    text=_TEXT,
    reasoning=_TEXT,
    finish_reason=st.sampled_from(["stop", "length", ""]),
    log_likelihood=st.none() | st.floats(max_value=0, allow_nan=False),
    is_greedy=st.none() | st.booleans(),
    tokens_scored=st.none() | st.integers(0, 99),
    values=st.lists(st.floats(allow_nan=False), max_size=4).map(tuple),
    usage=st.builds(Usage, st.integers(0, 9), st.integers(0, 9)),
    latency=st.floats(0, 9),
    cost=st.none() | st.floats(0, 9),
    model=st.text(max_size=5),
)


def stored(store: Store, key: bytes, response: Response) -> asyncio.Future[None]:
    """Done once it is on disk."""
    return store.outbox().put(row_of(key, "m", canonical(question(1).payload()), response))


async def waited(store: Store, key: bytes, text: str = "") -> None:
    await stored(store, key, Response(text=text))


def put(home: Path, number: int, response: Response) -> bytes:
    """Store one answer by itself."""
    key = request_key("m", question(number).payload())

    async def work() -> None:
        with open_store(home) as store:
            await stored(store, key, response)

    asyncio.run(work())
    return key


def test_an_answer_is_there_after_its_put(tmp_path: Path) -> None:
    response = Response(
        text="yes", usage=Usage(3, 4), values=(1.0, 2.0), rate_limits=RateLimits(limit_requests=5)
    )

    async def work() -> None:
        with open_store(tmp_path) as store:
            assert store.get(b"key") is None
            await stored(store, b"key", response)
            found = store.get(b"key")
            assert found == response and found.rate_limits is None
            assert len(store) == 1
            await stored(store, b"key", Response(text="no"))
            assert store.get(b"key") == Response(text="no") and len(store) == 1

    asyncio.run(work())


def test_the_file_describes_itself(tmp_path: Path) -> None:
    put(tmp_path, 1, Response(text="long " * 500))
    with closing(sqlite3.connect(tmp_path / FILE)) as file:
        model, request, response = file.execute("SELECT model, request, response FROM responses").fetchone()
        claims = file.execute("SELECT count(*) FROM claims").fetchone()[0]
    assert model == "m" and claims == 0
    assert '"generate":"Question 1"' in unpack(request)
    assert len(response) < 500 and "long long" in unpack(response)


@given(_RESPONSES)
def test_a_row_gives_its_response_back(response: Response) -> None:
    import json

    row = row_of(b"k", "m", b"{}", response)
    assert Response.from_dict(json.loads(unpack(row[3]))) == response


@given(st.text(min_size=0, max_size=3000).map(lambda text: b"{" + text.encode()))
def test_packing_is_reversible_and_never_longer_by_much(text: bytes) -> None:
    assert unpack(pack(text)).encode() == text
    assert len(pack(text)) <= len(text) + 20


@pytest.mark.parametrize(
    "damage", [b"{", b"[]", b"not json", b'{"unknown": 1}', b"\xff\xfe", b"", b'{"usage": 3}']
)
def test_a_damaged_row_counts_as_absent_and_is_overwritten(tmp_path: Path, damage: bytes) -> None:
    key = put(tmp_path, 1, Response(text="whole"))
    with closing(sqlite3.connect(tmp_path / FILE)) as file, file:
        file.execute("UPDATE responses SET response=?", (damage,))

    async def work() -> None:
        with open_store(tmp_path) as store:
            assert store.get(key) is None
            await stored(store, key, Response(text="again"))
            assert store.get(key) == Response(text="again")

    asyncio.run(work())


def test_many_puts_at_once_are_few_transactions(tmp_path: Path) -> None:
    async def work() -> int:
        with open_store(tmp_path) as store:
            statements: list[str] = []
            store._writer._connection.set_trace_callback(statements.append)
            puts = (stored(store, b"%d" % n, Response(text=str(n))) for n in range(1000))
            await asyncio.gather(*puts)
            assert len(store) == 1000
            assert all(store.get(b"%d" % n) == Response(text=str(n)) for n in range(1000))
            return statements.count("COMMIT")

    assert asyncio.run(work()) == 1


def test_a_store_serves_one_loop_after_another(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for n in range(3):
            asyncio.run(waited(store, b"%d" % n, str(n)))
        assert len(store) == 3
        store.close()


def test_a_put_after_closing_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        asyncio.run(waited(store, b"k"))


def test_a_folder_under_a_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        StoreError,
        match=r"file' is a file, not a folder\. Choose another folder with --home or EVALWRIGHT_HOME",
    ):
        open_store(tmp_path / "file" / "home")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="everything is writable")
def test_an_unwritable_folder_is_refused_in_a_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            open_store(tmp_path / "home")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("content", [b"this is not a database " * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StoreError, match="damaged: move the file away"):
        open_store(tmp_path)
    assert (tmp_path / FILE).read_bytes() == content
    assert list((tmp_path / "owners").iterdir()) == []


def test_a_newer_schema_is_refused_in_a_sentence(tmp_path: Path) -> None:
    put(tmp_path, 1, Response(text="x"))
    with closing(sqlite3.connect(tmp_path / FILE)) as file, file:
        file.execute(f"PRAGMA user_version={VERSION + 1}")
    with pytest.raises(StoreError, match="newer version of evalwright"):
        open_store(tmp_path)


def test_a_full_store_fails_every_put_and_stays_failed(tmp_path: Path) -> None:
    async def work() -> None:
        with open_store(tmp_path) as store:
            await stored(store, b"first", Response(text="kept"))
            store._writer._connection.execute("PRAGMA max_page_count=12")
            bulky = os.urandom(100_000).hex()
            puts = (stored(store, b"%d" % n, Response(text=bulky)) for n in range(5))
            results = await asyncio.gather(*puts, return_exceptions=True)
            assert all(isinstance(result, StoreError) and "disk is full" in str(result) for result in results)
            assert store.broken is not None
            with pytest.raises(StoreError, match="disk is full"):
                await stored(store, b"small", Response())
            assert store.get(b"first") == Response(text="kept")

    asyncio.run(work())


@pytest.mark.skipif(sys.platform == "win32", reason="there are no file size limits")
def test_a_limit_on_file_sizes_is_a_store_error(tmp_path: Path) -> None:
    code = f"""
import asyncio, os, resource
from pathlib import Path
from evalwright.core.errors import StoreError
from evalwright.core.responses import Response
from evalwright.engine.store import Store, row_of
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
async def main():
    with open_store(Path({str(tmp_path)!r})) as store:
        for n in range(50):
            await store.outbox().put(row_of(b"%d" % n, "m", b"{{}}", Response(text=os.urandom(10_000).hex())))
try:
    asyncio.run(main())
except StoreError as error:
    print("refused:", error)
"""
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=1800, check=True
    )
    assert out.stdout.startswith(f"refused: The store {tmp_path / FILE} ")


def test_many_may_open_a_new_store_at_the_same_moment(tmp_path: Path) -> None:
    for number in range(10):
        home, start = tmp_path / str(number), threading.Barrier(8)

        def open_it(home: Path = home, start: threading.Barrier = start) -> Store:
            start.wait(100)
            return open_store(home)

        with ThreadPoolExecutor(8) as pool:
            stores = [future.result() for future in [pool.submit(open_it) for _ in range(8)]]
        for store in stores:
            store.close()
