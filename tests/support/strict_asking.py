"""Asking a remote model once, through the Engine, or by a stream that comes in any pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import RequestError
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response
from evalwright.engine import Engine, Store
from evalwright.models.base import Model, RemoteModel
from evalwright.models.registry import open_model
from evalwright.models.remote.events import gathered
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.wire.format import Settings, Wire

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


async def in_pieces(
    wire: Wire, pieces: Sequence[bytes], settings: Settings, request: Generate = HELLO
) -> Response:
    """The Response of a stream whose body comes in exactly these pieces."""

    async def parts() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    assert wire.gather is not None
    data = await gathered("127.0.0.1:9", "text/event-stream", parts(), wire.gather(settings), wire.decoding)
    return wire.read(Reply(data, 0.5, None), request, settings)


def check_every_cut(
    wire: Wire, events: Sequence[bytes], settings: Settings, request: Generate = HELLO
) -> Response:
    """Cut the stream in two at every byte, and into single bytes: the Response is always the same. Gives it."""
    stream = b"".join(events)

    async def go() -> Response:
        whole = await in_pieces(wire, [stream], settings, request)
        for at in range(1, len(stream)):
            assert await in_pieces(wire, [stream[:at], stream[at:]], settings, request) == whole, at
        singly = [stream[at : at + 1] for at in range(len(stream))]
        assert await in_pieces(wire, singly, settings, request) == whole
        return whole

    return asyncio.run(go())
