"""One event loop's connections to one host, by aiohttp's connector (names, TLS, proxies, keep-alive) and its reader of replies.

aiohttp's session is passed by: what it adds is not wanted here (redirects, cookies, GETs that are sent again uncounted), and it
takes twice the processor time of the rest of a request's way (docs/speed.md).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import aiohttp
from yarl import URL

from evalwright.models.timeouts import Timeouts

IDLE_SECONDS = 15.0
"""After so long without use a connection is not trusted any more: many servers close it after some time."""
LARGEST_HEADER = 64 * 1024
"""Bytes of one header of a reply."""
_ADDRESS_SECONDS = 300
_BUFFERED = 2**16


class Opened:
    """A reply whose head has come. content: the body as it comes, packed or not. close: end it, wherever it is."""

    __slots__ = ("_connection", "content", "headers", "raw_headers", "status")

    def __init__(
        self, connection: aiohttp.connector.Connection, message: Any, content: aiohttp.StreamReader
    ) -> None:
        self._connection = connection
        self.content = content
        self.status: int = message.code
        self.headers: Mapping[str, str] = message.headers
        self.raw_headers: tuple[tuple[bytes, bytes], ...] = message.raw_headers

    def close(self) -> None:
        """Keep the connection where the body has been read to its end, else end it."""
        if self.content.is_eof():
            self._connection.release()
        else:
            self._connection.close()


class Pool:
    """limit: connections at the most; who comes later waits. connect_timeout: seconds for TCP and TLS."""

    def __init__(self, url: str, *, proxy: str | None, limit: int, connect_timeout: float) -> None:
        loop = asyncio.get_running_loop()
        where = URL(url)
        self.timeouts = Timeouts(loop)
        self._connector = aiohttp.TCPConnector(
            limit=limit,
            ttl_dns_cache=_ADDRESS_SECONDS,
            keepalive_timeout=IDLE_SECONDS,
            ssl=_tls() if where.scheme == "https" else True,
        )
        # Where every request goes to; it is never sent itself.
        self._destination = aiohttp.ClientRequest(
            "GET", where, proxy=URL(proxy) if proxy else None, loop=loop
        )
        self._whole_urls = proxy is not None and where.scheme == "http"
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout)
        self._used: WeakSet[Any] = WeakSet()

    async def open(self, method: str, url: URL, headers: bytes, body: bytes | None) -> Opened:
        """Send a request and wait for the reply's head. headers: as they are sent, each with its line's end."""
        while True:
            try:
                connection = await self._connector.connect(self._destination, [], self._timeout)
            except TimeoutError as error:
                raise aiohttp.ConnectionTimeoutError from error
            protocol: Any = connection.protocol
            if not protocol.should_close or protocol not in self._used:
                break
            connection.close()  # bytes came on it that no request asked for: they would be taken for this one's reply
        self._used.add(protocol)
        try:
            protocol.set_response_params(
                read_until_eof=True,
                auto_decompress=False,
                read_bufsize=_BUFFERED,
                max_line_size=LARGEST_HEADER,
                max_field_size=LARGEST_HEADER,
            )
            protocol.transport.write(self._head(method, url, headers, body) + (body or b""))
            message, content = await protocol.read()
            while 100 <= message.code < 200 and message.code != 101:
                message, content = await protocol.read()
        except BaseException:
            connection.close()
            raise
        return Opened(connection, message, content)

    def forget_addresses(self) -> None:
        """The host may have moved: look its name up again."""
        self._connector.clear_dns_cache()

    async def close(self) -> None:
        """Close the connections."""
        await self._connector.close()

    def _head(self, method: str, url: URL, headers: bytes, body: bytes | None) -> bytes:
        target = url.raw_path_qs
        if self._whole_urls:
            target = str(url)
            if login := self._destination.headers.get("Proxy-Authorization"):
                headers += f"Proxy-Authorization: {login}\r\n".encode()
        size = b"" if body is None and method == "GET" else b"Content-Length: %d\r\n" % len(body or b"")
        return b"%b %b HTTP/1.1\r\n%b%b\r\n" % (method.encode(), target.encode(), headers, size)


def _tls() -> ssl.SSLContext:
    """Made anew for each pool, because aiohttp's own is made when it is imported, whatever SSL_CERT_FILE says later."""
    context = ssl.create_default_context()
    with suppress(NotImplementedError):
        context.set_alpn_protocols(["http/1.1"])
    return context
