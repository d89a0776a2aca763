"""What the local servers of the wire formats share: strict about path, query, headers and body, faulty on demand.

A server is told what to do with each request in turn: `server.script = ["429", None, "filter"]`; None is a good answer. Faults of
transport are made here; what else a word means ("length", "filter", "empty", ...) is the format's.
"""

from __future__ import annotations

import asyncio
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from aiohttp import web
from jsonschema import Draft202012Validator

KEY = "test-key-0123456789abcdef"
STATUSES = ("400", "401", "402", "403", "404", "408", "422", "429", "498", "500", "502", "503", "504", "529")
TRANSPORT = ("broken-json", "cut", "html")

Server = TypeVar("Server", bound="StrictServer")


class Refused(Exception):
    """The server's error reply."""

    def __init__(self, status: int, message: str, place: str = "", code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.place, self.code = status, message, place, code


def check_schema(schema: Mapping[str, Any], body: Any, status: int = 400) -> None:
    """Raise Refused for the first thing in `body` that the schema does not allow."""
    wrong = sorted(Draft202012Validator(schema).iter_errors(body), key=lambda error: list(error.path))
    if wrong:
        place = ".".join(map(str, wrong[0].absolute_path))
        raise Refused(status, f"{place or 'body'}: {wrong[0].message}", place)


def sse(events: Sequence[Any], named: bool = False) -> list[bytes]:
    """Events as server-sent events; text stays text. named: each with its type as the event's name."""
    return [
        (
            (f"event: {event['type']}\n" if named and isinstance(event, Mapping) else "")
            + f"data: {event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)}\n\n"
        ).encode()
        for event in events
    ]


class StrictServer(ABC):
    """answer: what every model says. log: every request that came. piece: bytes at a time of a stream, 0 for an event at a time."""

    path: ClassVar[str] = "/{tail:.*}"
    base: ClassVar[str] = ""
    rate_headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, answer: str = "Paris, “naturally”.", piece: int = 0) -> None:
        self.answer, self.piece = answer, piece
        self.script: list[str | None] = []
        self.log: list[dict[str, Any]] = []
        self.url = ""
        self._runner: web.AppRunner | None = None

    @abstractmethod
    def check(self, request: web.Request, body: Any) -> None:
        """Raise Refused for a request that the provider would refuse."""

    @abstractmethod
    def whole(self, body: Mapping[str, Any], kind: str) -> Any:
        """The reply in one piece."""

    def events(self, body: Mapping[str, Any], kind: str) -> list[bytes]:
        """The reply as a stream."""
        raise Refused(400, "streaming is not supported")

    @abstractmethod
    def error(self, status: int, message: str, place: str, code: str) -> Any:
        """The error body."""

    def streamed(self, request: web.Request, body: Mapping[str, Any]) -> bool:
        """Whether a stream was asked for."""
        return body.get("stream") is True

    async def start(self) -> None:
        """Listen; `url` is then the base URL."""
        app = web.Application()
        app.router.add_route("*", self.path, self._answer)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}{self.base}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        body = json.loads(text) if text else None
        self.log.append(
            {
                "path": request.path,
                "query": dict(request.query),
                "headers": dict(request.headers),
                "body": body,
            }
        )
        try:
            self.check(request, body)
            kind = (self.script.pop(0) if self.script else None) or ""
            if kind in STATUSES:
                raise Refused(int(kind), "wrong on purpose")
            if kind == "html":
                return web.Response(text="<html>Please wait</html>", content_type="text/html")
            return await self._good(request, body, kind)
        except Refused as refused:
            data = self.error(refused.status, refused.message, refused.place, refused.code)
            headers = {**self.rate_headers, "Retry-After": "7"} if refused.status == 429 else {}
            return web.json_response(data, status=refused.status, headers=headers)

    async def _good(self, request: web.Request, body: Any, kind: str) -> web.StreamResponse:
        if not self.streamed(request, body):
            text = json.dumps(self.whole(body, kind))
            text = text[: len(text) // 2] if kind == "broken-json" else text
            headers = {
                "Content-Type": "application/json",
                "Content-Length": str(len(text)),
                **self.rate_headers,
            }
            half = text[: len(text) // 2] if kind == "cut" else text
            return await self._write(request, headers, [half.encode()], cut=kind == "cut")
        events = self.events(body, kind)
        if kind == "broken-json":
            events[len(events) // 2] = b"data: {oops\n\n"
        if kind == "cut":
            events = events[: len(events) // 2]
        if self.piece:
            joined = b"".join(events)
            events = [joined[at : at + self.piece] for at in range(0, len(joined), self.piece)]
        return await self._write(request, {"Content-Type": "text/event-stream", **self.rate_headers}, events)

    async def _write(
        self, request: web.Request, headers: Mapping[str, str], parts: Sequence[bytes], cut: bool = False
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for part in parts:
            await response.write(part)
            await asyncio.sleep(0)
        if cut:
            assert request.transport is not None
            request.transport.close()
        else:
            await response.write_eof()
        return response


@contextmanager
def strictly(server: Server) -> Iterator[Server]:
    """The server, in a thread of its own."""
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
