"""Asking a model of any wire format: once by itself, through the real engine, or from a stream cut into any pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import RequestError
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response
from evalwright.engine.engine import Engine
from evalwright.engine.store import Store
from evalwright.models.registry import open_model
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.events import gathered
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.wire.format import Settings, Wire

HELLO = Generate("hello", max_tokens=50)
TALK = (
    Message("system", "Be brief."),
    Message("user", "What is it?"),
    Message("assistant", "A cat."),
    Message("user", "Sure?"),
)
PREFILLED = (*TALK, Message("assistant", "Yes,"))


def opened(name: str, **arguments: Any) -> ApiModel:
    """The model of that name."""
    found = open_model(name, arguments)
    assert isinstance(found, ApiModel)
    return found


def ask(model: ApiModel, request: Generate = HELLO) -> Response:
    """Ask once and close."""

    async def go() -> Response:
        try:
            return await model.answer(request)
        finally:
            await model.close()

    return asyncio.run(go())


def failing(model: ApiModel, request: Generate = HELLO) -> RequestError:
    """The error that asking raises."""
    with pytest.raises(RequestError) as caught:
        ask(model, request)
    return caught.value


def through_engine(home: Path, model: ApiModel, requests: list[Generate]) -> list[Response]:
    """The answers as a run gets them: by the engine's door, retried, stored."""

    async def go() -> list[Response]:
        with Store.open(home) as store:
            async with Engine(store) as engine:
                door = engine.door({"target": model})
                return await asyncio.gather(*(door("target", request) for request in requests))

    return asyncio.run(go())


def from_stream(
    wire: Wire, pieces: list[bytes], settings: Settings, content_type: str, request: Generate = HELLO
) -> Response:
    """The Response from a stream that comes in these pieces. Raises as a real one would."""

    async def parts() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def go() -> Response:
        assert wire.gather is not None
        data = await gathered("127.0.0.1:1", content_type, parts(), wire.gather(settings), wire.decoding)
        return wire.read(Reply(data, 0.0, None), request, settings)

    return asyncio.run(go())


def splits(data: bytes) -> list[list[bytes]]:
    """`data` cut in two at every place, and into single bytes."""
    halves = [[data[:at], data[at:]] for at in range(1, len(data))]
    return [[data], [data[at : at + 1] for at in range(len(data))], *halves]
