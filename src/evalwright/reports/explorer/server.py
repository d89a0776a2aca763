"""The server of `evalwright view`, for browsers on this machine that know its token.

It answers GET for the page and for parts with known keys, and reads no file that a request
names. The Host header is checked, so that no other page can reach it by DNS rebinding.
"""

from __future__ import annotations

import errno
import re
import secrets
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from evalwright.core.errors import ConfigurationError
from evalwright.reports.explorer.following import Follower
from evalwright.reports.explorer.page import END, page_head, page_policy

ADDRESS = "127.0.0.1"
MOST_CONNECTIONS = 64
"""Most connections that are answered at a time, a thread each; a browser uses six."""
_CONNECT_SECONDS = 1.0
"""The time for which a further connection waits before it is refused."""


class Server(ThreadingHTTPServer):
    """Serves the explorer until it is shut down.

    Args:
        follower: Follows the runs that are shown.
        port: The port; 0 takes any free one.

    Raises:
        ConfigurationError: The port cannot be used.
    """

    daemon_threads = True
    allow_reuse_address = False
    request_queue_size = 128

    def __init__(self, follower: Follower, port: int = 0) -> None:
        self.follower = follower
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self.token = secrets.token_urlsafe(16)
        self.page = (page_head(follower.title, "live", "part/") + END).encode(
            "utf-8", "backslashreplace"
        )
        self.policy = page_policy("live") + "; frame-ancestors 'none'"
        try:
            super().__init__((ADDRESS, port), Handler)
        except (OSError, OverflowError) as error:
            why = (
                "is in use"
                if getattr(error, "errno", 0) == errno.EADDRINUSE
                else f"cannot be used ({error})"
            )
            raise ConfigurationError(
                f"The port {port} {why}: name another one with --port, or leave it out."
            ) from error
        self.hosts = {f"{name}:{self.server_port}" for name in (ADDRESS, "localhost")}

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a new thread; refuse the connection if there are too many."""
        if self._room.acquire(timeout=_CONNECT_SECONDS):
            try:
                super().process_request(request, client_address)
            except RuntimeError:  # no further thread could be started
                self._room.release()
                raise
            return
        with suppress(OSError):
            request.sendall(
                b"HTTP/1.0 503 Too many connections\r\nRetry-After:"
                b" 1\r\nContent-Length: 0\r\n\r\n"
            )
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one connection and make room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of connections that the browser closed."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: Server
    server_version = "evalwright"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        """Send the page, or one of its parts."""
        server = self.server
        address = urlsplit(self.path)
        match = re.fullmatch(r"/([^/]*)/(?:part/([a-z0-9/]*))?", address.path)
        if self.headers.get("Host", "").lower() not in server.hosts:
            self._reply(
                403,
                "text/plain",
                b"This server answers only on this machine, under its own address.",
            )
        elif not match or not secrets.compare_digest(
            match[1].encode(), server.token.encode()
        ):
            self._reply(
                404,
                "text/plain",
                b"Nothing here. The address that `evalwright view` printed has a token"
                b" in it.",
            )
        elif match[2] is None:
            self._reply(200, "text/html; charset=utf-8", server.page)
        else:
            generation = parse_qs(address.query).get("generation", [""])[0]
            content = server.follower.part(
                match[2],
                int(generation)
                if generation.isdecimal() and len(generation) < 10
                else None,
            )
            if content is None:
                self._reply(404, "text/plain", b"There is no such part.")
            else:
                self._reply(200, "application/octet-stream", content)

    def _reply(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal is for people."""
