"""What the local servers of all wire formats share: a real aiohttp server on loopback, strict and faulty on demand.

A format's server is a subclass. It says which requests are documented (`check`), what a good answer looks like (`reply`),
how it is streamed (`frames`), and the provider's own error bodies (`FAULTS`). In a test:

    with running(AnthropicServer(plan=always("overloaded"))) as server:
        ... server.url ... server.asked[-1].body ...

A plan is asked before each answer: `plan(body, how often this body was asked before)` gives the kind of fault, or None.
"""

from __future__ import annotations

import asyncio
import json
import struct
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, ClassVar, TypeVar

import jsonschema
from aiohttp import web
from multidict import CIMultiDictProxy

Plan = Callable[[Any, int], str | None]

TRANSPORT = ("reset", "cut", "truncated", "invalid-json", "content-type", "hang")
"""Faults below the format: each server has them."""
STREAM = ("stream-cut", "stream-broken", "stream-error", "stream-garbage")
"""Faults of a stream: it ends politely too early, the connection breaks, an error event comes, an event is no JSON."""


@dataclass(frozen=True)
class Asked:
    """A request as it came. path: percent-encoded, as it was sent."""

    path: str
    query: Mapping[str, str]
    headers: CIMultiDictProxy[str]
    raw: bytes
    body: Any = None
    method: str = "POST"


@dataclass
class Refused(Exception):
    """An answer that is none: the provider's status, error body and headers."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


def always(kind: str) -> Plan:
    """That fault each time."""
    return lambda body, before: kind


def once(kind: str) -> Plan:
    """That fault the first time a body comes."""
    return lambda body, before: kind if before == 0 else None


class WireServer(ABC):
    """plan: faults on demand. headers: sent with every answer. piece: bytes per write of a stream, 0 for one per event."""

    FAULTS: ClassVar[Mapping[str, Refused]] = {}
    """The provider's documented errors, by the names that plans use."""
    ROOT: ClassVar[str] = ""
    """What the base URL has below the host."""
    STREAM_TYPE: ClassVar[str] = "text/event-stream; charset=utf-8"
    STREAM_TAIL: ClassVar[int] = 1
    """Events at the end of a stream without which it is not whole."""

    def __init__(
        self, *, plan: Plan | None = None, headers: Mapping[str, str] | None = None, piece: int = 0
    ) -> None:
        self.plan = plan
        self.headers = dict(headers or {})
        self.piece = piece
        self.asked: list[Asked] = []
        self.received: Counter[bytes] = Counter()
        self.url = self.root = ""
        self._runner: web.AppRunner | None = None

    @abstractmethod
    def check(self, asked: Asked) -> None:
        """Raise Refused for anything that the provider does not document."""

    @abstractmethod
    def reply(self, asked: Asked, kind: str | None) -> Any:
        """The documented answer as JSON. kind: of the plan, where it is about the answer's content."""

    def streams(self, asked: Asked) -> bool:
        """Whether a streamed answer was asked for."""
        return False

    def frames(self, reply: Any, asked: Asked) -> list[bytes]:
        """The answer as the events of a stream."""
        raise NotImplementedError

    def error_frame(self) -> bytes:
        """The event that the provider sends when it fails in the middle of a stream."""
        raise NotImplementedError

    def garbage_frame(self) -> bytes:
        """An event whose data are no JSON."""
        return b"event: message\ndata: {broken\n\n"

    def decode(self, raw: bytes) -> Any:
        """A request's body. Raises ValueError where it is not in the right form."""
        return json.loads(raw)

    def unparsable(self) -> Refused:
        """The answer to a body that is no JSON."""
        return Refused(400, {"error": "The body is not JSON."})

    async def start(self) -> None:
        """Listen; `url` is then the base URL, `root` the address without its path."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024).start()
        self.root = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.url = self.root + self.ROOT

    async def stop(self) -> None:
        """Stop listening and drop what hangs."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except Refused as refused:
            return web.json_response(
                refused.body, status=refused.status, headers={**self.headers, **refused.headers}
            )

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        path = request.raw_path.partition("?")[0]
        asked = Asked(path, dict(request.query), request.headers, raw, method=request.method)
        if raw:
            try:
                asked = Asked(path, asked.query, asked.headers, raw, self.decode(raw), request.method)
            except ValueError:
                raise self.unparsable() from None
        before = self.received[path.encode() + raw]
        self.received[path.encode() + raw] += 1
        self.asked.append(asked)
        self.check(asked)
        kind = self.plan(asked.body, before) if self.plan else None
        if kind is not None and kind in self.FAULTS:
            raise self.FAULTS[kind]
        good = self.reply(asked, None if kind in TRANSPORT or kind in STREAM else kind)
        if kind is not None and kind in TRANSPORT:
            return await self._break(request, kind, json.dumps(good))
        if self.streams(asked):
            return await self._stream(request, self.frames(good, asked), kind)
        return web.json_response(good, headers=self.headers)

    async def _stream(
        self, request: web.Request, frames: list[bytes], kind: str | None
    ) -> web.StreamResponse:
        if kind in ("stream-cut", "stream-broken"):
            frames = frames[: len(frames) - self.STREAM_TAIL]
        elif kind == "stream-error":
            frames = [*frames[: len(frames) // 2], self.error_frame()]
        elif kind == "stream-garbage":
            frames = [*frames[:1], self.garbage_frame(), *frames[1:]]
        response = web.StreamResponse(headers={"Content-Type": self.STREAM_TYPE, **self.headers})
        await response.prepare(request)
        data = b"".join(frames)
        pieces = (
            [data[at : at + self.piece] for at in range(0, len(data), self.piece)] if self.piece else frames
        )
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0)
        if kind == "stream-broken":
            _abort(request)
        else:
            await response.write_eof()
        return response

    async def _break(self, request: web.Request, kind: str, text: str) -> web.StreamResponse:
        if kind == "hang":
            await asyncio.sleep(3600)
        if kind == "reset":
            _abort(request)
            return web.Response()
        if kind == "cut":
            length = {"Content-Type": "application/json", "Content-Length": str(len(text))}
            response = web.StreamResponse(headers=length)
            await response.prepare(request)
            await response.write(text[: len(text) // 2].encode())
            assert request.transport is not None
            request.transport.close()
            return response
        if kind == "content-type":
            return web.Response(text="<html><body>Please wait</body></html>", content_type="text/html")
        broken = text[: len(text) * 2 // 3] if kind == "truncated" else text.replace(":", ";", 1)
        return web.Response(text=broken, content_type="application/json")


def _abort(request: web.Request) -> None:
    """Close the socket with RST."""
    assert request.transport is not None
    sock = request.transport.get_extra_info("socket")
    sock.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()


def sse(data: Any, event: str | None = None) -> bytes:
    """A server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


def first_wrong(schema: Mapping[str, Any], body: Any) -> tuple[str, str] | None:
    """(place, words) of what does not fit a JSON schema, the deepest in the best branch; None where all fits."""
    errors = jsonschema.Draft202012Validator(schema).iter_errors(body)
    wrong = jsonschema.exceptions.best_match(errors)
    if wrong is None:
        return None
    place = ".".join(str(step) for step in wrong.absolute_path)
    return place, str(wrong.message)


Server = TypeVar("Server", bound=WireServer)


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """The server in a thread of its own, for tests that are not coroutines themselves."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(30)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
