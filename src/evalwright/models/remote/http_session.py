"""What the HTTP client needs of aiohttp: one session for one event loop, set up so that nothing happens that nobody asked for."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import aiohttp

IDLE_SECONDS = 15.0
"""After so long without use a connection is not trusted any more: many servers close it after some time."""
LARGEST_HEADER = 64 * 1024
"""Bytes of one header of a reply."""
_ADDRESS_SECONDS = 300


def open_session(
    headers: Mapping[str, str], *, secure: bool, limit: int, timeout: float, connect_timeout: float
) -> aiohttp.ClientSession:
    """A session for the running loop.

    headers: of every request. secure: https. limit: connections at the most. timeout, connect_timeout: seconds for a request
    as a whole, and for TCP and TLS. Bodies are given as they came, packed or not.
    """
    connector = Connector(
        limit=limit,
        ttl_dns_cache=_ADDRESS_SECONDS,
        keepalive_timeout=IDLE_SECONDS,
        ssl=_tls() if secure else True,
    )
    return aiohttp.ClientSession(
        connector=connector,
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=connect_timeout),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        max_line_size=LARGEST_HEADER,
        max_field_size=LARGEST_HEADER,
    )


class Connector(aiohttp.TCPConnector):
    """Kept connections, without those on which bytes came that no request asked for: they would be taken for the next reply."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used: WeakSet[Any] = WeakSet()

    async def connect(self, req: aiohttp.ClientRequest, traces: Any, timeout: Any) -> Any:
        """As aiohttp's."""
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            # What a server says first on a new connection is read, so that the failure names it.
            if protocol is None or protocol not in self._used or not protocol.should_close:
                self._used.add(protocol)
                return connection
            connection.close()


def _tls() -> ssl.SSLContext:
    """Made anew for each session, because aiohttp's own is made when it is imported, whatever SSL_CERT_FILE says later."""
    context = ssl.create_default_context()
    with suppress(NotImplementedError):
        context.set_alpn_protocols(["http/1.1"])
    return context
