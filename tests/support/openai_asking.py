"""Asking an `openai` model once, in a loop of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evalwright.core.errors import RequestError
from evalwright.core.requests import Generate, Request
from evalwright.core.responses import Response
from evalwright.models.registry import open_model
from evalwright.models.remote.openai import OpenAIModel

HELLO = Generate("hello", max_tokens=20)


def openai_model(model: str, **arguments: Any) -> OpenAIModel:
    """The model `openai/...` with these arguments."""
    found = open_model(f"openai/{model}", arguments)
    assert isinstance(found, OpenAIModel)
    return found


def model_at(url: str, **arguments: Any) -> OpenAIModel:
    """The model "m" at a base URL."""
    found = open_model("openai/m", {"base_url": url, **arguments})
    assert isinstance(found, OpenAIModel)
    return found


def ask(model: OpenAIModel, request: Request = HELLO) -> Response:
    """Ask once and close."""

    async def go() -> Response:
        try:
            return await model.answer(request)
        finally:
            await model.close()

    return asyncio.run(go())


def failing(model: OpenAIModel, request: Request = HELLO) -> RequestError:
    """The error that asking raises."""
    with pytest.raises(RequestError) as caught:
        ask(model, request)
    return caught.value
