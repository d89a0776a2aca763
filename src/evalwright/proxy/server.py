"""The HTTP side of the proxy: what a connection and a request's head may be, and how much of it.

Everything here happens before a body is read as JSON. The server listens on a loopback address,
answers only to its own names (a page that a browser was tricked into sending here by DNS has
another), and to no page at all: a request with an Origin is refused, and no header allows one.
Sizes, times and numbers are bounded, so that a slow or large client costs a bounded amount.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any, cast

from aiohttp import HttpVersion11, web

from evalwright.core.errors import ConfigurationError
from evalwright.proxy.faults import Fault, invalid

MAX_BODY_BYTES = 50 * 10**6
"""Most bytes of a request; a conversation with images passes."""
MAX_BODIES_BYTES = 400 * 10**6
"""Most bytes of bodies that are being read at a time, over all connections."""
MAX_CONNECTIONS = 1_000
MAX_LINE_BYTES = 8_190
MAX_HEADERS = 100
IDLE_SECONDS = 75.0
"""How long a connection may take for the head of a request, or stay idle between two."""
CLIENT_SECONDS = 60.0
"""How long a client may take to send a body, or leave an answer unread."""
MAX_DIRECT_BYTES = 2**16
"""Most bytes of a reply that are handed over at once, to a connection with nothing unsent."""

_log = logging.getLogger("evalwright.proxy")
_quiet = logging.getLogger("evalwright.proxy.http")
"""Of the HTTP library, which would log parts of requests."""
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False

Handle = Callable[["web.BaseRequest", "Connection"], Awaitable[web.StreamResponse]]


class Connection(web.RequestHandler):
    """A connection that tells what waits for it when it ends."""

    def __init__(self, *args: Any, door: Door, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._door = door
        self._counted = False
        self.on_lost: list[Callable[[], None]] = []
        """Called once when the connection ends, while a request is being answered."""
        self.waits_since: float | None = None
        """Since when the client is to send a body, or take an answer; None if it is not."""
        self.is_late = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, or end it if there are too many."""
        if self._door.n_connections >= self._door.max_connections:
            transport.abort()  # type: ignore[attr-defined]
            return
        self._counted = True
        self._door.n_connections += 1
        self._door.open.add(self)
        super().connection_made(transport)

    def connection_lost(self, error: BaseException | None) -> None:
        """Tell what waits for this connection that it has ended."""
        if self._counted:
            self._counted = False
            self._door.n_connections -= 1
            self._door.open.discard(self)
        waiting, self.on_lost = self.on_lost, []
        for tell in waiting:
            tell()
        super().connection_lost(error)

    def abort(self) -> None:
        """End the connection at once, with what is unsent."""
        transport = self.transport
        if transport is not None:
            transport.abort()

    @property
    def is_alive(self) -> bool:
        """Whether an answer can still be delivered."""
        transport = self.transport
        return transport is not None and not transport.is_closing()

    def log_exception(self, *args: Any, **settings: Any) -> None:
        """Log that something failed, without the request that is in the traceback's frames."""
        error = settings.get("exc_info")
        _log.warning("A connection ended by an error: %s", type(error).__name__)


class Door(web.Server):
    """Makes connections, and counts what they hold in memory.

    Args:
        handle: answers a request.
        max_connections: most connections at a time.
        max_bodies_bytes: most bytes of bodies that are being read at a time; None for the usual.
    """

    def __init__(
        self,
        handle: Handle,
        *,
        max_connections: int = MAX_CONNECTIONS,
        max_bodies_bytes: int | None = None,
    ) -> None:
        async def handled(request: web.BaseRequest) -> web.StreamResponse:
            connection = request.protocol
            assert isinstance(connection, Connection)
            return await handle(request, connection)

        super().__init__(handled, handler_cancellation=False)
        self.n_connections = 0
        self.open: set[Connection] = set()
        self.max_connections = max_connections
        self._max_bodies_bytes = (
            MAX_BODIES_BYTES if max_bodies_bytes is None else max_bodies_bytes
        )
        self.body_bytes = 0
        """Bytes of the bodies that are being read."""

    def __call__(self) -> Connection:
        """Make a connection."""
        return Connection(
            self,
            loop=asyncio.get_running_loop(),
            door=self,
            keepalive_timeout=IDLE_SECONDS,
            access_log=None,
            logger=_quiet,
            max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_LINE_BYTES,
            max_headers=MAX_HEADERS,
            lingering_time=1.0,
            auto_decompress=False,
        )

    def sweep(self, now: float) -> None:
        """End the connections whose clients keep us waiting for too long.

        Args:
            now: the event loop's time.
        """
        for connection in list(self.open):
            since = connection.waits_since
            if since is not None and now - since > CLIENT_SECONDS:
                connection.is_late = True
                connection.abort()

    async def read_body(
        self, request: web.BaseRequest, connection: Connection
    ) -> bytes:
        """Read a body within the bounds of size and time.

        Raises:
            Fault: it exceeds them, or comes in a form that is not taken.
        """
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise invalid("A body is sent uncompressed: leave out Content-Encoding.")
        media_type = request.headers.get("Content-Type", "").partition(";")[0].strip()
        if media_type.lower() != "application/json":
            raise Fault(
                415,
                "invalid",
                "The body must be JSON: send Content-Type: application/json.",
            )
        announced = request.content_length or 0
        if announced > MAX_BODY_BYTES:
            raise _too_large()
        if self.body_bytes + announced > self._max_bodies_bytes:
            raise _busy()
        content = request.content
        if content.is_eof():
            # Most bodies have arrived with their heads.
            return content.read_nowait(-1)
        connection.waits_since = asyncio.get_running_loop().time()
        counted = announced
        self.body_bytes += counted
        pieces: list[bytes] = []
        size = 0
        try:
            while piece := await content.readany():
                pieces.append(piece)
                size += len(piece)
                if size > MAX_BODY_BYTES:
                    raise _too_large()
                if size > counted:
                    self.body_bytes += size - counted
                    counted = size
                    if self.body_bytes > self._max_bodies_bytes:
                        raise _busy()
        finally:
            self.body_bytes -= counted
            connection.waits_since = None
        return b"".join(pieces)


def _too_large() -> Fault:
    return Fault(
        413,
        "too large",
        f"The body has more than {MAX_BODY_BYTES / 1e6:g} MB.",
        closes=True,
    )


def _busy() -> Fault:
    return Fault(
        503,
        "overloaded",
        "Too many large requests arrive at once.",
        retry_after=1,
        may_retry=True,
        closes=True,
    )


class Reply:
    """A whole reply that is small, written in one piece.

    It has what aiohttp's server uses of a response, and takes a fraction of its time.

    Args:
        body: the body.
        head: the status line and headers, with the length of the body.
    """

    def __init__(self, body: bytes, head: bytes) -> None:
        self._content = head + body
        self._written = False

    async def prepare(self, request: web.BaseRequest) -> None:
        """Write the reply, the first time that this is called."""
        if self._written:
            return
        self._written = True
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("The client is gone.")
        transport.write(self._content)

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: everything is written."""

    keep_alive = True


def reply_of(
    request: web.BaseRequest, body: bytes, content_type: str
) -> web.StreamResponse:
    """Return the reply to a request that succeeded, in the form that costs least."""
    transport = request.transport
    is_direct = (
        len(body) <= MAX_DIRECT_BYTES
        and request.keep_alive
        and request.version == HttpVersion11
        and transport is not None
        and transport.get_write_buffer_size() == 0
    )
    if is_direct:
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length:"
            f" {len(body)}\r\nCache-Control: no-store\r\nServer: evalwright\r\n\r\n"
        )
        return cast(web.StreamResponse, Reply(body, head.encode("ascii")))
    headers = {
        "Content-Type": content_type,
        "Cache-Control": "no-store",
        "Server": "evalwright",
    }
    return web.Response(body=body, headers=headers)


def check_head(request: web.BaseRequest, hosts: frozenset[str]) -> None:
    """Check where a request comes from.

    Raises:
        Fault: it is addressed to another host, or sent by a page in a browser.
    """
    headers = request.headers
    host = headers.getall("Host", ())
    if len(host) != 1 or host[0].lower() not in hosts:
        raise Fault(
            421,
            "permission",
            "This proxy answers only on this machine, under its own address.",
            closes=True,
        )
    is_page = "Origin" in headers or headers.get("Sec-Fetch-Site", "none") not in (
        "none",
        "same-origin",
    )
    if is_page:
        raise Fault(
            403, "permission", "This proxy takes no requests of web pages.", closes=True
        )


def bearer_of(request: web.BaseRequest) -> str:
    """Return the token that a request carries; "" for none, or for two that differ."""
    headers = request.headers
    authorizations = headers.getall("Authorization", ())
    keys = headers.getall("x-api-key", ())
    if len(authorizations) == 1 and not keys:
        return _bearer(authorizations[0])
    candidates = {key.strip() for key in keys}
    candidates.update(map(_bearer, authorizations))
    return candidates.pop() if len(candidates) == 1 else ""


def _bearer(authorization: str) -> str:
    """Return the token of an Authorization header; "" for another scheme."""
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def check_loopback(host: str) -> str:
    """Return the address to listen on.

    Raises:
        ConfigurationError: other machines could reach it.
    """
    name = "127.0.0.1" if host == "localhost" else host.strip("[]")
    try:
        is_loopback = ipaddress.ip_address(name).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise ConfigurationError(
            f"The proxy listens only on this machine: --host {host} would let others spend"
            " its budget and read its answers. Use 127.0.0.1, or reach it from elsewhere"
            " through a tunnel of SSH (ssh -L)."
        )
    return name


def open_socket(host: str, port: int) -> socket.socket:
    """Open the socket to listen on.

    Raises:
        ConfigurationError: the port cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ConfigurationError(
            f"The port {port} of {host} cannot be used: {error.strerror}. Name another one"
            " with --port, or leave it out."
        ) from error
    return listening


def hosts_of(host: str, port: int) -> frozenset[str]:
    """Return the Host headers of requests to this server."""
    shown = f"[{host}]" if ":" in host else host
    return frozenset(f"{name}:{port}" for name in (shown, "localhost", "127.0.0.1"))
