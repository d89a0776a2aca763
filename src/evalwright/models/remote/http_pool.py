"""One event loop's connections to one host, with aiohttp's connector and its parser of replies.

The connector handles names, TLS, proxies and keep-alive. aiohttp's session is bypassed: what it
adds is not wanted here (redirects, cookies, GETs that are resent uncounted), and it takes twice the
processor time of the rest of a request's path (docs/reference/speed.md).

HTTP/1.1 does not say in a reply which request it answers, so a second reply to one request would be
taken for the answer to the next. Therefore a connection is reused only after it has been silent for
a while, with nothing unread in the system's buffer either, and never after a reply that was early
or malformed. A server that once sent a reply that no request asked for gets a new connection for
each request from then on, and replies in progress on other reused connections are rejected.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import select
import ssl
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from evalwright.core.errors import ConnectionFailed
from evalwright.models.timeouts import Timeouts

IDLE_SECONDS = 15.0
"""A connection idle for this many seconds is not reused, because many servers close it by then."""
LARGEST_HEADER = 64 * 1024
"""Most bytes of one header of a reply."""
_ADDRESS_SECONDS = 300
_BUFFERED = 2**16
_SILENT_SECONDS = 0.005
"""Seconds for which a connection rests after a reply.

A second reply mostly follows at once, or when a busy server continues.
"""
_REQUESTS_PER_SPARE = 16
"""For so many requests at a time one more connection may be open.

So a request seldom waits until a connection has rested.
"""
_BUSY_STATUSES = (429, 503)
"""Statuses with which a server refuses a connection that is too many."""
_FIRST_SILENT_SECONDS = 0.1
"""Seconds before a host's connections are reused for the first time.

This time shows what kind of server it is.
"""

log = logging.getLogger(__name__)


class _Protocol(ResponseHandler):
    """aiohttp's response parser, which also notices data that no request waits for."""

    def __init__(self, pool: Pool, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._pool = pool
        self.is_waiting = False
        self.is_spare = False
        """Whether it is one more than there may be requests, and has not answered yet."""
        self.idle_since: float | None = None
        self._readable: select.poll | None = None

    def data_received(self, data: bytes) -> None:
        if not self.is_waiting and self.idle_since is not None:
            self._pool.distrust()
            self.force_close()
        super().data_received(data)

    def is_open(self) -> bool:
        """Return whether the connection may take another request, as far as is known here."""
        transport = self.transport
        return not (transport is None or transport.is_closing() or self.should_close)

    def is_clean(self) -> bool:
        """Return whether no unrequested data has come, neither here nor in the system's buffer."""
        if not self.is_open():
            return False
        if self._readable is None:
            assert self.transport is not None
            sock = self.transport.get_extra_info("socket")
            if sock is None:
                return True
            self._readable = select.poll()
            self._readable.register(sock.fileno(), select.POLLIN | select.POLLHUP)
        return not self._readable.poll(0)


class Opened:
    """A reply whose headers have arrived.

    Attributes:
        content: the body as it arrives, possibly compressed.
        check: checks after the body that the reply belongs to this request.
        close: ends the reply at any point.
        distrust: ends it, and prevents its connection from being reused.
    """

    __slots__ = (
        "_connection",
        "_pool",
        "_was_used",
        "content",
        "distrusted",
        "headers",
        "raw_headers",
        "status",
    )

    def __init__(
        self,
        pool: Pool,
        connection: aiohttp.connector.Connection,
        message: Any,
        content: aiohttp.StreamReader,
        *,
        was_used: bool,
        is_early: bool,
    ) -> None:
        self._pool = pool
        self._connection = connection
        self._was_used = was_used
        self.distrusted = is_early
        self.content = content
        self.status: int = message.code
        self.headers: Mapping[str, str] = message.headers
        self.raw_headers: tuple[tuple[bytes, bytes], ...] = message.raw_headers

    def check(self) -> None:
        """Raise ConnectionFailed if this may be the second reply to the request before."""
        if self._was_used and self._pool.distrusts:
            self.distrusted = True
            raise ConnectionFailed(
                f"{self._pool.where} sent a reply that no request asked for, so another"
                " on a connection that was used before is not believed."
            )

    def close(self) -> None:
        """Keep the connection if the body was read to its end and nothing follows; else end it."""
        protocol: Any = self._connection.protocol
        if protocol is None:
            return
        if self.content.is_eof() and protocol._buffer:
            self._pool.distrust()
        if self.distrusted or self._pool.distrusts or not self.content.is_eof():
            self._connection.close()
            return
        protocol.is_waiting = False
        protocol.idle_since = self._pool.now()
        self._pool.keep(self._connection)


class _Rests:
    """Ends the rests of many connections with a single timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._resting: deque[tuple[float, asyncio.Future[None]]] = deque()

    async def until(self, when: float) -> None:
        """Wait until then, or longer if a connection that came before rests longer."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._resting.append((when, future))
        if len(self._resting) == 1:
            self._loop.call_at(when, self._wake)
        await future

    def _wake(self) -> None:
        """End the rests that are over; the first one is."""
        now = self._loop.time()
        is_over = True
        while is_over:
            _, future = self._resting.popleft()
            if not future.done():  # otherwise its request was cancelled
                future.set_result(None)
            is_over = bool(self._resting) and self._resting[0][0] <= now
        if self._resting:
            self._loop.call_at(self._resting[0][0], self._wake)


class Pool:
    """The connections to one host.

    Args:
        url: the host's URL.
        proxy: the proxy's URL; None for none.
        limit: most requests at a time, which the pacing sees to. A sixteenth more connections may
            be open, unless the host refuses one of these.
        connect_timeout: seconds for TCP and TLS.
    """

    def __init__(
        self, url: str, *, proxy: str | None, limit: int, connect_timeout: float
    ) -> None:
        loop = asyncio.get_running_loop()
        where = URL(url)
        self.timeouts = Timeouts(loop)
        self._max_requests = limit
        self._limit = limit + limit // _REQUESTS_PER_SPARE
        """Most connections."""
        self._connector = aiohttp.TCPConnector(
            limit=self._limit,
            ttl_dns_cache=_ADDRESS_SECONDS,
            keepalive_timeout=IDLE_SECONDS,
            ssl=_make_tls_context() if where.scheme == "https" else True,
        )
        # The destination of every request; it is never sent itself.
        self._destination = aiohttp.ClientRequest(
            "GET", where, proxy=URL(proxy) if proxy else None, loop=loop
        )
        self._whole_urls = proxy is not None and where.scheme == "http"
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout)
        self._connector._factory = functools.partial(_Protocol, self, loop)  # type: ignore[assignment]
        self.where = where.host_port_subcomponent or ""
        self.now = loop.time
        self.distrusts = False
        """Whether the host has sent a reply that no request asked for."""
        self._trusted_from: float | None = None
        self._rests = _Rests(loop)
        self._idle: deque[aiohttp.connector.Connection] = deque()
        """Connections that wait for the next request, the longest idle first.

        The connector counts them as in use, so that it opens no more than the limit.
        """
        self._connecting = 0
        """Requests that wait for the connector."""

    def keep(self, connection: aiohttp.connector.Connection) -> None:
        """Keep a connection for the next request, if it stays open."""
        protocol: Any = connection.protocol
        if self._connecting or not protocol.is_open():
            connection.release()  # to a request that waits for one, or to be closed
            return
        self._idle.append(connection)
        oldest: Any = self._idle[0].protocol
        if oldest.idle_since < self.now() - IDLE_SECONDS:
            self._idle.popleft().close()

    def _take_idle(self) -> aiohttp.connector.Connection | None:
        """Return a connection that is kept and open; None if another should be opened.

        It may have to rest, if there are as many as there may be.
        """
        now = self.now()
        while self._idle:
            connection = self._idle[0]
            protocol: Any = connection.protocol
            is_usable = protocol.is_open() and protocol.idle_since >= now - IDLE_SECONDS
            if (
                is_usable
                and self._rested_at(protocol.idle_since) > now
                and self._may_have_spare()
            ):
                return None
            self._idle.popleft()
            if is_usable:
                return connection
            connection.close()
        return None

    def _may_have_spare(self) -> bool:
        """Return whether so many requests are in flight that one more connection may be idle."""
        n_connections = len(self._connector._acquired)
        n_busy = n_connections - len(self._idle)
        return (
            n_connections < self._limit
            and len(self._idle) <= n_busy // _REQUESTS_PER_SPARE
        )

    def distrust(self) -> None:
        """Reuse no connection from now on."""
        if not self.distrusts:
            self.distrusts = True
            log.warning(
                "%s sent more than one reply to a request. Each request gets a"
                " connection of its own from now on.",
                self.where,
            )

    async def _may_be_used_again(
        self, connection: aiohttp.connector.Connection
    ) -> bool:
        """Return whether a used connection stays silent until it may be reused; else end it."""
        protocol: Any = connection.protocol
        silent = False
        try:
            if not self.distrusts:
                # The loop has read what came meanwhile, or it is still unread.
                rested_at = self._rested_at(protocol.idle_since)
                if rested_at > self.now():
                    await self._rests.until(rested_at)
                silent = not self.distrusts and protocol.is_clean()
            if not silent:
                # The loop reads pending data, and the protocol sees whether it is more than an end.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        finally:
            if not silent:
                connection.close()
        return silent

    def _rested_at(self, idle_since: float) -> float:
        """Return until when a connection must be watched before it is reused."""
        if self._trusted_from is None:
            self._trusted_from = idle_since + _FIRST_SILENT_SECONDS
        return max(self._trusted_from, idle_since + _SILENT_SECONDS)

    async def open(
        self, method: str, url: URL, headers: bytes, body: bytes | None
    ) -> Opened:
        """Send a request with encoded `headers`, and wait for the headers of the reply."""
        while True:
            connection = self._take_idle()
            if connection is None:
                connection = await self._connect()
            protocol: Any = connection.protocol
            was_used = protocol.idle_since is not None
            if not was_used or await self._may_be_used_again(connection):
                break
        try:
            protocol.set_response_params(
                read_until_eof=True,
                auto_decompress=False,
                read_bufsize=_BUFFERED,
                max_line_size=LARGEST_HEADER,
                max_field_size=LARGEST_HEADER,
            )
            protocol.is_waiting = True
            protocol.transport.write(
                self._head(method, url, headers, body) + (body or b"")
            )
            message, content = await protocol.read()
            is_early = (
                protocol.transport is not None
                and protocol.transport.get_write_buffer_size() > 0
            )
            while 100 <= message.code < 200 and message.code != 101:
                message, content = await protocol.read()
        except BaseException as error:
            if isinstance(error, (aiohttp.ClientError, OSError)):
                self._note_failure(protocol.is_spare)
            connection.close()
            raise
        if message.code in _BUSY_STATUSES:
            self._note_failure(protocol.is_spare)
        protocol.is_spare = False
        return Opened(
            self, connection, message, content, was_used=was_used, is_early=is_early
        )

    async def _connect(self) -> aiohttp.connector.Connection:
        """Open a connection, or take one that the connector has kept."""
        is_spare = len(self._connector._acquired) >= self._max_requests
        self._connecting += 1
        try:
            connection = await self._connector.connect(
                self._destination, [], self._timeout
            )
        except TimeoutError as error:
            self._note_failure(is_spare)
            raise aiohttp.ConnectionTimeoutError from error
        except OSError:
            self._note_failure(is_spare)
            raise
        finally:
            self._connecting -= 1
        protocol: Any = connection.protocol
        protocol.is_spare = is_spare
        return connection

    def _note_failure(self, is_spare: bool) -> None:
        """Open no more connections than requests, if the host has refused another."""
        if is_spare:
            self._limit = self._max_requests

    def forget_addresses(self) -> None:
        """Look up the host's address again, because it may have moved."""
        self._connector.clear_dns_cache()

    async def close(self) -> None:
        """Close the connections."""
        await self._connector.close()
        while self._idle:
            self._idle.popleft().close()

    def _head(self, method: str, url: URL, headers: bytes, body: bytes | None) -> bytes:
        target = url.raw_path_qs
        if self._whole_urls:
            target = str(url)
            if login := self._destination.headers.get("Proxy-Authorization"):
                headers += f"Proxy-Authorization: {login}\r\n".encode()
        size = (
            b""
            if body is None and method == "GET"
            else b"Content-Length: %d\r\n" % len(body or b"")
        )
        return b"%b %b HTTP/1.1\r\n%b%b\r\n" % (
            method.encode(),
            target.encode(),
            headers,
            size,
        )


def _make_tls_context() -> ssl.SSLContext:
    """Make a TLS context for each pool.

    aiohttp makes its own when it is imported, whatever SSL_CERT_FILE says later.
    """
    context = ssl.create_default_context()
    with suppress(NotImplementedError):
        context.set_alpn_protocols(["http/1.1"])
    return context
