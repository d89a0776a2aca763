"""Sending one request to a remote model, in a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
from aiohttp import web

from evalwright.core.errors import RequestError
from evalwright.core.requests import Generate, Message, Request
from evalwright.core.responses import Response
from evalwright.models.model_interface import RemoteModel
from evalwright.models.registry import open_model
from evalwright.models.remote.openai import OpenAIModel

HELLO = Generate("hello", max_tokens=20)
TALK = (
    Message("system", "Be brief."),
    Message("user", "Where?"),
    Message("assistant", "Who asks?"),
    Message("user", "I do."),
)
PREFILLED = (Message("user", "Where?"), Message("assistant", "In the city of"))


def remote(name: str, **arguments: Any) -> RemoteModel:
    """The model of that name."""
    model = open_model(name, arguments)
    assert isinstance(model, RemoteModel)
    return model


def openai_model(model: str, **arguments: Any) -> OpenAIModel:
    """The model `openai/...` with these arguments."""
    opened = open_model(f"openai/{model}", arguments)
    assert isinstance(opened, OpenAIModel)
    return opened


def model_at(url: str, **arguments: Any) -> OpenAIModel:
    """The model "m" at a base URL."""
    model = open_model("openai/m", {"base_url": url, **arguments})
    assert isinstance(model, OpenAIModel)
    return model


def ask(model: RemoteModel, request: Request = HELLO) -> Response:
    """Send it once and close."""

    async def go() -> Response:
        try:
            return await model.answer(request)
        finally:
            await model.close()

    return asyncio.run(go())


def failing(model: RemoteModel, request: Request = HELLO) -> RequestError:
    """The error that sending it raises."""
    with pytest.raises(RequestError) as caught:
        ask(model, request)
    return caught.value


def answered(
    handle: Callable[[web.Request], Awaitable[web.Response]],
    paths: Iterable[str],
    model_at: Callable[[str], Any],
    request: Request,
) -> Any:
    """What the model at a small server's address gives, errors as values. handle: what the
    server does with a POST to the paths.
    """

    async def go() -> Any:
        app = web.Application()
        for path in paths:
            app.router.add_post(path, handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        model = model_at(f"http://{host}:{port}")
        try:
            return await model.answer(request)
        except RequestError as error:
            return error
        finally:
            await model.close()
            await runner.cleanup()

    return asyncio.run(go())
