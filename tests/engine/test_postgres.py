"""A server that goes away, lets nobody in, or never comes back: the run waits or stops, resumes,
and loses nothing.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.support import FileCounting, Remote, claims, number_of, question
from evalwright.core import postgres
from evalwright.core.errors import ConfigurationError, MissingExtra, StoreError
from evalwright.core.postgres import display_url
from evalwright.core.requests import Request
from evalwright.core.responses import Response, Usage
from evalwright.engine.engine import Engine
from evalwright.engine.exchange import UNWRITTEN_FOLDER
from evalwright.engine.opening import open_store
from evalwright.engine.store import Store
from evalwright.engine.store_rows import MINE, row_of
from evalwright.models.model_interface import Pacing
from evalwright.models.remote.batch.journal import Journal
from support.postgres import PASSWORD, Server, missing, running
from support.stores import make_read_only
from support.typed import typed

if TYPE_CHECKING:
    import psycopg

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "never")


@pytest.fixture
def mortal() -> Iterator[Server]:
    """A server that a test may end."""
    with running() as made:
        yield made


@pytest.fixture
def url(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new database, which `open_store` opens."""
    found = server.url()
    monkeypatch.setenv("EVALWRIGHT_STORE", found)
    return found


def database(url: str) -> str:
    return url.rpartition("/")[2]


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def ask_all(home: Path, model: Remote, count: int, said: list[str]) -> dict[str, int]:
    """Ask so many questions, 16 at a time; the counts.

    Raises StoreError where the store ends the run.
    """

    async def main() -> dict[str, int]:
        with open_store(home) as store:
            async with Engine(store, on_event=said.append) as engine:
                door = engine.door({"target": model})
                numbers = iter(range(count))

                async def work() -> None:
                    for number in numbers:
                        assert (
                            await door("target", question(number))
                        ).text == f"answer {number}"

                async with asyncio.TaskGroup() as group:
                    for _ in range(16):
                        group.create_task(work())
                return door.counts.as_dict()

    try:
        return asyncio.run(main())
    except* StoreError as errors:
        raise errors.exceptions[0] from None


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:secret@a.org:5432/r", "postgresql://a.org:5432/r"),
        ("postgresql://me:secret@a.org:1,b.org:2/r?target_session_attrs=any", "postgresql://a.org:1,b.org:2/r"),
        # no URL: a part of the password could be taken for a host
        ("postgresql://me:p@ss:w/rd@a.org/r", "postgresql://"),
    ],
)  # fmt: skip
def test_what_is_shown_of_an_address(url: str, said: str) -> None:
    assert display_url(url) == said


def test_a_server_that_is_killed_and_started_again_is_waited_for(
    mortal: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = mortal.url()
    monkeypatch.setenv("EVALWRIGHT_STORE", url)
    log = tmp_path / "log"
    said = list[str]()

    def kill_twice() -> None:
        for enough in (60, 200):
            while len(lines(log)) < enough:
                time.sleep(0.01)
            mortal.kill()
            time.sleep(1.5)
            mortal.start()

    killer = threading.Thread(target=kill_twice)
    killer.start()
    counts = ask_all(tmp_path / "home", FileCounting(log, 0.005), 400, said)
    killer.join()
    assert Counter(lines(log)) == Counter({str(number): 1 for number in range(400)})
    assert (counts["asked"], counts["failed"]) == (400, 0)
    assert any(
        "cannot be reached" in sentence and "Waiting up to 600 s" in sentence
        for sentence in said
    )
    rows = mortal.run("SELECT sum(sendings) FROM evalwright.ledger", database(url))
    assert rows == [(400,)]
    assert ask_all(tmp_path / "home", FileCounting(log), 400, said)["stored"] == 400
    assert PASSWORD not in "".join(said)


def test_who_is_suspended_within_a_transaction_holds_nobody_up(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "FROZEN", 1)
    tries = list[int]()
    resumed = threading.Event()

    def step(made: psycopg.Connection[Any]) -> None:
        made.execute(
            "INSERT INTO claims VALUES (%s, 'suspended') ON CONFLICT DO NOTHING",
            (b"k",),
        )
        tries.append(len(tries))
        resumed.wait()
        made.execute("SELECT 1")

    async def claim(store: Store) -> list[str]:
        return await asyncio.wait_for(claims(store, b"k"), 600)

    with open_store(tmp_path) as store:
        link = postgres.Link(url)
        link.open()
        suspended = threading.Thread(target=partial(link.again, step, transaction=True))
        suspended.start()
        try:
            while not tries:
                time.sleep(0.01)
            assert asyncio.run(claim(store)) == [MINE]
        finally:
            resumed.set()
            suspended.join()
            link.close()
    assert tries == [0, 1], "and it goes on once it is resumed"


def test_a_server_that_stays_away_ends_the_run_and_nothing_is_lost(
    mortal: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = mortal.url()
    monkeypatch.setenv("EVALWRIGHT_STORE", url)
    monkeypatch.setenv("EVALWRIGHT_STORE_WAIT", "2")
    home = tmp_path / "home"
    asked = Counter[str]()

    down = asyncio.Event()

    def stop() -> None:
        while mortal.run(
            "SELECT count(*) FROM evalwright.responses", database(url)
        ) != [(84,)]:
            time.sleep(0.05)
        mortal.stop()

    async def reply(request: Request) -> Response:
        asked[number_of(request)] += 1
        # The sixteen that are in flight then are answered when the server is gone, however long its
        # end takes.
        if asked.total() == 100:
            await asyncio.to_thread(stop)
            down.set()
        elif asked.total() > 84:
            await down.wait()
        await asyncio.sleep(0.01)
        return Response(text=f"answer {number_of(request)}", usage=Usage(3, 2))

    model = Remote(reply, Pacing(start_concurrency=16, max_concurrency=16))
    with pytest.raises(StoreError) as told:
        ask_all(home, model, 400, [])
    assert "could not be reached for" in str(
        told.value
    ) and "run the same command again" in str(told.value)
    assert f"are kept in {home / UNWRITTEN_FOLDER}" in str(told.value)
    assert display_url(url) in str(told.value) and PASSWORD not in str(told.value)
    assert 100 <= asked.total() < 400 and max(asked.values()) == 1
    mortal.start()
    said: list[str] = []
    counts = ask_all(home, model, 400, said)
    assert asked == Counter({str(number): 1 for number in range(400)}), (
        "an answer that was paid for was lost"
    )
    assert counts["asked"] + counts["stored"] == 400
    assert any(
        "that an earlier run could not store are stored now" in sentence
        for sentence in said
    )
    assert not (home / UNWRITTEN_FOLDER).exists()
    rows = mortal.run(
        "SELECT sum(sendings), sum(output_tokens) FROM evalwright.ledger", database(url)
    )
    assert rows == [(400, 800)]


def test_what_a_server_did_not_take_may_go_into_a_file(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused() -> None:
        with open_store(tmp_path) as store:
            make_read_only(store)
            with pytest.raises(StoreError, match="are kept in"):
                await store.outbox().put(
                    row_of(b"k", "m", b"{}", Response(text="paid"))
                )

    asyncio.run(refused())
    (kept,) = (tmp_path / UNWRITTEN_FOLDER).iterdir()
    assert (
        kept.stat().st_mode & 0o777,
        (tmp_path / UNWRITTEN_FOLDER).stat().st_mode & 0o777,
    ) == (0o600, 0o700)
    monkeypatch.delenv("EVALWRIGHT_STORE")
    with open_store(tmp_path) as store:
        assert (
            store.holds(b"k")
            and "1 responses that an earlier run could not store" in store.notices[0]
        )
    assert not (tmp_path / UNWRITTEN_FOLDER).exists()


def test_connections_that_break_again_and_again_count_nothing_twice(
    server: Server, url: str, tmp_path: Path
) -> None:
    """A transaction may have ended although nobody heard of it."""
    log = tmp_path / "log"
    ended = threading.Event()
    broken = [0]

    def cut() -> None:
        statement = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname='{database(url)}'"
        while not ended.wait(0.2):
            broken[0] += server.run(statement, "postgres")[0][0]

    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        counts = ask_all(tmp_path / "home", FileCounting(log, 0.02), 600, [])
    finally:
        ended.set()
        cutter.join()
    assert broken[0] > 3
    assert counts["asked"] == 600 and Counter(lines(log)) == Counter(
        {str(number): 1 for number in range(600)}
    )
    rows = server.run(
        "SELECT sum(sendings), sum(input_tokens) FROM evalwright.ledger", database(url)
    )
    assert rows == [(600, 1800)]
    assert server.run("SELECT count(*) FROM evalwright.claims", database(url)) == [(0,)]


def test_a_server_that_is_silent_is_told_of_and_waited_for(
    mortal: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections stay, and nothing comes through them."""
    monkeypatch.setenv("EVALWRIGHT_STORE", mortal.url())
    monkeypatch.setattr("evalwright.core.postgres.SILENCE", 0.5)
    log = tmp_path / "log"
    said = list[str]()

    def freeze() -> None:
        while len(lines(log)) < 60:
            time.sleep(0.01)
        mortal.freeze()
        until = time.monotonic() + 600
        while (
            not any("has not answered for" in sentence for sentence in said)
            and time.monotonic() < until
        ):
            time.sleep(0.05)
        mortal.thaw()

    other = threading.Thread(target=freeze)
    other.start()
    counts = ask_all(tmp_path / "home", FileCounting(log, 0.005), 300, said)
    other.join()
    assert Counter(lines(log)) == Counter({str(number): 1 for number in range(300)})
    assert (counts["asked"], counts["failed"]) == (300, 0)
    assert any(
        "has not answered for" in one and "Waiting up to 600 s" in one for one in said
    ), said


def test_a_server_that_stays_silent_ends_the_run_and_nothing_is_lost(
    mortal: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_STORE", mortal.url())
    monkeypatch.setenv("EVALWRIGHT_STORE_WAIT", "2")
    asked = Counter[str]()

    async def reply(request: Request) -> Response:
        asked[number_of(request)] += 1
        if asked.total() == 100:
            mortal.freeze()
        await asyncio.sleep(0.01)
        return Response(text=f"answer {number_of(request)}")

    model = Remote(reply, Pacing(start_concurrency=16, max_concurrency=16))
    with pytest.raises(StoreError, match="could not be reached for"):
        ask_all(tmp_path / "home", model, 300, [])
    mortal.thaw()
    ask_all(tmp_path / "home", model, 300, [])
    assert asked == Counter({str(number): 1 for number in range(300)})


def test_a_store_on_a_silent_server_can_be_closed(
    mortal: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C does, with a look and a row under way, long before the server counts as away."""
    monkeypatch.setenv("EVALWRIGHT_STORE", mortal.url())

    async def work() -> list[BaseException | None]:
        store = open_store(tmp_path)
        await claims(store, b"k")
        mortal.freeze()
        waiting: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(store.get_many([b"k"])),
            store.outbox().put(row_of(b"k", "m", b"{}", Response(text="paid"))),
        ]
        await asyncio.sleep(0.2)
        await asyncio.to_thread(store.close)
        await asyncio.wait(waiting)
        return [one.exception() for one in waiting]

    found = asyncio.run(work())
    assert all(isinstance(one, StoreError) for one in found)
    mortal.thaw()
    with open_store(tmp_path) as store:
        assert "stored now" in store.notices[0] and store.holds(b"k")


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["ALTER DATABASE {} SET default_transaction_read_only = on"], "is read-only now"),
        (["CREATE SCHEMA evalwright", "CREATE TABLE evalwright.responses (x int)"], "did not make"),
        (["CREATE SCHEMA evalwright", "CREATE TABLE evalwright.version (x int)"], "did not make"),
        (
            ["CREATE SCHEMA evalwright", "CREATE TABLE evalwright.version (schema text)", "INSERT INTO evalwright.version VALUES ('; DROP')"],
            "not one that evalwright wrote",
        ),
        (["CREATE SCHEMA evalwright", "CREATE TABLE evalwright.version (schema int)"], "not one that evalwright wrote"),
        (["ALTER DATABASE {} CONNECTION LIMIT 1"], "takes no more connections"),
    ],
)  # fmt: skip
def test_a_database_that_cannot_hold_a_store_is_told_in_a_sentence(
    server: Server,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    statements: list[str],
    words: str,
) -> None:
    # As a user who is not above its limits.
    name = database(url)
    server.run(f"CREATE ROLE {name} LOGIN PASSWORD 'w'", "postgres")
    server.run(f"ALTER DATABASE {name} OWNER TO {name}", "postgres")
    monkeypatch.setenv(
        "EVALWRIGHT_STORE", f"postgresql://{name}:w@{url.rpartition('@')[2]}"
    )
    for statement in statements:
        server.run(statement.format(name), name)
    if statements[0].startswith("CREATE"):
        server.run(f"GRANT ALL ON SCHEMA evalwright TO {name}", name)
        server.run(f"GRANT ALL ON ALL TABLES IN SCHEMA evalwright TO {name}", name)
    with pytest.raises(StoreError, match=words):
        open_store(tmp_path)


def test_a_user_without_rights_is_told_so(
    server: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = database(url)
    server.run(f"CREATE ROLE {name} LOGIN PASSWORD 'w'", "postgres")
    monkeypatch.setenv(
        "EVALWRIGHT_STORE", f"postgresql://{name}:w@{url.rpartition('@')[2]}"
    )
    with pytest.raises(StoreError, match="does not allow this user"):
        open_store(tmp_path)  # there are no tables, and it may not make them
    monkeypatch.setenv("EVALWRIGHT_STORE", url)
    open_store(tmp_path).close()
    monkeypatch.setenv(
        "EVALWRIGHT_STORE", f"postgresql://{name}:w@{url.rpartition('@')[2]}"
    )
    with pytest.raises(StoreError, match="does not allow this user"):
        open_store(tmp_path)


def test_a_database_that_cannot_hold_every_text_is_refused(
    server: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"latin_{database(url)}"
    server.run(
        f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0", "postgres"
    )
    monkeypatch.setenv("EVALWRIGHT_STORE", server.url(name))
    with pytest.raises(StoreError, match="encoding is LATIN1"):
        open_store(tmp_path)


def test_a_server_that_becomes_read_only_in_the_middle_loses_nothing(
    server: Server, url: str, tmp_path: Path
) -> None:
    name = database(url)
    answers = Counter[str]()

    async def reply(request: Request) -> Response:
        answers[number_of(request)] += 1
        if answers.total() == 50:
            # Sessions keep what they began with: this ends them, as a change of roles does.
            await asyncio.to_thread(
                server.run,
                f"ALTER DATABASE {name} SET default_transaction_read_only = on",
                "postgres",
            )
            ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='{name}'"
            await asyncio.to_thread(server.run, ended, "postgres")
        await asyncio.sleep(0.01)
        return Response(text=f"answer {number_of(request)}")

    model = Remote(reply, Pacing(start_concurrency=8, max_concurrency=8))
    with pytest.raises(StoreError, match="is read-only now"):
        ask_all(tmp_path, model, 200, [])
    server.run(f"ALTER DATABASE {name} RESET default_transaction_read_only", "postgres")
    ask_all(tmp_path, model, 200, [])
    assert answers == Counter({str(number): 1 for number in range(200)})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda url: url.replace("4711", "4712"), "did not let this user in"),
        (lambda url: url[: url.rindex("/")] + "/nowhere", "no database of that name"),
        (lambda url: url.replace("127.0.0.1:", "127.0.0.1:1"), "cannot be"),
        (lambda url: "postgresql://tester:100%zz-secret@127.0.0.1/x", "cannot be read"),
        (lambda url: url.replace("postgresql://", "mysql://"), "no address of a PostgreSQL server"),
    ],
)  # fmt: skip
def test_a_server_that_cannot_be_used_is_told_in_a_sentence_without_the_password(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: object,
    words: str,
) -> None:
    assert callable(change)
    monkeypatch.setenv("EVALWRIGHT_STORE", change(url))
    with pytest.raises((StoreError, ConfigurationError)) as told:
        open_store(tmp_path)
    assert words in str(told.value)
    for secret in (PASSWORD, "p%40ss", "4711", "4712", "secret"):
        assert secret not in str(told.value).replace(
            f":{url.split(':')[3].split('/')[0]}", ""
        )


def test_without_the_library_the_extra_is_named(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"pip install 'evalwright\[postgres\]'"):
        open_store(tmp_path)
    with pytest.raises(MissingExtra):
        Journal(tmp_path)


def test_a_run_on_a_server_leaves_no_password_anywhere(
    server: Server, url: str, tmp_path: Path
) -> None:
    (tmp_path / "t.yaml").write_text(
        "task: t\ndataset: {rows: [{input: 'say p@ss', target: '4'}]}\nanswer: {mode: generate}\nscorers: [exact-match]\n"
    )
    command = (
        "run",
        "t.yaml",
        "--model",
        "scripted/constant",
        "-M",
        "text=4",
        "--name",
        "r",
        "--log-file",
        "log",
    )
    done = [
        typed_there(tmp_path, url, *command),
        typed_there(tmp_path, url, *command, "--replace", "--verbose"),
    ]
    done += [
        typed_there(tmp_path, url, "store", *words)
        for words in (["info"], ["export", "all.jsonl"], ["verify"])
    ]
    assert server.run("SELECT count(*) FROM evalwright.responses", database(url)) == [
        (1,)
    ]
    assert (
        json.loads((tmp_path / "runs" / "r" / "run.json").read_text())["usage"][
            "stored"
        ]
        == 1
    )
    assert not list(tmp_path.rglob("store.sqlite"))
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    dumped = server.run(
        "SELECT * FROM evalwright.responses, evalwright.ledger", database(url)
    )
    for text in (*written, *(one.encode() for one in done), str(dumped).encode()):
        assert b"w/rd" not in text and b"w%2Frd" not in text


def typed_there(folder: Path, url: str, *arguments: str) -> str:
    done = typed(*arguments, folder=folder, extra={"EVALWRIGHT_STORE": url})
    assert done.code == 0, done.text
    return done.text
