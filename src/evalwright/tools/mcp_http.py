"""An MCP server at an address (streamable HTTP): the client of the `mcp` package, bounded.

No variable of the environment changes where requests go or what they hold: neither proxies nor a
`.netrc` are read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from evalwright.tools.mcp_settings import McpServer

MAX_RESPONSE_BYTES = 8 << 20
"""Most bytes of one response, or of one event of a stream."""
MAX_STREAM_BYTES = 64 << 20
"""Most bytes of a stream of events."""
CONNECT_SECONDS = 10.0
REPLY_MARGIN = 5.0
"""Seconds after the end of a call's time at which its connection is given up, too."""


class ResponseTooLong(Exception):
    """A server sent more bytes than are read."""


class HttpConnection:
    """The streams between a server at an address and the client.

    Attributes:
        fault: why the server's replies were refused, as the end of a sentence.
    """

    last_error = ""

    def __init__(self, server: McpServer, call_seconds: float) -> None:
        self.fault = ""
        self._server = server
        self._call_seconds = call_seconds

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Give the client's two streams; the first message opens the connection."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        client = httpx2.AsyncClient(
            headers=self._server.request_headers(),
            transport=_bounded_transport(self),
            trust_env=False,
            timeout=httpx2.Timeout(
                self._call_seconds + REPLY_MARGIN, connect=CONNECT_SECONDS
            ),
        )
        async with (
            client,
            streamable_http_client(
                self._server.url,
                http_client=client,
                max_sse_event_size=MAX_RESPONSE_BYTES,
            ) as streams,
        ):
            yield streams[0], streams[1]


def _is_refusal(status: int, content_type: str) -> bool:
    """Return whether a reply says that the server, or what stands before it, is at fault.

    An error of the protocol that another status carries is about one call.
    """
    if status in (401, 403, 429) or status >= 500:
        return True
    return status >= 400 and not content_type.startswith("application/json")


def _bounded_transport(connection: HttpConnection) -> Any:
    import httpx2

    class BoundedStream(httpx2.AsyncByteStream):  # type: ignore[misc]
        """The bytes of a response, up to a limit."""

        def __init__(self, stream: Any, max_bytes: int) -> None:
            self._stream = stream
            self._max_bytes = max_bytes

        async def __aiter__(self) -> AsyncIterator[bytes]:
            n_bytes = 0
            async for chunk in self._stream:
                n_bytes += len(chunk)
                if n_bytes > self._max_bytes:
                    connection.fault = (
                        f"it sent a response of more than {self._max_bytes >> 20} MiB"
                    )
                    raise httpx2.ReadError("The response is too long.")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    class BoundedTransport(httpx2.AsyncHTTPTransport):  # type: ignore[misc]
        """Sends requests, and bounds the responses. Compressed ones are not asked for."""

        async def handle_async_request(self, request: Any) -> Any:
            request.headers["Accept-Encoding"] = "identity"
            response = await super().handle_async_request(request)
            kind = response.headers.get("content-type", "")
            is_stream = kind.startswith("text/event-stream")
            if response.headers.get("content-encoding", "identity") != "identity":
                connection.fault = (
                    "it sent a compressed response, which was not asked for"
                )
                await response.aclose()
                raise httpx2.ReadError("The response is compressed.")
            if request.method == "POST" and _is_refusal(response.status_code, kind):
                connection.fault = (
                    f"it answered with HTTP status {response.status_code}"
                )
            response.stream = BoundedStream(
                response.stream, MAX_STREAM_BYTES if is_stream else MAX_RESPONSE_BYTES
            )
            return response

    return BoundedTransport(trust_env=False)
