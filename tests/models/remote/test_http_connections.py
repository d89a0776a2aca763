"""Kept connections against real servers: which are used again, and what becomes of a request whose connection is not."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConnectionFailed, Rejected
from evalwright.models.remote import http_connections
from evalwright.models.remote.http import HttpClient
from evalwright.models.remote.http_faults import CertificateRefused

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

Talk = Callable[[int, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def one_request(reader: asyncio.StreamReader) -> bytes:
    """The bytes of one request, head and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
    return head + await reader.readexactly(length)


def with_server(talk: Talk, use: Callable[[str], Awaitable[Any]], tls: ssl.SSLContext | None = None) -> Any:
    """Run `use(url)`; the server calls `talk(number of the connection, reader, writer)` for each connection."""

    async def go() -> Any:
        count = 0

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal count
            count += 1
            try:
                await talk(count, reader, writer)
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        try:
            return await use(f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}")
        finally:
            server.close()
            await server.wait_closed()

    return asyncio.run(go())


async def for_ever(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await one_request(reader)
        writer.write(OK)


def asks(times: int, pause: float = 0.02, **options: Any) -> Callable[[str], Awaitable[list[Any]]]:
    """Ask one after another; the data, or the error, of each."""

    async def use(url: str) -> list[Any]:
        client = HttpClient(url, **options)
        found: list[Any] = []
        for _ in range(times):
            try:
                found.append((await client.post("/x", {})).data)
            except (ConnectionFailed, Rejected) as error:
                found.append(error)
            await asyncio.sleep(pause)
        await client.close()
        return found

    return use


def test_a_connection_that_the_server_closes_between_requests_is_not_used_again() -> None:
    numbers = []

    async def once(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await one_request(reader)
        numbers.append(number)
        writer.write(OK)

    assert with_server(once, asks(3)) == [{}, {}, {}]
    assert numbers == [1, 2, 3]


def test_a_request_that_meets_the_end_of_its_connection_fails_and_the_next_one_does_not() -> None:
    async def twice(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await one_request(reader)
        writer.write(OK)
        await one_request(reader)  # and no reply, so the client cannot know whether it was carried out

    first, second, third = with_server(twice, asks(3))
    assert (first, third) == ({}, {})
    assert isinstance(second, ConnectionFailed)
    assert second.retryable


def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    ended = asyncio.Event()

    async def chatty(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await one_request(reader)
        writer.write(OK)
        if number == 1:
            await asyncio.sleep(0.01)  # the first reply is taken by now
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n" + b'"fake"')
            with suppress(ConnectionError):
                await reader.read()
            ended.set()

    async def use(url: str) -> Any:
        client = HttpClient(url)
        first = (await client.post("/x", {})).data
        await asyncio.wait_for(ended.wait(), 10)
        second = (await client.post("/x", {})).data
        await client.close()
        return [first, second]

    assert with_server(chatty, use) == [{}, {}]


def test_a_connection_left_by_a_cancelled_request_is_not_used_again() -> None:
    async def late(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            body = (await one_request(reader)).partition(b"\r\n\r\n")[2]
            await asyncio.sleep(0.2 if body == b'"slow"' else 0)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async def use(url: str) -> Any:
        client = HttpClient(url)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.post("/x", "slow")
        found = [(await client.post("/x", text)).data for text in ("one", "two")]
        await asyncio.sleep(0.3)
        found.append((await client.post("/x", "three")).data)
        await client.close()
        return found

    assert with_server(late, use) == ["one", "two", "three"]


def test_a_connection_is_not_trusted_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "IDLE_SECONDS", 0.05)
    numbers = set()

    async def keep(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await one_request(reader)
            numbers.add(number)
            writer.write(OK)

    assert with_server(keep, asks(3, pause=0.01)) == [{}, {}, {}]
    assert len(numbers) == 1
    assert with_server(keep, asks(2, pause=0.1)) == [{}, {}]
    assert len(numbers) == 2


def test_a_header_cannot_smuggle_a_second_one() -> None:
    found = with_server(for_ever, asks(1, headers={"x-a": "1\r\nx-b: 2"}))
    assert isinstance(found[0], Rejected)
    assert "could not be sent" in str(found[0])


def test_a_host_without_an_answer_to_the_first_connection_is_looked_up_again() -> None:
    async def use(url: str) -> Any:
        client = HttpClient(url.replace("127.0.0.1", "localhost"))
        found = [(await client.get("/x")).data]
        wire = next(iter(client._pools.values()))
        wire._address = "127.255.255.254"  # as if the host had moved
        for connection, _ in wire._idle:
            connection.abort()
        await asyncio.sleep(0.01)
        with pytest.raises(ConnectionFailed):
            await client.get("/x")
        found.append((await client.get("/x")).data)
        await client.close()
        return found

    assert with_server(for_ever, use) == [{}, {}]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    make += ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*make, "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    unknown = with_server(for_ever, asks(1), tls)
    assert isinstance(unknown[0], CertificateRefused)
    assert not unknown[0].retryable
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert with_server(for_ever, asks(3), tls) == [{}, {}, {}]
