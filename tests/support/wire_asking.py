"""Asking a remote model once, through the Engine, or by a stream that comes in any pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from evalwright.core.errors import RequestError
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response
from evalwright.engine import Engine, Store
from evalwright.models.base import Model, RemoteModel
from evalwright.models.http import HttpClient, Reply
from evalwright.models.http_stream import _sse
from evalwright.models.registry import open_model
from evalwright.models.wire.format import Settings, Wire

HELLO = Generate("hello", max_tokens=32)
TALK = (
    Message("system", "Be brief."),
    Message("user", "Where?"),
    Message("assistant", "Who asks?"),
    Message("user", "I do."),
)
PREFILLED = (Message("user", "Where?"), Message("assistant", "In the city of"))


def remote(name: str, **arguments: Any) -> RemoteModel:
    """The model of that name."""
    found = open_model(name, arguments)
    assert isinstance(found, RemoteModel)
    return found


def ask(model: RemoteModel, request: Generate = HELLO) -> Response:
    """Ask once and close."""

    async def go() -> Response:
        try:
            return await model.answer(request)
        finally:
            await model.close()

    return asyncio.run(go())


def failing(model: RemoteModel, request: Generate = HELLO) -> RequestError:
    """The error that asking raises."""
    with pytest.raises(RequestError) as caught:
        ask(model, request)
    return caught.value


def through_the_engine(
    model: Model, folder: Path, request: Generate = HELLO
) -> tuple[Response, dict[str, Any]]:
    """The answer by the engine's door, with what the door counted."""

    async def go() -> tuple[Response, dict[str, Any]]:
        with Store.open(folder) as store:
            async with Engine(store) as engine:
                door = engine.door({"target": model})
                return await door("target", request), door.counts.as_dict()

    return asyncio.run(go())


class _Pieces:
    """A reply whose body comes in exactly these pieces."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.headers = {"Content-Type": "text/event-stream"}
        self.content = self
        self._pieces = pieces

    async def iter_any(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


async def gathered(
    wire: Wire, pieces: Sequence[bytes], settings: Settings, request: Generate = HELLO
) -> Response:
    """The Response of a stream that comes in these pieces."""
    assert wire.gather is not None
    gatherer = wire.gather(settings)
    client = HttpClient("http://127.0.0.1:9")
    async for event, data in _sse(client, cast(Any, _Pieces(pieces))):
        if gatherer.add(event, data):
            return wire.read(Reply(gatherer.result(), 0.5, None), request, settings)
    raise AssertionError("the stream ended before the answer was whole")


def check_every_cut(
    wire: Wire, events: Sequence[bytes], settings: Settings, request: Generate = HELLO
) -> Response:
    """Cut the stream in two at every byte, and into single bytes: the Response is always the same. Gives it."""
    stream = b"".join(events)

    async def go() -> Response:
        whole = await gathered(wire, [stream], settings, request)
        for at in range(1, len(stream)):
            assert await gathered(wire, [stream[:at], stream[at:]], settings, request) == whole, at
        singly = [stream[at : at + 1] for at in range(len(stream))]
        assert await gathered(wire, singly, settings, request) == whole
        return whole

    return asyncio.run(go())
