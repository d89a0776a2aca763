"""Connections to one host that are kept and used again and again, each for one request at a time.

This is the short way under `HttpClient`, for everything that goes straight to a host: bytes out, a whole reply in, one
future for each request and no task. A general HTTP library costs two to three times the processor time of the rest of a
request's way, which at some hundred requests at once is the limit of the whole client (docs/remote-speed.md).
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from evalwright.models.remote.http_reply import ENCODINGS, NotHttp, Received, ReplyReader, TooLarge

if TYPE_CHECKING:
    from yarl import URL

IDLE_SECONDS = 15.0
"""After so long without use a connection is not trusted any more: many servers close it after some time."""

_HAPPY_EYEBALLS = 0.25
_ADDRESS_SECONDS = 300.0


class Broken(Exception):
    """The connection ended before the reply was whole. began: whether any of it came."""

    def __init__(self, began: bool) -> None:
        super().__init__("the connection broke")
        self.began = began


class ConnectTimedOut(TimeoutError):
    """The host did not take the connection in time."""


def request_head(method: str, url: URL, headers: Mapping[str, str]) -> bytes:
    """Everything of a request but the length of its body and the body. Raises ValueError for a header that cannot be sent."""
    whole = {"Host": url.host_port_subcomponent or "", "Accept": "*/*", "Accept-Encoding": ENCODINGS}
    known = {name.lower(): name for name in whole}
    for name, value in headers.items():
        whole[known.get(name.lower(), name)] = value
    lines = [f"{method} {url.raw_path_qs} HTTP/1.1", *(f"{name}: {value}" for name, value in whole.items())]
    if any(sign in line for line in lines for sign in "\r\n\0"):
        raise ValueError("a header has a line break in it")
    return "\r\n".join(lines).encode() + b"\r\n"


class Connections:
    """The connections of one event loop to one host. limit: how many at the most; who comes later waits."""

    def __init__(self, url: URL, *, limit: int, connect_timeout: float, largest: int) -> None:
        assert url.raw_host is not None and url.port is not None
        self._host, self._port = url.raw_host, url.port
        self._tls = _tls() if url.scheme == "https" else None
        self._connect_timeout = connect_timeout
        self._largest = largest
        self._loop = asyncio.get_running_loop()
        self._places = asyncio.Semaphore(limit)
        self._idle: deque[tuple[Connection, float]] = deque()
        self._finding = asyncio.Lock()
        self._address = ""
        self._found_at = 0.0
        self._closed = False

    async def exchange(self, head: bytes, body: bytes | None, timeout: float) -> Received:
        """Send a request and wait for its reply. body: None for a request without one.

        Raises Broken, NotHttp, TooLarge, TimeoutError, ConnectTimedOut, OSError (ssl.SSLError is one).
        """
        data = head + (b"\r\n" if body is None else b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        async with self._places:
            connection = self._kept() or await self._connected()
            try:
                return await connection.ask(data, timeout)
            finally:
                if connection.usable and not self._closed:
                    self._idle.append((connection, self._loop.time()))
                else:
                    connection.abort()

    async def close(self) -> None:
        """Close what is idle now, and what is under way when it is done."""
        self._closed = True
        while self._idle:
            self._idle.pop()[0].abort()
        await asyncio.sleep(0)  # asyncio closes the sockets in its next round

    def forget(self) -> None:
        """Let go of connections whose loop has ended."""
        self._idle.clear()

    def _kept(self) -> Connection | None:
        """The idle connection that was used last; those idle for too long are closed."""
        now = self._loop.time()
        while self._idle and now - self._idle[0][1] > IDLE_SECONDS:
            self._idle.popleft()[0].abort()
        while self._idle:
            connection, _ = self._idle.pop()
            if connection.usable:
                return connection
        return None

    async def _connected(self) -> Connection:
        try:
            async with asyncio.timeout(self._connect_timeout):
                return await self._connect()
        except TimeoutError as error:
            raise ConnectTimedOut from error

    async def _connect(self) -> Connection:
        # The first connection finds an address that works; the next ones go there without looking up the name again.
        if not self._is_known():
            async with self._finding:
                if not self._is_known():
                    connection = await self._open(self._host)
                    self._address, self._found_at = connection.address, self._loop.time()
                    return connection
        try:
            return await self._open(self._address)
        except OSError:
            self._address = ""
            raise

    def _is_known(self) -> bool:
        return bool(self._address) and self._loop.time() - self._found_at < _ADDRESS_SECONDS

    async def _open(self, host: str) -> Connection:
        # Other event loops (uvloop) know nothing of the race between a host's addresses.
        race: dict[str, Any] = (
            {"happy_eyeballs_delay": _HAPPY_EYEBALLS} if isinstance(self._loop, asyncio.BaseEventLoop) else {}
        )
        _, connection = await self._loop.create_connection(
            lambda: Connection(self._loop, self._largest),
            host,
            self._port,
            ssl=self._tls,
            server_hostname=self._host if self._tls is not None else None,
            **race,
        )
        return connection


class Connection(asyncio.Protocol):
    """One connection. usable: it is open and waits for the next request."""

    __slots__ = ("_future", "_largest", "_loop", "_reader", "_transport", "address", "usable")

    def __init__(self, loop: asyncio.AbstractEventLoop, largest: int) -> None:
        self._loop = loop
        self._largest = largest
        self._reader: ReplyReader | None = None
        self._future: asyncio.Future[Received] | None = None
        self.usable = False

    async def ask(self, data: bytes, timeout: float) -> Received:
        """Send a request and wait for the reply."""
        self.usable = False
        self._reader = ReplyReader(self._largest)
        future: asyncio.Future[Received] = self._loop.create_future()
        self._future = future
        timer = self._loop.call_later(timeout, self._expire)
        self._transport.write(data)
        try:
            return await future
        finally:
            timer.cancel()
            self._future = None

    def abort(self) -> None:
        """End it at once: whatever still comes is of no use."""
        self.usable = False
        self._transport.abort()

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are of another class
        peer = transport.get_extra_info("peername")
        self.address: str = peer[0] if peer else ""
        self.usable = True

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if reader is None or self._future is None:
            self.abort()  # nobody asked for anything
            return
        try:
            received = reader.feed(data)
        except (NotHttp, TooLarge) as error:
            self._fail(error)
            return
        if received is not None:
            self._finish(received)

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        reader = self._reader
        if reader is None or self._future is None:
            return
        if error is None:
            try:
                received = reader.end()
            except (NotHttp, TooLarge) as wrong:
                self._fail(wrong)
                return
            if received is not None:
                self._finish(received)
                return
        failure = Broken(reader.began)
        failure.__cause__ = error
        self._fail(failure)

    def _finish(self, received: Received) -> None:
        self._reader = None
        assert self._future is not None
        if not self._future.done():
            self._future.set_result(received)
            self.usable = received.keep and not self._transport.is_closing()

    def _fail(self, error: Exception) -> None:
        self._reader = None
        assert self._future is not None
        if not self._future.done():
            self._future.set_exception(error)

    def _expire(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_exception(TimeoutError())


def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    with suppress(NotImplementedError):
        context.set_alpn_protocols(["http/1.1"])
    return context
