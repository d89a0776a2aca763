"""The store, in a file on a real disk and on a real server: what it keeps, what it refuses, and
what it says then.
"""

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

from engine.support import claims, put_rows, question
from evalwright.core.errors import ConfigurationError, Failure, StoreError
from evalwright.core.responses import RateLimits, Response, Usage
from evalwright.engine import outbox
from evalwright.engine.exchange import UNWRITTEN_FOLDER
from evalwright.engine.key import canonical, request_key
from evalwright.engine.opening import open_store
from evalwright.engine.schema import MIGRATIONS, VERSION
from evalwright.engine.sqlite import FILE, SqliteDatabase, SqliteStore, network_warning
from evalwright.engine.store import Store
from evalwright.engine.store_rows import pack, row_of, storable_text, unpack
from support.stores import Statements

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
    return store.outbox().put(
        row_of(key, "m", canonical(question(1).payload()), response)
    )


async def got(store: Store, key: bytes) -> Response | None:
    return (await store.get_many((key,)))[0]


async def waited(store: Store, key: bytes, text: str = "") -> None:
    await stored(store, key, Response(text=text))


def connection_of(store: Store) -> sqlite3.Connection:
    """The connection that a store in a file writes through."""
    assert isinstance(store, SqliteStore)
    database = store._writer._database
    assert isinstance(database, SqliteDatabase)
    return database._connection


def put(home: Path, number: int, response: Response) -> bytes:
    """Store one answer by itself."""
    key = request_key("m", question(number).payload())

    async def work() -> None:
        with open_store(home) as store:
            await stored(store, key, response)

    asyncio.run(work())
    return key


@pytest.mark.usefixtures("each_store")
def test_an_answer_is_there_after_its_put(tmp_path: Path) -> None:
    response = Response(
        text="yes",
        usage=Usage(3, 4),
        values=(1.0, 2.0),
        rate_limits=RateLimits(limit_requests=5),
    )

    async def work() -> None:
        with open_store(tmp_path) as store:
            assert await got(store, b"key") is None
            await stored(store, b"key", response)
            found = await got(store, b"key")
            assert found == response and found.rate_limits is None
            assert len(store) == 1
            await stored(store, b"key", Response(text="no"))
            assert await got(store, b"key") == Response(text="no") and len(store) == 1

    asyncio.run(work())


def test_the_file_describes_itself(tmp_path: Path) -> None:
    put(tmp_path, 1, Response(text="long " * 500))
    with closing(sqlite3.connect(tmp_path / FILE)) as file:
        model, request, response = file.execute(
            "SELECT model, request, response FROM responses"
        ).fetchone()
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
    "damage",
    [b"{", b"[]", b"not json", b'{"unknown": 1}', b"\xff\xfe", b"", b'{"usage": 3}'],
)
def test_a_damaged_row_counts_as_absent_and_is_overwritten(
    tmp_path: Path, damage: bytes, each_store: str, behind: Statements
) -> None:
    key = put(tmp_path, 1, Response(text="whole"))
    value = (
        f"x'{damage.hex()}'"
        if each_store == "sqlite"
        else f"'\\x{damage.hex()}'::bytea"
    )
    behind(tmp_path, f"UPDATE responses SET response={value}")

    async def work() -> None:
        with open_store(tmp_path) as store:
            assert await got(store, key) is None and store.damaged == {key}
            assert not store.holds(key)
            await stored(store, key, Response(text="again"))
            assert store.holds(key)
            assert await got(store, key) == Response(text="again")

    asyncio.run(work())


def test_many_puts_at_once_are_few_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No batch is submitted because of its age, however slow the machine is.
    monkeypatch.setattr(outbox, "_MAX_GAP_SECONDS", 600.0)
    monkeypatch.setattr(outbox, "_GAP_SECONDS_PER_WISH", 600.0)
    count = 20 * outbox.MAX_BATCH_PUTS

    async def work() -> int:
        with open_store(tmp_path) as store:
            statements: list[str] = []
            connection_of(store).set_trace_callback(statements.append)
            await waited(store, b"first")
            puts = (
                stored(store, b"%d" % n, Response(text=str(n))) for n in range(count)
            )
            await asyncio.gather(*puts)
            assert len(store) == 1 + count
            keys = [b"%d" % n for n in range(count)]
            assert await store.get_many(keys) == [
                Response(text=str(n)) for n in range(count)
            ]
            return statements.count("COMMIT")

    assert asyncio.run(work()) <= 21


@pytest.mark.usefixtures("each_store")
def test_a_store_serves_one_loop_after_another(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for n in range(3):
            asyncio.run(waited(store, b"%d" % n, str(n)))
        assert len(store) == 3
        store.close()


@pytest.mark.usefixtures("each_store")
def test_a_put_after_closing_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        asyncio.run(waited(store, b"k"))


def test_a_folder_under_a_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        StoreError,
        match=r"file' is a file.*--home.*EVALWRIGHT_HOME",
    ):
        open_store(tmp_path / "file" / "home")


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="everything is writable"
)
def test_an_unwritable_folder_is_refused_in_a_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            open_store(tmp_path / "home")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    "content", [b"this is not a database " * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_damaged_file_is_refused_in_a_sentence(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StoreError, match="damaged: move the file away"):
        open_store(tmp_path)
    assert (tmp_path / FILE).read_bytes() == content


def test_a_newer_schema_is_refused_in_a_sentence(
    tmp_path: Path, each_store: str, behind: Statements
) -> None:
    put(tmp_path, 1, Response(text="x"))
    behind(
        tmp_path,
        f"PRAGMA user_version={VERSION + 1}"
        if each_store == "sqlite"
        else "UPDATE version SET schema=99",
    )
    with pytest.raises(StoreError, match="newer version of evalwright"):
        open_store(tmp_path)


def test_a_full_store_fails_every_put_and_stays_failed(tmp_path: Path) -> None:
    async def work() -> None:
        with open_store(tmp_path) as store:
            await stored(store, b"first", Response(text="kept"))
            connection_of(store).execute("PRAGMA max_page_count=12")
            bulky = os.urandom(100_000).hex()
            puts = (stored(store, b"%d" % n, Response(text=bulky)) for n in range(5))
            results = await asyncio.gather(*puts, return_exceptions=True)
            assert all(
                isinstance(result, StoreError) and "disk is full" in str(result)
                for result in results
            )
            assert store.broken is not None
            with pytest.raises(StoreError, match="disk is full"):
                await stored(store, b"small", Response())
            assert await got(store, b"first") == Response(text="kept")

    asyncio.run(work())


@pytest.mark.skipif(sys.platform == "win32", reason="there are no file size limits")
def test_a_limit_on_file_sizes_is_a_store_error(tmp_path: Path) -> None:
    code = f"""
import asyncio, os, resource
from pathlib import Path
from evalwright.core.errors import ConfigurationError, Failure, StoreError
from evalwright.core.responses import Response
from evalwright.engine.opening import open_store
from evalwright.engine.store_rows import row_of
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
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=1800,
        check=True,
    )
    assert out.stdout.startswith(f"refused: The store {tmp_path / FILE} ")


@pytest.mark.usefixtures("each_store")
def test_many_may_open_a_new_store_at_the_same_moment(tmp_path: Path) -> None:
    for number in range(10):
        home = tmp_path / str(number)
        start = threading.Barrier(8)

        def open_it(home: Path = home, start: threading.Barrier = start) -> Store:
            start.wait(100)
            return open_store(home)

        with ThreadPoolExecutor(8) as pool:
            stores = [
                future.result() for future in [pool.submit(open_it) for _ in range(8)]
            ]
        for store in stores:
            store.close()


def test_a_store_of_an_older_version_answers_every_request(tmp_path: Path) -> None:
    """Files of versions 1 and 2, made by their own statements: the keys, the rows and their
    encoding are as they were.
    """
    responses = {
        b"%016d" % n: Response(
            text=f"answer {n} " * (1 + 99 * (n % 2)), usage=Usage(n, 1)
        )
        for n in range(50)
    }
    for version in range(1, VERSION):
        home = tmp_path / str(version)
        home.mkdir()
        with closing(sqlite3.connect(home / FILE)) as file, file:
            for statement in (one for step in MIGRATIONS[:version] for one in step):
                file.execute(statement)
            file.execute(f"PRAGMA user_version={version}")
            for key, response in responses.items():
                row = row_of(key, "m", b"{}", response)[: 5 if version == 1 else 6]
                marks = ",".join("?" * len(row))
                names = ["key", "model", "request", "response", "created", "checksum"][
                    : len(row)
                ]
                file.execute(
                    f"INSERT INTO responses ({', '.join(names)}) VALUES ({marks})", row
                )
            file.execute("INSERT INTO claims VALUES (x'00', '1-0123456789ab')")

        async def work(home: Path = home) -> None:
            with open_store(home) as store:
                assert await store.get_many(list(responses)) == list(responses.values())
                assert await claims(store, *responses, b"\0") == [
                    *["stored"] * 50,
                    "mine",
                ]

        asyncio.run(work())


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("home/me/runs", "nfs4"),
        ("home/me/local/x", ""),
        ("data/a b/x", "lustre"),
        ("elsewhere", ""),
    ],
)
def test_a_network_file_system_is_told_of(folder: str, kind: str) -> None:
    mounts = (
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "40 22 0:38 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2\n"
        "41 40 8:2 / /home/me/local rw shared:3 - xfs /dev/sdb1 rw\n"
        "42 22 0:39 / /data/a\\040b rw - lustre 10.0.0.1@tcp:/data rw\n"
        "nonsense\n"
    )
    said = network_warning(Path("/") / folder / FILE, mounts)
    assert bool(said) == bool(kind)
    if kind:
        assert kind in said and "EVALWRIGHT_STORE" in said and "--home" in said


@pytest.mark.usefixtures("each_store")
def test_many_at_once(tmp_path: Path) -> None:
    """What the protocol says of several keys and rows at a time."""
    keys = [b"%d" % n for n in range(300)]

    async def work() -> None:
        with open_store(tmp_path) as one, open_store(tmp_path) as other:
            assert await claims(one, *keys) == ["mine"] * 300
            assert await claims(other, *keys[:3]) == [one.command] * 3
            await put_rows(
                one,
                [
                    row_of(key, "m", b"{}", Response(text=key.decode()))
                    for key in keys[:200]
                ],
            )
            for key in keys[200:]:
                one.outbox().release(key)
            await claims(one, b"written after that")
            assert await claims(other, *keys[199:201], b"new") == [
                "stored",
                "mine",
                "mine",
            ]
            found = await other.get_many([keys[7], b"none", keys[8]])
            assert [response and response.text for response in found] == [
                "7",
                None,
                "8",
            ]
            assert len(other) == 200

    asyncio.run(work())


@pytest.mark.usefixtures("each_store")
def test_a_text_that_no_database_takes_is_stored(tmp_path: Path) -> None:
    """Lone surrogates and the character 0, in prompts, answers and failures."""
    odd = "a\x00b\ud800c"

    async def work() -> None:
        with open_store(tmp_path) as store:
            payload = canonical({"prompt": odd})
            await put_rows(
                store, [row_of(b"k", storable_text(odd), payload, Response(text=odd))]
            )
            assert await got(store, b"k") == Response(text=odd)
            store.remember_empty(b"e", Failure("empty", "provider", odd))
            await stored(store, b"after", Response())
            found = await store.empty(b"e")
            assert found is not None and found.kind == "empty"

    asyncio.run(work())


@pytest.mark.usefixtures("each_store")
def test_what_a_run_remembers_last_is_kept(tmp_path: Path) -> None:
    """Nothing awaits it, and the store closes before the outbox's next turn."""

    async def remember() -> None:
        with open_store(tmp_path) as store:
            store.remember_empty(
                b"first", Failure("empty reply", "model", "nothing came")
            )
            await asyncio.sleep(0)
            store.remember_empty(
                b"last", Failure("empty reply", "model", "nothing came")
            )

    async def recall() -> list[Failure | None]:
        with open_store(tmp_path) as store:
            return [await store.empty(key) for key in (b"first", b"last")]

    asyncio.run(remember())
    assert all(asyncio.run(recall()))


@pytest.mark.usefixtures("each_store")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\n",
        b'{"evalwright_store":1}\n{"key": 5}\n',
        b'{"evalwright_store":2}\n',
    ],
)
def test_what_an_earlier_run_kept_and_cannot_be_read_is_named(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / UNWRITTEN_FOLDER).mkdir()
    (tmp_path / UNWRITTEN_FOLDER / "x.jsonl").write_bytes(content)
    if not content:
        open_store(tmp_path).close()
        assert not (tmp_path / UNWRITTEN_FOLDER).exists()
        return
    with pytest.raises((StoreError, ConfigurationError), match=r"x\.jsonl"):
        open_store(tmp_path)
    assert (tmp_path / UNWRITTEN_FOLDER / "x.jsonl").read_bytes() == content
