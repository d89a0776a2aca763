"""The HTTP client against a real server on loopback that writes exactly the bytes that a test
gives it.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import (
    BadReply,
    ConfigurationError,
    ConnectionFailed,
    Rejected,
    RequestError,
    TimedOut,
)
from evalwright.models.remote import http_pool
from evalwright.models.remote.exchange import Call, Reply
from evalwright.models.remote.http import HttpClient, check_url, encode, proxy_for
from evalwright.models.remote.http_faults import CertificateRefused
from evalwright.models.remote.wire import wire
from evalwright.models.remote.wire.format import Settings

Talk = Callable[["Connection"], Awaitable[None]]
POST = Call("/x", {"a": 1})
GET = Call("/x", method="GET")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Connection:
    """The server's end of one connection. number: which it is, from 1 on. heads, bodies: of the
    requests that came on it.
    """

    def __init__(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.number = number
        self.reader = reader
        self.writer = writer
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.ended = asyncio.Event()

    async def request(self) -> None:
        """Read one."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(
            head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0
        )
        self.heads.append(head.decode("latin-1"))
        self.bodies.append(await self.reader.readexactly(length))

    async def end(self) -> None:
        """Close it and wait until nothing is under way any more."""
        self.writer.close()
        await self.ended.wait()
        with suppress(OSError):
            await self.writer.wait_closed()

    async def write(self, *data: bytes) -> None:
        """Each in a packet of its own."""
        for part in data:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(0.002)


def http(
    body: bytes | str = b"{}",
    *headers: str,
    status: str = "200 OK",
    length: int | None = None,
) -> bytes:
    """A reply. length: what it says, where that is not the body's."""
    raw = body.encode() if isinstance(body, str) else body
    kind = (
        []
        if any(header.lower().startswith("content-type:") for header in headers)
        else ["Content-Type: application/json"]
    )
    size = (
        []
        if any("chunked" in header for header in headers)
        else [f"Content-Length: {len(raw) if length is None else length}"]
    )
    return (
        "\r\n".join([f"HTTP/1.1 {status}", *kind, *size, *headers, "", ""]).encode(
            "latin-1"
        )
        + raw
    )


def replying(*parts: bytes, close: bool = False) -> Talk:
    """The same reply to each request, in these pieces."""

    async def talk(connection: Connection) -> None:
        while True:
            await connection.request()
            await connection.write(*parts)
            if close:
                return

    return talk


class Served:
    """A server that does `talk` on each connection, its connections, and what came of the calls
    to it.
    """

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.connections: list[Connection] = []
        self.results: list[Any] = []
        self.port = 0

    @asynccontextmanager
    async def client(
        self, tls: ssl.SSLContext | None = None, scheme: str = "http", **options: Any
    ) -> AsyncIterator[HttpClient]:
        """A client of the running server."""
        server = await asyncio.start_server(
            self._connected, "127.0.0.1", self.port, ssl=tls
        )
        self.port = server.sockets[0].getsockname()[1]
        url = (
            f"https://localhost:{self.port}"
            if tls
            else f"{scheme}://127.0.0.1:{self.port}"
        )
        client = HttpClient(url, **options)
        try:
            yield client
        finally:
            await client.close()
            await self.stop(server)

    async def stop(self, server: asyncio.Server) -> None:
        """End the server and its connections."""
        server.close()
        await asyncio.gather(*(connection.end() for connection in self.connections))
        await server.wait_closed()

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        connection = Connection(len(self.connections) + 1, reader, writer)
        self.connections.append(connection)
        try:
            await self.talk(connection)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            connection.ended.set()

    @property
    def heads(self) -> list[str]:
        return [head for connection in self.connections for head in connection.heads]


def serve(talk: Talk, *calls: Call, pause: float = 0.02, **options: Any) -> Served:
    """Send these calls one after another."""
    served = Served(talk)

    async def go() -> None:
        async with served.client(**options) as client:
            for call in calls or (POST,):
                try:
                    served.results.append((await client.send(call)).data)
                except RequestError as error:
                    served.results.append(error)
                await asyncio.sleep(pause)

    asyncio.run(go())
    return served


def reply_of(*parts: bytes, close: bool = False, **options: Any) -> Any:
    """The data, or the error, of one request that is answered with these bytes."""
    return serve(replying(*parts, close=close), **options).results[0]


# -- what goes out and comes in
# -------------------------------------------------------------------------------------------


def test_json_goes_out_and_comes_in() -> None:
    served = Served(
        replying(http('{"text": "žluť 😀"}', "x-ratelimit-remaining-requests: 5"))
    )

    async def go() -> Reply:
        async with served.client(headers={"Authorization": "Bearer abc"}) as client:
            return await client.send(POST)

    began = time.perf_counter()
    reply = asyncio.run(go())
    elapsed_seconds = time.perf_counter() - began
    assert reply.data == {"text": "žluť 😀"} and 0 < reply.seconds <= elapsed_seconds
    assert reply.rate_limits is not None and reply.rate_limits.remaining_requests == 5
    head = served.heads[0].lower()
    assert head.startswith("post /x http/1.1\r\n") and served.connections[0].bodies == [
        b'{"a":1}'
    ]
    for line in (
        "content-type: application/json",
        "accept-encoding: gzip",
        "authorization: bearer abc",
    ):
        assert f"\r\n{line}\r\n" in head
    assert "\r\nuser-agent: evalwright/" in head


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "application/problem+json", "Text/JSON"]
)
def test_json_content_types(kind: str) -> None:
    assert reply_of(http('{"a": 1}', f"Content-Type: {kind}")) == {"a": 1}


def test_a_reply_without_a_content_type_must_still_be_json() -> None:
    assert reply_of(b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{"a": 1}') == {"a": 1}
    assert isinstance(
        reply_of(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), BadReply
    )


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"a": [1, 2', "application/json"), ("", "application/json"), (b'{"a": "\xff"}', "application/json"),
        ("[" * 200_000, "application/json"), ("<html>wait</html>", "text/html"), ('{"a": 1}', "text/plain"),
    ],
)  # fmt: skip
def test_what_is_not_whole_valid_json_is_a_bad_reply(
    body: str | bytes, kind: str
) -> None:
    error = reply_of(http(body, f"Content-Type: {kind}"))
    assert isinstance(error, BadReply) and error.retryable and len(str(error)) < 250


PACKED = gzip.compress(b'{"text": "' + b"x" * 5_000_000 + b'"}', mtime=0)
CHUNKED = "Transfer-Encoding: chunked"


def test_a_reply_may_come_in_any_form_but_not_too_large() -> None:
    parts = [b"%X\r\n%b\r\n" % (1000, b"x" * 1000)] * 50
    long = [
        http("", CHUNKED) + b'A\r\n{"text": "\r\n',
        *parts,
        b'2\r\n"}\r\n0\r\nx-sum: 1\r\n\r\n',
    ]
    assert len(reply_of(*long)["text"]) == 50_000
    until_closed = b'HTTP/1.1 200 OK\r\nContent-Type: text/json\r\n\r\n{"a": '
    assert reply_of(until_closed, b"[]}", close=True) == {"a": []}
    packed = gzip.compress(b'{"a"') + gzip.compress(b": 1}")
    for at in (1, 11, len(packed) - 1, len(packed)):
        assert reply_of(
            http(packed[:at], "Content-Encoding: gzip", length=len(packed)), packed[at:]
        ) == {"a": 1}
    assert len(reply_of(http(PACKED, "Content-Encoding: gzip"))["text"]) == 5_000_000
    for large in (
        long,
        [http(PACKED, "Content-Encoding: gzip")],
        [http(b'"' + b"x" * 30_000 + b'"')],
    ):
        error = reply_of(*large, largest_reply=20_000)
        assert isinstance(error, Rejected) and "more than 20000 bytes" in str(error)


def test_interim_replies_are_passed_over() -> None:
    interim = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
    )
    assert reply_of(interim + http('{"a": 1}')) == {"a": 1}


def test_urls_keep_their_percent_encoding_and_bytes_are_sent_as_they_are() -> None:
    calls = [
        Call("/model/a%3A1%2Fb/converse", {}),
        Call("/models/x:stream?alt=sse", {}),
    ]
    served = serve(
        replying(http()),
        *calls,
        Call("/files", b"--x", headers={"Content-Type": "text/x"}),
    )
    assert [head.split(" ")[1] for head in served.heads] == [
        *(call.path for call in calls),
        "/files",
    ]
    assert (
        "Content-Type: text/x\r\n" in served.heads[2]
        and served.connections[0].bodies[2] == b"--x"
    )


def test_redirects_are_not_followed_and_cookies_are_not_kept() -> None:
    moved = http("", "Location: /elsewhere", "Set-Cookie: who=you", status="307 Moved")
    served = serve(replying(moved), POST, GET)
    assert all(
        isinstance(error, Rejected) and "/elsewhere" in str(error)
        for error in served.results
    )
    assert [head.split(" ")[1] for head in served.heads] == ["/x", "/x"]
    assert "cookie" not in "".join(served.heads).lower()


@pytest.mark.parametrize(("path", "largest"), [("/missing", 50), ("/file", 2)])
def test_a_file_is_read_line_by_line(path: str, largest: int) -> None:
    async def talk(connection: Connection) -> None:
        while True:
            await connection.request()
            status = "404 Not Found" if "missing" in connection.heads[-1] else "200 OK"
            await connection.write(
                http(b"one\ntw", "Content-Type: text/x", status=status, length=12),
                b"o\n\nend",
            )

    async def go() -> list[bytes]:
        async with Served(talk).client(largest_reply=5) as client:
            return [line async for line in client.lines("/file")]

    async def fail() -> None:
        async with Served(talk).client(largest_reply=largest) as client:
            with pytest.raises(Rejected, match=r"\(404\)|more than 2 bytes"):
                [line async for line in client.lines(path)]

    assert asyncio.run(go()) == [b"one", b"two", b"", b"end"]
    asyncio.run(fail())


def test_a_stream_may_be_compressed_and_is_never_short() -> None:
    gather = wire("openai-chat").gather
    kind = "Content-Type: text/event-stream"
    assert gather is not None

    def streamed(*parts: bytes) -> Any:
        call = Call("/x", {}, gatherer=gather(Settings("m", "host")))
        return serve(replying(*parts, close=True), call).results[0]

    begun = b'data: {"choices": [{"index": 0, "delta": {"content": "Paris"}}]}\n\n'
    whole = begun + b"data: [DONE]\n\n"
    packed = http(gzip.compress(whole), kind, "Content-Encoding: gzip")
    for parts in ([packed], [http(whole[:20], kind, length=len(whole)), whole[20:]]):
        assert streamed(*parts)["choices"][0]["message"]["content"] == "Paris"
    assert isinstance(streamed(http(begun, kind, length=len(whole))), ConnectionFailed)
    assert isinstance(streamed(http("{}", status="500 Oops")), RequestError)


# -- what goes wrong
# ------------------------------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\n"
PACKED_CUT = gzip.compress(b'{"a": 1}', mtime=0)[:-9]


@pytest.mark.parametrize(
    "reply",
    [
        b"220 mail ready\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        HEAD + b"no colon\r\n\r\n",
        HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        HEAD + b"Content-Length: -3\r\n\r\n",
        HEAD + b"Content-Length: 0x3\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        HEAD + b"Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"x: " + b"y" * (http_pool.LARGEST_HEADER + 10) + b"\r\n\r\n",
        http('{"a":', length=100),
        http("", CHUNKED) + b"8\r\n{}      \r\n",
        http(PACKED_CUT, "Content-Encoding: gzip"),
        HEAD + b"Content-Encoding: gzip\r\n\r\n" + PACKED_CUT,
        b"HTTP/1.1 200",
        b"",
    ],
    ids=lambda reply: repr(reply[:60]),
)
def test_what_is_no_whole_reply_is_a_failure_that_may_pass(reply: bytes) -> None:
    error = reply_of(reply, close=True)
    assert isinstance(
        error, BadReply | ConnectionFailed | Rejected
    ) and "127.0.0.1" in str(error)
    assert error.retryable or "101" in str(error)


def test_what_breaks_is_told_apart() -> None:
    assert "before a response arrived" in str(reply_of(b"", close=True))
    assert "before the response was complete" in str(
        reply_of(http("{", length=9), close=True)
    )
    assert "is not HTTP" in str(reply_of(b"220 mail ready\r\n\r\n", close=True))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        refused = failing(f"http://127.0.0.1:{free.getsockname()[1]}")
    assert isinstance(
        refused, ConnectionFailed
    ) and "No connection to 127.0.0.1:" in str(refused)
    unknown = failing("http://no-such-host.invalid")
    assert isinstance(
        unknown, ConnectionFailed
    ) and "No connection to no-such-host.invalid" in str(unknown)


def failing(url: str, **options: Any) -> RequestError:
    async def go() -> None:
        client = HttpClient(url, **options)
        try:
            await client.send(GET)
        finally:
            await client.close()

    with pytest.raises(RequestError) as caught:
        asyncio.run(go())
    return caught.value


def test_a_server_that_speaks_first_is_no_http_server() -> None:
    async def mail(connection: Connection) -> None:
        await connection.write(b"220 mail ready\r\n")
        await connection.reader.read()

    served = serve(mail, POST, POST)
    assert all(
        isinstance(error, BadReply | ConnectionFailed) for error in served.results
    )


@pytest.mark.parametrize("parts", [(), (http('{"a":', length=50),)])
def test_a_hang_times_out(parts: tuple[bytes, ...]) -> None:
    error = reply_of(*parts, timeout=0.2)
    assert isinstance(error, TimedOut) and "did not answer within 0.2 s" in str(error)


def test_a_header_cannot_smuggle_a_second_one() -> None:
    error = reply_of(http(), headers={"x-a": "1\r\nx-b: 2"})
    assert isinstance(error, Rejected) and "could not be sent" in str(error)


def test_plain_http_on_a_tls_port_is_said_and_not_retried() -> None:
    async def plain(connection: Connection) -> None:
        await connection.reader.read(5)
        await connection.write(http(status="400 Bad Request"))

    error = serve(plain, scheme="https", timeout=60).results[0]
    assert isinstance(error, ConnectionFailed) and not error.retryable


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl makes the certificate"
)
def test_certificates_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key.pem"
    certificate = tmp_path / "cert.pem"
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    make += [
        "-keyout",
        str(key),
        "-out",
        str(certificate),
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    subprocess.run(
        [*make, "-addext", "subjectAltName=DNS:localhost"],
        check=True,
        capture_output=True,
    )
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    unknown = serve(replying(http()), tls=tls).results[0]
    assert isinstance(unknown, CertificateRefused) and not unknown.retryable
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    served = serve(replying(http()), POST, GET, POST, tls=tls)
    assert served.results == [{}, {}, {}] and len(served.connections) == 1


# -- kept connections
# -----------------------------------------------------------------------------------------------------


def test_connections_are_kept_and_bounded() -> None:
    flying = most = 0

    async def slow(connection: Connection) -> None:
        nonlocal flying, most
        while True:
            await connection.request()
            flying += 1
            most = max(most, flying)
            await asyncio.sleep(0.005)
            flying -= 1
            await connection.write(http())

    async def go() -> None:
        async with served.client(max_connections=4) as client:
            await asyncio.gather(*(client.send(Call("/", n)) for n in range(40)))

    served = Served(slow)
    asyncio.run(go())
    assert len(served.connections) == most == 4


def test_with_many_in_flight_a_request_gets_a_new_connection_while_one_rests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_pool, "_FIRST_SILENT_SECONDS", 600.0)
    n_received = 0
    all_received = asyncio.Event()

    async def first_at_once(connection: Connection) -> None:
        nonlocal n_received
        await connection.request()
        n_received += 1
        is_first = n_received == 1
        if n_received == 33:
            all_received.set()
        if not is_first:
            await all_received.wait()
        await connection.write(http())

    async def go() -> None:
        calls = iter(Call("/", n) for n in range(33))

        async def send_all(client: HttpClient) -> None:
            for call in calls:
                await client.send(call)

        async with served.client(max_connections=32) as client:
            await asyncio.gather(*(send_all(client) for _ in range(32)))

    served = Served(first_at_once)
    asyncio.run(go())
    assert len(served.connections) == 33


def test_a_host_that_refuses_a_spare_connection_gets_no_more_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_pool, "_FIRST_SILENT_SECONDS", 600.0)
    may_end = asyncio.Event()

    async def refuse_the_last(connection: Connection) -> None:
        if connection.number > 32:
            return
        await connection.request()
        if connection.number > 1:
            await may_end.wait()
        await connection.write(http())
        await connection.reader.read()

    async def go() -> None:
        async with served.client(max_connections=32) as client:
            sendings = [
                asyncio.create_task(client.send(Call("/", n))) for n in range(32)
            ]
            await asyncio.wait(sendings, return_when=asyncio.FIRST_COMPLETED)
            with pytest.raises(ConnectionFailed):
                await client.send(Call("/", 32))
            waiting = asyncio.create_task(client.send(Call("/", 33)))
            (pool,) = client._pools.values()
            n_connections = 0
            for _ in range(20):
                await asyncio.sleep(0)
                n_connections = max(n_connections, len(pool._connector._acquired))
            waiting.cancel()
            may_end.set()
            await asyncio.wait([waiting, *sendings])
            assert n_connections == 32

    served = Served(refuse_the_last)
    asyncio.run(go())


def test_a_connection_that_the_server_closes_between_requests_is_not_used_again() -> (
    None
):
    served = serve(replying(http(), close=True), POST, POST, POST, pause=0.2)
    assert served.results == [{}, {}, {}] and len(served.connections) == 3


@pytest.mark.parametrize("call", [POST, GET])
def test_a_request_that_meets_the_end_of_its_connection_fails_once_and_is_not_sent_again(
    call: Call,
) -> None:
    async def twice(connection: Connection) -> None:
        await connection.request()
        await connection.write(http())
        # and no reply, so the client cannot know whether it was carried out
        await connection.request()

    served = serve(twice, call, call, call)
    first, second, third = served.results
    assert (first, third) == ({}, {})
    assert isinstance(second, ConnectionFailed) and second.retryable
    assert len(served.heads) == 3, "every sending is the engine's, which counts it"


@pytest.mark.parametrize(
    "late", [http('"fake"'), b"HTTP/1.1 408 Timeout\r\n\r\n", b"\0"]
)
@pytest.mark.parametrize("pause", [0.0, 0.01])
def test_a_second_reply_is_never_given_to_the_next_request(
    late: bytes, pause: float
) -> None:
    async def chatty(connection: Connection) -> None:
        await connection.request()
        connection.writer.write(
            http("1") if pause or connection.number > 1 else http("1") + late
        )
        await asyncio.sleep(pause)
        if pause and connection.number == 1:
            connection.writer.write(late)
        await connection.reader.read()

    served = serve(chatty, POST, POST, pause=0.3)
    assert served.results[0] == 1 or isinstance(served.results[0], BadReply)
    assert served.results[1] == 1 and len(served.connections) == 2


def test_a_connection_left_by_a_cancelled_request_is_ended_and_not_used_again() -> None:
    ended: list[bytes] = []
    sent: list[asyncio.Future[Any]] = []

    async def talk(connection: Connection) -> None:
        while True:
            await connection.request()
            if connection.bodies[-1] == b'"slow"':
                sent[0].cancel()
                ended.append(await asyncio.wait_for(connection.reader.read(), 60))
            await connection.write(http(connection.bodies[-1]))

    async def go() -> list[Any]:
        async with Served(talk).client() as client:
            sent.append(asyncio.ensure_future(client.send(Call("/x", "slow"))))
            with pytest.raises(asyncio.CancelledError):
                await sent[0]
            return [
                (await client.send(Call("/x", text))).data for text in ("one", "two")
            ]

    assert asyncio.run(go()) == ["one", "two"]
    assert ended == [b""]


def test_a_connection_is_not_trusted_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for seconds, connections in ((1e6, 1), (0, 2)):
        monkeypatch.setattr(http_pool, "IDLE_SECONDS", seconds)
        assert (
            len(serve(replying(http()), POST, POST, pause=0.01).connections)
            == connections
        )


def test_a_host_that_has_moved_is_looked_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    look_up = socket.getaddrinfo
    moved = ["127.255.255.254"]

    def found(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        if host == "model.example":
            host = moved.pop() if moved else "127.0.0.1"
        return look_up(host, port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", found)

    async def go() -> Any:
        async with Served(replying(http())).client() as client:
            client.base_url = client.base_url.replace("127.0.0.1", "model.example")
            with pytest.raises(ConnectionFailed):
                await client.send(POST)
            return (await client.send(POST)).data

    assert asyncio.run(go()) == {}


def test_one_client_on_several_loops_one_after_another() -> None:
    async def go(served: Served, leave_open: bool) -> None:
        server = await asyncio.start_server(served._connected, "127.0.0.1", served.port)
        assert (await client.send(GET)).data == {}
        if not leave_open:
            await client.close()
        await served.stop(server)
        await asyncio.sleep(0.01)

    served = serve(replying(http()))
    client = HttpClient(f"http://127.0.0.1:{served.port}")
    for leave_open in (True, True, False):
        asyncio.run(go(served, leave_open))
    gc.collect()


# -- proxies, logins, arguments
# -------------------------------------------------------------------------------------------


def test_a_proxy_from_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(connection: Connection) -> None:
        await connection.request()
        refused = "CONNECT" in connection.heads[0]
        await connection.write(
            http(status="407 No") if refused else http('{"via": "proxy"}')
        )

    async def go() -> None:
        served = Served(talk)
        async with served.client():
            for name in ("HTTP_PROXY", "HTTPS_PROXY"):
                monkeypatch.setenv(name, f"http://me:secret@127.0.0.1:{served.port}")
            plain = HttpClient("http://api.example.com/v1")
            secure = HttpClient("https://api.example.com/v1")
            assert (await plain.send(Call("/models", method="GET"))).data == {
                "via": "proxy"
            }
            with pytest.raises(
                ConnectionFailed,
                match=r"proxy.*api\.example\.com.*407",
            ):
                await secure.send(POST)
            await plain.close()
            await secure.close()
        assert served.heads[0].startswith("GET http://api.example.com/v1/models ")
        assert "Proxy-Authorization: Basic" in served.heads[0]

    asyncio.run(go())


def test_a_proxy_that_is_not_there_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as taken:  # bound and not listening: nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setenv("HTTP_PROXY", f"http://me:pr0xyS3cret@127.0.0.1:{port}")
        with pytest.raises(
            ConnectionFailed,
            match=rf"proxy 127\.0\.0\.1:{port}.*api\.example\.com",
        ) as caught:
            asyncio.run(HttpClient("http://api.example.com/v1").send(POST))
    assert "pr0xyS3cret" not in str(caught.value) and not caught.value.taken


def test_which_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy_for("https://api.example.com/v1") is None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert proxy_for("https://api.example.com/v1") == "http://proxy:3128"
    assert proxy_for("http://api.example.com/v1") is None
    assert proxy_for("https://localhost:8000/v1") is None
    monkeypatch.setenv("NO_PROXY", "example.com")
    assert proxy_for("https://api.example.com/v1") is None
    monkeypatch.setenv("HTTPS_PROXY", "socks5://proxy:1080")
    with pytest.raises(ConfigurationError, match="socks5"):
        proxy_for("https://api.other.com/v1")


def test_a_login_is_made_ready_before_each_request_and_signs_what_is_sent() -> None:
    order: list[Any] = []

    async def ready() -> None:
        order.append("ready")
        if len(order) > 2:
            raise ConnectionFailed("No token.")

    def sign(
        method: str, url: str, body: bytes, headers: Mapping[str, str]
    ) -> Mapping[str, str]:
        order.append((method, url.rpartition("/")[2], body, headers["Content-Type"]))
        return {**headers, "X-Signed": "yes"}

    served = serve(replying(http()), POST, POST, sign=sign, ready=ready)
    assert order == ["ready", ("POST", "x", b'{"a":1}', "application/json"), "ready"]
    assert "X-Signed: yes\r\n" in served.heads[0]
    assert served.results[0] == {} and str(served.results[1]) == "No token."


def test_what_cannot_be_json_is_rejected() -> None:
    assert encode({"a": "é\ud800"}) == b'{"a":"\\u00e9\\ud800"}'
    assert encode({"a": "é"}) == '{"a":"é"}'.encode()
    for value in (float("nan"), float("inf"), object(), {1, 2}):
        with pytest.raises(Rejected):
            encode({"a": value})


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host/v1",
        "http://",
        "http://a b/",
        "http://h:99999/",
        "",
    ],
)
def test_urls_that_cannot_be_used(url: str) -> None:
    with pytest.raises(ConfigurationError, match="not a usable base_url"):
        check_url(url)
